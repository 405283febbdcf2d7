/* A tokenizer from lists of its tokens and merges, for files that have one among other things. */

#define _GNU_SOURCE                    /* qsort_r() */

#include <stdlib.h>
#include <string.h>

#include "text/fill.h"

#define MAX_TEXT  (4 * VLM_MAX_TOKEN_BYTES)        /* of the alphabet in which bytes are spelled */


static int
take(const vlm_token_list_t *l, int list, uint32_t i, char text[MAX_TEXT + 1], vlm_err_t *err)
{
    size_t       n;
    const char  *p;

    p = l->next(l->data, list, &n);

    if (n > MAX_TEXT || memchr(p, '\0', n) != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s %u has %zu bytes, expected at most %u without a zero",
                        list == 0 ? "token" : "merge", i, n, MAX_TEXT);
    }

    memcpy(text, p, n);
    text[n] = '\0';

    return 0;
}


/* Tokens that texts are made of, and after all of them those that have a name. */
static int
add_tokens(vlm_tokenizer_t *t, const vlm_token_list_t *l, int named, char *text, vlm_err_t *err)
{
    int                rc;
    uint32_t           i;
    vlm_token_kind_t   kind;

    l->rewind(l->data);

    for (i = 0; i < l->n_tokens; i++) {
        if (take(l, 0, i, text, err) != 0) {
            return -1;
        }

        kind = l->kind(l->data, i);
        rc = 0;

        if (kind == VLM_TOKEN_BYTES && !named) {
            rc = vlm_fill_token(t, text, i, err);
        } else if ((kind == VLM_TOKEN_ADDED || kind == VLM_TOKEN_SPECIAL) && named) {
            rc = vlm_fill_name(t, i, text, kind == VLM_TOKEN_SPECIAL, err);
        }

        if (rc != 0) {
            return -1;
        }
    }

    return 0;
}


static int
by_name(const void *a, const void *b, void *data)
{
    int           rc;
    size_t        n, m;
    const char   *x, *y;

    x = vlm_token_bytes(data, *(const uint32_t *) a, &n);
    y = vlm_token_bytes(data, *(const uint32_t *) b, &m);
    rc = memcmp(x, y, n < m ? n : m);

    return rc != 0 ? rc : (n > m) - (n < m);
}


/* A name is one token's: its ids are found by it. */
static int
check_names(vlm_tokenizer_t *t, vlm_err_t *err)
{
    size_t       n, bytes;
    uint32_t    *ids;
    const char  *name;

    if (t->n_added == 0) {
        return 0;
    }

    ids = malloc(t->n_added * sizeof(uint32_t));
    if (ids == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u added tokens", t->n_added);
    }

    memcpy(ids, t->added, t->n_added * sizeof(uint32_t));
    qsort_r(ids, t->n_added, sizeof(uint32_t), by_name, t);

    for (n = 1; n < t->n_added && by_name(&ids[n - 1], &ids[n], t) != 0; n++) { /* void */ }

    if (n < t->n_added) {
        name = vlm_token_bytes(t, ids[n], &bytes);
        (void) vlm_fail(err, VLM_EMODEL, "ids %u and %u are both the token \"%s\"",
                        ids[n - 1] < ids[n] ? ids[n - 1] : ids[n],
                        ids[n - 1] < ids[n] ? ids[n] : ids[n - 1],
                        vlm_printable_part(name, bytes));
        free(ids);
        return -1;
    }

    free(ids);

    return 0;
}


static int
fill(vlm_tokenizer_t *t, const vlm_token_list_t *l, char *text, vlm_err_t *err)
{
    uint32_t  i;

    if (vlm_vocab_open(&t->vocab, l->n_tokens, l->n_merges, err) != 0
        || add_tokens(t, l, 0, text, err) != 0 || vlm_fill_bytes(t, err) != 0)
    {
        return -1;
    }

    for (i = 0; i < l->n_merges; i++) {
        if (take(l, 1, i, text, err) != 0
            || vlm_fill_merge_line(t, text, strlen(text), i, err) != 0)
        {
            return -1;
        }
    }

    return add_tokens(t, l, 1, text, err) != 0 || check_names(t, err) != 0
           ? -1 : vlm_fill_check(t, err);
}


vlm_tokenizer_t *
vlm_tokenizer_list(const vlm_token_list_t *l, const char *pattern, vlm_err_t *err)
{
    int               rc;
    char             *text;
    vlm_err_t         inside = { VLM_OK, "" };
    vlm_tokenizer_t  *t;

    t = calloc(1, sizeof(*t));
    text = malloc(MAX_TEXT + 1);

    if (t == NULL || text == NULL) {
        free(t);
        free(text);
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for a tokenizer");
        return NULL;
    }

    t->nfc = l->nfc;
    t->whole = l->whole;
    t->split = vlm_split_open(pattern, &inside);
    rc = t->split == NULL ? -1 : fill(t, l, text, &inside);
    free(text);

    if (rc != 0) {
        (void) vlm_fail(err, inside.code, "%s: %s", l->name, inside.text);
        vlm_tokenizer_close(t);
        return NULL;
    }

    return t;
}
