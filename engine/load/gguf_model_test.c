/*
 * Models of two GGUF files, with a key or a tensor changed in one of them: what is refused, and
 * whether the sentence names the file's own key.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/stat.h>

#include "load/files.h"
#include "load/fixture.h"
#include "load/gguf_model.h"

#define SEEDS     "t/fixtures/fuzz/gguf_model_fuzz"
#define DEEP      "v.deepstack.1.norm.weight"
#define MAX_FILE  16384

enum { U32 = 4, F32 = 6, BOOL = 7, TEXT = 8, ARRAY = 9 };

typedef struct {                       /* a file that a test writes */
    uint8_t  data[MAX_FILE];
    size_t   n;
} file_t;

typedef struct {                       /* a change; type 0: the key is left out */
    const char  *key;
    uint32_t     type;
    const char  *text;
    double       number;
    uint32_t     n;                    /* of a list of such numbers; 0: it is none */
} edit_t;

typedef struct {
    const char  *from, *to;            /* a tensor's name */
} rename_t;


/* ---- files --------------------------------------------------------------- */

static void
put(file_t *f, const void *data, size_t n)
{
    assert_true(f->n + n <= MAX_FILE);
    memcpy(f->data + f->n, data, n);
    f->n += n;
}


static void
put_number(file_t *f, uint64_t n, size_t bytes)
{
    put(f, &n, bytes);                 /* of a little-endian machine */
}


static void
put_text(file_t *f, const char *text, size_t n)
{
    put_number(f, n, 8);
    put(f, text, n);
}


static size_t
elements_bytes(const vlm_gguf_value_t *v)
{
    size_t          i;
    const uint8_t  *at = v->data;

    static const uint8_t  bytes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

    for (i = 0; v->type == TEXT && i < v->n; i++) {
        (void) vlm_gguf_next(&at);
    }

    return v->type == TEXT ? (size_t) (at - v->data) : v->n * bytes[v->type];
}


static void
put_value(file_t *f, const vlm_gguf_value_t *v)
{
    put_text(f, v->key.p, v->key.n);

    if (v->array) {
        put_number(f, ARRAY, 4);
    }

    put_number(f, v->type, 4);

    if (v->array) {
        put_number(f, v->n, 8);
    }

    put(f, v->data, elements_bytes(v));
}


static void
put_edit(file_t *f, const edit_t *e)
{
    float     real = (float) e->number;
    uint32_t  i;

    put_text(f, e->key, strlen(e->key));

    if (e->n > 0) {
        put_number(f, ARRAY, 4);
    }

    put_number(f, e->type, 4);

    if (e->n > 0) {
        put_number(f, e->n, 8);
    }

    for (i = 0; i < (e->n > 0 ? e->n : 1); i++) {
        if (e->type == TEXT) {
            put_text(f, e->text, strlen(e->text));
        } else if (e->type == F32) {
            put(f, &real, 4);
        } else {
            put_number(f, (uint64_t) e->number, e->type == BOOL ? 1 : 4);
        }
    }
}


static uint32_t
type_of(const vlm_tensor_t *t)
{
    char      name[12];
    uint32_t  type;

    for (type = 0; type < 40; type++) {
        if (vlm_format_gguf(type, name) == t->format && strcmp(name, t->dtype) == 0) {
            return type;
        }
    }

    fail();

    return 0;
}


static void
put_tensors(file_t *f, const vlm_gguf_t *g, const rename_t *r)
{
    uint32_t     i, k;
    uint64_t     offset;
    const char  *name;

    for (offset = 0, i = 0; i < g->n_tensors; i++) {
        name = g->tensor[i].name;
        name = r->from != NULL && strcmp(name, r->from) == 0 ? r->to : name;
        put_text(f, name, strlen(name));
        put_number(f, g->tensor[i].n_dims, 4);

        for (k = g->tensor[i].n_dims; k > 0; k--) {
            put_number(f, g->tensor[i].dims[k - 1], 8);
        }

        put_number(f, type_of(&g->tensor[i]), 4);
        put_number(f, offset, 8);
        offset += (g->tensor[i].bytes + 31) / 32 * 32;
    }

    for (i = 0; i < g->n_tensors; i++) {
        f->n = (f->n + 31) / 32 * 32;
        put(f, g->tensor[i].data, g->tensor[i].bytes);
    }
}


/* Writes a file again with one key changed or added, and with a tensor renamed. */
static void
rewrite_file(file_t *f, const vlm_gguf_t *g, const edit_t *e, const rename_t *r)
{
    int       there;
    uint32_t  i;

    there = e->key != NULL && vlm_gguf_find(g, e->key) != NULL;
    memset(f, 0, sizeof(*f));
    put(f, "GGUF", 4);
    put_number(f, 3, 4);
    put_number(f, g->n_tensors, 8);
    put_number(f, g->n_values + (e->key != NULL && e->type != 0) - there, 8);

    for (i = 0; i < g->n_values; i++) {
        if (e->key == NULL || !vlm_gguf_same(g->value[i].key, e->key)) {
            put_value(f, &g->value[i]);
        }
    }

    if (e->key != NULL && e->type != 0) {
        put_edit(f, e);
    }

    put_tensors(f, g, r);
}


/* ---- models -------------------------------------------------------------- */

/* The tensors that a model asks for: all but mergers of blocks that the list does not name. */
static void
use_tensors(vlm_checkpoint_t *c)
{
    uint32_t     i;
    const char  *name;

    for (i = 0; i < vlm_checkpoint_count(c); i++) {
        if (vlm_checkpoint_tensor(c, i) != NULL) {
            name = vlm_checkpoint_tensor(c, i)->name;

            if (strstr(name, "deepstack") == NULL
                || strcmp(name, "visual.deepstack_merger_list.0.norm.weight") == 0)
            {
                vlm_checkpoint_spare(c, name);
            }
        }
    }
}


/* Opens a seed's files, of which one is changed, as far as its weights; frees all. */
static int
open_model(const char *seed, const edit_t *e, const rename_t *r, vlm_config_t *c, vlm_err_t *err)
{
    int                rc, in_vision;
    char               path[256];
    file_t            *text, *vision;
    size_t             at;
    vlm_file_t         f;
    vlm_gguf_model_t   m, changed;
    vlm_checkpoint_t  *weights = NULL;
    vlm_tokenizer_t   *tokenizer = NULL;

    static const edit_t    nothing;
    static const rename_t  none;

    snprintf(path, sizeof(path), SEEDS "/%s", seed);
    memset(err, 0, sizeof(*err));
    assert_int_equal(vlm_file_map(&f, path, 0, 0), 0);

    for (at = f.bytes - 4; memcmp(f.data + at, "GGUF", 4) != 0; at--) { /* void */ }

    assert_int_equal(vlm_gguf_model_parse(&m, f.data, at, f.data + at, f.bytes - at, err), 0);

    in_vision = (e->key != NULL && strncmp(e->key, "clip.", 5) == 0)
                || (r->from != NULL && strncmp(r->from, "v.", 2) == 0);
    text = malloc(sizeof(*text));
    vision = malloc(sizeof(*vision));
    assert_non_null(text);
    assert_non_null(vision);
    rewrite_file(text, &m.text, in_vision ? &nothing : e, in_vision ? &none : r);
    rewrite_file(vision, &m.vision, in_vision ? e : &nothing, in_vision ? r : &none);
    vlm_gguf_model_close(&m);

    rc = vlm_gguf_model_parse(&changed, text->data, text->n, vision->data, vision->n, err) != 0
         || vlm_gguf_config(&changed, c, err) != 0
         || (tokenizer = vlm_gguf_tokenizer(&changed, err)) == NULL
         || (weights = vlm_gguf_weights(&changed, c, err)) == NULL ? -1 : 0;

    if (rc == 0) {
        use_tensors(weights);
        rc = vlm_checkpoint_unused(weights, "", err);
    }

    vlm_tokenizer_close(tokenizer);
    vlm_checkpoint_close(weights);
    vlm_gguf_model_close(&changed);
    vlm_file_close(&f);
    free(text);
    free(vision);

    return rc;
}


static void
takes(const char *seed, edit_t e)
{
    vlm_err_t     err;
    vlm_config_t  c;

    static const rename_t  none;

    if (open_model(seed, &e, &none, &c, &err) != 0) {
        fail_msg("%s: %s", e.key == NULL ? "" : e.key, err.text);
    }
}


static void
refuses(const char *seed, edit_t e, const char *says)
{
    vlm_err_t     err;
    vlm_config_t  c;

    static const rename_t  none;

    assert_int_equal(open_model(seed, &e, &none, &c, &err), -1);

    if (strstr(err.text, says) == NULL) {
        fail_msg("\"%s\" should say \"%s\"", err.text, says);
    }
}


static void
a_file_that_was_written_again_is_taken(void **state)
{
    (void) state;

    takes("qwen2_5", (edit_t) { 0 });
    takes("qwen3", (edit_t) { 0 });
}


/* ---- tests --------------------------------------------------------------- */

static void
a_setting_is_refused_by_the_files_own_key(void **state)
{
    (void) state;

    refuses("qwen2_5", (edit_t) { "qwen2vl.embedding_length", U32, NULL, 0, 0 },
            "text: qwen2vl.embedding_length is 0, expected");
    refuses("qwen2_5", (edit_t) { "qwen2vl.block_count", 0, NULL, 0, 0 },
            "text: qwen2vl.block_count is missing, expected a whole number");
    refuses("qwen2_5", (edit_t) { "qwen2vl.rope.dimension_sections", U32, NULL, 3, 3 },
            "qwen2vl.rope.dimension_sections is 3, 3, 3, the sum should be");
    refuses("qwen2_5", (edit_t) { "clip.vision.window_size", U32, NULL, 7, 0 },
            "clip.vision.window_size 7 is no multiple of");
    refuses("qwen2_5", (edit_t) { "clip.vision.embedding_length", U32, NULL, 9, 0 },
            "clip.vision.embedding_length 9 in 2 heads");
    refuses("qwen3", (edit_t) { "clip.vision.projection_dim", U32, NULL, 16, 0 },
            "clip.vision.projection_dim is 16, the language model's");
    refuses("qwen3", (edit_t) { "clip.vision.image_min_pixels", U32, NULL, 0, 0 },
            "mmproj: clip.vision.image_min_pixels is 0, expected");
    refuses("qwen2_5", (edit_t) { "qwen2vl.rope.dimension_sections", U32, NULL, 1, 4 },
            "qwen2vl.rope.dimension_sections is 1 as its number 4");
    refuses("qwen2_5", (edit_t) { "qwen2vl.attention.head_count", U32, NULL, 2, 2 },
            "qwen2vl.attention.head_count is a list of 2 values, one number is understood");
    refuses("qwen2_5", (edit_t) { "tokenizer.ggml.eos_token_id", U32, NULL, 9999, 0 },
            "text: tokenizer.ggml.eos_token_id[0] is 9999, expected");
    refuses("qwen3", (edit_t) { "qwen3vl.rope.freq_base", F32, NULL, (double) (1 / 0.0f), 0 },
            "text: qwen3vl.rope.freq_base is inf");
}


static void
a_control_token_is_there_once(void **state)
{
    (void) state;

    refuses("qwen3", (edit_t) { "tokenizer.ggml.tokens", TEXT, "<|vision_end|>", 0, 263 },
            "text: tokens 0 and 1 of tokenizer.ggml.tokens are both <|vision_end|>");
}


static void
a_merger_that_the_list_does_not_name_is_refused_by_its_name(void **state)
{
    size_t        i;
    vlm_err_t     err;
    vlm_config_t  c;
    rename_t      r = { DEEP, NULL };

    static const edit_t       nothing;
    static const char *const  names[] = {
        "v.deepstack.0.norm.weight", "v.deepstack.2.norm.weight", "v.deepstack.norm.weight",
        "v.blk.1.deepstack.norm.weight", "v.deepstack.18446744073709551617.norm.weight"
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        r.to = names[i];
        assert_int_equal(open_model("qwen3", &nothing, &r, &c, &err), -1);
        assert_int_equal(c.vision.deep, 1);

        if (strstr(err.text, "mmproj: 1 tensors that the metadata has no place for, the first is ")
            == NULL || strstr(err.text, names[i]) == NULL)
        {
            fail_msg("%s: %s", names[i], err.text);
        }
    }
}


static void
keys_that_need_other_arithmetic_are_refused_and_named(void **state)
{
    size_t  i;

    static const struct {
        const char  *seed;
        edit_t       e;
        const char  *says;
    } wrong[] = {
        { "qwen2_5", { "qwen2vl.rope.scaling.type", TEXT, "yarn", 0, 0 },
          "text: qwen2vl.rope.scaling.type is \"yarn\", only \"default\" is understood" },
        { "qwen2_5", { "qwen2vl.rope.scaling.factor", F32, NULL, 4, 0 },
          "text: qwen2vl.rope.scaling.type is \"linear\", only \"default\" is understood" },
        { "qwen3", { "qwen3vl.rope.scale_linear", F32, NULL, 2, 0 }, "rope.scale_linear is 2" },
        { "qwen3", { "qwen3vl.rope.scaling.attn_factor", F32, NULL, 0.5, 0 },
          "rope.scaling.attn_factor is 0.5" },
        { "qwen3", { "qwen3vl.rope.scaling.yarn_beta_fast", F32, NULL, 16, 0 },
          "rope.scaling.yarn_beta_fast is 16, which is not computed: only 32 is understood" },
        { "qwen3", { "qwen3vl.rope.scaling.yarn_ext_factor", F32, NULL, 0.5, 0 },
          "yarn_ext_factor is 0.5" },
        { "qwen3", { "qwen3vl.rope.dimension_count", U32, NULL, 2, 0 },
          "qwen3vl.rope.dimension_count is 2, which is not computed: only 4 is understood" },
        { "qwen3", { "qwen3vl.attention.value_length", U32, NULL, 8, 0 }, "value_length is 8" },
        { "qwen2_5", { "qwen2vl.attention.sliding_window", U32, NULL, 4096, 0 },
          "qwen2vl.attention.sliding_window is 4096" },
        { "qwen2_5", { "qwen2vl.attention.sliding_window", BOOL, NULL, 0, 2 },
          "qwen2vl.attention.sliding_window is a list" },
        { "qwen2_5", { "qwen2vl.attention.scale", F32, NULL, 0.25, 0 }, "attention.scale is 0.25" },
        { "qwen2_5", { "qwen2vl.attention.causal", BOOL, NULL, 0, 0 }, "attention.causal is 0" },
        { "qwen3", { "qwen3vl.attn_logit_softcapping", F32, NULL, 30, 0 }, "softcapping is 30" },
        { "qwen3", { "qwen3vl.final_logit_softcapping", F32, NULL, 30, 0 }, "softcapping is 30" },
        { "qwen3", { "qwen3vl.logit_scale", F32, NULL, 0.5, 0 }, "qwen3vl.logit_scale is 0.5" },
        { "qwen3", { "qwen3vl.expert_count", U32, NULL, 128, 0 }, "expert_count is 128" },
        { "qwen3", { "qwen3vl.n_deepstack_layers", U32, NULL, 3, 0 },
          "text: qwen3vl.n_deepstack_layers is 3, which is not computed: only 1 is understood" },
        { "qwen2_5", { "qwen2vl.n_deepstack_layers", U32, NULL, 3, 0 }, "only 0 is understood" },
        { "qwen2_5", { "clip.use_gelu", BOOL, NULL, 1, 0 }, "mmproj: clip.use_gelu is 1" },
        { "qwen3", { "clip.use_silu", BOOL, NULL, 1, 0 }, "clip.use_silu is 1" },
        { "qwen3", { "clip.vision.n_wa_pattern", U32, NULL, 8, 0 }, "n_wa_pattern is 8" },
        { "qwen3", { "clip.vision.attention.layer_norm_epsilon", F32, NULL, 1e-5, 0 },
          "layer_norm_epsilon is 9.99999975e-06, which is not computed: only 1e-06 is" },
        { "qwen2_5", { "clip.vision.wa_layer_indexes", U32, NULL, 7, 4 }, "indexes is a list" },
        { "qwen2_5", { "clip.vision.feature_layer", U32, NULL, 7, 1 }, "layer is a list" }
    };

    (void) state;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        refuses(wrong[i].seed, wrong[i].e, wrong[i].says);
    }

    takes("qwen2_5", (edit_t) { "qwen2vl.rope.scaling.type", TEXT, "none", 0, 0 });
    takes("qwen2_5", (edit_t) { "qwen2vl.rope.scaling.factor", F32, NULL, 1, 0 });
    takes("qwen2_5", (edit_t) { "clip.use_silu", BOOL, NULL, 1, 0 });
    takes("qwen3", (edit_t) { "qwen3vl.attention.value_length", U32, NULL, 4, 0 });
    takes("qwen3", (edit_t) { "qwen3vl.n_deepstack_layers", U32, NULL, 1, 0 });
    takes("qwen3", (edit_t) { "clip.vision.attention.layer_norm_epsilon", F32, NULL, 1e-6, 0 });
}


static void
a_table_of_rates_with_a_factor_besides_is_refused(void **state)
{
    vlm_err_t     err;
    vlm_config_t  c;

    static const edit_t    factor = { "qwen2vl.rope.scaling.factor", F32, NULL, 4, 0 };
    static const rename_t  table = { "output_norm.weight", "rope_freqs.weight" };

    (void) state;

    assert_int_equal(open_model("qwen2_5", &factor, &table, &c, &err), -1);

    if (strstr(err.text, "is \"table and linear\"") == NULL) {
        fail_msg("%s", err.text);
    }
}


#define CONTROL_ID  259                /* of the seed's vocabulary */

static void
padding_ends_an_answer_if_it_is_a_control_token(void **state)
{
    vlm_err_t     err;
    vlm_config_t  c;
    edit_t        padding = { "tokenizer.ggml.padding_token_id", U32, NULL, 0, 0 };

    static const rename_t  none;

    (void) state;

    assert_int_equal(open_model("qwen2_5", &padding, &none, &c, &err), 0);
    assert_int_equal(c.generation.n_eos, 1);
    padding.number = CONTROL_ID;
    assert_int_equal(open_model("qwen2_5", &padding, &none, &c, &err), 0);
    assert_int_equal(c.generation.n_eos, 2);
    assert_int_equal(c.generation.eos[1], CONTROL_ID);
}


static void
a_split_file_is_refused_with_the_tool_that_merges_its_parts(void **state)
{
    (void) state;

    refuses("qwen3", (edit_t) { "split.count", U32, NULL, 3, 0 },
            "text: part 1 of 3 of a GGUF file that was split (split.no, split.count): put the "
            "parts together with \"llama-gguf-split --merge ");
    takes("qwen3", (edit_t) { "split.count", U32, NULL, 1, 0 });
}


/* ---- files that are none -------------------------------------------------- */

static void
says_of(const char *model, const char *mmproj, const char *says)
{
    vlm_err_t     err = { 0 };
    vlm_conf_t    conf = { 0 };
    vlm_config_t  c;

    conf.model = model;
    conf.mmproj = mmproj;
    assert_int_equal(vlm_files_config(&conf, &c, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);

    if (strstr(err.text, says) == NULL) {
        fail_msg("\"%s\" should say \"%s\"", err.text, says);
    }
}


/* For the text file and for mmproj; without mmproj, too. */
static void
says_of_all(const char *path, const char *says)
{
    says_of(path, "t/fixtures/gguf/mmproj-bf16.gguf", says);
    says_of("t/fixtures/gguf/bf16.gguf", path, says);
    says_of(path, NULL, says);
}


static void
a_file_that_is_no_gguf_file_is_refused_by_what_it_is(void **state)
{
    char  dir[64], path[128];

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    snprintf(path, sizeof(path), "%s/m.gguf", dir);

    says_of_all(path, "m.gguf: No such file or directory: correct the path, or download the file");

    fixture_text(dir, "m.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n");
    says_of_all(path, "m.gguf: a Git LFS pointer, the file itself was not downloaded: run \"git "
                "lfs pull\" in its directory");

    fixture_text(dir, "m.gguf", "");
    says_of_all(path, "m.gguf: the file is empty: it was not downloaded to its end");
    fixture_text(dir, "m.gguf", "<html>");
    says_of_all(path, "m.gguf: not a GGUF file, which begins with \"GGUF\"");

    if (geteuid() != 0) {              /* root may read any file */
        assert_int_equal(chmod(path, 0), 0);
        says_of_all(path, "m.gguf: Permission denied: let the user of this process read it");
    }

    fixture_remove(dir);
    assert_int_equal(fixture_dir(dir), 0);
    says_of("t/fixtures/gguf/bf16.gguf", dir, ": not a regular file");
    says_of(dir, "t/fixtures/gguf/bf16.gguf", "not a GGUF file, and mmproj is for one");
    fixture_remove(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_file_that_was_written_again_is_taken),
        cmocka_unit_test(a_setting_is_refused_by_the_files_own_key),
        cmocka_unit_test(a_control_token_is_there_once),
        cmocka_unit_test(a_merger_that_the_list_does_not_name_is_refused_by_its_name),
        cmocka_unit_test(keys_that_need_other_arithmetic_are_refused_and_named),
        cmocka_unit_test(a_table_of_rates_with_a_factor_besides_is_refused),
        cmocka_unit_test(padding_ends_an_answer_if_it_is_a_control_token),
        cmocka_unit_test(a_split_file_is_refused_with_the_tool_that_merges_its_parts),
        cmocka_unit_test(a_file_that_is_no_gguf_file_is_refused_by_what_it_is)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
