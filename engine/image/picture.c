/*
 * From the bytes of a file to patches: header, decode, lay over white, turn upright, resize, cut.
 * Every refusal that is possible from the header comes before the first pixel is decoded.
 */

#include "image/picture.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/stop.h"
#include "image/bmp.h"
#include "image/gif.h"
#include "image/jpeg.h"
#include "image/orient.h"
#include "image/patch.h"
#include "image/png.h"
#include "image/resize.h"
#include "image/webp.h"


/* Pixels as a browser shows them on a white page: RGBA to RGB, in place; the room shrinks. */
static uint8_t *
lay_over_white(uint8_t *p, size_t n_pixels)
{
    size_t    i;
    uint8_t  *rgb;
    uint32_t  c, alpha;

    for (i = 0; i < n_pixels; i++) {
        alpha = p[4 * i + 3];

        for (c = 0; c < 3; c++) {
            p[3 * i + c] = (uint8_t) ((alpha * p[4 * i + c] + (255 - alpha) * 255 + 127) / 255);
        }
    }

    rgb = realloc(p, 3 * n_pixels);

    return rgb == NULL ? p : rgb;
}


/* u8 [height][width][3] as stored, or NULL. */
static uint8_t *
decode(const vlm_header_t *h, const void *data, size_t bytes, const vlm_stop_t *stop,
       vlm_err_t *err)
{
    int       alpha;
    uint8_t  *p;

    if (vlm_stopped(stop, err)) {
        return NULL;
    }

    alpha = h->alpha;

    switch (h->kind) {

    case VLM_GIF:
        p = vlm_gif_decode(h, data, bytes, err);
        alpha = 1;
        break;

    case VLM_WEBP:
        p = vlm_webp_decode(h, data, bytes, stop, err);
        break;

    case VLM_JPEG:
        p = vlm_jpeg_decode(h, data, bytes, stop, err);
        break;

    case VLM_PNG:
        p = vlm_png_decode(h, data, bytes, stop, err);
        break;

    default:
        p = vlm_bmp_decode(h, data, bytes, err);
        break;
    }

    if (p != NULL && alpha) {
        p = lay_over_white(p, (size_t) h->width * h->height);
    }

    return p;
}


static void
measure_upright(vlm_picture_info_t *info, const vlm_header_t *h)
{
    int  turns;

    turns = vlm_orient_turns(h->orientation);
    info->width = turns ? h->height : h->width;
    info->height = turns ? h->width : h->height;
    info->memory = h->memory;
}


/* Sizes of a picture upright and resized, from its header alone. */
static int
measure(vlm_picture_info_t *info, const vlm_header_t *h, const vlm_pixel_config_t *pc,
        const vlm_vision_config_t *vc, uint64_t max_pixels, vlm_err_t *err)
{
    uint32_t  side, width, height;
    uint64_t  low, high;

    measure_upright(info, h);

    high = max_pixels < pc->max_pixels ? max_pixels : pc->max_pixels;
    high = high < VLM_MAX_PICTURE_PIXELS ? high : VLM_MAX_PICTURE_PIXELS;
    low = pc->min_pixels < high ? pc->min_pixels : high;

    side = vc->patch * vc->merge;

    if (vlm_smart_resize(info->width, info->height, side, low, high, &info->resized_width,
                         &info->resized_height, err) != 0
        || vlm_smart_resize(info->width, info->height, side, 0, UINT64_MAX, &width, &height,
                            err) != 0)
    {
        return -1;
    }

    info->scaled = width != info->resized_width || height != info->resized_height;

    return 0;
}


uint8_t *
vlm_picture_pixels(const vlm_header_t *h, const void *data, size_t bytes, uint32_t *width,
                   uint32_t *height, const vlm_stop_t *stop, vlm_err_t *err)
{
    uint8_t  *rgb;

    *width = h->width;
    *height = h->height;
    rgb = decode(h, data, bytes, stop, err);

    return rgb == NULL ? NULL : vlm_orient(rgb, width, height, h->orientation, err);
}


uint8_t *
vlm_picture_decode(const void *data, size_t bytes, uint32_t *width, uint32_t *height,
                   const vlm_stop_t *stop, vlm_err_t *err)
{
    vlm_header_t  h;

    if (vlm_header_read(&h, data, bytes, err) != 0
        || vlm_aspect_check(h.width, h.height, err) != 0)
    {
        return NULL;
    }

    return vlm_picture_pixels(&h, data, bytes, width, height, stop, err);
}


/* A frame, or the picture: upright, at the size of the picture's info, and in patches. */
static int
render(vlm_picture_t *p, const vlm_vision_config_t *vc, const vlm_header_t *h,
       const vlm_bytes_t *frame, uint32_t slice, const vlm_stop_t *stop, vlm_err_t *err)
{
    int        rc;
    uint8_t   *rgb, *small;
    uint32_t   width, height;
    uint64_t   start, decoded;

    start = vlm_now_us();
    rgb = vlm_picture_pixels(h, frame->data, frame->bytes, &width, &height, stop, err);
    if (rgb == NULL) {
        return -1;
    }

    if (vlm_stopped(stop, err)) {
        free(rgb);
        return -1;
    }

    decoded = vlm_now_us();
    small = vlm_resize(rgb, width, height, p->info.resized_width, p->info.resized_height, err);
    free(rgb);
    if (small == NULL) {
        return -1;
    }

    rc = vlm_stopped(stop, err) ? -1 : vlm_patch_cut(p, small, slice, vc, err);
    free(small);

    p->info.decode_us += (uint32_t) (decoded - start);
    p->info.resize_us += (uint32_t) (vlm_now_us() - decoded);

    return rc;
}


static int
check_channels(const vlm_vision_config_t *vc, vlm_err_t *err)
{
    return vc->channels == 3 ? 0
           : vlm_fail(err, VLM_EMODEL, "the model takes pictures of %u channels, only 3 are made",
                      vc->channels);
}


vlm_picture_t *
vlm_picture_make(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc, uint64_t max_pixels,
                 const void *data, size_t bytes, vlm_err_t *err)
{
    uint8_t  sha256[32];

    vlm_sha256(data, bytes, sha256);

    return vlm_picture_make_hashed(pc, vc, max_pixels, data, bytes, sha256, NULL, err);
}


vlm_picture_t *
vlm_picture_make_hashed(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc,
                        uint64_t max_pixels, const void *data, size_t bytes,
                        const uint8_t sha256[32], const vlm_stop_t *stop, vlm_err_t *err)
{
    vlm_header_t        h;
    const vlm_bytes_t   file = { data, bytes };
    vlm_picture_info_t  info;

    memset(&info, 0, sizeof(info));

    if (check_channels(vc, err) != 0
        || vlm_header_read(&h, data, bytes, err) != 0
        || measure(&info, &h, pc, vc, max_pixels, err) != 0)
    {
        return NULL;
    }

    return vlm_picture_make_frames(&info, vc, &file, 1, sha256, stop, err);
}


vlm_picture_t *
vlm_picture_make_frames(const vlm_picture_info_t *info, const vlm_vision_config_t *vc,
                        const vlm_bytes_t *frame, uint32_t n, const uint8_t sha256[32],
                        const vlm_stop_t *stop, vlm_err_t *err)
{
    uint32_t        i;
    vlm_header_t    h;
    vlm_picture_t  *p;

    if (check_channels(vc, err) != 0) {
        return NULL;
    }

    p = calloc(1, sizeof(*p));

    if (p == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for a picture");
        return NULL;
    }

    p->info = *info;
    p->slices = n;

    if (vlm_patch_layout(p, info->resized_width, info->resized_height, vc, err) != 0) {
        goto failed;
    }

    for (i = 0; i < n; i++) {
        if (vlm_header_read(&h, frame[i].data, frame[i].bytes, err) != 0
            || render(p, vc, &h, &frame[i], i, stop, err) != 0)
        {
            goto failed;
        }
    }

    p->info.pictures = 1;
    p->info.tokens = p->n_cells;
    memcpy(p->sha256, sha256, sizeof(p->sha256));

    return p;

failed:

    vlm_picture_free(p);

    return NULL;
}


vlm_picture_t *
vlm_picture_share(vlm_picture_t *p)
{
    vlm_picture_t  *whole, *copy;

    copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }

    whole = p->whole != NULL ? p->whole : p;
    atomic_fetch_add(&whole->shares, 1);

    memcpy(copy, whole, sizeof(*copy));
    copy->whole = whole;
    atomic_init(&copy->shares, 0);

    return copy;
}


void
vlm_picture_info(const vlm_picture_t *p, vlm_picture_info_t *info)
{
    *info = p->info;

    for (p = p->next; p != NULL; p = p->next) {
        info->pictures += p->info.pictures;
        info->tokens += p->info.tokens;
        info->decode_us += p->info.decode_us;
        info->resize_us += p->info.resize_us;
    }
}


int
vlm_picture_check(const void *data, size_t bytes, vlm_picture_info_t *info, vlm_err_t *err)
{
    vlm_header_t  h;

    memset(info, 0, sizeof(*info));

    if (vlm_header_read(&h, data, bytes, err) != 0) {
        return -1;
    }

    measure_upright(info, &h);

    return vlm_aspect_check(info->width, info->height, err);
}


int
vlm_picture_look(const vlm_pixel_config_t *pc, const vlm_vision_config_t *vc, uint64_t max_pixels,
                 const void *data, size_t bytes, vlm_picture_info_t *info, vlm_err_t *err)
{
    uint32_t      cell = vc->patch * vc->merge;
    vlm_header_t  h;

    memset(info, 0, sizeof(*info));

    if (vlm_header_read(&h, data, bytes, err) != 0
        || measure(info, &h, pc, vc, max_pixels, err) != 0)
    {
        return -1;
    }

    info->pictures = 1;
    info->tokens = (info->resized_width / cell) * (info->resized_height / cell);

    return 0;
}


static void
free_one(vlm_picture_t *p)
{
    vlm_picture_t  *whole;

    if (p->whole != NULL) {
        whole = p->whole;
        free(p);
        p = whole;
    }

    /* The owner is not counted among its shares: the last of them to go frees its arrays. */

    if (atomic_fetch_sub(&p->shares, 1) != 0) {
        return;
    }

    free(p->pixels);
    free(p->row);
    free(p->column);
    free(p->border);
    free(p->cell);
    free(p);
}


void
vlm_picture_free(vlm_picture_t *p)
{
    vlm_picture_t  *next;

    for ( /* void */ ; p != NULL; p = next) {
        next = p->next;
        free_one(p);
    }
}
