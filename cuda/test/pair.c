/* Two devices side by side; see pair.h. */

#include "pair.h"

#include "format/bf16.h"
#include "format/int4.h"
#include "format/int8.h"

#if defined(VLM_EMU)
#include "emu/control.h"
#endif

#if defined(__SANITIZE_ADDRESS__) && defined(VLM_EMU)
#include <sanitizer/asan_interface.h>
#define HIDE(p, bytes)  __asan_poison_memory_region(p, bytes)
#define SHOW(p, bytes)  __asan_unpoison_memory_region(p, bytes)
#else
#define HIDE(p, bytes)  ((void) (p), (void) (bytes))
#define SHOW(p, bytes)  ((void) (p), (void) (bytes))
#endif

#define ROOM   (UINT64_C(96) << 20)    /* of one side */
#define ALIGN  256

side_t  host, card;

static uint64_t  kept[2];              /* used by the operations themselves */

vlm_cuda_open_fn  vlm_cuda_open;


static void
open_memory(side_t *s, const vlm_need_t *need)
{
    void      *scratch;
    uint64_t   bytes;
    vlm_err_t  err = { VLM_OK, "" };

    s->base = s->ops->basic->reserve(s->d, ROOM, &err);
    s->used = 0;

    if (s->base == NULL) {
        fail_msg("%s", err.text);
    }

    bytes = s->ops->basic->scratch_bytes(s->d, need);
    scratch = take_bytes(s, bytes);
    s->ops->basic->set_scratch(s->d, need, scratch);

    kept[s == &card] = s->used;
}


int
pair_open(vlm_type_t weights, const vlm_need_t *host_need, const vlm_need_t *card_need)
{
    vlm_err_t           err = { VLM_OK, "" };
    vlm_cuda_request_t  r = { VLM_CUDA_ABI, 0, weights, ROOM, 0 };

    memset(&host, 0, sizeof(host));
    memset(&card, 0, sizeof(card));

    host.is_host = 1;
    host.d = vlm_cpu_open("plain", 1, &host.ops, &err);
    card.d = vlm_cuda_open(&r, &card.ops, &err);

    if (host.d == NULL || card.d == NULL) {
        fail_msg("%s", err.text);
    }

    open_memory(&host, host_need);
    open_memory(&card, card_need);

    return 0;
}


int
pair_close(void **state)
{
    (void) state;
    pair_reset();
    SHOW(card.base, ROOM);
    SHOW(host.base, ROOM);
    host.ops->basic->close(host.d);
    card.ops->basic->close(card.d);

    return 0;
}


void
pair_reset(void)
{
    host.used = kept[0];
    card.used = kept[1];
}


/* Behind each range lies a gap that must stay unchanged. */
void *
take_bytes(side_t *s, uint64_t bytes)
{
    uint8_t  *p;

    p = s->base + s->used;
    s->used = vlm_round(vlm_add(s->used, bytes), ALIGN) + ALIGN;
    assert_true(s->used <= ROOM);

    SHOW(p, bytes);
    HIDE(p + bytes, (size_t) (s->base + s->used - (p + bytes)));

    return p;
}


void *
put_bytes(side_t *s, const void *from, uint64_t bytes)
{
    void  *p;

    p = take_bytes(s, bytes);
    s->ops->basic->put(s->d, p, from, bytes);

    return p;
}


void *
put_floats(side_t *s, const float *from, size_t n, form_t form)
{
    void      *p;
    size_t     i;
    uint16_t  *b;

    if (form == F32 || s->is_host) {
        return put_bytes(s, from, n * sizeof(float));
    }

    b = malloc(n * sizeof(uint16_t));

    for (i = 0; i < n; i++) {
        b[i] = vlm_f32_bf16(from[i]);
    }

    p = put_bytes(s, b, n * sizeof(uint16_t));
    free(b);

    return p;
}


void
get_floats(side_t *s, float *to, const void *from, size_t n, form_t form)
{
    size_t     i;
    uint16_t  *b;

    if (form == F32 || s->is_host) {
        s->ops->basic->get(s->d, to, from, n * sizeof(float));
        settle(s);
        return;
    }

    b = malloc(n * sizeof(uint16_t));
    s->ops->basic->get(s->d, b, from, n * sizeof(uint16_t));
    settle(s);

    for (i = 0; i < n; i++) {
        to[i] = vlm_bf16_f32(b[i]);
    }

    free(b);
}


float *
f32_values(uint32_t rows, uint32_t n, vlm_kind_t kind, uint64_t seed)
{
    float  *x;

    x = malloc((size_t) rows * n * sizeof(float));
    assert_non_null(x);
    vlm_parity_fill(x, rows, n, kind, seed);

    return x;
}


float *
bf16_values(uint32_t rows, uint32_t n, vlm_kind_t kind, uint64_t seed)
{
    float   *x;
    size_t   i;

    x = f32_values(rows, n, kind, seed);

    for (i = 0; i < (size_t) rows * n; i++) {
        x[i] = vlm_bf16_f32(vlm_f32_bf16(x[i]));
    }

    return x;
}


/* Packs panels of 64 rows, the last ones first, as threads that load may do it. */
static void
pack_rows(side_t *s, vlm_linear_t *w, const void *rows, size_t row_bytes)
{
    uint32_t  first, n;

    for (first = (w->N - 1) / VLM_PANEL * VLM_PANEL; /* void */; first -= VLM_PANEL) {
        n = w->N - first < VLM_PANEL ? w->N - first : VLM_PANEL;
        s->ops->basic->pack(s->d, w, first, n, (const uint8_t *) rows + first * row_bytes);

        if (first == 0) {
            break;
        }
    }
}


vlm_linear_t
put_quantised(side_t *s, vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N, uint32_t K,
              const void *rows, const float *scale, const float *bias)
{
    vlm_linear_t  w;

    memset(&w, 0, sizeof(w));
    w.type = type;
    w.epilogue = epilogue;
    w.N = N;
    w.K = K;
    w.w = take_bytes(s, s->ops->basic->packed_bytes(s->d, type, N, K));
    w.bias = bias == NULL ? NULL : put_bytes(s, bias, N * sizeof(float));
    w.scale = scale == NULL ? NULL : put_bytes(s, scale, N * sizeof(float));
    pack_rows(s, &w, rows, type == VLM_INT8 ? K : type == VLM_INT4 ? vlm_int4_row_bytes(K)
                                                                   : K * sizeof(float));

    return w;
}


vlm_linear_t
put_matrix(side_t *s, vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N, uint32_t K,
           const float *rows, const float *bias)
{
    float         *scale;
    size_t         bytes;
    uint8_t       *q;
    uint32_t       n;
    vlm_linear_t   w;

    if (type != VLM_INT8 && type != VLM_INT4) {
        return put_quantised(s, type, epilogue, N, K, rows, NULL, bias);
    }

    bytes = type == VLM_INT8 ? K : vlm_int4_row_bytes(K);
    scale = malloc(N * sizeof(float));
    q = malloc(N * bytes);

    for (n = 0; n < N; n++) {
        if (type == VLM_INT8) {
            scale[n] = vlm_quant_row(rows + (size_t) n * K, K, (int8_t *) q + n * bytes);
        } else {
            vlm_int4_quantise(rows + (size_t) n * K, K, q + n * bytes, &scale[n]);
        }
    }

    w = put_quantised(s, type, epilogue, N, K, q, scale, bias);
    free(scale);
    free(q);

    return w;
}


void
use_seed(uint32_t i)
{
#if defined(VLM_EMU)
    vlm_emu_set(VLM_EMU_SEED, i * 7 + 1);
#else
    (void) i;
#endif
}


void
settle(side_t *s)
{
    vlm_err_t  err = { VLM_OK, "" };

    if (s->ops->basic->sync(s->d, &err) != 0) {
        fail_msg("%s", err.text);
    }
}


void
check_same_bits(const float *got, const float *want, size_t n, const char *what)
{
    size_t  i;

    i = vlm_differs(got, want, n);

    if (i < n) {
        fail_msg("%s: value %zu of %zu is %.9g in one run, %.9g in another", what, i, n,
                 (double) want[i], (double) got[i]);
    }
}


void
check_near(const float *got, const float *want, const float *bound, float by, float of, size_t n,
           const char *what)
{
    float   off, most;
    size_t  i;

    for (i = 0; i < n; i++) {
        off = fabsf(got[i] - want[i]);
        most = bound != NULL ? bound[i] : by + of * fabsf(want[i]);

        if (!(off <= most) && !(isnan(got[i]) && isnan(want[i]))) {
            fail_msg("%s: value %zu of %zu is %.9g, not %.9g: off by %g, allowed %g", what, i, n,
                     (double) got[i], (double) want[i], (double) off, (double) most);
        }
    }
}
