/*
 * The frames of a video: their size by the family's processor, and their pictures, each of as many
 * frames as the vision encoder takes together.
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/sha256.h"
#include "image/patch.h"
#include "image/resize.h"
#include "run/engine.h"

typedef struct {
    const vlm_t         *v;
    const vlm_video_t   *video;
    vlm_picture_info_t   info;         /* of all pictures */
    uint8_t              key[32];      /* of their patches, beside the hash of the frames */
    const vlm_stop_t    *stop;
    vlm_err_t           *err;
} vlm_reel_t;


static int
check_numbers(uint32_t n, double fps, vlm_err_t *err)
{
    if (n < 1 || n > VLM_MAX_FRAMES) {
        return vlm_fail(err, VLM_EINPUT, "a video of %u frames, it may have 1 to %u", n,
                        VLM_MAX_FRAMES);
    }

    if (!(fps >= VLM_MIN_FPS && fps <= VLM_MAX_FPS)) {
        return vlm_fail(err, VLM_EINPUT, "a video of %g frames a second, it may have %g to %g", fps,
                        VLM_MIN_FPS, VLM_MAX_FPS);
    }

    return 0;
}


int
vlm_video_measure(const vlm_t *v, uint32_t n, double fps, const vlm_pixels_t *pixels,
                  vlm_picture_info_t *info, vlm_err_t *err)
{
    uint32_t                    cell;
    vlm_pixels_t                frame, video;
    const vlm_pixel_config_t   *pc = &v->config.video;
    const vlm_vision_config_t  *vc = &v->config.vision;

    if (vlm_takes_pictures(v, err) != 0 || check_numbers(n, fps, err) != 0) {
        return -1;
    }

    video.min = pc->min_pixels;
    video.max = pc->max_pixels;
    frame.min = pixels != NULL ? pixels->min : 0;
    frame.max = pixels != NULL && pixels->max != 0 ? pixels->max : v->conf.max_pixels;
    frame.max = frame.max < v->conf.max_pixels ? frame.max : v->conf.max_pixels;
    cell = vc->patch * vc->merge;

    if (vlm_video_resize(n, vc->temporal, pc->whole, &video, &frame, info->width, info->height,
                         cell, &info->resized_width, &info->resized_height, err) != 0)
    {
        return -1;
    }

    info->pictures = (n + vc->temporal - 1) / vc->temporal;
    info->tokens = info->pictures * (info->resized_width / cell) * (info->resized_height / cell);

    return 0;
}


/* The headers of all frames, which have one size; sets the info of each picture. */
static int
check_frames(vlm_reel_t *r, const vlm_pixels_t *pixels)
{
    uint32_t             i;
    vlm_picture_info_t   info;
    const vlm_bytes_t   *f = r->video->frame;

    if (vlm_takes_pictures(r->v, r->err) != 0
        || check_numbers(r->video->n, r->video->fps, r->err) != 0)
    {
        return -1;
    }

    for (i = 0; i < r->video->n; i++) {
        if (vlm_picture_check(f[i].data, f[i].bytes, &info, r->err) != 0) {
            return -1;
        }

        if (i == 0) {
            r->info = info;

        } else if (info.width != r->info.width || info.height != r->info.height) {
            return vlm_fail(r->err, VLM_EINPUT, "frame %u has %ux%u pixels, the first one %ux%u: "
                            "the frames of a video have one size", i + 1, info.width, info.height,
                            r->info.width, r->info.height);
        }
    }

    return vlm_video_measure(r->v, r->video->n, r->video->fps, pixels, &r->info, r->err);
}


/* Patches of the same frames are the same within a tenant and at one size. */
static void
set_key(vlm_reel_t *r, const void *salt, size_t salt_bytes)
{
    struct {
        uint8_t   salt[32];
        char      kind[8];             /* those of still pictures have no such word */
        uint64_t  width, height;
    } whole = { .kind = "frames", .width = r->info.resized_width,
                .height = r->info.resized_height };

    vlm_salt_hash(salt, salt_bytes, whole.salt);
    vlm_sha256(&whole, sizeof(whole), r->key);
}


/* The picture of the frames from the first one on; frames that are all the same are one slice. */
static vlm_picture_t *
read_picture(const vlm_reel_t *r, uint32_t first)
{
    uint8_t             file[VLM_MAX_TEMPORAL][32], sha256[32];
    uint32_t            i, n, last;
    vlm_known_t        *known = (vlm_known_t *) &r->v->known;      /* as in vlm_stat() */
    vlm_bytes_t         frame[VLM_MAX_TEMPORAL];
    vlm_picture_t      *p;
    vlm_picture_info_t  info;

    n = 1;
    last = r->video->n - 1;

    for (i = 0; i < r->v->config.vision.temporal; i++) {
        frame[i] = r->video->frame[first + i < last ? first + i : last];
        vlm_sha256(frame[i].data, frame[i].bytes, file[i]);

        if (memcmp(file[i], file[0], sizeof(file[0])) != 0) {
            n = r->v->config.vision.temporal;
        }
    }

    if (n == 1) {
        memcpy(sha256, file[0], sizeof(sha256));
    } else {
        vlm_sha256(file, n * sizeof(file[0]), sha256);
    }

    p = vlm_known_find(known, sha256, r->key);

    if (p == NULL) {
        info = r->info;
        info.memory = 0;
        p = vlm_picture_make_frames(&info, &r->v->config.vision, frame, n, sha256, r->stop, r->err);
        p = p == NULL ? NULL : vlm_known_add(known, p, r->key);
    }

    if (p != NULL) {
        p->first = first;
        p->last = first + i - 1 < last ? first + i - 1 : last;
        p->fps = r->video->fps;
    }

    return p;
}


vlm_picture_t *
vlm_video_read(const vlm_t *v, const vlm_video_t *video, const void *salt, size_t salt_bytes,
               const vlm_pixels_t *pixels, const vlm_stop_t *stop, vlm_err_t *err)
{
    uint32_t         first;
    vlm_reel_t       r = { .v = v, .video = video, .stop = stop, .err = err };
    vlm_picture_t   *all, **end;

    if (check_frames(&r, pixels) != 0) {
        return NULL;
    }

    set_key(&r, salt, salt_bytes);

    all = NULL;
    end = &all;

    for (first = 0; first < video->n; first += v->config.vision.temporal) {
        *end = read_picture(&r, first);

        if (*end == NULL) {
            vlm_picture_free(all);
            return NULL;
        }

        end = &(*end)->next;
    }

    return all;
}
