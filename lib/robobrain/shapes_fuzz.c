/*
 * Fuzz target: any answer of any task.  The shapes are at most as many as there is room for, of the
 * task's kinds, with numbers within their limit and labels that are whole UTF-8.  In any view they
 * stay finite and become JSON.
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "robobrain/shapes_json.h"
#include "robobrain/shapes_read.h"

#define MAX_TEXT  65536

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


/* Ends within its 64 bytes, and no byte of it is out of place. */
static void
check_label(const char *label)
{
    int     n;
    size_t  i;

    check(memchr(label, '\0', 64) != NULL);

    for (i = 0; label[i] != '\0'; ) {
        uint8_t  lead = (uint8_t) label[i++];

        check(lead >= ' ' && lead != 0x7f && (lead < 0x80 || lead >= 0xc2) && lead < 0xf5);

        for (n = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3; n > 0; n--) {
            check(((uint8_t) label[i++] & 0xc0) == 0x80);
        }
    }
}


static void
check_shape(const vlm_shape_t *s, vlm_task_t task)
{
    switch (task) {

    case VLM_TRAJECTORY:
        check(s->kind == VLM_SHAPE_PATH);
        break;

    case VLM_POINTING:
        check(s->kind == VLM_SHAPE_POINT);
        break;

    default:
        check(s->kind == VLM_SHAPE_BOX || s->kind == VLM_SHAPE_POINT);
    }

    check(fabs(s->x) <= VLM_MAX_COORDINATE && fabs(s->y) <= VLM_MAX_COORDINATE);
    check(fabs(s->x2) <= VLM_MAX_COORDINATE && fabs(s->y2) <= VLM_MAX_COORDINATE);
    check(isnan(s->depth) || task == VLM_TRAJECTORY);
    check(isnan(s->depth) || fabs(s->depth) <= VLM_MAX_COORDINATE);
    check_label(s->label);
}


/* A model that writes pixels of a resized picture, or one that writes shares of its sides. */
static void
check_view(size_t v, vlm_task_t task, const char *text, size_t bytes, vlm_shape_t *s, size_t n)
{
    size_t                   i;
    vlm_json_out_t           w;
    static const vlm_view_t  views[] = {
        { 32768, 1, 28, 56, 0 }, { 1, 32768, 28, 56, 1000 }, { 7, 5, 0, 0, 0 }
    };

    vlm_json_init(&w, SIZE_MAX);
    vlm_json_open(&w, '{');

    vlm_shapes_add_marks(&w, &views[v], task, text, bytes);
    vlm_shapes_add_coordinates(&w, &views[v], task, text, bytes);
    vlm_json_shut(&w, '}');
    check(vlm_json_done(&w) == 0);
    vlm_json_release(&w);

    vlm_shapes_place(&views[v], s, n);

    for (i = 0; i < n; i++) {
        check(isfinite(s[i].x) && isfinite(s[i].y) && isfinite(s[i].x2) && isfinite(s[i].y2));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int          task;
    size_t       i, n, max;
    vlm_shape_t  s[VLM_MAX_SHAPES];

    if (bytes == 0 || bytes > MAX_TEXT) {
        return 0;
    }

    max = data[0] % 2 != 0 ? VLM_MAX_SHAPES : data[0] / 2;

    for (task = 0; task < VLM_TASKS; task++) {
        n = vlm_shapes((vlm_task_t) task, (const char *) data + 1, bytes - 1, s, max);

        check(n <= max);
        check(n == 0 || task != VLM_GENERAL);

        for (i = 0; i < n; i++) {
            check_shape(&s[i], (vlm_task_t) task);
            check(s[i].kind == s[0].kind);
        }

        check_view(bytes % 3, (vlm_task_t) task, (const char *) data + 1, bytes - 1, s, n);
    }

    return 0;
}
