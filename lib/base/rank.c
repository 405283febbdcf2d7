/* The rank of a request as text: see rank.h. */

#include "base/rank.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>


static int
is(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && memcmp(text, word, bytes) == 0;
}


int
vlm_rank_priority(const char *text, size_t bytes)
{
    const int  minus = bytes > 0 && text[0] == '-';
    size_t     i;
    int        n = 0;

    if (is(text, bytes, "high")) {
        return 1;
    }

    if (is(text, bytes, "low")) {
        return -1;
    }

    for (i = (size_t) minus; i < bytes; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }

        n = 10 * n + (text[i] - '0');

        if (n > VLM_RANK_PRIORITY) {
            n = VLM_RANK_PRIORITY;
        }
    }

    return minus ? -n : n;
}


size_t
vlm_rank_write(const vlm_rank_t *rank, char text[VLM_RANK_TEXT])
{
    size_t  i, n;

    n = (size_t) snprintf(text, VLM_RANK_TEXT, "%d %016" PRIx64 " ", rank->priority, rank->key);

    if (!rank->salted) {
        text[n++] = '-';
    }

    for (i = 0; rank->salted && i < VLM_RANK_SALT; i++) {
        n += (size_t) snprintf(text + n, VLM_RANK_TEXT - n, "%02x", rank->salt[i]);
    }

    text[n] = '\0';

    return n;
}


void
vlm_rank_read(vlm_rank_t *rank, const char *text)
{
    int       n;
    char      salt[2 * VLM_RANK_SALT + 1];
    size_t    i;
    int64_t   priority;
    uint64_t  key;

    n = sscanf(text, "%" SCNd64 " %16" SCNx64 " %40[0-9a-f]", &priority, &key, salt);

    if (n < 2) {
        return;
    }

    rank->key = key;

    if (priority >= -VLM_RANK_PRIORITY && priority <= VLM_RANK_PRIORITY) {
        rank->priority = (int) priority;
    }

    if (n < 3 || strlen(salt) != 2 * VLM_RANK_SALT) {
        return;
    }

    for (i = 0; i < VLM_RANK_SALT; i++) {
        (void) sscanf(salt + 2 * i, "%2" SCNx8, &rank->salt[i]);
    }

    rank->salted = 1;
}
