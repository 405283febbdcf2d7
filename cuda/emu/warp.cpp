/* Operations of the lanes of a warp: shuffles, votes, and the products of tensor cores. */

#include <stdint.h>
#include <string.h>

#include "cuda_emu.h"
#include "product.h"

#define WARP  32
#define ALL   0xffffffffu


/* ---- votes and shuffles ------------------------------------------------------------------- */

static void
meet_nothing(void **lane)
{
    (void) lane;
}


void
vlm_emu_sync_warp(vlm_place_t at, unsigned mask)
{
    int  nothing = 0;

    vlm_emu_meet(mask, meet_nothing, &nothing, at);
}


typedef struct {
    int       predicate;
    unsigned  result;
} vote_t;


static void
meet_votes(void **lane)
{
    int       i;
    unsigned  result;

    for (result = 0, i = 0; i < WARP; i++) {
        if (lane[i] != nullptr && static_cast<vote_t *>(lane[i])->predicate) {
            result |= 1u << i;
        }
    }

    for (i = 0; i < WARP; i++) {
        if (lane[i] != nullptr) {
            static_cast<vote_t *>(lane[i])->result = result;
        }
    }
}


unsigned
vlm_emu_ballot(vlm_place_t at, unsigned mask, int predicate)
{
    vote_t  mine = { predicate, 0 };

    vlm_emu_meet(mask, meet_votes, &mine, at);

    return mine.result;
}


typedef struct {
    uint64_t  value, result;
    unsigned  from;                    /* lane; of those that meet, or the result is undefined */
    int       lost;                    /* it was not among them */
} shuffle_t;


static void
meet_shuffles(void **lane)
{
    int         i;
    shuffle_t  *s;

    for (i = 0; i < WARP; i++) {
        s = static_cast<shuffle_t *>(lane[i]);

        if (s == nullptr) {
            continue;
        }

        if (lane[s->from] == nullptr) {
            s->lost = 1;
        } else {
            s->result = static_cast<shuffle_t *>(lane[s->from])->value;
        }
    }
}


/* Within a part of width lanes; beyond its ends a lane reads itself, or around, as CUDA has it. */
static unsigned
source_lane(vlm_shuffle_t how, unsigned me, unsigned lane, unsigned width)
{
    unsigned  first, from;

    first = me - me % width;

    switch (how) {
    case VLM_SHFL_LANE:
        return first + lane % width;
    case VLM_SHFL_XOR:
        from = me ^ lane;
        return from < first + width ? from : me;
    case VLM_SHFL_UP:
        return me - first < lane ? me : me - lane;
    default:
        from = me + lane;
        return from < first + width ? from : me;
    }
}


uint64_t
vlm_emu_shuffle_bits(vlm_place_t at, vlm_shuffle_t how, unsigned mask, uint64_t value,
                     unsigned lane, unsigned width)
{
    shuffle_t  mine = { value, value, 0, 0 };

    mine.from = source_lane(how, vlm_emu_lane(), lane, width);
    vlm_emu_meet(mask, meet_shuffles, &mine, at);

    if (mine.lost) {
        vlm_emu_fault(at, "reads from a lane that is not in the mask");
    }

    return mine.result;
}


/* ---- tensor cores ------------------------------------------------------------------------- */

/*
 * Fragments of m16n8k32 over bytes, m16n8k16 over bf16: a register holds 4 bytes of a row of 32.
 * With g = lane / 4 and t = lane % 4, A's four registers are rows g, g + 8, g, g + 8 at bytes 4 t,
 * 4 t, 16 + 4 t, 16 + 4 t; B's two are column g at the same bytes; C's four are rows g, g, g + 8,
 * g + 8, columns 2 t, 2 t + 1.
 */
#define ROWS     16
#define COLUMNS  8
#define BYTES    32

template <class E>
static void
gather(void **lane, E (&a)[ROWS][BYTES / sizeof(E)], E (&b)[COLUMNS][BYTES / sizeof(E)])
{
    int                i, r, g, t;
    const vlm_lane_t  *m;

    for (i = 0; i < WARP; i++) {
        m = static_cast<const vlm_lane_t *>(lane[i]);
        g = i / 4;
        t = 4 * (i % 4) / sizeof(E);

        for (r = 0; r < 4; r++) {
            memcpy(&a[g + 8 * (r % 2)][t + 16 / sizeof(E) * (r / 2)], &m->a[r], 4);
        }

        for (r = 0; r < 2; r++) {
            memcpy(&b[g][t + 16 / sizeof(E) * r], &m->b[r], 4);
        }
    }
}


/* The elements of C, as the lanes have them. */
template <class T>
static void
put_to_lanes(void **lane, const T (&sum)[ROWS][COLUMNS])
{
    int  i, r;

    for (i = 0; i < WARP; i++) {
        for (r = 0; r < 4; r++) {
            static_cast<vlm_lane_t *>(lane[i])->c[r] =
                vlm_emu_bits<unsigned>(sum[i / 4 + 8 * (r / 2)][i % 4 * 2 + r % 2]);
        }
    }
}


template <class T>
static void
take_from_lanes(void **lane, T (&sum)[ROWS][COLUMNS])
{
    int  i, r;

    for (i = 0; i < WARP; i++) {
        for (r = 0; r < 4; r++) {
            sum[i / 4 + 8 * (r / 2)][i % 4 * 2 + r % 2] =
                vlm_emu_bits<T>(static_cast<vlm_lane_t *>(lane[i])->c[r]);
        }
    }
}


static void
meet_s8(void **lane)
{
    int     sum[ROWS][COLUMNS];
    int8_t  a[ROWS][BYTES], b[COLUMNS][BYTES];

    gather(lane, a, b);
    take_from_lanes(lane, sum);
    vlm_emu_product_s8(a, b, sum);
    put_to_lanes(lane, sum);
}


static void
meet_bf16(void **lane)
{
    float     sum[ROWS][COLUMNS];
    uint16_t  a[ROWS][BYTES / 2], b[COLUMNS][BYTES / 2];

    gather(lane, a, b);
    take_from_lanes(lane, sum);
    vlm_emu_product_bf16(a, b, sum);
    put_to_lanes(lane, sum);
}


/* m8n8k16: with g and t as above, A's register is row g and B's column g, both at bytes 4 t. */
static void
meet_s8_small(void **lane)
{
    int                i, r, sum[8][8];
    int8_t             a[8][16], b[8][16];
    const vlm_lane_t  *m;

    for (i = 0; i < WARP; i++) {
        m = static_cast<const vlm_lane_t *>(lane[i]);

        memcpy(&a[i / 4][4 * (i % 4)], m->a, 4);
        memcpy(&b[i / 4][4 * (i % 4)], m->b, 4);

        for (r = 0; r < 2; r++) {
            sum[i / 4][i % 4 * 2 + r] = vlm_emu_bits<int>(m->c[r]);
        }
    }

    vlm_emu_product_s8_small(a, b, sum);

    for (i = 0; i < WARP; i++) {
        for (r = 0; r < 2; r++) {
            static_cast<vlm_lane_t *>(lane[i])->c[r] =
                vlm_emu_bits<unsigned>(sum[i / 4][i % 4 * 2 + r]);
        }
    }
}


void
vlm_emu_meet_s8(vlm_place_t at, vlm_lane_t *lane)
{
    vlm_emu_meet(ALL, meet_s8, lane, at);
}


void
vlm_emu_meet_s8_small(vlm_place_t at, vlm_lane_t *lane)
{
    vlm_emu_meet(ALL, meet_s8_small, lane, at);
}


void
vlm_emu_meet_bf16(vlm_place_t at, vlm_lane_t *lane)
{
    vlm_emu_meet(ALL, meet_bf16, lane, at);
}
