/*
 * linear for AMX: int8 and int4 with enough rows go through tiles; AVX-512's kernels do the rest.
 *
 * The panels are AVX-512's, u8 = w + 128; 128 is subtracted again from a piece of one, once for all
 * activation rows, and a piece of int4 becomes int8.  A tile holds 16 rows of 64 values: 16
 * activation rows and a block of k, or 16 weight rows and the same block in the panel's order.  The
 * products of a piece's blocks are summed in one tile, which is added to y by one multiply-add, as
 * in the definition.
 *
 * The sums of a tile go through memory.  So there are three such tiles, and each is written while
 * the next one is summed and read while the one after that is.
 */

#include <immintrin.h>

#include "base/size.h"
#include "format/format.h"
#include "format/int4.h"
#include "ops/kernels.h"
#include "ops/low.h"

#define LEAST    12                    /* from so many activation rows on, tiles are faster */
#define ROWS     256                   /* that go over a piece of a panel together */
#define BLOCKS   4                     /* of a piece, which stays in the first cache: 16 KiB */
#define STEP     16                    /* rows of a tile, of activations or of weights */
#define GROUPS   (VLM_PANEL / STEP)    /* of a panel's rows */

#define BLOCK_BYTES  (VLM_BLOCK * VLM_PANEL)       /* of a panel */

_Static_assert(VLM_BLOCK == 64, "a block is a row of a tile");
_Static_assert(VLM_PIECE == BLOCKS * VLM_BLOCK, "the blocks of a piece are tiles 0 to 3");
_Static_assert(ROWS % STEP == 0, "y has whole tiles");

typedef struct {                       /* a product's working memory, on the stack */
    uint8_t  weights[BLOCKS][BLOCK_BYTES];
    float    y[ROWS][VLM_PANEL];
    int32_t  dot[GROUPS][STEP][16];
} __attribute__((aligned(64))) work_t;

typedef struct {
    uint8_t   palette, start, reserved[14];
    uint16_t  bytes[16];               /* of a row */
    uint8_t   rows[16];
} __attribute__((aligned(64))) tiles_t;

void vlm_linear_avx512(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


/* Tiles read memory unknown to the compiler: this keeps earlier writes before them. */
static inline void
barrier(void)
{
    __asm__ volatile("" ::: "memory");
}


/* Activations, of so many rows, in tiles 0 to 3, their sums in 4 to 6, weights in 7. */
static void
configure(uint32_t rows)
{
    int      i;
    tiles_t  t;

    memset(&t, 0, sizeof(t));
    t.palette = 1;

    for (i = 0; i < 8; i++) {
        t.bytes[i] = 64;
        t.rows[i] = i < 7 ? (uint8_t) rows : 16;
    }

    barrier();
    _tile_loadconfig(&t);
}


/* n blocks of a panel in the form that is multiplied. */
static void
take_offset(const uint8_t *panel, uint32_t n, uint8_t *to)
{
    size_t   i;
    __m512i  top;

    top = _mm512_set1_epi8((char) 0x80);

    for (i = 0; i < (size_t) n * BLOCK_BYTES; i += 64) {
        _mm512_store_si512(to + i, _mm512_xor_si512(_mm512_load_si512(panel + i), top));
    }
}


static inline __attribute__((always_inline)) void
load_activations(const int8_t *q, size_t row, uint32_t n)
{
    _tile_loadd(0, q, row);

    if (n > 1) {
        _tile_loadd(1, q + VLM_BLOCK, row);
    }

    if (n > 2) {
        _tile_loadd(2, q + 2 * VLM_BLOCK, row);
    }

    if (n > 3) {
        _tile_loadd(3, q + 3 * VLM_BLOCK, row);
    }
}


#define PRODUCT(sum, x)                                                                            \
    case 16 * sum + x: _tile_dpbssd(sum, x, 7); break

/* An instruction names its tiles: with constants for both, one of these remains. */
static inline __attribute__((always_inline)) void
multiply(uint32_t sum, uint32_t x, const uint8_t *weights)
{
    _tile_loadd(7, weights, 4 * VLM_PANEL);

    switch (16 * sum + x) {
    PRODUCT(4, 0); PRODUCT(4, 1); PRODUCT(4, 2); PRODUCT(4, 3);
    PRODUCT(5, 0); PRODUCT(5, 1); PRODUCT(5, 2); PRODUCT(5, 3);
    PRODUCT(6, 0); PRODUCT(6, 1); PRODUCT(6, 2); PRODUCT(6, 3);
    }
}


/* The tile of a group's sums, by turns. */
static inline uint32_t
tile_of(uint32_t group)
{
    return 4 + group % 3;
}


/* Sums n blocks for one of the panel's groups. */
static inline __attribute__((always_inline)) void
sum_group(const work_t *w, uint32_t group, uint32_t n)
{
    uint32_t  b;

    switch (tile_of(group)) {
    case 4: _tile_zero(4); break;
    case 5: _tile_zero(5); break;
    case 6: _tile_zero(6); break;
    }

    for (b = 0; b < n; b++) {
        multiply(tile_of(group), b, w->weights[b] + group * 4 * STEP);
    }
}


static inline __attribute__((always_inline)) void
write_sums(work_t *w, uint32_t group)
{
    switch (tile_of(group)) {
    case 4: _tile_stored(4, w->dot[group], 64); break;
    case 5: _tile_stored(5, w->dot[group], 64); break;
    case 6: _tile_stored(6, w->dot[group], 64); break;
    }
}


/* y += s dot, of `rows` rows whose scales are `pieces` apart. */
static inline __attribute__((always_inline)) void
add_sums(const work_t *w, uint32_t group, const float *s, size_t pieces, uint32_t rows,
         float y[][VLM_PANEL])
{
    float     *to;
    __m512     sum;
    uint32_t   m;

    for (m = 0; m < rows; m++) {
        to = y[m] + group * STEP;
        sum = _mm512_cvtepi32_ps(_mm512_load_si512(w->dot[group][m]));
        _mm512_store_ps(to, _mm512_fmadd_ps(_mm512_set1_ps(s[m * pieces]), sum,
                                            _mm512_load_ps(to)));
    }
}


/* Activation rows t .. t + rows, at most STEP, against piece p of a panel, which has n blocks. */
static inline __attribute__((always_inline)) void
multiply_rows(const vlm_linear_args_t *a, work_t *w, size_t t, uint32_t rows, uint32_t p,
              uint32_t n, float y[][VLM_PANEL])
{
    size_t        values, pieces;
    uint32_t      group;
    const float  *s;

    values = (size_t) vlm_blocks(a->w->K) * VLM_BLOCK;
    pieces = vlm_pieces(a->w->K);
    s = a->s + t * pieces + p;
    load_activations(a->q + t * values + (size_t) p * VLM_PIECE, values, n);

    for (group = 0; group < GROUPS + 2; group++) {
        if (group < GROUPS) {
            sum_group(w, group, n);
        }

        if (group >= 1 && group - 1 < GROUPS) {
            write_sums(w, group - 1);
        }

        if (group >= 2) {
            barrier();
            add_sums(w, group - 2, s, pieces, rows, y);
        }
    }
}


/* The number of blocks is a constant in each call. */
static void
multiply_piece(const vlm_linear_args_t *a, work_t *w, size_t t, uint32_t rows, uint32_t p,
               uint32_t n, float y[][VLM_PANEL])
{
    if (rows == STEP && n == BLOCKS) {
        multiply_rows(a, w, t, STEP, p, BLOCKS, y);
        return;
    }

    switch (n) {
    case 1:
        multiply_rows(a, w, t, rows, p, 1, y);
        break;
    case 2:
        multiply_rows(a, w, t, rows, p, 2, y);
        break;
    case 3:
        multiply_rows(a, w, t, rows, p, 3, y);
        break;
    default:
        multiply_rows(a, w, t, rows, p, BLOCKS, y);
    }
}


/* Activation rows first .. first + T, at most ROWS, against a panel. */
static void
multiply_panel(const vlm_linear_args_t *a, work_t *w, const uint8_t *panel, uint32_t first,
               uint32_t T)
{
    int       int4 = a->w->type == VLM_INT4;
    uint32_t  t, p, n, blocks, bytes;

    blocks = vlm_blocks(a->w->K);
    memset(w->y, 0, T * sizeof(w->y[0]));

    for (p = 0; p < vlm_pieces(a->w->K); p++, panel += bytes) {
        n = blocks - p * BLOCKS < BLOCKS ? blocks - p * BLOCKS : BLOCKS;
        bytes = int4 ? n * VLM_INT4_NIBBLES + 2 * VLM_INT4_NUMBERS : n * BLOCK_BYTES;

        if (int4) {
            vlm_int4_piece_avx512(panel, n, 0, w->weights[0]);
        } else {
            take_offset(panel, n, w->weights[0]);
        }

        barrier();

        for (t = 0; t + STEP <= T; t += STEP) {
            vlm_bring(panel + bytes, int4 ? BLOCKS / 2 : BLOCKS, t, STEP, T);
            multiply_piece(a, w, first + t, STEP, p, n, w->y + t);
        }

        if (t < T) {
            configure(T - t);
            multiply_piece(a, w, first + t, T - t, p, n, w->y + t);
            configure(STEP);
        }
    }
}


void
vlm_linear_amx(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    work_t          work;
    uint32_t        p, t, T;
    const uint8_t  *panel;

    if (!vlm_takes_int8(a->w->type) || a->T < LEAST) {
        vlm_linear_avx512(a, begin, end);
        return;
    }

    configure(STEP);

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w
                + p * vlm_format_of(a->w->type)->panel_bytes(a->w->K);

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < ROWS ? a->T - t : ROWS;
            multiply_panel(a, &work, panel, t, T);
            vlm_linear_end(a, vlm_epilogue_avx512, p, t, 1, T, work.y);
        }
    }

    _tile_release();
}
