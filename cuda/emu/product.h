/* Products of tiles, as tensor cores compute them: sum += A B^T, in the order of k. */

#ifndef VLM_CUDA_EMU_PRODUCT_H
#define VLM_CUDA_EMU_PRODUCT_H

#include <stdint.h>

void vlm_emu_product_s8(const int8_t (&a)[16][32], const int8_t (&b)[8][32], int (&sum)[16][8]);
void vlm_emu_product_s8_small(const int8_t (&a)[8][16], const int8_t (&b)[8][16], int (&sum)[8][8]);

/* Elements are the bits of bf16. */
void vlm_emu_product_bf16(const uint16_t (&a)[16][16], const uint16_t (&b)[8][16],
                          float (&sum)[16][8]);

#endif
