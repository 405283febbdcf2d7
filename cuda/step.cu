/*
 * Steps that repeat are captured when the model loads; each is then a few launches, mostly one.
 *
 * Kernels of a captured step have the addresses and the grids that they had when it was captured;
 * sequences, tokens and numbers of cached rows are read from device memory.  A step whose cost
 * exceeds the bound between two checks for cancellation (cost.h) is captured as several graphs.
 * captured() allocates a graph's memory on the device.
 *
 * A driver that refuses to capture is not a fault: then steps are launched kernel by kernel.
 */

#include "device.h"


static void
drop(vlm_device_t *d, vlm_kept_t *step)
{
    for (uint32_t i = 0; i < step->n; i++) {
        (void) vlm_device_check(d, d->driver->drop(step->graph[i]),
                                "the release of a captured step");
    }

    step->n = 0;
}


/*
 * Handles an error of the calls that capture; an error from which CUDA does not recover remains a
 * fault.
 */
static void
refuse(vlm_device_t *d)
{
    if (!d->lost) {
        drop(d, &d->made);
    }

    if (!d->lost) {
        d->fault = 0;
        d->keeps_none = 1;
    }
}


static void
begin_piece(vlm_device_t *d)
{
    d->made.cost[d->made.n] = 0;
    d->recording = vlm_device_check(d, d->driver->capture(d->stream), "the capture of a step") == 0;
}


/* A launch that was refused ends the capture as well, with an error of its own. */
static void
end_piece(vlm_device_t *d)
{
    void  *graph = nullptr;

    d->recording = 0;

    if (!d->lost
        && vlm_device_check(d, d->driver->captured(d->stream, &graph), "a captured step") == 0)
    {
        d->made.graph[d->made.n++] = graph;
    }
}


int
vlm_cuda_record(vlm_device_t *d)
{
    if (d->keeps_none || !vlm_device_ready(d)) {
        return 0;
    }

    d->made.n = 0;
    begin_piece(d);

    if (!d->recording) {
        refuse(d);
    }

    return d->recording;
}


/*
 * Called before a launch is recorded: a launch that exceeds the bound of the graph begins the next
 * one.  After an error no kernel is launched, and keep() handles the error.
 */
void
vlm_device_cut(vlm_device_t *d, double cost)
{
    if (d->made.cost[d->made.n] > 0 && d->made.cost[d->made.n] + cost > d->most) {
        end_piece(d);

        if (d->made.n == VLM_PIECES) {
            (void) vlm_device_check(d, VLM_CODE_NO_MEMORY, "a step of too many pieces");
        }

        if (!vlm_device_ready(d)) {
            return;
        }

        begin_piece(d);
    }

    d->made.cost[d->made.n] += cost;
}


void
vlm_cuda_keep(vlm_device_t *d, uint32_t number)
{
    if (d->recording) {
        end_piece(d);
    }

    if (!vlm_device_ready(d)) {
        refuse(d);
        return;
    }

    drop(d, &d->kept[number]);
    d->kept[number] = d->made;
}


int
vlm_cuda_replay(vlm_device_t *d, uint32_t number)
{
    vlm_kept_t  *step;

    if (number >= VLM_KEPT || d->kept[number].n == 0) {
        return 0;
    }

    step = &d->kept[number];

    for (uint32_t i = 0; i < step->n; i++) {
        vlm_device_spend(d, step->cost[i]);

        if (vlm_device_ready(d)) {
            (void) vlm_device_check(d, d->driver->replay(step->graph[i], d->stream),
                                    "the launch of a captured step");
        }
    }

    return 1;
}


void
vlm_device_drop_kept(vlm_device_t *d)
{
    for (uint32_t i = 0; i < VLM_KEPT; i++) {
        drop(d, &d->kept[i]);
    }
}
