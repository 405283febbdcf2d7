/*
 * The CPU device: memory from the system, threads of its own, and the best kernels that the
 * processor runs.  The threads share the items of each operation; the arithmetic is in plain/,
 * avx2/, avxvnni/, avx512/, amx/, neon/ and i8mm/.
 *
 * Linears take their rows in chunks, so that an operation's own memory does not grow with the
 * number of rows.
 */

#define _GNU_SOURCE

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/size.h"
#include "format/turn.h"
#include "ops/cpu.h"

#define PAIR            2              /* panels that are read together */
#define POPULATE_WRITE  23             /* MADV_POPULATE_WRITE, from Linux 5.14 on */

static int choose_kernels(vlm_kernels_t *k, const char *name, vlm_err_t *err);
static const vlm_ops_t  cpu_ops;


vlm_device_t *
vlm_cpu_open(const char *name, uint32_t threads, const vlm_ops_t **table, vlm_err_t *err)
{
    vlm_device_t  *d;

    d = calloc(1, sizeof(*d));
    if (d == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the cpu device");
        return NULL;
    }

    if (choose_kernels(&d->k, name, err) != 0) {
        free(d);
        return NULL;
    }

    d->n_threads = threads;
    *table = &cpu_ops;

    return d;
}


static int
choose_kernels(vlm_kernels_t *k, const char *name, vlm_err_t *err)
{
    int  avx2, avxvnni, avx512, amx, neon, i8mm;

    vlm_kernels_plain(k);

    avx2 = avxvnni = avx512 = amx = neon = i8mm = 0;

#if defined(__x86_64__)
    __builtin_cpu_init();
    avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    avxvnni = avx2 && vlm_avxvnni_there();
    avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
             && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")
             && __builtin_cpu_supports("avx512vnni");
    amx = avx512 && (name == NULL || strcmp(name, "amx") == 0) && vlm_amx_there();
#elif defined(__aarch64__)
    neon = vlm_neon_there();
    i8mm = neon && vlm_i8mm_there();
#endif

    if (name == NULL) {
        name = amx ? "amx" : avx512 ? "avx512" : avxvnni ? "avxvnni" : avx2 ? "avx2"
               : i8mm ? "i8mm" : neon ? "neon" : "plain";
    }

    if (strcmp(name, "plain") == 0) {
        return 0;
    }

#if defined(__x86_64__)
    if (avx2 && strcmp(name, "avx2") == 0) {
        vlm_kernels_avx2(k);
        return 0;
    }

    if (avxvnni && strcmp(name, "avxvnni") == 0) {
        vlm_kernels_avx2(k);
        vlm_kernels_avxvnni(k);
        return 0;
    }

    if (avx512 && strcmp(name, "avx512") == 0) {
        vlm_kernels_avx512(k);
        return 0;
    }

    if (amx && strcmp(name, "amx") == 0) {
        vlm_kernels_avx512(k);
        vlm_kernels_amx(k);
        return 0;
    }
#elif defined(__aarch64__)
    if (neon && strcmp(name, "neon") == 0) {
        vlm_kernels_neon(k);
        return 0;
    }

    if (i8mm && strcmp(name, "i8mm") == 0) {
        vlm_kernels_neon(k);
        vlm_kernels_i8mm(k);
        return 0;
    }
#endif

    return vlm_fail(err, VLM_EINPUT, "ops=%s is not what this processor runs: plain%s%s%s%s%s%s",
                    name, avx2 ? ", avx2" : "", avxvnni ? ", avxvnni" : "",
                    avx512 ? ", avx512" : "", amx ? ", amx" : "", neon ? ", neon" : "",
                    i8mm ? ", i8mm" : "");
}


static void
cpu_describe(const vlm_device_t *d, char *text, size_t bytes)
{
    (void) snprintf(text, bytes, "cpu, %s, %u thread%s", d->k.name, d->n_threads,
                    d->n_threads == 1 ? "" : "s");
}


static void
cpu_close(vlm_device_t *d)
{
    uint32_t      i;
    vlm_block_t  *b;

    if (d == NULL) {
        return;
    }

    vlm_threads_close(d->threads);

    for (i = 0; i < d->n_blocks; i++) {
        b = &d->block[i];
        (void) munmap(b->base, b->bytes);
    }

    free(d);
}


static void *
cpu_reserve(vlm_device_t *d, uint64_t bytes, vlm_err_t *err)
{
    void         *p;
    vlm_block_t  *b;

    if (d->threads == NULL && (d->threads = vlm_threads_open(d->n_threads, err)) == NULL) {
        return NULL;
    }

    if (d->n_blocks == MAX_BLOCKS || bytes == 0 || bytes > SIZE_MAX / 2) {
        (void) vlm_fail(err, VLM_EMEMORY, "cannot reserve %" PRIu64 " bytes", bytes);
        return NULL;
    }

    p = mmap(NULL, (size_t) bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        (void) vlm_fail(err, VLM_EMEMORY, "the system did not give %" PRIu64 " bytes", bytes);
        return NULL;
    }

    (void) madvise(p, (size_t) bytes, MADV_HUGEPAGE);      /* fewer TLB misses while streaming */

    b = &d->block[d->n_blocks++];
    b->base = p;
    b->bytes = bytes;

    return p;
}


/* If a system knows no POPULATE_WRITE, pages are committed by their first use. */
static int
cpu_touch(vlm_device_t *d, void *at, uint64_t bytes)
{
    (void) d;

    return madvise(at, (size_t) bytes, POPULATE_WRITE) == 0 || errno != ENOMEM ? 0 : -1;
}


static void
cpu_copy(vlm_device_t *d, void *to, const void *from, uint64_t bytes)
{
    (void) d;
    memcpy(to, from, bytes);
}


static int
cpu_sync(vlm_device_t *d, vlm_err_t *err)
{
    (void) d;
    (void) err;

    return 0;
}


static void
cpu_ask(vlm_device_t *d, vlm_quit_fn quit, void *data)
{
    vlm_threads_ask(d->threads, quit, data);
}


static uint64_t
cpu_act_bytes(uint64_t n)
{
    return vlm_mul(n, sizeof(float));
}


static void
place_scratch(vlm_arena_t *a, vlm_scratch_t *s, uint32_t threads, const vlm_need_t *need)
{
    uint64_t  pieces;

    pieces = vlm_mul(CHUNK, vlm_pieces(need->K));

    s->normed = vlm_place(a, vlm_mul(CHUNK, need->K), sizeof(float));
    s->q = vlm_place(a, vlm_mul(CHUNK, vlm_round(need->K, VLM_BLOCK)), 1);
    s->s = vlm_place(a, pieces, sizeof(float));
    s->sum = vlm_place(a, pieces, sizeof(int32_t));
    s->qkv = vlm_place(a, vlm_mul(CHUNK, need->qkv), sizeof(float));
    s->attend = vlm_place(a, vlm_mul(threads, vlm_cpu_attend_floats(need)), sizeof(float));
    s->rows = vlm_place(a, vlm_mul(need->rows, need->K), sizeof(float));
    s->turn = vlm_place(a, need->type == VLM_INT8 ? vlm_mul(threads, need->K) : 0, sizeof(float));
    s->low = vlm_place(a, vlm_mul(CHUNK * VLM_LOW_PARTS, need->rank), sizeof(float));
    s->tiles = vlm_place(a, need->rank == 0 ? 0 : CHUNK, sizeof(vlm_low_tile_t));
    s->candidates = vlm_place(a, vlm_mul(threads, need->vocab), sizeof(vlm_candidate_t));
}


static uint64_t
cpu_scratch_bytes(vlm_device_t *d, const vlm_need_t *need)
{
    vlm_arena_t    count = { NULL, 0, 0 };
    vlm_scratch_t  s;

    place_scratch(&count, &s, d->n_threads, need);

    return count.used;
}


static void
cpu_set_scratch(vlm_device_t *d, const vlm_need_t *need, void *scratch)
{
    vlm_arena_t  place = { scratch, UINT64_MAX, 0 };

    place_scratch(&place, &d->scratch, d->n_threads, need);
    d->need = *need;
}


static void
cpu_pack(vlm_device_t *d, vlm_linear_t *w, uint32_t row, uint32_t n, const void *from)
{
    d->k.pack(w, row, n, from);
}


/* ---- linear -------------------------------------------------------------- */

typedef struct {
    vlm_device_t       *d;
    const float        *x;             /* [T][K] of this chunk */
    const vlm_norm_t   *norm;          /* or NULL */
    vlm_linear_args_t   args;
} vlm_linear_job_t;


static float *
turn_scratch(const vlm_device_t *d, uint32_t thread)
{
    return d->scratch.turn + (size_t) thread * d->need.K;
}


/* Rows of a chunk in the form for the weights: normalised, then in int8. */
static void
ready_rows(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    size_t             values, pieces;
    uint32_t           t, K;
    const float       *row;
    vlm_linear_job_t  *j = arg;
    vlm_scratch_t     *s = &j->d->scratch;

    K = j->args.w->K;
    values = (size_t) vlm_blocks(K) * VLM_BLOCK;
    pieces = vlm_pieces(K);

    for (t = begin; t < end; t++) {
        row = j->x + (size_t) t * K;

        if (j->norm != NULL) {
            if (j->args.w->turn != NULL) {
                vlm_norm_turned(&j->d->k, j->norm, j->args.w->turn, row,
                                s->normed + (size_t) t * K, turn_scratch(j->d, thread));
            } else {
                j->d->k.norm(j->norm, row, K, s->normed + (size_t) t * K);
            }

            row = s->normed + (size_t) t * K;
        }

        if (j->args.w->blocks) {
            vlm_turn_blocks(row, K, s->normed + (size_t) t * K);
            row = s->normed + (size_t) t * K;
        }

        if (vlm_takes_int8(j->args.w->type)) {
            j->d->k.quantize(row, K, s->q + t * values, s->s + t * pieces, s->sum + t * pieces);
        }
    }
}


static void
multiply_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    vlm_linear_job_t  *j = arg;

    (void) thread;

    j->d->k.linear(&j->args, begin, end);
}


/* The adapters of a chunk whose rows are ready: NULL, or *low with their products with A. */
static const vlm_low_job_t *
multiply_low(const vlm_linear_job_t *j, uint32_t first, const uint32_t *row_of, vlm_low_job_t *low)
{
    int            made = j->norm != NULL || j->args.w->blocks;
    vlm_device_t  *d = j->d;

    *low = (vlm_low_job_t) { &d->k, j->args.w, made ? d->scratch.normed : j->x, j->args.T, first,
                             row_of, d->need.rank, d->scratch.low, d->scratch.tiles, 0, 0, 0 };

    if (!vlm_low_begin(low)) {
        return NULL;
    }

    vlm_threads_run(d->threads, vlm_low_items(low), 1, vlm_low_inputs, low);

    return low;
}


void
vlm_cpu_linear_chunk(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm,
                     const float *x, uint32_t T, float *y, uint32_t first,
                     const uint32_t *row_of)
{
    uint32_t          panels;
    vlm_low_job_t     low;
    vlm_linear_job_t  j;

    j.d = d;
    j.x = x;
    j.norm = norm;
    j.args.w = w;
    j.args.T = T;
    j.args.x = norm == NULL ? x : d->scratch.normed;
    j.args.q = d->scratch.q;
    j.args.s = d->scratch.s;
    j.args.sum = d->scratch.sum;
    j.args.y = y;

    if (norm != NULL || vlm_takes_int8(w->type)) {
        vlm_threads_run(d->threads, T, 1, ready_rows, &j);
    }

    j.args.low = w->low == NULL ? NULL : multiply_low(&j, first, row_of, &low);
    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;
    vlm_threads_run(d->threads, panels, panels < 2 * PAIR * d->n_threads ? 1 : PAIR,
                    multiply_panels, &j);
}


static void
linear_rows(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const float *x,
            uint32_t T, float *y, const uint32_t *row_of)
{
    uint32_t  t, n;

    for (t = 0; t < T; t += n) {
        n = T - t < CHUNK ? T - t : CHUNK;
        vlm_cpu_linear_chunk(d, w, norm, x + (size_t) t * w->K, n, y + t * vlm_linear_out(w), t,
                             row_of == NULL ? NULL : row_of + t);
    }
}


static void
cpu_linear(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
           uint32_t T, void *y)
{
    linear_rows(d, w, norm, x, T, y, NULL);
}


/* ---- text ---------------------------------------------------------------- */

static void
cpu_embed(vlm_device_t *d, const vlm_linear_t *table, const void *features, const vlm_batch_t *b,
          float *x)
{
    float     *row;
    uint32_t   t, i, D;

    D = table->K;

    for (t = 0; t < b->T; t++) {
        row = x + (size_t) t * D;

        if (b->source[t] != VLM_NONE) {
            memcpy(row, (const float *) features + (size_t) b->source[t] * D, D * sizeof(float));
            continue;
        }

        d->k.unpack_row(table, b->token[t], row);

        if (table->scale != NULL) {
            for (i = 0; i < D; i++) {
                row[i] *= table->scale[b->token[t]];
            }
        }

        vlm_low_embed(&d->k, table, t, b->token[t], row);
    }
}


static void
cpu_add_features(vlm_device_t *d, const void *features, const vlm_batch_t *b, uint32_t D, float *x)
{
    uint32_t      t, i;
    const float  *from;

    (void) d;

    for (t = 0; t < b->T; t++, x += D) {
        if (b->source[t] == VLM_NONE) {
            continue;
        }

        from = (const float *) features + (size_t) b->source[t] * D;

        for (i = 0; i < D; i++) {
            x[i] += from[i];
        }
    }
}


typedef struct {
    vlm_device_t      *d;
    const vlm_norm_t  *norm;
    const vlm_turn_t  *turn;
    const float       *x;
    float             *y;
    uint32_t           n;
} vlm_norm_job_t;


static void
norm_rows(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    size_t           at;
    uint32_t         t;
    vlm_norm_job_t  *j = arg;

    for (t = begin; t < end; t++) {
        at = (size_t) t * j->n;

        if (j->turn != NULL) {
            vlm_norm_turned(&j->d->k, j->norm, j->turn, j->x + at, j->y + at,
                            turn_scratch(j->d, thread));
        } else {
            j->d->k.norm(j->norm, j->x + at, j->n, j->y + at);
        }
    }
}


static void
cpu_norm(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n, void *y)
{
    vlm_norm_job_t  j = { d, norm, NULL, x, y, n };

    vlm_threads_run(d->threads, T, 8, norm_rows, &j);
}


static void
cpu_norm_stream(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn, float *x,
                uint32_t T, uint32_t n)
{
    vlm_norm_job_t  j = { d, norm, turn, x, x, n };        /* a row is read before it is written */

    vlm_threads_run(d->threads, T, 8, norm_rows, &j);
}


typedef struct {
    vlm_device_t       *d;
    const vlm_qkv_t    *a;
    const vlm_batch_t  *batch;
    const vlm_kv_t     *kv;
    uint32_t            layer, heads, first;       /* first row of this chunk */
    float              *q;
} vlm_append_job_t;


/* One row of the cache, of one head, among the rows of all. */
static void
store_kv(const vlm_append_job_t *j, void *base, float *scale, size_t row, const float *from)
{
    size_t           at = row * j->kv->head_dim;
    int16_t          q[MAX_HEAD_DIM];
    uint32_t         i;
    const vlm_kv_t  *kv = j->kv;

    switch (kv->type) {

    case VLM_F32:
        memcpy((float *) base + at, from, kv->head_dim * sizeof(float));
        return;

    case VLM_INT16:
        scale[row] = j->d->k.int16_row(from, kv->head_dim, VLM_INT16_MOST, (int16_t *) base + at);
        return;

    case VLM_INT8:
        scale[row] = j->d->k.int16_row(from, kv->head_dim, VLM_INT8_MOST, q);

        for (i = 0; i < kv->head_dim; i++) {
            ((int8_t *) base)[at + i] = (int8_t) q[i];
        }

        return;

    default:
        for (i = 0; i < kv->head_dim; i++) {
            ((uint16_t *) base)[at + i] = vlm_f32_bf16(from[i]);
        }
    }
}


/* Turns the heads of q and k of one row, which may be normed first. */
static void
turn_row(const vlm_append_job_t *j, uint32_t t, float *row)
{
    float               cosine[MAX_HEAD_DIM / 2], sine[MAX_HEAD_DIM / 2], angle;
    uint32_t            i, h, hd;
    const vlm_norm_t   *norm;
    const vlm_rope_t   *rope = j->a->rope;
    const vlm_batch_t  *b = j->batch;

    hd = j->kv->head_dim;

    for (i = 0; i < hd / 2; i++) {
        angle = (float) b->pos[(size_t) rope->axis[i] * b->T + t] * rope->inv_freq[i];
        cosine[i] = cosf(angle);
        sine[i] = sinf(angle);
    }

    for (h = 0; h < j->heads + j->kv->heads; h++, row += hd) {
        norm = h < j->heads ? j->a->q_norm : j->a->k_norm;

        if (norm != NULL) {
            j->d->k.norm(norm, row, hd, row);
        }

        vlm_rotate(row, cosine, sine, hd / 2);
    }
}


/*
 * One row of qkv: turns q and k, puts q to its place, k and v into the cache of the row's slot.
 */
static void
append_row(const vlm_append_job_t *j, uint32_t t, float *row)
{
    size_t              to;
    uint32_t            h, s, hd;
    const vlm_kv_t     *kv = j->kv;
    const vlm_batch_t  *b = j->batch;

    hd = kv->head_dim;
    turn_row(j, t, row);

    memcpy(j->q + (size_t) t * j->heads * hd, row, (size_t) j->heads * hd * sizeof(float));

    s = b->seq[t];

    for (h = 0; h < kv->heads; h++) {
        to = (((size_t) j->layer * kv->slots + b->slot[s]) * kv->heads + h) * kv->context
             + b->n_ctx[s] + (t - b->start[s]);

        store_kv(j, kv->k, kv->k_scale, to, row + (size_t) (j->heads + h) * hd);
        store_kv(j, kv->v, kv->v_scale, to, row + (size_t) (j->heads + kv->heads + h) * hd);
    }
}


static void
append_rows(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    size_t             N;
    uint32_t           t;
    vlm_append_job_t  *j = arg;

    (void) thread;

    N = (size_t) (j->heads + 2 * j->kv->heads) * j->kv->head_dim;

    for (t = begin; t < end; t++) {
        append_row(j, j->first + t, j->d->scratch.qkv + t * N);
    }
}


static void
cpu_qkv(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_batch_t *b,
        const vlm_kv_t *kv, uint32_t layer, void *q)
{
    uint32_t          t, n;
    vlm_append_job_t  j = { d, a, b, kv, layer, a->heads, 0, q };

    for (t = 0; t < b->T; t += n) {
        n = b->T - t < CHUNK ? b->T - t : CHUNK;
        vlm_cpu_linear_chunk(d, a->w, a->norm, x + (size_t) t * a->w->K, n, d->scratch.qkv, t,
                             NULL);

        j.first = t;
        vlm_threads_run(d->threads, n, 4, append_rows, &j);
    }
}


typedef struct {
    vlm_device_t       *d;
    vlm_attend_args_t   args;
    uint32_t            rows;          /* of an item: as many queries as go together */
} vlm_attend_job_t;


/*
 * An item is some rows and one KV head, whose keys and values stay in a near cache for the next
 * items.
 */
static void
attend_items(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float             *scratch;
    uint32_t           i, first, last, T, tiles;
    vlm_attend_job_t  *j = arg;

    T = j->args.batch->T;
    tiles = (T + j->rows - 1) / j->rows;
    scratch = vlm_cpu_attend_scratch(j->d, thread);

    for (i = begin; i < end; i++) {
        first = i % tiles * j->rows;
        last = T - first < j->rows ? T : first + j->rows;

        if (j->args.kv->k_scale != NULL) {
            j->d->k.attend_int16(&j->args, first, last, i / tiles, scratch);
        } else {
            j->d->k.attend(&j->args, first, last, i / tiles, scratch);
        }
    }
}


static void
cpu_attend(vlm_device_t *d, const vlm_attend_t *a, const void *q, const vlm_batch_t *b,
           const vlm_kv_t *kv, uint32_t layer, void *o)
{
    uint32_t          group;
    vlm_attend_job_t  j = { d, { a, q, b, kv, layer, o }, 1 };

    group = a->heads / kv->heads;
    j.rows = group < VLM_ATTEND_ROWS ? VLM_ATTEND_ROWS / group : 1;

    vlm_threads_run(d->threads, (b->T + j.rows - 1) / j.rows * kv->heads, 1, attend_items, &j);
}


static void
cpu_head(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const float *x,
         const vlm_batch_t *b, float *logits)
{
    uint32_t  r;

    for (r = 0; r < b->R; r++) {
        memcpy(d->scratch.rows + (size_t) r * w->K, x + (size_t) b->logit_row[r] * w->K,
               w->K * sizeof(float));
    }

    linear_rows(d, w, norm, d->scratch.rows, b->R, logits, b->logit_row);
}


typedef struct {
    vlm_device_t       *d;
    const vlm_batch_t  *batch;
    float              *logits, *logprob;
    uint32_t            V, n_vocab, seen_words, *seen, *token;
} vlm_sample_job_t;


static void
sample_rows(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float             *logits;
    uint32_t           r, *seen;
    vlm_sample_job_t  *j = arg;
    const vlm_pick_t  *pick;

    for (r = begin; r < end; r++) {
        pick = &j->batch->pick[r];
        logits = j->logits + (size_t) r * j->V;
        seen = j->seen + (size_t) pick->seen * j->seen_words;

        if (vlm_sample_filter(logits, j->V, j->n_vocab, seen, pick,
                              j->d->scratch.candidates + (size_t) thread * j->d->need.vocab) != 0)
        {
            j->token[r] = 0;
            j->logprob[r] = NAN;
            continue;
        }

        j->token[r] = vlm_sample_pick(logits, j->V, pick, &j->logprob[r]);
        seen[j->token[r] / 32] |= 1u << (j->token[r] % 32);
    }
}


static void
cpu_sample(vlm_device_t *d, float *logits, uint32_t V, uint32_t n_vocab, const vlm_batch_t *b,
           uint32_t *seen, uint32_t seen_words, uint32_t *token, float *logprob)
{
    vlm_sample_job_t  j = { d, b, logits, logprob, V, n_vocab, seen_words, seen, token };

    vlm_threads_run(d->threads, b->R, 1, sample_rows, &j);
}


static uint64_t
cpu_packed_bytes(vlm_device_t *d, vlm_type_t type, uint32_t N, uint32_t K)
{
    return d->k.packed_bytes(type, N, K);
}


static uint32_t
cpu_order(const vlm_device_t *d)
{
    return d->k.order;
}


static uint32_t
cpu_together(const vlm_device_t *d, vlm_type_t type)
{
    return vlm_takes_int8(type) ? d->k.together : 1;
}


static const vlm_basic_t  cpu_basic = {
    .describe = cpu_describe,
    .close = cpu_close,
    .reserve = cpu_reserve,
    .touch = cpu_touch,
    .put = cpu_copy,
    .get = cpu_copy,
    .sync = cpu_sync,
    .ask = cpu_ask,
    .act_bytes = cpu_act_bytes,
    .together = cpu_together,
    .scratch_bytes = cpu_scratch_bytes,
    .set_scratch = cpu_set_scratch,
    .order = cpu_order,
    .packed_bytes = cpu_packed_bytes,
    .kv_int16 = 1,
    .low_packed = 1,
    .pack = cpu_pack
};


static const vlm_ops_t  cpu_ops = {
    .basic = &cpu_basic,
    .embed = cpu_embed,
    .norm = cpu_norm,
    .norm_stream = cpu_norm_stream,
    .linear = cpu_linear,
    .qkv = cpu_qkv,
    .attend = cpu_attend,
    .add_features = cpu_add_features,
    .head = cpu_head,
    .sample = cpu_sample,
    .patch_embed = vlm_cpu_patch_embed,
    .add_places = vlm_cpu_add_places,
    .qkv_2d = vlm_cpu_qkv_2d,
    .attend_segments = vlm_cpu_attend_segments
};
