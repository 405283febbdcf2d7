/*
 * A directory of shards as one set of tensors, found by name.
 *
 * model.safetensors is read if it exists, as in the reference, else the shards of
 * model.safetensors.index.json.  The index must agree with the shards in both directions, so that
 * an incomplete download is reported at once and not at the first missing weight.
 */

#include "load/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/size.h"
#include "load/quant.h"

#define SINGLE       "model.safetensors"
#define INDEX        "model.safetensors.index.json"
#define MAX_INDEX    (16u << 20)       /* bytes */
#define MAX_SHARDS   1024
#define MAX_TENSORS  (1u << 20)
#define MAX_PATH     4096
#define MAX_FILE_NAME 256
#define PIECE        4096              /* bytes of a sample of a file, and number of samples */
#define N_PIECES     16

typedef struct {
    char         name[MAX_FILE_NAME];  /* a plain one */
    char         path[MAX_PATH];
    vlm_file_t   file;
} shard_t;

typedef struct {
    vlm_tensor_t  t;                   /* t.name is the folded name, malloc()ed */
    int           asked;               /* by vlm_checkpoint_find() */
    int           indexed;             /* named by the index */
    int           part;                /* of another tensor */
    int           spare;               /* 1: it may stay unused */
    char         *own;                 /* its name in the file, malloc()ed; NULL: t.name */
} slot_t;

struct vlm_checkpoint_s {
    char         dir[MAX_PATH];
    shard_t     *shards;               /* [n_shards], room for MAX_SHARDS */
    uint32_t     n_shards;
    slot_t      *slots;                /* [n], in the order of the files */
    uint32_t     n, room;
    uint32_t    *table;                /* [n_table] slot + 1, or 0; open addressing */
    uint32_t     n_table;              /* a power of two, at least 2 n */
    const vlm_alias_t *aliases;
    const char  *settings;             /* "config.json" */
    vlm_tensor_t       any;            /* of a checkpoint that is not there yet */
    int                assumed;        /* 1: it is not, and has every tensor that is asked for */
};


/* ---- names --------------------------------------------------------------- */

/* The name by which a tensor is known, in buf if it differs from the given one. */
static const char *
fold(const vlm_checkpoint_t *c, const char *name, char *buf, size_t bytes)
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


/* Of a tensor, in its file. */
static const char *
own_name(const slot_t *s)
{
    return s->own != NULL ? s->own : s->t.name;
}


static uint32_t
hash(const char *s)
{
    uint32_t  h;

    for (h = 2166136261u; *s != '\0'; s++) {
        h = (h ^ (uint8_t) *s) * 16777619u;
    }

    return h;
}


/* The place of a name in the table, or the free one for it. */
static uint32_t
probe(const vlm_checkpoint_t *c, const char *name)
{
    uint32_t  i;

    i = hash(name) & (c->n_table - 1);

    while (c->table[i] != 0 && strcmp(c->slots[c->table[i] - 1].t.name, name) != 0) {
        i = (i + 1) & (c->n_table - 1);
    }

    return i;
}


static slot_t *
lookup(const vlm_checkpoint_t *c, const char *name)
{
    uint32_t  i;

    if (c->n == 0) {
        return NULL;
    }

    i = c->table[probe(c, name)];

    return i == 0 ? NULL : &c->slots[i - 1];
}


/* Room for one more slot, and a table that stays half empty. */
static int
grow(vlm_checkpoint_t *c, vlm_err_t *err)
{
    slot_t    *slots;
    uint32_t   i, room, *table;

    if (c->n < c->room) {
        return 0;
    }

    room = c->room == 0 ? 1024 : 2 * c->room;

    if (room > MAX_TENSORS) {
        return vlm_fail(err, VLM_EMODEL, "%s: more than %u tensors", c->dir, MAX_TENSORS);
    }

    slots = realloc(c->slots, room * sizeof(slot_t));
    if (slots == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u tensors", c->dir, room);
    }

    c->slots = slots;

    table = calloc((size_t) room * 2, sizeof(uint32_t));
    if (table == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u tensors", c->dir, room);
    }

    free(c->table);
    c->table = table;
    c->n_table = room * 2;
    c->room = room;

    for (i = 0; i < c->n; i++) {
        c->table[probe(c, c->slots[i].t.name)] = i + 1;
    }

    return 0;
}


/* Adds a tensor by its folded name, which is not there yet. */
static int
add(vlm_checkpoint_t *c, const vlm_tensor_t *t, const char *name, vlm_err_t *err)
{
    slot_t    *s;
    uint32_t   i;

    if (grow(c, err) != 0) {
        return -1;
    }

    i = probe(c, name);
    s = &c->slots[c->n];
    memset(s, 0, sizeof(*s));

    s->t = *t;
    s->t.name = strdup(name);
    if (s->t.name == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for a name", c->dir);
    }

    c->table[i] = ++c->n;

    return 0;
}


/* A vlm_tensor_fn: takes a tensor of the last shard in. */
static int
take(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    char               buf[512];
    slot_t            *s;
    const char        *name;
    vlm_tensor_t       here;
    vlm_checkpoint_t  *c;

    c = data;
    name = fold(c, t->name, buf, sizeof(buf));

    s = lookup(c, name);
    if (s != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s is also in %s", c->shards[c->n_shards - 1].path,
                        vlm_printable(t->name), c->shards[s->t.file].name);
    }

    here = *t;
    here.file = c->n_shards - 1;

    return add(c, &here, name, err);
}


/* ---- files --------------------------------------------------------------- */

/* A file of the directory whose name can be shown unchanged in an error. */
static int
is_plain(const char *name)
{
    const char  *p;

    for (p = name; *p != '\0'; p++) {
        if ((unsigned char) *p < 0x20 || strchr("\"/\\\x7f", *p) != NULL) {
            return 0;
        }
    }

    return name[0] != '\0' && name[0] != '.' && p - name < MAX_FILE_NAME;
}


static int
open_shard(vlm_checkpoint_t *c, const char *name, vlm_err_t *err)
{
    shard_t  *s;

    if (!is_plain(name)) {
        return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": \"%s\" is no plain file name", c->dir,
                        vlm_printable(name));
    }

    if (c->n_shards == MAX_SHARDS) {
        return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": more than %u files", c->dir, MAX_SHARDS);
    }

    s = &c->shards[c->n_shards];
    strcpy(s->name, name);

    if (vlm_file_path(s->path, sizeof(s->path), c->dir, name, err) != 0) {
        return -1;
    }

    if (access(s->path, F_OK) != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s; " INDEX " names it: download the rest of the "
                        "model", s->path, strerror(errno));
    }

    if (vlm_file_open(&s->file, s->path, 0, err) != 0) {
        return -1;
    }

    c->n_shards++;

    return vlm_safetensors_parse(s->file.data, s->file.bytes, s->path, take, c, err);
}


static shard_t *
find_shard(const vlm_checkpoint_t *c, const char *name)
{
    uint32_t  i;

    for (i = c->n_shards; i > 0; i--) {        /* mostly the one opened last */
        if (strcmp(c->shards[i - 1].name, name) == 0) {
            return &c->shards[i - 1];
        }
    }

    return NULL;
}


static int
open_shards(vlm_checkpoint_t *c, const vlm_json_t *map, vlm_err_t *err)
{
    const char        *name;
    const vlm_json_t  *j;

    for (j = vlm_json_first(map); j != NULL; j = vlm_json_next(j)) {
        name = vlm_json_text(j);

        if (name == NULL) {
            return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": %s is in no file", c->dir,
                            vlm_printable(vlm_json_key(j)));
        }

        if (find_shard(c, name) == NULL && open_shard(c, name, err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Every tensor of the index is in its shard, and every tensor of a shard in the index. */
static int
check_index(vlm_checkpoint_t *c, const vlm_json_t *map, vlm_err_t *err)
{
    char               buf[512];
    slot_t            *s;
    uint32_t           i;
    const char        *file;
    const vlm_json_t  *j;

    for (j = vlm_json_first(map); j != NULL; j = vlm_json_next(j)) {
        file = vlm_json_text(j);
        s = lookup(c, fold(c, vlm_json_key(j), buf, sizeof(buf)));

        if (s == NULL || s->t.file != (uint32_t) (find_shard(c, file) - c->shards)) {
            return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": %s should be in %s, and is not",
                            c->dir, vlm_printable(vlm_json_key(j)), file);
        }

        if (s->indexed) {
            return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": %s: twice", c->dir,
                            vlm_printable(vlm_json_key(j)));
        }

        s->indexed = 1;
    }

    for (i = 0; i < c->n; i++) {
        if (!c->slots[i].indexed) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s is not in " INDEX,
                            c->shards[c->slots[i].t.file].path, vlm_printable(c->slots[i].t.name));
        }
    }

    return 0;
}


static int
open_index(vlm_checkpoint_t *c, vlm_err_t *err)
{
    int                rc;
    vlm_json_t        *index;
    const vlm_json_t  *map;

    index = vlm_json_read(c->dir, INDEX, MAX_INDEX, err);
    if (index == NULL) {
        return -1;
    }

    map = vlm_json_get(index, "weight_map");

    if (!vlm_json_is_object(map)) {
        rc = vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": no weight_map", c->dir);
    } else {
        rc = open_shards(c, map, err) != 0 || check_index(c, map, err) != 0 ? -1 : 0;
    }

    vlm_json_free(index);

    return rc;
}


/* -1: the directory has weights in a form of PyTorch's own in place of the files that are read. */
static int
refuse_foreign(const char *dir, vlm_err_t *err)
{
    char    found[MAX_FILE_NAME];
    size_t  i;

    static const struct {
        const char  *prefix, *suffix;
    } foreign[] = {
        { "pytorch_model", ".bin" },
        { "", ".pt" },
        { "", ".pth" },
        { "", ".ckpt" }
    };

    for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        if (vlm_file_find(dir, foreign[i].prefix, foreign[i].suffix, found, sizeof(found))) {
            return vlm_fail(err, VLM_EMODEL, "%s: neither " SINGLE " nor " INDEX "; \"%s\" is "
                            "PyTorch's own form, which is not supported: take the model's "
                            ".safetensors files, or save it again with transformers' "
                            "save_pretrained()", dir, vlm_printable(found));
        }
    }

    return 0;
}


static int
refuse_none(const char *dir, vlm_err_t *err)
{
    return refuse_foreign(dir, err) != 0
           ? -1 : vlm_fail(err, VLM_EMODEL, "%s: neither " SINGLE " nor " INDEX ": download the "
                           "model's weights", dir);
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

    if (c == NULL || (c->shards = calloc(MAX_SHARDS, sizeof(shard_t))) == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u files", dir, MAX_SHARDS);
        free(c);
        return NULL;
    }

    c->aliases = aliases;
    c->settings = settings;
    strcpy(c->dir, dir);

    return c;
}


vlm_checkpoint_t *
vlm_checkpoint_open(const char *dir, const vlm_alias_t *aliases, vlm_err_t *err)
{
    int                rc;
    vlm_checkpoint_t  *c;

    c = vlm_checkpoint_new(dir, aliases, "config.json", err);
    if (c == NULL) {
        return NULL;
    }

    if (vlm_file_exists(dir, SINGLE)) {
        rc = open_shard(c, SINGLE, err);
    } else if (vlm_file_exists(dir, INDEX)) {
        rc = open_index(c, err);
    } else {
        rc = refuse_none(dir, err);
    }

    if (rc != 0) {
        vlm_checkpoint_close(c);
        return NULL;
    }

    return c;
}


int
vlm_checkpoint_add_file(vlm_checkpoint_t *c, vlm_file_t *f, const char *path, vlm_err_t *err)
{
    shard_t  *s = &c->shards[c->n_shards];

    if (c->n_shards == MAX_SHARDS || strlen(path) >= sizeof(s->path)) {
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
    slot_t        *s;
    vlm_tensor_t   named = *t;

    named.name = name;

    if (take(c, &named, err) != 0) {
        return -1;
    }

    s = &c->slots[c->n - 1];

    if (strcmp(s->t.name, t->name) != 0 && (s->own = strdup(t->name)) == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for a name", c->dir);
    }

    return 0;
}


int
vlm_checkpoint_is_there(const char *dir, vlm_err_t *err)
{
    int                there;
    const char        *name;
    vlm_json_t        *index;
    const vlm_json_t  *j;

    if (vlm_file_exists(dir, SINGLE)) {
        return 1;
    }

    if (!vlm_file_exists(dir, INDEX)) {
        return refuse_foreign(dir, err);
    }

    index = vlm_json_read(dir, INDEX, MAX_INDEX, err);
    if (index == NULL) {
        return -1;
    }

    there = 1;

    for (j = vlm_json_first(vlm_json_get(index, "weight_map")); j != NULL; j = vlm_json_next(j)) {
        name = vlm_json_text(j);
        there &= name == NULL || !is_plain(name) || vlm_file_exists(dir, name);
    }

    vlm_json_free(index);

    return there;
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

    for (i = 0; i < c->n; i++) {
        free((char *) c->slots[i].t.name);
        free(c->slots[i].own);
        free((void *) c->slots[i].t.made);
    }

    for (i = 0; i < c->n_shards; i++) {
        vlm_file_close(&c->shards[i].file);
    }

    free(c->table);
    free(c->slots);
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
    char     is[128], should[128];
    slot_t  *s;

    if (c->assumed) {
        return &c->any;
    }

    s = lookup(c, name);
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

    s->asked = 1;

    return &s->t;
}


int
vlm_checkpoint_has(const vlm_checkpoint_t *c, const char *name)
{
    return lookup(c, name) != NULL;
}


uint64_t
vlm_checkpoint_rows(const vlm_checkpoint_t *c, const char *name)
{
    const slot_t  *s;

    s = lookup(c, name);

    return s == NULL || s->t.n_dims == 0 ? 0 : s->t.dims[0];
}


uint64_t
vlm_checkpoint_elements(const vlm_checkpoint_t *c, const char *but)
{
    uint32_t             i, k;
    uint64_t             n, sum;
    const vlm_tensor_t  *t;

    for (sum = 0, i = 0; i < c->n; i++) {
        t = &c->slots[i].t;

        if (c->slots[i].part || (but != NULL && strcmp(t->name, but) == 0)) {
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
    uint32_t       i, n;
    const slot_t  *first;

    first = NULL;
    n = 0;

    for (i = 0; i < c->n; i++) {
        if (!c->slots[i].asked && !c->slots[i].part && !c->slots[i].spare
            && strcmp(c->slots[i].t.name, but) != 0)
        {
            first = first == NULL ? &c->slots[i] : first;
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

    for (*own = n = i = 0; i < c->n; i++) {
        t = &c->slots[i].t;

        if (!c->slots[i].part && (t->made != NULL ? t->made->lossy
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
    return c->n;
}


const vlm_tensor_t *
vlm_checkpoint_tensor(const vlm_checkpoint_t *c, uint32_t i)
{
    return c->slots[i].part ? NULL : &c->slots[i].t;
}


const vlm_tensor_t *
vlm_checkpoint_look(const vlm_checkpoint_t *c, const char *name)
{
    slot_t  *s = lookup(c, name);

    return s == NULL ? NULL : &s->t;
}


const vlm_tensor_t *
vlm_checkpoint_part(vlm_checkpoint_t *c, const char *name)
{
    slot_t  *s = lookup(c, name);

    if (s == NULL) {
        return NULL;
    }

    s->part = 1;

    return &s->t;
}


void
vlm_checkpoint_spare(vlm_checkpoint_t *c, const char *name)
{
    slot_t  *s = lookup(c, name);

    if (s != NULL) {
        s->spare = 1;
    }
}


int
vlm_checkpoint_make(vlm_checkpoint_t *c, const char *name, vlm_made_t *m, const uint64_t *dims,
                    uint32_t n_dims, vlm_err_t *err)
{
    slot_t        *s;
    vlm_tensor_t   t;

    memset(&t, 0, sizeof(t));
    t.made = m;
    t.file = m->part[0].file;
    t.n_dims = n_dims;
    memcpy(t.dims, dims, n_dims * sizeof(*dims));

    s = lookup(c, name);

    if (s == NULL) {
        return add(c, &t, name, err);
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
    uint32_t       i;
    uint64_t       facts[3];
    struct stat    st;
    const shard_t *shard;
    vlm_sha256_t   s;

    vlm_sha256_start(&s);

    for (i = 0; i < c->n_shards; i++) {
        shard = &c->shards[i];

        if (stat(shard->path, &st) != 0) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s", shard->path, strerror(errno));
        }

        facts[0] = shard->file.bytes;
        facts[1] = (uint64_t) st.st_mtim.tv_sec;
        facts[2] = (uint64_t) st.st_mtim.tv_nsec;

        vlm_sha256_add(&s, shard->name, strlen(shard->name) + 1);
        vlm_sha256_add(&s, facts, sizeof(facts));
        add_pieces(&s, &shard->file);
    }

    for (i = 0; i < c->n; i++) {
        if (c->slots[i].t.made != NULL) {
            add_made(&s, c->slots[i].t.made);
        }
    }

    vlm_sha256_end(&s, id);

    return 0;
}
