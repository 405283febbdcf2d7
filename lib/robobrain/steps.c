/* The steps of a pipeline: see steps.h. */

#define _GNU_SOURCE                    /* asprintf() */

#include "robobrain/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "robobrain/task.h"

#define FINAL  200                     /* characters of each answer */


static int
complete(vlm_steps_t *s, const char *message)
{
    int                task;
    size_t             i;
    vlm_words_step_t  *plan;

    for (i = 0; i < s->n; i++) {
        plan = &s->plan[i];

        if (plan->prompt != NULL && plan->prompt[0] == '\0') {
            free(plan->prompt);
            plan->prompt = strdup(message);
        }

        if (plan->prompt == NULL || plan->description == NULL) {
            s->n = 0;
            return -1;
        }

        task = vlm_task_find(plan->task, strlen(plan->task));
        s->steps[i].task = task < 0 ? VLM_GENERAL : task;

        (void) snprintf(plan->task, sizeof(plan->task), "%s",
                        vlm_task_name((vlm_task_t) s->steps[i].task));
    }

    return 0;
}


int
vlm_steps_plan(vlm_steps_t *s, const char *message, const char *description)
{
    int     n;
    size_t  len;

    len = s->words != NULL ? strlen(s->words) : 0;
    n = vlm_words_plan(s->words, len, s->plan);

    if (n < 0) {
        return -1;
    }

    if (n == 0) {
        if (s->why[0] == '\0') {
            (void) snprintf(s->why, sizeof(s->why), "Could not parse JSON from response: %.*s",
                            (int) vlm_words_cut(s->words, len, 200),
                            s->words != NULL ? s->words : "");
            s->why[vlm_utf8_whole(s->why, strlen(s->why))] = '\0';
        }

        s->plan[0].number = 1;
        s->plan[0].prompt = strdup(message);
        s->plan[0].description = strdup(description);
        n = 1;
    }

    s->n = (size_t) n;

    return complete(s, message);
}


char *
vlm_steps_text(const vlm_steps_t *s)
{
    char                    *text;
    size_t                   i;
    const vlm_step_t        *before = NULL;
    const vlm_words_step_t  *plan = &s->plan[s->at];

    for (i = 0; plan->use_previous && i < s->at; i++) {
        if (s->steps[i].said) {
            before = &s->steps[i];
        }
    }

    if (before == NULL) {
        return strdup(plan->prompt);
    }

    return asprintf(&text, "%s\nPrevious result: %s", plan->prompt, before->answer) == -1
           ? NULL : text;
}


int
vlm_steps_keep(vlm_step_t *step, const char *before, const char *text, size_t bytes)
{
    const size_t  n = strlen(before);

    step->answer = malloc(n + bytes + 1);

    if (step->answer == NULL) {
        return -1;
    }

    memcpy(step->answer, before, n);

    if (bytes != 0) {
        memcpy(step->answer + n, text, bytes);
    }

    step->answer[n + bytes] = '\0';
    step->answer_len = n + bytes;

    return 0;
}


void
vlm_steps_free(vlm_steps_t *s)
{
    size_t  i;

    vlm_words_plan_free(s->plan, VLM_WORDS_STEPS);

    for (i = 0; i < VLM_WORDS_STEPS; i++) {
        free(s->steps[i].prompt);
        free(s->steps[i].answer);
        free(s->steps[i].result);
    }

    free(s->words);
}


/* ---- the answer ----------------------------------------------------------------------------- */

void
vlm_steps_put_result(vlm_json_out_t *w, const char *key, const vlm_store_file_t *result)
{
    if (result != NULL) {
        vlm_json_add_format(w, key, "/result/%s", result->name);

    } else {
        vlm_json_add_string(w, key, NULL);
    }
}


void
vlm_steps_put_why(const vlm_steps_t *s, vlm_json_out_t *w)
{
    if (s->why[0] != '\0') {
        vlm_json_add_string(w, "error", s->why);
        vlm_json_add_bool(w, "fallback", 1);
        vlm_json_add_format(w, "message", "Could not decompose query: %s", s->why);
    }
}


/* "Step 1 (grounding): [1, 2, 3, 4]", a blank line between two. */
void
vlm_steps_put_final(const vlm_steps_t *s, vlm_json_out_t *w)
{
    char                    head[64];
    size_t                   i;
    vlm_json_out_t           text;
    const vlm_step_t        *step;
    const vlm_store_file_t  *result = NULL;

    /* A character has at most four bytes. */

    vlm_json_init(&text, VLM_WORDS_STEPS * (4 * FINAL + sizeof(head)));

    for (i = 0; i < s->n; i++) {
        step = &s->steps[i];
        result = step->result != NULL ? step->result : result;

        if (step->answer == NULL) {
            continue;
        }

        (void) snprintf(head, sizeof(head), "%sStep %lld (%s): ", text.len == 0 ? "" : "\n\n",
                        (long long) s->plan[i].number, s->plan[i].task);

        vlm_json_put_raw(&text, head, strlen(head));
        vlm_json_put_raw(&text, step->answer,
                         vlm_words_cut(step->answer, step->answer_len, FINAL));
    }

    w->failed |= text.failed;

    if (text.len == 0) {
        vlm_json_add_string(w, "final_answer", "Pipeline execution failed.");
    } else {
        vlm_json_add_text(w, "final_answer", text.data, text.len);
    }

    vlm_json_release(&text);

    vlm_steps_put_result(w, "final_image", result);
}


static void
put_step(const vlm_steps_t *s, vlm_json_out_t *w, size_t n, const vlm_view_t *view)
{
    const vlm_step_t        *step = &s->steps[n];
    const vlm_words_step_t  *plan = &s->plan[n];

    vlm_json_open(w, '{');

    if (step->answer != NULL) {
        vlm_json_add_text(w, "answer", step->answer, step->answer_len);
        vlm_shapes_add_coordinates(w, view, (vlm_task_t) step->task, step->answer,
                                   step->answer_len);
    }

    vlm_json_add_string(w, "description", plan->description);

    if (step->error[0] != '\0' || step->answer == NULL) {
        vlm_json_add_string(w, "error", step->error);
    }

    if (step->answer != NULL) {
        vlm_steps_put_result(w, "output_image", step->result);
        vlm_json_add_string(w, "prompt", step->prompt);
    }

    vlm_json_add_int(w, "step", plan->number);
    vlm_json_add_bool(w, "success", step->answer != NULL);
    vlm_json_add_string(w, "task", plan->task);

    vlm_json_shut(w, '}');
}


void
vlm_steps_put(const vlm_steps_t *s, vlm_json_out_t *w, const vlm_view_t *view)
{
    int     success = 1;
    size_t  i;

    vlm_words_put_plan(w, s->plan, s->n);

    vlm_json_add_open(w, "steps", '[');

    for (i = 0; i < s->n; i++) {
        put_step(s, w, i, view);
        success &= s->steps[i].answer != NULL;
    }

    vlm_json_shut(w, ']');

    vlm_json_add_bool(w, "success", success);
}
