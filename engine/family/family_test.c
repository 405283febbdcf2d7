/* Families: found by model_type, whole in their lists, and which of their models think. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "family/family.h"
#include "model/model.h"


static void
a_family_is_found_by_its_model_type_and_no_other(void **state)
{
    char                 known[160];
    const vlm_family_t  *f;

    (void) state;

    f = vlm_family_find("qwen2_5_vl");
    assert_non_null(f);
    assert_string_equal(f->model_type, "qwen2_5_vl");
    assert_string_equal(f->title, "Qwen2.5-VL");

    f = vlm_family_find("qwen3_vl");
    assert_non_null(f);
    assert_string_equal(f->title, "Qwen3-VL");

    f = vlm_family_find("bloom");
    assert_non_null(f);
    assert_string_equal(f->title, "BLOOM");
    assert_null(f->words.turn);

    assert_null(vlm_family_find("qwen2_vl"));
    assert_null(vlm_family_find("qwen2_5_vl_text"));
    assert_null(vlm_family_find("qwen3_vl_moe"));
    assert_null(vlm_family_find(""));

    vlm_family_list(known, sizeof(known));
    assert_string_equal(known, "\"qwen2_5_vl\", \"qwen3_vl\", \"qwen2\", \"qwen3\", \"llama\", "
                               "\"bloom\"");

    vlm_family_list(known, 5);         /* is cut */
    assert_int_equal(strlen(known), 4);
}


/* A list of weights: each has a place of its own within a structure, a name and its sizes. */
static void
check_list(const vlm_weight_t *list, size_t bytes)
{
    int                  norm;
    uint32_t             i;
    const vlm_weight_t  *w, *v;

    for (w = list; w != NULL && w->kind != VLM_WEIGHT_END; w++) {
        norm = w->kind == VLM_WEIGHT_RMS || w->kind == VLM_WEIGHT_LAYER;

        assert_true(w->at + (norm ? sizeof(vlm_norm_t) : sizeof(vlm_linear_t)) <= bytes);
        assert_non_null(w->name[0]);
        assert_true(norm == (w->rows[0] == VLM_DIM_NONE));
        assert_true((w->kind == VLM_WEIGHT_PATCH) == (w->columns == VLM_DIM_NONE));
        assert_true(w->order == VLM_IN_TURN ? w->rows[0] == w->rows[1]
                    : w->order == VLM_STACKED || w->rows[1] == VLM_DIM_NONE);
        assert_true(w->epilogue != VLM_SILU_MUL || w->order == VLM_IN_TURN);

        for (i = 1; i < VLM_PARTS; i++) {
            assert_true(w->rows[i] == VLM_DIM_NONE || w->name[i] != NULL);
        }

        for (v = list; v < w; v++) {
            assert_true(v->at != w->at);
        }
    }
}


static uint32_t
count(const vlm_weight_t *list, vlm_weight_kind_t kind)
{
    uint32_t  n;

    for (n = 0; list != NULL && list->kind != VLM_WEIGHT_END; list++) {
        n += list->kind == kind;
    }

    return n;
}


typedef struct {                       /* weights of a layer, by kind */
    uint32_t  rms, layer;
} counts_t;


static void
check_stack(const vlm_stack_t *stack, const counts_t *want)
{
    check_list(stack->before, sizeof(vlm_model_t));
    check_list(stack->layer, sizeof(vlm_layer_t));
    check_list(stack->after, sizeof(vlm_model_t));

    assert_int_equal(count(stack->layer, VLM_WEIGHT_MATRIX), 4);
    assert_int_equal(count(stack->layer, VLM_WEIGHT_RMS), want->rms);
    assert_int_equal(count(stack->layer, VLM_WEIGHT_LAYER), want->layer);
}


static void
the_lists_of_a_family_name_each_weight_of_a_model_once(void **state)
{
    size_t               i;
    const vlm_family_t  *f;

    static const struct {
        const char  *name;
        counts_t     text, encoder;
        uint32_t     places, deep;
    } families[] = {
        { "qwen2_5_vl", { 2, 0 }, { 2, 0 }, 0, 0 },
        { "qwen3_vl", { 4, 0 }, { 0, 2 }, 1, 2 },
        { "bloom", { 0, 2 }, { 0, 0 }, 0, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        f = vlm_family_find(families[i].name);

        check_stack(&f->text, &families[i].text);
        assert_int_equal(count(f->text.before, VLM_WEIGHT_HEAD), 1);

        if (f->encoder.layer == NULL) {
            assert_int_equal(families[i].encoder.rms + families[i].encoder.layer, 0);
            continue;
        }

        check_stack(&f->encoder, &families[i].encoder);
        check_list(f->deep.layer, sizeof(vlm_merger_t));

        assert_int_equal(count(f->encoder.before, VLM_WEIGHT_PATCH), 1);
        assert_int_equal(count(f->encoder.before, VLM_WEIGHT_PLACES), families[i].places);
        assert_int_equal(count(f->deep.layer, VLM_WEIGHT_MATRIX), families[i].deep);
    }
}


static void
robobrain_2_0_thinks_except_its_3b(void **state)
{
    size_t               i;
    const vlm_family_t  *f;

    static const struct {
        const char  *name;
        int          thinks;
    } names[] = {
        { "/models/RoboBrain2.0-7B", 1 },
        { "/models/RoboBrain2.0-32B", 1 },
        { "/models/RoboBrain2.0-3B", 0 },
        { "robobrain2.0-3b/", 0 },
        { "/models/RoboBrain2.0-13b", 1 },
        { "/hub/models--BAAI--RoboBrain2.0-7B/snapshots/0a3bc4", 1 },
        { "/hub/models--BAAI--RoboBrain2.0-3B/snapshots/0a7c", 0 },
        { "/3b/RoboBrain2.0-7B", 1 },
        { "robobrain", 1 },
        { "/models/RoboBrain2.0-7B//", 1 },
        { "/models/RoboBrain2.0-7B-Q8_0.gguf", 1 },
        { "/hub/models--BAAI--RoboBrain2.0-7B/snapshots/0a3bc4/", 1 },
        { "/srv/robobrain/Qwen2.5-VL-7B-Instruct", 0 },
        { "/srv/robobrain/Qwen2.5-VL-7B-Instruct/", 0 },
        { "/srv/robobrain/hub/models--Qwen--Qwen2.5-VL-7B-Instruct/snapshots/0a3bc4", 0 },
        { "models--robobrain--Qwen2.5-VL-7B-Instruct/snapshots/0a3bc4", 0 },
        { "/srv/RoboBrain-3B/snapshots/RoboBrain2.0-7B", 1 },
        { "/", 0 },
        { "RoboBrain-2.3B", 1 },
        { "Qwen2.5-VL-7B-Instruct", 0 },
        { "", 0 }
    };

    (void) state;

    f = vlm_family_find("qwen2_5_vl");

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (vlm_family_thinks(f, names[i].name) != names[i].thinks) {
            fail_msg("%s: %d", names[i].name, !names[i].thinks);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_family_is_found_by_its_model_type_and_no_other),
        cmocka_unit_test(the_lists_of_a_family_name_each_weight_of_a_model_once),
        cmocka_unit_test(robobrain_2_0_thinks_except_its_3b)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
