/* Compiled grammars by the SHA-256 of their form. */

#include "grammar/forms.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

typedef struct {
    uint8_t         hash[32];
    vlm_grammar_t  *g;                 /* NULL: the entry is free */
    uint64_t        used;              /* when, by a count of uses */
} entry_t;

struct vlm_forms_s {
    pthread_mutex_t  mutex;            /* held for a look at all entries, not while one is made */
    uint64_t         limit, bytes, uses, found;
    entry_t          entry[VLM_FORMS];
};


vlm_forms_t *
vlm_forms_open(uint64_t bytes)
{
    vlm_forms_t  *k;

    k = calloc(1, sizeof(*k));

    if (k == NULL || pthread_mutex_init(&k->mutex, NULL) != 0) {
        free(k);
        return NULL;
    }

    k->limit = bytes;

    return k;
}


void
vlm_forms_close(vlm_forms_t *k)
{
    uint32_t  i;

    for (i = 0; k != NULL && i < VLM_FORMS; i++) {
        vlm_grammar_free(k->entry[i].g);
    }

    if (k != NULL) {
        (void) pthread_mutex_destroy(&k->mutex);
        free(k);
    }
}


static void
hash_bytes(vlm_sha256_t *s, char tag, const void *data, uint64_t bytes)
{
    vlm_sha256_add(s, &tag, 1);
    vlm_sha256_add(s, &bytes, sizeof(bytes));
    vlm_sha256_add(s, data, bytes);
}


/* The order of keys counts, since answers have it.  Documents have a bounded depth. */
static void
hash_value(vlm_sha256_t *s, const vlm_json_t *j)
{
    double             x;
    int64_t            n;
    const char        *text;
    const vlm_json_t  *m;
    const int          object = vlm_json_is_object(j);

    if (object || vlm_json_is_array(j)) {
        hash_bytes(s, object ? '{' : '[', "", 0);

        for (m = vlm_json_first(j); m != NULL; m = vlm_json_next(m)) {
            if (object) {
                hash_bytes(s, 'k', vlm_json_key(m), strlen(vlm_json_key(m)));
            }

            hash_value(s, m);
        }

        hash_bytes(s, ']', "", 0);

    } else if (vlm_json_is_string(j)) {
        text = vlm_json_text(j);
        hash_bytes(s, 's', text, strlen(text));

    } else if (vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        hash_bytes(s, 'i', &n, sizeof(n));

    } else if (vlm_json_digits(j) != NULL) {
        text = vlm_json_digits(j);
        hash_bytes(s, 'I', text, strlen(text));

    } else if (vlm_json_is_number(j)) {
        x = vlm_json_number(j, 0);
        hash_bytes(s, 'd', &x, sizeof(x));

    } else {
        hash_bytes(s, vlm_json_is_bool(j) ? vlm_json_bool(j, 0) ? 't' : 'f' : 'n', "", 0);
    }
}


static vlm_grammar_t *
find(vlm_forms_t *k, const uint8_t *hash)
{
    uint32_t        i;
    vlm_grammar_t  *g;

    (void) pthread_mutex_lock(&k->mutex);

    for (g = NULL, i = 0; g == NULL && i < VLM_FORMS; i++) {
        if (k->entry[i].g != NULL && memcmp(k->entry[i].hash, hash, 32) == 0) {
            g = vlm_grammar_share(k->entry[i].g);
            k->entry[i].used = ++k->uses;
            k->found++;
        }
    }

    (void) pthread_mutex_unlock(&k->mutex);

    return g;
}


/* The entry to be used next: a free one, or that which was used longest ago. */
static entry_t *
oldest(vlm_forms_t *k)
{
    entry_t   *e;
    uint32_t   i;

    for (e = &k->entry[0], i = 1; i < VLM_FORMS && e->g != NULL; i++) {
        if (k->entry[i].g == NULL || k->entry[i].used < e->used) {
            e = &k->entry[i];
        }
    }

    return e;
}


/* Frees entries that are in use until so many bytes fit. */
static void
make_room(vlm_forms_t *k, uint64_t bytes)
{
    entry_t   *e;
    uint32_t   i;

    while (k->bytes > k->limit - bytes) {
        for (e = NULL, i = 0; i < VLM_FORMS; i++) {
            if (k->entry[i].g != NULL && (e == NULL || k->entry[i].used < e->used)) {
                e = &k->entry[i];
            }
        }

        k->bytes -= e->g->bytes;
        vlm_grammar_free(e->g);
        e->g = NULL;
    }
}


static void
keep(vlm_forms_t *k, const uint8_t *hash, vlm_grammar_t *g)
{
    entry_t   *e;
    uint32_t   i;

    if (g->bytes > k->limit) {
        return;
    }

    (void) pthread_mutex_lock(&k->mutex);

    /* Another thread may have made the same meanwhile. */

    for (i = 0; i < VLM_FORMS; i++) {
        if (k->entry[i].g != NULL && memcmp(k->entry[i].hash, hash, 32) == 0) {
            break;
        }
    }

    if (i == VLM_FORMS) {
        make_room(k, g->bytes);
        e = oldest(k);

        if (e->g != NULL) {
            k->bytes -= e->g->bytes;
            vlm_grammar_free(e->g);
        }

        e->g = vlm_grammar_share(g);
        e->used = ++k->uses;
        memcpy(e->hash, hash, 32);
        k->bytes += g->bytes;
    }

    (void) pthread_mutex_unlock(&k->mutex);
}


static vlm_grammar_t *
make(const vlm_tokens_t *pieces, const vlm_json_t *form, vlm_form_t kind, vlm_err_t *err)
{
    const char  *text;

    if (kind == VLM_FORM_CHOICE) {
        return vlm_choice_make(pieces, form, err);
    }

    if (kind == VLM_FORM_SCHEMA) {
        return vlm_schema_make(pieces, form, err);
    }

    if (kind == VLM_FORM_TOOLS) {
        return vlm_tools_make(pieces, form, err);
    }

    text = vlm_json_text(form);

    if (text == NULL) {
        (void) vlm_fail(err, VLM_EINPUT, "the %s is not a string",
                        kind == VLM_FORM_GBNF ? "grammar" : "expression");
        return NULL;
    }

    return kind == VLM_FORM_GBNF ? vlm_gbnf_make(pieces, text, err)
                                 : vlm_regex_make(pieces, text, err);
}


vlm_grammar_t *
vlm_forms_get(vlm_forms_t *k, const vlm_tokens_t *pieces, const vlm_json_t *form, vlm_form_t kind,
             vlm_err_t *err)
{
    uint8_t         hash[32];
    vlm_sha256_t    s;
    vlm_grammar_t  *g;

    vlm_sha256_start(&s);
    hash_bytes(&s, (char) ('0' + (int) kind), "", 0);
    hash_value(&s, form);
    vlm_sha256_end(&s, hash);
    g = find(k, hash);

    if (g == NULL) {
        g = make(pieces, form, kind, err);

        if (g != NULL) {
            keep(k, hash, g);
        }
    }

    return g;
}


uint64_t
vlm_forms_bytes(vlm_forms_t *k, uint64_t *found)
{
    uint64_t  bytes;

    (void) pthread_mutex_lock(&k->mutex);
    bytes = k->bytes;
    *found = k->found;
    (void) pthread_mutex_unlock(&k->mutex);

    return bytes;
}
