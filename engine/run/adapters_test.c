/*
 * Adapters in the engine: rows of several adapters in one step, what caches keep apart, and
 * versions that come and go while answers are made.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <unistd.h>

#include "run/fixture.h"

#define FILES  "t/fidelity/lora"
#define DIR    "build/adapters-test"   /* "tower" changes the vision encoder, "text" does not */
#define MANY   "build/adapters-test-more"

static int   (*act)(void);             /* called by each question whether to stop */
static vlm_t  *engine;
static char    line[600];              /* the last error of the log */
static int     n_errors, n_notices;    /* notices: of adapters that were loaded later */


static int
ask_stop(void *data)
{
    (void) data;

    return act != NULL ? act() : 0;
}


static void
keep_line(void *data, vlm_log_level_t level, const char *text)
{
    (void) data;

    if (level == VLM_LOG_ERROR) {
        (void) snprintf(line, sizeof(line), "%s", text);
        n_errors++;
    }

    n_notices += strstr(text, "is loaded now") != NULL;
}


static vlm_t *
open_engine(uint32_t places, vlm_type_t weights)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.weights = weights;
    conf.slots = 6;
    conf.lora = DIR;
    conf.lora_max = places;
    conf.lora_rank = 4;
    conf.lora_load = 1;
    conf.stop = ask_stop;
    act = NULL;

    return engine = vlm_tiny_open(&conf);
}


static vlm_prompt_t *
adapted(vlm_t *v, const char *text, uint32_t pictures, const char *name, double scale)
{
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p = vlm_tiny_prompt(v, text, pictures);

    if (name != NULL && vlm_prompt_adapter(v, p, name, scale, &err) != 0) {
        fail_msg("%s", err.text);
    }

    return p;
}


static void
check_same(const vlm_answer_t *a, const vlm_answer_t *b)
{
    size_t  i;

    assert_int_equal(a->n_ends, 1);
    assert_string_equal(a->text, b->text);
    assert_int_equal(a->n_tokens, b->n_tokens);

    for (i = 0; i < a->n_tokens; i++) {
        assert_memory_equal(&a->tokens[i].picked, &b->tokens[i].picked, sizeof(vlm_logprob_t));
    }
}


/* Answers of an engine without places for adapters: to a prompt, and to it with a picture. */
static void
ask_without_lora(vlm_type_t weights, const vlm_sampling_t *s, vlm_answer_t answer[2])
{
    vlm_t       *v;
    uint32_t     i;
    vlm_conf_t   conf;

    vlm_tiny_conf(&conf);
    conf.weights = weights;
    conf.slots = 6;
    v = vlm_tiny_open(&conf);

    for (i = 0; i < 2; i++) {
        vlm_tiny_alone(v, vlm_tiny_prompt(v, "Where is the cup?", i), s, &answer[i]);
    }

    vlm_close(v);
}


/*
 * Six requests in the same steps: each has the logits' bits, by their logarithms, of alone, and one
 * without an adapter has those of an engine without places.
 */
static void
rows_of_several_adapters_share_steps(void **state)
{
    vlm_t           *v;
    uint32_t         i, k, form;
    vlm_answer_t     alone[6], together[6], without[2];
    vlm_sampling_t   s = vlm_tiny_sampling(7);
    const char      *name[6] = { NULL, NULL, "tower", "text", "tower", "text" };
    const double     scale[6] = { 1, 1, 1, 1, 0.5, 1 };
    vlm_type_t       forms[] = { VLM_F32, VLM_BF16, VLM_INT8 };

    (void) state;

    s.logprobs = 1;

    for (form = 0; form < 3; form++) {
        ask_without_lora(forms[form], &s, without);
        v = open_engine(2, forms[form]);

        for (i = 0; i < 6; i++) {
            vlm_tiny_alone(v, adapted(v, "Where is the cup?", i % 2, name[i], scale[i]), &s,
                           &alone[i]);
        }

        for (i = 0; i < 6; i++) {
            (void) vlm_tiny_submit(v, adapted(v, "Where is the cup?", i % 2, name[i], scale[i]), &s,
                                   &together[i]);
        }

        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (i = 0; i < 6; i++) {
            check_same(&together[i], &alone[i]);

            if (name[i] == NULL) {
                check_same(&together[i], &without[i]);
            }

            for (k = 0; k < i; k++) {  /* 1 and 5, 3 and 5 may be of one prompt */
                assert_true((name[i] == name[k] && scale[i] == scale[k])
                            || strcmp(alone[i].text, alone[k].text) != 0);
            }
        }

        vlm_close(v);
    }
}


static void
cached_tokens_never_cross_adapters(void **state)
{
    vlm_t           *v = open_engine(2, VLM_F32);
    uint32_t         i;
    vlm_answer_t     got;
    vlm_sampling_t   s = vlm_tiny_sampling(7);
    const struct {
        const char  *name;
        double       scale;
        int          cached;
    } turns[] = {
        { "tower", 1, 0 }, { "text", 1, 0 }, { NULL, 1, 0 }, { "text", 0.5, 0 }, { "tower", 1, 1 },
        { "text", 1, 1 }, { NULL, 1, 1 }, { "text", 0.5, 1 }, { "tower", 2, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        vlm_tiny_alone(v, adapted(v, "Where is the cup?  Is it on the table, beside the box, or in "
                                  "the hand of the robot?", 0, turns[i].name, turns[i].scale), &s,
                       &got);
        assert_int_equal(got.usage.cached_tokens > 32, turns[i].cached);
    }

    vlm_close(v);
}


static void
an_adapter_of_the_text_alone_shares_features_of_pictures(void **state)
{
    vlm_t           *v = open_engine(2, VLM_F32);
    uint32_t         i;
    vlm_answer_t     got;
    vlm_sampling_t   s = vlm_tiny_sampling(7);
    const struct {
        const char  *name;
        double       scale;
        uint32_t     cached;
    } turns[] = {
        { NULL, 1, 0 }, { "text", 1, 1 }, { "tower", 1, 0 }, { "text", 2, 1 }, { "tower", 2, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        vlm_tiny_alone(v, adapted(v, "Where is the cup?", 1, turns[i].name, turns[i].scale), &s,
                       &got);
        assert_int_equal(got.usage.cached_pictures, turns[i].cached);
    }

    vlm_close(v);
}


/* ---- life ---------------------------------------------------------------- */

static int  step;


/* Tokens of the one answer that is made. */
static uint32_t
tokens_made(void)
{
    uint32_t            i, n;
    const vlm_sched_t  *c = &engine->sched;

    for (n = 0, i = 0; i < engine->conf.slots; i++) {
        n += c->slot[i] != NULL ? c->slot[i]->usage.completion_tokens : 0;
    }

    return n;
}


/* While an answer is made: its adapter leaves the list, and there is no place for another. */
static int
unload_once(void)
{
    int        idle;
    vlm_err_t  err = { VLM_OK, "" }, full = { VLM_OK, "" };

    if (step == 0 && tokens_made() > 3) {
        step = 1;
        assert_int_equal(vlm_adapter_unload(engine, "tower", &err), 0);
        assert_int_equal(vlm_adapter_load(engine, "text", "text", 0, &idle, &full), -1);
        assert_int_equal(full.code, VLM_ELIMIT);
        assert_string_equal(full.text, "adapter \"text\": all 1 places of adapters are in use");
    }

    return 0;
}


static void
an_answer_keeps_its_version(void **state)
{
    int                  idle;
    vlm_t               *v = open_engine(1, VLM_F32);
    vlm_err_t            err = { VLM_OK, "" };
    vlm_answer_t         want, got;
    vlm_prompt_t        *p;
    vlm_sampling_t       s = vlm_tiny_sampling(7);
    vlm_adapter_info_t   list[4];

    (void) state;

    /* Of two adapters the first by its name has the only place. */

    assert_int_equal(vlm_adapters(v, list, 4), 1);
    assert_string_equal(list[0].name, "text");
    assert_int_equal(vlm_adapter_load(v, "text", "text", 0, &idle, &err), -1);
    assert_int_equal(err.code, VLM_ECANCELLED);
    assert_int_equal(vlm_adapter_unload(v, "text", NULL), 0);
    assert_int_equal(vlm_adapters(v, list, 4), 0);

    err.code = VLM_OK;
    assert_int_equal(vlm_adapter_load(v, "tower", "tower", 0, &idle, &err), 0);
    assert_int_equal(idle, 1);

    vlm_tiny_alone(v, adapted(v, "How many?", 1, "tower", 1), &s, &want);

    step = 0;
    act = unload_once;
    vlm_tiny_alone(v, adapted(v, "How many?", 1, "tower", 1), &s, &got);
    act = NULL;
    assert_int_equal(step, 1);
    assert_string_equal(got.text, want.text);

    /* It is gone, and its place is free. */

    p = vlm_tiny_prompt(v, "How many?", 0);
    assert_int_equal(vlm_prompt_adapter(v, p, "tower", 1, &err), -1);
    assert_string_equal(err.text, "there is no adapter \"tower\"");
    vlm_prompt_free(p);

    assert_int_equal(vlm_adapter_load(v, "text", "text", 0, &idle, NULL), 0);
    vlm_close(v);
}


/* A run without a job puts an adapter, so that its copy on the host does not stay. */
static void
a_loaded_adapter_is_put_by_a_run_of_its_own(void **state)
{
    int     idle, i;
    vlm_t  *v = open_engine(1, VLM_F32);

    (void) state;

    for (i = 0; i < 50; i++) {
        assert_int_equal(vlm_adapter_unload(v, i % 2 == 0 ? "text" : "tower", NULL), 0);
        assert_int_equal(vlm_adapter_load(v, i % 2 == 0 ? "tower" : "text", i % 2 == 0
                                          ? "tower" : "text", 0, &idle, NULL), 0);
        assert_int_equal(idle, 1);

        if (i % 3 == 0) {
            vlm_tiny_run(v);
        }
    }

    vlm_close(v);
}


/* While an answer is made: another adapter takes the name of its own. */
static int
replace_once(void)
{
    int        idle;
    vlm_err_t  err = { VLM_OK, "" };

    if (step == 0 && tokens_made() > 3) {
        step = 1;
        assert_int_equal(vlm_adapter_load(engine, "x", "text", 1, &idle, &err), 0);
    }

    return 0;
}


static void
an_answer_keeps_an_adapter_that_is_replaced(void **state)
{
    int                  idle;
    vlm_t               *v = open_engine(4, VLM_F32);
    vlm_err_t            err = { VLM_OK, "" };
    vlm_answer_t         text, tower, got;
    vlm_sampling_t       s = vlm_tiny_sampling(7);
    vlm_adapter_info_t   list[4];

    (void) state;

    vlm_tiny_alone(v, adapted(v, "How many?", 1, "text", 1), &s, &text);
    vlm_tiny_alone(v, adapted(v, "How many?", 1, "tower", 1), &s, &tower);
    assert_int_equal(vlm_adapter_load(v, "x", "tower", 1, &idle, &err), 0);
    vlm_tiny_run(v);

    vlm_tiny_alone(v, adapted(v, "How many?", 1, "x", 1), &s, &got);
    assert_string_equal(got.text, tower.text);

    step = 0;
    act = replace_once;
    vlm_tiny_alone(v, adapted(v, "How many?", 1, "x", 1), &s, &got);
    act = NULL;
    assert_int_equal(step, 1);
    assert_string_equal(got.text, tower.text);

    vlm_tiny_alone(v, adapted(v, "How many?", 1, "x", 1), &s, &got);
    assert_string_equal(got.text, text.text);
    assert_int_equal(vlm_adapters(v, list, 4), 3);

    /* The old version's place is free, and a replacement needs one. */

    assert_int_equal(vlm_adapter_load(v, "y", "text", 0, &idle, &err), 0);
    assert_int_equal(vlm_adapter_load(v, "y", "tower", 1, &idle, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);

    /* One that cannot be read leaves the old one. */

    assert_int_equal(vlm_adapter_unload(v, "text", NULL), 0);
    assert_int_equal(vlm_adapter_load(v, "x", "broken", 1, &idle, NULL), -1);
    vlm_tiny_alone(v, adapted(v, "How many?", 1, "x", 1), &s, &got);
    assert_string_equal(got.text, text.text);

    vlm_close(v);
}


/* ---- loads beside answers ------------------------------------------------ */

#define ROUNDS  24                     /* replacements of "x" */

typedef struct {
    vlm_t       *v;
    atomic_int   done;
} churn_t;


/* A load waits for a place that an answer still has. */
static void
load(vlm_t *v, const char *name, const char *dir, int replace)
{
    int        idle;
    vlm_err_t  err;

    for ( ;; ) {
        err.code = VLM_OK;

        if (vlm_adapter_load(v, name, dir, replace, &idle, &err) == 0) {
            return;
        }

        assert_int_equal(err.code, VLM_ELIMIT);
        (void) usleep(500);
    }
}


static void *
churn_thread(void *data)
{
    int                  i;
    churn_t             *c = data;
    vlm_adapter_info_t   list[8];

    for (i = 0; i < ROUNDS; i++) {
        load(c->v, "x", i % 2 == 0 ? "text" : "tower", 1);
        load(c->v, "y", "text", 0);
        assert_int_equal(vlm_adapters(c->v, list, 8), 4);
        assert_int_equal(vlm_adapter_unload(c->v, "y", NULL), 0);
    }

    atomic_store(&c->done, 1);

    return NULL;
}


static void
each_answer_is_of_one_version_while_adapters_come_and_go(void **state)
{
    int                 rounds;
    vlm_t              *v = open_engine(6, VLM_F32);
    churn_t             c = { v, 0 };
    uint32_t            i;
    pthread_t           thread;
    vlm_answer_t        alone[3], got[6];
    const char         *name[] = { NULL, "text", "tower", "x", "x", "x" };
    vlm_sampling_t      s = vlm_tiny_sampling(7);

    (void) state;

    load(v, "x", "tower", 0);

    for (i = 0; i < 3; i++) {
        vlm_tiny_alone(v, adapted(v, "How many?", 0, name[i], 1), &s, &alone[i]);
    }

    assert_int_equal(pthread_create(&thread, NULL, churn_thread, &c), 0);

    for (rounds = 0; rounds == 0 || !atomic_load(&c.done); rounds++) {
        for (i = 0; i < 6; i++) {
            (void) vlm_tiny_submit(v, adapted(v, "How many?", 0, name[i], 1), &s, &got[i]);
        }

        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (i = 0; i < 6; i++) {
            assert_int_equal(got[i].n_ends, 1);
            assert_int_equal(got[i].err.code, VLM_OK);
            assert_true(i < 3 ? strcmp(got[i].text, alone[i].text) == 0
                              : strcmp(got[i].text, alone[1].text) == 0
                                || strcmp(got[i].text, alone[2].text) == 0);
        }
    }

    assert_int_equal(pthread_join(thread, NULL), 0);

    /* The last replacement is by "tower". */

    vlm_tiny_alone(v, adapted(v, "How many?", 0, "x", 1), &s, &got[0]);
    assert_string_equal(got[0].text, alone[2].text);
    vlm_close(v);
}


/* ---- refusals ------------------------------------------------------------ */

static void
files_conf(vlm_conf_t *conf, const char *command, uint32_t places, uint32_t rank, int tower)
{
    assert_int_equal(system("rm -rf " MANY " && mkdir -p " MANY), 0);
    assert_int_equal(system(command), 0);

    vlm_tiny_conf(conf);
    conf->lora = MANY;
    conf->lora_max = places;
    conf->lora_rank = rank;
    conf->lora_tower = tower;
    conf->slots = 6;
    conf->log = keep_line;
    n_errors = n_notices = 0;
}


/* A plan has the sentence, and a model is loaded without the adapter. */
static void
check_left_out(const char *command, uint32_t places, uint32_t rank, int tower, const char *want)
{
    vlm_t               *v;
    uint32_t             n;
    vlm_err_t            err = { VLM_OK, "" };
    vlm_plan_t           plan;
    vlm_conf_t           conf;
    vlm_adapter_info_t   list[4];

    files_conf(&conf, command, places, rank, tower);
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_int_equal(plan.left_out, 1);
    assert_string_equal(plan.left_out_reason, want);

    v = vlm_tiny_open(&conf);
    assert_int_equal(n_errors, 1);
    assert_non_null(strstr(line, want));
    n = vlm_adapters(v, list, 4);
    assert_in_range(n, 1, 4);
    assert_string_equal(list[n - 1].reason, want);
    vlm_close(v);
}


static void
check_refused(uint32_t places, uint32_t rank, const char *want)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_plan_t  plan;
    vlm_conf_t  conf;

    files_conf(&conf, "true", places, rank, 1);
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_string_equal(err.text, want);
}


#define COPY  "cp -r " FILES "/lora-a-list " MANY "/x"
#define EDIT(what)  COPY " && sed -i '" what "' " MANY "/x/adapter_config.json"

static void
what_is_not_supported_is_left_out_with_its_reason(void **state)
{
    (void) state;

    check_left_out(EDIT("s/\"use_dora\": false/\"use_dora\": true/"), 1, 4, 1,
                  "adapter \"x\": use_dora is true, which is not supported");
    check_left_out(EDIT("s/\"bias\": \"none\"/\"bias\": \"lora_only\"/"), 1, 4, 1,
                  "adapter \"x\": bias is lora_only, which is not supported");
    check_left_out(EDIT("s/\"modules_to_save\": null/\"modules_to_save\": [\"norm\"]/"), 1, 4, 1,
                  "adapter \"x\": modules_to_save is set, which is not supported");
    check_left_out(EDIT("s/\"lora_alpha\": 2/\"lora_alpha\": \"2\"/"), 1, 4, 1,
                  "adapter \"x\": lora_alpha is not a number from -1e6 to 1e6");
    check_left_out("cp -r " FILES "/lora-a-attention " MANY "/x", 1, 2, 1,
                  "adapter \"x\": rank 3, lora has rank=2");
    check_left_out(COPY, 1, 4, 0, "adapter \"x\": 12 tensors of no matrix of this model (lora has "
                  "tower=off), the first is base_model.model.visual.blocks.0.mlp.down_proj.lora_A."
                  "weight");
    check_left_out("cp -r " FILES "/lora-b-head " MANY "/x", 1, 4, 1,
                  "adapter \"x\": 5 tensors of no matrix of this model, the first is base_model."
                  "model.lm_head.base_layer.weight");
    check_left_out("cp -r " FILES "/lora-f-64 " MANY "/x", 1, 64, 1,
                  "adapter \"x\": model.layers.0.self_attn.o_proj.lora_A.weight is [64, 256], "
                  "expected [64, 64]");
    check_left_out("mkdir " MANY "/x && touch " MANY "/x/adapter_model.bin", 1, 4, 1,
                  "adapter \"x\": " MANY "/x has no adapter_model.safetensors, and "
                  "adapter_model.bin is not read");
    check_left_out(COPY " && " "cp -r " MANY "/x " MANY "/y && mkdir " MANY "/z", 2, 4, 1,
                  "adapter \"z\": " MANY "/z has no adapter_model.safetensors");
    check_left_out("rmdir " MANY, 1, 4, 1, "lora: " MANY " is not a directory that can be read");
    check_refused(0, 4, "lora: max is 0, expected 1 to 64");
    check_refused(4, 257, "lora: rank is 257, expected 1 to 256");
}


/* Such a number is found only when the values are read, at the end of a load. */
static void
a_number_that_is_not_finite_leaves_an_adapter_out(void **state)
{
    vlm_t               *v;
    vlm_conf_t           conf;
    vlm_adapter_info_t   list[1];

    (void) state;

    files_conf(&conf, COPY " && printf '\\377\\377\\377\\377' | dd of=" MANY "/x/adapter_model"
               ".safetensors bs=1 seek=$(($(stat -c %s " MANY "/x/adapter_model.safetensors) - 4)) "
               "conv=notrunc status=none", 1, 4, 1);
    v = vlm_tiny_open(&conf);
    assert_int_equal(n_errors, 1);
    assert_int_equal(vlm_adapters(v, list, 1), 1);
    assert_non_null(strstr(list[0].reason, "holds a number that is not finite"));
    vlm_close(v);
}


/* ---- left out ------------------------------------------------------------ */

static void
check_adapter(const vlm_t *v, const char *name, const char *reason)
{
    uint32_t            i, n;
    vlm_adapter_info_t  list[8];

    n = vlm_adapters(v, list, 8);

    for (i = 0; i < n && strcmp(list[i].name, name) != 0; i++) { /* void */ }

    if (reason == NULL) {
        assert_int_equal(i, n);
    } else {
        assert_in_range(i + 1, 1, n);
        assert_non_null(strstr(list[i].reason, reason));
        assert_int_equal(list[i].reason[0] == '\0', reason[0] == '\0');
    }
}


/* As during a copy: the settings are there before the weights. */
static void
an_adapter_that_was_left_out_is_tried_again(void **state)
{
    int             idle;
    vlm_t          *v;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_conf_t      conf;
    vlm_prompt_t   *p;
    vlm_answer_t    whole, late;
    vlm_sampling_t  s = vlm_tiny_sampling(7);

    (void) state;

    s.logprobs = 1;
    files_conf(&conf, COPY " && cp -r " FILES "/lora-b-head " MANY "/odd && mkdir " MANY "/half && "
               "cp " MANY "/x/adapter_config.json " MANY "/half", 4, 4, 1);
    v = vlm_tiny_open(&conf);
    check_adapter(v, "x", "");
    check_adapter(v, "half", "half has no adapter_model.safetensors");
    check_adapter(v, "odd", "5 tensors of no matrix of this model");
    assert_int_equal(n_errors, 2);

    p = vlm_tiny_prompt(v, "Where is the cup?", 0);
    assert_int_equal(vlm_prompt_adapter(v, p, "half", 1, &err), -1);
    assert_non_null(strstr(err.text, "half has no adapter_model.safetensors"));
    vlm_prompt_free(p);

    assert_int_equal(vlm_adapters_again(v, &idle), 0);
    assert_int_equal(n_errors, 2);

    /* The reason may be another; the log has the first one. */

    assert_int_equal(system("head -c 1000 " MANY "/x/adapter_model.safetensors >" MANY
                            "/half/adapter_model.safetensors && rm -r " MANY "/odd"), 0);
    assert_int_equal(vlm_adapters_again(v, &idle), 1);
    check_adapter(v, "half", "header of");
    check_adapter(v, "odd", NULL);
    assert_int_equal(n_errors, 2);

    assert_int_equal(system("cp " MANY "/x/adapter_model.safetensors " MANY "/half"), 0);
    assert_int_equal(vlm_adapters_again(v, &idle), 1);
    assert_int_equal(idle, 1);
    assert_int_equal(n_notices, 1);
    check_adapter(v, "half", "");
    assert_int_equal(vlm_adapters_again(v, &idle), 0);

    vlm_tiny_alone(v, adapted(v, "Where is the cup?", 0, "x", 1), &s, &whole);
    vlm_tiny_alone(v, adapted(v, "Where is the cup?", 0, "half", 1), &s, &late);
    check_same(&late, &whole);
    vlm_close(v);
}


static void
a_prompt_of_an_adapter_that_the_load_leaves_out_ends_alone(void **state)
{
    vlm_t           *v;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_conf_t       conf;
    vlm_answer_t     with, without;
    vlm_prompt_t    *p;
    vlm_sampling_t   s = vlm_tiny_sampling(7);

    (void) state;

    s.logprobs = 1;
    files_conf(&conf, "cp -r " FILES "/lora-b-head " MANY "/odd", 1, 4, 1);
    v = vlm_open(&conf, &err);
    assert_non_null(v);
    p = adapted(v, "Where is the cup?", 0, "odd", 1);
    assert_int_equal(vlm_load(v, &err), 0);

    (void) vlm_tiny_submit(v, p, &s, &with);
    (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Where is the cup?", 0), &s, &without);
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    assert_int_equal(with.n_ends, 1);
    assert_int_equal(with.err.code, VLM_EINPUT);
    assert_string_equal(with.err.text, "adapter \"odd\" cannot be loaded");
    assert_int_equal(without.err.code, VLM_OK);
    assert_true(without.n_tokens > 0);
    vlm_close(v);
}


static void
a_directory_that_cannot_be_read_is_tried_again(void **state)
{
    int         idle;
    vlm_t      *v;
    vlm_conf_t  conf;

    (void) state;

    files_conf(&conf, "rmdir " MANY, 4, 4, 1);
    v = vlm_tiny_open(&conf);
    check_adapter(v, VLM_ADAPTERS_ALL, "is not a directory that can be read");
    assert_int_equal(vlm_adapters_again(v, &idle), 0);
    assert_int_equal(n_errors, 1);

    assert_int_equal(system("mkdir " MANY " && " COPY), 0);
    assert_int_equal(vlm_adapters_again(v, &idle), 1);
    check_adapter(v, VLM_ADAPTERS_ALL, NULL);
    check_adapter(v, "x", "");
    vlm_close(v);
}


static void
an_adapter_without_a_place_is_loaded_once_there_is_one(void **state)
{
    int         idle;
    vlm_t      *v;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    files_conf(&conf, COPY " && cp -r " MANY "/x " MANY "/y && cp -r " MANY "/x " MANY "/z", 1, 4,
               1);
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_int_equal(plan.left_out, 2);
    v = vlm_tiny_open(&conf);
    check_adapter(v, "x", "");
    check_adapter(v, "y", "adapter \"y\": all 1 places of adapters are in use");
    assert_int_equal(vlm_adapters_again(v, &idle), 0);

    assert_int_equal(vlm_adapter_unload(v, "x", &err), 0);
    assert_int_equal(vlm_adapters_again(v, &idle), 1);
    check_adapter(v, "y", "");
    check_adapter(v, "z", "all 1 places");
    vlm_close(v);

    /* With load=on a client chooses. */

    conf.lora_load = 1;
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_int_equal(plan.left_out, 0);
    v = vlm_tiny_open(&conf);
    check_adapter(v, "x", "");
    check_adapter(v, "y", NULL);
    vlm_close(v);
}


static void
of_checkpoints_the_largest_number_with_weights_is_read(void **state)
{
    vlm_conf_t           conf;
    vlm_adapter_info_t   list[2];
    vlm_t               *v;

    (void) state;

    assert_int_equal(system("rm -rf " MANY " && mkdir -p " MANY "/x/checkpoint-90 && cp -r " FILES
                            "/lora-a-list " MANY "/x/checkpoint-20 && cp -r " FILES
                            "/lora-b-head " MANY "/x/checkpoint-3"), 0);
    vlm_tiny_conf(&conf);
    conf.lora = MANY;
    v = vlm_tiny_open(&conf);
    assert_int_equal(vlm_adapters(v, list, 2), 1);
    vlm_close(v);
}


/* A plan's share is places x the matrices' parts, on a GPU as on the CPU. */
static void
a_plan_has_the_places(void **state)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  one, four, none;

    (void) state;

    vlm_tiny_conf(&conf);
    assert_int_equal(vlm_plan(&conf, &none, &err), 0);
    assert_int_equal(none.lora, 0);

    conf.lora = DIR;
    conf.lora_max = 2;
    conf.lora_rank = 8;
    assert_int_equal(vlm_plan(&conf, &one, &err), 0);
    conf.lora_max = 8;
    assert_int_equal(vlm_plan(&conf, &four, &err), 0);
    assert_true(one.lora > 0 && four.lora == 4 * one.lora);
    assert_true(four.total - one.total == 3 * one.lora);

    conf.device = "cuda";
    assert_int_equal(vlm_plan(&conf, &one, &err), 0);
    assert_true(one.lora == four.lora);
}


static int
make_files(void **state)
{
    (void) state;

    return system("rm -rf " DIR " && mkdir -p " DIR " && cp -r " FILES "/lora-a-list " DIR
                  "/tower && cp -r " FILES "/lora-a-attention " DIR "/text");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(rows_of_several_adapters_share_steps),
        cmocka_unit_test(cached_tokens_never_cross_adapters),
        cmocka_unit_test(an_adapter_of_the_text_alone_shares_features_of_pictures),
        cmocka_unit_test(an_answer_keeps_its_version),
        cmocka_unit_test(a_loaded_adapter_is_put_by_a_run_of_its_own),
        cmocka_unit_test(an_answer_keeps_an_adapter_that_is_replaced),
        cmocka_unit_test(each_answer_is_of_one_version_while_adapters_come_and_go),
        cmocka_unit_test(what_is_not_supported_is_left_out_with_its_reason),
        cmocka_unit_test(a_number_that_is_not_finite_leaves_an_adapter_out),
        cmocka_unit_test(an_adapter_that_was_left_out_is_tried_again),
        cmocka_unit_test(a_prompt_of_an_adapter_that_the_load_leaves_out_ends_alone),
        cmocka_unit_test(a_directory_that_cannot_be_read_is_tried_again),
        cmocka_unit_test(an_adapter_without_a_place_is_loaded_once_there_is_one),
        cmocka_unit_test(of_checkpoints_the_largest_number_with_weights_is_read),
        cmocka_unit_test(a_plan_has_the_places)
    };

    return cmocka_run_group_tests(tests, make_files, NULL);
}
