/* The times of an answer, with null for what was not measured. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/timings.h"


static void
check(const vlm_timings_t *t, const char *want)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_timings_put(&w, t);
    vlm_json_shut(&w, '}');
    vlm_json_put_raw(&w, "", 1);
    assert_false(w.failed);
    assert_string_equal(w.data, want);
    vlm_json_release(&w);
}


static void
an_answer_has_all_its_times(void **state)
{
    static const vlm_timings_t  t = {
        .prompt_tokens = 300, .cached_tokens = 100, .completion_tokens = 30,
        .images = 2, .cached_images = 1, .encode_ms = 40, .prefill_ms = 60, .decode_ms = 900,
        .first_step_ms = 7, .image_decode_us = 1234, .image_resize_us = 500, .receive_ms = 1,
        .wait_ms = 2, .prepare_ms = 3, .first_ms = 106
    };

    (void) state;

    check(&t, "{\"timings\":{\"cache_n\":100,\"encode_ms\":40.0,\"first_ms\":106.0,"
              "\"first_step_ms\":7,\"image_cache_n\":1,\"image_decode_ms\":1.234,\"image_n\":2,"
              "\"image_resize_ms\":0.5,\"predicted_ms\":900,\"predicted_n\":30,"
              "\"predicted_per_second\":33.333,\"predicted_per_token_ms\":30.0,"
              "\"prefill_ms\":60,\"prepare_ms\":3,\"prompt_ms\":100,\"prompt_n\":200,"
              "\"prompt_per_second\":2000.0,\"prompt_per_token_ms\":0.5,\"receive_ms\":1,"
              "\"wait_ms\":2}}");
}


static void
what_was_not_measured_is_null(void **state)
{
    static const vlm_timings_t  t = { .prompt_tokens = 5, .cached_tokens = 5, .first_ms = -1 };

    (void) state;

    check(&t, "{\"timings\":{\"cache_n\":5,\"encode_ms\":null,\"first_ms\":null,"
              "\"first_step_ms\":0,\"image_cache_n\":0,\"image_decode_ms\":null,\"image_n\":0,"
              "\"image_resize_ms\":null,\"predicted_ms\":0,\"predicted_n\":0,"
              "\"predicted_per_second\":null,\"predicted_per_token_ms\":null,"
              "\"prefill_ms\":0,\"prepare_ms\":0,\"prompt_ms\":0,\"prompt_n\":0,"
              "\"prompt_per_second\":null,\"prompt_per_token_ms\":null,\"receive_ms\":0,"
              "\"wait_ms\":0}}");
}


/* A token in the first millisecond is a token. */
static void
a_time_of_nothing_is_not_null(void **state)
{
    char           *first;
    vlm_timings_t   t = { .prompt_tokens = 5 };
    vlm_json_out_t  w;

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_timings_put(&w, &t);
    vlm_json_put_raw(&w, "", 1);
    first = strstr(w.data, "\"first_ms\":0.0,");
    assert_non_null(first);
    vlm_json_release(&w);
}


static void
without_a_prompt_there_are_none(void **state)
{
    static const vlm_timings_t  t = { .wait_ms = 7 };

    (void) state;

    check(&t, "{\"timings\":null}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_answer_has_all_its_times),
        cmocka_unit_test(what_was_not_measured_is_null),
        cmocka_unit_test(a_time_of_nothing_is_not_null),
        cmocka_unit_test(without_a_prompt_there_are_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
