/*
 * linear for AMX: int8 with some rows goes through tiles, all else is AVX-512's.
 *
 * The panels are AVX-512's, u8 = w + 128; a piece of one has 128 taken off again, once for all
 * activation rows.  A tile holds 16 rows of 64 values: 16 activation rows and a block of k, or 16
 * weight rows and the same block in the order in which the panel has it.  So one instruction sums
 * a whole block, and a block's sums go into y by one multiply-add, as the definition has it.
 */

#include <immintrin.h>

#include "ops/kernels.h"

#define LEAST    12                    /* activation rows that are worth the tiles */
#define ROWS     256                   /* that go over a piece of a panel together */
#define PIECE    4                     /* blocks of a panel that stay near: 16 KiB */
#define GROUP    2                     /* panels that read an activation while it is near */
#define STEP     16                    /* activation rows of a tile */

#define BLOCK_BYTES  (VLM_BLOCK * VLM_PANEL)       /* of a panel */

typedef struct {                       /* what a product needs at hand: on the stack */
    uint8_t  weights[GROUP][PIECE][BLOCK_BYTES];
    float    y[GROUP][ROWS][VLM_PANEL];
    int32_t  dot[2][4 * STEP * 16];
} __attribute__((aligned(64))) work_t;

typedef struct {
    uint8_t   palette, start, reserved[14];
    uint16_t  bytes[16];               /* of a row */
    uint8_t   rows[16];
} __attribute__((aligned(64))) tiles_t;

void vlm_linear_avx512(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


/* Sums in tiles 0 to 3, activations in 4 (of so many rows), weights in 5 and 6. */
static void
configure(uint32_t rows)
{
    int      i;
    tiles_t  t;

    memset(&t, 0, sizeof(t));
    t.palette = 1;

    for (i = 0; i < 7; i++) {
        t.bytes[i] = 64;
        t.rows[i] = i < 5 ? (uint8_t) rows : 16;
    }

    _tile_loadconfig(&t);
}


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


/* dot [4][STEP][16] of a block: as many activation rows as were configured, 4 times 16 weights. */
static inline __attribute__((always_inline)) void
multiply_block(const int8_t *q, size_t step, const uint8_t *weights, int32_t *dot)
{
    _tile_loadd(4, q, step);

    _tile_loadd(5, weights, 4 * VLM_PANEL);
    _tile_zero(0);
    _tile_dpbssd(0, 4, 5);

    _tile_loadd(6, weights + 64, 4 * VLM_PANEL);
    _tile_zero(1);
    _tile_dpbssd(1, 4, 6);
    _tile_stored(0, dot, 64);

    _tile_loadd(5, weights + 128, 4 * VLM_PANEL);
    _tile_zero(2);
    _tile_dpbssd(2, 4, 5);
    _tile_stored(1, dot + 16 * STEP, 64);

    _tile_loadd(6, weights + 192, 4 * VLM_PANEL);
    _tile_zero(3);
    _tile_dpbssd(3, 4, 6);
    _tile_stored(2, dot + 32 * STEP, 64);
    _tile_stored(3, dot + 48 * STEP, 64);
}


/* y += s dot, for rows whose scales lie `step` apart. */
static inline __attribute__((always_inline)) void
add_block(const int32_t *dot, const float *s, size_t step, int rows, float y[][VLM_PANEL])
{
    int     m, j;
    __m512  scale, sum;

    for (m = 0; m < rows; m++) {
        scale = _mm512_set1_ps(s[m * step]);

        for (j = 0; j < 4; j++) {
            sum = _mm512_cvtepi32_ps(_mm512_load_si512(dot + 16 * (STEP * j + m)));
            sum = _mm512_fmadd_ps(scale, sum, _mm512_load_ps(y[m] + 16 * j));
            _mm512_store_ps(y[m] + 16 * j, sum);
        }
    }
}


/* Rows t .. t + rows, at most STEP, against the pieces of g panels: n blocks from b on. */
static void
multiply_rows(const vlm_linear_args_t *a, work_t *w, uint32_t first, uint32_t t, uint32_t rows,
              uint32_t b, uint32_t n, uint32_t g)
{
    size_t         blocks;
    uint32_t       i, p;
    const float   *s;
    const int8_t  *q;

    blocks = vlm_blocks(a->w->K);
    s = a->s + (first + t) * blocks + b;
    q = a->q + ((first + t) * blocks + b) * VLM_BLOCK;

    for (p = 0; p < g; p++) {
        for (i = 0; i < n; i++) {
            multiply_block(q + i * VLM_BLOCK, blocks * VLM_BLOCK, w->weights[p][i], w->dot[i % 2]);

            if (rows == STEP) {
                add_block(w->dot[i % 2], s + i, blocks, STEP, w->y[p] + t);
            } else {
                add_block(w->dot[i % 2], s + i, blocks, (int) rows, w->y[p] + t);
            }
        }
    }
}


/* Activation rows first .. first + T, at most ROWS, against g panels. */
static void
multiply_panels(const vlm_linear_args_t *a, work_t *w, const uint8_t *panel, uint32_t g,
                uint32_t first, uint32_t T)
{
    uint32_t  t, b, n, p, blocks;

    blocks = vlm_blocks(a->w->K);

    for (p = 0; p < g; p++) {
        memset(w->y[p], 0, T * sizeof(w->y[p][0]));
    }

    for (b = 0; b < blocks; b += n) {
        n = blocks - b < PIECE ? blocks - b : PIECE;

        for (p = 0; p < g; p++) {
            take_offset(panel + ((size_t) p * blocks + b) * BLOCK_BYTES, n, w->weights[p][0]);
        }

        for (t = 0; t + STEP <= T; t += STEP) {
            multiply_rows(a, w, first, t, STEP, b, n, g);
        }

        if (t < T) {
            configure(T - t);
            multiply_rows(a, w, first, t, T - t, b, n, g);
            configure(STEP);
        }
    }
}


/* Rows t .. t + T of y from what was summed for panel p. */
static void
finish_panel(const vlm_linear_args_t *a, uint32_t p, uint32_t t, uint32_t T,
             float sums[][VLM_PANEL])
{
    size_t    out;
    uint32_t  m, n0, n;

    out = vlm_linear_out(a->w);
    n0 = p * VLM_PANEL;
    n = a->w->N - n0 < VLM_PANEL ? a->w->N - n0 : VLM_PANEL;

    for (m = 0; m < T; m++) {
        vlm_epilogue_avx512(a->w, n0, n, sums[m], a->y + (t + m) * out);
    }
}


void
vlm_linear_amx(const vlm_linear_args_t *a, uint32_t begin, uint32_t end)
{
    size_t          panel_bytes;
    work_t          work;
    uint32_t        p, t, T, g, i;
    const uint8_t  *panel;

    if (a->w->type != VLM_INT8 || a->T < LEAST) {
        vlm_linear_avx512(a, begin, end);
        return;
    }

    panel_bytes = (size_t) vlm_blocks(a->w->K) * BLOCK_BYTES;
    configure(STEP);

    for (p = begin; p < end; p += g) {
        g = end - p < GROUP ? end - p : GROUP;
        panel = (const uint8_t *) a->w->w + p * panel_bytes;

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < ROWS ? a->T - t : ROWS;
            multiply_panels(a, &work, panel, g, t, T);

            for (i = 0; i < g; i++) {
                finish_panel(a, p + i, t, T, work.y[i]);
            }
        }
    }

    _tile_release();
}
