/*
 * AMX's linear with tiles in plain C, for tests on processors that have AVX-512 alone.  It has the
 * name vlm_linear_amx_emu; a tile that was not configured for its rows keeps what it had.
 */

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint8_t  rows, row[16][64];
} tile_t;

static tile_t  tile[8];


static void
set_tiles(const void *config)
{
    int             i;
    const uint8_t  *c = config;

    for (i = 0; i < 8; i++) {
        tile[i].rows = c[48 + i];
        memset(tile[i].row, 0, sizeof(tile[i].row));
    }
}


static void
load_tile(int to, const void *from, size_t step)
{
    int  r;

    for (r = 0; r < tile[to].rows; r++) {
        memcpy(tile[to].row[r], (const uint8_t *) from + r * step, 64);
    }
}


static void
store_tile(int from, void *to, size_t step)
{
    int  r;

    for (r = 0; r < tile[from].rows; r++) {
        memcpy((uint8_t *) to + r * step, tile[from].row[r], 64);
    }
}


/* sum [rows of a][16] += a [rows][16][4] b [16][16][4], signed */
static void
multiply_tiles(int sum, int a, int b)
{
    int       r, c, k;
    int32_t   v;

    for (r = 0; r < tile[sum].rows; r++) {
        for (c = 0; c < 16; c++) {
            memcpy(&v, tile[sum].row[r] + 4 * c, 4);

            for (k = 0; k < 64; k++) {
                v += (int8_t) tile[a].row[r][k] * (int8_t) tile[b].row[k / 4][4 * c + k % 4];
            }

            memcpy(tile[sum].row[r] + 4 * c, &v, 4);
        }
    }
}


#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbssd

#define _tile_loadconfig(config)      set_tiles(config)
#define _tile_release()               memset(tile, 0, sizeof(tile))
#define _tile_loadd(to, from, step)   load_tile(to, from, step)
#define _tile_stored(from, to, step)  store_tile(from, to, step)
#define _tile_zero(t)                 memset(tile[t].row, 0, sizeof(tile[t].row))
#define _tile_dpbssd(sum, a, b)       multiply_tiles(sum, a, b)

#define vlm_linear_amx  vlm_linear_amx_emu

#include "ops/amx/linear.c"
