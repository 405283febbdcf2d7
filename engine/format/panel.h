/*
 * Panels: the order in which vector units read int8 weights, also in the cache file.
 *
 * 64 rows lie together with k slowest, in words of four values: [blocks 16][64] words.  Values
 * beyond the last row and the last k are 0.  Each byte is XORed with the panels' flip: 0 leaves it
 * signed, VLM_FLIP makes it q + 128 for units that multiply unsigned by signed.
 */

#ifndef VLM_PANEL_H
#define VLM_PANEL_H

#include <string.h>

#include "base/size.h"
#include "ops/ops.h"

#define VLM_PANEL  64                  /* weight rows that lie together */
#define VLM_FLIP   0x80808080u

/* Bytes of a panel of rows of K values. */
static inline uint64_t
vlm_panel_bytes(uint32_t K)
{
    return vlm_mul(VLM_PANEL, vlm_round(K, VLM_BLOCK));
}

/*
 * Packs int8 rows [n][K], n at most a panel, in squares of 16 rows by a cache line, so that each
 * line is read once and written whole.
 */
static inline void
vlm_pack_words(uint32_t *panel, const int8_t *from, uint32_t n, uint32_t K, uint32_t flip)
{
    uint32_t  i, j, k, row, bytes, square[16][16];

    for (k = 0; k < K; k += VLM_BLOCK, panel += 16 * VLM_PANEL) {
        bytes = K - k < VLM_BLOCK ? K - k : VLM_BLOCK;

        for (row = 0; row < VLM_PANEL; row += 16) {
            if (n < row + 16 || bytes < VLM_BLOCK) {
                memset(square, 0, sizeof(square));
            }

            for (i = 0; i < 16 && row + i < n; i++) {
                memcpy(square[i], from + (size_t) (row + i) * K + k,
                       bytes == VLM_BLOCK ? VLM_BLOCK : bytes);
            }

            for (j = 0; j < 16; j++) {
                for (i = 0; i < 16; i++) {
                    panel[j * VLM_PANEL + row + i] = square[i][j] ^ flip;
                }
            }
        }
    }
}

/* The inverse. */
static inline void
vlm_unpack_words(int8_t *to, const uint32_t *panel, uint32_t n, uint32_t K, uint32_t flip)
{
    uint32_t  i, j, k, row, bytes, line[16];

    for (k = 0; k < K; k += VLM_BLOCK, panel += 16 * VLM_PANEL) {
        bytes = K - k < VLM_BLOCK ? K - k : VLM_BLOCK;

        for (row = 0; row < n; row += 16) {
            for (i = row; i < n && i < row + 16; i++) {
                for (j = 0; j < 16; j++) {
                    line[j] = panel[j * VLM_PANEL + i] ^ flip;
                }

                memcpy(to + (size_t) i * K + k, line, bytes);
            }
        }
    }
}

/*
 * Prefetches the next n blocks of a panel into the second-level cache, a share with each tile: that
 * of activation rows t .. t + rows of T.  Addresses past the last panel are prefetched but not
 * read.
 */
static inline void
vlm_bring(const uint8_t *piece, uint32_t n, uint32_t t, uint32_t rows, uint32_t T)
{
    uint32_t  at, end;

    at = n * VLM_BLOCK * t / T;
    end = n * VLM_BLOCK * (t + rows) / T;

    for ( /* void */ ; at < end; at++) {
        __builtin_prefetch(piece + (size_t) at * VLM_PANEL, 0, 2);
    }
}

#endif
