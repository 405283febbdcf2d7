/*
 * Copies rows of the cache from one slot to another.  They go by way of the host, a layer and up to
 * VLM_SLICE rows at a time, so that a device needs no operation for it.  The copy takes
 * milliseconds for hundreds of rows; computing them again takes a hundred times that.
 */

#include "base/size.h"
#include "format/format.h"
#include "model/model.h"

typedef void (*move_fn)(vlm_model_t *m, uint8_t *cache, uint8_t *room, uint64_t bytes);


uint64_t
vlm_kv_room(const vlm_kv_t *kv)
{
    uint64_t             rows;
    const vlm_format_t  *f = vlm_format_of(kv->type);

    rows = kv->context < VLM_SLICE ? kv->context : VLM_SLICE;

    return vlm_mul(vlm_mul(2 * rows, kv->heads),
                   vlm_format_row(f, kv->head_dim) + vlm_format_scales(f, 1) * sizeof(float));
}


static void
out(vlm_model_t *m, uint8_t *cache, uint8_t *room, uint64_t bytes)
{
    m->ops->basic->get(m->device, room, cache, bytes);
}


static void
in(vlm_model_t *m, uint8_t *cache, uint8_t *room, uint64_t bytes)
{
    m->ops->basic->put(m->device, cache, room, bytes);
}


/* Keys and values of rows [first, first + n) in one layer of a slot, and their scales. */
static void
move_rows(vlm_model_t *m, uint32_t layer, uint32_t slot, uint32_t first, uint32_t n, uint8_t *room,
          move_fn move)
{
    uint32_t         h, i;
    uint64_t         at;
    const vlm_kv_t  *kv = &m->kv;
    const uint64_t   row = vlm_format_row(vlm_format_of(kv->type), kv->head_dim);
    const struct {
        void      *cache;
        uint64_t   bytes;              /* of a row */
    } parts[] = { { kv->k, row }, { kv->v, row }, { kv->k_scale, sizeof(float) },
                  { kv->v_scale, sizeof(float) } };

    for (h = 0; h < kv->heads; h++) {
        at = (((uint64_t) layer * kv->slots + slot) * kv->heads + h) * kv->context + first;

        for (i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            if (parts[i].cache == NULL) {
                continue;
            }

            move(m, (uint8_t *) parts[i].cache + at * parts[i].bytes, room, n * parts[i].bytes);
            room += n * parts[i].bytes;
        }
    }
}


int
vlm_kv_copy(vlm_model_t *m, uint32_t from, uint32_t to, uint32_t first, uint32_t end, void *room)
{
    uint32_t  layer, row, n;

    for (layer = 0; layer < m->kv.layers; layer++) {
        for (row = first; row < end; row += n) {
            n = end - row < VLM_SLICE ? end - row : VLM_SLICE;

            move_rows(m, layer, from, row, n, room, out);

            if (m->ops->basic->sync(m->device, NULL) != 0) {
                return -1;
            }

            move_rows(m, layer, to, row, n, room, in);

            if (m->ops->basic->sync(m->device, NULL) != 0) {
                return -1;             /* the room is needed again */
            }
        }
    }

    return 0;
}
