/* Pictures, prompts and tokens, which a host makes of a request before it submits a job. */

#include "run/engine.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/sha256.h"
#include "base/size.h"

static uint64_t bound_pixels(const vlm_t *v, const vlm_pixels_t *pixels, vlm_pixel_config_t *c);
static void picture_key(const void *salt, size_t salt_bytes, uint64_t min, uint64_t max,
                        uint8_t key[32]);
static vlm_picture_t *make_picture(const vlm_t *v, const void *data, size_t bytes,
                                   const uint8_t sha256[32], const vlm_pixel_config_t *c,
                                   uint64_t max, const vlm_stop_t *stop, vlm_err_t *err);


int
vlm_takes_pictures(const vlm_t *v, vlm_err_t *err)
{
    return v->config.vision.depth > 0 ? 0
           : vlm_fail(err, VLM_EINPUT, "%s has no vision encoder: this model takes text alone",
                      v->config.family->title);
}


vlm_picture_t *
vlm_picture_read(const vlm_t *v, const void *data, size_t bytes, vlm_err_t *err)
{
    return vlm_picture_read_salted(v, data, bytes, NULL, 0, NULL, NULL, err);
}


vlm_picture_t *
vlm_picture_read_salted(const vlm_t *v, const void *data, size_t bytes, const void *salt,
                        size_t salt_bytes, const vlm_pixels_t *pixels, const vlm_stop_t *stop,
                        vlm_err_t *err)
{
    uint64_t            max;
    uint8_t             file[32], key[32];
    vlm_known_t        *known = (vlm_known_t *) &v->known;     /* as in vlm_stat() */
    vlm_picture_t      *p;
    vlm_pixel_config_t  c;

    if (vlm_takes_pictures(v, err) != 0) {
        return NULL;
    }

    max = bound_pixels(v, pixels, &c);
    vlm_sha256(data, bytes, file);
    picture_key(salt, salt_bytes, c.min_pixels, max, key);

    p = vlm_known_find(known, file, key);
    if (p == NULL) {
        p = make_picture(v, data, bytes, file, &c, max, stop, err);
        p = p == NULL ? NULL : vlm_known_add(known, p, key);
    }

    return p;
}


/* The bounds of a picture: sets the checkpoint's with a raised minimum, and returns the maximum. */
static uint64_t
bound_pixels(const vlm_t *v, const vlm_pixels_t *pixels, vlm_pixel_config_t *c)
{
    uint64_t  min, max;

    min = pixels != NULL && pixels->min != 0 ? pixels->min : v->conf.min_pixels;
    max = pixels != NULL && pixels->max != 0 ? pixels->max : v->conf.max_pixels;

    *c = v->config.pixel;
    c->min_pixels = c->min_pixels > min ? c->min_pixels : min;

    return max < v->conf.max_pixels ? max : v->conf.max_pixels;
}


/* Patches of one file are the same within a tenant and for the same bounds. */
static void
picture_key(const void *salt, size_t salt_bytes, uint64_t min, uint64_t max, uint8_t key[32])
{
    struct {
        uint8_t   salt[32];
        uint64_t  min, max;
    } whole = { .min = min, .max = max };

    vlm_salt_hash(salt, salt_bytes, whole.salt);
    vlm_sha256(&whole, sizeof(whole), key);
}


static vlm_picture_t *
make_picture(const vlm_t *v, const void *data, size_t bytes, const uint8_t sha256[32],
             const vlm_pixel_config_t *c, uint64_t max, const vlm_stop_t *stop, vlm_err_t *err)
{
    vlm_picture_t  *p;

    p = vlm_picture_make_hashed(c, &v->config.vision, max, data, bytes, sha256, stop, err);

    /* A side is never less than one cell, so an extreme aspect may end above the bound. */

    if (p != NULL && (uint64_t) p->info.resized_width * p->info.resized_height > max) {
        (void) vlm_fail(err, VLM_ELIMIT,
                        "a picture of %ux%u becomes %ux%u pixels, max_pixels is %" PRIu64,
                        p->info.width, p->info.height, p->info.resized_width,
                        p->info.resized_height, max);
        vlm_picture_free(p);
        return NULL;
    }

    return p;
}


vlm_prompt_t *
vlm_prompt_make(const vlm_t *v, const vlm_message_t *messages, size_t n, const char *tail,
                vlm_err_t *err)
{
    return vlm_template_apply(&v->template, messages, n, NULL, tail, err);
}


vlm_prompt_t *
vlm_prompt_tools(const vlm_t *v, const vlm_message_t *messages, size_t n, const char *tools,
                 const char *tail, vlm_err_t *err)
{
    return vlm_template_apply(&v->template, messages, n, tools, tail, err);
}


vlm_prompt_t *
vlm_prompt_raw(const vlm_t *v, const vlm_part_t *parts, size_t n, vlm_err_t *err)
{
    return vlm_template_raw(&v->template, parts, n, err);
}


int
vlm_picture_measure(const vlm_t *v, const void *data, size_t bytes, const vlm_pixels_t *pixels,
                    vlm_picture_info_t *info, vlm_err_t *err)
{
    uint64_t            max;
    vlm_pixel_config_t  c;

    if (vlm_takes_pictures(v, err) != 0) {
        return -1;
    }

    max = bound_pixels(v, pixels, &c);

    return vlm_picture_look(&c, &v->config.vision, max, data, bytes, info, err);
}


/*
 * NFC shortens a text to a third at most: three jamo of nine bytes become a syllable of three
 * bytes.
 */
uint64_t
vlm_tokens_least(const vlm_t *v, size_t bytes)
{
    return bytes / (3 * (vlm_token_max_bytes(v->tokenizer) + 1));
}


/*
 * For a text of one word, a byte takes 48 bytes for nodes and joins (bpe.c), 6 for NFC, 12 for
 * growing ids.
 */
uint64_t
vlm_tokenize_memory(size_t bytes)
{
    return vlm_mul(bytes, 48 + 6 + 12) + 4096;
}


int
vlm_tokenize(const vlm_t *v, const char *text, size_t bytes, uint32_t **ids, size_t *n,
             vlm_err_t *err)
{
    vlm_ids_t  list = { NULL, 0, 0 };

    if (vlm_encode(v->tokenizer, text, bytes, &list, err) != 0) {
        free(list.ids);
        return -1;
    }

    *ids = list.ids;
    *n = list.n;

    return 0;
}


const char *
vlm_piece(const vlm_t *v, uint32_t id, size_t *bytes)
{
    return vlm_token_bytes(v->tokenizer, id, bytes);
}
