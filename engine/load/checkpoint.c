/* The tensors of a checkpoint: a set that files add to, and a model asks. */

#include "load/shards.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"
#include "base/size.h"
#include "load/quant.h"

#define PIECE        4096              /* bytes of a sample of a file, and number of samples */
#define N_PIECES     16


/* Of a tensor, in its file. */
static const char *
own_name(const vlm_slot_t *s)
{
    return s->own != NULL ? s->own : s->t.name;
}


const char *
vlm_checkpoint_fold(const vlm_checkpoint_t *c, const char *name, char *buf, size_t bytes)
{
    size_t              n;
    const vlm_alias_t  *a;

    for (a = c->aliases; a != NULL && a->from != NULL; a++) {
        n = strlen(a->from);

        if (strncmp(name, a->from, n) == 0) {
            (void) snprintf(buf, bytes, "%s%s", a->to, name + n);
            return buf;
        }
    }

    return name;
}


int
vlm_checkpoint_take(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    char               buf[512];
    vlm_slot_t        *s;
    const char        *name;
    vlm_tensor_t       here;
    vlm_checkpoint_t  *c;

    c = data;
    name = vlm_checkpoint_fold(c, t->name, buf, sizeof(buf));

    s = vlm_slots_find(&c->all, name);
    if (s != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s is also in %s", c->shards[c->n_shards - 1].path,
                        vlm_printable(t->name), c->shards[s->t.file].name);
    }

    here = *t;
    here.file = c->n_shards - 1;

    return vlm_slots_add(&c->all, &here, name, c->dir, err);
}


vlm_checkpoint_t *
vlm_checkpoint_new(const char *dir, const vlm_alias_t *aliases, const char *settings,
                   vlm_err_t *err)
{
    vlm_checkpoint_t  *c;

    if (strlen(dir) >= sizeof(c->dir)) {
        (void) vlm_fail(err, VLM_EMODEL, "%.200s...: path longer than %zu bytes", dir,
                        sizeof(c->dir) - 1);
        return NULL;
    }

    c = calloc(1, sizeof(*c));

    if (c == NULL || (c->shards = calloc(VLM_MAX_SHARDS, sizeof(vlm_shard_t))) == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u files", dir, VLM_MAX_SHARDS);
        free(c);
        return NULL;
    }

    c->aliases = aliases;
    c->settings = settings;
    strcpy(c->dir, dir);

    return c;
}


int
vlm_checkpoint_add_file(vlm_checkpoint_t *c, vlm_file_t *f, const char *path, vlm_err_t *err)
{
    vlm_shard_t  *s = &c->shards[c->n_shards];

    if (c->n_shards == VLM_MAX_SHARDS || strlen(path) >= sizeof(s->path)) {
        return vlm_fail(err, VLM_EMODEL, "%.200s: too many files, or too long a path", path);
    }

    strcpy(s->path, path);
    (void) snprintf(s->name, sizeof(s->name), "%.255s", path);
    s->file = *f;
    memset(f, 0, sizeof(*f));
    c->n_shards++;

    return 0;
}


int
vlm_checkpoint_add(vlm_checkpoint_t *c, const vlm_tensor_t *t, const char *name, vlm_err_t *err)
{
    vlm_slot_t   *s;
    vlm_tensor_t  named = *t;

    named.name = name;

    if (vlm_checkpoint_take(c, &named, err) != 0) {
        return -1;
    }

    s = &c->all.slot[c->all.n - 1];

    if (strcmp(s->t.name, t->name) != 0 && (s->own = strdup(t->name)) == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for a name", c->dir);
    }

    return 0;
}


vlm_checkpoint_t *
vlm_checkpoint_assume(vlm_err_t *err)
{
    vlm_checkpoint_t  *c;

    c = calloc(1, sizeof(*c));
    if (c == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for an index");
        return NULL;
    }

    c->assumed = 1;

    return c;
}


void
vlm_checkpoint_close(vlm_checkpoint_t *c)
{
    uint32_t  i;

    if (c == NULL) {
        return;
    }

    for (i = 0; i < c->n_shards; i++) {
        vlm_file_close(&c->shards[i].file);
    }

    vlm_slots_free(&c->all);
    free(c->shards);
    free(c);
}


/* ---- tensors ------------------------------------------------------------- */

static void
shape_text(char *buf, size_t bytes, const uint64_t *dims, uint32_t n)
{
    int       used;
    uint32_t  i;

    used = snprintf(buf, bytes, "[");

    for (i = 0; i < n && used > 0 && (size_t) used < bytes; i++) {
        used += snprintf(buf + used, bytes - (size_t) used, "%s%" PRIu64, i == 0 ? "" : ", ",
                         dims[i]);
    }

    if (used > 0 && (size_t) used < bytes) {
        snprintf(buf + used, bytes - (size_t) used, "]");
    }
}


static int
same_shape(const vlm_tensor_t *t, const uint64_t *dims, uint32_t n_dims)
{
    uint32_t  i;

    for (i = 0; i < t->n_dims || i < n_dims; i++) {
        if ((i < t->n_dims ? t->dims[i] : 1) != (i < n_dims ? dims[i] : 1)) {
            return 0;
        }
    }

    return 1;
}


const vlm_tensor_t *
vlm_checkpoint_find(vlm_checkpoint_t *c, const char *name, const uint64_t *dims, uint32_t n_dims,
                    vlm_err_t *err)
{
    char         is[128], should[128];
    vlm_slot_t  *s;

    if (c->assumed) {
        return &c->any;
    }

    s = vlm_slots_find(&c->all, name);
    if (s == NULL) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: no tensor %s", c->dir, name);
        return NULL;
    }

    if (!same_shape(&s->t, dims, n_dims)) {
        shape_text(is, sizeof(is), s->t.dims, s->t.n_dims);
        shape_text(should, sizeof(should), dims, n_dims);
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s is %s, %s says %s",
                        c->shards[s->t.file].path, vlm_printable(own_name(s)), is,
                        c->settings, should);
        return NULL;
    }

    if (s->t.format == NULL && s->t.made == NULL) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s has elements of type %s; F32, F16 and BF16 are "
                        "read", c->shards[s->t.file].path, name, s->t.dtype);
        return NULL;
    }

    if (vlm_file_whole(&c->shards[s->t.file].file, c->shards[s->t.file].path, err) != 0) {
        return NULL;
    }

    s->asked = 1;

    return &s->t;
}


int
vlm_checkpoint_whole(const vlm_checkpoint_t *c, vlm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < c->n_shards; i++) {
        if (vlm_file_whole(&c->shards[i].file, c->shards[i].path, err) != 0) {
            return -1;
        }
    }

    return 0;
}


int
vlm_checkpoint_has(const vlm_checkpoint_t *c, const char *name)
{
    return vlm_slots_find(&c->all, name) != NULL;
}


uint64_t
vlm_checkpoint_rows(const vlm_checkpoint_t *c, const char *name)
{
    const vlm_slot_t  *s;

    s = vlm_slots_find(&c->all, name);

    return s == NULL || s->t.n_dims == 0 ? 0 : s->t.dims[0];
}


uint64_t
vlm_checkpoint_elements(const vlm_checkpoint_t *c, const char *but)
{
    uint32_t             i, k;
    uint64_t             n, sum;
    const vlm_tensor_t  *t;

    for (sum = 0, i = 0; i < c->all.n; i++) {
        t = &c->all.slot[i].t;

        if (c->all.slot[i].part || (but != NULL && strcmp(t->name, but) == 0)) {
            continue;
        }

        for (n = 1, k = 0; k < t->n_dims; k++) {
            n = vlm_mul(n, t->dims[k]);
        }

        sum = vlm_add(sum, n);
    }

    return sum;
}


int
vlm_checkpoint_unused(const vlm_checkpoint_t *c, const char *but, vlm_err_t *err)
{
    uint32_t           i, n;
    const vlm_slot_t  *first;

    first = NULL;
    n = 0;

    for (i = 0; i < c->all.n; i++) {
        if (!c->all.slot[i].asked && !c->all.slot[i].part && !c->all.slot[i].spare
            && strcmp(c->all.slot[i].t.name, but) != 0)
        {
            first = first == NULL ? &c->all.slot[i] : first;
            n++;
        }
    }

    if (n == 0) {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%s: %u tensors that %s has no place for, the first is %s",
                    c->shards[first->t.file].path, n, c->settings,
                    vlm_printable(own_name(first)));
}


uint32_t
vlm_checkpoint_lossy(const vlm_checkpoint_t *c, const vlm_format_t *form, uint32_t *own)
{
    uint32_t             i, n;
    const vlm_tensor_t  *t;

    for (*own = n = i = 0; i < c->all.n; i++) {
        t = &c->all.slot[i].t;

        if (!c->all.slot[i].part && (t->made != NULL ? t->made->lossy
                                                  : t->format != NULL && t->format->block > 1))
        {
            n++;
            *own += vlm_tensor_own(t) == form;
        }
    }

    return n;
}


/* ---- tensors made of others ---------------------------------------------- */

uint32_t
vlm_checkpoint_count(const vlm_checkpoint_t *c)
{
    return c->all.n;
}


const vlm_tensor_t *
vlm_checkpoint_tensor(const vlm_checkpoint_t *c, uint32_t i)
{
    return c->all.slot[i].part ? NULL : &c->all.slot[i].t;
}


const vlm_tensor_t *
vlm_checkpoint_look(const vlm_checkpoint_t *c, const char *name)
{
    vlm_slot_t  *s = vlm_slots_find(&c->all, name);

    return s == NULL ? NULL : &s->t;
}


const vlm_tensor_t *
vlm_checkpoint_part(vlm_checkpoint_t *c, const char *name)
{
    vlm_slot_t  *s = vlm_slots_find(&c->all, name);

    if (s == NULL) {
        return NULL;
    }

    s->part = 1;

    return &s->t;
}


void
vlm_checkpoint_spare(vlm_checkpoint_t *c, const char *name)
{
    vlm_slot_t  *s = vlm_slots_find(&c->all, name);

    if (s != NULL) {
        s->spare = 1;
    }
}


int
vlm_checkpoint_make(vlm_checkpoint_t *c, const char *name, vlm_made_t *m, const uint64_t *dims,
                    uint32_t n_dims, vlm_err_t *err)
{
    vlm_slot_t   *s;
    vlm_tensor_t  t;

    memset(&t, 0, sizeof(t));
    t.made = m;
    t.file = m->part[0].file;
    t.n_dims = n_dims;
    memcpy(t.dims, dims, n_dims * sizeof(*dims));

    s = vlm_slots_find(&c->all, name);

    if (s == NULL) {
        return vlm_slots_add(&c->all, &t, name, c->dir, err);
    }

    if (!s->part) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s is there as a plain tensor and as a quantised one",
                        c->shards[s->t.file].path, vlm_printable(name));
    }

    t.name = s->t.name;
    s->t = t;
    s->part = 0;

    return 0;
}


static void
done_with(const vlm_checkpoint_t *c, const vlm_tensor_t *t)
{
    const vlm_file_t  *f = &c->shards[t->file].file;

    vlm_file_done(f, (uint64_t) (t->data - f->data), t->bytes);
}


void
vlm_tensor_done(vlm_checkpoint_t *c, const vlm_tensor_t *t)
{
    uint32_t  i;

    if (t->made == NULL) {
        done_with(c, t);
        return;
    }

    for (i = 0; i < VLM_MADE_PARTS; i++) {
        if (t->made->part[i].data != NULL) {
            done_with(c, &t->made->part[i]);
        }
    }
}


/* A sample at a random place costs a disk read, so there are few of them. */
static void
add_pieces(vlm_sha256_t *s, const vlm_file_t *f)
{
    uint64_t  i, at;

    for (i = 0; i < N_PIECES; i++) {
        at = f->bytes < PIECE ? 0 : (f->bytes - PIECE) / (N_PIECES - 1) * i;
        vlm_sha256_add(s, f->data + at, f->bytes < PIECE ? f->bytes : PIECE);
    }
}


/* The settings of a quantised matrix, which are from config.json. */
static void
add_made(vlm_sha256_t *s, const vlm_made_t *m)
{
    uint64_t  facts[4] = { m->bits, m->less, m->rows, m->columns };

    vlm_sha256_add(s, facts, sizeof(facts));
}


int
vlm_checkpoint_id(const vlm_checkpoint_t *c, uint8_t id[32], vlm_err_t *err)
{
    uint32_t            i;
    uint64_t            facts[3];
    struct stat         st;
    const vlm_shard_t  *shard;
    vlm_sha256_t        s;

    vlm_sha256_start(&s);

    for (i = 0; i < c->n_shards; i++) {
        shard = &c->shards[i];

        if (stat(shard->path, &st) != 0) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s", shard->path, strerror(errno));
        }

        if (vlm_file_whole(&shard->file, shard->path, err) != 0) {
            return -1;
        }

        facts[0] = shard->file.bytes;
        facts[1] = (uint64_t) st.st_mtim.tv_sec;
        facts[2] = (uint64_t) st.st_mtim.tv_nsec;

        vlm_sha256_add(&s, shard->name, strlen(shard->name) + 1);
        vlm_sha256_add(&s, facts, sizeof(facts));
        add_pieces(&s, &shard->file);
    }

    for (i = 0; i < c->all.n; i++) {
        if (c->all.slot[i].t.made != NULL) {
            add_made(&s, c->all.slot[i].t.made);
        }
    }

    vlm_sha256_end(&s, id);

    return 0;
}
