/* PEFT's files of an adapter: see the header. */

#include "load/adapter.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"

#define CONFIG       "adapter_config.json"
#define WEIGHTS      "adapter_model.safetensors"
#define PICKLE       "adapter_model.bin"
#define CHECKPOINT   "checkpoint-"
#define PREFIX       "base_model.model."
#define MAX_CONFIG   (1u << 20)        /* bytes */
#define MAX_TENSORS  (1u << 16)
#define MAX_STARS    2                 /* of a pattern */


int
vlm_adapter_is_name(const char *name)
{
    const char  *p;

    for (p = name; *p != '\0'; p++) {
        if (!isalnum((unsigned char) *p) && strchr("._-", *p) == NULL) {
            return 0;
        }
    }

    return name[0] != '\0' && name[0] != '.' && p - name < VLM_ADAPTER_NAME;
}


/* ---- adapter_config.json ------------------------------------------------- */

/* Settings that must be absent, null, false, empty or of this text. */
static const struct {
    const char  *key, *text;
} plain[] = {
    { "use_dora", NULL }, { "use_qalora", NULL }, { "modules_to_save", NULL }, { "bias", "none" },
    { "trainable_token_indices", NULL }, { "target_parameters", NULL },
    { "layer_replication", NULL }, { "alora_invocation_tokens", NULL }, { "fan_in_fan_out", NULL },
    { "arrow_config", NULL }, { "use_bdlora", NULL }, { "peft_type", "LORA" }
};

/* Beginnings of init_lora_weights with which the base's own weights are others, too. */
static const char  *const changed[] = { "pissa", "olora", "corda", "lora_ga" };


static int
refuse(const char *name, const char *key, const vlm_json_t *j, vlm_err_t *err)
{
    const char  *text = vlm_json_text(j);

    return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": %s is %s, which is not supported", name, key,
                    text != NULL ? vlm_printable(text) : vlm_json_is_bool(j) ? "true" : "set");
}


static int
check_plain(const vlm_json_t *top, const char *name, vlm_err_t *err)
{
    size_t             i;
    const char        *text;
    const vlm_json_t  *j;

    for (i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
        j = vlm_json_get(top, plain[i].key);
        text = vlm_json_text(j);

        if (vlm_json_is_true(j)
            && (plain[i].text == NULL || text == NULL || strcmp(text, plain[i].text) != 0))
        {
            return refuse(name, plain[i].key, j, err);
        }
    }

    j = vlm_json_get(top, "init_lora_weights");
    text = vlm_json_text(j);

    for (i = 0; text != NULL && i < sizeof(changed) / sizeof(changed[0]); i++) {
        if (strncmp(text, changed[i], strlen(changed[i])) == 0) {
            return refuse(name, "init_lora_weights", j, err);
        }
    }

    return 0;
}


static int
read_alpha(const vlm_json_t *j, const char *name, const char *key, double *alpha, vlm_err_t *err)
{
    *alpha = vlm_json_number(j, NAN);

    if (!(fabs(*alpha) <= 1e6)) {
        return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": %s is not a number from -1e6 to 1e6",
                        name, key);
    }

    return 0;
}


/*
 * Patterns are regular expressions.  Those that are used are names: letters, digits, "_" and "-";
 * "." is any character, "\." a dot, "\d" a digit, "*" and "+" repeat what is before them, and "|"
 * is between alternatives.
 */
static int
is_pattern(const char *p)
{
    uint32_t  stars;

    for (stars = 0; *p != '\0'; p++) {
        if (*p == '\\') {
            p++;

            if (*p != '.' && *p != 'd') {
                return 0;
            }

        } else if (*p == '*' || *p == '+') {
            stars++;

        } else if (!isalnum((unsigned char) *p) && strchr("_-.|", *p) == NULL) {
            return 0;
        }
    }

    return stars <= MAX_STARS;
}


static int
fits(const char *p, char c)
{
    return c != '\0' && (p[0] == '\\' ? (p[1] == 'd' ? isdigit((unsigned char) c) : c == p[1])
                                      : p[0] == '.' || p[0] == c);
}


/* 1: the alternative at p is the whole text. */
static int
matches(const char *p, const char *text)
{
    size_t  n;

    if (*p == '\0' || *p == '|') {
        return *text == '\0';
    }

    n = *p == '\\' ? 2 : 1;

    if (p[n] != '*' && p[n] != '+') {
        return fits(p, *text) && matches(p + n, text + 1);
    }

    if (p[n] == '+') {
        if (!fits(p, *text)) {
            return 0;
        }

        text++;
    }

    for ( ;; text++) {
        if (matches(p + n + 1, text)) {
            return 1;
        }

        if (!fits(p, *text)) {
            return 0;
        }
    }
}


/* As PEFT's: one alternative is the module's name, or what follows one of its dots. */
static int
is_of(const char *pattern, const char *module)
{
    const char  *p, *at;

    for (p = pattern; p != NULL; p = strchr(p, '|'), p = p == NULL ? NULL : p + 1) {
        for (at = module; at != NULL; at = strchr(at, '.'), at = at == NULL ? NULL : at + 1) {
            if (matches(p, at)) {
                return 1;
            }
        }
    }

    return 0;
}


static int
read_patterns(vlm_adapter_config_t *c, const vlm_json_t *object, const char *name, vlm_err_t *err)
{
    const char        *key;
    const vlm_json_t  *j;

    for (j = vlm_json_first(object); j != NULL; j = vlm_json_next(j)) {
        key = vlm_json_key(j);

        if (key == NULL || strlen(key) >= VLM_ADAPTER_PATTERN || !is_pattern(key)) {
            return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": alpha_pattern has \"%s\", which is "
                            "not supported", name, vlm_printable(key));
        }

        if (c->n_patterns == VLM_ADAPTER_PATTERNS) {
            return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": alpha_pattern has more than %d "
                            "entries", name, VLM_ADAPTER_PATTERNS);
        }

        strcpy(c->pattern[c->n_patterns].text, key);

        if (read_alpha(j, name, "alpha_pattern", &c->pattern[c->n_patterns].alpha, err) != 0) {
            return -1;
        }

        c->n_patterns++;
    }

    return 0;
}


static int
read_config(vlm_adapter_config_t *c, const vlm_json_t *top, const char *name, vlm_err_t *err)
{
    const char  *base;

    if (!vlm_json_is_object(top)) {
        return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": " CONFIG " is no object", name);
    }

    base = vlm_json_text(vlm_json_get(top, "base_model_name_or_path"));
    (void) snprintf(c->base, sizeof(c->base), "%s", base == NULL ? "" : base);
    c->rslora = vlm_json_is_true(vlm_json_get(top, "use_rslora"));

    return check_plain(top, name, err) != 0
           || read_alpha(vlm_json_get(top, "lora_alpha"), name, "lora_alpha", &c->alpha, err) != 0
           ? -1 : read_patterns(c, vlm_json_get(top, "alpha_pattern"), name, err);
}


int
vlm_adapter_config(vlm_adapter_config_t *c, const char *name, const void *data, size_t bytes,
                   vlm_err_t *err)
{
    int          rc;
    vlm_json_t  *top;

    memset(c, 0, sizeof(*c));

    top = vlm_json_named(data, bytes, CONFIG, err);
    if (top == NULL) {
        return -1;
    }

    rc = read_config(c, top, name, err);
    vlm_json_free(top);

    return rc;
}


double
vlm_adapter_scale(const vlm_adapter_config_t *c, const char *module, uint32_t r)
{
    double    alpha = c->alpha;
    uint32_t  i;

    for (i = 0; i < c->n_patterns; i++) {
        if (is_of(c->pattern[i].text, module)) {
            alpha = c->pattern[i].alpha;
            break;
        }
    }

    return alpha / (c->rslora ? sqrt(r) : r);
}


/* ---- tensors ------------------------------------------------------------- */

static const struct {
    const char          *end;
    vlm_adapter_kind_t   kind;
} kinds[] = {
    { ".lora_A.weight", VLM_ADAPTER_A }, { ".lora_B.weight", VLM_ADAPTER_B },
    { ".lora_B.bias", VLM_ADAPTER_SHIFT }, { ".lora_embedding_A", VLM_ADAPTER_TABLE_A },
    { ".lora_embedding_B", VLM_ADAPTER_TABLE_B }, { ".base_layer.weight", VLM_ADAPTER_BASE }
};


vlm_adapter_kind_t
vlm_adapter_kind(const vlm_family_t *family, const char *tensor, char module[VLM_ADAPTER_MODULE])
{
    size_t              i, n, all;
    const vlm_alias_t  *a;

    module[0] = '\0';

    if (strncmp(tensor, PREFIX, sizeof(PREFIX) - 1) != 0) {
        return VLM_ADAPTER_OTHER;
    }

    tensor += sizeof(PREFIX) - 1;
    all = strlen(tensor);

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        n = strlen(kinds[i].end);

        if (all > n && strcmp(tensor + all - n, kinds[i].end) == 0) {
            break;
        }
    }

    if (i == sizeof(kinds) / sizeof(kinds[0])) {
        return VLM_ADAPTER_OTHER;
    }

    all -= n;

    for (a = family->aliases; a != NULL && a->from != NULL; a++) {
        n = strlen(a->from);

        if (all > n && strncmp(tensor, a->from, n) == 0) {
            all = (size_t) snprintf(module, VLM_ADAPTER_MODULE, "%s%.*s", a->to, (int) (all - n),
                                    tensor + n);
            return all < VLM_ADAPTER_MODULE ? kinds[i].kind : VLM_ADAPTER_OTHER;
        }
    }

    all = (size_t) snprintf(module, VLM_ADAPTER_MODULE, "%.*s", (int) (all > 4096 ? 4096 : all),
                            tensor);

    return all < VLM_ADAPTER_MODULE ? kinds[i].kind : VLM_ADAPTER_OTHER;
}


/* A vlm_tensor_fn. */
static int
take(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    uint32_t               room;
    vlm_adapter_file_t    *f = data;
    vlm_adapter_tensor_t  *to;

    if (f->n == f->room) {
        room = f->room == 0 ? 256 : 2 * f->room;
        to = room > MAX_TENSORS ? NULL : realloc(f->tensor, room * sizeof(*to));

        if (to == NULL) {
            return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": too many tensors", f->name);
        }

        f->tensor = to;
        f->room = room;
    }

    to = &f->tensor[f->n];
    to->t = *t;
    to->t.name = strdup(t->name);

    if (to->t.name == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "adapter \"%s\": no memory for a name", f->name);
    }

    to->kind = vlm_adapter_kind(f->family, t->name, to->module);
    f->n++;

    return 0;
}


/* ---- files --------------------------------------------------------------- */

/* Sets f->dir. */
static int
find_dir(vlm_adapter_file_t *f, const char *dir, vlm_err_t *err)
{
    DIR            *d;
    char            path[4096], *end;
    uint64_t        n, best;
    struct dirent  *e;

    (void) snprintf(f->dir, sizeof(f->dir), "%s", dir);

    d = opendir(dir);
    if (d == NULL) {
        return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": %.200s is not a directory", f->name, dir);
    }

    best = 0;

    while ((e = readdir(d)) != NULL) {
        if (strncmp(e->d_name, CHECKPOINT, sizeof(CHECKPOINT) - 1) != 0) {
            continue;
        }

        n = strtoull(e->d_name + sizeof(CHECKPOINT) - 1, &end, 10);

        if (*end == '\0' && n > best
            && snprintf(path, sizeof(path), "%s/%s", dir, e->d_name) < (int) sizeof(path)
            && vlm_file_exists(path, WEIGHTS))
        {
            best = n;
            strcpy(f->dir, path);
        }
    }

    (void) closedir(d);

    if (!vlm_file_exists(f->dir, WEIGHTS)) {
        return vlm_fail(err, VLM_EMODEL, "adapter \"%s\": %.200s has no " WEIGHTS "%s", f->name,
                        dir, vlm_file_exists(dir, PICKLE) ? ", and " PICKLE " is not read" : "");
    }

    return 0;
}


static int
open_config(vlm_adapter_file_t *f, vlm_err_t *err)
{
    int         rc;
    char        path[4096];
    vlm_file_t  settings;

    if (vlm_file_path(path, sizeof(path), f->dir, CONFIG, err) != 0
        || vlm_file_open(&settings, path, MAX_CONFIG, err) != 0)
    {
        return -1;
    }

    vlm_sha256_start(&f->sum);
    vlm_sha256_add(&f->sum, settings.data, settings.bytes);
    rc = vlm_adapter_config(&f->config, f->name, settings.data, settings.bytes, err);
    vlm_file_close(&settings);

    return rc;
}


static int
open_weights(vlm_adapter_file_t *f, vlm_err_t *err)
{
    uint64_t  bytes;

    return vlm_file_path(f->path, sizeof(f->path), f->dir, WEIGHTS, err) != 0
           || vlm_file_handle(&f->fd, &bytes, f->path, err) != 0
           ? -1 : vlm_safetensors_read(f->fd, bytes, f->path, take, f, err);
}


int
vlm_adapter_open(vlm_adapter_file_t *f, const char *name, const char *dir,
                 const vlm_family_t *family, vlm_err_t *err)
{
    memset(f, 0, sizeof(*f));
    f->family = family;
    f->fd = -1;

    if (!vlm_adapter_is_name(name)) {
        return vlm_fail(err, VLM_EINPUT, "\"%s\" is no name of an adapter: letters, digits, '.', "
                        "'_' and '-' are, up to %d", vlm_printable(name), VLM_ADAPTER_NAME - 1);
    }

    strcpy(f->name, name);

    if (find_dir(f, dir, err) != 0 || open_config(f, err) != 0 || open_weights(f, err) != 0) {
        vlm_adapter_close(f);
        return -1;
    }

    return 0;
}


int
vlm_adapter_read(vlm_adapter_file_t *f, const vlm_tensor_t *t, void *to, vlm_err_t *err)
{
    if (vlm_file_read_at(f->fd, to, t->bytes, t->at, f->path, err) != 0) {
        return -1;
    }

    vlm_sha256_add(&f->sum, t->name, strlen(t->name));
    vlm_sha256_add(&f->sum, to, t->bytes);

    return 0;
}


void
vlm_adapter_identity(vlm_adapter_file_t *f, uint8_t hash[32])
{
    vlm_sha256_end(&f->sum, hash);
}


void
vlm_adapter_close(vlm_adapter_file_t *f)
{
    uint32_t  i;

    for (i = 0; i < f->n; i++) {
        free((char *) f->tensor[i].t.name);
    }

    free(f->tensor);

    if (f->fd != -1) {
        (void) close(f->fd);
    }

    memset(f, 0, sizeof(*f));
    f->fd = -1;
}
