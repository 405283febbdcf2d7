/* The vision encoder's operations on the CPU device. */

#include <math.h>

#include "ops/cpu.h"
#include "ops/places.h"


void
vlm_cpu_patch_embed(vlm_device_t *d, const vlm_linear_t *w, const uint8_t *pixels, uint32_t P,
                    float *x)
{
    size_t    i;
    uint32_t  p, n;

    for (p = 0; p < P; p += n) {
        n = P - p < CHUNK ? P - p : CHUNK;

        for (i = 0; i < (size_t) n * w->K; i++) {
            d->scratch.normed[i] = pixels[(size_t) p * w->K + i];
        }

        vlm_cpu_linear_chunk(d, w, NULL, d->scratch.normed, n, x + (size_t) p * w->N, p, NULL);
    }
}


void
vlm_cpu_add_places(vlm_device_t *d, const vlm_places_t *places, const vlm_patches_t *p,
                   uint32_t E, float *x)
{
    vlm_places_job_t  j = { &d->k, places, p, E, x };

    vlm_threads_run(d->threads, p->P, 8, vlm_place_patches, &j);
}


typedef struct {
    vlm_device_t    *d;
    const float     *inv_freq;
    const uint32_t  *row, *column;     /* [n] of this chunk */
    uint32_t         heads, head_dim;
    float           *q, *k, *v;        /* [n][E] of this chunk */
    int              int16;
    uint32_t         first, P;         /* of int16: this chunk's first patch, of P */
    vlm_rows16_t     q16, k16, v16;
} vlm_split_job_t;


/* Heads of one row as int16. */
static void
put_row16(const vlm_split_job_t *j, uint32_t t, const float *from, float most, vlm_rows16_t *to)
{
    size_t    at;
    uint32_t  h;

    for (h = 0; h < j->heads; h++, from += j->head_dim) {
        at = (size_t) h * j->P + j->first + t;
        to->scale[at] = j->d->k.int16_row(from, j->head_dim, most, to->x + at * j->head_dim);
    }
}


/* Rows of [q k v]: rotates q and k by row and column, and separates the three. */
static void
split_rows(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float             cosine[MAX_HEAD_DIM / 2], sine[MAX_HEAD_DIM / 2], angle, *from;
    size_t            E, at;
    uint32_t          t, i, h, dv, quarter;
    vlm_split_job_t  *j = arg;

    (void) thread;

    dv = j->head_dim;
    quarter = dv / 4;
    E = (size_t) j->heads * dv;

    for (t = begin; t < end; t++) {
        for (i = 0; i < 2 * quarter; i++) {
            angle = i < quarter ? (float) j->row[t] * j->inv_freq[i]
                                : (float) j->column[t] * j->inv_freq[i - quarter];
            cosine[i] = cosf(angle);
            sine[i] = sinf(angle);
        }

        from = j->d->scratch.qkv + t * 3 * E;
        at = t * E;

        for (h = 0; h < 2 * j->heads; h++) {
            vlm_rotate(from + (size_t) h * dv, cosine, sine, 2 * quarter);
        }

        if (j->int16) {
            put_row16(j, t, from, vlm_int16_query(dv), &j->q16);
            put_row16(j, t, from + E, VLM_INT16_MOST, &j->k16);
            put_row16(j, t, from + 2 * E, VLM_INT16_MOST, &j->v16);
            continue;
        }

        memcpy(j->q + at, from, E * sizeof(float));
        memcpy(j->k + at, from + E, E * sizeof(float));
        memcpy(j->v + at, from + 2 * E, E * sizeof(float));
    }
}


void
vlm_cpu_qkv_2d(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_patches_t *at,
               void *q, void *k, void *v)
{
    size_t           E;
    uint32_t         p, n;
    vlm_split_job_t  j;

    E = a->w->N / 3;
    j.d = d;
    j.inv_freq = a->rope->inv_freq;
    j.heads = a->heads;
    j.head_dim = (uint32_t) E / a->heads;
    j.int16 = d->need.type == VLM_INT8;
    j.P = at->P;
    j.q16 = vlm_int16_in(q, at->P, a->heads, j.head_dim);
    j.k16 = vlm_int16_in(k, at->P, a->heads, j.head_dim);
    j.v16 = vlm_int16_in(v, at->P, a->heads, j.head_dim);

    for (p = 0; p < at->P; p += n) {
        n = at->P - p < CHUNK ? at->P - p : CHUNK;
        vlm_cpu_linear_chunk(d, a->w, a->norm, x + p * E, n, d->scratch.qkv, p, NULL);

        j.first = p;
        j.row = at->row + p;
        j.column = at->column + p;
        j.q = (float *) q + p * E;
        j.k = (float *) k + p * E;
        j.v = (float *) v + p * E;
        vlm_threads_run(d->threads, n, 8, split_rows, &j);
    }
}


typedef struct {
    vlm_device_t         *d;
    vlm_segments_args_t   args;
    vlm_segments16_args_t args16;
    uint32_t              tiles;       /* of VLM_ATTEND_ROWS patches */
    int                   windows;     /* segments are as small as tiles */
} vlm_segments_job_t;


/*
 * An item is some patches and one head.  A large segment's keys and values of one head stay in a
 * near cache for all its tiles; of windows, all heads of a tile come together, as they lie in
 * memory.
 */
static void
segment_items(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float               *scratch;
    uint32_t             i, first, last, P, head, heads;
    vlm_segments_job_t  *j = arg;

    scratch = vlm_cpu_attend_scratch(j->d, thread);
    P = j->args.segments->P;
    heads = j->args.a->heads;

    for (i = begin; i < end; i++) {
        first = (j->windows ? i / heads : i % j->tiles) * VLM_ATTEND_ROWS;
        head = j->windows ? i % heads : i / j->tiles;

        last = P - first < VLM_ATTEND_ROWS ? P : first + VLM_ATTEND_ROWS;

        if (j->d->need.type == VLM_INT8) {
            j->d->k.segments_int16(&j->args16, first, last, head, scratch);
        } else {
            j->d->k.attend_segments(&j->args, first, last, head, scratch);
        }
    }
}


void
vlm_cpu_attend_segments(vlm_device_t *d, const vlm_attend_t *a, const void *q, const void *k,
                        const void *v, const vlm_segments_t *s, void *o)
{
    vlm_segments_job_t  j = { .d = d, .args = { a, q, k, v, s, o } };

    j.tiles = (s->P + VLM_ATTEND_ROWS - 1) / VLM_ATTEND_ROWS;
    j.windows = s->longest <= VLM_ATTEND_ROWS;
    j.args16.a = a;
    j.args16.q = vlm_int16_in((void *) q, s->P, a->heads, a->head_dim);
    j.args16.k = vlm_int16_in((void *) k, s->P, a->heads, a->head_dim);
    j.args16.v = vlm_int16_in((void *) v, s->P, a->heads, a->head_dim);
    j.args16.segments = s;
    j.args16.o = o;

    vlm_threads_run(d->threads, j.tiles * a->heads, j.windows ? a->heads : 1, segment_items, &j);
}
