/* Tests of the work that programs time: it reads all that it says, and leaves the engine usable. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/measure.h"

#define RANGE  8192                    /* bytes */

static const char  text[] = "How many balls are there?  What stands beside the red cup?";


static int
open_demo(void **state)
{
    vlm_t       *v;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;

    vlm_conf_default(&conf);
    conf.model = "demo/model";
    conf.device = "cpu";
    conf.threads = 2;

    v = vlm_open(&conf, &err);
    if (v == NULL || vlm_load(v, &err) != 0) {
        print_error("%s\n", err.text);
        return -1;
    }

    (void) vlm_measure_wait(v, 600);
    *state = v;

    return 0;
}


static int
close_demo(void **state)
{
    vlm_close(*state);

    return 0;
}


static void
test_a_range_is_read_to_its_last_byte(void **state)
{
    size_t     i;
    uint8_t   *p;
    uint64_t   sum;

    (void) state;

    p = aligned_alloc(64, RANGE);
    assert_non_null(p);

    for (i = 0; i < RANGE; i++) {
        p[i] = (uint8_t) (i * 7 + i / 256);
    }

    sum = vlm_measure_range(p, RANGE);

    for (i = 0; i < RANGE; i++) {
        p[i] ^= 0x55;
        assert_int_not_equal(vlm_measure_range(p, RANGE), sum);
        p[i] ^= 0x55;
    }

    assert_int_equal(vlm_measure_range(p, RANGE), sum);
    free(p);
}


static void
test_weights_are_those_of_the_shape(void **state)
{
    double                    values;
    vlm_t                    *v = *state;
    const vlm_text_config_t  *c = &v->config.text;
    vlm_measure_weights_t     w;

    vlm_measure_weights(v, &w);

    values = c->layers * (double) c->hidden
             * ((c->heads + 2.0 * c->kv_heads) * c->head_dim + (double) c->heads * c->head_dim
                + 3.0 * c->mlp);
    assert_true(w.values == values);
    assert_true(w.bytes >= values + (double) c->vocab * c->hidden);
    assert_true(vlm_measure_kv_bytes(v, 10)
                == 10.0 * 2 * (2 * c->head_dim + 4) * c->layers * c->kv_heads);
}


/* Ends of matrices that are no whole pieces are left out. */
static void
test_nearly_all_weights_are_read(void **state)
{
    double                  bytes;
    vlm_t                  *v = *state;
    vlm_threads_t          *threads;
    vlm_measure_weights_t   w;

    threads = vlm_threads_open(2, NULL);
    assert_non_null(threads);

    vlm_measure_weights(v, &w);
    bytes = (double) vlm_measure_read(v, threads);
    assert_true(bytes > 0.9 * w.bytes && bytes < 1.1 * w.bytes);
    vlm_threads_close(threads);
}


static void
test_pictures_differ_by_their_seed(void **state)
{
    size_t               bytes;
    uint8_t             *a, *b;
    vlm_t               *v = *state;
    vlm_picture_t       *p;
    vlm_picture_info_t   info;

    a = vlm_measure_picture(100, 60, 1, &bytes);
    b = vlm_measure_picture(100, 60, 2, &bytes);
    assert_memory_not_equal(a, b, bytes);

    p = vlm_picture_read(v, a, bytes, NULL);
    assert_non_null(p);
    vlm_picture_info(p, &info);
    assert_int_equal(info.width, 100);
    assert_int_equal(info.height, 60);
    vlm_picture_free(p);
    free(a);
    free(b);
}


static void
test_a_question_is_answered_between_passes(void **state)
{
    size_t               bytes;
    uint8_t             *file;
    vlm_t               *v = *state;
    vlm_err_t            err = { VLM_OK, "" };
    vlm_stat_t           before, after;
    vlm_prompt_t        *p;
    vlm_picture_t       *picture;
    vlm_picture_info_t   info;

    vlm_measure_pass(v, 2, 100, 1, 1);
    vlm_measure_prompt(v, 300);
    vlm_stat(v, &before);

    file = vlm_measure_picture(56, 56, 3, &bytes);
    picture = vlm_picture_read(v, file, bytes, &err);
    free(file);
    vlm_picture_info(picture, &info);          /* its cells; two marks are around them */
    p = vlm_measure_question(v, picture, text, 5, &err);
    assert_non_null(p);
    assert_int_equal(vlm_prompt_tokens(p), info.tokens + 2 + 5);
    assert_int_equal(vlm_measure_first(v, p, &err), 0);

    p = vlm_measure_question(v, NULL, text, 5, &err);
    assert_int_equal(vlm_prompt_tokens(p), 5);
    assert_int_equal(vlm_measure_first(v, p, &err), 0);

    vlm_measure_pass(v, 1, 20, 1, 1);
    vlm_stat(v, &after);
    assert_int_equal(after.completion_tokens - before.completion_tokens, 2);
    assert_int_equal(after.pictures - before.pictures, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_a_range_is_read_to_its_last_byte),
        cmocka_unit_test(test_weights_are_those_of_the_shape),
        cmocka_unit_test(test_nearly_all_weights_are_read),
        cmocka_unit_test(test_pictures_differ_by_their_seed),
        cmocka_unit_test(test_a_question_is_answered_between_passes),
    };

    return cmocka_run_group_tests_name("measure", tests, open_demo, close_demo);
}
