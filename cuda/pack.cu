/*
 * The order of packed weights: of int8 and bf16 alike, and of int4.
 *
 * A row's values are bytes, padded with zeros to whole blocks of 64 values; rows are padded to
 * tiles of 16.  A tile of 16 rows by 32 bytes is 512 bytes together: piece [lane][4] of 4 bytes is
 * that lane's A operand of vlm_mma_s8() and vlm_mma_bf16().  So one 16-byte load a lane is a
 * fragment, a warp's load is 512 bytes in a row, and the same copy serves a single activation row
 * and a thousand.  Tiles of the same 16 rows follow each other along K.
 *
 *   piece [lane][i] = row lane / 4 + 8 (i % 2), bytes 4 (lane % 4) + 16 (i / 2) to + 3
 *
 * In int4 (format/int4.h) the 32 bytes of 64 values of a row are such a tile, whose low four bits
 * are the values of the first tile of int8 and whose high ones those of the second.  Behind each
 * tile of 16 rows are the steps and bases of these, [8] words: step and base of a row, and of the
 * row 8 on.
 *
 * f32 rows, which only the patch embedding has, stay as they are.
 */

#include <stdlib.h>
#include <string.h>

#include "device.h"

extern "C" {
#include "format/bf16.h"
#include "format/int4.h"
}

#define TILE_BYTES  32                 /* of a row */

static_assert(VLM_CUDA_GROUP4 == VLM_INT4_GROUP, "a row has the same groups in both orders");


/* Row n of the caller's rows, as bytes with zeros to the end. */
static void
read_row(const vlm_linear_t *w, const void *from, uint32_t n, uint8_t *row, size_t bytes)
{
    uint32_t      k;
    const float  *f;

    memset(row, 0, bytes);

    if (w->type == VLM_INT8) {
        memcpy(row, static_cast<const uint8_t *>(from) + static_cast<size_t>(n) * w->K, w->K);
        return;
    }

    f = static_cast<const float *>(from) + static_cast<size_t>(n) * w->K;

    for (k = 0; k < w->K; k++) {
        reinterpret_cast<uint16_t *>(row)[k] = vlm_f32_bf16(f[k]);
    }
}


/* Copies TILE_BYTES of one row to their places in a tile. */
static void
scatter_tile(uint8_t *tile, const uint8_t *row, uint32_t r)
{
    uint32_t   t, i, lane;

    for (i = 0; i < 2; i++) {
        for (t = 0; t < 4; t++) {
            lane = r % 8 * 4 + t;
            memcpy(tile + lane * 16 + (r / 8 + 2 * i) * 4, row + 4 * t + 16 * i, 4);
        }
    }
}


/* Copies one row to its places in the tiles of 16 rows of `bytes` bytes each. */
static void
scatter_row(uint8_t *tiles, const uint8_t *row, uint32_t r, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += TILE_BYTES) {
        scatter_tile(tiles + at * VLM_CUDA_TILE, row + at, r);
    }
}


/* The same of a row of groups of int4. */
static void
scatter_groups(uint8_t *tiles, const uint8_t *row, uint32_t r, size_t bytes)
{
    uint8_t  *tile;

    for (size_t at = 0; at < bytes; at += VLM_INT4_GROUP) {
        tile = tiles + at * VLM_CUDA_TILE;
        scatter_tile(tile, row + at, r);
        memcpy(tile + TILE_BYTES * VLM_CUDA_TILE + r % 8 * 4 + r / 8 * 2, row + at + TILE_BYTES, 2);
    }
}


/* Bytes of a row in tiles. */
static size_t
row_bytes(const vlm_linear_t *w)
{
    size_t  padded = vlm_cuda_padded(w->K);

    return w->type == VLM_INT4 ? padded / VLM_BLOCK * VLM_CUDA_GROUP4
                               : padded * (w->type == VLM_INT8 ? 1 : 2);
}


/* Rows beyond N are zeros, too: a tile is always whole. */
void
vlm_cuda_pack(vlm_device_t *d, vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    size_t     bytes, tile;
    uint8_t   *tiles, *one;
    uint32_t   i, rows;

    if (w->type == VLM_F32) {
        bytes = static_cast<size_t>(w->K) * sizeof(float);
        vlm_device_put(d, static_cast<uint8_t *>(w->w) + row * bytes, from, n * bytes);
        return;
    }

    bytes = row_bytes(w);
    tile = bytes * VLM_CUDA_TILE;
    rows = vlm_divide_up(n, VLM_CUDA_TILE) * VLM_CUDA_TILE;
    tiles = static_cast<uint8_t *>(calloc(rows + 1, bytes));

    if (tiles == nullptr) {
        vlm_device_no_memory(d);
        return;
    }

    one = tiles + rows * bytes;

    for (i = 0; i < n; i++) {
        if (w->type == VLM_INT4) {
            scatter_groups(tiles + i / VLM_CUDA_TILE * tile,
                           static_cast<const uint8_t *>(from) + i * bytes, i % VLM_CUDA_TILE,
                           bytes);
            continue;
        }

        read_row(w, from, i, one, bytes);
        scatter_row(tiles + i / VLM_CUDA_TILE * tile, one, i % VLM_CUDA_TILE, bytes);
    }

    vlm_device_put(d, static_cast<uint8_t *>(w->w) + row * bytes, tiles, rows * bytes);
    free(tiles);
}
