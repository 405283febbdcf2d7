/*
 * Reads tokenizer.json of an encoder of texts.  Every setting that is not understood is refused: if
 * it were ignored, vectors would be slightly wrong.
 */

#include "text/wordpiece_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

#define MAX_FILE  (64u << 20)          /* bytes of tokenizer.json */


static int
is_type(const vlm_json_t *j, const char *what, const char *type, vlm_err_t *err)
{
    const char  *have = vlm_json_text(vlm_json_get(j, "type"));

    if (have != NULL && strcmp(have, type) == 0) {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%s is of type \"%s\", only \"%s\" is supported", what,
                    vlm_printable(have == NULL ? "" : have), type);
}


static int
read_id(const vlm_json_t *j, const char *of, uint32_t vocab, uint32_t *id, vlm_err_t *err)
{
    int64_t  n;

    if (!vlm_json_is_number(j) || vlm_json_int(j, 0, (int64_t) vocab - 1, &n) != 0) {
        return vlm_fail(err, VLM_EMODEL, "the id of \"%s\" is not a whole number below %u",
                        vlm_printable(of), vocab);
    }

    *id = (uint32_t) n;

    return 0;
}


static int
read_vocab(vlm_wordpiece_t *t, const vlm_json_t *vocab, uint32_t most, vlm_err_t *err)
{
    uint32_t           id = 0;
    const char        *key;
    const vlm_json_t  *j;

    if (!vlm_json_is_object(vocab) || vlm_json_count(vocab) > most) {
        return vlm_fail(err, VLM_EMODEL, "model.vocab is not an object of at most %u tokens",
                        most);
    }

    if (vlm_vocab_open(&t->vocab, vlm_json_count(vocab), 0, err) != 0) {
        return -1;
    }

    for (j = vlm_json_first(vocab); j != NULL; j = vlm_json_next(j)) {
        key = vlm_json_key(j);

        if (read_id(j, key, most, &id, err) != 0
            || vlm_vocab_add(&t->vocab, id, key, strlen(key), VLM_TOKEN_BYTES, err) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static int
find_token(const vlm_wordpiece_t *t, const char *name, uint32_t *id, vlm_err_t *err)
{
    int64_t  found = name == NULL ? -1 : vlm_vocab_find(&t->vocab, name, strlen(name));

    if (found < 0) {
        return vlm_fail(err, VLM_EMODEL, "the vocabulary has no token \"%s\"",
                        vlm_printable(name == NULL ? "" : name));
    }

    *id = (uint32_t) found;

    return 0;
}


static int
read_model(vlm_wordpiece_t *t, const vlm_json_t *j, const vlm_subwords_t *pieces, uint32_t most,
           vlm_err_t *err)
{
    uint64_t     chars;
    const char  *prefix;

    if (is_type(j, "model", pieces->model, err) != 0
        || vlm_json_u64(vlm_json_get(j, "max_input_chars_per_word"), "model",
                        "max_input_chars_per_word", 1, VLM_PIECE_CHARS, &chars, err) != 0)
    {
        return -1;
    }

    t->max_chars = (uint32_t) chars;
    prefix = vlm_json_text(vlm_json_get(j, "continuing_subword_prefix"));

    if (prefix == NULL || strlen(prefix) > VLM_PIECE_PREFIX) {
        return vlm_fail(err, VLM_EMODEL, "model.continuing_subword_prefix is not a text of at most "
                        "%d bytes", VLM_PIECE_PREFIX);
    }

    t->n_prefix = strlen(prefix);
    memcpy(t->prefix, prefix, t->n_prefix + 1);

    if (read_vocab(t, vlm_json_get(j, "vocab"), most, err) != 0
        || find_token(t, pieces->begin, &t->begin, err) != 0
        || find_token(t, pieces->end, &t->end, err) != 0
        || find_token(t, vlm_json_text(vlm_json_get(j, "unk_token")), &t->unknown, err) != 0)
    {
        return -1;
    }

    return 0;
}


/* Without a word about accents they are taken off if letters become small. */
static int
read_normalizer(vlm_wordpiece_t *t, const vlm_json_t *j, const vlm_subwords_t *pieces,
                vlm_err_t *err)
{
    if (is_type(j, "normalizer", pieces->normalizer, err) != 0) {
        return -1;
    }

    t->clean = vlm_json_bool(vlm_json_get(j, "clean_text"), 1);
    t->ideographs = vlm_json_bool(vlm_json_get(j, "handle_chinese_chars"), 1);
    t->lower = vlm_json_bool(vlm_json_get(j, "lowercase"), 1);
    t->strip = vlm_json_bool(vlm_json_get(j, "strip_accents"), t->lower);

    return 0;
}


/* A control token that the vocabulary has under its name, and that a text may spell anywhere. */
static int
add_control(vlm_wordpiece_t *t, const vlm_json_t *j, uint32_t vocab, vlm_err_t *err)
{
    size_t       i;
    uint32_t     id = 0, same = 0;
    const char  *name = vlm_json_text(vlm_json_get(j, "content"));

    static const char *const  off[] = { "single_word", "lstrip", "rstrip", "normalized" };

    if (name == NULL || name[0] == '\0') {
        return vlm_fail(err, VLM_EMODEL, "one of added_tokens has no content");
    }

    for (i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (vlm_json_bool(vlm_json_get(j, off[i]), 0)) {
            return vlm_fail(err, VLM_EMODEL, "%s of the added token \"%s\" is on, which is not "
                            "supported", off[i], vlm_printable(name));
        }
    }

    if (read_id(vlm_json_get(j, "id"), name, vocab, &id, err) != 0
        || find_token(t, name, &same, err) != 0)
    {
        return -1;
    }

    if (id != same || t->n_control == VLM_PIECE_CONTROL) {
        return vlm_fail(err, VLM_EMODEL, "the added token \"%s\" has the id %u, but %u in the "
                        "vocabulary, or is past the %dth", vlm_printable(name), id, same,
                        VLM_PIECE_CONTROL);
    }

    t->control[t->n_control++] = id;
    t->starts[(uint8_t) name[0]] = 1;

    return 0;
}


static int
read_controls(vlm_wordpiece_t *t, const vlm_json_t *list, uint32_t vocab, vlm_err_t *err)
{
    const vlm_json_t  *j;

    if (!vlm_json_is_null(list) && !vlm_json_is_array(list)) {
        return vlm_fail(err, VLM_EMODEL, "added_tokens is not a list");
    }

    for (j = vlm_json_first(list); j != NULL; j = vlm_json_next(j)) {
        if (add_control(t, j, vocab, err) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
read_document(vlm_wordpiece_t *t, const vlm_json_t *j, const vlm_subwords_t *pieces, uint32_t vocab,
              vlm_err_t *err)
{
    if (read_normalizer(t, vlm_json_get(j, "normalizer"), pieces, err) != 0
        || is_type(vlm_json_get(j, "pre_tokenizer"), "pre_tokenizer", pieces->splitter, err) != 0
        || read_model(t, vlm_json_get(j, "model"), pieces, vocab, err) != 0)
    {
        return -1;
    }

    return read_controls(t, vlm_json_get(j, "added_tokens"), vocab, err);
}


vlm_wordpiece_t *
vlm_wordpiece_read(const void *json, size_t bytes, const char *name, const vlm_subwords_t *pieces,
                   uint32_t vocab, vlm_err_t *err)
{
    int               rc;
    vlm_err_t         inside = { VLM_OK, "" };
    vlm_json_t       *j;
    vlm_wordpiece_t  *t;

    j = vlm_json_named(json, bytes, name, err);
    if (j == NULL) {
        return NULL;
    }

    t = calloc(1, sizeof(*t));
    rc = t == NULL ? vlm_fail(&inside, VLM_EMEMORY, "no memory for a tokenizer")
                   : read_document(t, j, pieces, vocab, &inside);
    vlm_json_free(j);

    if (rc != 0) {
        (void) vlm_fail(err, inside.code, "%s: %s", name, inside.text);
        vlm_wordpiece_close(t);
        return NULL;
    }

    return t;
}


vlm_wordpiece_t *
vlm_wordpiece_open(const char *dir, const vlm_subwords_t *pieces, uint32_t vocab, vlm_err_t *err)
{
    char              path[4096];
    vlm_file_t        f = { 0 };
    vlm_wordpiece_t  *t;

    if (vlm_file_path(path, sizeof(path), dir, "tokenizer.json", err) != 0
        || vlm_file_open(&f, path, MAX_FILE, err) != 0)
    {
        return NULL;
    }

    t = vlm_wordpiece_read(f.data == NULL ? (const void *) "" : f.data, f.bytes, path, pieces,
                           vocab, err);
    vlm_file_close(&f);

    return t;
}


void
vlm_wordpiece_close(vlm_wordpiece_t *t)
{
    if (t != NULL) {
        vlm_vocab_close(&t->vocab);
        free(t);
    }
}
