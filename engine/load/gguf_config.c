/*
 * The settings of a model of two GGUF files.  They become the text of a config.json, which the
 * family then reads as it reads any other, with all its checks.
 */

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "load/gguf_model.h"
#include "load/quant.h"

#define MAX_JSON   16384               /* bytes of settings */
#define MAX_LIST   256                 /* numbers of a setting */
#define MAX_KEY    160

#define TOKENS     "tokenizer.ggml.tokens"
#define EOS        "tokenizer.ggml.eos_token_id"
#define CONTROL    3                   /* of "tokenizer.ggml.token_type" */

typedef struct {
    const vlm_gguf_model_t  *m;
    vlm_err_t               *err;
    size_t                   n;        /* bytes of json */
    char                     json[MAX_JSON];
} settings_t;


static void __attribute__((format(printf, 2, 3)))
put(settings_t *s, const char *fmt, ...)
{
    int      n;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(s->json + s->n, sizeof(s->json) - s->n, fmt, args);
    va_end(args);

    s->n += n > 0 ? (size_t) n : 0;
    s->n = s->n < sizeof(s->json) ? s->n : sizeof(s->json) - 1;
}


/* ---- settings that are keys ---------------------------------------------- */

/* A key of one of the files, which all begin alike. */
static const char *
key_name(const vlm_gguf_model_t *m, const vlm_gguf_t *g, const char *key, char name[MAX_KEY])
{
    if (g == &m->text) {
        (void) snprintf(name, MAX_KEY, "%s.%s", m->family->gguf->architecture, key);
    } else {
        (void) snprintf(name, MAX_KEY, VLM_GGUF_VISION "%s", key);
    }

    return name;
}


static const vlm_gguf_value_t *
find(const settings_t *s, const vlm_gguf_t *g, const char *key)
{
    char  name[MAX_KEY];

    return vlm_gguf_find(g, key_name(s->m, g, key, name));
}


static void
put_list(settings_t *s, const vlm_gguf_value_t *v, uint64_t most)
{
    double    x;
    uint64_t  i;

    put(s, "[");

    for (i = 0; i < most && vlm_gguf_number(v, i, &x) == 0; i++) {
        put(s, "%s%.17g", i == 0 ? "" : ",", x);
    }

    put(s, "]");
}


/* The numbers of the flags that are set. */
static void
put_flags(settings_t *s, const vlm_gguf_value_t *v)
{
    double       x;
    uint64_t     i;
    const char  *comma = "";

    put(s, "[");

    for (i = 0; i < MAX_LIST && vlm_gguf_number(v, i, &x) == 0; i++) {
        if (x != 0) {
            put(s, "%s%" PRIu64, comma, i);
            comma = ",";
        }
    }

    put(s, "]");
}


/* Every x-th of n layers: x - 1, 2 x - 1, and so on. */
static void
put_every(settings_t *s, double x, double n)
{
    uint32_t  i;

    put(s, "[");

    for (i = 1; x >= 1 && i <= MAX_LIST && i * x <= n; i++) {
        put(s, "%s%.9g", i == 1 ? "" : ",", i * x - 1);
    }

    put(s, "]");
}


/* One setting behind a comma. */
static void
put_setting(settings_t *s, const vlm_gguf_t *g, const vlm_gguf_key_t *key,
            const vlm_gguf_value_t *v, double x)
{
    double  n;

    put(s, ",\"%s\":", key->to);

    if (key->list != 0) {
        put_list(s, v, key->list);
    } else if (key->flags) {
        put_flags(s, v);
    } else if (key->every != NULL) {
        put_every(s, x, vlm_gguf_number(find(s, g, key->every), 0, &n) == 0 ? n : 0);
    } else {
        put(s, "%.17g", x);
    }
}


/* A setting is one number, or a list of which the numbers that nothing reads are 0. */
static int
check_setting(const settings_t *s, const vlm_gguf_t *g, const vlm_gguf_key_t *key,
              const vlm_gguf_value_t *v)
{
    char      name[MAX_KEY];
    double    x;
    uint64_t  i;

    (void) key_name(s->m, g, key->from, name);

    if (v->array && key->list == 0 && !key->flags) {
        return vlm_fail(s->err, VLM_EMODEL, "%s: %s is a list of %" PRIu64 " values, one number is "
                        "understood", g->path, name, v->n);
    }

    for (i = 0; i < MAX_LIST && vlm_gguf_number(v, i, &x) == 0; i++) {
        if (!isfinite(x) || (key->list != 0 && i >= key->list && x != 0)) {
            return vlm_fail(s->err, VLM_EMODEL, "%s: %s is %g as its number %" PRIu64, g->path,
                            name, x, i + 1);
        }
    }

    return 0;
}


/* The settings of a list that the file has. */
static int
put_settings(settings_t *s, const vlm_gguf_t *g, const vlm_gguf_key_t *key)
{
    double                   x;
    const vlm_gguf_value_t  *v;

    for ( /* void */ ; key->from != NULL; key++) {
        v = find(s, g, key->from);

        if (vlm_gguf_number(v, 0, &x) != 0) {
            continue;
        }

        if (check_setting(s, g, key, v) != 0) {
            return -1;
        }

        put_setting(s, g, key, v, x);
    }

    return 0;
}


/* ---- settings that are tokens and tensors -------------------------------- */

/* The id of a control token, which is found by its text. */
static int
put_control(settings_t *s, const vlm_gguf_key_t *key, const vlm_gguf_value_t *v)
{
    int64_t          id;
    uint64_t         i;
    const uint8_t   *at = v->data;

    for (id = -1, i = 0; i < v->n; i++) {
        if (!vlm_gguf_same(vlm_gguf_next(&at), key->from)) {
            continue;
        }

        if (id >= 0) {
            return vlm_fail(s->err, VLM_EMODEL, "%s: tokens %" PRId64 " and %" PRIu64 " of "
                            TOKENS " are both %s", s->m->text.path, id, i, key->from);
        }

        id = (int64_t) i;
    }

    if (id >= 0) {
        put(s, ",\"%s\":%" PRId64, key->to, id);
    }

    return 0;
}


static int
put_controls(settings_t *s)
{
    const vlm_gguf_key_t    *key;
    const vlm_gguf_value_t  *v;

    v = vlm_gguf_find(&s->m->text, TOKENS);

    for (key = s->m->family->gguf->tokens;
         vlm_gguf_is_texts(v) && key != NULL && key->from != NULL; key++)
    {
        if (put_control(s, key, v) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The ids that end an answer.  Qwen's padding does so, too; elsewhere it may be a usual token. */
static void
put_eos(settings_t *s)
{
    double             id, pad, kind;
    const vlm_gguf_t  *g = &s->m->text;

    if (vlm_gguf_number(vlm_gguf_find(g, EOS), 0, &id) != 0) {
        return;
    }

    put(s, ",\"eos_token_id\":[%.17g", id);

    if (vlm_gguf_number(vlm_gguf_find(g, "tokenizer.ggml.padding_token_id"), 0, &pad) == 0
        && pad != id && pad >= 0 && pad < VLM_MAX_VOCAB
        && vlm_gguf_number(vlm_gguf_find(g, "tokenizer.ggml.token_type"), (uint64_t) pad, &kind)
           == 0
        && kind == CONTROL)
    {
        put(s, ",%.17g", pad);
    }

    put(s, "]");
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


static void
put_rows(settings_t *s, const vlm_gguf_t *g, const char *tensor, const char *to)
{
    const vlm_tensor_t  *t = find_tensor(g, tensor);

    put(s, ",\"%s\":%" PRIu64, to, t == NULL ? 0 : t->dims[0]);
}


/* ---- how heads are rotated ------------------------------------------------ */

#define ROPE_TYPE   "rope.scaling.type"
#define ROPE_RATES  "rope_freqs.weight"

/* The numbers of a small tensor as a list. */
static void
put_values(settings_t *s, const vlm_tensor_t *t)
{
    float     x[MAX_LIST];
    uint64_t  i, n = t->n_dims == 1 && t->dims[0] <= MAX_LIST ? t->dims[0] : 0;

    t->format->read(t->data, 0, n, x);
    put(s, "[");

    for (i = 0; i < n; i++) {
        put(s, "%s%.9g", i == 0 ? "" : ",", isfinite(x[i]) ? (double) x[i] : 0);
    }

    put(s, "]");
}


static const vlm_gguf_key_t  rope_keys[] = {
    { "rope.dimension_sections", "mrope_section", 3, NULL, 0 },
    { "rope.scaling.factor", "factor", 0, NULL, 0 },
    { "rope.scaling.original_context_length", "original_max_position_embeddings", 0, NULL, 0 },
    { NULL, NULL, 0, NULL, 0 }
};


/*
 * How angles grow.  A way that has a factor and no name is linear, as for llama.cpp, which has a
 * table besides: that is refused by its name.
 */
static void
put_rope_type(settings_t *s)
{
    double             factor;
    const vlm_gguf_t  *g = &s->m->text;
    vlm_gguf_text_t    type = vlm_gguf_text(find(s, g, ROPE_TYPE));
    const char        *table = find_tensor(g, ROPE_RATES) == NULL ? NULL : "table";

    if (type.n != 0 && !vlm_gguf_same(type, "none")) {
        put(s, "%s%s%s", table == NULL ? "" : table, table == NULL ? "" : " and ",
            vlm_printable_part(type.p, type.n));

    } else if (type.n == 0 && vlm_gguf_number(find(s, g, "rope.scaling.factor"), 0, &factor) == 0
               && factor > 1)
    {
        put(s, table == NULL ? "linear" : "table and linear");

    } else {
        put(s, "%s", table == NULL ? "default" : table);
    }
}


/* Files of Llama 3 have a tensor of what the rate of each pair is divided by. */
static int
put_rope(settings_t *s)
{
    const vlm_tensor_t  *rates = find_tensor(&s->m->text, ROPE_RATES);

    put(s, ",\"rope_scaling\":{\"rope_type\":\"");
    put_rope_type(s);
    put(s, "\"");

    if (rates != NULL) {
        put(s, ",\"divisors\":");
        put_values(s, rates);
    }

    if (put_settings(s, &s->m->text, rope_keys) != 0) {
        return -1;
    }

    put(s, "}");

    return 0;
}


/* ---- the files of a configuration ---------------------------------------- */

static int
put_config(settings_t *s)
{
    const vlm_gguf_t      *text = &s->m->text, *vision = &s->m->vision;
    const vlm_gguf_key_t  *key;
    const vlm_gguf_map_t  *map = s->m->family->gguf;

    put(s, "{\"model_type\":\"%s\"", s->m->family->model_type);

    if (put_settings(s, text, map->text) != 0 || put_rope(s) != 0 || put_controls(s) != 0) {
        return -1;
    }

    put_eos(s);
    put_rows(s, text, map->table, "vocab_size");
    put(s, ",\"tie_word_embeddings\":%s", find_tensor(text, map->head) ? "false" : "true");

    if (map->projector == NULL) {
        put(s, "}");
        return 0;
    }

    put(s, ",\"vision_config\":{\"temporal_patch_size\":2%s",
        map->constant == NULL ? "" : map->constant);

    if (put_settings(s, vision, map->vision[0]) != 0
        || put_settings(s, vision, map->vision[1]) != 0)
    {
        return -1;
    }

    for (key = map->rows; key != NULL && key->from != NULL; key++) {
        put_rows(s, vision, key->from, key->to);
    }

    put(s, "}}");

    return 0;
}


static int
put_pixels(settings_t *s)
{
    if (s->m->family->gguf->projector == NULL) {
        return 0;
    }

    put(s, "{\"merge_size\":%u", s->m->family->gguf->merge);

    if (put_settings(s, &s->m->vision, s->m->family->gguf->pixels) != 0) {
        return -1;
    }

    put(s, "}");

    return 0;
}


/* ---- sentences ------------------------------------------------------------ */

static int
is_word(char c)
{
    return isalnum((unsigned char) c) || c == '_' || c == '.';
}


/* 1: the sentence had this setting as a word, and has the name in a file of the model now. */
static int
rename_one(const settings_t *s, const vlm_gguf_t *g, const char *setting, const char *name)
{
    char         text[sizeof(s->err->text)];
    size_t       n = strlen(setting);
    const char  *from, *at;

    from = strstr(s->err->text, ": ");     /* behind the path */

    for (at = from; at != NULL && (at = strstr(at, setting)) != NULL; at += n) {
        if (!is_word(at[-1]) && !is_word(at[n])) {
            (void) snprintf(text, sizeof(text), "%s%.*s%s%s", g->path, (int) (at - from), from,
                            name, at + n);
            memcpy(s->err->text, text, sizeof(text));
            return 1;
        }
    }

    return 0;
}


/* The same for each setting of a list, which a prefix begins. */
static int
rename_keys(const settings_t *s, const vlm_gguf_t *g, const vlm_gguf_key_t *key, const char *prefix)
{
    char         name[MAX_KEY], setting[MAX_KEY];

    for ( /* void */ ; key != NULL && key->from != NULL; key++) {
        (void) key_name(s->m, g, key->from, name);
        (void) snprintf(setting, sizeof(setting), "%s%s", prefix, key->to);

        if (rename_one(s, g, setting, name)) {
            return 1;
        }
    }

    return 0;
}


/* A sentence about config.json becomes one about the key that the setting is from. */
static void
rename_settings(const settings_t *s)
{
    char                   name[MAX_KEY];
    const vlm_gguf_t      *text = &s->m->text, *vision = &s->m->vision;
    const vlm_gguf_map_t  *map = s->m->family->gguf;

    (void) (rename_keys(s, vision, map->vision[0], "vision_config.")
            || rename_keys(s, vision, map->vision[1], "vision_config.")
            || rename_keys(s, text, map->text, "")
            || rename_keys(s, text, rope_keys, "rope_scaling.")
            || rename_keys(s, text, rope_keys, "")
            || rename_one(s, text, "rope_scaling.rope_type",
                          key_name(s->m, text, ROPE_TYPE, name))
            || rename_keys(s, vision, map->vision[0], "")
            || rename_keys(s, vision, map->vision[1], "")
            || rename_keys(s, vision, map->pixels, "")
            || rename_one(s, text, "vocab_size", map->table)
            || rename_one(s, text, "eos_token_id", EOS));
}


/* Which forms of blocks the tensors have: for the log. */
static void
describe(const vlm_gguf_model_t *m, vlm_quant_t *q)
{
    size_t               n;
    uint32_t             i, k;
    const vlm_gguf_t    *g[2] = { &m->text, &m->vision };
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


/* ---- what is not computed ------------------------------------------------- */

static int
check_one(const settings_t *s, const vlm_gguf_t *g, const char *key, const vlm_gguf_must_t *must,
          const vlm_config_t *c)
{
    char                     is[VLM_PRINTABLE], only[32];
    double                   x, want = must->number;
    uint32_t                 field;
    vlm_gguf_text_t          text;
    const vlm_gguf_value_t  *v = vlm_gguf_find(g, key);

    if (v == NULL) {
        return 0;
    }

    if (must->field != 0) {
        memcpy(&field, (const char *) c + must->field, sizeof(field));
        want = field;
    }

    text = vlm_gguf_text(v);

    if (must->text != NULL ? vlm_gguf_same(text, must->text)
        : !v->array && vlm_gguf_number(v, 0, &x) == 0 && (float) x == (float) want)
    {
        return 0;
    }

    if (v->array || vlm_gguf_number(v, 0, &x) != 0) {
        (void) snprintf(is, sizeof(is), "%s", v->array ? "a list"
                                              : vlm_printable_part(text.p, text.n));
    } else {
        (void) snprintf(is, sizeof(is), "%.9g", x);
    }

    (void) snprintf(only, sizeof(only), "%.9g", want);

    return vlm_fail(s->err, VLM_EMODEL, "%s: %s is %s, which is not computed: only %s is "
                    "understood", g->path, key, is, must->text != NULL ? must->text : only);
}


/* Keys that would change answers and are no settings here. */
static int
check_keys(const settings_t *s, const vlm_config_t *c)
{
    char                    key[MAX_KEY];
    size_t                  i;
    const vlm_gguf_map_t   *map = s->m->family->gguf;
    const vlm_gguf_must_t  *must;

    for (must = map->must; must->key != NULL; must++) {
        if (check_one(s, &s->m->text, key_name(s->m, &s->m->text, must->key, key), must, c) != 0) {
            return -1;
        }
    }

    for (i = 0; i < 2; i++) {
        for (must = map->must_vision[i]; must != NULL && must->key != NULL; must++) {
            (void) snprintf(key, sizeof(key), VLM_GGUF_CLIP "%s", must->key);

            if (check_one(s, &s->m->vision, key, must, c) != 0) {
                return -1;
            }
        }
    }

    return 0;
}


static int
parse(settings_t *s, vlm_config_t *c)
{
    size_t             config;
    vlm_config_file_t  file[VLM_CONFIG_FILES] = { 0 };

    if (put_config(s) != 0) {
        return -1;
    }

    config = s->n;

    if (put_pixels(s) != 0) {
        return -1;
    }

    if (s->n == sizeof(s->json) - 1) {
        return vlm_fail(s->err, VLM_EMODEL, "%s: settings of more than %u bytes", s->m->text.path,
                        MAX_JSON);
    }

    file[0].path = s->m->text.path;
    file[0].data = s->json;
    file[0].bytes = config;
    file[2].path = s->m->vision.path;
    file[2].data = s->n > config ? s->json + config : NULL;
    file[2].bytes = s->n - config;

    if (vlm_config_parse(c, file, s->err) != 0) {
        rename_settings(s);
        return -1;
    }

    return check_keys(s, c);
}


int
vlm_gguf_config(const vlm_gguf_model_t *m, vlm_config_t *c, vlm_err_t *err)
{
    int          rc;
    settings_t  *s;

    s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to read %s", m->text.path);
    }

    s->m = m;
    s->err = err;
    rc = parse(s, c);
    free(s);

    if (rc == 0) {
        describe(m, &c->quant);
    }

    return rc;
}
