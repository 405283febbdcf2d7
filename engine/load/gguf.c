/* The head of a GGUF file: see gguf.h.  Numbers are little endian, sizes have 64 bits. */

#include "load/gguf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define VERSION      3
#define ALIGNMENT    32
#define MAX_ALIGN    65536
#define MAX_KEYS     4096
#define MAX_TENSORS  65536
#define MAX_NAME     256               /* of a key, and of a tensor */
#define MAX_LIST     (1u << 24)        /* elements of an array */
#define N_DIMS       4

enum { U8, I8, U16, I16, U32, I32, F32, BOOL, TEXT, ARRAY, U64, I64, F64, N_TYPES };

static const uint8_t  type_bytes[N_TYPES] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

typedef struct {
    const uint8_t  *at, *end;
    const char     *path;
    vlm_err_t      *err;
} cursor_t;


static int
ends(const cursor_t *c)
{
    return vlm_fail(c->err, VLM_EMODEL, "%s: the file ends in its head: " VLM_DOWNLOAD, c->path);
}


static uint64_t
number_at(const uint8_t *p, uint32_t bytes)
{
    uint64_t  n;

    for (n = 0; bytes > 0; bytes--) {
        n = n << 8 | p[bytes - 1];
    }

    return n;
}


static int
take(cursor_t *c, uint32_t bytes, uint64_t *n)
{
    *n = 0;

    if ((uint64_t) (c->end - c->at) < bytes) {
        return ends(c);
    }

    *n = number_at(c->at, bytes);
    c->at += bytes;

    return 0;
}


static int
take_text(cursor_t *c, vlm_gguf_text_t *t)
{
    t->p = NULL;

    if (take(c, 8, &t->n) != 0) {
        return -1;
    }

    if (t->n > (uint64_t) (c->end - c->at)) {
        return ends(c);
    }

    t->p = (const char *) c->at;
    c->at += t->n;

    return 0;
}


/* Control characters are none of a name's; gguf_weights.c marks the parts of a tensor by one. */
static int
is_name(const vlm_gguf_text_t *t)
{
    uint64_t  i;

    for (i = 0; i < t->n; i++) {
        if ((unsigned char) t->p[i] < ' ') {
            return 0;
        }
    }

    return t->n > 0 && t->n <= MAX_NAME;
}


static int
take_name(cursor_t *c, const char *what, vlm_gguf_text_t *t)
{
    if (take_text(c, t) != 0) {
        return -1;
    }

    if (!is_name(t)) {
        return vlm_fail(c->err, VLM_EMODEL, "%s: a %s of %" PRIu64 " bytes, expected 1 to %u "
                        "without control characters", c->path, what, t->n, MAX_NAME);
    }

    return 0;
}


/* ---- keys ---------------------------------------------------------------- */

static int
take_elements(cursor_t *c, vlm_gguf_value_t *v)
{
    uint64_t         i;
    vlm_gguf_text_t  t;

    v->data = c->at;

    if (v->type != TEXT) {
        if (vlm_mul(v->n, type_bytes[v->type]) > (uint64_t) (c->end - c->at)) {
            return ends(c);
        }

        c->at += v->n * type_bytes[v->type];

        return 0;
    }

    for (i = 0; i < v->n; i++) {
        if (take_text(c, &t) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
take_value(cursor_t *c, vlm_gguf_value_t *v)
{
    uint64_t  type;

    if (take_name(c, "key", &v->key) != 0 || take(c, 4, &type) != 0) {
        return -1;
    }

    v->n = 1;
    v->array = type == ARRAY;

    if (v->array && (take(c, 4, &type) != 0 || take(c, 8, &v->n) != 0)) {
        return -1;
    }

    if (type >= N_TYPES || type == ARRAY || v->n > MAX_LIST) {
        return vlm_fail(c->err, VLM_EMODEL, "%s: %s has %" PRIu64 " values of type %" PRIu64
                        ", expected at most %u of types 0 to 12", c->path,
                        vlm_printable_part(v->key.p, v->key.n), v->n, type, MAX_LIST);
    }

    v->type = (uint32_t) type;

    return take_elements(c, v);
}


static int
by_key(const void *a, const void *b)
{
    int                      rc;
    const vlm_gguf_value_t  *x = a, *y = b;

    rc = memcmp(x->key.p, y->key.p, x->key.n < y->key.n ? x->key.n : y->key.n);

    return rc != 0 ? rc : (x->key.n > y->key.n) - (x->key.n < y->key.n);
}


static int
take_values(cursor_t *c, vlm_gguf_t *g, uint64_t n)
{
    uint32_t  i;

    g->value = calloc(n + 1, sizeof(*g->value));
    if (g->value == NULL) {
        return vlm_fail(c->err, VLM_EMEMORY, "%s: no memory for %" PRIu64 " keys", c->path, n);
    }

    for (i = 0; i < n; i++) {
        if (take_value(c, &g->value[i]) != 0) {
            return -1;
        }
    }

    g->n_values = (uint32_t) n;
    qsort(g->value, g->n_values, sizeof(*g->value), by_key);

    for (i = 1; i < g->n_values; i++) {
        if (by_key(&g->value[i - 1], &g->value[i]) == 0) {
            return vlm_fail(c->err, VLM_EMODEL, "%s: %s: twice", c->path,
                            vlm_printable_part(g->value[i].key.p, g->value[i].key.n));
        }
    }

    return 0;
}


/* ---- tensors ------------------------------------------------------------- */

/* Bytes of a tensor, whose rows have whole blocks. */
static int
set_bytes(cursor_t *c, vlm_tensor_t *t, uint64_t type)
{
    uint32_t  i;
    uint64_t  n;

    t->format = vlm_format_gguf((uint32_t) type, t->dtype);

    if (t->format == NULL) {
        return vlm_fail(c->err, VLM_EMODEL, "%s: %s has elements of type %s (%" PRIu64 "); F32, "
                        "F16, BF16, Q8_0, Q4_0 to Q5_1, Q2_K to Q6_K, IQ4_NL, IQ4_XS and MXFP4 "
                        "are supported", c->path,
                        vlm_printable(t->name), t->dtype, type);
    }

    for (n = 1, i = 0; i < t->n_dims; i++) {
        n = vlm_mul(n, t->dims[i]);
    }

    t->bytes = vlm_mul(n / t->format->block, t->format->bytes);

    if (t->dims[t->n_dims - 1] % t->format->block != 0 || t->bytes == UINT64_MAX) {
        return vlm_fail(c->err, VLM_EMODEL, "%s: %s has rows of %" PRIu64 " elements, which is no "
                        "multiple of %u, or too many", c->path, vlm_printable(t->name),
                        t->dims[t->n_dims - 1], t->format->block);
    }

    return 0;
}


static int
take_tensor(cursor_t *c, vlm_tensor_t *t, uint64_t *offset)
{
    uint32_t         i;
    uint64_t         n, type;
    vlm_gguf_text_t  name;

    if (take_name(c, "tensor's name", &name) != 0 || take(c, 4, &n) != 0) {
        return -1;
    }

    t->name = strndup(name.p, name.n);
    if (t->name == NULL) {
        return vlm_fail(c->err, VLM_EMEMORY, "%s: no memory for a name", c->path);
    }

    if (n < 1 || n > N_DIMS) {
        return vlm_fail(c->err, VLM_EMODEL, "%s: %s has %" PRIu64 " dimensions, expected 1 to %u",
                        c->path, vlm_printable(t->name), n, N_DIMS);
    }

    t->n_dims = (uint32_t) n;

    for (i = t->n_dims; i > 0; i--) {          /* the file has the innermost first */
        if (take(c, 8, &t->dims[i - 1]) != 0) {
            return -1;
        }
    }

    return take(c, 4, &type) != 0 || take(c, 8, offset) != 0 || set_bytes(c, t, type) != 0 ? -1 : 0;
}


static int
by_data(const void *a, const void *b)
{
    const vlm_tensor_t  *x = a, *y = b;

    return x->data != y->data ? (x->data < y->data ? -1 : 1)
                              : (x->bytes > y->bytes) - (x->bytes < y->bytes);
}


static int
by_name(const void *a, const void *b)
{
    return strcmp(((const vlm_tensor_t *) a)->name, ((const vlm_tensor_t *) b)->name);
}


static int
check_tensors(cursor_t *c, vlm_gguf_t *g)
{
    uint32_t       i;
    vlm_tensor_t  *t = g->tensor;

    qsort(t, g->n_tensors, sizeof(*t), by_name);

    for (i = 1; i < g->n_tensors; i++) {
        if (by_name(&t[i - 1], &t[i]) == 0) {
            return vlm_fail(c->err, VLM_EMODEL, "%s: %s: twice", c->path, vlm_printable(t[i].name));
        }
    }

    qsort(t, g->n_tensors, sizeof(*t), by_data);

    for (i = 1; i < g->n_tensors; i++) {
        if (t[i].data < t[i - 1].data + t[i - 1].bytes) {
            return vlm_fail(c->err, VLM_EMODEL, "%s: %s begins within another tensor", c->path,
                            vlm_printable(t[i].name));
        }
    }

    return 0;
}


/* Places of the tensors in the file, behind its head. */
static int
place_tensors(cursor_t *c, vlm_gguf_t *g, const uint8_t *file, const uint64_t *offset)
{
    double         align;
    uint32_t       i;
    uint64_t       begin, bytes, at;
    vlm_tensor_t  *t;

    if (vlm_gguf_number(vlm_gguf_find(g, "general.alignment"), 0, &align) != 0) {
        align = ALIGNMENT;
    }

    if (!(align >= 1 && align <= MAX_ALIGN) || align != (uint32_t) align
        || ((uint32_t) align & ((uint32_t) align - 1)) != 0)
    {
        return vlm_fail(c->err, VLM_EMODEL, "%s: general.alignment is %g, expected a power of two "
                        "up to %u", c->path, align, MAX_ALIGN);
    }

    begin = vlm_round((uint64_t) (c->at - file), (uint32_t) align);
    bytes = (uint64_t) (c->end - file);

    for (i = 0; i < g->n_tensors; i++) {
        t = &g->tensor[i];
        at = vlm_add(begin, offset[i]);

        if (offset[i] % (uint32_t) align != 0) {
            return vlm_fail(c->err, VLM_EMODEL, "%s: %s begins at %" PRIu64 ", which is no "
                            "multiple of %g", c->path, vlm_printable(t->name), offset[i], align);
        }

        if (vlm_add(at, t->bytes) > bytes) {
            return vlm_fail(c->err, VLM_EMODEL, "%s: the file has %" PRIu64 " bytes, and %s ends "
                            "at %" PRIu64 ": " VLM_DOWNLOAD, c->path, bytes, vlm_printable(t->name),
                            vlm_add(at, t->bytes));
        }

        t->data = file + at;
    }

    return check_tensors(c, g);
}


static int
take_tensors(cursor_t *c, vlm_gguf_t *g, const uint8_t *file, uint64_t n)
{
    int        rc;
    uint64_t  *offset;

    g->tensor = calloc(n + 1, sizeof(*g->tensor));
    offset = calloc(n + 1, sizeof(*offset));

    if (g->tensor == NULL || offset == NULL) {
        free(offset);
        return vlm_fail(c->err, VLM_EMEMORY, "%s: no memory for %" PRIu64 " tensors", c->path, n);
    }

    for (rc = 0; rc == 0 && g->n_tensors < n; g->n_tensors++) {
        rc = take_tensor(c, &g->tensor[g->n_tensors], &offset[g->n_tensors]);
    }

    rc = rc == 0 ? place_tensors(c, g, file, offset) : -1;
    free(offset);

    return rc;
}


static int
is_gguf(const uint8_t *file, uint64_t bytes)
{
    return bytes >= 4 && memcmp(file, VLM_GGUF_MAGIC, 4) == 0;
}


int
vlm_gguf_parse(vlm_gguf_t *g, const uint8_t *file, uint64_t bytes, const char *path,
               vlm_err_t *err)
{
    uint64_t  version, n_tensors, n_values;
    cursor_t  c = { file, file + bytes, path, err };

    g->path = path;

    if (!is_gguf(file, bytes)) {
        return vlm_fail(err, VLM_EMODEL, "%s: not a GGUF file", path);
    }

    c.at += 4;

    if (take(&c, 4, &version) != 0 || take(&c, 8, &n_tensors) != 0 || take(&c, 8, &n_values) != 0) {
        return -1;
    }

    if (version != VERSION) {
        return vlm_fail(err, VLM_EMODEL, "%s: GGUF of version %" PRIu64 ", only %u is supported: "
                        "convert the model again", path, version, VERSION);
    }

    if (n_tensors > MAX_TENSORS || n_values > MAX_KEYS) {
        return vlm_fail(err, VLM_EMODEL, "%s: %" PRIu64 " tensors and %" PRIu64 " keys, at most %u "
                        "and %u are supported", path, n_tensors, n_values, MAX_TENSORS, MAX_KEYS);
    }

    return take_values(&c, g, n_values) != 0 || take_tensors(&c, g, file, n_tensors) != 0 ? -1 : 0;
}


/* Maps a file that begins as a GGUF file. */
static int
map(vlm_file_t *f, const char *path, vlm_err_t *err)
{
    uint64_t  bytes;

    if (vlm_file_map(f, path, 0, 0) == 0) {
        if (is_gguf(f->data, f->bytes)) {
            return 0;
        }

        vlm_file_close(f);
    }

    if (vlm_file_open(f, path, 0, err) != 0) {     /* missing, or one of the common mistakes */
        return -1;
    }

    bytes = f->bytes;
    vlm_file_close(f);

    return bytes == 0
           ? vlm_fail(err, VLM_EMODEL, "%s: the file is empty: " VLM_DOWNLOAD, path)
           : vlm_fail(err, VLM_EMODEL, "%s: not a GGUF file, which begins with \"GGUF\"", path);
}


int
vlm_gguf_open(vlm_gguf_t *g, const char *path, vlm_err_t *err)
{
    memset(g, 0, sizeof(*g));

    return map(&g->file, path, err) != 0
           ? -1 : vlm_gguf_parse(g, g->file.data, g->file.bytes, path, err);
}


int
vlm_gguf_check(const char *path, vlm_err_t *err)
{
    int         rc;
    vlm_file_t  f;

    rc = map(&f, path, err);

    if (rc == 0) {
        vlm_file_close(&f);
    }

    return rc;
}


void
vlm_gguf_close(vlm_gguf_t *g)
{
    uint32_t  i;

    for (i = 0; g->tensor != NULL && (i < g->n_tensors || g->tensor[i].name != NULL); i++) {
        free((char *) g->tensor[i].name);
    }

    free(g->value);
    free(g->tensor);
    vlm_file_close(&g->file);
    memset(g, 0, sizeof(*g));
}


/* ---- values -------------------------------------------------------------- */

const vlm_gguf_value_t *
vlm_gguf_find(const vlm_gguf_t *g, const char *key)
{
    vlm_gguf_value_t  k = { .key = { key, strlen(key) } };

    return g->n_values == 0 ? NULL : bsearch(&k, g->value, g->n_values, sizeof(k), by_key);
}


int
vlm_gguf_number(const vlm_gguf_value_t *v, uint64_t i, double *out)
{
    float           f;
    double          d;
    uint64_t        n;
    const uint8_t  *p;

    if (v == NULL || i >= v->n || v->type == TEXT) {
        return -1;
    }

    p = v->data + i * type_bytes[v->type];
    n = number_at(p, type_bytes[v->type]);
    memcpy(&f, p, v->type == F32 ? sizeof(f) : 0);
    memcpy(&d, p, v->type == F64 ? sizeof(d) : 0);

    *out = v->type == F32 ? (double) f
           : v->type == F64 ? d
           : v->type == I8 ? (double) (int8_t) n
           : v->type == I16 ? (double) (int16_t) n
           : v->type == I32 ? (double) (int32_t) n
           : v->type == I64 ? (double) (int64_t) n : (double) n;

    return 0;
}


vlm_gguf_text_t
vlm_gguf_next(const uint8_t **at)
{
    vlm_gguf_text_t  t;

    t.n = number_at(*at, 8);
    t.p = (const char *) *at + 8;
    *at += 8 + t.n;

    return t;
}


vlm_gguf_text_t
vlm_gguf_text(const vlm_gguf_value_t *v)
{
    const uint8_t          *at;
    const vlm_gguf_text_t   none = { "", 0 };

    if (v == NULL || v->array || v->type != TEXT) {
        return none;
    }

    at = v->data;

    return vlm_gguf_next(&at);
}


int
vlm_gguf_is_texts(const vlm_gguf_value_t *v)
{
    return v != NULL && v->array && v->type == TEXT;
}


int
vlm_gguf_same(vlm_gguf_text_t t, const char *s)
{
    return t.n == strlen(s) && memcmp(t.p, s, t.n) == 0;
}
