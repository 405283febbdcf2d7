/*
 * The quantised cache of a whole model: in whatever order it was written and wherever its matrices
 * then lie, a device gets the same bytes as without one.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/matrix.h"
#include "format/panel.h"
#include "vlm.h"

#define CHECKPOINT  "build/fidelity/tiny-a"
#define MAX         256                /* matrices */

vlm_device_t *vlm_cpu_open(const char *name, uint32_t threads, const vlm_ops_t **table,
                           vlm_err_t *err);

typedef struct {                       /* a model and its parts */
    const vlm_ops_t   *ops;
    vlm_device_t      *device;
    vlm_checkpoint_t  *c;
    vlm_config_t       config;
    vlm_model_t        m;
    vlm_arena_t        text, vision;
    vlm_linear_t      *w[MAX];
    uint32_t           n;
} loaded_t;

static const char      *sets[] = { "plain", "avx2", "avx512", "neon" };
static const uint32_t   flips[] = { 0, VLM_FLIP };
static char             dir[] = "/tmp/vlm-matrix-XXXXXX";
static const uint8_t    id[VLM_PACKED_ID] = { 7 };


static int
set_up(void **state)
{
    (void) state;

    return mkdtemp(dir) == NULL ? -1 : 0;
}


static int
tear_down(void **state)
{
    char  command[128];

    (void) state;
    snprintf(command, sizeof(command), "rm -r %s", dir);

    return system(command);
}


static void
add_layers(loaded_t *l, vlm_layer_t *layer, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        l->w[l->n++] = &layer[i].qkv;
        l->w[l->n++] = &layer[i].o;
        l->w[l->n++] = &layer[i].up;
        l->w[l->n++] = &layer[i].down;
    }
}


/* 0: this processor does not run that set. */
static int
open_model(loaded_t *l, const char *set, vlm_type_t type)
{
    vlm_err_t  err = { VLM_OK, "" };

    memset(l, 0, sizeof(*l));
    l->device = vlm_cpu_open(set, 2, &l->ops, &err);

    if (l->device == NULL) {
        return 0;
    }

    assert_int_equal(vlm_config_read(&l->config, CHECKPOINT, &err), 0);
    l->c = vlm_checkpoint_open(CHECKPOINT, l->config.family->aliases, &err);
    assert_non_null(l->c);
    assert_int_equal(vlm_model_init(&l->m, &l->config, l->ops, l->device, type, &err), 0);

    l->w[l->n++] = &l->m.embed;
    add_layers(l, l->m.layer, l->config.text.layers);
    add_layers(l, l->m.block, l->config.vision.depth);
    l->w[l->n++] = &l->m.merger.first;
    l->w[l->n++] = &l->m.merger.second;
    l->w[l->n++] = &l->m.head;
    assert_true(l->n <= MAX);

    return 1;
}


static void
close_model(loaded_t *l)
{
    vlm_model_free(&l->m);
    vlm_checkpoint_close(l->c);
    l->ops->basic->close(l->device);
}


static int
bind(loaded_t *l, vlm_packed_t *packed, vlm_err_t *err)
{
    vlm_progress_t  progress = { NULL, NULL, 2, packed };

    memset(&l->text, 0, sizeof(l->text));
    memset(&l->vision, 0, sizeof(l->vision));
    assert_int_equal(vlm_model_bind(&l->m, l->c, &l->text, &l->vision, &progress, err), 0);

    l->text.size = l->text.used;
    l->vision.size = l->vision.used;
    l->text.base = l->ops->basic->reserve(l->device, l->text.size, err);
    l->vision.base = l->ops->basic->reserve(l->device, l->vision.size, err);
    l->text.used = l->vision.used = 0;

    return vlm_model_bind(&l->m, l->c, &l->text, &l->vision, &progress, err);
}


static void
keep(uint32_t flip, vlm_type_t type)
{
    loaded_t        l;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_packed_t    made;
    vlm_progress_t  progress = { NULL, NULL, 2, &made };

    assert_true(open_model(&l, "plain", type));
    assert_int_equal(vlm_packed_create(&made, dir, CHECKPOINT, type, id, flip,
                                       vlm_model_matrices(&l.config), 1 << 24, &err), 0);
    assert_int_equal(vlm_model_keep(&l.m, l.c, &progress, &err), 0);
    assert_int_equal(vlm_packed_finish(&made, &err), 0);
    close_model(&l);
}


static uint64_t
bytes_of(const loaded_t *l, const vlm_linear_t *w)
{
    return l->ops->basic->packed_bytes(l->device, w->type, w->N, w->K);
}


static int
lies_in(const vlm_packed_t *p, const void *at)
{
    return (const uint8_t *) at >= p->file.data
           && (const uint8_t *) at < p->file.data + p->file.bytes;
}


static void
check(const loaded_t *want, const loaded_t *got, const vlm_packed_t *p)
{
    uint32_t             i;
    uint64_t             all;
    const vlm_linear_t  *a, *b;

    for (all = 0, i = 0; i < want->n; i++) {
        a = want->w[i];
        b = got->w[i];

        assert_int_equal(lies_in(p, b->w), p->stays);
        assert_int_equal(lies_in(p, b->scale), p->stays);
        assert_memory_equal(a->w, b->w, bytes_of(want, a));
        assert_memory_equal(a->scale, b->scale, a->N * sizeof(float));

        if (i == 0 || a->w != want->m.embed.w) {
            all += vlm_round(bytes_of(want, a), VLM_ALIGN)
                   + vlm_round(a->N * sizeof(float), VLM_ALIGN);
        }
    }

    /* a matrix used in the mapping reserves no memory */

    assert_int_equal(want->text.size + want->vision.size - got->text.size - got->vision.size,
                     p->stays ? all : 0);
}


static void
compare_forms_of(vlm_type_t type)
{
    int           n;
    size_t        s, f;
    loaded_t      want, got;
    vlm_err_t     err = { VLM_OK, "" };
    vlm_packed_t  p;

    for (n = 0, s = 0; s < sizeof(sets) / sizeof(sets[0]); s++) {
        if (!open_model(&want, sets[s], type)) {
            continue;
        }

        assert_int_equal(bind(&want, NULL, &err), 0);

        for (f = 0; f < sizeof(flips) / sizeof(flips[0]); f++) {
            keep(flips[f], type);

            assert_int_equal(vlm_packed_open(&p, dir, CHECKPOINT, type, id, &err), 0);
            assert_true(open_model(&got, sets[s], type));
            assert_int_equal(bind(&got, &p, &err), 0);
            check(&want, &got, &p);
            close_model(&got);
            vlm_packed_close(&p);

            if (vlm_matrix_order(want.ops, want.device) != flips[f]) {
                continue;
            }

            assert_int_equal(vlm_packed_open(&p, dir, CHECKPOINT, type, id, &err), 0);
            p.stays = 1;
            assert_true(open_model(&got, sets[s], type));
            assert_int_equal(bind(&got, &p, &err), 0);
            check(&want, &got, &p);
            close_model(&got);
            vlm_packed_close(&p);
            n++;
        }

        close_model(&want);
    }

    /* a vector unit has one of the orders */

    if (open_model(&got, "avx2", type) || open_model(&got, "neon", type)) {
        close_model(&got);
        assert_true(n > 0);
    }
}


static void
every_matrix_has_the_bytes_that_it_has_from_the_checkpoint(void **state)
{
    (void) state;
    compare_forms_of(VLM_INT8);
}


static void
every_matrix_of_int4_has_them_too(void **state)
{
    (void) state;
    compare_forms_of(VLM_INT4);
}


static void
a_byte_that_was_changed_is_noticed_where_it_is_mapped(void **state)
{
    int           c;
    FILE         *f;
    loaded_t      got;
    vlm_err_t     err = { VLM_OK, "" };
    vlm_packed_t  p;

    (void) state;

    if (!open_model(&got, "avx2", VLM_INT8) && !open_model(&got, "neon", VLM_INT8)) {
        print_message("# this processor has neither AVX2 nor sdot: panels are not tested\n");
        skip();
    }

    keep(0, VLM_INT8);
    assert_int_equal(vlm_packed_open(&p, dir, CHECKPOINT, VLM_INT8, id, &err), 0);

    f = fopen(p.path, "r+b");
    assert_non_null(f);
    fseek(f, (long) p.entry[3].at + 1, SEEK_SET);
    c = fgetc(f);
    fseek(f, (long) p.entry[3].at + 1, SEEK_SET);
    fputc(c ^ 4, f);
    fclose(f);

    p.stays = 1;
    assert_int_equal(bind(&got, &p, &err), -1);
    assert_non_null(strstr(err.text, "is damaged in matrix 3"));
    assert_int_equal(p.failed, -1);

    close_model(&got);
    vlm_packed_close(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_matrix_has_the_bytes_that_it_has_from_the_checkpoint),
        cmocka_unit_test(every_matrix_of_int4_has_them_too),
        cmocka_unit_test(a_byte_that_was_changed_is_noticed_where_it_is_mapped)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
