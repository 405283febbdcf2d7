/*
 * The driver's table with CUDA's own runtime behind it.  No other file calls the runtime, nor NVML,
 * which comes with the driver and is looked for at run time: without it the memory in use is not
 * known.
 */

#include <dlfcn.h>
#include <stdio.h>

#include "driver.h"


/*
 * Clears an error that was returned, so that a later call does not return it again; a sticky one
 * stays.
 */
static int
cleared(cudaError_t e)
{
    if (e != cudaSuccess) {
        (void) cudaGetLastError();
    }

    return static_cast<int>(e);
}


static cudaStream_t
stream_of(void *stream)
{
    return static_cast<cudaStream_t>(stream);
}


static int
cuda_version(int *driver, int *runtime)
{
    *runtime = CUDART_VERSION;         /* its own function fails without a driver in CUDA 11 */

    return cleared(cudaDriverGetVersion(driver));
}


static int
cuda_count(int *n)
{
    return cleared(cudaGetDeviceCount(n));
}


static int
cuda_facts(int index, vlm_facts_of_device_t *f)
{
    cudaError_t     e;
    cudaDeviceProp  p;

    e = cudaGetDeviceProperties(&p, index);

    if (e == cudaSuccess) {
        (void) snprintf(f->name, sizeof(f->name), "%.100s", p.name);
        f->arch = static_cast<uint32_t>(p.major * 10 + p.minor);
        f->n_sms = static_cast<uint32_t>(p.multiProcessorCount);
        f->bytes = p.totalGlobalMem;
        f->shared = p.sharedMemPerBlockOptin;
    }

    return cleared(e);
}


static int
cuda_use(int index)
{
    return cleared(cudaSetDevice(index));
}


/* ---- its speed ---------------------------------------------------------------------------- */

#define CHAINS    8                    /* of products in a thread: none waits for another */
#define PRODUCTS  32768                /* in each */
#define THREADS   256
#define BLOCKS    8                    /* for each processor: as many as have room */


/* Values tend to 2, so nothing is written; the test keeps the compiler from dropping the loop. */
static __global__ void
products(float a, float b, float *out)
{
    int    i, j;
    float  sum, x[CHAINS];

#pragma unroll
    for (j = 0; j < CHAINS; j++) {
        x[j] = static_cast<float>(threadIdx.x + j);
    }

    for (i = 0; i < PRODUCTS; i++) {
#pragma unroll
        for (j = 0; j < CHAINS; j++) {
            x[j] = fmaf(x[j], a, b);
        }
    }

    sum = 0;

#pragma unroll
    for (j = 0; j < CHAINS; j++) {
        sum += x[j];
    }

    if (sum < 0) {
        *out = sum;
    }
}


/* The first launch has the device load the kernel and raise its clock; the second one is timed. */
static cudaError_t
time_products(uint32_t blocks, cudaEvent_t begin, cudaEvent_t end, float *ms)
{
    cudaError_t  e;

    products<<<blocks, THREADS>>>(0.5f, 1, nullptr);
    e = cudaGetLastError();

    if (e == cudaSuccess) {
        e = cudaEventRecord(begin);
    }

    if (e == cudaSuccess) {
        products<<<blocks, THREADS>>>(0.5f, 1, nullptr);
        e = cudaGetLastError();
    }

    if (e == cudaSuccess) {
        e = cudaEventRecord(end);
    }

    if (e == cudaSuccess) {
        e = cudaEventSynchronize(end);
    }

    return e == cudaSuccess ? cudaEventElapsedTime(ms, begin, end) : e;
}


static int
cuda_speed(uint32_t n_sms, double *ops)
{
    float           ms;
    cudaError_t     e;
    cudaEvent_t     begin, end;
    const uint32_t  blocks = n_sms * BLOCKS;

    ms = 0;
    e = cudaEventCreate(&begin);

    if (e != cudaSuccess) {
        return cleared(e);
    }

    e = cudaEventCreate(&end);

    if (e == cudaSuccess) {
        e = time_products(blocks, begin, end, &ms);
        (void) cudaEventDestroy(end);
    }

    (void) cudaEventDestroy(begin);
    *ops = 2.0 * blocks * THREADS * CHAINS * PRODUCTS / (1000.0 * max(ms, 0.001f));

    return cleared(e);
}


static int
cuda_memory(size_t *free, size_t *total)
{
    return cleared(cudaMemGetInfo(free, total));
}


static int
cuda_reserve(void **p, size_t bytes)
{
    return cleared(cudaMalloc(p, bytes));
}


static int
cuda_release(void *p)
{
    return cleared(cudaFree(p));
}


static int
cuda_open_stream(void **stream)
{
    cudaError_t   e;
    cudaStream_t  s;

    e = cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
    *stream = e == cudaSuccess ? s : nullptr;

    return cleared(e);
}


static int
cuda_close_stream(void *stream)
{
    return cleared(cudaStreamDestroy(stream_of(stream)));
}


static int
cuda_fill(void *to, int byte, size_t bytes, void *stream)
{
    return cleared(cudaMemsetAsync(to, byte, bytes, stream_of(stream)));
}


/* A copy from or to pageable memory is done with the host's side when the call returns. */

static int
cuda_put(void *to, const void *from, size_t bytes, void *stream)
{
    return cleared(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_of(stream)));
}


static int
cuda_get(void *to, const void *from, size_t bytes, void *stream)
{
    return cleared(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_of(stream)));
}


/* A query of a kernel's attributes loads it, whatever CUDA_MODULE_LOADING says. */
static int
cuda_load(const void *kernel, size_t shared)
{
    cudaError_t         e;
    cudaFuncAttributes  a;

    e = cudaFuncGetAttributes(&a, kernel);

    if (e == cudaSuccess && shared > 0) {
        e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 static_cast<int>(shared));
    }

    return cleared(e);
}


static int
cuda_launch(const vlm_launch_t *l)
{
    return cleared(cudaLaunchKernel(l->kernel, l->grid, l->block, l->args, l->shared,
                                    stream_of(l->stream)));
}


static int
cuda_wait(void *stream)
{
    return cleared(cudaStreamSynchronize(stream_of(stream)));
}


/*
 * Captures in thread-local mode: calls by other threads do not disturb the capture, and a call that
 * is not allowed in this thread is an error.
 */
static int
cuda_capture(void *stream)
{
    return cleared(cudaStreamBeginCapture(stream_of(stream), cudaStreamCaptureModeThreadLocal));
}


static int
cuda_captured(void *stream, void **graph)
{
    cudaError_t      e;
    cudaGraph_t      g;
    cudaGraphExec_t  x;

    g = nullptr;
    x = nullptr;
    e = cudaStreamEndCapture(stream_of(stream), &g);

    if (e == cudaSuccess) {
        e = cudaGraphInstantiateWithFlags(&x, g, 0);
    }

    if (e == cudaSuccess) {
        e = cudaGraphUpload(x, stream_of(stream));
    }

    if (g != nullptr) {
        (void) cudaGraphDestroy(g);
    }

    if (e != cudaSuccess && x != nullptr) {
        (void) cudaGraphExecDestroy(x);
    }

    *graph = e == cudaSuccess ? x : nullptr;

    return cleared(e);
}


static int
cuda_replay(void *graph, void *stream)
{
    return cleared(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), stream_of(stream)));
}


static int
cuda_drop(void *graph)
{
    return cleared(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
}


/* ---- NVML, as its header has it ----------------------------------------------------------- */

#define NVML_LIBRARY  "libnvidia-ml.so.1"

typedef struct {
    unsigned long long  total, free, used;
} nvml_memory_t;

typedef int nvml_plain_fn(void);
typedef int nvml_find_fn(const char *bus_id, void **device);
typedef int nvml_memory_fn(void *device, nvml_memory_t *m);


static int
nvml_used(void *library, const char *bus_id, uint64_t *bytes)
{
    int              rc;
    void            *device;
    nvml_memory_t    m;
    nvml_find_fn    *find;
    nvml_plain_fn   *init, *shutdown;
    nvml_memory_fn  *memory;

    init = reinterpret_cast<nvml_plain_fn *>(dlsym(library, "nvmlInit_v2"));
    shutdown = reinterpret_cast<nvml_plain_fn *>(dlsym(library, "nvmlShutdown"));
    find = reinterpret_cast<nvml_find_fn *>(dlsym(library, "nvmlDeviceGetHandleByPciBusId_v2"));
    memory = reinterpret_cast<nvml_memory_fn *>(dlsym(library, "nvmlDeviceGetMemoryInfo"));

    if (init == nullptr || shutdown == nullptr || find == nullptr || memory == nullptr
        || init() != 0)
    {
        return -1;
    }

    rc = find(bus_id, &device) == 0 && memory(device, &m) == 0 ? 0 : -1;
    *bytes = rc == 0 ? m.used : 0;
    (void) shutdown();

    return rc;
}


static int
cuda_in_use(int index, uint64_t *bytes)
{
    int    rc;
    char   bus_id[32];
    void  *library;

    *bytes = 0;

    if (cleared(cudaDeviceGetPCIBusId(bus_id, sizeof(bus_id), index)) != 0) {
        return -1;
    }

    library = dlopen(NVML_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        return -1;
    }

    rc = nvml_used(library, bus_id, bytes);
    (void) dlclose(library);

    return rc;
}


static const char *
cuda_text(int code)
{
    return cudaGetErrorString(static_cast<cudaError_t>(code));
}


const vlm_driver_t *
vlm_driver(void)
{
    static const vlm_driver_t  driver = {
        cuda_version, cuda_count, cuda_facts, cuda_use, cuda_speed, cuda_memory, cuda_reserve,
        cuda_release, cuda_open_stream, cuda_close_stream, cuda_fill, cuda_put, cuda_get,
        cuda_load, cuda_launch, cuda_wait, cuda_capture, cuda_captured, cuda_replay, cuda_drop,
        cuda_in_use, cuda_text
    };

    return &driver;
}
