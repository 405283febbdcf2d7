/*
 * Helpers shared by the tests of this folder: an engine over a tiny checkpoint of random weights,
 * prompts, and a loop that collects answers.
 *
 * Most of the tests run vlm_run() in their own thread.  The engine asks stop() before each turn and
 * in each layer, so that a test that acts there knows the job's state.
 */

#ifndef VLM_RUN_FIXTURE_H
#define VLM_RUN_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "run/engine.h"
#include "vlm.h"

#define CHECKPOINT  "build/fidelity/tiny-a"
#define DEEP        "build/fidelity/deep"           /* a model whose layers add features, too */
#define PICTURE     "t/fidelity/pictures/200x150.png"
#define FRAME       "t/fidelity/pictures/frame-%c.png"
#define TOKENS      128                /* that a test asks log-probabilities for */

typedef struct {                       /* the events of a job */
    char           text[16384];
    size_t         bytes;
    vlm_token_t    tokens[TOKENS];
    size_t         text_at[TOKENS];    /* bytes of text that came with a token */
    size_t         n_tokens;
    uint32_t       n_started, n_texts, n_ends;
    vlm_finish_t   finish;
    vlm_usage_t    usage;
    vlm_err_t      err;
} vlm_answer_t;


static inline void
vlm_tiny_conf(vlm_conf_t *conf)
{
    vlm_conf_default(conf);
    conf->model = CHECKPOINT;
    conf->device = "cpu";
    conf->context = 1024;
    conf->slots = 2;
    conf->threads = 1;
    conf->max_pixels = 1 << 16;
}


static inline vlm_t *
vlm_tiny_open(const vlm_conf_t *conf)
{
    vlm_t      *v;
    vlm_err_t   err = { VLM_OK, "" };

    v = vlm_open(conf, &err);
    if (v == NULL || vlm_load(v, &err) != 0) {
        fail_msg("%s: %s", conf->model, err.text);
    }

    return v;
}


/* A user's message: n pictures, of the files in turn, and a text. */
static inline vlm_prompt_t *
vlm_tiny_prompt_of(const vlm_t *v, const char *text, uint32_t n, const char *const *files,
                   uint32_t n_files)
{
    uint32_t        i;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_file_t      f;
    vlm_part_t      parts[8];
    vlm_prompt_t   *p;
    vlm_message_t   message = { VLM_USER, parts, n + 1 };

    memset(parts, 0, sizeof(parts));

    for (i = 0; i < n; i++) {
        assert_int_equal(vlm_file_open(&f, files[i % n_files], 0, &err), 0);
        parts[i].picture = vlm_picture_read(v, f.data, f.bytes, &err);
        assert_non_null(parts[i].picture);
        vlm_file_close(&f);
    }

    parts[n].text = text;
    parts[n].bytes = strlen(text);

    p = vlm_prompt_make(v, &message, 1, NULL, &err);
    if (p == NULL) {
        fail_msg("%s", err.text);
    }

    return p;
}


static inline vlm_prompt_t *
vlm_tiny_prompt(const vlm_t *v, const char *text, uint32_t n)
{
    static const char *const  file = PICTURE;

    return vlm_tiny_prompt_of(v, text, n, &file, 1);
}


/* A video of "frame-N.png", N by the digits; of another picture for 0. */
static inline vlm_picture_t *
vlm_tiny_video(const vlm_t *v, const char *digits, double fps, const vlm_pixels_t *pixels,
               const vlm_stop_t *stop, vlm_err_t *err)
{
    char            path[128];
    size_t          i, n;
    vlm_file_t      f[16];
    vlm_bytes_t     frame[16];
    vlm_video_t     video = { frame, 0, fps };
    vlm_picture_t  *p;

    n = strlen(digits);
    assert_true(n <= 16);

    for (i = 0; i < n; i++) {
        (void) snprintf(path, sizeof(path), FRAME, digits[i]);
        assert_int_equal(vlm_file_open(&f[i], digits[i] == '0' ? PICTURE : path, 0, err), 0);
        frame[i] = (vlm_bytes_t) { f[i].data, f[i].bytes };
    }

    video.n = (uint32_t) n;
    p = vlm_video_read(v, &video, NULL, 0, pixels, stop, err);

    for (i = 0; i < n; i++) {
        vlm_file_close(&f[i]);
    }

    return p;
}


static inline vlm_sampling_t
vlm_tiny_sampling(uint64_t seed)
{
    vlm_sampling_t  s;

    memset(&s, 0, sizeof(s));
    s.temperature = 1;
    s.top_p = 1;
    s.repetition_penalty = 1;
    s.max_tokens = 20;
    s.seed = seed;

    return s;
}


static inline vlm_job_t *
vlm_tiny_submit(vlm_t *v, vlm_prompt_t *p, const vlm_sampling_t *s, vlm_answer_t *a)
{
    int         idle;
    vlm_job_t  *j;
    vlm_err_t   err = { VLM_OK, "" };

    memset(a, 0, sizeof(*a));
    j = vlm_submit(v, p, s, a, &idle, &err);

    if (j == NULL) {
        fail_msg("%s", err.text);
    }

    return j;
}


static inline void
vlm_tiny_tokens(const vlm_event_t *e, vlm_answer_t *a)
{
    size_t  i;

    assert_true(a->n_tokens + e->n_tokens <= TOKENS);

    for (i = 0; i < e->n_tokens; i++) {
        a->tokens[a->n_tokens] = e->tokens[i];
        a->text_at[a->n_tokens++] = a->bytes;
    }
}


/* Adds one event to its answer; events without a user go to orphan. */
static inline int
vlm_tiny_event(vlm_t *v, vlm_answer_t *orphan)
{
    vlm_event_t    e;
    vlm_answer_t  *a;

    if (!vlm_next_event(v, &e)) {
        return 0;
    }

    a = e.user == NULL ? orphan : e.user;
    assert_non_null(a);

    switch (e.kind) {

    case VLM_STARTED:
        assert_true(a == orphan || (a->n_texts == 0 && a->n_ends == 0));
        a->n_started++;
        break;

    case VLM_TEXT:
        assert_true(a == orphan || (a->n_started == 1 && a->n_ends == 0));
        assert_true(e.bytes > 0 || e.n_tokens > 0);
        assert_true(a->bytes + e.bytes < sizeof(a->text));
        memcpy(a->text + a->bytes, e.text, e.bytes);
        a->bytes += e.bytes;
        a->n_texts++;
        vlm_tiny_tokens(&e, a);
        break;

    case VLM_DONE:
    case VLM_FAILED:
        assert_true(a == orphan || a->n_ends == 0);
        assert_int_equal(e.kind == VLM_DONE, e.err.code == VLM_OK);
        a->n_ends++;
        a->finish = e.finish;
        a->usage = e.usage;
        a->err = e.err;
        break;
    }

    return 1;
}


static inline void
vlm_tiny_drain(vlm_t *v, vlm_answer_t *orphan)
{
    while (vlm_tiny_event(v, orphan)) { /* void */ }
}


static inline void
vlm_tiny_run(vlm_t *v)
{
    vlm_err_t  err = { VLM_OK, "" };

    assert_int_equal(vlm_run(v, &err), 0);
}


/* The answer to a prompt that is alone in the engine. */
static inline void
vlm_tiny_alone(vlm_t *v, vlm_prompt_t *p, const vlm_sampling_t *s, vlm_answer_t *a)
{
    (void) vlm_tiny_submit(v, p, s, a);
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(a->n_ends, 1);
}

#endif
