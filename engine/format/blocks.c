/*
 * Forms of GGUF in which elements lie in blocks with scales of their own.  They are in files alone.
 * Values are those that PyPI's gguf reads, to the bit, so that products and sums are in its order.
 */

#include <stdio.h>
#include <string.h>

#include "format/format.h"

#define SMALL  32                      /* elements of a block */
#define LARGE  256

typedef void (*vlm_block_fn)(const uint8_t *block, float *out);

/* A form, whose blocks are read by block_FORM(). */
#define FORM(form, elements, of_block)                                                             \
    static void read_##form(const uint8_t *data, uint64_t first, uint64_t n, float *out);          \
    static const vlm_format_t  form = { .name = #form, .block = elements, .bytes = of_block,       \
                                        .read = read_##form }

FORM(q8_0, SMALL, 34);
FORM(q4_0, SMALL, 18);
FORM(q4_1, SMALL, 20);
FORM(q5_0, SMALL, 22);
FORM(q5_1, SMALL, 24);
FORM(iq4_nl, SMALL, 18);
FORM(mxfp4, SMALL, 17);
FORM(q2_k, LARGE, 84);
FORM(q3_k, LARGE, 110);
FORM(iq4_xs, LARGE, 136);
FORM(q4_k, LARGE, 144);
FORM(q5_k, LARGE, 176);
FORM(q6_k, LARGE, 210);

/* By the format's numbers; those without a form are known by their names alone. */
static const struct {
    const char          *name;
    const vlm_format_t  *form;
} types[] = {
    [0] = { "F32", NULL }, [1] = { "F16", NULL }, [2] = { "Q4_0", &q4_0 }, [3] = { "Q4_1", &q4_1 },
    [6] = { "Q5_0", &q5_0 }, [7] = { "Q5_1", &q5_1 }, [8] = { "Q8_0", &q8_0 },
    [9] = { "Q8_1", NULL }, [10] = { "Q2_K", &q2_k }, [11] = { "Q3_K", &q3_k },
    [12] = { "Q4_K", &q4_k }, [13] = { "Q5_K", &q5_k }, [14] = { "Q6_K", &q6_k },
    [15] = { "Q8_K", NULL }, [16] = { "IQ2_XXS", NULL }, [17] = { "IQ2_XS", NULL },
    [18] = { "IQ3_XXS", NULL }, [19] = { "IQ1_S", NULL }, [20] = { "IQ4_NL", &iq4_nl },
    [21] = { "IQ3_S", NULL }, [22] = { "IQ2_S", NULL }, [23] = { "IQ4_XS", &iq4_xs },
    [24] = { "I8", NULL }, [25] = { "I16", NULL }, [26] = { "I32", NULL }, [27] = { "I64", NULL },
    [28] = { "F64", NULL }, [29] = { "IQ1_M", NULL }, [30] = { "BF16", NULL },
    [34] = { "TQ1_0", NULL }, [35] = { "TQ2_0", NULL }, [39] = { "MXFP4", &mxfp4 }
};


const vlm_format_t *
vlm_format_gguf(uint32_t type, char name[12])
{
    const char  *known;

    known = type < sizeof(types) / sizeof(types[0]) ? types[type].name : NULL;
    (void) snprintf(name, 12, "%s", known == NULL ? "?" : known);

    if (known == NULL) {
        return NULL;
    }

    return types[type].form != NULL ? types[type].form : vlm_format_spelt(known);
}


/* Elements from the middle of a block to the middle of another. */
static void
read_blocks(const vlm_format_t *f, vlm_block_fn fn, const uint8_t *data, uint64_t first, uint64_t n,
            float *out)
{
    float     one[LARGE];
    uint64_t  skip, now;

    for (data += first / f->block * f->bytes; n > 0; data += f->bytes) {
        skip = first % f->block;
        now = f->block - skip < n ? f->block - skip : n;

        if (now == f->block) {
            fn(data, out);
        } else {
            fn(data, one);
            memcpy(out, one + skip, now * sizeof(float));
        }

        first += now;
        n -= now;
        out += now;
    }
}


static float
half(const uint8_t *p)
{
    float  f;

    vlm_format_of(VLM_F16)->read(p, 0, 1, &f);

    return f;
}


static void
block_q8_0(const uint8_t *block, float *out)
{
    float     d = half(block);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = (float) (int8_t) block[2 + i] * d;
    }
}


/* Value i of a small block of four bits: the lower halves of the bytes, and then the upper ones. */
static uint32_t
nibble(const uint8_t *q, uint32_t i)
{
    return i < SMALL / 2 ? q[i] & 15u : q[i - SMALL / 2] >> 4;
}


/* The same with a fifth bit, from four bytes before. */
static uint32_t
five_bits(const uint8_t *high, uint32_t i)
{
    return nibble(high + 4, i) | (high[i / 8] >> i % 8 & 1u) << 4;
}


static void
block_q4_0(const uint8_t *block, float *out)
{
    float     d = half(block);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = ((float) nibble(block + 2, i) - 8) * d;
    }
}


static void
block_q4_1(const uint8_t *block, float *out)
{
    float     d = half(block), low = half(block + 2);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = d * (float) nibble(block + 4, i) + low;
    }
}


static void
block_q5_0(const uint8_t *block, float *out)
{
    float     d = half(block);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = d * ((float) five_bits(block + 2, i) - 16);
    }
}


static void
block_q5_1(const uint8_t *block, float *out)
{
    float     d = half(block), low = half(block + 2);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = d * (float) five_bits(block + 4, i) + low;
    }
}


/* Values of four bits that are not at equal distances. */
static const int8_t  uneven[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
};


static void
block_iq4_nl(const uint8_t *block, float *out)
{
    float     d = half(block);
    uint32_t  i;

    for (i = 0; i < SMALL; i++) {
        out[i] = d * (float) uneven[nibble(block + 2, i)];
    }
}


/* Numbers of four bits, as halves, under a scale that is a power of two: its exponent. */
static void
block_mxfp4(const uint8_t *block, float *out)
{
    float     d;
    uint32_t  i, bits;

    static const int8_t  halves[16] = { 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12 };

    bits = block[0] < 2 ? 0x00200000u << block[0] : (block[0] - 1u) << 23;
    memcpy(&d, &bits, sizeof(d));

    for (i = 0; i < SMALL; i++) {
        out[i] = d * (float) halves[nibble(block + 1, i)];
    }
}


/* Value i of a large block of two bits: of 32 bytes the lowest pairs, then those above. */
static uint32_t
pair_of_bits(const uint8_t *q, uint32_t i)
{
    return q[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3u;
}


/* Sixteen groups of 16, with a scale and a minimum of four bits each. */
static void
block_q2_k(const uint8_t *block, float *out)
{
    float     d = half(block + 80), low = half(block + 82);
    uint32_t  i, s;

    for (i = 0; i < LARGE; i++) {
        s = block[i / 16];
        out[i] = d * (float) (s & 15) * (float) pair_of_bits(block + 16, i)
                 - low * (float) (s >> 4);
    }
}


/* The same with scales of six bits in twelve bytes; a third bit, if it is 0, takes 4 off. */
static void
block_q3_k(const uint8_t *block, float *out)
{
    float           d = half(block + 108);
    int32_t         scale, v;
    uint32_t        i, j;
    const uint8_t  *packed = block + 96;

    for (i = 0; i < LARGE; i++) {
        j = i / 16;
        scale = (packed[j % 8] >> j / 8 * 4 & 15) | (packed[8 + j % 4] >> j / 4 * 2 & 3) << 4;
        v = (int32_t) pair_of_bits(block + 32, i) - ((block[i % 32] >> i / 32 & 1) ? 0 : 4);
        out[i] = d * (float) (scale - 32) * (float) v;
    }
}


/* Eight groups of 32 uneven values, with scales of six bits, whose upper two lie apart. */
static void
block_iq4_xs(const uint8_t *block, float *out)
{
    float           d = half(block);
    int32_t         scale;
    uint32_t        i, j, high = block[2] | (uint32_t) block[3] << 8;
    const uint8_t  *low = block + 4, *q = block + 8;

    for (j = 0; j < 8; j++, q += 16) {
        scale = (low[j / 2] >> j % 2 * 4 & 15) | (int32_t) (high >> j * 2 & 3) << 4;

        for (i = 0; i < 32; i++) {
            *out++ = d * (float) (scale - 32) * (float) uneven[nibble(q, i)];
        }
    }
}


/* Eight groups of 32: a scale and a minimum of six bits each, in twelve bytes. */
static void
scales_of(const uint8_t *block, uint32_t j, float *scale, float *low)
{
    uint32_t        s, m;
    const uint8_t  *packed = block + 4;

    if (j < 4) {
        s = packed[j] & 63;
        m = packed[j + 4] & 63;
    } else {
        s = (packed[j + 4] & 15u) | (packed[j - 4] >> 6 << 4);
        m = (packed[j + 4] >> 4) | (packed[j] >> 6 << 4);
    }

    *scale = half(block) * (float) s;
    *low = half(block + 2) * (float) m;
}


static void
block_q4_k(const uint8_t *block, float *out)
{
    float           scale, low;
    uint32_t        j, i;
    const uint8_t  *q = block + 16;

    for (j = 0; j < 8; j++, out += 32) {
        scales_of(block, j, &scale, &low);

        for (i = 0; i < 32; i++) {
            out[i] = scale * (float) (q[j / 2 * 32 + i] >> j % 2 * 4 & 15) - low;
        }
    }
}


/* The same with a fifth bit of each value, one byte for the values i of the eight groups. */
static void
block_q5_k(const uint8_t *block, float *out)
{
    float           scale, low;
    uint32_t        j, i, v;
    const uint8_t  *high = block + 16, *q = block + 48;

    for (j = 0; j < 8; j++, out += 32) {
        scales_of(block, j, &scale, &low);

        for (i = 0; i < 32; i++) {
            v = (q[j / 2 * 32 + i] >> j % 2 * 4 & 15) | (high[i] >> j & 1u) << 4;
            out[i] = scale * (float) v - low;
        }
    }
}


/* Sixteen groups of 16; the lower four bits and the upper two of a value lie apart. */
static void
block_q6_k(const uint8_t *block, float *out)
{
    float           d;
    int32_t         v;
    uint32_t        h, j, i;
    const int8_t   *scale = (const int8_t *) block + 192;
    const uint8_t  *low = block, *high = block + 128;

    d = half(block + 208);

    for (h = 0; h < 2; h++, low += 64, high += 32, scale += 8) {
        for (j = 0; j < 4; j++, out += 32) {
            for (i = 0; i < 32; i++) {
                v = (low[j % 2 * 32 + i] >> j / 2 * 4 & 15) | (high[i] >> j * 2 & 3) << 4;
                out[i] = d * (float) scale[j * 2 + i / 16] * (float) (v - 32);
            }
        }
    }
}


#define READ(form)                                                                                 \
    static void                                                                                    \
    read_##form(const uint8_t *data, uint64_t first, uint64_t n, float *out)                       \
    {                                                                                              \
        read_blocks(&form, block_##form, data, first, n, out);                                     \
    }

READ(q8_0)
READ(q4_0)
READ(q4_1)
READ(q5_0)
READ(q5_1)
READ(iq4_nl)
READ(mxfp4)
READ(q2_k)
READ(q3_k)
READ(iq4_xs)
READ(q4_k)
READ(q5_k)
READ(q6_k)
