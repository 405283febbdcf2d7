/*
 * Helpers shared by the tests of the state machine: an engine of two slots whose stop() is a test's
 * own function, prompts that differ, and the answers that their jobs have alone.
 */

#ifndef VLM_SCHED_FIXTURE_H
#define VLM_SCHED_FIXTURE_H

#include "run/fixture.h"

#define LONG_TEXT  400                 /* characters; more than one slice of the prompt */

typedef int (*act_fn)(void *data);     /* a test's action when stop() is asked */

static struct {
    act_fn   act;
    void    *data;
} hook;

static vlm_t         *v;               /* two slots, int8 */
static vlm_answer_t   alone[6], got[12], orphan;


static inline int
ask_hook(void *data)
{
    (void) data;

    return hook.act == NULL ? 0 : hook.act(hook.data);
}


static inline int
open_engine(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.stop = ask_hook;
    v = vlm_tiny_open(&conf);

    return 0;
}


static inline int
close_engine(void **state)
{
    (void) state;
    vlm_close(v);

    return 0;
}


static inline int
forget_hook(void **state)
{
    (void) state;

    hook.act = NULL;
    memset(&orphan, 0, sizeof(orphan));
    memset(got, 0, sizeof(got));

    return 0;
}


/* Each has a salt of its own, so that it is read from its first token on. */
static inline vlm_prompt_t *
salted(vlm_prompt_t *p)
{
    static uint32_t  n;

    n++;
    vlm_prompt_salt(p, &n, sizeof(n));

    return p;
}


/* Prompts that differ: 0 and 3 are short, 1 has two pictures, 2 is long, 4 has a picture. */
static inline vlm_prompt_t *
prompt(uint32_t i)
{
    char                      text[LONG_TEXT + 1];
    static const char *const  words[] = {
        "Where is the cup?", "Compare these two.", "", "How many?", "A red box."
    };
    static const uint32_t     pictures[] = { 0, 2, 0, 0, 1 };

    if (i != 2) {
        return salted(vlm_tiny_prompt(v, words[i], pictures[i]));
    }

    memset(text, 'x', LONG_TEXT);
    text[LONG_TEXT] = '\0';

    for (i = 0; i < LONG_TEXT; i += 3) {
        text[i] = (char) ('a' + i % 23);
    }

    return salted(vlm_tiny_prompt(v, text, 0));
}


static inline void
ask_alone(void)
{
    uint32_t        i;
    vlm_sampling_t  s;

    hook.act = NULL;

    for (i = 0; i < 5; i++) {
        s = vlm_tiny_sampling(i + 1);
        vlm_tiny_alone(v, prompt(i), &s, &alone[i]);
    }
}


static inline void
check_answer(const vlm_answer_t *a, const vlm_answer_t *want)
{
    assert_int_equal(a->n_started, 1);
    assert_int_equal(a->n_ends, 1);
    assert_int_equal(a->finish, want->finish);
    assert_int_equal(a->usage.completion_tokens, want->usage.completion_tokens);
    assert_int_equal(a->usage.prompt_tokens, want->usage.prompt_tokens);
    assert_int_equal(a->bytes, want->bytes);
    assert_memory_equal(a->text, want->text, a->bytes);
}

#endif
