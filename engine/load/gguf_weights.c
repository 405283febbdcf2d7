/*
 * The tensors of a model of two GGUF files, by the names that its family has for them.  Those that
 * the format splits are put together again: a part has the name of the whole, and behind it a byte
 * that no name has, its kind and its number.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "load/gguf_model.h"
#include "load/quant.h"

#define MAX_NAME   512
#define PART       '\001'
#define ROWS       'r'                 /* kinds of parts */
#define SLICE      's'
#define PAIRS      'p'


/* ---- names --------------------------------------------------------------- */

typedef struct {                       /* a name that a pattern fits */
    const char  *number, *rest;        /* the digits in place of *, and what follows the pattern */
    int          digits;
} fit_t;


/* The place of a block, given by its digits, in the list of those whose features are added. */
static uint32_t
place_of(const vlm_vision_config_t *v, const char *digits)
{
    uint32_t  i;
    uint64_t  block = strtoull(digits, NULL, 10);

    for (i = 0; i < v->deep && v->deep_block[i] != block; i++) { /* void */ }

    return i;
}


static int
fits(const char *pattern, const char *name, fit_t *f)
{
    size_t  n = strcspn(pattern, "*");

    if (strncmp(name, pattern, n) != 0) {
        return 0;
    }

    f->number = f->rest = name + n;
    f->digits = 0;

    if (pattern[n] == '\0') {
        return 1;
    }

    f->digits = (int) strspn(f->number, "0123456789");
    f->rest += f->digits;
    pattern += n + 1;
    n = strlen(pattern);

    if (f->digits == 0 || strncmp(f->rest, pattern, n) != 0) {
        return 0;
    }

    f->rest += n;

    return 1;
}


/* Writes the family's name for a tensor; * is its number. */
static void
write_name(const vlm_config_t *config, const vlm_gguf_name_t *map, const fit_t *f, char *to,
           size_t bytes)
{
    int          n;
    char         place[16], end[4] = "";
    const char  *star = strchr(map->to, '*');
    fit_t        whole = *f;

    static const char  kinds[] = {
        [VLM_GGUF_ROWS] = ROWS, [VLM_GGUF_SLICE] = SLICE, [VLM_GGUF_PAIRS] = PAIRS,
        [VLM_GGUF_DEEP] = '\0'
    };

    if (map->how == VLM_GGUF_DEEP) {
        whole.digits = snprintf(place, sizeof(place), "%u", place_of(&config->vision, f->number));
        whole.number = place;
    }

    if (kinds[map->how] != '\0') {
        end[0] = PART;
        end[1] = kinds[map->how];
        end[2] = (char) ('0' + map->part);
    }

    n = (int) strcspn(map->to, "*");
    (void) snprintf(to, bytes, "%.*s%.*s%s%s%s", n, map->to, star == NULL ? 0 : whole.digits,
                    whole.number, star == NULL ? "" : star + 1, whole.rest, end);
}


/* The family's name for a tensor: by the first of its patterns that fits, else its own. */
static void
name_of(const vlm_config_t *config, const char *from, char *to, size_t bytes)
{
    fit_t                   f;
    size_t                  i;
    const vlm_gguf_map_t   *map = config->family->gguf;
    const vlm_gguf_name_t  *name;

    for (i = 0; i < sizeof(map->names) / sizeof(map->names[0]) && map->names[i] != NULL; i++) {
        for (name = map->names[i]; name->from != NULL; name++) {
            if (fits(name->from, from, &f)) {
                write_name(config, name, &f, to, bytes);
                return;
            }
        }
    }

    (void) snprintf(to, bytes, "%s", from);
}


/* ---- tensors of several parts -------------------------------------------- */

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


/* Row i of a head's first half lies at 2 i, that of its second half behind it. */
static void
read_pairs(const vlm_made_t *m, uint64_t row, uint32_t n, float *out, uint64_t stride)
{
    uint32_t  half = m->head / 2;
    uint64_t  at, end = row + n;

    for ( /* void */ ; row < end; row++, out += stride) {
        at = row % m->head;
        at = row - at + (at < half ? 2 * at : 2 * (at - half) + 1);
        m->part[0].format->read(m->part[0].data, at * m->K, m->K, out);
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


/* Collects the parts: `name` is the first one's, and [n] of it the digit. */
static int
take_parts(vlm_checkpoint_t *c, char *name, size_t n, int slices, vlm_made_t *m, vlm_err_t *err)
{
    const vlm_tensor_t  *t;

    for (m->grid = 0; m->grid < VLM_MADE_PARTS; m->grid++) {
        name[n] = (char) ('0' + m->grid);
        t = vlm_checkpoint_part(c, name);

        if (t == NULL) {
            break;
        }

        m->part[m->grid] = *t;
        m->part[m->grid].name = NULL;
        m->lossy |= t->format->block > 1;
        m->N = slices ? t->dims[0] : vlm_add(m->N, t->dims[0]);

        if (!alike(t, &m->part[0], slices ? 0 : 1) || (slices && t->n_dims != 4)) {
            return vlm_fail(err, VLM_EMODEL, "%.*s: its parts have different shapes", (int) n - 2,
                            name);
        }
    }

    return 0;
}


/* The shape of the whole: the parts' rows together, or their slices as a dimension more. */
static uint32_t
set_shape(vlm_made_t *m, int slices, uint64_t dims[VLM_MAX_DIMS])
{
    uint32_t             i, n_dims;
    const vlm_tensor_t  *t = &m->part[0];

    memcpy(dims, t->dims, sizeof(t->dims));
    dims[0] = m->N;
    n_dims = t->n_dims;

    if (slices) {
        n_dims = 5;
        dims[2] = m->grid;
        dims[3] = t->dims[2];
        dims[4] = t->dims[3];
    }

    for (m->K = 1, i = 1; i < n_dims; i++) {
        m->K = vlm_mul(m->K, dims[i]);
    }

    return n_dims;
}


/* Puts the parts of a tensor together, whose first has this name. */
static int
join(vlm_checkpoint_t *c, const vlm_config_t *config, const char *first, vlm_err_t *err)
{
    int          rc, slices;
    char         name[MAX_NAME];
    size_t       n;
    uint32_t     n_dims;
    uint64_t     dims[VLM_MAX_DIMS];
    vlm_made_t  *m;

    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a tensor");
    }

    (void) snprintf(name, sizeof(name), "%s", first);
    n = strlen(name) - 1;
    slices = name[n - 1] == SLICE;
    m->read = slices ? read_slices : name[n - 1] == PAIRS ? read_pairs : read_stacked;
    m->head = config->text.head_dim;
    rc = take_parts(c, name, n, slices, m, err);

    if (rc == 0 && m->read == read_pairs && m->N % m->head != 0) {
        rc = vlm_fail(err, VLM_EMODEL, "%.*s has %" PRIu64 " rows, which are no heads of %u",
                      (int) n - 2, name, m->N, m->head);
    }

    if (rc == 0) {
        n_dims = set_shape(m, slices, dims);
        name[n - 2] = '\0';
        rc = vlm_checkpoint_make(c, name, m, dims, n_dims, err);
    }

    if (rc != 0) {
        free(m);
    }

    return rc;
}


static int
join_all(vlm_checkpoint_t *c, const vlm_config_t *config, vlm_err_t *err)
{
    size_t               n;
    uint32_t             i, count;
    const vlm_tensor_t  *t;

    count = vlm_checkpoint_count(c);

    for (i = 0; i < count; i++) {
        t = vlm_checkpoint_tensor(c, i);
        n = t == NULL ? 0 : strlen(t->name);

        if (n > 3 && t->name[n - 3] == PART && t->name[n - 1] == '0'
            && join(c, config, t->name, err) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* ---- the files ----------------------------------------------------------- */

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
vlm_gguf_weights(vlm_gguf_model_t *m, const vlm_config_t *config, vlm_err_t *err)
{
    vlm_checkpoint_t  *c;

    c = vlm_checkpoint_new(m->text.path, NULL, "the metadata", err);

    if (c != NULL
        && (add_file(c, &m->text, config, err) != 0
            || (m->vision.path != NULL && add_file(c, &m->vision, config, err) != 0)
            || join_all(c, config, err) != 0))
    {
        vlm_checkpoint_close(c);
        return NULL;
    }

    return c;
}
