/*
 * The header of a .safetensors file: 8 bytes of length, a JSON object, then the tensors' bytes.
 *
 * The format's own rules are kept strictly: sorted by their offsets, the tensors cover the data
 * from its first byte to its last without gap or overlap.  So a truncated download, a header of
 * another file and a hostile one are refused before any tensor is read.
 */

#include "load/safetensors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/size.h"

#define MAX_HEADER  (16u << 20)        /* room for 100,000 tensors; the 72B has 1,296 */
#define MAX_NAME    256
#define MAX_OFFSET  (UINT64_C(1) << 53)        /* the largest exact integer of a JSON number */

typedef struct {
    vlm_tensor_t  t;
    uint64_t      begin, end;          /* in the data */
} entry_t;

typedef struct {
    const char     *path;
    const uint8_t  *data;              /* behind the header, or NULL */
    uint64_t        head, bytes;       /* of the header with its length; of the data */
    char            name[VLM_PRINTABLE];   /* of the tensor at hand, for messages */
    entry_t        *entries;           /* [n] */
    uint32_t        n;
    vlm_err_t      *err;
} parser_t;

/* Types that files may have and that are not read, in bits; for the others see format/. */
static const struct {
    const char  *name;
    uint32_t     bits;
} types[] = {
    { "F64", 64 },
    { "I64", 64 },
    { "I32", 32 },
    { "I16", 16 },
    { "I8", 8 },
    { "U64", 64 },
    { "U32", 32 },
    { "U16", 16 },
    { "U8", 8 },
    { "BOOL", 8 },
    { "F8_E4M3", 8 },
    { "F8_E5M2", 8 },
    { "F8_E8M0", 8 },
    { "C64", 64 },
    { NULL, 0 }
};


static uint64_t
read_u64(const uint8_t *p)
{
    int       i;
    uint64_t  n;

    for (n = 0, i = 7; i >= 0; i--) {
        n = n << 8 | p[i];
    }

    return n;
}


/* The type's size in bits, or 0. */
static uint32_t
read_type(vlm_tensor_t *t, const vlm_json_t *j)
{
    int          i;
    const char  *s;

    s = vlm_json_text(j);
    if (s == NULL) {
        return 0;
    }

    t->format = vlm_format_spelt(s);

    if (t->format != NULL) {
        strcpy(t->dtype, t->format->spelt);
        return t->format->bits;
    }

    for (i = 0; types[i].name != NULL; i++) {
        if (strcmp(s, types[i].name) == 0) {
            strcpy(t->dtype, types[i].name);
            return types[i].bits;
        }
    }

    return 0;
}


static int
read_shape(parser_t *p, vlm_tensor_t *t, const vlm_json_t *j)
{
    const vlm_json_t  *e;

    if (!vlm_json_is_array(j) || vlm_json_count(j) > VLM_MAX_DIMS) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: shape is no list of at most %u numbers",
                        p->path, p->name, VLM_MAX_DIMS);
    }

    t->n_dims = 0;

    for (e = vlm_json_first(j); e != NULL; e = vlm_json_next(e)) {
        if (vlm_json_u64(e, p->path, p->name, 0, MAX_OFFSET, &t->dims[t->n_dims], p->err) != 0) {
            return -1;
        }
        t->n_dims++;
    }

    return 0;
}


static int
read_offsets(parser_t *p, entry_t *e, const vlm_json_t *j)
{
    const vlm_json_t  *begin;

    begin = vlm_json_first(j);

    if (!vlm_json_is_array(j) || vlm_json_count(j) != 2) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: data_offsets are no list of 2 numbers",
                        p->path, p->name);
    }

    if (vlm_json_u64(begin, p->path, p->name, 0, MAX_OFFSET, &e->begin, p->err) != 0
        || vlm_json_u64(vlm_json_next(begin), p->path, p->name, 0, MAX_OFFSET, &e->end,
                        p->err) != 0)
    {
        return -1;
    }

    if (e->begin > e->end) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: bytes %" PRIu64 " to %" PRIu64 " of %" PRIu64,
                        p->path, p->name, e->begin, e->end, p->bytes);
    }

    return 0;
}


static int
read_entry(parser_t *p, entry_t *e, const vlm_json_t *j)
{
    uint32_t     i, bits;
    uint64_t     need;
    const char  *dtype;

    e->t.name = vlm_json_key(j);
    (void) vlm_show(p->name, e->t.name, SIZE_MAX);

    if (strlen(e->t.name) > MAX_NAME) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: a tensor's name of %zu bytes, at most %u",
                        p->path, strlen(e->t.name), MAX_NAME);
    }

    if (!vlm_json_is_object(j) || vlm_json_count(j) != 3) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: expected dtype, shape and data_offsets",
                        p->path, p->name);
    }

    bits = read_type(&e->t, vlm_json_get(j, "dtype"));

    if (bits == 0) {
        dtype = vlm_json_text(vlm_json_get(j, "dtype"));
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: dtype \"%s\" is not known", p->path,
                        p->name, vlm_printable(dtype));
    }

    if (read_shape(p, &e->t, vlm_json_get(j, "shape")) != 0
        || read_offsets(p, e, vlm_json_get(j, "data_offsets")) != 0)
    {
        return -1;
    }

    need = bits / 8;
    for (i = 0; i < e->t.n_dims; i++) {
        need = vlm_mul(need, e->t.dims[i]);
    }

    if (need != e->end - e->begin) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %s: %" PRIu64 " bytes in the file, %" PRIu64
                        " by type and shape", p->path, p->name, e->end - e->begin, need);
    }

    e->t.data = p->data == NULL ? NULL : p->data + e->begin;
    e->t.at = p->head + e->begin;
    e->t.bytes = need;

    return 0;
}


static int
by_name(const void *a, const void *b)
{
    return strcmp(((const entry_t *) a)->t.name, ((const entry_t *) b)->t.name);
}


static int
by_offset(const void *a, const void *b)
{
    const entry_t  *x, *y;

    x = a;
    y = b;

    if (x->begin != y->begin) {
        return x->begin < y->begin ? -1 : 1;
    }

    if (x->end != y->end) {                    /* an empty tensor before the one that begins here */
        return x->end < y->end ? -1 : 1;
    }

    return by_name(a, b);
}


/* No name twice, and the data covered exactly; leaves the entries in the file's order. */
static int
check_entries(parser_t *p)
{
    uint32_t  i;
    uint64_t  at;

    qsort(p->entries, p->n, sizeof(entry_t), by_name);

    for (i = 1; i < p->n; i++) {
        if (by_name(&p->entries[i - 1], &p->entries[i]) == 0) {
            return vlm_fail(p->err, VLM_EMODEL, "%s: %s: twice in the header", p->path,
                            vlm_printable(p->entries[i].t.name));
        }
    }

    qsort(p->entries, p->n, sizeof(entry_t), by_offset);

    for (at = 0, i = 0; i < p->n; i++) {
        if (p->entries[i].begin != at) {
            return vlm_fail(p->err, VLM_EMODEL, "%s: %s: begins at byte %" PRIu64 ", the tensor "
                            "before it ends at %" PRIu64, p->path,
                            vlm_printable(p->entries[i].t.name), p->entries[i].begin, at);
        }
        at = p->entries[i].end;
    }

    if (at != p->bytes) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: %" PRIu64 " bytes of data, tensors end at %"
                        PRIu64, p->path, p->bytes, at);
    }

    return 0;
}


static int
read_entries(parser_t *p, const vlm_json_t *header)
{
    const vlm_json_t  *j;

    for (j = vlm_json_first(header); j != NULL; j = vlm_json_next(j)) {
        if (strcmp(vlm_json_key(j), "__metadata__") == 0) {
            continue;
        }

        if (read_entry(p, &p->entries[p->n], j) != 0) {
            return -1;
        }

        p->n++;
    }

    return check_entries(p);
}


/* Where the last tensor ends, if the header has this in numbers that can be offsets. */
static uint64_t
data_end(const vlm_json_t *header)
{
    double             end;
    uint64_t           most;
    const vlm_json_t  *j;

    most = 0;

    for (j = vlm_json_first(header); j != NULL; j = vlm_json_next(j)) {
        end = vlm_json_number(vlm_json_next(vlm_json_first(vlm_json_get(j, "data_offsets"))), 0);

        if (end > (double) most && end <= (double) MAX_OFFSET) {
            most = (uint64_t) end;
        }
    }

    return most;
}


static int
parse_header(parser_t *p, const vlm_json_t *header, vlm_tensor_fn fn, void *data)
{
    int       rc;
    uint32_t  i;
    uint64_t  end;

    if (!vlm_json_is_object(header)) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: the header is no JSON object", p->path);
    }

    end = data_end(header);

    if (end > p->bytes) {
        return vlm_fail(p->err, VLM_EMODEL, "%s: the file has %" PRIu64 " bytes of %" PRIu64
                        ": " VLM_DOWNLOAD, p->path, p->head + p->bytes, p->head + end);
    }

    p->entries = calloc((size_t) vlm_json_count(header) + 1, sizeof(entry_t));
    if (p->entries == NULL) {
        return vlm_fail(p->err, VLM_EMEMORY, "%s: no memory for %u tensors", p->path,
                        vlm_json_count(header));
    }

    rc = read_entries(p, header);

    for (i = 0; rc == 0 && i < p->n; i++) {
        rc = fn(data, &p->entries[i].t, p->err);
    }

    free(p->entries);

    return rc;
}


/* The length of the header behind the 8 bytes at `file`, of a file of some bytes. */
static int
check_length(const uint8_t *file, uint64_t bytes, const char *path, uint64_t *n, vlm_err_t *err)
{
    if (bytes < 8) {
        return vlm_fail(err, VLM_EMODEL, "%s: %" PRIu64 " bytes are no safetensors file: "
                        VLM_DOWNLOAD, path, bytes);
    }

    *n = read_u64(file);

    if (*n > MAX_HEADER) {
        return vlm_fail(err, VLM_EMODEL, "%s: header of %" PRIu64 " bytes in a file of %" PRIu64
                        ", at most %u are supported", path, *n, bytes, MAX_HEADER);
    }

    return *n <= bytes - 8
           ? 0 : vlm_fail(err, VLM_EMODEL, "%s: header of %" PRIu64 " bytes in a file of %" PRIu64
                          ": " VLM_DOWNLOAD, path, *n, bytes);
}


/* The header [n], of a file of some bytes, whose tensors begin at `tensors`, or NULL. */
static int
parse(const uint8_t *text, uint64_t n, const uint8_t *tensors, uint64_t bytes, const char *path,
      vlm_tensor_fn fn, void *data, vlm_err_t *err)
{
    int          rc;
    parser_t     p;
    vlm_json_t  *header;

    header = vlm_json_named(text, n, path, err);
    if (header == NULL) {
        return -1;
    }

    memset(&p, 0, sizeof(p));
    p.path = path;
    p.data = tensors;
    p.head = 8 + n;
    p.bytes = bytes - 8 - n;
    p.err = err;

    rc = parse_header(&p, header, fn, data);

    vlm_json_free(header);

    return rc;
}


int
vlm_safetensors_parse(const uint8_t *file, uint64_t bytes, const char *path, vlm_tensor_fn fn,
                      void *data, vlm_err_t *err)
{
    uint64_t  n = 0;

    return check_length(file, bytes, path, &n, err) != 0
           ? -1 : parse(file + 8, n, file + 8 + n, bytes, path, fn, data, err);
}


int
vlm_safetensors_read(int fd, uint64_t bytes, const char *path, vlm_tensor_fn fn, void *data,
                     vlm_err_t *err)
{
    int       rc;
    uint8_t   length[8] = { 0 }, *text;
    uint64_t  n = 0;

    if (vlm_file_read_at(fd, length, bytes < 8 ? bytes : 8, 0, path, err) != 0
        || check_length(length, bytes, path, &n, err) != 0)
    {
        return -1;
    }

    text = vlm_malloc(n + 1);
    if (text == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for a header of %" PRIu64 " bytes", path,
                        n);
    }

    rc = vlm_file_read_at(fd, text, n, 8, path, err) != 0
         ? -1 : parse(text, n, NULL, bytes, path, fn, data, err);

    free(text);

    return rc;
}
