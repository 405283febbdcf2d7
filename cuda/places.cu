/*
 * add_places: adds to each patch its learned position, interpolated between four of a square grid.
 *
 * A block has one patch.  Two of its threads find the four positions and their weights in the
 * definition's order, so the bits are the same.  cost.h bounds the patches of a launch.
 */

#include "device.h"

#define THREADS  128

typedef struct {
    const float     *at;               /* [side side][E] */
    const uint32_t  *row, *column;     /* [P] */
    uint32_t         rows, columns;    /* of the picture */
    uint32_t         side, E;
    float           *x;                /* [P][E] */
} args_t;

typedef struct {                       /* along one side of the grid */
    uint32_t  low, high;               /* the two places */
    float     part;                    /* the weight of low; high has the rest */
} between_t;


/* Where patch i of n lies among `side` places. */
static __device__ __forceinline__ between_t
between(uint32_t i, uint32_t n, uint32_t side)
{
    between_t  b = { 0, 0, 1 };
    uint64_t   at, last;

    if (n > 1) {
        last = n - 1;
        at = static_cast<uint64_t>(i) * (side - 1);
        b.low = static_cast<uint32_t>(at / last);
        b.part = 1 - static_cast<float>(at % last) / static_cast<float>(last);
    }

    b.high = b.low + 1 < side ? b.low + 1 : side - 1;

    return b;
}


__global__ void __launch_bounds__(THREADS)
add_places(args_t a)
{
    float         w[4];
    uint32_t      i, p = blockIdx.x;
    const float  *from[4];

    VLM_SHARED(between_t, b, 2);

    if (threadIdx.x < 2) {
        b[threadIdx.x] = threadIdx.x == 0 ? between(a.row[p], a.rows, a.side)
                                          : between(a.column[p], a.columns, a.side);
    }

    __syncthreads();

    a.x += static_cast<size_t>(p) * a.E;

#pragma unroll
    for (i = 0; i < 4; i++) {
        from[i] = a.at + (static_cast<size_t>(i < 2 ? b[0].low : b[0].high) * a.side
                          + (i % 2 == 0 ? b[1].low : b[1].high)) * a.E;
        w[i] = (i < 2 ? b[0].part : 1 - b[0].part) * (i % 2 == 0 ? b[1].part : 1 - b[1].part);
    }

    for (i = threadIdx.x; i < a.E; i += THREADS) {
        a.x[i] += from[0][i] * w[0] + from[1][i] * w[1] + from[2][i] * w[2] + from[3][i] * w[3];
    }
}


void
vlm_load_places(vlm_device_t *d)
{
    VLM_LOAD(d, add_places, 0);
}


void
vlm_cuda_add_places(vlm_device_t *d, const vlm_places_t *places, const vlm_patches_t *patches,
                    uint32_t E, float *x)
{
    args_t        a;
    uint32_t      p, n;
    const double  cost = vlm_cost(24.0 * E, 0);

    a.at = places->at;
    a.rows = patches->rows;
    a.columns = patches->columns;
    a.side = places->side;
    a.E = E;

    for (p = 0; p < patches->P; p += n) {
        n = vlm_fit(d, cost, patches->P - p);
        a.row = patches->row + p;
        a.column = patches->column + p;
        a.x = x + static_cast<size_t>(p) * E;

        VLM_LAUNCH(d, cost * n, add_places, n, THREADS, 0, a);
    }
}
