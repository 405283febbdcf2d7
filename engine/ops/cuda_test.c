/* The engine's side of a CUDA device, without a device or a library: names, refusals, plans. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "ops/cuda.h"

#define SHAPE_3B  "build/fidelity/shape-3b"
#define DEEP      "build/fidelity/deep"


static void
a_device_is_cuda_and_perhaps_a_number(void **state)
{
    uint32_t            i, index;
    static const char  *bad[] = {
        "", "cud", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:1024",
        "cuda:99999999999999999999", "CUDA"
    };

    (void) state;

    assert_int_equal(vlm_cuda_index("cuda", &index), 0);
    assert_int_equal(index, 0);
    assert_int_equal(vlm_cuda_index("cuda:7", &index), 0);
    assert_int_equal(index, 7);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(vlm_cuda_index(bad[i], &index), -1);
    }
}


static void
an_unsupported_shape_is_refused_with_its_numbers(void **state)
{
    vlm_err_t  err = { VLM_OK, "" };

    (void) state;

    assert_int_equal(vlm_cuda_takes(VLM_INT8, 128, 80, &err), 0);
    assert_int_equal(vlm_cuda_takes(VLM_BF16, 12, 128, &err), 0);
    assert_int_equal(vlm_cuda_takes(VLM_INT4, 128, 80, &err), 0);

    assert_int_equal(vlm_cuda_takes(VLM_F32, 128, 80, &err), -1);
    assert_int_equal(err.code, VLM_EDEVICE);
    assert_non_null(strstr(err.text, "weights f32"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_cuda_takes(VLM_INT8, 130, 80, &err), -1);
    assert_non_null(strstr(err.text, "130"));
    assert_non_null(strstr(err.text, "128"));
}


static void
a_library_that_is_not_there_is_named_with_its_place(void **state)
{
    vlm_err_t            err = { VLM_OK, "" };
    const vlm_ops_t     *table;
    vlm_cuda_request_t   r = { 0, 3, VLM_INT8, 0, 0 };

    (void) state;

    assert_int_equal(vlm_cuda_is_there(), 0);
    assert_null(vlm_cuda_load(&r, &table, &err));
    assert_int_equal(err.code, VLM_EDEVICE);
    assert_non_null(strstr(err.text, "device cuda:3: there is no /"));
    assert_non_null(strstr(err.text, "/libvlm_cuda.so"));
}


/* The project's own bound, without the driver's memory. */
static void
a_3b_model_at_4k_with_its_vision_encoder_is_planned_below_4100_million_bytes(void **state)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    vlm_conf_default(&conf);
    conf.model = SHAPE_3B;
    conf.device = "cuda";
    conf.slots = 1;

    if (vlm_plan(&conf, &plan, &err) != 0) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(plan.device, VLM_CUDA_OVERHEAD);
    assert_int_equal(plan.total, plan.weights + plan.vision + plan.kv + plan.workspace
                     + plan.device);
    assert_true(plan.total - plan.device <= UINT64_C(4100000000));
}


/* Qwen3-VL: a cell's features have a part more for each of three layers, 80 values of bf16. */
static void
a_model_whose_layers_add_features_is_planned_with_each_part_of_them(void **state)
{
    uint32_t    i;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan[2];

    (void) state;

    vlm_conf_default(&conf);
    conf.model = DEEP;
    conf.device = "cuda";
    conf.context = 1024;
    conf.max_pixels = 1 << 16;

    for (i = 0; i < 2; i++) {
        conf.features = 4 + 8 * i;

        if (vlm_plan(&conf, &plan[i], &err) != 0) {
            fail_msg("%s", err.text);
        }
    }

    assert_int_equal(plan[1].vision - plan[0].vision, 8 * (1 << 16) / 1024 * (1 + 3) * 80 * 2);
}


static void
a_plan_that_does_not_fit_says_what_the_device_takes_for_itself(void **state)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    vlm_conf_default(&conf);
    conf.model = SHAPE_3B;
    conf.device = "cuda:1";
    conf.memory = UINT64_C(4500) << 20;

    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_non_null(strstr(err.text, "device 400m), memory is 4500m: "));

    conf.memory = 0;
    conf.kv_int8 = 1;
    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_non_null(strstr(err.text, "kv int8 needs the cpu"));

    conf.kv_int8 = 0;
    conf.weights = VLM_F32;
    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_int_equal(err.code, VLM_EDEVICE);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_device_is_cuda_and_perhaps_a_number),
        cmocka_unit_test(an_unsupported_shape_is_refused_with_its_numbers),
        cmocka_unit_test(a_library_that_is_not_there_is_named_with_its_place),
        cmocka_unit_test(a_3b_model_at_4k_with_its_vision_encoder_is_planned_below_4100_million_bytes),
        cmocka_unit_test(a_model_whose_layers_add_features_is_planned_with_each_part_of_them),
        cmocka_unit_test(a_plan_that_does_not_fit_says_what_the_device_takes_for_itself)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
