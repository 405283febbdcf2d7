/*
 * linear for AMX: int8 with enough rows goes through tiles; AVX-512's kernels do the rest.
 *
 * The panels are AVX-512's, u8 = w + 128; 128 is subtracted again from a piece of one, once for all
 * activation rows.  A tile holds 16 rows of 64 values: 16 activation rows and a block of k, or 16
 * weight rows and the same block in the panel's order.  So one instruction sums a whole block, and
 * a block's sums are added to y by one multiply-add, as in the definition.
 *
 * The sums of a tile go through memory, which takes longer than the products.  So 16 columns of y
 * stay in registers for all blocks of a piece, and each tile is written two products after its own
 * and read two after that, so that no instruction waits for it.
 */

#include <immintrin.h>

#include "base/size.h"
#include "ops/kernels.h"

#define LEAST    12                    /* from so many activation rows on, tiles are faster */
#define ROWS     256                   /* that go over a piece of a panel together */
#define PIECE    4                     /* blocks of a panel that stay in the first cache: 16 KiB */
#define STEP     16                    /* rows of a tile, of activations or of weights */
#define STEPS    (VLM_PANEL / STEP * PIECE)        /* products of a piece and 16 rows */
#define LATE     2                     /* products between one and the writing of its sums */

#define BLOCK_BYTES  (VLM_BLOCK * VLM_PANEL)       /* of a panel */

_Static_assert(VLM_BLOCK == 64, "a block is a row of a tile");
_Static_assert(VLM_PANEL == 4 * STEP && PIECE == 4, "multiply_rows() has four times four products");
_Static_assert(LATE < 3 && LATE < PIECE, "there are three tiles of sums");
_Static_assert(ROWS % STEP == 0, "y has whole tiles");

typedef struct {                       /* a product's working memory, on the stack */
    uint8_t  weights[PIECE][BLOCK_BYTES];
    float    y[ROWS][VLM_PANEL];
    int32_t  dot[2 * PIECE][STEP][16]; /* of the last products, by turns */
    float    s[PIECE][STEP];
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


/*
 * Copies activations of n blocks.  The last block is repeated for missing ones, whose scale is 0.
 */
static inline void
load_activations(const int8_t *q, size_t row, uint32_t n)
{
    uint32_t  last;

    last = n - 1;

    _tile_loadd(0, q, row);
    _tile_loadd(1, q + (last < 1 ? last : 1) * VLM_BLOCK, row);
    _tile_loadd(2, q + (last < 2 ? last : 2) * VLM_BLOCK, row);
    _tile_loadd(3, q + (last < 3 ? last : 3) * VLM_BLOCK, row);
}


/*
 * Scales of a piece, those of a block together.  They are 0 for missing rows and for blocks past n:
 * to add 0 changes nothing, because a sum is never -0 (it begins with 0, and no product with an
 * integer is so small that it could be rounded to 0).
 */
static inline void
load_scales(const float *s, size_t row, uint32_t rows, uint32_t n, float to[][STEP])
{
    uint32_t   i;
    __m512i    at;
    __mmask16  mask;

    mask = (__mmask16) ((1u << rows) - 1);
    at = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    at = _mm512_mullo_epi32(at, _mm512_set1_epi32((int) row));

    for (i = 0; i < PIECE; i++) {
        _mm512_store_ps(to[i], _mm512_mask_i32gather_ps(_mm512_setzero_ps(), i < n ? mask : 0, at,
                                                        s + i, 4));
    }
}


#define PRODUCT(sum, x)                                                                            \
    case 16 * sum + x: _tile_zero(sum); _tile_dpbssd(sum, x, 7); break

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


static inline __attribute__((always_inline)) void
write_sums(uint32_t sum, int32_t dot[][16])
{
    switch (sum) {
    case 4: _tile_stored(4, dot, 64); break;
    case 5: _tile_stored(5, dot, 64); break;
    case 6: _tile_stored(6, dot, 64); break;
    }
}


/* acc += s dot, of product i. */
static inline __attribute__((always_inline)) void
add_block(const work_t *w, uint32_t i, __m512 acc[STEP])
{
    __m512    sum;
    uint32_t  m;

    for (m = 0; m < STEP; m++) {
        sum = _mm512_cvtepi32_ps(_mm512_load_si512(w->dot[i % (2 * PIECE)][m]));
        acc[m] = _mm512_fmadd_ps(_mm512_set1_ps(w->s[i % PIECE][m]), sum, acc[m]);
    }
}


/* The tile of product i's sums, by turns. */
static inline uint32_t
tile_of(uint32_t i)
{
    return 4 + i % 3;
}


/*
 * Product i, the writing of an earlier one, and the addition of the sums before: of the 16 columns
 * before.
 */
static inline __attribute__((always_inline)) void
product(work_t *w, uint32_t i, __m512 acc[STEP])
{
    if (i >= LATE && i - LATE < STEPS) {
        write_sums(tile_of(i - LATE), w->dot[(i - LATE) % (2 * PIECE)]);
    }

    if (i < STEPS) {
        multiply(tile_of(i), i % PIECE, w->weights[i % PIECE] + i / PIECE * 4 * STEP);
    }

    if (i >= PIECE) {
        add_block(w, i - PIECE, acc);
    }
}


/*
 * Products from i on, of a piece and 16 columns.  Calls, not a loop, so that acc stays in
 * registers.
 */
static inline __attribute__((always_inline)) void
products(work_t *w, uint32_t i, float y[][VLM_PANEL])
{
    float     *before;                 /* the columns before */
    __m512     acc[STEP];
    uint32_t   m;

    before = y[0] + (i > 0 ? i / PIECE - 1 : 0) * STEP;

    for (m = 0; i > 0 && m < STEP; m++) {
        acc[m] = _mm512_load_ps(before + m * VLM_PANEL);
    }

    product(w, i, acc);
    product(w, i + 1, acc);
    product(w, i + 2, acc);
    product(w, i + 3, acc);

    for (m = 0; i > 0 && m < STEP; m++) {
        _mm512_store_ps(before + m * VLM_PANEL, acc[m]);
    }
}


/* Rows t .. t + rows, at most STEP, against a piece of a panel: n blocks from b on. */
static void
multiply_rows(const vlm_linear_args_t *a, work_t *w, uint32_t first, uint32_t t, uint32_t rows,
              uint32_t b, uint32_t n)
{
    size_t  blocks, at;

    blocks = vlm_blocks(a->w->K);
    at = (first + t) * blocks + b;
    load_activations(a->q + at * VLM_BLOCK, blocks * VLM_BLOCK, n);
    load_scales(a->s + at, blocks, rows, n, w->s);

    products(w, 0, w->y + t);
    products(w, PIECE, w->y + t);
    products(w, 2 * PIECE, w->y + t);
    products(w, 3 * PIECE, w->y + t);
    products(w, STEPS, w->y + t);
}


/* Activation rows first .. first + T, at most ROWS, against a panel. */
static void
multiply_panel(const vlm_linear_args_t *a, work_t *w, const uint8_t *panel, uint32_t first,
               uint32_t T)
{
    uint32_t  t, b, n, blocks;

    blocks = vlm_blocks(a->w->K);
    memset(w->y, 0, vlm_round(T, STEP) * sizeof(w->y[0]));

    for (b = 0; b < blocks; b += n, panel += n * BLOCK_BYTES) {
        n = blocks - b < PIECE ? blocks - b : PIECE;
        take_offset(panel, n, w->weights[0]);
        barrier();

        for (t = 0; t + STEP <= T; t += STEP) {
            vlm_bring(panel + n * BLOCK_BYTES, PIECE, t, STEP, T);
            multiply_rows(a, w, first, t, STEP, b, n);
        }

        if (t < T) {
            configure(T - t);
            multiply_rows(a, w, first, t, T - t, b, n);
            configure(STEP);
        }
    }
}


/* Writes rows t .. t + T of y from the sums for panel p. */
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
    work_t          work;
    uint32_t        p, t, T;
    const uint8_t  *panel;

    if (a->w->type != VLM_INT8 || a->T < LEAST) {
        vlm_linear_avx512(a, begin, end);
        return;
    }

    configure(STEP);

    for (p = begin; p < end; p++) {
        panel = (const uint8_t *) a->w->w + p * vlm_panel_bytes(a->w->K);

        for (t = 0; t < a->T; t += T) {
            T = a->T - t < ROWS ? a->T - t : ROWS;
            multiply_panel(a, &work, panel, t, T);
            finish_panel(a, p, t, T, work.y);
        }
    }

    _tile_release();
}
