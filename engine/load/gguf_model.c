/*
 * A model of two GGUF files: its configuration and its tensors.
 *
 * The settings become the text of a config.json, which the family then reads as it reads any other,
 * with all its checks.  Tensors get the family's names; those that the format splits are put
 * together again.
 */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "load/gguf.h"
#include "load/quant.h"

#define MAX_JSON   16384               /* bytes of settings */
#define MAX_LIST   256                 /* numbers of a setting */
#define MAX_NAME   512
#define PART       '\001'              /* a part's name ends with this, its kind and its number */

typedef struct {
    vlm_gguf_t             text, vision;
    const vlm_family_t    *family;
    char                   json[MAX_JSON];
    size_t                 n;          /* bytes of json */
} files_t;


int
vlm_gguf_is(const char *path)
{
    int         is;
    vlm_file_t  f;

    if (vlm_file_map(&f, path, 0, 0) != 0) {
        return 0;
    }

    is = f.bytes >= 4 && memcmp(f.data, VLM_GGUF_MAGIC, 4) == 0;
    vlm_file_close(&f);

    return is;
}


/* ---- settings ------------------------------------------------------------ */

static void __attribute__((format(printf, 2, 3)))
put(files_t *f, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(f->json + f->n, sizeof(f->json) - f->n, fmt, args);
    va_end(args);

    f->n += n > 0 ? (size_t) n : 0;
    f->n = f->n < sizeof(f->json) ? f->n : sizeof(f->json) - 1;
}


static int
open_files(files_t *f, const char *model, const char *mmproj, vlm_err_t *err)
{
    char              known[256];
    vlm_gguf_text_t   architecture, projector;

    if (mmproj == NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: a GGUF model has its vision encoder in a second "
                        "file: give it as mmproj=FILE.gguf", model);
    }

    if (vlm_gguf_open(&f->text, model, err) != 0 || vlm_gguf_open(&f->vision, mmproj, err) != 0) {
        return -1;
    }

    architecture = vlm_gguf_text(vlm_gguf_find(&f->text, "general.architecture"));
    projector = vlm_gguf_text(vlm_gguf_find(&f->vision, "clip.projector_type"));

    if (projector.n == 0) {
        projector = vlm_gguf_text(vlm_gguf_find(&f->vision, "clip.vision.projector_type"));
    }

    f->family = vlm_family_gguf(architecture.p, architecture.n, projector.p, projector.n, known,
                                sizeof(known));
    if (f->family == NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: architecture \"%s\" with the projector \"%s\" of "
                        "mmproj, only %s is understood", model,
                        vlm_printable_part(architecture.p, architecture.n),
                        vlm_printable_part(projector.p, projector.n), known);
    }

    return 0;
}


static void
close_files(files_t *f)
{
    vlm_gguf_close(&f->text);
    vlm_gguf_close(&f->vision);
    free(f);
}


static void
put_list(files_t *f, const vlm_gguf_value_t *v, uint64_t most)
{
    double    x;
    uint64_t  i;

    put(f, "[");

    for (i = 0; i < most && vlm_gguf_number(v, i, &x) == 0; i++) {
        put(f, "%s%.9g", i == 0 ? "" : ",", x);
    }

    put(f, "]");
}


/* The numbers of the flags that are set. */
static void
put_flags(files_t *f, const vlm_gguf_value_t *v)
{
    double       x;
    uint64_t     i;
    const char  *comma = "";

    put(f, "[");

    for (i = 0; i < MAX_LIST && vlm_gguf_number(v, i, &x) == 0; i++) {
        if (x != 0) {
            put(f, "%s%" PRIu64, comma, i);
            comma = ",";
        }
    }

    put(f, "]");
}


/* Every x-th of n layers: x - 1, 2 x - 1, and so on. */
static void
put_every(files_t *f, double x, double n)
{
    uint32_t  i;

    put(f, "[");

    for (i = 1; x >= 1 && i <= MAX_LIST && i * x <= n; i++) {
        put(f, "%s%.9g", i == 1 ? "" : ",", i * x - 1);
    }

    put(f, "]");
}


/* The settings that a file has, each behind a comma; "a.b" is b in an object a. */
static void
put_settings(files_t *f, const vlm_gguf_t *g, const vlm_gguf_key_t *key)
{
    double                   x, n;
    const char              *dot;
    const vlm_gguf_value_t  *v;

    for ( /* void */ ; key->from != NULL; key++) {
        v = vlm_gguf_find(g, key->from);

        if (vlm_gguf_number(v, 0, &x) != 0) {
            continue;
        }

        dot = strchr(key->to, '.');

        if (dot != NULL) {
            put(f, ",\"%.*s\":{\"%s\":", (int) (dot - key->to), key->to, dot + 1);
        } else {
            put(f, ",\"%s\":", key->to);
        }

        if (key->list != 0) {
            put_list(f, v, key->list);
        } else if (key->flags) {
            put_flags(f, v);
        } else if (key->every != NULL) {
            put_every(f, x, vlm_gguf_number(vlm_gguf_find(g, key->every), 0, &n) == 0 ? n : 0);
        } else {
            put(f, "%.9g", x);
        }

        put(f, "%s", dot == NULL ? "" : "}");
    }
}


/* The ids of control tokens, which are found by their texts. */
static void
put_tokens(files_t *f)
{
    double                   id, pad;
    uint64_t                 i;
    const uint8_t           *at;
    vlm_gguf_text_t          t;
    const vlm_gguf_key_t    *key;
    const vlm_gguf_value_t  *v;

    v = vlm_gguf_find(&f->text, "tokenizer.ggml.tokens");
    at = vlm_gguf_is_texts(v) ? v->data : NULL;

    for (i = 0; at != NULL && i < v->n; i++) {
        t = vlm_gguf_next(&at);

        for (key = f->family->gguf->tokens; t.n > 0 && key->from != NULL; key++) {
            if (vlm_gguf_same(t, key->from)) {
                put(f, ",\"%s\":%" PRIu64, key->to, i);
            }
        }
    }

    if (vlm_gguf_number(vlm_gguf_find(&f->text, "tokenizer.ggml.eos_token_id"), 0, &id) == 0) {
        put(f, ",\"eos_token_id\":[%.9g", id);

        if (vlm_gguf_number(vlm_gguf_find(&f->text, "tokenizer.ggml.padding_token_id"), 0, &pad)
            == 0 && pad != id)
        {
            put(f, ",%.9g", pad);
        }

        put(f, "]");
    }
}


static const vlm_tensor_t *
find_tensor(const vlm_gguf_t *g, const char *name)
{
    uint32_t  i;

    for (i = 0; i < g->n_tensors; i++) {
        if (strcmp(g->tensor[i].name, name) == 0) {
            return &g->tensor[i];
        }
    }

    return NULL;
}


/* Which forms of blocks the tensors have: for the log. */
static void
describe(const files_t *f, vlm_quant_t *q)
{
    size_t               n;
    uint32_t             i, k;
    const vlm_gguf_t    *g[2] = { &f->text, &f->vision };
    const vlm_tensor_t  *t;

    n = (size_t) snprintf(q->text, sizeof(q->text), "GGUF");

    for (k = 0; k < 2; k++) {
        for (i = 0; i < g[k]->n_tensors; i++) {
            t = &g[k]->tensor[i];

            if (t->format->block > 1 && strstr(q->text, t->dtype) == NULL
                && n + sizeof(t->dtype) + 2 < sizeof(q->text))
            {
                n += (size_t) snprintf(q->text + n, sizeof(q->text) - n, "%s %s",
                                       n == 4 ? "" : ",", t->dtype);
            }
        }
    }
}


static int
read_settings(files_t *f, vlm_config_t *c, const char *model, const char *mmproj, vlm_err_t *err)
{
    size_t                 config;
    vlm_config_file_t      file[VLM_CONFIG_FILES] = { 0 };
    const vlm_tensor_t    *t;
    const vlm_gguf_key_t  *key;
    const vlm_gguf_map_t  *map = f->family->gguf;

    put(f, "{\"model_type\":\"%s\"", f->family->model_type);
    put_settings(f, &f->text, map->text);
    put_tokens(f);

    t = find_tensor(&f->text, map->table);
    put(f, ",\"vocab_size\":%" PRIu64, t == NULL ? 0 : t->dims[0]);
    put(f, ",\"tie_word_embeddings\":%s", find_tensor(&f->text, map->head) ? "false" : "true");
    put(f, ",\"vision_config\":{\"temporal_patch_size\":2");
    put_settings(f, &f->vision, map->vision);

    for (key = map->rows; key != NULL && key->from != NULL; key++) {
        t = find_tensor(&f->vision, key->from);
        put(f, ",\"%s\":%" PRIu64, key->to, t == NULL ? 0 : t->dims[0]);
    }

    put(f, "}}");
    config = f->n;

    put(f, "{\"merge_size\":%u", map->merge);
    put_settings(f, &f->vision, map->pixels);
    put(f, "}");

    if (f->n == sizeof(f->json) - 1) {
        return vlm_fail(err, VLM_EMODEL, "%s: settings of more than %u bytes", model, MAX_JSON);
    }

    file[0].path = model;
    file[0].data = f->json;
    file[0].bytes = config;
    file[2].path = mmproj;
    file[2].data = f->json + config;
    file[2].bytes = f->n - config;

    if (vlm_config_parse(c, file, err) != 0) {
        return -1;
    }

    describe(f, &c->quant);

    return 0;
}


int
vlm_gguf_config(vlm_config_t *c, const char *model, const char *mmproj, vlm_err_t *err)
{
    int       rc;
    files_t  *f;

    f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to read %s", model);
    }

    rc = open_files(f, model, mmproj, err) != 0 ? -1 : read_settings(f, c, model, mmproj, err);
    close_files(f);

    return rc;
}


/* ---- tensors ------------------------------------------------------------- */

/* The place of a block, given by its digits, in the list of those whose features are added. */
static uint32_t
place_of(const vlm_vision_config_t *v, const char *digits)
{
    uint32_t  i;
    uint64_t  block = strtoull(digits, NULL, 10);

    for (i = 0; i < v->deep && v->deep_block[i] != block; i++) { /* void */ }

    return i;
}


/* The family's name for a tensor: the first of its patterns that fits; * is a number. */
static void
name_of(const vlm_config_t *config, const char *from, char *to, size_t bytes)
{
    char                    place[16];
    size_t                  n, digits;
    const char             *star, *rest, *number;
    const vlm_gguf_name_t  *map = config->family->gguf->names;

    for ( /* void */ ; map->from != NULL; map++) {
        star = strchr(map->from, '*');
        n = star == NULL ? strlen(map->from) : (size_t) (star - map->from);
        rest = from + n;
        number = rest;
        digits = 0;

        if (strncmp(from, map->from, n) != 0) {
            continue;
        }

        if (star != NULL) {
            digits = strspn(rest, "0123456789");
            rest += digits;

            if (digits == 0 || strncmp(rest, star + 1, strlen(star + 1)) != 0) {
                continue;
            }

            rest += strlen(star + 1);
        }

        if (map->how == VLM_GGUF_DEEP) {
            digits = (size_t) snprintf(place, sizeof(place), "%u",
                                       place_of(&config->vision, number));
            number = place;
        }

        star = strchr(map->to, '*');
        n = star == NULL ? strlen(map->to) : (size_t) (star - map->to);
        (void) snprintf(to, bytes, "%.*s%.*s%s%s", (int) n, map->to, (int) digits, number,
                        star == NULL ? "" : star + 1, rest);

        if (map->how == VLM_GGUF_ROWS || map->how == VLM_GGUF_SLICE) {
            n = strlen(to);
            (void) snprintf(to + n, bytes - n, "%c%c%u", PART,
                            map->how == VLM_GGUF_ROWS ? 'r' : 's', map->part);
        }

        return;
    }

    (void) snprintf(to, bytes, "%s", from);
}


/* Rows of the parts, one part behind the other. */
static void
read_stacked(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t             i;
    uint64_t             at;
    const vlm_tensor_t  *t;

    for (i = 0; i < n; i++, out += stride) {
        for (at = row + i, t = m->part; at >= t->dims[0]; t++) {
            at -= t->dims[0];
        }

        t->format->read(t->data, at * m->K, m->K, out);
    }
}


/* Row e has, for each channel, the patch of each time slice: a part has the patches of one. */
static void
read_slices(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t             i;
    uint64_t             c, channels, slice, area;
    const vlm_tensor_t  *t;

    channels = m->part[0].dims[1];
    area = m->part[0].dims[2] * m->part[0].dims[3];

    for (i = 0; i < n; i++, out += stride) {
        for (c = 0; c < channels; c++) {
            for (slice = 0; slice < m->grid; slice++) {
                t = &m->part[slice];
                t->format->read(t->data, ((row + i) * channels + c) * area, area,
                                out + (c * m->grid + slice) * area);
            }
        }
    }
}


/* Two parts have the same shape from dimension `first` on. */
static int
alike(const vlm_tensor_t *a, const vlm_tensor_t *b, uint32_t first)
{
    return a->n_dims == b->n_dims
           && memcmp(a->dims + first, b->dims + first, (a->n_dims - first) * sizeof(a->dims[0]))
              == 0;
}


/* Puts the parts of a tensor together, whose first has this name. */
static int
join(vlm_checkpoint_t *c, const char *first, vlm_err_t *err)
{
    int                  slices, rc;
    char                 name[MAX_NAME];
    size_t               n;
    uint32_t             i, n_dims;
    uint64_t             dims[VLM_MAX_DIMS] = { 0 };
    vlm_made_t          *m;
    const vlm_tensor_t  *t;

    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a tensor");
    }

    n = strlen(first) - 1;
    slices = first[n - 1] == 's';
    (void) snprintf(name, sizeof(name), "%s", first);

    for (i = 0; i < VLM_MADE_PARTS; i++) {
        name[n] = (char) ('0' + i);
        t = vlm_checkpoint_part(c, name);

        if (t == NULL) {
            break;
        }

        m->part[i] = *t;
        m->part[i].name = NULL;
        m->lossy |= t->format->block > 1;
        m->N += slices ? 0 : t->dims[0];

        if (!alike(t, &m->part[0], slices ? 0 : 1) || (slices && t->n_dims != 4)) {
            free(m);
            return vlm_fail(err, VLM_EMODEL, "%.*s: its parts have different shapes", (int) n - 2,
                            first);
        }
    }

    t = &m->part[0];
    m->grid = i;
    m->read = slices ? read_slices : read_stacked;
    n_dims = t->n_dims;
    memcpy(dims, t->dims, sizeof(dims));

    if (slices) {
        n_dims = 5;
        dims[2] = i;
        dims[3] = t->dims[2];
        dims[4] = t->dims[3];
    } else {
        dims[0] = m->N;
    }

    for (m->K = 1, i = 1; i < n_dims; i++) {
        m->K = vlm_mul(m->K, dims[i]);
    }

    m->N = dims[0];
    name[n - 2] = '\0';
    rc = vlm_checkpoint_make(c, name, m, dims, n_dims, err);

    if (rc != 0) {
        free(m);
    }

    return rc;
}


static int
add_file(vlm_checkpoint_t *c, vlm_gguf_t *g, const vlm_config_t *config, vlm_err_t *err)
{
    int       rc;
    char      name[MAX_NAME];
    uint32_t  i;

    rc = vlm_checkpoint_add_file(c, &g->file, g->path, err);

    for (i = 0; rc == 0 && i < g->n_tensors; i++) {
        name_of(config, g->tensor[i].name, name, sizeof(name));
        rc = vlm_checkpoint_add(c, &g->tensor[i], name, err);
    }

    return rc;
}


vlm_checkpoint_t *
vlm_gguf_weights(const char *model, const char *mmproj, const vlm_config_t *config, vlm_err_t *err)
{
    int                  rc;
    size_t               n;
    files_t             *f;
    uint32_t             i, count;
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    f = calloc(1, sizeof(*f));
    c = f == NULL ? NULL : vlm_checkpoint_new(model, NULL, err);

    if (c == NULL) {
        free(f);
        (void) vlm_fail(err, VLM_EMEMORY, "no memory to read %s", model);
        return NULL;
    }

    rc = open_files(f, model, mmproj, err) != 0
         || add_file(c, &f->text, config, err) != 0
         || add_file(c, &f->vision, config, err) != 0 ? -1 : 0;

    close_files(f);
    count = vlm_checkpoint_count(c);

    for (i = 0; rc == 0 && i < count; i++) {
        t = vlm_checkpoint_tensor(c, i);
        n = t == NULL ? 0 : strlen(t->name);

        if (n > 3 && t->name[n - 3] == PART && t->name[n - 1] == '0') {
            rc = join(c, t->name, err);
        }
    }

    if (rc != 0) {
        vlm_checkpoint_close(c);
        return NULL;
    }

    return c;
}
