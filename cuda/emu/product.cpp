/*
 * Most of the emulator's time goes into these products.  Their arrays are the emulator's own and
 * of fixed sizes, so this file is compiled without sanitizers, and with -O3 (../Makefile).
 */

#include "cuda_emu.h"
#include "product.h"

#define COLUMNS  8


static int
value_of(int8_t byte)
{
    return byte;
}


static float
value_of(uint16_t half)
{
    return vlm_emu_bits<float>(static_cast<unsigned>(half) << 16);
}


/* In the order of k; the hardware's own order is not told, and differs. */
template <class E, class T, int ROWS, int K>
static void
product(const E (&a)[ROWS][K], const E (&b)[COLUMNS][K], T (&sum)[ROWS][COLUMNS])
{
    T  columns[K][COLUMNS];

    for (int column = 0; column < COLUMNS; column++) {
        for (int k = 0; k < K; k++) {
            columns[k][column] = value_of(b[column][k]);
        }
    }

    for (int row = 0; row < ROWS; row++) {
        for (int k = 0; k < K; k++) {
            for (int column = 0; column < COLUMNS; column++) {
                sum[row][column] += value_of(a[row][k]) * columns[k][column];
            }
        }
    }
}


void
vlm_emu_product_s8(const int8_t (&a)[16][32], const int8_t (&b)[8][32], int (&sum)[16][8])
{
    product(a, b, sum);
}


void
vlm_emu_product_s8_small(const int8_t (&a)[8][16], const int8_t (&b)[8][16], int (&sum)[8][8])
{
    product(a, b, sum);
}


void
vlm_emu_product_bf16(const uint16_t (&a)[16][16], const uint16_t (&b)[8][16], float (&sum)[16][8])
{
    product(a, b, sum);
}
