/*
 * A CUDA device as its operations see it, how they launch kernels, and the operations themselves,
 * one file for a family of them.
 *
 * Operations return no status.  The device records a fault, after which it launches no kernels; and
 * sync() reports the fault.
 */

#ifndef VLM_DEVICE_H
#define VLM_DEVICE_H

#include <type_traits>
#include <utility>

#include "cost.h"
#include "driver.h"
#include "fault.h"
#include "vlm.h"

#define VLM_MAX_RESERVED  16           /* blocks of memory: an engine has one, tests some */
#define VLM_ARCH_BF16     80           /* the lowest with tensor cores for bf16 */
#define VLM_PIECES        16           /* graphs of a captured step */

/* A captured step, as graphs that are launched one after the other. */
typedef struct {
    uint32_t  n;
    void     *graph[VLM_PIECES];
    double    cost[VLM_PIECES];
} vlm_kept_t;

struct vlm_device_s {
    const vlm_driver_t     *driver;
    vlm_facts_of_device_t   facts;
    uint32_t                index;
    int                     built_by;  /* CUDA's version: 11080 is 11.8 */
    void                   *stream;
    vlm_type_t              weights;

    /* Written by the threads that load, too: see vlm_device_check(). */
    int                     fault;     /* the first error since sync() reported one; 0: none */
    const char             *fault_at;  /* the call in progress; static */
    int                     lost;      /* 1: no further call is allowed */

    vlm_need_t              need;
    vlm_cuda_scratch_t      scratch;

    vlm_quit_fn             quit;      /* checks for cancellation; set by cuda_ask() */
    void                   *quit_data;
    int                     quitting;
    double                  most;      /* bound of the cost between two waits; see cost.h */
    double                  spent;     /* cost since the host's last wait */

    vlm_kept_t              kept[VLM_KEPT];
    vlm_kept_t              made;      /* the step being recorded */
    int                     recording; /* 1: launches become part of a graph */
    int                     keeps_none;            /* 1: a capture was refused, see step.cu */

    uint64_t                before;    /* bytes in use by others when it was opened */
    int                     has_before;            /* 0: the driver could not tell */
    uint64_t                bytes;     /* reserved */
    uint32_t                n_reserved;
    void                   *reserved[VLM_MAX_RESERVED];
};

/* Returns 0; or -1 and records the fault.  code is the result of a call of the driver's table. */
int vlm_device_check(vlm_device_t *d, int code, const char *what);
/* Records that the host had no memory, which counts as a refused call. */
void vlm_device_no_memory(vlm_device_t *d);
void vlm_device_put(vlm_device_t *d, void *to, const void *from, uint64_t bytes);
/*
 * Called before work of this cost is launched.  If the cost and that of the launches since the last
 * wait exceed the bound, the host waits for the device and checks for cancellation.
 */
void vlm_device_spend(vlm_device_t *d, double cost);
/* Returns 1 if an operation may begin: there is no fault, and no check has demanded a stop. */
int vlm_device_ready(vlm_device_t *d);


/* ---- launches ----------------------------------------------------------------------------- */

/* Returns the number of n units of this cost each that one launch may have; at least one. */
static inline uint32_t
vlm_fit(const vlm_device_t *d, double cost, uint32_t n)
{
    return vlm_cost_fit(d->most, cost, n);
}


/* A launch with fewer blocks than multiprocessors costs as if each of them had a block. */
static inline double
vlm_cost_on(const vlm_device_t *d, dim3 grid, double cost)
{
    const double  blocks = static_cast<double>(grid.x) * grid.y * grid.z;

    return blocks < d->facts.n_sms ? cost / blocks * d->facts.n_sms : cost;
}


template <class... P, size_t... I>
static inline void
vlm_call_with(void (*kernel)(P...), void **args, std::index_sequence<I...>)
{
    kernel(*static_cast<typename std::remove_reference<P>::type *>(args[I])...);
}


/*
 * The kernel as a function of its parameters' addresses, which the emulator calls in each thread.
 */
template <class... P>
static inline void
vlm_call(const void *kernel, void **args)
{
    vlm_call_with(reinterpret_cast<void (*)(P...)>(const_cast<void *>(kernel)), args,
                  std::index_sequence_for<P...>());
}


template <class... P>
static inline void
vlm_launch(vlm_device_t *d, const char *name, double cost, void (*kernel)(P...), dim3 grid,
           dim3 block, size_t shared, typename std::common_type<P>::type... values)
{
    void         *args[] = { const_cast<void *>(static_cast<const void *>(&values))... };
    const size_t  sizes[] = { sizeof(values)... };
    vlm_launch_t  l;

    cost = vlm_cost_on(d, grid, cost);
    vlm_device_spend(d, cost);

    if (!vlm_device_ready(d)) {
        return;
    }

    l.cost = cost;
    l.kernel = reinterpret_cast<const void *>(kernel);
    l.name = name;
    l.grid = grid;
    l.block = block;
    l.shared = shared;
    l.stream = d->stream;
    l.args = args;
    l.sizes = sizes;
    l.n_args = sizeof...(P);
    l.call = vlm_call<P...>;

    (void) vlm_device_check(d, d->driver->launch(&l), name);
}


template <class... P>
static inline void
vlm_load(vlm_device_t *d, const char *name, void (*kernel)(P...), size_t shared)
{
    if (vlm_device_ready(d)) {
        (void) vlm_device_check(d, d->driver->load(reinterpret_cast<const void *>(kernel), shared),
                                name);
    }
}


/*
 * VLM_LOAD(d, kernel, shared_bytes): called when the device is opened, for every kernel that is
 * launched later.  Otherwise CUDA would load each with its first launch, into memory that no plan
 * counts.
 */
#define VLM_LOAD(d, kernel, shared)  vlm_load(d, #kernel, kernel, shared)

/*
 * VLM_LAUNCH(d, cost, kernel, grid, block, shared_bytes, arguments...): the cost is the launch's,
 * see cost.h, and arguments become the kernel's parameters as in a call.  A kernel that is a
 * template stands in brackets: (rows<4, 2>).
 */
#define VLM_LAUNCH(d, cost, kernel, grid, block, shared, ...)                                    \
    vlm_launch(d, #kernel, cost, kernel, grid, block, shared, __VA_ARGS__)


static inline unsigned
vlm_divide_up(uint64_t n, uint64_t by)
{
    return static_cast<unsigned>((n + by - 1) / by);
}


/* Each function loads the kernels of its file. */
void vlm_load_attend(vlm_device_t *d);
void vlm_load_embed(vlm_device_t *d);
void vlm_load_linear(vlm_device_t *d);
void vlm_load_low(vlm_device_t *d);
void vlm_load_norm(vlm_device_t *d);
void vlm_load_patch_embed(vlm_device_t *d);
void vlm_load_places(vlm_device_t *d);
void vlm_load_qkv(vlm_device_t *d);
void vlm_load_ready(vlm_device_t *d);
void vlm_load_sample(vlm_device_t *d);
void vlm_load_segments(vlm_device_t *d);
void vlm_load_turn(vlm_device_t *d);


/* ---- operations, see engine/ops/ops.h ------------------------------------------------------ */

/* pack.cu */
void vlm_cuda_pack(vlm_device_t *d, vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);

/* step.cu */
int vlm_cuda_record(vlm_device_t *d);
void vlm_cuda_keep(vlm_device_t *d, uint32_t number);
int vlm_cuda_replay(vlm_device_t *d, uint32_t number);
void vlm_device_cut(vlm_device_t *d, double cost);
void vlm_device_drop_kept(vlm_device_t *d);

/* embed.cu */
void vlm_cuda_embed(vlm_device_t *d, const vlm_linear_t *table, const void *features,
                    const vlm_batch_t *b, float *x);
void vlm_cuda_add_features(vlm_device_t *d, const void *features, const vlm_batch_t *b, uint32_t D,
                           float *x);

/* low.cu: adds to x [T][D] what adapters add to rows of a table, of tokens alone */
void vlm_low_embed(vlm_device_t *d, const vlm_linear_t *table, const vlm_batch_t *b, float *x);

/* norm.cu */
void vlm_cuda_norm(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T, uint32_t n,
                   void *y);
void vlm_cuda_norm_stream(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn, float *x,
                          uint32_t T, uint32_t n);

/* linear.cu */
void vlm_cuda_linear(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
                     uint32_t T, void *y);
void vlm_cuda_head(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const float *x,
                   const vlm_batch_t *b, float *logits);

/* qkv.cu */
void vlm_cuda_qkv(vlm_device_t *d, const vlm_qkv_t *how, const float *x, const vlm_batch_t *b,
                  const vlm_kv_t *kv, uint32_t layer, void *q);
void vlm_cuda_qkv_2d(vlm_device_t *d, const vlm_qkv_t *how, const float *x,
                     const vlm_patches_t *patches, void *q, void *k, void *v);

/* attend.cu, segments.cu */
void vlm_cuda_attend(vlm_device_t *d, const vlm_attend_t *how, const void *q, const vlm_batch_t *b,
                     const vlm_kv_t *kv, uint32_t layer, void *o);
void vlm_cuda_attend_segments(vlm_device_t *d, const vlm_attend_t *how, const void *q,
                              const void *k, const void *v, const vlm_segments_t *segments,
                              void *o);

/* sample.cu */
void vlm_cuda_sample(vlm_device_t *d, float *logits, uint32_t V, uint32_t n_vocab,
                     const vlm_batch_t *b, uint32_t *seen, uint32_t seen_words, uint32_t *token,
                     float *logprob);

/* patch_embed.cu */
void vlm_cuda_patch_embed(vlm_device_t *d, const vlm_linear_t *w, const uint8_t *pixels,
                          uint32_t P, float *x);

/* places.cu */
void vlm_cuda_add_places(vlm_device_t *d, const vlm_places_t *places,
                         const vlm_patches_t *patches, uint32_t E, float *x);

#endif
