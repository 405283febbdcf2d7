/* The table of forms, and the forms that need no more than this file: f32, f16, bf16. */

#include "format/format.h"

#include <stdio.h>
#include <string.h>

#include "format/bf16.h"
#include "format/int4.h"
#include "format/int8.h"

static void read_f32(const uint8_t *data, uint64_t first, uint64_t n, float *out);
static void read_f16(const uint8_t *data, uint64_t first, uint64_t n, float *out);
static void read_bf16(const uint8_t *data, uint64_t first, uint64_t n, float *out);
static void read_i8(const uint8_t *data, uint64_t first, uint64_t n, float *out);
static void read_f8(const uint8_t *data, uint64_t first, uint64_t n, float *out);

static const vlm_format_t  formats[] = {
    [VLM_F32] = { .type = VLM_F32, .name = "f32", .bits = 32, .spelt = "F32", .read = read_f32,
                  .block = 1, .bytes = 4, .resident = 1, .kv = VLM_F32, .finer = VLM_F32 },
    [VLM_F16] = { .type = VLM_F16, .name = "f16", .bits = 16, .spelt = "F16", .read = read_f16,
                  .block = 1, .bytes = 2 },
    [VLM_BF16] = { .type = VLM_BF16, .name = "bf16", .bits = 16, .spelt = "BF16",
                   .read = read_bf16, .block = 1, .bytes = 2, .resident = 1, .kv = VLM_BF16,
                   .finer = VLM_BF16 },
    [VLM_INT8] = { .type = VLM_INT8, .name = "int8", .bits = 8, .read = read_i8, .resident = 1,
                   .kv = VLM_BF16, .finer = VLM_INT8, .scales = 1, .cached = 1,
                   .quantise = vlm_int8_quantise,
                   .largest = vlm_int8_largest, .scale = vlm_int8_scale,
                   .round = vlm_int8_round,
                   .panel_bytes = vlm_int8_panel_bytes, .pack = vlm_int8_pack,
                   .unpack = vlm_int8_unpack },
    [VLM_INT4] = { .type = VLM_INT4, .name = "int4", .bits = 4, .resident = 1, .kv = VLM_BF16,
                   .finer = VLM_INT8, .scales = 1, .cached = 1, .row_bytes = vlm_int4_row_bytes,
                   .quantise = vlm_int4_quantise, .largest = vlm_int8_largest,
                   .scale = vlm_int8_scale, .round = vlm_int4_round,
                   .panel_bytes = vlm_int4_panel_bytes, .pack = vlm_int4_pack,
                   .unpack = vlm_int4_unpack },
    [VLM_INT16] = { .type = VLM_INT16, .name = "int16", .bits = 16, .scales = 1 }
};

static const vlm_format_t  f8 = { .type = VLM_F32, .name = "fp8", .bits = 8, .read = read_f8 };

#define N_FORMATS  (sizeof(formats) / sizeof(formats[0]))


const vlm_format_t *
vlm_format_of(vlm_type_t type)
{
    return &formats[(unsigned) type < N_FORMATS ? type : VLM_F32];
}


const vlm_format_t *
vlm_format_spelt(const char *spelt)
{
    size_t  i;

    for (i = 0; i < N_FORMATS; i++) {
        if (formats[i].spelt != NULL && strcmp(formats[i].spelt, spelt) == 0) {
            return &formats[i];
        }
    }

    return NULL;
}


const vlm_format_t *
vlm_format_scaled(const char *spelt)
{
    return strcmp(spelt, "I8") == 0 ? &formats[VLM_INT8] : strcmp(spelt, "F8_E4M3") == 0 ? &f8
                                                                                         : NULL;
}


const char *
vlm_weights_name(vlm_type_t type)
{
    return vlm_format_of(type)->name;
}


int
vlm_weights_find(const char *name, vlm_type_t *type, vlm_err_t *err)
{
    char    known[64];
    size_t  i, n;

    for (n = 0, i = N_FORMATS; i > 0; i--) {
        if (!formats[i - 1].resident) {
            continue;
        }

        if (strcmp(formats[i - 1].name, name) == 0) {
            *type = formats[i - 1].type;
            return 0;
        }

        n += (size_t) snprintf(known + n, sizeof(known) - n, "%s%s", n == 0 ? "" : ", ",
                               formats[i - 1].name);
    }

    return vlm_fail(err, VLM_EINPUT, "weights \"%.80s\" is not one of %s", name, known);
}


/* ---- elements of files --------------------------------------------------- */

static void
read_f32(const uint8_t *data, uint64_t first, uint64_t n, float *out)
{
    memcpy(out, data + 4 * first, n * sizeof(float));
}


/* Exact: a half is five bits of exponent and ten of fraction, both fit. */
static inline uint32_t
half_bits(uint32_t h)
{
    float     f;
    uint32_t  magnitude, bits;

    magnitude = h & 0x7FFF;
    bits = magnitude << 13;
    memcpy(&f, &bits, sizeof(f));
    f *= 0x1p112f;                             /* the exponent's other bias; subnormals, too */
    memcpy(&bits, &f, sizeof(bits));

    return bits | (magnitude >= 0x7C00 ? 0x7F800000 : 0) | (h & 0x8000) << 16;
}


static inline uint32_t
brain_bits(uint32_t h)
{
    return h << 16;
}


/* Two bytes each, whose bits as f32 the function knows. */
static inline void
read_pairs(const uint8_t *data, uint64_t n, float *out, uint32_t (*bits_of)(uint32_t))
{
    uint16_t  h;
    uint32_t  bits;
    uint64_t  i;

    for (i = 0; i < n; i++) {
        memcpy(&h, data + 2 * i, sizeof(h));
        bits = bits_of(h);
        memcpy(&out[i], &bits, sizeof(bits));
    }
}


static void
read_f16(const uint8_t *data, uint64_t first, uint64_t n, float *out)
{
    read_pairs(data + 2 * first, n, out, half_bits);
}


static void
read_bf16(const uint8_t *data, uint64_t first, uint64_t n, float *out)
{
    read_pairs(data + 2 * first, n, out, brain_bits);
}


static void
read_i8(const uint8_t *data, uint64_t first, uint64_t n, float *out)
{
    uint64_t  i;

    for (data += first, i = 0; i < n; i++) {
        out[i] = (float) (int8_t) data[i];
    }
}


/* e4m3 without infinities: four bits of exponent, three of fraction; all ones are not a number. */
static void
read_f8(const uint8_t *data, uint64_t first, uint64_t n, float *out)
{
    float     f;
    uint32_t  bits;
    uint64_t  i;

    for (data += first, i = 0; i < n; i++) {
        bits = (uint32_t) (data[i] & 0x7F) << 20;
        memcpy(&f, &bits, sizeof(f));
        f *= 0x1p120f;                         /* as in half_bits() */
        memcpy(&bits, &f, sizeof(bits));
        bits = (data[i] & 0x7F) == 0x7F ? 0x7FC00000 : bits;
        bits |= (uint32_t) (data[i] & 0x80) << 24;
        memcpy(&out[i], &bits, sizeof(bits));
    }
}


void
vlm_format_put(vlm_type_t type, void *array, uint64_t at, uint64_t step, const float *from,
               uint64_t n)
{
    uint64_t  i;

    for (i = 0; i < n; i++, at += step) {
        if (type == VLM_F32) {
            ((float *) array)[at] = from[i];
        } else {
            ((uint16_t *) array)[at] = vlm_f32_bf16(from[i]);
        }
    }
}
