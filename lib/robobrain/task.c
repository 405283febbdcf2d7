/*
 * RoboBrain's tasks: their names, the prompts of its training, and the keywords that choose a task
 * for a request without one.
 */

#include "robobrain/task.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char  *name, *before, *after;
} vlm_task_words_t;

static const vlm_task_words_t  tasks[VLM_TASKS] = {
    { "general", "", "" },

    { "grounding",
      "Please provide the bounding box coordinate of the region this sentence describes: ", "." },

    { "affordance",
      "You are a robot using the joint control. The task is \"",
      "\". Please predict a possible affordance area of the end effector." },

    { "trajectory",
      "You are a robot using the joint control. The task is \"",
      "\". Please predict up to 10 key trajectory points to complete the task. "
      "Your answer should be formatted as a list of tuples, i.e. [[x1, y1], [x2, y2], ...], "
      "where each tuple contains the x and y coordinates of a point." },

    { "pointing",
      "",
      ". Your answer should be formatted as a list of tuples, i.e. [(x1, y1), (x2, y2), ...], "
      "where each tuple contains the x and y coordinates of a point satisfying the conditions "
      "above. The coordinates should indicate the normalized pixel locations of the points in "
      "the image." }
};


const char *
vlm_task_name(vlm_task_t task)
{
    return (unsigned) task < VLM_TASKS ? tasks[task].name : "unknown";
}


int
vlm_task_find(const char *name, size_t bytes)
{
    int  i;

    for (i = 0; i < VLM_TASKS; i++) {
        if (strlen(tasks[i].name) == bytes && memcmp(tasks[i].name, name, bytes) == 0) {
            return i;
        }
    }

    return -1;
}


char *
vlm_task_prompt(vlm_task_t task, const char *text, size_t bytes)
{
    char                    *prompt;
    size_t                   before, after;
    const vlm_task_words_t  *t;

    t = &tasks[(unsigned) task < VLM_TASKS ? task : VLM_GENERAL];
    before = strlen(t->before);
    after = strlen(t->after);

    if (bytes > SIZE_MAX - before - after - 1) {
        return NULL;
    }

    prompt = malloc(before + bytes + after + 1);
    if (prompt == NULL) {
        return NULL;
    }

    memcpy(prompt, t->before, before);
    memcpy(prompt + before, text, bytes);
    memcpy(prompt + before + bytes, t->after, after + 1);

    return prompt;
}


/* Compares without regard to the case of ASCII letters. */
static const char *
find_word(const char *text, size_t bytes, const char *word)
{
    size_t  i, n;

    n = strlen(word);

    for (i = 0; n <= bytes && i <= bytes - n; i++) {
        if (strncasecmp(text + i, word, n) == 0) {
            return text + i;
        }
    }

    return NULL;
}


/* Finds "at", blanks, possibly a parenthesis, a digit: "at (120, 40)". */
static int
names_a_place(const char *text, size_t bytes)
{
    const char  *p, *end;

    end = text + bytes;

    for (p = text; (p = find_word(p, (size_t) (end - p), "at")) != NULL; p++) {
        const char  *q = p + 2;

        while (q < end && (*q == ' ' || *q == '\t' || *q == '\n' || *q == '\r')) {
            q++;
        }

        if (q < end && *q == '(') {
            q++;
        }

        if (q < end && *q >= '0' && *q <= '9') {
            return 1;
        }
    }

    return 0;
}


int
vlm_task_guess(const char *text, size_t bytes)
{
    size_t                    i;
    static const struct {
        const char  *word;
        vlm_task_t   task;
    } words[] = {                      /* the first that occurs decides */
        { "where is", VLM_GROUNDING }, { "find", VLM_GROUNDING }, { "locate", VLM_GROUNDING },
        { "show me where", VLM_GROUNDING },
        { "grasp", VLM_AFFORDANCE }, { "grab", VLM_AFFORDANCE }, { "pick up", VLM_AFFORDANCE },
        { "affordance", VLM_AFFORDANCE },
        { "path", VLM_TRAJECTORY }, { "trajectory", VLM_TRAJECTORY },
        { "move to", VLM_TRAJECTORY }, { "reach", VLM_TRAJECTORY },
        { "navigate", VLM_TRAJECTORY },
        { "at coordinate", VLM_POINTING }
    };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (find_word(text, bytes, words[i].word) != NULL) {
            return words[i].task;
        }
    }

    return names_a_place(text, bytes) ? VLM_POINTING : VLM_GENERAL;
}
