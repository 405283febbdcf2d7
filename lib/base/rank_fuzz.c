/* Fuzz target: any text as a level and as a rank, which is read again as it was written. */

#include <string.h>

#include "base/rank.h"

#define TEXT  256

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


static int
in_range(int priority)
{
    return priority >= -VLM_RANK_PRIORITY && priority <= VLM_RANK_PRIORITY;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char        text[TEXT] = "", written[VLM_RANK_TEXT];
    vlm_rank_t  rank, again;

    memset(&rank, 0, sizeof(rank));
    memset(&again, 0, sizeof(again));

    check(in_range(vlm_rank_priority((const char *) data, bytes)));

    memcpy(text, data, bytes < TEXT ? bytes : TEXT - 1);
    vlm_rank_read(&rank, text);
    check(in_range(rank.priority));

    check(vlm_rank_write(&rank, written) == strlen(written));
    vlm_rank_read(&again, written);
    check(memcmp(&again, &rank, sizeof(rank)) == 0);

    return 0;
}
