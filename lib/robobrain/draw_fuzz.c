/*
 * Fuzz target: any shapes on a canvas of any small size.  The first bytes are its size, the others
 * shapes as they lie in memory, so that every float occurs.
 */

#include <stdlib.h>
#include <string.h>

#include "robobrain/draw.h"

#define SIDE   160                     /* pixels at most */
#define BYTES  (1 + 4 * sizeof(float) + 12)        /* of the input for one shape */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
read_shape(vlm_shape_t *s, const uint8_t *p)
{
    float  v[4];

    memcpy(v, p + 1, sizeof(v));
    memset(s, 0, sizeof(*s));

    s->kind = (vlm_shape_kind_t) (p[0] % 3);
    s->x = v[0];
    s->y = v[1];
    s->x2 = v[2];
    s->y2 = v[3];

    /* A label of up to 12 bytes, or one that fills its room. */

    memcpy(s->label, p + 1 + sizeof(v), 12);

    if (p[0] & 0x80) {
        memset(s->label + 12, p[0], sizeof(s->label) - 13);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t         n;
    vlm_canvas_t   c;
    vlm_shape_t    s[8];

    if (bytes < 3) {
        return 0;
    }

    c.width = 1 + (data[0] | data[1] << 8) % SIDE;
    c.height = 1 + (data[1] >> 4 | data[2] << 4) % SIDE;

    for (n = 0; n < 8 && bytes - 3 >= (n + 1) * BYTES; n++) {
        read_shape(&s[n], data + 3 + n * BYTES);
    }

    c.rgb = calloc((size_t) c.width * c.height, 3);

    if (c.rgb != NULL) {
        vlm_draw_shapes(&c, s, n);
    }

    free(c.rgb);

    return 0;
}
