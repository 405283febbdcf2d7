/*
 * Repeated steps: captured when the model loads, and then one launch each.
 *
 * Kernels of a kept step have the addresses and the grids that they had when it was captured;
 * sequences, tokens and numbers of cached rows are read from device memory.  captured() allocates a
 * graph's memory on the device.
 *
 * A driver that refuses to capture is no fault: no step is kept then, and steps are launched kernel
 * by kernel.
 */

#include "device.h"


/*
 * Handles an error of the calls that capture; one from which CUDA does not recover stays a fault.
 */
static void
refuse(vlm_device_t *d)
{
    if (!d->lost) {
        d->fault = 0;
        d->keeps_none = 1;
    }
}


int
vlm_cuda_record(vlm_device_t *d)
{
    if (d->keeps_none || !vlm_device_ready(d)) {
        return 0;
    }

    if (vlm_device_check(d, d->driver->capture(d->stream), "the capture of a step") != 0) {
        refuse(d);
        return 0;
    }

    d->recording = 1;
    d->recorded = 0;

    return 1;
}


/* A launch that was refused ends the capture as well, with an error of its own. */
static void *
captured(vlm_device_t *d)
{
    void  *graph = nullptr;

    if (d->lost) {
        return nullptr;
    }

    if (vlm_device_check(d, d->driver->captured(d->stream, &graph), "a captured step") != 0
        || !vlm_device_ready(d))
    {
        refuse(d);
    }

    if (d->keeps_none && graph != nullptr && !d->lost) {
        (void) vlm_device_check(d, d->driver->drop(graph), "a step to drop");
        graph = nullptr;
    }

    return graph;
}


void
vlm_cuda_keep(vlm_device_t *d, uint32_t number)
{
    void  *graph;

    d->recording = 0;
    graph = captured(d);

    if (graph != nullptr && d->kept[number] != nullptr) {
        (void) vlm_device_check(d, d->driver->drop(d->kept[number]), "a step to drop");
    }

    d->kept[number] = graph;
    d->kept_us[number] = d->recorded;
}


int
vlm_cuda_replay(vlm_device_t *d, uint32_t number)
{
    if (number >= VLM_KEPT || d->kept[number] == nullptr) {
        return 0;
    }

    vlm_device_spend(d, d->kept_us[number]);

    if (vlm_device_ready(d)) {
        (void) vlm_device_check(d, d->driver->replay(d->kept[number], d->stream), "a kept step");
    }

    return 1;
}


void
vlm_device_drop_kept(vlm_device_t *d)
{
    for (uint32_t i = 0; i < VLM_KEPT; i++) {
        if (d->kept[i] != nullptr) {
            (void) d->driver->drop(d->kept[i]);
        }
    }
}
