/*
 * Numbers within bounds, digit by digit: how what was read compares with the digits of each bound
 * is all that has to be known.  No number has an exponent, and none more digits than a double
 * keeps, so that a client that reads doubles finds it within its bounds, too.
 */

#include "grammar/dfa.h"

#include <string.h>

#define WHOLE   18                     /* digits of an integer */
#define DIGITS  15                     /* of a number with a point, where its bounds have no more */
#define WIDE    9                      /* before the point, where there is no bound */

enum { START, SIGN, ZERO, INTEGER, POINT, PART };      /* places */
enum { EQUAL, LESS, MORE };

typedef struct {
    const vlm_bound_t  *low[2], *high[2];          /* of magnitudes: of numbers without and with
                                                      a sign; NULL: no bound */
    int                 none[2];       /* there are no such numbers */
    uint32_t            whole, part;   /* digits on each side of the point */
    uint32_t            of;
    int                 integer;
} range_t;

typedef struct {                       /* a state's key */
    uint8_t   at, negative, low, high, n, part;
    uint16_t  rest;                    /* of a division by "of" */
} state_t;


static uint8_t
compare(uint8_t so_far, const char *digits, uint32_t n, char c)
{
    char  other = n < strlen(digits) ? digits[n] : '0';

    return so_far != EQUAL ? so_far : c < other ? LESS : c > other ? MORE : EQUAL;
}


static uint8_t
compare_whole(const state_t *k, uint8_t so_far, const vlm_bound_t *b, char c)
{
    if (b == NULL) {
        return EQUAL;
    }

    return k->n >= strlen(b->whole) ? MORE : compare(so_far, b->whole, k->n, c);
}


/* Fewer digits than a bound has before its point are less than it. */
static void
end_whole(const range_t *r, state_t *k)
{
    const vlm_bound_t  *low = r->low[k->negative], *high = r->high[k->negative];

    k->low = low != NULL && k->n < strlen(low->whole) ? LESS : k->low;
    k->high = high != NULL && k->n < strlen(high->whole) ? LESS : k->high;
}


static uint32_t
start(void *data, uint8_t *key)
{
    (void) data;
    memset(key, 0, sizeof(state_t));

    return sizeof(state_t);
}


/* A digit. */
static int
digit(const range_t *r, state_t *k, uint8_t c)
{
    const vlm_bound_t  *low = r->low[k->negative], *high = r->high[k->negative];

    if (k->at == START || k->at == SIGN || k->at == INTEGER) {
        if (k->n == r->whole || r->none[k->negative]) {
            return -1;
        }

        k->at = k->at != INTEGER && c == '0' ? ZERO : INTEGER;
        k->low = compare_whole(k, k->low, low, (char) c);
        k->high = compare_whole(k, k->high, high, (char) c);
        k->n++;
        k->rest = (uint16_t) ((k->rest * 10u + (c - '0')) % r->of);

        return 0;
    }

    if (k->at == ZERO || k->part == r->part) {
        return -1;
    }

    k->at = PART;
    k->low = low == NULL ? EQUAL : compare(k->low, low->part, k->part, (char) c);
    k->high = high == NULL ? EQUAL : compare(k->high, high->part, k->part, (char) c);
    k->part++;

    return 0;
}


static uint32_t
step(void *data, const uint8_t *key, uint32_t n, uint8_t c, uint8_t *to)
{
    state_t    k;
    range_t  *r = data;

    memcpy(&k, key, n);

    if (c == '-' && k.at == START) {
        k.at = SIGN;
        k.negative = 1;

    } else if (c == '.' && (k.at == ZERO || k.at == INTEGER) && !r->integer) {
        end_whole(r, &k);
        k.at = POINT;
        k.n = 0;

    } else if (c < '0' || c > '9' || digit(r, &k, c) != 0) {
        return 0;
    }

    memcpy(to, &k, n);

    return n;
}


static int
ends(void *data, const uint8_t *key, uint32_t n)
{
    state_t              k;
    uint32_t            more;
    range_t            *r = data;
    const vlm_bound_t  *low, *high;

    memcpy(&k, key, n);

    if ((k.at != ZERO && k.at != INTEGER && k.at != PART) || k.rest != 0) {
        return 0;
    }

    if (k.at != PART) {
        end_whole(r, &k);
    }

    low = r->low[k.negative];
    high = r->high[k.negative];

    /* A bound's further digits, of which the last is not zero, make it the greater one. */

    more = low != NULL && strlen(low->part) > k.part;

    if (low != NULL && (k.low == LESS || (k.low == EQUAL && (more || low->exclusive)))) {
        return 0;
    }

    more = high != NULL && strlen(high->part) > k.part;

    return high == NULL || k.high == LESS || (k.high == EQUAL && (more || !high->exclusive));
}


/* Bounds of the numbers without a sign, or with one: towards zero, and away from it. */
static void
set_side(range_t *r, int negative, const vlm_bound_t *near, const vlm_bound_t *far)
{
    r->none[negative] = far->is && far->negative != negative;
    r->high[negative] = far->is ? far : NULL;

    if (near->is && (near->negative == negative
                     || (strcmp(near->whole, "0") == 0 && near->part[0] == '\0')))
    {
        r->low[negative] = near;
    }
}


vlm_dfa_t *
vlm_dfa_range(vlm_maker_t *k, const vlm_bound_t *low, const vlm_bound_t *high, int integer,
              uint32_t of)
{
    uint32_t            i, whole, part;
    const vlm_bound_t  *b;
    range_t             r = { .integer = integer, .of = of };
    vlm_explore_t       e = { .n_classes = 13, .key_bytes = sizeof(state_t), .data = &r,
                              .start = start, .step = step, .ends = ends };

    for (i = 0; i < 256; i++) {
        e.class_of[i] = (uint8_t) (i >= '0' && i <= '9' ? i - '0' + 1 : i == '-' ? 11
                                   : i == '.' ? 12 : 0);
    }

    set_side(&r, 0, low, high);
    set_side(&r, 1, high, low);

    whole = integer ? WHOLE : low->is && high->is ? 1 : WIDE;
    part = 0;

    for (i = 0; i < 2; i++) {
        b = i == 0 ? low : high;
        whole = b->is && strlen(b->whole) > whole ? (uint32_t) strlen(b->whole) : whole;
        part = b->is && strlen(b->part) > part ? (uint32_t) strlen(b->part) : part;
    }

    r.whole = whole;
    r.part = whole + 1 > DIGITS ? 1 : DIGITS - whole;
    r.part = part > r.part ? part : r.part;

    return vlm_dfa_explore(k, &e);
}
