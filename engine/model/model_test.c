/*
 * The model over a tiny checkpoint: the slices of a prompt, its slot and the old content of that
 * slot change no bit of the result.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <unistd.h>

#include "format/format.h"
#include "run/fixture.h"

#define SLOTS  3

static vlm_t  *v;


static int
open_engine(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.slots = SLOTS;
    v = vlm_tiny_open(&conf);

    return 0;
}


static int
open_deep(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.model = DEEP;
    conf.slots = SLOTS;
    v = vlm_tiny_open(&conf);

    return 0;
}


static int
close_engine(void **state)
{
    (void) state;
    vlm_close(v);

    return 0;
}


/* Rows [first, end) of a prompt in a slot, whose cache has those before. */
static void
forward(const vlm_prompt_t *p, uint32_t slot, uint32_t first, uint32_t end)
{
    uint32_t      i, source;
    vlm_batch_t   b;
    vlm_rows_t   *rows = &v->sched.rows;
    vlm_model_t  *m = &v->sched.model;

    vlm_rows_clear(rows);
    vlm_rows_sequence(rows, slot, first);

    for (i = first; i < end; i++) {
        source = p->source[i] == VLM_NONE ? VLM_NONE : p->source[i] + slot * m->vision.cells;
        vlm_rows_add(rows, p->token[i], source, p->pos + 3 * (size_t) i);
    }

    vlm_rows_pick(rows, NULL);
    vlm_rows_put(rows, v->ops, v->device, m->work.ids, m->work.pick, &b);
    assert_int_equal(vlm_text_forward(m, &b, NULL, NULL), 0);
    vlm_text_head(m, &b);
}


static void
encode(const vlm_prompt_t *p, uint32_t slot, uint32_t blocks)
{
    int           done;
    uint32_t      turns;
    vlm_model_t  *m = &v->sched.model;

    vlm_vision_begin(m, p->picture[0], slot);
    turns = 0;

    do {
        done = vlm_vision_blocks(m, blocks);
        turns++;
    } while (!done);

    assert_int_equal(turns, (m->config.vision.depth + blocks - 1) / blocks);
    vlm_vision_end(m);
}


/* The logits after the last row of a prompt that is read `slice` rows at a time. */
static float *
logits_of(const vlm_prompt_t *p, uint32_t slot, uint32_t slice)
{
    float     *copy;
    size_t     bytes;
    uint32_t   first, n;

    bytes = v->config.text.vocab * sizeof(float);

    for (first = 0; first < p->n; first += n) {
        n = p->n - first < slice ? p->n - first : slice;
        forward(p, slot, first, first + n);
    }

    copy = malloc(bytes);
    memcpy(copy, v->sched.model.work.logits, bytes);

    return copy;
}


static void
a_prompt_may_be_read_in_slices_of_any_length_and_in_any_slot(void **state)
{
    float                  *want, *got;
    uint32_t                i, slot;
    vlm_prompt_t           *p;
    static const uint32_t   slices[] = { 1, 2, 7, 31, 255 };

    (void) state;

    p = vlm_tiny_prompt(v, "Is the cup on the table, or is it below the table?", 1);
    assert_true(p->n < 256);
    encode(p, 0, 100);
    want = logits_of(p, 0, 256);

    for (i = 0; i < 5; i++) {
        slot = i % SLOTS;
        encode(p, slot, 1 + i);
        got = logits_of(p, slot, slices[i]);
        assert_memory_equal(got, want, v->config.text.vocab * sizeof(float));
        free(got);
    }

    free(want);
    vlm_prompt_free(p);
}


/* Rows of three sequences in one call: each gives the same bits as alone. */
static void
sequences_in_one_call_do_not_see_each_other(void **state)
{
    size_t         V;
    float         *want[SLOTS];
    uint32_t       s, i;
    vlm_batch_t    b;
    vlm_rows_t    *rows = &v->sched.rows;
    vlm_model_t   *m = &v->sched.model;
    vlm_prompt_t  *p[SLOTS];

    (void) state;

    V = v->config.text.vocab;

    for (s = 0; s < SLOTS; s++) {
        p[s] = vlm_tiny_prompt(v, s == 0 ? "One." : s == 1 ? "Two or more?" : "3", 0);
        want[s] = logits_of(p[s], s, 256);
    }

    vlm_rows_clear(rows);

    for (s = 0; s < SLOTS; s++) {
        vlm_rows_sequence(rows, SLOTS - 1 - s, 0);

        for (i = 0; i < p[s]->n; i++) {
            vlm_rows_add(rows, p[s]->token[i], VLM_NONE, p[s]->pos + 3 * (size_t) i);
        }

        vlm_rows_pick(rows, NULL);
    }

    vlm_rows_put(rows, v->ops, v->device, m->work.ids, m->work.pick, &b);
    assert_int_equal(vlm_text_forward(m, &b, NULL, NULL), 0);
    vlm_text_head(m, &b);

    for (s = 0; s < SLOTS; s++) {
        assert_memory_equal(m->work.logits + s * V, want[s], V * sizeof(float));
        free(want[s]);
        vlm_prompt_free(p[s]);
    }
}


/* Work memory is painted: values left by a picture or a prompt must not be read. */
static void
earlier_values_in_memory_do_not_change_a_result(void **state)
{
    float         *want, *got;
    uint64_t       cells, bytes;
    vlm_model_t   *m = &v->sched.model;
    vlm_prompt_t  *p;

    (void) state;

    p = vlm_tiny_prompt(v, "Is the cup on the table?", 1);
    encode(p, 1, 100);
    want = logits_of(p, 1, 50);

    bytes = vlm_format_row(vlm_format_of(m->kv.type), 1);
    cells = (uint64_t) (1 + m->config.vision.deep) * m->vision.places * m->vision.cells
            * m->config.text.hidden;
    memset(m->vision.features, 0xff, v->ops->basic->act_bytes(cells));
    memset(m->kv.k, 0xff, (size_t) m->kv.layers * SLOTS * m->kv.heads * m->kv.context
                          * m->kv.head_dim * bytes);
    memset(m->kv.v, 0xff, (size_t) m->kv.layers * SLOTS * m->kv.heads * m->kv.context
                          * m->kv.head_dim * bytes);
    memset(m->work.x, 0xff, (size_t) VLM_SLICE * m->config.text.hidden * sizeof(float));
    memset(m->vision.x, 0xff, m->vision.cells * 4 * m->config.vision.hidden * sizeof(float));
    memset(m->vision.o, 0xff, m->vision.cells * 4 * m->config.vision.hidden * sizeof(float));
    memset(m->work.scratch, 0xff, v->ops->basic->scratch_bytes(v->device, &m->need));

    encode(p, 1, 1);
    got = logits_of(p, 1, 50);
    assert_memory_equal(got, want, v->config.text.vocab * sizeof(float));

    memset(m->vision.features, 0, v->ops->basic->act_bytes(cells));
    free(want);
    free(got);
    vlm_prompt_free(p);
}


/* One slot's features must not be another's, in any of their parts. */
static void
pictures_in_two_places_keep_all_of_their_features(void **state)
{
    float         *want, *got;
    uint32_t       slot;
    vlm_prompt_t  *p, *other;

    (void) state;

    p = vlm_tiny_prompt(v, "Is the cup on the table?", 1);
    other = vlm_tiny_prompt(v, "A cup?", 1);
    memset(other->picture[0]->pixels, 0x55, 100);

    encode(p, 1, 100);
    want = logits_of(p, 1, 50);

    for (slot = 0; slot < SLOTS; slot++) {
        if (slot != 1) {
            encode(other, slot, 2);
        }
    }

    got = logits_of(p, 1, 50);
    assert_memory_equal(got, want, v->config.text.vocab * sizeof(float));

    free(want);
    free(got);
    vlm_prompt_free(p);
    vlm_prompt_free(other);
}


static float *
logits_with(const vlm_conf_t *conf, size_t *n)
{
    float         *logits;
    vlm_t         *e;
    uint32_t       V;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    e = vlm_tiny_open(conf);
    p = vlm_tiny_prompt(e, "Is the cup on the table?", 1);
    assert_int_equal(vlm_logits(e, p, &logits, &V, &err), 0);
    *n = (size_t) p->n * V;
    vlm_prompt_free(p);
    vlm_close(e);

    return logits;
}


/* Every matrix is in the file, those of the encoder's other blocks, too. */
static void
logits_from_a_cache_have_the_same_bits(vlm_type_t weights)
{
    char        dir[] = "/tmp/vlm-deep-XXXXXX", command[64];
    float      *want, *got;
    size_t      n, i;
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.model = DEEP;
    conf.weights = weights;
    want = logits_with(&conf, &n);
    conf.cache = mkdtemp(dir);
    assert_non_null(conf.cache);

    /* Writes the file, then reads it; maps it, or packs from it. */

    for (i = 0; i < 4; i++) {
        conf.ops = i == 3 ? "plain" : NULL;
        got = logits_with(&conf, &n);
        assert_memory_equal(got, want, n * sizeof(float));
        free(got);
    }

    free(want);
    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}


static void
logits_from_the_int8_cache_have_the_same_bits(void **state)
{
    (void) state;
    logits_from_a_cache_have_the_same_bits(VLM_INT8);
}


static void
logits_from_the_int4_cache_have_the_same_bits(void **state)
{
    (void) state;
    logits_from_a_cache_have_the_same_bits(VLM_INT4);
}


static int
quit_at(void *data)
{
    return --*(int *) data < 0;
}


static void
a_pass_can_be_left_between_layers(void **state)
{
    int            left;
    uint32_t       layers;
    vlm_batch_t    b;
    vlm_rows_t    *rows = &v->sched.rows;
    const int32_t  pos[3] = { 0, 0, 0 };

    (void) state;

    layers = v->config.text.layers;
    vlm_rows_clear(rows);
    vlm_rows_sequence(rows, 0, 0);
    vlm_rows_add(rows, 5, VLM_NONE, pos);
    vlm_rows_put(rows, v->ops, v->device, v->sched.model.work.ids, v->sched.model.work.pick, &b);

    left = (int) layers - 1;
    assert_int_equal(vlm_text_forward(&v->sched.model, &b, quit_at, &left), -1);
    left = (int) layers;
    assert_int_equal(vlm_text_forward(&v->sched.model, &b, quit_at, &left), 0);
}


static void
logits_of_every_position_are_those_of_each_prefix(void **state)
{
    float         *all, *one;
    uint32_t       V, n;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    (void) state;

    p = vlm_tiny_prompt(v, "A red box.", 0);
    assert_int_equal(vlm_logits(v, p, &all, &V, &err), 0);
    assert_int_equal(V, v->config.text.vocab);

    for (n = 1; n <= p->n; n += 5) {
        forward(p, 1, 0, n);
        one = v->sched.model.work.logits;
        assert_memory_equal(all + (size_t) (n - 1) * V, one, V * sizeof(float));
    }

    free(all);
    vlm_prompt_free(p);
}


/* ---- checkpoints that contradict config.json ----------------------------- */

/* A directory with a checkpoint's files and a config.json in which one word is another. */
static void
changed_checkpoint(char *dir, const char *model, const char *from, const char *to)
{
    char         path[300], target[4096], *at;
    size_t       i;
    FILE        *f;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_file_t   config;
    const char  *links[] = {
        "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "preprocessor_config.json", "processor_config.json"
    };

    assert_non_null(mkdtemp(dir));

    for (i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
        assert_non_null(realpath(model, target));
        (void) snprintf(target + strlen(target), sizeof(target) - strlen(target), "/%s", links[i]);
        (void) snprintf(path, sizeof(path), "%s/%s", dir, links[i]);
        assert_true(access(target, R_OK) != 0 || symlink(target, path) == 0);
    }

    (void) snprintf(path, sizeof(path), "%s/config.json", model);
    assert_int_equal(vlm_file_open(&config, path, 0, &err), 0);
    assert_true(config.bytes < sizeof(target));
    memcpy(target, config.data, config.bytes);
    target[config.bytes] = '\0';
    vlm_file_close(&config);

    at = strstr(target, from);
    assert_non_null(at);
    (void) snprintf(path, sizeof(path), "%s/config.json", dir);
    f = fopen(path, "w");
    fprintf(f, "%.*s%s%s", (int) (at - target), target, to, at + strlen(from));
    fclose(f);
}


static void
remove_checkpoint(const char *dir)
{
    char  command[300];

    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
}


/* 2-D angles of a head: slot s turns with theta^(-4s / hd). */
static void
the_vision_encoders_angles_have_the_base_that_config_json_says(void **state)
{
    vlm_err_t     err = { VLM_OK, "" };
    vlm_model_t   m;
    vlm_config_t  config = v->config;

    (void) state;

    memset(&m, 0, sizeof(m));
    config.vision.rope_theta = 16;
    assert_int_equal(vlm_model_init(&m, &config, v->ops, v->device, VLM_F32, &err), 0);
    assert_true(m.inv_freq_2d[0] == 1);
    assert_true(fabsf(m.inv_freq_2d[1] - powf(16, -4.0f / (float) config.vision.head_dim)) < 1e-6f);
    vlm_model_free(&m);
}


static void
a_tensor_that_contradicts_config_json_is_named(void **state)
{
    char         dir[64];
    size_t       i;
    vlm_err_t    err;
    vlm_conf_t   conf;
    vlm_plan_t   plan;
    const struct {
        const char  *from, *to, *words, *numbers;
    } cases[] = {
        { "\"intermediate_size\": 96", "\"intermediate_size\": 97", "gate_proj", "97" },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3", "layers.2", "" },
        { "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 1", "layers.1", "" },
        { "\"depth\": 2", "\"depth\": 3", "blocks.2", "" },
        { "\"vocab_size\": 600", "\"vocab_size\": 608", "embed_tokens", "608" },
        { "\"num_key_value_heads\": 2", "\"num_key_value_heads\": 4", "k_proj", "64" },
        { "\"spatial_merge_size\": 2", "\"spatial_merge_size\": 1", "merge_size is 2", "" },
        { "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true",
          "lm_head.weight is not model.embed_tokens.weight", "tie_word_embeddings" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(dir, "/tmp/vlm-model-XXXXXX");
        changed_checkpoint(dir, CHECKPOINT, cases[i].from, cases[i].to);

        memset(&err, 0, sizeof(err));
        vlm_tiny_conf(&conf);
        conf.model = dir;

        if (vlm_plan(&conf, &plan, &err) == 0) {
            fail_msg("%s is taken", cases[i].to);
        }

        assert_int_equal(err.code, VLM_EMODEL);

        if (strstr(err.text, cases[i].words) == NULL
            || strstr(err.text, cases[i].numbers) == NULL)
        {
            fail_msg("%s: \"%s\"", cases[i].to, err.text);
        }

        remove_checkpoint(dir);
    }
}


/* A model trained further may say a vocab_size of its tokenizer, while its table has more rows. */
static void
a_vocabulary_is_as_large_as_the_table_says_if_config_json_says_less(void **state)
{
    char         dir[] = "/tmp/vlm-model-XXXXXX";
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_plan_t   plan, want;
    vlm_facts_t  facts;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.model = DEEP;
    assert_int_equal(vlm_plan(&conf, &want, &err), 0);

    changed_checkpoint(dir, DEEP, "\"vocab_size\": 590", "\"vocab_size\": 585");
    conf.model = dir;
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_memory_equal(&plan, &want, sizeof(plan));
    assert_int_equal(vlm_facts(&conf, &facts, &err), 0);
    assert_int_equal(facts.vocab, 590);
    vlm_close(vlm_tiny_open(&conf));
    remove_checkpoint(dir);

    strcpy(dir, "/tmp/vlm-model-XXXXXX");
    changed_checkpoint(dir, DEEP, "\"vocab_size\": 590", "\"vocab_size\": 601");
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_non_null(strstr(err.text, "embed_tokens"));
    assert_non_null(strstr(err.text, "601"));
    remove_checkpoint(dir);
}


/*
 * Values of all matrices that a row of a prompt, and a patch in a block, is multiplied by; and a
 * patch's products with the keys and values that it sees in the mean block, each as dear as eight.
 */
static void
a_slice_of_the_encoder_is_as_much_work_as_a_slice_of_a_prompt(void **state)
{
    uint32_t      i, n, patches, window;
    uint64_t      row, patch, keys, work;
    vlm_model_t  *m = &v->sched.model;

    (void) state;

    window = m->config.vision.window * m->config.vision.merge;
    window *= window;

    for (row = 0, i = 0; i < m->config.text.layers; i++) {
        row += (uint64_t) m->layer[i].qkv.N * m->layer[i].qkv.K
               + (uint64_t) m->layer[i].o.N * m->layer[i].o.K
               + (uint64_t) m->layer[i].up.N * m->layer[i].up.K
               + (uint64_t) m->layer[i].down.N * m->layer[i].down.K;
    }

    patch = (uint64_t) m->block[0].qkv.N * m->block[0].qkv.K
            + (uint64_t) m->block[0].o.N * m->block[0].o.K
            + (uint64_t) m->block[0].up.N * m->block[0].up.K
            + (uint64_t) m->block[0].down.N * m->block[0].down.K;

    patch += m->config.vision.deep * ((uint64_t) m->merger.first.N * m->merger.first.K
                                      + (uint64_t) m->merger.second.N * m->merger.second.K)
             / (m->config.vision.merge * m->config.vision.merge * m->config.vision.depth);

    for (patches = 4; patches <= 1 << 16; patches *= 2) {
        m->vision.n_patches = patches;
        m->vision.longest = window < patches ? window : patches;
        n = vlm_vision_slice(m);

        for (keys = 0, i = 0; i < m->config.vision.depth; i++) {
            keys += m->config.vision.full[i] || window > patches ? patches : window;
        }

        work = patches * (patch + 3 * 2 * m->config.vision.hidden * (keys / i));

        assert_in_range(n, 1, m->config.vision.depth);
        assert_true(n == 1 || n * work <= VLM_SLICE * row);
        assert_true(n == m->config.vision.depth || (n + 1) * work > VLM_SLICE * row);
    }

    assert_int_equal(n, 1);
}


/* Of a family whose encoder has windows, and of one whose layers add features. */
#define OF_WINDOWS(f)   { "windows: " #f, f, open_engine, close_engine, NULL }
#define OF_FEATURES(f)  { "deep features: " #f, f, open_deep, close_engine, NULL }

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        OF_WINDOWS(a_slice_of_the_encoder_is_as_much_work_as_a_slice_of_a_prompt),
        OF_WINDOWS(a_prompt_may_be_read_in_slices_of_any_length_and_in_any_slot),
        OF_WINDOWS(sequences_in_one_call_do_not_see_each_other),
        OF_WINDOWS(earlier_values_in_memory_do_not_change_a_result),
        OF_WINDOWS(a_pass_can_be_left_between_layers),
        OF_WINDOWS(logits_of_every_position_are_those_of_each_prefix),
        OF_WINDOWS(the_vision_encoders_angles_have_the_base_that_config_json_says),
        OF_WINDOWS(a_tensor_that_contradicts_config_json_is_named),
        OF_FEATURES(a_slice_of_the_encoder_is_as_much_work_as_a_slice_of_a_prompt),
        OF_FEATURES(a_prompt_may_be_read_in_slices_of_any_length_and_in_any_slot),
        OF_FEATURES(earlier_values_in_memory_do_not_change_a_result),
        OF_FEATURES(pictures_in_two_places_keep_all_of_their_features),
        OF_FEATURES(logits_of_every_position_are_those_of_each_prefix),
        OF_FEATURES(logits_from_the_int8_cache_have_the_same_bits),
        OF_FEATURES(logits_from_the_int4_cache_have_the_same_bits),
        OF_FEATURES(a_vocabulary_is_as_large_as_the_table_says_if_config_json_says_less)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
