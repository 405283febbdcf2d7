/*
 * A directory of shards as one set of tensors.
 *
 * model.safetensors is read if it exists, as in the reference, else the shards of
 * model.safetensors.index.json.  The index must agree with the shards in both directions, so that
 * an incomplete download is reported at once and not at the first missing weight.
 */

#include "load/shards.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define SINGLE       "model.safetensors"
#define INDEX        "model.safetensors.index.json"
#define MAX_INDEX    (16u << 20)       /* bytes */


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

    return name[0] != '\0' && name[0] != '.' && p - name < VLM_SHARD_NAME;
}


static int
open_shard(vlm_checkpoint_t *c, const char *name, vlm_err_t *err)
{
    vlm_shard_t  *s;

    if (!is_plain(name)) {
        return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": \"%s\" is no plain file name", c->dir,
                        vlm_printable(name));
    }

    if (c->n_shards == VLM_MAX_SHARDS) {
        return vlm_fail(err, VLM_EMODEL, "%s/" INDEX ": more than %u files", c->dir,
                        VLM_MAX_SHARDS);
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

    return vlm_safetensors_parse(s->file.data, s->file.bytes, s->path, vlm_checkpoint_take, c, err);
}


static vlm_shard_t *
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
    vlm_slot_t        *s;
    uint32_t           i;
    const char        *file;
    const vlm_json_t  *j;

    for (j = vlm_json_first(map); j != NULL; j = vlm_json_next(j)) {
        file = vlm_json_text(j);
        s = vlm_slots_find(&c->all, vlm_checkpoint_fold(c, vlm_json_key(j), buf, sizeof(buf)));

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

    for (i = 0; i < c->all.n; i++) {
        if (!c->all.slot[i].indexed) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s is not in " INDEX,
                            c->shards[c->all.slot[i].t.file].path,
                            vlm_printable(c->all.slot[i].t.name));
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
    char    found[VLM_SHARD_NAME];
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
