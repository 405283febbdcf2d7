/*
 * Attention, in a sequence and among patches: every set against the definition, and the definition
 * against sums in double precision that are written here a second time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/fixture.h"

typedef struct {
    uint32_t     heads, kv_heads, hd;
    vlm_type_t   type;
    uint32_t     S, T, rows[4], n_ctx[4], seq[64], start[5], slot[4];
    vlm_kv_t     kv;
    vlm_batch_t  b;
    const float *slope;                /* [heads] of ALiBi, or NULL */
    float       *q, *k, *v;            /* k, v: [elements] as f32, rounded as the cache has them */
    size_t       elements;
} attend_t;                            /* of integers kv has scales, and k, v what they stand for */

#define CONTEXT  96
#define LAYERS   2
#define SLOTS    5


static int
is_int(vlm_type_t type)
{
    return type == VLM_INT8 || type == VLM_INT16;
}


/* One row in the form of a cache; x becomes what the form stands for. */
static void
keep_row(float *x, uint32_t hd, vlm_type_t type, void *cache, size_t row, float *scale)
{
    size_t    at = row * hd;
    int16_t   q[128];
    uint32_t  i;

    if (is_int(type)) {
        scale[row] = plain.int16_row(x, hd, type == VLM_INT8 ? VLM_INT8_MOST : VLM_INT16_MOST, q);
    }

    for (i = 0; i < hd; i++) {
        switch (type) {

        case VLM_F32:
            ((float *) cache)[at + i] = x[i];
            break;

        case VLM_INT8:
            ((int8_t *) cache)[at + i] = (int8_t) q[i];
            x[i] = q[i] * scale[row];
            break;

        case VLM_INT16:
            ((int16_t *) cache)[at + i] = q[i];
            x[i] = q[i] * scale[row];
            break;

        default:
            ((uint16_t *) cache)[at + i] = vlm_f32_bf16(x[i]);
            x[i] = vlm_bf16_f32(vlm_f32_bf16(x[i]));
        }
    }
}


static void
open_cache(attend_t *a)
{
    size_t     i, row = a->hd * vlm_type_bytes(a->type);
    size_t     rows = (size_t) LAYERS * SLOTS * a->kv_heads * CONTEXT;
    vlm_kv_t  *kv = &a->kv;

    *kv = (vlm_kv_t) { a->type, LAYERS, SLOTS, a->kv_heads, CONTEXT, a->hd,
                       malloc(rows * row), malloc(rows * row), malloc(rows * sizeof(float)),
                       malloc(rows * sizeof(float)) };

    for (i = 0; i < rows; i++) {
        keep_row(a->k + i * a->hd, a->hd, a->type, kv->k, i, kv->k_scale);
        keep_row(a->v + i * a->hd, a->hd, a->type, kv->v, i, kv->v_scale);
    }
}


static void
open_attend(attend_t *a, uint32_t heads, uint32_t kv_heads, uint32_t hd, vlm_type_t type,
            vlm_kind_t kind)
{
    uint32_t               s, t;
    static const uint32_t  rows[] = { 1, 17, 1, 3 }, n_ctx[] = { 0, 0, 70, 93 };
    static const uint32_t  slots[] = { 4, 0, 2, 1 };

    memset(a, 0, sizeof(*a));
    a->heads = heads;
    a->kv_heads = kv_heads;
    a->hd = hd;
    a->type = type;
    a->S = 4;

    for (s = 0; s < a->S; s++) {
        a->slot[s] = slots[s];
        a->n_ctx[s] = n_ctx[s];
        a->start[s] = a->T;

        for (t = 0; t < rows[s]; t++) {
            a->seq[a->T++] = s;
        }

        a->start[s + 1] = a->T;
    }

    a->elements = (size_t) LAYERS * SLOTS * kv_heads * CONTEXT * hd;
    a->q = floats((size_t) a->T * heads * hd, kind, hd);
    a->k = floats(a->elements, VLM_RANDOM, hd + 1);
    a->v = floats(a->elements, VLM_RANDOM, hd + 2);

    open_cache(a);

    a->b.T = a->T;
    a->b.S = a->S;
    a->b.seq = a->seq;
    a->b.start = a->start;
    a->b.slot = a->slot;
    a->b.n_ctx = a->n_ctx;
}


static void
close_attend(attend_t *a)
{
    free(a->q);
    free(a->k);
    free(a->v);
    free(a->kv.k);
    free(a->kv.v);
    free(a->kv.k_scale);
    free(a->kv.v_scale);
}


static float *
attend_with(const attend_t *a, const vlm_kernels_t *k, uint32_t piece)
{
    float              *o, *scratch;
    uint32_t            i, h;
    const vlm_attend_t  attend = { a->heads, a->hd, vlm_head_scale(a->hd), a->slope };
    vlm_attend_args_t   args = { &attend, a->q, &a->b, &a->kv, 1, NULL };

    o = vlm_aligned((size_t) a->T * a->heads * a->hd * sizeof(float));
    scratch = vlm_aligned((vlm_attend_floats(CONTEXT, a->hd) + vlm_int16_floats(a->hd))
                          * sizeof(float));
    args.o = o;

    for (i = 0; i < a->T; i += piece) {
        for (h = 0; h < a->kv_heads; h++) {
            (is_int(a->type) ? k->attend_int16 : k->attend)(&args, i, a->T - i < piece
                                                               ? a->T : i + piece, h, scratch);
        }
    }

    free(scratch);

    return o;
}


/*
 * softmax(q k / sqrt(hd) - slope distance) v over n keys that lie step floats apart, in double.
 */
static void
exact_attention(const float *q, const float *k, const float *v, uint32_t n, size_t step,
                uint32_t hd, double slope, double *o)
{
    double    p[256], max, sum;
    uint32_t  i, j;

    max = -INFINITY;

    for (j = 0; j < n; j++) {
        for (p[j] = 0, i = 0; i < hd; i++) {
            p[j] += (double) q[i] * k[j * step + i];
        }

        p[j] = p[j] / sqrt(hd) - slope * (n - 1 - j);
        max = fmax(max, p[j]);
    }

    for (sum = 0, j = 0; j < n; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }

    for (i = 0; i < hd; i++) {
        for (o[i] = 0, j = 0; j < n; j++) {
            o[i] += p[j] / sum * v[j * step + i];
        }
    }
}


static void
compare_attend(const attend_t *a, const float *got)
{
    double    want[128];
    size_t    at;
    uint32_t  t, h, i, s;

    for (t = 0; t < a->T; t++) {
        for (h = 0; h < a->heads; h++) {
            s = a->seq[t];
            at = ((((size_t) SLOTS + a->slot[s]) * a->kv_heads + h / (a->heads / a->kv_heads))
                  * CONTEXT) * a->hd;

            exact_attention(a->q + ((size_t) t * a->heads + h) * a->hd, a->k + at, a->v + at,
                            a->n_ctx[s] + t - a->start[s] + 1, a->hd, a->hd,
                            a->slope == NULL ? 0 : (double) a->slope[h], want);

            for (i = 0; i < a->hd; i++) {
                at = ((size_t) t * a->heads + h) * a->hd + i;
                check_near(got[at], want[i], is_int(a->type) ? 5e-4 : 2e-5, "attend", at);
            }
        }
    }
}


/* Each set's attention has the bits of the plain one, which double confirms. */
static void
compare_sets(const attend_t *a)
{
    float                 *want, *got;
    uint32_t               j;
    static const uint32_t  pieces[] = { 5, 1, 22 };

    want = attend_with(a, &plain, UINT32_MAX / 2);
    compare_attend(a, want);

    for (j = 0; j < COUNT(pieces) * n_faster; j++) {
        got = attend_with(a, &faster[j / COUNT(pieces)], pieces[j % COUNT(pieces)]);
        check_bits(got, want, (size_t) a->T * a->heads * a->hd, faster[j / COUNT(pieces)].name);
        free(got);
    }

    free(want);
}


static void
attention_has_the_same_bits_in_every_set_and_is_what_double_says(void **state)
{
    attend_t          a;
    uint32_t          i;
    const vlm_type_t  types[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT16 };
    const struct {
        uint32_t  heads, kv_heads, hd;
    } shapes[] = { { 1, 1, 2 }, { 4, 2, 16 }, { 6, 2, 18 }, { 8, 1, 64 }, { 4, 4, 80 },
                   { 7, 1, 128 }, { 3, 3, 31 * 2 }, { 2, 2, 72 }, { 2, 1, 8 }, { 3, 3, 96 } };

    (void) state;

    for (i = 0; i < 4 * COUNT(shapes); i++) {
        open_attend(&a, shapes[i / 4].heads, shapes[i / 4].kv_heads, shapes[i / 4].hd,
                    types[i % 4], VLM_RANDOM);

        compare_sets(&a);
        close_attend(&a);
    }
}


/* Slopes of 1 to 1/256, heads that vectors divide and one that they do not. */
static void
alibi_takes_off_the_distance_of_a_key_with_the_same_bits_in_every_set(void **state)
{
    attend_t               a;
    uint32_t               i;
    const vlm_type_t       types[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT16 };
    static const float     slope[] = { 1, 0.5f, 0x1p-4f, 0x1p-8f, 0.7071067f, 0 };
    static const uint32_t  hd[] = { 8, 10, 64, 72 };

    (void) state;

    for (i = 0; i < 4 * COUNT(hd); i++) {
        open_attend(&a, COUNT(slope), COUNT(slope), hd[i / 4], types[i % 4], VLM_RANDOM);
        a.slope = slope;

        compare_sets(&a);
        close_attend(&a);
    }
}


static void
attention_with_huge_or_zero_scores_stays_finite(void **state)
{
    float                *o;
    size_t                k;
    attend_t              a;
    uint32_t              i, j;
    const vlm_type_t      types[] = { VLM_F32, VLM_INT8, VLM_INT16 };
    const vlm_kind_t      kinds[] = { VLM_ZEROS, VLM_MAXIMA, VLM_OUTLIER };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    for (i = 0; i < 3 * COUNT(types); i++) {
        open_attend(&a, 4, 2, 16, types[i % COUNT(types)], kinds[i / COUNT(types)]);

        for (j = 0; j < 1 + n_faster; j++) {
            o = attend_with(&a, sets[j], 3);

            for (k = 0; k < (size_t) a.T * a.heads * a.hd; k++) {
                assert_true(fabs((double) o[k]) <= 1.0001);
            }

            free(o);
        }

        close_attend(&a);
    }
}


static float *
segments_with(const vlm_kernels_t *k, const float *qkv[3], const uint32_t *border, uint32_t n,
              uint32_t heads, uint32_t dv, uint32_t piece)
{
    float                *o, *scratch;
    uint32_t              i, h, all;
    const vlm_attend_t    attend = { heads, dv, vlm_head_scale(dv), NULL };
    const vlm_segments_t  segments = { border, n, border[n], border[n] };
    vlm_segments_args_t   args = { &attend, qkv[0], qkv[1], qkv[2], &segments, NULL };

    all = border[n];
    o = vlm_aligned((size_t) all * heads * dv * sizeof(float));
    scratch = vlm_aligned(vlm_attend_floats(all, dv) * sizeof(float));
    args.o = o;

    for (i = 0; i < all; i += piece) {
        for (h = 0; h < heads; h++) {
            k->attend_segments(&args, i, all - i < piece ? all : i + piece, h, scratch);
        }
    }

    free(scratch);

    return o;
}


static void
compare_segments(const float *qkv[3], const uint32_t *border, uint32_t n, uint32_t heads,
                 uint32_t dv, const float *got, double bound)
{
    double    want[128];
    size_t    at, E;
    uint32_t  s, p, h, i;

    E = (size_t) heads * dv;

    for (s = 0; s < n; s++) {
        for (p = border[s]; p < border[s + 1]; p++) {
            for (h = 0; h < heads; h++) {
                at = border[s] * E + (size_t) h * dv;
                exact_attention(qkv[0] + p * E + (size_t) h * dv, qkv[1] + at, qkv[2] + at,
                                border[s + 1] - border[s], E, dv, 0, want);

                for (i = 0; i < dv; i++) {
                    at = p * E + (size_t) h * dv + i;
                    check_near(got[at], want[i], bound, "segments", at);
                }
            }
        }
    }
}


static void
segments_have_the_same_bits_in_every_set_and_are_what_double_says(void **state)
{
    float                 *want, *got;
    size_t                 n;
    uint32_t               i, j, k;
    const float           *qkv[3];
    static const uint32_t  borders[2][6] = { { 0, 1, 71, 72, 76, 100 }, { 0, 100 } };
    const struct {
        uint32_t  heads, dv;
    } shapes[] = { { 1, 4 }, { 2, 16 }, { 3, 20 }, { 2, 80 }, { 2, 72 }, { 3, 24 } };

    (void) state;

    for (i = 0; i < 2 * COUNT(shapes); i++) {
        n = (size_t) 100 * shapes[i / 2].heads * shapes[i / 2].dv;

        for (k = 0; k < 3; k++) {
            qkv[k] = floats(n, VLM_RANDOM, 900 + 3 * i + k);
        }

        k = i % 2 == 0 ? 5 : 1;
        want = segments_with(&plain, qkv, borders[i % 2], k, shapes[i / 2].heads,
                             shapes[i / 2].dv, UINT32_MAX / 2);
        compare_segments(qkv, borders[i % 2], k, shapes[i / 2].heads, shapes[i / 2].dv, want,
                         2e-5);

        for (j = 0; j < n_faster; j++) {
            got = segments_with(&faster[j], qkv, borders[i % 2], k, shapes[i / 2].heads,
                                shapes[i / 2].dv, 7);
            check_bits(got, want, n, faster[j].name);
            free(got);
        }

        free(want);

        for (k = 0; k < 3; k++) {
            free((float *) qkv[k]);
        }
    }
}


static float *
segments16_with(const vlm_kernels_t *k, const float *qkv[3], const uint32_t *border, uint32_t n,
                uint32_t heads, uint32_t dv, uint32_t piece)
{
    void                   *act[3];
    float                  *o, *scratch, most;
    size_t                  at;
    uint32_t                i, h, p, all;
    vlm_rows16_t            rows[3];
    const vlm_attend_t      attend = { heads, dv, vlm_head_scale(dv), NULL };
    const vlm_segments_t    segments = { border, n, border[n], border[n] };
    vlm_segments16_args_t   args = { .a = &attend, .segments = &segments };

    all = border[n];

    for (i = 0; i < 3; i++) {
        act[i] = vlm_aligned((size_t) all * heads * dv * sizeof(float));
        rows[i] = vlm_int16_in(act[i], all, heads, dv);
        most = i == 0 ? vlm_int16_query(dv) : VLM_INT16_MOST;

        for (p = 0; p < all; p++) {
            for (h = 0; h < heads; h++) {
                at = (size_t) h * all + p;
                rows[i].scale[at] = k->int16_row(qkv[i] + ((size_t) p * heads + h) * dv, dv, most,
                                                 rows[i].x + at * dv);
            }
        }
    }

    o = vlm_aligned((size_t) all * heads * dv * sizeof(float));
    scratch = vlm_aligned(vlm_int16_floats(dv) * sizeof(float));
    args.q = rows[0];
    args.k = rows[1];
    args.v = rows[2];
    args.o = o;

    for (i = 0; i < all; i += piece) {
        for (h = 0; h < heads; h++) {
            k->segments_int16(&args, i, all - i < piece ? all : i + piece, h, scratch);
        }
    }

    free(scratch);

    for (i = 0; i < 3; i++) {
        free(act[i]);
    }

    return o;
}


static void
int16_has_the_same_bits_in_every_set_and_is_near_what_double_says(void **state)
{
    float                 *want, *got;
    size_t                 n;
    uint32_t               i, j, k;
    const float           *qkv[3];
    static const uint32_t  borders[2][6] = { { 0, 1, 71, 72, 107, 200 }, { 0, 200 } };
    const struct {
        uint32_t  heads, dv;
    } shapes[] = { { 1, 4 }, { 2, 16 }, { 3, 20 }, { 2, 80 }, { 2, 72 }, { 1, 128 }, { 1, 8 } };

    (void) state;

    for (i = 0; i < 2 * COUNT(shapes); i++) {
        n = (size_t) 200 * shapes[i / 2].heads * shapes[i / 2].dv;

        for (k = 0; k < 3; k++) {
            qkv[k] = floats(n, VLM_RANDOM, 700 + 3 * i + k);
        }

        k = i % 2 == 0 ? 5 : 1;
        want = segments16_with(&plain, qkv, borders[i % 2], k, shapes[i / 2].heads,
                               shapes[i / 2].dv, UINT32_MAX / 2);
        compare_segments(qkv, borders[i % 2], k, shapes[i / 2].heads, shapes[i / 2].dv, want,
                         5e-4);

        for (j = 0; j < 2 * n_faster; j++) {
            got = segments16_with(&faster[j / 2], qkv, borders[i % 2], k, shapes[i / 2].heads,
                                  shapes[i / 2].dv, j % 2 == 0 ? 7 : 150);
            check_bits(got, want, n, faster[j / 2].name);
            free(got);
        }

        free(want);

        for (k = 0; k < 3; k++) {
            free((float *) qkv[k]);
        }
    }
}


/* Sums of the largest products stay within 32 bits, and what is not a number is seen. */
static void
int16_takes_the_largest_values_and_shows_what_is_not_a_number(void **state)
{
    float                *o, *qkv[3];
    size_t                i, n;
    uint32_t              set, k, hd;
    const uint32_t        border[] = { 0, 64, 80 }, bad[] = { 3, 66, 5 };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    for (set = 0; set < 2 * (1 + n_faster); set++) {
        hd = set % 2 == 0 ? 128 : 512;
        n = (size_t) 80 * hd;

        for (k = 0; k < 3; k++) {
            qkv[k] = floats(n, VLM_MAXIMA, k);

            for (i = 0; i < n; i++) {
                qkv[k][i] = 1;
            }
        }

        o = segments16_with(sets[set / 2], (const float **) qkv, border, 2, 1, hd, 80);

        for (i = 0; i < n; i++) {
            check_near(o[i], 1, 1e-6, "ones", i);
        }

        free(o);

        for (k = 0; k < 3; k++) {
            qkv[k][bad[k] * hd + 1] = k == 1 ? NAN : INFINITY;
        }

        o = segments16_with(sets[set / 2], (const float **) qkv, border, 2, 1, hd, 80);

        for (i = 0; i < n; i++) {
            assert_true(isnan(o[i]));  /* the segments have a bad value, and a bad key */
        }

        free(o);
        qkv[2][bad[2] * hd + 1] = 1;
        o = segments16_with(sets[set / 2], (const float **) qkv, border, 2, 1, hd, 80);

        for (i = 0; i < 64 * hd; i++) {
            assert_true(isnan(o[i]) ? i / hd == bad[0] : i / hd != bad[0]);
        }

        free(o);

        for (k = 0; k < 3; k++) {
            free(qkv[k]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(attention_has_the_same_bits_in_every_set_and_is_what_double_says),
        cmocka_unit_test(alibi_takes_off_the_distance_of_a_key_with_the_same_bits_in_every_set),
        cmocka_unit_test(attention_with_huge_or_zero_scores_stays_finite),
        cmocka_unit_test(segments_have_the_same_bits_in_every_set_and_are_what_double_says),
        cmocka_unit_test(int16_has_the_same_bits_in_every_set_and_is_near_what_double_says),
        cmocka_unit_test(int16_takes_the_largest_values_and_shows_what_is_not_a_number)
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
