/*
 * Texts by their number of characters.  An escape or a character of several bytes is taken for
 * granted: the pattern that this is put together with says which there are.
 */

#include <string.h>

#include "grammar/dfa.h"

typedef struct {
    uint32_t  low, high;
} length_t;

typedef struct {                       /* a state's key */
    uint32_t  count;
    uint8_t   rest;                    /* bytes to come of a character or an escape */
    uint8_t   escape;                  /* behind a backslash */
    uint8_t   zero[2];
} state_t;


static uint32_t
start(void *data, uint8_t *key)
{
    (void) data;
    memset(key, 0, sizeof(state_t));

    return sizeof(state_t);
}


static uint32_t
step(void *data, const uint8_t *key, uint32_t n, uint8_t c, uint8_t *to)
{
    state_t          s;
    const length_t  *l = data;

    memcpy(&s, key, n);

    if (s.escape) {
        s.escape = 0;
        s.rest = c == 'u' ? 4 : 0;

    } else if (s.rest > 0) {
        s.rest--;

    } else {
        if (c < 0x20 || c == '"' || s.count == l->high) {
            return 0;
        }

        s.count += l->high != UINT32_MAX || s.count < l->low;
        s.escape = c == '\\';
        s.rest = c < 0xc0 ? 0 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    }

    memcpy(to, &s, n);

    return n;
}


static int
ends(void *data, const uint8_t *key, uint32_t n)
{
    state_t          s;
    const length_t  *l = data;

    memcpy(&s, key, n);

    return s.count >= l->low && s.rest == 0 && s.escape == 0;
}


vlm_dfa_t *
vlm_dfa_length(vlm_maker_t *k, uint32_t low, uint32_t high)
{
    uint32_t       c;
    length_t       l = { low, high };
    vlm_explore_t  e = { .n_classes = 8, .key_bytes = sizeof(state_t), .data = &l, .start = start,
                         .step = step, .ends = ends };

    for (c = 0; c < 256; c++) {
        e.class_of[c] = c == '\\' ? 1 : c == 'u' ? 2 : c == '"' ? 7 : c < 0x20 ? 0 : c < 0xc0 ? 3
                        : c < 0xe0 ? 4 : c < 0xf0 ? 5 : 6;
    }

    return vlm_dfa_explore(k, &e);
}
