/*
 * quantization_config of config.json: which form the matrices have.
 *
 * Every setting that changes what the bytes mean is read or refused by name.  Settings of how a
 * server computes (activations in eight bits, kernels) do not change the weights and are left out.
 */

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "load/quant.h"

#define MAX_GROUP  (1u << 16)
#define MAX_SETS   64                  /* config_groups */

typedef struct {                       /* quantization_config */
    const vlm_reader_t  *r;
    const vlm_json_t    *j;
    char                 path[96];     /* with "." */
    const char          *method;
} source_t;

typedef int (*read_fn)(const source_t *s, vlm_quant_t *q);


static int
refuse(const source_t *s, const char *what)
{
    return vlm_fail(s->r->err, VLM_EMODEL, "%s: the weights are quantised (%s)%s%s, which is not "
                    "supported; int8, int4 and FP8 of compressed-tensors, FP8, AWQ, GPTQ and "
                    "bitsandbytes int8 are, and bf16, f16 and f32", s->r->file,
                    vlm_printable(s->method), what[0] == '\0' ? "" : " with ", what);
}


/* The value of a key must be a text, of one of two in letters of any case; absent is fine. */
static int
expect_text(const source_t *s, const vlm_json_t *object, const char *key, const char *a,
            const char *b)
{
    char               what[VLM_PRINTABLE + 40];
    const char        *text;
    const vlm_json_t  *j = vlm_json_get(object, key);

    if (vlm_json_is_null(j)) {
        return 0;
    }

    text = vlm_json_text(j);

    if (text != NULL && (strcasecmp(text, a) == 0 || strcasecmp(text, b) == 0)) {
        return 0;
    }

    (void) snprintf(what, sizeof(what), "%.32s %s", key, text == NULL ? "of another type"
                                                                      : vlm_printable(text));

    return refuse(s, what);
}


static int
read_bits(const source_t *s, const char *key, uint32_t a, uint32_t b, vlm_quant_t *q)
{
    char  what[40];

    if (vlm_item_u32_or(s->r, vlm_item(s->j, s->path, key), 1, 64, a, &q->bits) != 0) {
        return -1;
    }

    if (q->bits != a && q->bits != b) {
        (void) snprintf(what, sizeof(what), "%u bits", q->bits);
        return refuse(s, what);
    }

    return 0;
}


/* Columns under one scale; -1 are all. */
static int
read_group(const vlm_reader_t *r, const vlm_json_t *object, const char *path, uint32_t *columns)
{
    vlm_item_t  it = vlm_item(object, path, "group_size");

    *columns = 0;

    return vlm_json_number(it.j, 0) == -1 ? 0 : vlm_item_u32(r, it, 1, MAX_GROUP, columns);
}


static int
read_awq(const source_t *s, vlm_quant_t *q)
{
    q->form = &vlm_quant_awq;
    q->rows = 1;

    if (!vlm_json_bool(vlm_json_get(s->j, "zero_point"), 1)) {
        return refuse(s, "zero_point false");
    }

    return read_bits(s, "bits", 4, 4, q) != 0
           || expect_text(s, s->j, "version", "gemm", "gemm") != 0
           || read_group(s->r, s->j, s->path, &q->columns) != 0 ? -1 : 0;
}


static int
read_gptq(const source_t *s, vlm_quant_t *q)
{
    const char  *version;

    version = vlm_json_text(vlm_json_get(s->j, "checkpoint_format"));
    q->form = &vlm_quant_gptq;
    q->rows = 1;
    q->less = version != NULL && strcmp(version, "gptq_v2") == 0 ? 0 : 1;

    if (vlm_json_bool(vlm_json_get(s->j, "desc_act"), 0)) {
        return refuse(s, "act-order (desc_act)");
    }

    if (vlm_json_bool(vlm_json_get(s->j, "is_marlin_format"), 0)) {
        return refuse(s, "is_marlin_format");
    }

    if (!vlm_json_is_null(vlm_json_get(s->j, "rotation"))) {
        return refuse(s, "rotation");
    }

    return read_bits(s, "bits", 4, 8, q) != 0
           || expect_text(s, s->j, "checkpoint_format", "gptq", "gptq_v2") != 0
           || read_group(s->r, s->j, s->path, &q->columns) != 0 ? -1 : 0;
}


/* [rows, columns] of a block. */
static int
read_block(const vlm_reader_t *r, vlm_item_t it, vlm_quant_t *q)
{
    const vlm_json_t  *first = vlm_json_first(it.j);

    if (!vlm_json_is_array(it.j) || vlm_json_count(it.j) != 2) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of 2 numbers", r->file, it.path);
    }

    return vlm_item_u32(r, vlm_item_element(&it, first, 0), 1, MAX_GROUP, &q->rows) != 0
           || vlm_item_u32(r, vlm_item_element(&it, vlm_json_next(first), 1), 1, MAX_GROUP,
                           &q->columns) != 0 ? -1 : 0;
}


static int
read_fp8(const source_t *s, vlm_quant_t *q)
{
    vlm_item_t  block = vlm_item(s->j, s->path, "weight_block_size");

    q->form = &vlm_quant_scaled;
    q->bits = 8;

    return expect_text(s, s->j, "fmt", "e4m3", "e4m3") != 0
           || (block.j != NULL && read_block(s->r, block, q) != 0) ? -1 : 0;
}


static int
read_bnb(const source_t *s, vlm_quant_t *q)
{
    q->form = &vlm_quant_bnb;
    q->bits = 8;
    q->rows = 1;
    q->divisor = 127;

    if (vlm_json_bool(vlm_json_get(s->j, "load_in_8bit"), 0)
        && !vlm_json_bool(vlm_json_get(s->j, "load_in_4bit"), 0))
    {
        return 0;
    }

    return refuse(s, "load_in_4bit");
}


/* ---- compressed-tensors -------------------------------------------------- */

static int
read_strategy(const source_t *s, const vlm_json_t *weights, const char *path, vlm_quant_t *q)
{
    char         what[VLM_PRINTABLE + 40];
    vlm_item_t   group, block;
    const char  *strategy;

    strategy = vlm_json_text(vlm_json_get(weights, "strategy"));
    group = vlm_item(weights, path, "group_size");
    block = vlm_item(weights, path, "block_structure");
    q->rows = 1;

    if (strategy == NULL) {            /* as compressed-tensors takes it */
        strategy = group.j == NULL ? "tensor" : vlm_json_number(group.j, 0) == -1 ? "channel"
                                                                                  : "group";
    }

    if (strcmp(strategy, "channel") == 0) {
        return 0;
    }

    if (strcmp(strategy, "group") == 0) {
        return read_group(s->r, weights, path, &q->columns);
    }

    if (strcmp(strategy, "block") == 0) {
        return read_block(s->r, block, q);
    }

    if (strcmp(strategy, "tensor") == 0 && q->form == &vlm_quant_scaled) {
        q->rows = 0;
        return 0;
    }

    (void) snprintf(what, sizeof(what), "strategy %s", vlm_printable(strategy));

    return refuse(s, what);
}


/* Columns in the order of activations have groups of their own. */
static int
refuse_order(const source_t *s, const vlm_json_t *weights)
{
    const char        *text;
    const vlm_json_t  *j = vlm_json_get(weights, "actorder");

    text = vlm_json_text(j);

    if (vlm_json_bool(j, 0)
        || (text != NULL && strcmp(text, "weight") != 0 && strcmp(text, "static") != 0))
    {
        return refuse(s, "act-order (actorder)");
    }

    return 0;
}


static int
read_weights(const source_t *s, const char *format, const vlm_json_t *weights, vlm_quant_t *q)
{
    int         floats, packed;
    char        path[96], what[VLM_PRINTABLE + 80];
    const char *type;

    (void) snprintf(path, sizeof(path), "%.40sconfig_groups.weights.", s->path);
    type = vlm_json_text(vlm_json_get(weights, "type"));
    floats = type != NULL && strcmp(type, "float") == 0;
    packed = strcmp(format, "pack-quantized") == 0;

    if (vlm_item_u32_or(s->r, vlm_item(weights, path, "num_bits"), 1, 64, 8, &q->bits) != 0) {
        return -1;
    }

    if (packed ? (q->bits != 4 && q->bits != 8) || floats
               : q->bits != 8
                 || (strcmp(format, "naive-quantized") != 0
                     && strcmp(format, floats ? "float-quantized" : "int-quantized") != 0))
    {
        (void) snprintf(what, sizeof(what), "format %s of %s, %u bits", vlm_printable(format),
                        floats ? "floats" : "integers", q->bits);
        return refuse(s, what);
    }

    if (!packed && !vlm_json_bool(vlm_json_get(weights, "symmetric"), 1)) {
        return refuse(s, "symmetric false");
    }

    q->form = packed ? &vlm_quant_packed : &vlm_quant_scaled;

    return refuse_order(s, weights) != 0 ? -1 : read_strategy(s, weights, path, q);
}


/* Settings of the whole file that change what the weights mean, or how they are multiplied. */
static int
refuse_others(const source_t *s)
{
    const vlm_json_t  *sparsity;

    sparsity = vlm_json_get(vlm_json_get(s->j, "sparsity_config"), "format");

    if (!vlm_json_is_null(vlm_json_get(s->j, "kv_cache_scheme"))) {
        return refuse(s, "kv_cache_scheme");
    }

    if (!vlm_json_is_null(sparsity) && (vlm_json_text(sparsity) == NULL
                                        || strcmp(vlm_json_text(sparsity), "dense") != 0))
    {
        return refuse(s, "sparsity_config");
    }

    return vlm_json_first(vlm_json_get(s->j, "transform_config")) != NULL
           ? refuse(s, "transform_config") : 0;
}


static int
read_compressed(const source_t *s, vlm_quant_t *q)
{
    uint32_t           n;
    vlm_quant_t        one;
    const char        *format, *own;
    const vlm_json_t  *set;

    if (refuse_others(s) != 0) {
        return -1;
    }

    format = vlm_json_text(vlm_json_get(s->j, "format"));
    set = vlm_json_first(vlm_json_get(s->j, "config_groups"));

    for (n = 0; set != NULL; set = vlm_json_next(set), n++) {
        own = vlm_json_text(vlm_json_get(set, "format"));
        one = *q;

        if (!vlm_json_is_object(vlm_json_get(set, "weights"))) {
            return refuse(s, "a config_group without weights");
        }

        if (read_weights(s, own != NULL ? own : format != NULL ? format : "",
                         vlm_json_get(set, "weights"), n == 0 ? q : &one) != 0)
        {
            return -1;
        }

        if (n == MAX_SETS || (n > 0 && (one.form != q->form || one.bits != q->bits
                                        || one.rows != q->rows || one.columns != q->columns)))
        {
            return refuse(s, "config_groups of several forms");
        }
    }

    return n > 0 ? 0 : refuse(s, "no config_groups");
}


/* ---- all of them --------------------------------------------------------- */

static const struct {
    const char  *method, *title;
    read_fn      read;
} methods[] = {
    { "compressed-tensors", "compressed-tensors", read_compressed },
    { "fp8", "FP8", read_fp8 },
    { "awq", "AWQ", read_awq },
    { "gptq", "GPTQ", read_gptq },
    { "bitsandbytes", "bitsandbytes", read_bnb }
};


/* The name of the form, for the log. */
static void
describe(vlm_quant_t *q, const char *title)
{
    int  n;

    n = snprintf(q->text, sizeof(q->text), "%.24s, %u bits ", title, q->bits);

    if (q->rows > 1) {
        (void) snprintf(q->text + n, sizeof(q->text) - (size_t) n, "in blocks of %ux%u", q->rows,
                        q->columns);
    } else if (q->columns != 0) {
        (void) snprintf(q->text + n, sizeof(q->text) - (size_t) n, "in groups of %u", q->columns);
    } else {
        (void) snprintf(q->text + n, sizeof(q->text) - (size_t) n, "with a scale a %s",
                        q->rows == 1 ? "row" : "matrix");
    }
}


int
vlm_quant_read(const vlm_reader_t *r, vlm_quant_t *q)
{
    size_t      i;
    source_t    s = { .r = r };
    vlm_item_t  it;

    memset(q, 0, sizeof(*q));
    q->divisor = 1;

    it = vlm_item_text(r, "quantization_config");
    it = it.j != NULL ? it : vlm_item_top(r, "compression_config");

    if (it.j == NULL) {
        return 0;
    }

    s.j = it.j;
    s.method = vlm_json_text(vlm_json_get(it.j, "quant_method"));
    (void) snprintf(s.path, sizeof(s.path), "%.94s.", it.path);

    for (i = 0; s.method != NULL && i < sizeof(methods) / sizeof(methods[0]); i++) {
        if (strcmp(s.method, methods[i].method) == 0) {
            if (methods[i].read(&s, q) != 0) {
                return -1;
            }

            describe(q, methods[i].title);
            return 0;
        }
    }

    s.method = s.method == NULL ? "?" : s.method;

    return refuse(&s, "");
}
