/* Passes, pictures and questions for programs that time a model: see the header. */

#include "run/measure.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"

#define AHEAD   3072                   /* bytes; of one to four streams and 1 to 4 KiB, two streams
                                          with this distance read most */
#define WIDE    256                    /* bytes of a turn of a stream */
#define PIECES  4                      /* of a matrix for each thread */

/* Each matrix that a token reads; `matrix` is called with the head, then with those of layers. */
typedef void (*visit_t)(void *data, const vlm_linear_t *w, int in_layer);

typedef struct {                       /* a matrix in pieces */
    const uint8_t    *base;
    uint64_t          piece;           /* bytes, a multiple of 2 WIDE */
    _Atomic uint64_t  sum;
} range_t;

typedef struct {
    vlm_t          *v;
    vlm_threads_t  *threads;
    uint64_t        bytes;
} reading_t;


/* ---- passes ---------------------------------------------------------------- */

void
vlm_measure_pass(vlm_t *v, uint32_t S, uint32_t n_ctx, uint32_t rows, int picks)
{
    int32_t           pos[3];
    uint32_t          s, i;
    vlm_pick_t        pick;
    vlm_batch_t       batch;
    vlm_model_t      *m = &v->sched.model;
    vlm_rows_t       *r = &v->sched.rows;
    vlm_text_work_t  *w = &m->work;

    memset(&pick, 0, sizeof(pick));
    pick.top_p = pick.repetition_penalty = 1;
    vlm_rows_clear(r);

    for (s = 0; s < S; s++) {
        vlm_rows_sequence(r, s, n_ctx);

        for (i = 0; i < rows; i++) {
            pos[0] = pos[1] = pos[2] = (int32_t) (n_ctx + i);
            vlm_rows_add(r, (s * 977 + i * 31) % m->n_vocab, VLM_NONE, pos);
        }

        if (picks) {
            pick.seen = s;
            vlm_rows_pick(r, &pick);
        }
    }

    vlm_rows_put(r, v->ops, v->device, w->ids, w->pick, &batch);
    (void) vlm_text_forward(m, &batch, NULL, NULL);

    if (picks) {
        vlm_text_head(m, &batch);
        v->ops->sample(v->device, w->logits, m->config.text.vocab, m->n_vocab, &batch, w->seen,
                       m->seen_words, w->token, w->logprob);
    }

    (void) v->ops->basic->sync(v->device, NULL);
}


void
vlm_measure_prompt(vlm_t *v, uint32_t tokens)
{
    uint32_t  at, n;

    for (at = 0; at < tokens; at += n) {
        n = tokens - at < VLM_SLICE ? tokens - at : VLM_SLICE;
        vlm_measure_pass(v, 1, at, n, at + n == tokens);
    }
}


/* ---- what a token reads ------------------------------------------------------ */

static void
visit(const vlm_t *v, visit_t matrix, void *data)
{
    uint32_t            i, j;
    const vlm_layer_t  *l;
    const vlm_model_t  *m = &v->sched.model;

    matrix(data, &m->head, 0);

    for (i = 0; i < m->config.text.layers; i++) {
        l = &m->layer[i];

        const vlm_linear_t  *const of[] = { &l->qkv, &l->o, &l->up, &l->down };

        for (j = 0; j < sizeof(of) / sizeof(of[0]); j++) {
            matrix(data, of[j], 1);
        }
    }
}


static void
count_matrix(void *data, const vlm_linear_t *w, int in_layer)
{
    vlm_measure_weights_t  *sum = data;

    sum->bytes += (double) w->N * (double) vlm_format_row(vlm_format_of(w->type), w->K);
    sum->values += in_layer ? (double) w->N * w->K : 0;
}


void
vlm_measure_weights(const vlm_t *v, vlm_measure_weights_t *w)
{
    memset(w, 0, sizeof(*w));
    visit(v, count_matrix, w);
}


double
vlm_measure_kv_bytes(const vlm_t *v, uint32_t n_ctx)
{
    double           row;
    const vlm_kv_t  *kv = &v->sched.model.kv;

    row = kv->head_dim * (vlm_format_of(kv->type)->bits / 8.0) + (kv->k_scale != NULL ? 4 : 0);

    return 2 * row * kv->layers * kv->heads * n_ctx;
}


/* ---- reading them alone ------------------------------------------------------ */

typedef uint64_t  wide_t __attribute__((vector_size(64)));

uint64_t
vlm_measure_range(const void *p, uint64_t bytes)
{
    int            i;
    wide_t         sum[4] = { 0 };
    uint64_t       n, half = bytes / 2;
    const uint8_t *from = p;

    for (n = half; n >= WIDE; n -= WIDE, from += WIDE) {
        for (i = 0; i < 4; i++) {
            __builtin_prefetch(from + 64 * i + AHEAD, 0, 2);
            __builtin_prefetch(from + half + 64 * i + AHEAD, 0, 2);
            sum[i] ^= *(const wide_t *) (from + 64 * i);
            sum[i] ^= *(const wide_t *) (from + half + 64 * i);
        }
    }

    sum[0] ^= sum[1] ^ sum[2] ^ sum[3];

    return sum[0][0] ^ sum[0][1] ^ sum[0][2] ^ sum[0][3] ^ sum[0][4] ^ sum[0][5] ^ sum[0][6]
           ^ sum[0][7];
}


static void
read_pieces(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    range_t  *r = arg;

    (void) thread;
    r->sum ^= vlm_measure_range(r->base + begin * r->piece, (end - begin) * r->piece);
}


static void
read_matrix(void *data, const vlm_linear_t *w, int in_layer)
{
    range_t     r = { .base = w->w };
    uint32_t    pieces;
    reading_t  *x = data;

    (void) in_layer;
    pieces = PIECES * vlm_threads_count(x->threads);
    r.piece = x->v->ops->basic->packed_bytes(x->v->device, w->type, w->N, w->K) / pieces
              / (2 * WIDE) * (2 * WIDE);

    vlm_threads_run(x->threads, pieces, 1, read_pieces, &r);
    x->bytes += pieces * r.piece;
}


uint64_t
vlm_measure_read(vlm_t *v, vlm_threads_t *threads)
{
    reading_t  x = { v, threads, 0 };

    visit(v, read_matrix, &x);

    return x.bytes;
}


int
vlm_measure_wait(const vlm_t *v, uint32_t seconds)
{
    uint32_t    n;
    vlm_stat_t  stat;

    vlm_stat(v, &stat);

    for (n = 0; stat.filling && n < 100 * seconds; n++) {
        (void) usleep(10000);
        vlm_stat(v, &stat);
    }

    return !stat.filling;
}


/* ---- a picture and a question -------------------------------------------------- */

static void
put_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
    p[2] = (uint8_t) (v >> 16);
    p[3] = (uint8_t) (v >> 24);
}


uint8_t *
vlm_measure_picture(uint32_t width, uint32_t height, uint32_t seed, size_t *bytes)
{
    size_t    i;
    uint8_t  *p;
    uint32_t  state;

    *bytes = 54 + (size_t) width * height * 3;
    p = calloc(1, *bytes);

    if (p == NULL) {
        return NULL;
    }

    memcpy(p, "BM", 2);
    put_u32(p + 2, (uint32_t) *bytes);
    put_u32(p + 10, 54);
    put_u32(p + 14, 40);
    put_u32(p + 18, width);
    put_u32(p + 22, height);
    p[26] = 1;
    p[28] = 24;

    state = seed * 2654435761u;

    for (i = 54; i < *bytes; i++) {
        state = state * 1664525 + 1013904223;
        p[i] = (uint8_t) (state >> 24);
    }

    return p;
}


vlm_prompt_t *
vlm_measure_question(const vlm_t *v, vlm_picture_t *picture, const char *text, uint32_t tokens,
                     vlm_err_t *err)
{
    size_t         bytes, piece, n, i;
    uint32_t      *ids;
    vlm_part_t     parts[2] = { { .picture = picture }, { .text = text } };
    vlm_prompt_t  *p;

    if (vlm_tokenize(v, text, strlen(text), &ids, &n, err) != 0) {
        vlm_picture_free(picture);
        return NULL;
    }

    for (bytes = 0, i = 0; i < n && i < tokens; i++) {
        (void) vlm_piece(v, ids[i], &piece);
        bytes += piece;
    }

    free(ids);
    parts[1].bytes = bytes;

    p = picture == NULL ? vlm_prompt_raw(v, parts + 1, 1, err) : vlm_prompt_raw(v, parts, 2, err);

    if (p == NULL) {
        vlm_picture_free(picture);
    }

    return p;
}


int
vlm_measure_first(vlm_t *v, vlm_prompt_t *p, vlm_err_t *err)
{
    int              rc, idle;
    vlm_event_t      e;
    vlm_sampling_t   s;

    vlm_sampling_default(v, &s);
    s.temperature = 0;
    s.max_tokens = 1;

    if (vlm_submit(v, p, &s, NULL, &idle, err) == NULL) {
        vlm_prompt_free(p);
        return -1;
    }

    rc = vlm_run(v, err);

    while (vlm_next_event(v, &e)) {
        if (e.kind == VLM_FAILED) {
            rc = vlm_fail(err, e.err.code, "%s", e.err.text);
        }
    }

    return rc;
}
