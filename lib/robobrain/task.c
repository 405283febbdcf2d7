/*
 * RoboBrain's tasks: their names, the prompts of its training, and the keywords that choose a task
 * for a request without one.
 */

#include "robobrain/task.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct {
    const char  *before, *after;       /* of a request's text */
} vlm_task_words_t;

static const char *const  names[VLM_TASKS] = {
    "general", "grounding", "affordance", "trajectory", "pointing"
};

static const vlm_task_words_t  words_20[VLM_TASKS] = {
    [VLM_GENERAL] = { "", "" },

    [VLM_GROUNDING] = {
      "Please provide the bounding box coordinate of the region this sentence describes: ", "." },

    [VLM_AFFORDANCE] = {
      "You are a robot using the joint control. The task is \"",
      "\". Please predict a possible affordance area of the end effector." },

    [VLM_TRAJECTORY] = {
      "You are a robot using the joint control. The task is \"",
      "\". Please predict up to 10 key trajectory points to complete the task. "
      "Your answer should be formatted as a list of tuples, i.e. [[x1, y1], [x2, y2], ...], "
      "where each tuple contains the x and y coordinates of a point." },

    [VLM_POINTING] = {
      "",
      ". Your answer should be formatted as a list of tuples, i.e. [(x1, y1), (x2, y2), ...], "
      "where each tuple contains the x and y coordinates of a point satisfying the conditions "
      "above. The coordinates should indicate the normalized pixel locations of the points in "
      "the image." }
};

static const vlm_task_words_t  words_25[VLM_TASKS] = {         /* see vlm_task_of() */
    [VLM_GENERAL] = { "", "" },

    [VLM_GROUNDING] = {
      "Please provide the bounding box coordinate of the region this sentence describes: ", "." },

    [VLM_TRAJECTORY] = {
      "Please predict 3D end-effector-centric waypoints to complete the task successfully. "
      "The task is \"",
      "\". Your answer should be formatted as a list of tuples, i.e., [(x1, y1, d1), "
      "(x2, y2, d2), ...], where each tuple contains the x and y coordinates and the depth of "
      "the point." },

    [VLM_POINTING] = {
      "",
      ". Please provide its 2D coordinates. Your answer should be formatted as a tuple, "
      "i.e. [(x, y)], where the tuple contains the x and y coordinates of a point satisfying "
      "the conditions above." }
};


const char *
vlm_task_name(vlm_task_t task)
{
    return (unsigned) task < VLM_TASKS ? names[task] : "unknown";
}


int
vlm_task_find(const char *name, size_t bytes)
{
    int  i;

    for (i = 0; i < VLM_TASKS; i++) {
        if (strlen(names[i]) == bytes && memcmp(names[i], name, bytes) == 0) {
            return i;
        }
    }

    return -1;
}


int
vlm_task_of(uint32_t release, int task)
{
    return release >= 25 && task == VLM_AFFORDANCE ? VLM_POINTING : task;
}


char *
vlm_task_prompt(uint32_t release, vlm_task_t task, const char *text, size_t bytes)
{
    char                    *prompt;
    size_t                   before, after;
    const vlm_task_words_t  *t;

    t = release >= 25 ? words_25 : words_20;
    t += (unsigned) task < VLM_TASKS ? vlm_task_of(release, (int) task) : VLM_GENERAL;
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
