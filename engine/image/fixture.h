/*
 * Helpers shared by the tests of this folder: t/fixtures/image and the bytes that it was made from.
 */

#ifndef VLM_IMAGE_FIXTURE_H
#define VLM_IMAGE_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/sha256.h"
#include "family/qwen2_5_vl/family.h"
#include "image/picture.h"

#define FIXTURES  "t/fixtures/image"

static const vlm_pixel_config_t   fixture_pixels = {
    .min_pixels = 3136, .max_pixels = 12845056
};
static const vlm_vision_config_t  fixture_vision = {
    .channels = 3, .patch = 14, .temporal = 2, .merge = 2, .window = 4,
    .order = vlm_qwen2_5_vl_order
};


/* u8 [height][width][3]; the same as noise() in make.py. */
static inline uint8_t *
fixture_noise(uint32_t width, uint32_t height, uint32_t seed)
{
    size_t    i, n;
    uint8_t  *p;
    uint32_t  v;

    n = (size_t) width * height * 3;
    p = malloc(n);

    for (i = 0; p != NULL && i < n; i++) {
        v = (uint32_t) i * 2654435761u + seed * 40503u;
        v ^= v >> 15;
        v *= 2246822519u;
        v ^= v >> 13;
        p[i] = (uint8_t) (v >> 16);

        if (seed % 2 != 0) {
            p[i] = p[i] < 128 ? 0 : 255;
        }
    }

    return p;
}


static inline const char *
fixture_sha(const void *data, size_t bytes)
{
    int          i;
    uint8_t      sum[32];
    static char  text[65];

    vlm_sha256(data, bytes, sum);

    for (i = 0; i < 32; i++) {
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    }

    return text;
}


/* files/name in a block of exactly its length, so that a sanitizer sees a byte read beyond. */
static inline uint8_t *
fixture_file(const char *name, size_t *bytes)
{
    char        path[256];
    uint8_t    *p;
    vlm_file_t  f;

    *bytes = 0;
    snprintf(path, sizeof(path), FIXTURES "/files/%s", name);

    if (vlm_file_open(&f, path, 0, NULL) != 0) {
        fprintf(stderr, "%s: not readable; tests are run from the repository's root\n", path);
        return NULL;
    }

    *bytes = (size_t) f.bytes;
    p = malloc(*bytes);

    if (p != NULL) {
        memcpy(p, f.data, *bytes);
    }

    vlm_file_close(&f);

    return p;
}

#endif
