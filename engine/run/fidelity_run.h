/*
 * Tests with the cases of t/fidelity share this beside fidelity_cases.h: engines, prompts, and the
 * comparison with a reference's logits and answer.
 */

#ifndef VLM_FIDELITY_RUN_H
#define VLM_FIDELITY_RUN_H

#include <math.h>

#include "run/engine.h"
#include "run/fidelity_cases.h"

#define PICTURES     "t/fidelity/pictures"
#define CHECKPOINTS  "build/fidelity"
#define TOLERANCE    1e-4f             /* relative, and absolute */


/* ---- an engine and a case's prompt --------------------------------------- */

static inline vlm_conf_t
conf_of(const char *dir, vlm_type_t weights, const char *ops, uint32_t slots)
{
    vlm_conf_t  conf;

    vlm_conf_default(&conf);
    conf.model = dir;
    conf.device = "cpu";
    conf.weights = weights;
    conf.ops = ops;
    conf.context = 1024;
    conf.slots = slots;
    conf.threads = slots > 1 ? 2 : 1;

    return conf;
}


static inline vlm_t *
open_conf(const vlm_conf_t *conf)
{
    vlm_t      *v;
    vlm_err_t   err = { VLM_OK, "" };

    v = vlm_open(conf, &err);
    if (v == NULL || vlm_load(v, &err) != 0) {
        fail_msg("%s: %s", conf->model, err.text);
    }

    return v;
}


/* lora: of vlm_conf_t. */
static inline vlm_t *
open_adapted(const char *dir, vlm_type_t weights, const char *ops, uint32_t slots, const char *lora,
             uint32_t places, uint32_t rank)
{
    vlm_conf_t  conf = conf_of(dir, weights, ops, slots);

    conf.lora = lora;
    conf.lora_max = places;
    conf.lora_rank = rank;

    return open_conf(&conf);
}


static inline vlm_t *
open_engine(const char *dir, vlm_type_t weights, const char *ops, uint32_t slots)
{
    vlm_conf_t  conf = conf_of(dir, weights, ops, slots);

    return open_conf(&conf);
}


/* With keys and values in int8. */
static inline vlm_t *
open_kv_int8(const char *dir, vlm_type_t weights, const char *ops, uint32_t slots)
{
    vlm_conf_t  conf = conf_of(dir, weights, ops, slots);

    conf.kv_int8 = 1;

    return open_conf(&conf);
}


static inline vlm_t *
open_case(const case_t *c, vlm_type_t weights, const char *ops, uint32_t slots)
{
    char  dir[256];

    (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", c->checkpoint);

    return open_engine(dir, weights, ops, slots);
}


/* A picture, or the video whose frames' names have spaces between them. */
static inline vlm_picture_t *
read_part(const vlm_t *v, const part_t *part)
{
    char            path[1024], names[MAX_WORDS], *name, *rest;
    uint32_t        n;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_file_t      f[MAX_FRAMES];
    vlm_video_t     video = { NULL, 0, part->fps };
    vlm_bytes_t     frame[MAX_FRAMES];
    vlm_picture_t  *p;

    (void) snprintf(names, sizeof(names), "%s", part->words);
    rest = names;

    for (n = 0; (name = strtok_r(rest, " ", &rest)) != NULL; n++) {
        assert_true(n < MAX_FRAMES);
        (void) snprintf(path, sizeof(path), PICTURES "/%s", name);

        if (vlm_file_open(&f[n], path, 0, &err) != 0) {
            fail_msg("%s: %s", path, err.text);
        }

        frame[n] = (vlm_bytes_t) { f[n].data, f[n].bytes };
    }

    video.frame = frame;
    video.n = n;
    p = part->picture ? vlm_picture_read(v, f[0].data, f[0].bytes, &err)
                      : vlm_video_read(v, &video, NULL, 0, NULL, NULL, &err);
    if (p == NULL) {
        fail_msg("%s: %s", part->words, err.text);
    }

    while (n > 0) {
        vlm_file_close(&f[--n]);
    }

    return p;
}


static inline vlm_prompt_t *
make_prompt(const vlm_t *v, const case_t *c)
{
    uint32_t        i, n;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_part_t      parts[MAX_PARTS] = { 0 };
    vlm_prompt_t   *p;
    vlm_message_t   messages[MAX_PARTS];

    memset(parts, 0, sizeof(parts));

    for (n = 0, i = 0; i < c->n_parts; i++) {
        if (c->part[i].first) {
            messages[n++] = (vlm_message_t) { c->part[i].role, &parts[i], 0 };
        }

        messages[n - 1].n_parts++;

        if (c->part[i].picture || c->part[i].fps > 0) {
            parts[i].picture = read_part(v, &c->part[i]);
        } else {
            parts[i].text = c->part[i].words;
            parts[i].bytes = strlen(c->part[i].words);
        }
    }

    p = v->config.family->words.turn == NULL ? vlm_prompt_raw(v, parts, c->n_parts, &err)
                                             : vlm_prompt_make(v, messages, n, NULL, &err);
    if (p == NULL) {
        fail_msg("%s: %s", c->name, err.text);
    }

    return p;
}


/* The prompt followed by the reference's answer, so that one pass gives every step's logits. */
static inline void
append_answer(vlm_prompt_t *p, const section_t *answer)
{
    uint32_t  i, n;

    n = p->n + answer->dims[0];
    p->token = realloc(p->token, n * sizeof(*p->token));
    p->source = realloc(p->source, n * sizeof(*p->source));
    p->pos = realloc(p->pos, 3 * (size_t) n * sizeof(*p->pos));

    for (i = 0; p->n < n; i++, p->n++) {
        p->token[p->n] = answer->u[i];
        p->source[p->n] = VLM_NONE;
        p->pos[3 * p->n] = p->pos[3 * p->n + 1] = p->pos[3 * p->n + 2] = p->next_pos++;
    }
}


/* ---- comparing ----------------------------------------------------------- */

static inline double
off(float got, float want)
{
    return fabs((double) got - want) / (1 + fabs((double) want));
}


/* The largest difference of the reference's top logits: of the prompt, then of each step. */
static inline double
compare_top(const ref_t *r, const float *logits, uint32_t V)
{
    double        worst, d;
    uint32_t      t, k, T, top;
    const float  *row;

    worst = 0;
    T = r->ids.dims[0];
    top = r->top.dims[1];

    for (t = 0; t < T + r->answer.dims[0] - 1; t++) {
        row = logits + (size_t) t * V;

        for (k = 0; k < top; k++) {
            if (t < T) {
                d = off(row[r->top_ids.u[t * top + k]], r->top.f[t * top + k]);
                worst = d > worst || isnan(d) ? d : worst;
            }

            if (t >= T - 1) {
                d = off(row[r->step_ids.u[(t - T + 1) * top + k]],
                        r->step.f[(t - T + 1) * top + k]);
                worst = d > worst || isnan(d) ? d : worst;
            }
        }
    }

    for (t = 0; r->logits.f != NULL && t < T; t++) {
        for (k = 0; k < r->logits.dims[1]; k++) {
            d = off(logits[(size_t) t * V + k], r->logits.f[(size_t) t * r->logits.dims[1] + k]);
            worst = d > worst || isnan(d) ? d : worst;
        }
    }

    return worst;
}


static inline float *
all_logits(vlm_t *v, const case_t *c, const ref_t *r, uint32_t *n, uint32_t *V)
{
    float         *logits;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    p = make_prompt(v, c);
    append_answer(p, &r->answer);
    *n = p->n;

    if (vlm_logits(v, p, &logits, V, &err) != 0) {
        fail_msg("%s: %s", c->name, err.text);
    }

    vlm_prompt_free(p);

    return logits;
}


static inline void
expected_answer(const vlm_t *v, const ref_t *r, char *text)
{
    size_t       n;
    uint32_t     i;
    vlm_detok_t  d = { { 0 }, 0 };

    for (n = 0, i = 0; i < r->answer.dims[0]; i++) {
        n += vlm_detok_next(&d, v->tokenizer, r->answer.u[i], text + n);
    }

    n += vlm_detok_end(&d, text + n);
    text[n] = '\0';
}


static inline int
processor_runs(const char *ops)
{
    vlm_err_t         err = { VLM_OK, "" };
    vlm_device_t     *d;
    const vlm_ops_t  *table;

    d = vlm_cpu_open(ops, 1, &table, &err);
    if (d != NULL) {
        table->basic->close(d);
    }

    return d != NULL;
}

#endif
