
/*
 * Any bytes as the model's text: titles stay within their bounds, steps have all their texts.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "robobrain/words.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check_plan(const char *text, size_t len)
{
    int                        i, n;
    vlm_words_step_t           steps[VLM_WORDS_STEPS];

    n = vlm_words_plan(text, len, steps);

    if (n > VLM_WORDS_STEPS) {
        abort();
    }

    for (i = 0; i < n; i++) {
        if (strlen(steps[i].task) >= VLM_WORDS_TASK
            || strlen(steps[i].prompt) > VLM_WORDS_PROMPT
            || strlen(steps[i].description) > VLM_WORDS_PROMPT
            || steps[i].number < 0)
        {
            abort();
        }
    }

    if (n > 0) {
        vlm_words_plan_free(steps, n);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char         title[VLM_WORDS_TITLE];
    char         task[VLM_WORDS_TASK];
    const char  *text = (const char *) data;

    if (vlm_words_title(text, bytes, title) > sizeof(title)
        || vlm_words_first(text, bytes, title) > sizeof(title)
        || vlm_words_cut(text, bytes, 200) > bytes)
    {
        abort();
    }

    vlm_words_task(text, bytes, task);

    if (strlen(task) >= sizeof(task)) {
        abort();
    }

    check_plan(text, bytes);

    return 0;
}
