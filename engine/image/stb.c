/*
 * stb_image and stb_image_write, compiled once.  The decoder has a purse: what it allocates is
 * counted, and beyond what the header lets expect there is no more.  So a PNG that unpacks to more
 * than its pixels ends here.
 *
 * stb_image leaves memory unset that a damaged JPEG does not paint, so that an answer could tell
 * of other people's pictures; hence calloc().  In damaged JPEGs it adds signed numbers beyond their
 * range and shifts by 32 and more; hence the makefile's flags, and no other harm comes of it.
 */

#include "image/stb.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "image/png.h"

static void *purse_alloc(size_t bytes);
static void *purse_realloc(void *p, size_t bytes);
static void purse_free(void *p);

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_MAX_DIMENSIONS    VLM_MAX_PICTURE_SIDE
#define STBI_MALLOC(n)         purse_alloc(n)
#define STBI_REALLOC(p, n)     purse_realloc(p, n)
#define STBI_FREE(p)           purse_free(p)

#define STBI_ASSERT(x)         ((void) 0)          /* a server does not abort */

#include <stb/stb_image.h>

#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#define STBI_WRITE_NO_STDIO
#define STBIW_ASSERT(x)        ((void) 0)

#include <stb/stb_image_write.h>

#define QUALITY  92                    /* above 90 the encoder leaves colours at full size */

typedef struct {
    uint8_t  *data;                    /* [bytes] of room; NULL with room 0: there was no memory */
    size_t    bytes, room;
} sink_t;

static __thread size_t  purse_most;    /* bytes that this thread's decoder may hold, */
static __thread size_t  purse_used;    /* and holds */
static __thread int     purse_empty;   /* 1: it was refused some */


static void *
purse_alloc(size_t bytes)
{
    void  *p;

    if (bytes > purse_most || purse_used > purse_most - bytes) {
        purse_empty = 1;
        return NULL;
    }

    p = calloc(1, bytes);
    purse_used += p == NULL ? 0 : malloc_usable_size(p);

    return p;
}


static void
purse_free(void *p)
{
    purse_used -= p == NULL ? 0 : malloc_usable_size(p);
    free(p);
}


/* Old and new are held together for a moment, and are counted so. */
static void *
purse_realloc(void *p, size_t bytes)
{
    void    *new;
    size_t   old;

    new = purse_alloc(bytes);

    if (new != NULL && p != NULL) {
        old = malloc_usable_size(p);
        memcpy(new, p, old < bytes ? old : bytes);
        purse_free(p);
    }

    return new;
}


static uint8_t *
decode(const vlm_header_t *h, const void *data, size_t bytes, vlm_err_t *err)
{
    int          width, height, channels;
    uint8_t     *p;
    const char  *name;

    purse_most = h->memory;
    purse_used = 0;
    purse_empty = 0;
    name = vlm_picture_kind_name(h->kind);

    p = stbi_load_from_memory(data, (int) bytes, &width, &height, &channels, h->alpha ? 4 : 3);

    if (p == NULL && purse_empty) {
        (void) vlm_fail(err, VLM_ELIMIT, "%s of %ux%u pixels needs more than %zu kB to decode",
                        name, h->width, h->height, purse_most >> 10);

    } else if (p == NULL) {
        (void) vlm_fail(err, VLM_EINPUT, "%s: damaged: %s", name, stbi_failure_reason());

    } else if ((uint32_t) width != h->width || (uint32_t) height != h->height) {
        (void) vlm_fail(err, VLM_EINPUT, "%s: its header says %ux%u, its pixels %dx%d", name,
                        h->width, h->height, width, height);
        free(p);
        p = NULL;
    }

    return p;
}


uint8_t *
vlm_stb_decode(const vlm_header_t *h, const void *data, size_t bytes, vlm_err_t *err)
{
    size_t    n_filled;
    uint8_t  *p, *filled;

    if (h->kind != VLM_PNG) {
        return decode(h, data, bytes, err);
    }

    if (vlm_png_fill_palette(data, bytes, &filled, &n_filled, err) != 0) {
        return NULL;
    }

    p = filled == NULL ? decode(h, data, bytes, err) : decode(h, filled, n_filled, err);
    free(filled);

    return p;
}


/* Called for every byte or few: only to grow does it do more than copy. */
static void
put(void *to, void *data, int n)
{
    sink_t   *s;
    uint8_t  *more;

    s = to;

    if ((size_t) n > s->room - s->bytes) {
        if (s->room == 0) {
            return;                                /* failed before */
        }

        more = realloc(s->data, s->room * 2 + (size_t) n);

        if (more == NULL) {
            free(s->data);
            memset(s, 0, sizeof(*s));
            return;
        }

        s->data = more;
        s->room = s->room * 2 + (size_t) n;
    }

    memcpy(s->data + s->bytes, data, (size_t) n);
    s->bytes += (size_t) n;
}


int
vlm_stb_jpeg(const uint8_t *rgb, uint32_t width, uint32_t height, void **jpeg, size_t *bytes,
             vlm_err_t *err)
{
    sink_t  s;

    s.bytes = 0;
    s.room = (size_t) width * height / 4 + 4096;   /* a photograph's usual share */
    s.data = malloc(s.room);

    if (s.data != NULL) {
        (void) stbi_write_jpg_to_func(put, &s, (int) width, (int) height, 3, rgb, QUALITY);
    }

    if (s.data == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to write a JPEG of %ux%u pixels", width,
                        height);
    }

    *jpeg = s.data;
    *bytes = s.bytes;

    return 0;
}
