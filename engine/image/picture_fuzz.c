/*
 * Fuzz target: any bytes become a picture or an error.  A picture keeps what picture.h promises;
 * an error has a code and a sentence in letters.  Pictures are kept small, so that many are tried.
 */

#include <stdlib.h>
#include <string.h>

#include "family/qwen2_5_vl/family.h"
#include "image/header.h"
#include "image/picture.h"

#define MAX_PIXELS  (1u << 18)

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


/* Every byte is read, so that a sanitizer sees the one that is not there. */
static void
check_picture(const vlm_picture_t *p, const vlm_vision_config_t *vc, uint64_t max_pixels)
{
    size_t    i;
    uint32_t  n, sum;
    uint8_t  *seen;

    check((uint64_t) p->info.resized_width * p->info.resized_height <= max_pixels);
    check(p->n_patches == p->grid_h * p->grid_w && p->info.tokens == p->n_cells);
    check(p->border[0] == 0 && p->border[p->n_segments] == p->n_patches);

    for (n = 0; n < p->n_segments; n++) {
        check(p->border[n] < p->border[n + 1]);
    }

    seen = calloc(p->n_cells, 1);

    for (n = 0; seen != NULL && n < p->n_cells; n++) {
        check(p->cell[n] < p->n_cells && !seen[p->cell[n]]);
        seen[p->cell[n]] = 1;
    }

    free(seen);
    sum = 0;

    for (i = 0; i < (size_t) p->n_patches * 3 * vc->patch * vc->patch; i++) {
        sum += p->pixels[i];
    }

    check(sum <= p->n_patches * 3 * vc->patch * vc->patch * 255);
}


/* The picture at its full size, and the JPEG of it. */
static void
check_full_size(const void *data, size_t bytes, const vlm_picture_info_t *info)
{
    void      *jpeg;
    size_t     n;
    uint8_t   *rgb;
    uint32_t   width, height;

    rgb = vlm_picture_decode(data, bytes, &width, &height, NULL, NULL);
    check(rgb != NULL && width == info->width && height == info->height);
    check(vlm_jpeg_encode(rgb, width, height, &jpeg, &n, NULL) == 0);
    free(rgb);

    rgb = vlm_picture_decode(jpeg, n, &width, &height, NULL, NULL);
    check(rgb != NULL && width == info->width && height == info->height);
    free(rgb);
    free(jpeg);
}


/* Clients read it: no byte of the file may be in it as it is. */
static void
check_sentence(const char *text)
{
    check(*text != '\0');

    for ( /* void */ ; *text != '\0'; text++) {
        check(*text >= ' ' && *text < 0x7f);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint64_t            max_pixels;
    vlm_err_t           err;
    vlm_header_t        h;
    vlm_picture_t      *p;
    vlm_picture_info_t  info;

    static const vlm_pixel_config_t   pc = {
        .min_pixels = 3136, .max_pixels = 12845056
    };
    static const vlm_vision_config_t  vc = {
        .channels = 3, .patch = 14, .temporal = 2, .merge = 2, .window = 4,
        .order = vlm_qwen2_5_vl_order
    };

    if (vlm_header_read(&h, data, bytes, NULL) == 0 && h.width * h.height > MAX_PIXELS) {
        return 0;
    }

    memset(&err, 0, sizeof(err));
    max_pixels = 784 + bytes % 32 * 784;
    p = vlm_picture_make(&pc, &vc, max_pixels, data, bytes, &err);
    check((p == NULL) == (err.code != VLM_OK));

    if (p == NULL) {
        check_sentence(err.text);

    } else {
        check(vlm_picture_check(data, bytes, &info, NULL) == 0);
        check(info.width == p->info.width && info.height == p->info.height);
        check_picture(p, &vc, max_pixels);

        if (bytes % 16 == 0) {
            check_full_size(data, bytes, &info);
        }
    }

    vlm_picture_free(p);

    return 0;
}
