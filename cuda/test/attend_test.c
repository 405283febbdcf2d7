/* Attention: rows of sequences over the cache, patches of segments over each other. */

#include "pair.h"

#include "format/bf16.h"

#define CONTEXT  800
#define SLOTS    5
#define LAYERS   2

typedef struct {                       /* sequences of a batch, and the heads of a model */
    uint32_t  S, heads, kv_heads, hd;
    uint32_t  rows[4], n_ctx[4];
    int       alibi;                   /* heads have slopes, and keys of their own */
} case_t;


static int
open_pair(void **state)
{
    vlm_need_t  need, card_need = { VLM_INT8, 256, 2048, 16, 128, CONTEXT, 256, 4, 0 };

    (void) state;

    need = card_need;
    need.type = VLM_BF16;              /* patches attend in f32, as the card's do */

    return pair_open(VLM_INT8, &need, &card_need);
}


/* ---- text --------------------------------------------------------------------------------- */

static vlm_batch_t
put_batch(side_t *s, const case_t *c)
{
    uint32_t        i, start[5] = { 0 };
    vlm_batch_t     b;
    const uint32_t  slot[] = { 3, 0, 4, 1 };

    memset(&b, 0, sizeof(b));

    uint32_t  *seq = malloc(4 * CONTEXT * sizeof(uint32_t));

    for (i = 0; i < c->S; i++) {
        start[i + 1] = start[i] + c->rows[i];
        b.max_rows = c->rows[i] > b.max_rows ? c->rows[i] : b.max_rows;
        b.max_ctx = c->rows[i] + c->n_ctx[i] > b.max_ctx ? c->rows[i] + c->n_ctx[i] : b.max_ctx;

        for (b.T = start[i]; b.T < start[i + 1]; b.T++) {
            seq[b.T] = i;
        }
    }

    b.S = c->S;
    b.T = start[c->S];
    b.start = put_bytes(s, start, (c->S + 1) * sizeof(uint32_t));
    b.seq = put_bytes(s, seq, b.T * sizeof(uint32_t));
    b.slot = put_bytes(s, slot, c->S * sizeof(uint32_t));
    b.n_ctx = put_bytes(s, c->n_ctx, c->S * sizeof(uint32_t));
    free(seq);

    return b;
}


/* The same bf16 on both sides; rows that are not written yet are NaNs. */
static vlm_kv_t
put_cache(side_t *s, const case_t *c, int filled)
{
    float     *x;
    size_t     i, n;
    uint16_t  *b;
    vlm_kv_t   kv = { VLM_BF16, LAYERS, SLOTS, c->kv_heads, CONTEXT, c->hd, NULL, NULL, NULL,
                      NULL };

    n = (size_t) LAYERS * SLOTS * c->kv_heads * CONTEXT * c->hd;
    b = malloc(2 * n * sizeof(uint16_t));
    x = f32_values(2, (uint32_t) n, VLM_RANDOM, c->hd);

    for (i = 0; i < 2 * n; i++) {
        b[i] = filled ? vlm_f32_bf16(x[i]) : 0x7fc0;
    }

    kv.k = put_bytes(s, b, n * sizeof(uint16_t));
    kv.v = put_bytes(s, b + n, n * sizeof(uint16_t));
    free(b);
    free(x);

    return kv;
}


/* Rows of q begin with row `first` of those that belong to the whole case. */
static void
attend_on(side_t *s, const case_t *c, const float *q, float *out)
{
    void                *o;
    size_t               n;
    vlm_kv_t             kv;
    vlm_batch_t          b;
    uint32_t             h;
    float                slope[16];
    vlm_attend_t         a = { c->heads, c->hd, vlm_head_scale(c->hd), NULL };

    pair_reset();
    b = put_batch(s, c);

    for (h = 0; h < c->heads; h++) {
        slope[h] = 1 / (float) (1u << h);
    }

    a.slope = c->alibi ? put_bytes(s, slope, c->heads * sizeof(float)) : NULL;
    kv = put_cache(s, c, 1);
    n = (size_t) b.T * c->heads * c->hd;
    o = take_bytes(s, s->ops->basic->act_bytes(n));

    s->ops->attend(s->d, &a, put_floats(s, q, n, ACT), &b, &kv, 1, o);
    get_floats(s, out, o, n, ACT);
}


static float *
queries(const case_t *c, float by, size_t *n)
{
    float     *q;
    size_t     i;
    uint32_t   T;

    for (T = 0, i = 0; i < c->S; i++) {
        T += c->rows[i];
    }

    *n = (size_t) T * c->heads * c->hd;
    q = bf16_values(T, c->heads * c->hd, VLM_RANDOM, c->hd + T);

    for (i = 0; i < *n; i++) {
        q[i] *= by;
    }

    return q;
}


static void
attention_to_the_cache_is_its_definition(void **state)
{
    char                 what[96];
    float               *q, *want, *got, *again, by;
    size_t               n;
    uint32_t             i, j;
    const case_t        *c;
    static const case_t  cases[] = {
        { 1, 1, 1, 12, { 1 }, { 0 }, 0 },
        { 1, 6, 6, 10, { 1 }, { 300 }, 1 },
        { 2, 5, 5, 64, { 7, 70 }, { 300, 0 }, 1 },
        { 2, 12, 12, 128, { 1, 1 }, { 511, 40 }, 1 },
        { 1, 4, 2, 24, { 1 }, { 63 }, 0 },
        { 3, 14, 2, 32, { 1, 1, 1 }, { 64, 255, 0 }, 0 },
        { 2, 16, 2, 128, { 1, 1 }, { 256, 700 }, 0 },
        { 1, 16, 1, 64, { 1 }, { 511 }, 0 },
        { 1, 2, 2, 80, { 9 }, { 0 }, 0 },
        { 2, 16, 2, 128, { 1, 37 }, { 300, 0 }, 0 },
        { 3, 6, 3, 64, { 65, 1, 3 }, { 190, 5, 254 }, 0 },
        { 4, 3, 1, 20, { 7, 64, 11, 1 }, { 0, 193, 256, 600 }, 0 },
        { 2, 3, 1, 72, { 1, 1 }, { 130, 5 }, 0 },
        { 2, 2, 2, 72, { 9, 3 }, { 60, 0 }, 0 }
    };

    (void) state;

    for (i = 0; i < COUNT(cases) * 2; i++) {
        c = &cases[i / 2];
        by = i % 2 ? 16 : 1;           /* flat and steep weights */
        q = queries(c, by, &n);
        want = malloc(3 * n * sizeof(float));
        got = want + n;
        again = got + n;
        (void) snprintf(what, sizeof(what), "case %u, hd %u, queries times %g", i / 2, c->hd,
                        (double) by);

        attend_on(&host, c, q, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            attend_on(&card, c, q, j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, n, what);
            }
        }

        check_near(got, want, NULL, 1e-4f, 0x1.02p-8f, n, what);
        free(q);
        free(want);
    }
}


/* Alone, the last row of many has the same keys, and other kernels. */
static void
a_row_has_the_same_bits_as_the_last_of_many_and_beside_others(void **state)
{
    float           *q, *many, *one;
    size_t           n, row;
    uint32_t         i;
    const uint32_t   rows[] = { 5, 70, 300 };

    (void) state;

    for (i = 0; i < COUNT(rows); i++) {
        case_t  all = { 1, 8, 2, 128, { rows[i] }, { 260 }, 0 };
        case_t  last = { 1, 8, 2, 128, { 1 }, { 260 + rows[i] - 1 }, 0 };
        case_t  beside = { 2, 8, 2, 128, { 1, 3 }, { 260 + rows[i] - 1, 100 }, 0 };

        row = 8 * 128;
        q = queries(&all, 4, &n);
        many = malloc(n * sizeof(float));
        one = malloc(4 * row * sizeof(float));

        attend_on(&card, &all, q, many);
        attend_on(&card, &last, q + n - row, one);
        check_same_bits(one, many + n - row, row, "the last row alone");

        memmove(q, q + n - row, row * sizeof(float));
        attend_on(&card, &beside, q, one);
        check_same_bits(one, many + n - row, row, "the last row beside another sequence");

        free(q);
        free(many);
        free(one);
    }
}


/* ---- qkv ---------------------------------------------------------------------------------- */

typedef struct {
    float  *q, *k, *v;                 /* k, v: the whole cache */
} qkv_t;


/* Norms of heads, with constants that differ by more than a rounding. */
enum { NO_NORMS, Q_NORM, K_NORM, BOTH };

static void
put_norms(side_t *s, int norms, uint32_t hd, vlm_norm_t norm[2], vlm_qkv_t *qkv)
{
    float  *gain;

    gain = f32_values(2, hd, VLM_RANDOM, hd + 8);
    norm[0] = (vlm_norm_t) { VLM_NORM_RMS, put_floats(s, gain, hd, F32), 1e-6f, NULL };
    norm[1] = (vlm_norm_t) { VLM_NORM_RMS, put_floats(s, gain + hd, hd, F32), 4, NULL };
    qkv->q_norm = norms & Q_NORM ? &norm[0] : NULL;
    qkv->k_norm = norms & K_NORM ? &norm[1] : NULL;
    free(gain);
}


static void
qkv_on(side_t *s, const case_t *c, int norms, vlm_type_t type, uint32_t D, qkv_t *out)
{
    float         *rows, *bias, *x, *gain, inv_freq[64];
    void          *q;
    size_t         n, m;
    uint8_t        axis[64];
    int32_t       *pos;
    uint32_t       i, N;
    vlm_kv_t       kv;
    vlm_rope_t     rope;
    vlm_norm_t     norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL }, of_heads[2];
    vlm_batch_t    b;
    vlm_linear_t   w;
    vlm_qkv_t      qkv = { &w, &norm, &rope, c->heads, NULL, NULL };

    pair_reset();
    b = put_batch(s, c);
    kv = put_cache(s, c, 0);
    N = (c->heads + 2 * c->kv_heads) * c->hd;
    rows = f32_values(N, D, VLM_RANDOM, N + D);
    bias = f32_values(1, N, VLM_RANDOM, 5);
    x = f32_values(b.T, D, VLM_RANDOM, 6);
    gain = f32_values(1, D, VLM_RANDOM, 7);
    pos = malloc(3 * b.T * sizeof(int32_t));

    for (i = 0; i < 3 * b.T; i++) {
        pos[i] = (int32_t) ((i % b.T * 3 + i / b.T) * 7919 % 32768);
    }

    for (i = 0; i < c->hd / 2; i++) {
        axis[i] = (uint8_t) (i % 3);
        inv_freq[i] = powf(1e6f, -2 * (float) i / (float) c->hd);
    }

    b.pos = put_bytes(s, pos, 3 * b.T * sizeof(int32_t));
    rope.axis = put_bytes(s, axis, c->hd / 2);
    rope.inv_freq = put_bytes(s, inv_freq, c->hd / 2 * sizeof(float));
    w = put_matrix(s, type, VLM_STORE, N, D, rows, bias);
    n = (size_t) b.T * c->heads * c->hd;
    m = (size_t) LAYERS * SLOTS * c->kv_heads * CONTEXT * c->hd;
    q = take_bytes(s, s->ops->basic->act_bytes(n));

    norm.gain = put_floats(s, gain, D, F32);
    put_norms(s, norms, c->hd, of_heads, &qkv);
    s->ops->qkv(s->d, &qkv, put_floats(s, x, (size_t) b.T * D, F32), &b, &kv, 1, q);

    out->q = malloc((n + 2 * m) * sizeof(float));
    out->k = out->q + n;
    out->v = out->k + m;
    get_floats(s, out->q, q, n, ACT);

    uint16_t  *raw = malloc(2 * m * sizeof(uint16_t));

    s->ops->basic->get(s->d, raw, kv.k, m * sizeof(uint16_t));
    s->ops->basic->get(s->d, raw + m, kv.v, m * sizeof(uint16_t));
    settle(s);

    for (n = 0; n < 2 * m; n++) {
        out->k[n] = vlm_bf16_f32(raw[n]);
    }

    free(raw);
    free(rows);
    free(bias);
    free(x);
    free(gain);
    free(pos);
}


/* Values that no row writes keep their bytes, in the cache as well. */
static void
queries_turn_and_keys_and_values_land_where_the_definition_has_them(void **state)
{
    int              norms;
    qkv_t            want, got;
    size_t           n, m;
    uint32_t         i, j, T;
    const case_t    *c;
    static const struct {
        int     norms;
        case_t  c;
    } cases[] = {
        { NO_NORMS, { 1, 2, 1, 12, { 1 }, { 0 }, 0 } },
        { NO_NORMS, { 3, 4, 2, 24, { 1, 1, 1 }, { 9, 0, 799 }, 0 } },
        { NO_NORMS, { 2, 3, 3, 32, { 1, 7 }, { 799, 64 }, 0 } },
        { NO_NORMS, { 3, 16, 2, 128, { 1, 1, 1 }, { 255, 0, 700 }, 0 } },
        { NO_NORMS, { 2, 7, 1, 128, { 3, 20 }, { 70, 0 }, 0 } },
        { NO_NORMS, { 2, 16, 2, 80, { 66, 1 }, { 700, 3 }, 0 } },
        { BOTH, { 1, 2, 1, 12, { 1 }, { 0 }, 0 } },
        { BOTH, { 2, 3, 1, 32, { 1, 7 }, { 799, 64 }, 0 } },
        { BOTH, { 3, 5, 1, 128, { 1, 1, 1 }, { 255, 0, 700 }, 0 } },
        { Q_NORM, { 1, 3, 1, 96, { 2 }, { 4 }, 0 } },
        { K_NORM, { 1, 3, 1, 64, { 8 }, { 500 }, 0 } },
        { BOTH, { 2, 2, 1, 128, { 3, 20 }, { 70, 0 }, 0 } },
        { K_NORM, { 1, 2, 1, 72, { 10 }, { 1 }, 0 } }
    };

    (void) state;

    for (i = 0; i < COUNT(cases) * 2; i++) {
        c = &cases[i / 2].c;
        norms = cases[i / 2].norms;

        for (T = 0, j = 0; j < c->S; j++) {
            T += c->rows[j];
        }

        n = (size_t) T * c->heads * c->hd;
        m = (size_t) LAYERS * SLOTS * c->kv_heads * CONTEXT * c->hd;
        qkv_on(&host, c, norms, i % 2 ? VLM_INT8 : VLM_BF16, 70, &want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            qkv_on(&card, c, norms, i % 2 ? VLM_INT8 : VLM_BF16, 70, &got);
            check_near(got.q, want.q, NULL, 0.05f, 0x1p-7f, n, "q");
            check_near(got.k, want.k, NULL, 0.05f, 0x1p-7f, 2 * m, "cache");
            free(got.q);
        }

        free(want.q);
    }
}


/*
 * 1 and 8 rows are rotated where they are multiplied, 9 by a launch of their own.  A head of few
 * rows has two units, which belong to one block or to two: the device has two processors.
 */
static void
a_row_turns_to_the_same_bits_among_few_and_among_many(void **state)
{
    qkv_t          many, few;
    size_t         head;
    uint32_t       i, rows, h;
    vlm_type_t     type;
    const case_t   all = { 1, 4, 2, 64, { 9 }, { 600 }, 0 };
    case_t         some;

    (void) state;

    some = all;

    for (i = 0; i < 4; i++) {
        type = i % 2 ? VLM_INT8 : VLM_BF16;
        qkv_on(&card, &all, i / 2 ? BOTH : NO_NORMS, type, 200, &many);

        for (rows = 1; rows <= 8; rows += 7) {
            some.rows[0] = rows;
            use_seed(rows);
            qkv_on(&card, &some, i / 2 ? BOTH : NO_NORMS, type, 200, &few);
            check_same_bits(few.q, many.q, (size_t) rows * 4 * 64, "q");

            for (h = 0; h < 2; h++) {
                head = ((((size_t) 1 * SLOTS + 3) * 2 + h) * CONTEXT + 600) * 64;
                check_same_bits(few.k + head, many.k + head, rows * 64, "k");
                check_same_bits(few.v + head, many.v + head, rows * 64, "v");
            }

            free(few.q);
        }

        free(many.q);
    }
}


/* ---- pictures ----------------------------------------------------------------------------- */

static void
qkv_2d_on(side_t *s, vlm_type_t type, uint32_t P, uint32_t heads, uint32_t dv, float *out)
{
    void           *at[3];
    float          *rows, *bias, *x, *gain, inv_freq[32];
    uint32_t        i, E, *place;
    vlm_rope_t      rope = { NULL, NULL };
    vlm_norm_t      norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_linear_t    w;
    vlm_qkv_t       qkv = { &w, &norm, &rope, heads, NULL, NULL };
    vlm_patches_t   patches = { P, NULL, NULL, 0, 0 };

    pair_reset();
    E = heads * dv;
    rows = f32_values(3 * E, E, VLM_RANDOM, E);
    bias = f32_values(1, 3 * E, VLM_RANDOM, E + 1);
    x = f32_values(P, E, VLM_RANDOM, E + 2);
    gain = f32_values(1, E, VLM_RANDOM, E + 3);
    place = malloc(2 * P * sizeof(uint32_t));

    for (i = 0; i < 2 * P; i++) {
        place[i] = i * 31 % 97;
    }

    for (i = 0; i < dv / 4; i++) {
        inv_freq[i] = powf(10000, -4 * (float) i / (float) dv);
    }

    w = put_matrix(s, type, VLM_STORE, 3 * E, E, rows, bias);

    for (i = 0; i < 3; i++) {
        at[i] = take_bytes(s, s->ops->basic->act_bytes((uint64_t) P * E));
    }

    norm.gain = put_floats(s, gain, E, F32);
    rope.inv_freq = put_floats(s, inv_freq, dv / 4, F32);
    patches.row = put_bytes(s, place, P * 4);
    patches.column = put_bytes(s, place + P, P * 4);
    s->ops->qkv_2d(s->d, &qkv, put_floats(s, x, (size_t) P * E, F32), &patches, at[0], at[1],
                   at[2]);

    for (i = 0; i < 3; i++) {
        get_floats(s, out + (size_t) i * P * E, at[i], (size_t) P * E, ACT);
    }

    free(rows);
    free(bias);
    free(x);
    free(gain);
    free(place);
}


static void
patches_turn_by_row_and_column(void **state)
{
    char                   what[64];
    float                 *want, *got, *again;
    size_t                 n;
    uint32_t               i, j;
    const uint32_t        *c;
    static const uint32_t  cases[][3] = {
        { 1, 1, 4 }, { 16, 2, 12 }, { 67, 3, 80 }, { 9, 2, 72 }, { VLM_CUDA_ROWS + 3, 1, 8 }
    };

    (void) state;

    for (i = 0; i < COUNT(cases) * 2; i++) {
        c = cases[i / 2];
        n = (size_t) 3 * c[0] * c[1] * c[2];
        want = malloc(3 * n * sizeof(float));
        got = want + n;
        again = got + n;
        (void) snprintf(what, sizeof(what), "P %u, heads %u of %u", c[0], c[1], c[2]);

        qkv_2d_on(&host, i % 2 ? VLM_INT8 : VLM_BF16, c[0], c[1], c[2], want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            qkv_2d_on(&card, i % 2 ? VLM_INT8 : VLM_BF16, c[0], c[1], c[2], j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, n, what);
            }
        }

        check_near(got, want, NULL, 0.08f, 0x1p-7f, n, what);
        free(want);
    }
}


static void
segments_on(side_t *s, const uint32_t *border, uint32_t n_segments, uint32_t heads, uint32_t dv,
            float *out)
{
    void                *o, *qkv[3];
    float               *x;
    size_t               n;
    uint32_t             i, P, longest;
    const vlm_attend_t   a = { heads, dv, vlm_head_scale(dv), NULL };

    pair_reset();
    P = border[n_segments];
    n = (size_t) P * heads * dv;
    x = bf16_values(3, (uint32_t) n, VLM_RANDOM, dv);

    for (i = 0; i < 3; i++) {
        qkv[i] = put_floats(s, x + i * n, n, ACT);
    }

    for (longest = i = 0; i < n_segments; i++) {
        longest = border[i + 1] - border[i] > longest ? border[i + 1] - border[i] : longest;
    }

    o = take_bytes(s, s->ops->basic->act_bytes(n));

    const vlm_segments_t  segments = {
        put_bytes(s, border, (n_segments + 1) * sizeof(uint32_t)), n_segments, P, longest
    };

    s->ops->attend_segments(s->d, &a, qkv[0], qkv[1], qkv[2], &segments, o);
    get_floats(s, out, o, n, ACT);
    free(x);
}


static void
patches_attend_to_their_segment_and_to_nothing_else(void **state)
{
    char                   what[64];
    float                 *want, *got, *again;
    size_t                 n;
    uint32_t               i, j;
    static const struct {
        uint32_t  n, heads, dv, border[6];
    } cases[] = {
        { 1, 1, 12, { 0, 1 } }, { 1, 2, 16, { 0, 64 } }, { 4, 2, 80, { 0, 64, 65, 97, 130 } },
        { 1, 1, 80, { 0, 301 } }, { 5, 3, 64, { 0, 33, 65, 128, 192, 200 } },
        { 2, 1, 128, { 0, 7, 71 } }, { 3, 2, 72, { 0, 16, 97, 130 } }
    };

    (void) state;

    for (i = 0; i < COUNT(cases); i++) {
        n = (size_t) cases[i].border[cases[i].n] * cases[i].heads * cases[i].dv;
        want = malloc(3 * n * sizeof(float));
        got = want + n;
        again = got + n;
        (void) snprintf(what, sizeof(what), "case %u", i);

        segments_on(&host, cases[i].border, cases[i].n, cases[i].heads, cases[i].dv, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            segments_on(&card, cases[i].border, cases[i].n, cases[i].heads, cases[i].dv,
                        j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, n, what);
            }
        }

        check_near(got, want, NULL, 1e-4f, 0x1.02p-8f, n, what);
        free(want);
    }
}


static void
patch_on(side_t *s, uint32_t P, uint32_t E, uint32_t K, int with_bias, float *out)
{
    void          *x;
    float         *rows, *bias;
    uint8_t       *pixels;
    uint32_t       i;
    vlm_linear_t   w;

    pair_reset();
    rows = f32_values(E, K, VLM_RANDOM, E + K);
    bias = f32_values(1, E, VLM_RANDOM, E);
    pixels = malloc((size_t) P * K);

    for (i = 0; i < P * K; i++) {
        pixels[i] = (uint8_t) (i * 2654435761u >> 24);
    }

    w = put_matrix(s, VLM_F32, VLM_STORE, E, K, rows, with_bias ? bias : NULL);
    x = take_bytes(s, (uint64_t) P * E * sizeof(float));
    s->ops->patch_embed(s->d, &w, put_bytes(s, pixels, (uint64_t) P * K), P, x);
    get_floats(s, out, x, (size_t) P * E, F32);
    free(rows);
    free(bias);
    free(pixels);
}


static void
patches_become_rows_with_the_definitions_bits(void **state)
{
    float                 *want, *got;
    uint32_t               i, j;
    const uint32_t        *c;
    static const uint32_t  cases[][3] = {
        { 1, 1, 1 }, { 16, 24, 192 }, { 63, 65, 100 }, { 65, 63, 588 }, { 130, 129, 17 },
        { 33, 40, 1176 }               /* a pair of frames */
    };

    (void) state;

    for (i = 0; i < COUNT(cases) * SEEDS; i++) {
        c = cases[i / SEEDS];
        want = malloc(2 * (size_t) c[0] * c[1] * sizeof(float));
        got = want + (size_t) c[0] * c[1];
        j = i % SEEDS;
        use_seed(j);
        patch_on(&host, c[0], c[1], c[2], j > 0, want);
        patch_on(&card, c[0], c[1], c[2], j > 0, got);
        check_same_bits(got, want, (size_t) c[0] * c[1], "patches");
        free(want);
    }
}


/* PATTERN: runs the tests alone whose names match it. */
int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(attention_to_the_cache_is_its_definition),
        cmocka_unit_test(a_row_has_the_same_bits_as_the_last_of_many_and_beside_others),
        cmocka_unit_test(queries_turn_and_keys_and_values_land_where_the_definition_has_them),
        cmocka_unit_test(a_row_turns_to_the_same_bits_among_few_and_among_many),
        cmocka_unit_test(patches_turn_by_row_and_column),
        cmocka_unit_test(patches_attend_to_their_segment_and_to_nothing_else),
        cmocka_unit_test(patches_become_rows_with_the_definitions_bits)
    };

    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
