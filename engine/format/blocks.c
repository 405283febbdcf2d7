/*
 * Forms of GGUF in which elements lie in blocks with scales of their own: Q8_0, Q4_0, Q4_K, Q5_K,
 * Q6_K.  They are in files alone.
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
FORM(q4_k, LARGE, 144);
FORM(q5_k, LARGE, 176);
FORM(q6_k, LARGE, 210);

/* By the format's numbers; those without a form are known by their names alone. */
static const struct {
    const char          *name;
    const vlm_format_t  *form;
} types[] = {
    [0] = { "F32", NULL }, [1] = { "F16", NULL }, [2] = { "Q4_0", &q4_0 }, [3] = { "Q4_1", NULL },
    [6] = { "Q5_0", NULL }, [7] = { "Q5_1", NULL }, [8] = { "Q8_0", &q8_0 },
    [9] = { "Q8_1", NULL }, [10] = { "Q2_K", NULL }, [11] = { "Q3_K", NULL },
    [12] = { "Q4_K", &q4_k }, [13] = { "Q5_K", &q5_k }, [14] = { "Q6_K", &q6_k },
    [15] = { "Q8_K", NULL }, [16] = { "IQ2_XXS", NULL }, [17] = { "IQ2_XS", NULL },
    [18] = { "IQ3_XXS", NULL }, [19] = { "IQ1_S", NULL }, [20] = { "IQ4_NL", NULL },
    [21] = { "IQ3_S", NULL }, [22] = { "IQ2_S", NULL }, [23] = { "IQ4_XS", NULL },
    [24] = { "I8", NULL }, [25] = { "I16", NULL }, [26] = { "I32", NULL }, [27] = { "I64", NULL },
    [28] = { "F64", NULL }, [29] = { "IQ1_M", NULL }, [30] = { "BF16", NULL },
    [34] = { "TQ1_0", NULL }, [35] = { "TQ2_0", NULL }, [39] = { "MXFP4", NULL }
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


static void
block_q4_0(const uint8_t *block, float *out)
{
    float     d = half(block);
    uint32_t  i;

    for (i = 0; i < SMALL / 2; i++) {
        out[i] = (float) ((int) (block[2 + i] & 15) - 8) * d;
        out[i + SMALL / 2] = (float) ((int) (block[2 + i] >> 4) - 8) * d;
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
READ(q4_k)
READ(q5_k)
READ(q6_k)
