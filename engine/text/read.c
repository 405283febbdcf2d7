/*
 * Reads files into a tokenizer: the places of its parts in the two forms, and the kinds that are
 * refused.
 *
 * Every list is walked once from its first member to its last: lookups by name in a list of 150,000
 * would take time in the square of that.  Errors inside are without the file's name; the two public
 * functions put it before them.
 */

#include "text/read.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "text/fill.h"

/* The pattern of the reference's ByteLevel if none is given. */
#define BYTE_LEVEL_PATTERN                                                                         \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

#define MAX_ID_DIGITS  8               /* VLM_MAX_ID has 8 */


static int
add_vocab(vlm_tokenizer_t *t, const vlm_json_t *vocab, uint64_t n_merges, vlm_err_t *err)
{
    const vlm_json_t  *j;

    if (!vlm_json_is_object(vocab)) {
        return vlm_fail(err, VLM_EMODEL, "the vocabulary is not an object of tokens and ids");
    }

    if (vlm_vocab_open(&t->vocab, vlm_json_count(vocab), n_merges, err) != 0) {
        return -1;
    }

    for (j = vlm_json_first(vocab); j != NULL; j = vlm_json_next(j)) {
        if (vlm_fill_token(t, vlm_json_key(j), vlm_json_number(j, -1), err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* A merge of tokenizer.json: "left right", or ["left", "right"] since 2024. */
static int
add_merge_json(vlm_tokenizer_t *t, const vlm_json_t *j, uint32_t rank, vlm_err_t *err)
{
    const char        *text, *left, *right;
    const vlm_json_t  *second;

    text = vlm_json_text(j);
    if (text != NULL) {
        return vlm_fill_merge_line(t, text, strlen(text), rank, err);
    }

    left = vlm_json_text(vlm_json_first(j));
    second = vlm_json_next(vlm_json_first(j));
    right = vlm_json_text(second);

    if (left == NULL || right == NULL || vlm_json_next(second) != NULL) {
        return vlm_fail(err, VLM_EMODEL, "merge %u is neither text nor a pair of texts", rank);
    }

    return vlm_fill_merge(t, left, strlen(left), right, strlen(right), rank, err);
}


static int
add_merges_json(vlm_tokenizer_t *t, const vlm_json_t *merges, vlm_err_t *err)
{
    uint32_t           rank;
    const vlm_json_t  *j;

    if (!vlm_json_is_array(merges)) {
        return vlm_fail(err, VLM_EMODEL, "model.merges is not a list");
    }

    rank = 0;

    for (j = vlm_json_first(merges); j != NULL; j = vlm_json_next(j)) {
        if (add_merge_json(t, j, rank++, err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The next line of a text, without its end; 0: there is none.  *at moves behind it. */
static int
next_line(const vlm_source_t *s, size_t *at, const char **line, size_t *n)
{
    const char  *end;

    if (*at >= s->bytes) {
        return 0;
    }

    *line = (const char *) s->data + *at;
    end = memchr(*line, '\n', s->bytes - *at);
    *n = end == NULL ? s->bytes - *at : (size_t) (end - *line);
    *at += *n + 1;

    if (*n != 0 && (*line)[*n - 1] == '\r') {
        *n -= 1;
    }

    return 1;
}


static int
add_merges_text(vlm_tokenizer_t *t, const vlm_source_t *s, vlm_err_t *err)
{
    size_t       at, n;
    uint32_t     rank;
    const char  *line;

    at = 0;
    rank = 0;

    while (next_line(s, &at, &line, &n)) {
        if (n == 0 || (n >= 8 && memcmp(line, "#version", 8) == 0)) {
            continue;
        }

        if (vlm_fill_merge_line(t, line, n, rank++, err) != 0) {
            return -1;
        }
    }

    return 0;
}


static uint64_t
count_lines(const vlm_source_t *s)
{
    size_t       at, n;
    uint64_t     lines;
    const char  *line;

    at = 0;

    for (lines = 0; next_line(s, &at, &line, &n); lines++) { /* void */ }

    return lines;
}


/* tokenizer.json: [{"id": 151644, "content": "<|im_start|>", "special": true}, ...] */
static int
add_names_json(vlm_tokenizer_t *t, const vlm_json_t *list, vlm_err_t *err)
{
    const vlm_json_t  *j;

    if (!vlm_json_is_null(list) && !vlm_json_is_array(list)) {
        return vlm_fail(err, VLM_EMODEL, "added_tokens is not a list");
    }

    for (j = vlm_json_first(list); j != NULL; j = vlm_json_next(j)) {
        if (vlm_fill_name(t, vlm_json_number(vlm_json_get(j, "id"), -1),
                          vlm_json_text(vlm_json_get(j, "content")),
                          vlm_json_bool(vlm_json_get(j, "special"), 0), err) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* tokenizer_config.json: {"151644": {"content": "<|im_start|>", "special": true}, ...} */
static int
add_names_config(vlm_tokenizer_t *t, const vlm_json_t *object, vlm_err_t *err)
{
    size_t             n;
    double             id;
    const char        *key;
    const vlm_json_t  *j;

    if (!vlm_json_is_null(object) && !vlm_json_is_object(object)) {
        return vlm_fail(err, VLM_EMODEL, "added_tokens_decoder is not an object");
    }

    for (j = vlm_json_first(object); j != NULL; j = vlm_json_next(j)) {
        key = vlm_json_key(j);
        id = 0;

        for (n = 0; n < MAX_ID_DIGITS && isdigit((unsigned char) key[n]); n++) {
            id = id * 10 + (key[n] - '0');
        }

        if (n == 0 || key[n] != '\0') {
            id = -1;
        }

        if (vlm_fill_name(t, id, vlm_json_text(vlm_json_get(j, "content")),
                          vlm_json_bool(vlm_json_get(j, "special"), 0), err) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* A member that must be absent, null, false, 0 or "": other values change the ids of a text. */
static int
expect_off(const vlm_json_t *object, const char *key, vlm_err_t *err)
{
    const char        *text;
    const vlm_json_t  *j;

    j = vlm_json_get(object, key);
    text = vlm_json_text(j);

    if (vlm_json_is_null(j) || (text != NULL && text[0] == '\0') || vlm_json_bool(j, 1) == 0
        || vlm_json_number(j, 1) == 0)
    {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%s is on, which is not supported", key);
}


static int
expect_type(const vlm_json_t *object, const char *what, const char *type, vlm_err_t *err)
{
    const char  *have;

    have = vlm_json_text(vlm_json_get(object, "type"));

    if (have != NULL && strcmp(have, type) == 0) {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "the %s is of type \"%s\", only \"%s\" is supported", what,
                    vlm_printable(have), type);
}


/* The members of a Sequence, or the single object itself. */
static const vlm_json_t *
sequence(const vlm_json_t *j, const char *key, int *is_list)
{
    const char  *type;

    type = vlm_json_text(vlm_json_get(j, "type"));
    *is_list = type != NULL && strcmp(type, "Sequence") == 0;

    return *is_list ? vlm_json_first(vlm_json_get(j, key)) : j;
}


static int
read_normalizer(vlm_tokenizer_t *t, const vlm_json_t *j, vlm_err_t *err)
{
    int  is_list;

    if (vlm_json_is_null(j)) {
        return 0;
    }

    for (j = sequence(j, "normalizers", &is_list); j != NULL; j = is_list ? vlm_json_next(j) : NULL)
    {
        if (expect_type(j, "normalizer", "NFC", err) != 0) {
            return -1;
        }

        t->nfc = 1;
    }

    return 0;
}


/* {"type": "Split", "pattern": {"Regex": "..."}, "behavior": "Isolated", "invert": false} */
static const char *
split_pattern(const vlm_json_t *j, vlm_err_t *err)
{
    const char  *pattern, *behavior;

    if (expect_type(j, "pre_tokenizer", "Split", err) != 0 || expect_off(j, "invert", err) != 0) {
        return NULL;
    }

    pattern = vlm_json_text(vlm_json_get(vlm_json_get(j, "pattern"), "Regex"));
    behavior = vlm_json_text(vlm_json_get(j, "behavior"));

    if (pattern == NULL || behavior == NULL || strcmp(behavior, "Isolated") != 0) {
        (void) vlm_fail(err, VLM_EMODEL, "the pre_tokenizer's Split is not a Regex that is "
                        "Isolated");
        return NULL;
    }

    return pattern;
}


/*
 * The one pattern of the pre_tokenizer: a Split's before a ByteLevel that only maps bytes, or
 * ByteLevel's own, with or without a Digits before it.
 */
static int
read_pattern(const vlm_json_t *j, const char *otherwise, const char **pattern, vlm_err_t *err)
{
    int          is_list, mapped, digits;
    const char  *type;

    *pattern = NULL;
    mapped = digits = 0;

    if (vlm_json_is_null(j)) {
        *pattern = otherwise;
        return 0;
    }

    for (j = sequence(j, "pretokenizers", &is_list); j != NULL;
         j = is_list ? vlm_json_next(j) : NULL)
    {
        type = vlm_json_text(vlm_json_get(j, "type"));

        if (type != NULL && strcmp(type, "Digits") == 0 && !mapped && *pattern == NULL
            && vlm_json_bool(vlm_json_get(j, "individual_digits"), 0))
        {
            digits = 1;
            continue;
        }

        if (mapped || type == NULL || strcmp(type, "ByteLevel") != 0) {
            if (mapped || digits || *pattern != NULL) {
                return vlm_fail(err, VLM_EMODEL, "the pre_tokenizer is not one Split and one "
                                "ByteLevel");
            }

            *pattern = split_pattern(j, err);
            if (*pattern == NULL) {
                return -1;
            }

            continue;
        }

        if (expect_off(j, "add_prefix_space", err) != 0) {
            return -1;
        }

        mapped = 1;

        if (vlm_json_bool(vlm_json_get(j, "use_regex"), 1)) {
            if (*pattern != NULL) {
                return vlm_fail(err, VLM_EMODEL, "the pre_tokenizer's ByteLevel splits again "
                                "(use_regex)");
            }

            *pattern = digits ? VLM_DIGITS_PATTERN : BYTE_LEVEL_PATTERN;
        }
    }

    if (!mapped || *pattern == NULL) {
        return vlm_fail(err, VLM_EMODEL, "the pre_tokenizer has no %s",
                        mapped ? "Split" : "ByteLevel");
    }

    return 0;
}


static int
read_split(vlm_tokenizer_t *t, const char *pattern, vlm_err_t *err)
{
    t->split = vlm_split_open(pattern, err);

    return t->split == NULL ? -1 : 0;
}


/* Reads the model: its type, options that must be off, vocabulary and merges. */
static int
read_model(vlm_tokenizer_t *t, const vlm_json_t *model, vlm_err_t *err)
{
    size_t             i;
    const vlm_json_t  *merges;

    static const char *const  off[] = {
        "dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback", "unk_token"
    };

    if (!vlm_json_is_null(vlm_json_get(model, "type"))     /* files of 2020 have none */
        && expect_type(model, "model", "BPE", err) != 0)
    {
        return -1;
    }

    for (i = 0; i < sizeof(off) / sizeof(off[0]); i++) {
        if (expect_off(model, off[i], err) != 0) {
            return -1;
        }
    }

    t->whole = vlm_json_bool(vlm_json_get(model, "ignore_merges"), 0);
    merges = vlm_json_get(model, "merges");

    if (add_vocab(t, vlm_json_get(model, "vocab"), vlm_json_count(merges), err) != 0
        || add_merges_json(t, merges, err) != 0)
    {
        return -1;
    }

    return vlm_fill_bytes(t, err);
}


static int
read_document(vlm_tokenizer_t *t, const vlm_json_t *j, const char *otherwise, vlm_err_t *err)
{
    const char        *pattern;
    const vlm_json_t  *decoder;

    decoder = vlm_json_get(j, "decoder");

    if (!vlm_json_is_null(decoder) && expect_type(decoder, "decoder", "ByteLevel", err) != 0) {
        return -1;
    }

    if (read_normalizer(t, vlm_json_get(j, "normalizer"), err) != 0
        || read_pattern(vlm_json_get(j, "pre_tokenizer"), otherwise, &pattern, err) != 0
        || read_split(t, pattern, err) != 0
        || read_model(t, vlm_json_get(j, "model"), err) != 0
        || add_names_json(t, vlm_json_get(j, "added_tokens"), err) != 0)
    {
        return -1;
    }

    return vlm_fill_check(t, err);
}


/* Adds the file's name to an error; always -1. */
static int
fail_in(const vlm_source_t *s, const vlm_err_t *inside, vlm_err_t *err)
{
    return vlm_fail(err, inside->code, "%s: %s", s->name, inside->text);
}


static vlm_tokenizer_t *
new_tokenizer(vlm_err_t *err)
{
    vlm_tokenizer_t  *t;

    t = calloc(1, sizeof(*t));
    if (t == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for a tokenizer");
    }

    return t;
}


vlm_tokenizer_t *
vlm_read_json(const vlm_source_t *json, const char *pattern, vlm_err_t *err)
{
    vlm_err_t         inside = { 0 };
    vlm_json_t       *j;
    vlm_tokenizer_t  *t;

    j = vlm_json_named(json->data, json->bytes, json->name, err);
    if (j == NULL) {
        return NULL;
    }

    t = new_tokenizer(err);

    if (t != NULL && read_document(t, j, pattern, &inside) != 0) {
        (void) fail_in(json, &inside, err);
        vlm_tokenizer_close(t);
        t = NULL;
    }

    vlm_json_free(j);

    return t;
}


static int
read_plain_vocab(vlm_tokenizer_t *t, const vlm_source_t *s, uint64_t n_merges, vlm_err_t *err)
{
    int          rc;
    vlm_err_t    inside = { 0 };
    vlm_json_t  *j;

    j = vlm_json_named(s->data, s->bytes, s->name, err);
    if (j == NULL) {
        return -1;
    }

    rc = add_vocab(t, j, n_merges, &inside);
    if (rc == 0) {
        rc = vlm_fill_bytes(t, &inside);
    }

    vlm_json_free(j);

    return rc == 0 ? 0 : fail_in(s, &inside, err);
}


static int
read_plain_config(vlm_tokenizer_t *t, const vlm_source_t *s, vlm_err_t *err)
{
    int          rc;
    vlm_err_t    inside = { 0 };
    vlm_json_t  *j;

    j = vlm_json_named(s->data, s->bytes, s->name, err);
    if (j == NULL) {
        return -1;
    }

    rc = add_names_config(t, vlm_json_get(j, "added_tokens_decoder"), &inside);
    if (rc == 0) {
        rc = vlm_fill_check(t, &inside);
    }

    vlm_json_free(j);

    return rc == 0 ? 0 : fail_in(s, &inside, err);
}


vlm_tokenizer_t *
vlm_read_plain(const vlm_source_t *vocab, const vlm_source_t *merges, const vlm_source_t *config,
               const char *pattern, vlm_err_t *err)
{
    vlm_err_t         inside = { 0 };
    vlm_tokenizer_t  *t;

    t = new_tokenizer(err);
    if (t == NULL) {
        return NULL;
    }

    t->nfc = 1;

    if (read_split(t, pattern, err) != 0
        || read_plain_vocab(t, vocab, count_lines(merges), err) != 0)
    {
        goto failed;
    }

    if (add_merges_text(t, merges, &inside) != 0) {
        (void) fail_in(merges, &inside, err);
        goto failed;
    }

    if (config != NULL && read_plain_config(t, config, err) != 0) {
        goto failed;
    }

    return t;

failed:

    vlm_tokenizer_close(t);

    return NULL;
}
