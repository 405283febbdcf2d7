/* Frames of a video over tiny models: what is refused, encoded once, and read once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "run/fixture.h"


static vlm_t  *v;


static void
open_model(const char *model)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.model = model;
    conf.slots = 1;
    conf.features = 4;
    v = vlm_tiny_open(&conf);
}


static vlm_prompt_t *
question(const char *digits, double fps, const char *words)
{
    vlm_err_t      err = { VLM_OK, "" };
    vlm_part_t     parts[2] = { { .picture = vlm_tiny_video(v, digits, fps, NULL, NULL, &err) },
                                { .text = words, .bytes = strlen(words) } };
    vlm_prompt_t  *p;
    vlm_message_t  m = { VLM_USER, parts, 2 };

    p = parts[0].picture == NULL ? NULL : vlm_prompt_make(v, &m, 1, NULL, &err);
    if (p == NULL) {
        fail_msg("%s", err.text);
    }

    return p;
}


static void
ask(const char *digits, double fps, const char *words, vlm_answer_t *a)
{
    vlm_sampling_t  s = vlm_tiny_sampling(7);

    s.temperature = 0;
    vlm_tiny_alone(v, question(digits, fps, words), &s, a);
}


static void
frames_of_different_sizes_and_numbers_out_of_bounds_are_refused(void **state)
{
    vlm_err_t  err = { VLM_OK, "" };

    (void) state;
    open_model(CHECKPOINT);

    assert_null(vlm_tiny_video(v, "120", 2, NULL, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "frame 3 has 200x150 pixels, the first one 70x50: the frames of "
                                  "a video have one size");

    memset(&err, 0, sizeof(err));
    assert_null(vlm_tiny_video(v, "", 2, NULL, NULL, &err));
    assert_string_equal(err.text, "a video of 0 frames, it may have 1 to 512");

    memset(&err, 0, sizeof(err));
    assert_null(vlm_tiny_video(v, "1", 0.001, NULL, NULL, &err));
    assert_string_equal(err.text, "a video of 0.001 frames a second, it may have 0.01 to 1000");

    memset(&err, 0, sizeof(err));
    assert_null(vlm_tiny_video(v, "1", (double) NAN, NULL, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);

    vlm_close(v);
}


static void
frames_have_the_pixels_that_the_request_allows(void **state)
{
    vlm_err_t           err = { VLM_OK, "" };
    vlm_picture_t      *p;
    vlm_pixels_t        pixels = { 20000, 30000 };
    vlm_picture_info_t  info, measured = { .width = 70, .height = 50 };

    (void) state;
    open_model(CHECKPOINT);

    p = vlm_tiny_video(v, "12345", 2, NULL, NULL, &err);
    vlm_picture_info(p, &info);
    assert_int_equal(info.pictures, 3);
    assert_int_equal(info.tokens, 3 * 4);          /* 56 x 56, by cells of 28 */
    vlm_picture_free(p);

    p = vlm_tiny_video(v, "123", 2, &pixels, NULL, &err);
    vlm_picture_info(p, &info);
    assert_true(info.resized_width * info.resized_height >= 20000);
    assert_true(info.resized_width * info.resized_height <= 30000);
    assert_int_equal(vlm_video_measure(v, 3, 2, &pixels, &measured, &err), 0);
    assert_int_equal(measured.tokens, info.tokens);
    assert_int_equal(measured.pictures, 2);
    assert_int_equal(measured.resized_width, info.resized_width);
    vlm_picture_free(p);

    pixels.max = 500;
    assert_null(vlm_tiny_video(v, "1", 2, &pixels, NULL, &err));
    assert_int_equal(err.code, VLM_ELIMIT);

    vlm_close(v);
}


static void
a_pair_has_a_slice_of_each_frame_and_the_last_frame_is_repeated(void **state)
{
    size_t          i, area;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_picture_t  *p, *one, *other;

    (void) state;
    open_model(CHECKPOINT);

    p = vlm_tiny_video(v, "123", 2, NULL, NULL, &err);
    one = vlm_tiny_video(v, "1", 2, NULL, NULL, &err);
    other = vlm_tiny_video(v, "2", 2, NULL, NULL, &err);
    area = 3 * 14 * 14;

    assert_int_equal(p->slices, 2);
    assert_int_equal(p->next->slices, 1);          /* frame 3 alone: as a still picture */
    assert_int_equal(p->next->first, 2);
    assert_int_equal(p->next->last, 2);
    assert_null(p->next->next);

    for (i = 0; i < p->n_patches; i++) {
        assert_memory_equal(p->pixels + 2 * i * area, one->pixels + i * area, area);
        assert_memory_equal(p->pixels + (2 * i + 1) * area, other->pixels + i * area, area);
    }

    vlm_picture_free(p);
    vlm_picture_free(one);
    vlm_picture_free(other);
    vlm_close(v);
}


static int
stop_at_the_fourth_question(void *data)
{
    return ++*(int *) data >= 4;
}


static void
a_client_that_leaves_ends_the_reading_between_frames(void **state)
{
    int         n = 0;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_stop_t  stop = { stop_at_the_fourth_question, &n };

    (void) state;
    open_model(CHECKPOINT);
    assert_null(vlm_tiny_video(v, "12345", 2, NULL, &stop, &err));
    assert_int_equal(err.code, VLM_ECANCELLED);
    assert_int_equal(n, 4);
    vlm_close(v);
}


static void
pairs_are_encoded_once_and_rows_are_read_once(void **state)
{
    vlm_answer_t  a, b;

    (void) state;
    open_model(CHECKPOINT);

    ask("12345", 1, "Where?", &a);
    assert_int_equal(a.usage.pictures, 3);
    assert_int_equal(a.usage.cached_pictures, 0);

    ask("12345", 1, "Where?", &b);                 /* all but the last row */
    assert_int_equal(b.usage.cached_tokens, b.usage.prompt_tokens - 1);
    assert_string_equal(a.text, b.text);

    ask("34125", 1, "Where?", &b);                 /* the pairs in another order */
    assert_int_equal(b.usage.cached_pictures, 3);
    assert_string_not_equal(a.text, b.text);

    ask("2134", 1, "Where?", &b);                  /* a pair the other way round */
    assert_int_equal(b.usage.cached_pictures, 1);

    vlm_close(v);
}


/* The ids and pictures of both prompts are the same: only positions differ, from pair 2 on. */
static void
the_rows_of_frames_at_another_time_are_not_used(void **state)
{
    uint32_t       at;
    vlm_answer_t   alone, after;
    vlm_prompt_t  *p;

    (void) state;

    open_model(CHECKPOINT);
    ask("12345", 0.5, "Where?", &alone);
    vlm_close(v);

    open_model(CHECKPOINT);
    p = question("12345", 1, "");
    at = p->picture_at[1];
    vlm_prompt_free(p);

    ask("12345", 1, "Where?", &after);
    ask("12345", 0.5, "Where?", &after);
    assert_int_equal(after.usage.cached_tokens, at);
    assert_int_equal(after.usage.cached_pictures, 3);          /* features have no time */
    assert_string_equal(after.text, alone.text);
    vlm_close(v);
}


static void
a_model_without_the_token_for_frames_takes_no_video(void **state)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_part_t      part = { .text = NULL };
    vlm_message_t   m = { VLM_USER, &part, 1 };

    (void) state;
    open_model(DEEP);
    v->template.frame_cell = VLM_NONE;
    part.picture = vlm_tiny_video(v, "123", 2, NULL, NULL, &err);
    assert_null(vlm_prompt_make(v, &m, 1, NULL, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "the tokenizer of this model has no token <|video_pad|>: it "
                                  "takes no video");
    assert_non_null(part.picture->next);           /* still the caller's, whole */
    vlm_picture_free(part.picture);
    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(frames_of_different_sizes_and_numbers_out_of_bounds_are_refused),
        cmocka_unit_test(frames_have_the_pixels_that_the_request_allows),
        cmocka_unit_test(a_pair_has_a_slice_of_each_frame_and_the_last_frame_is_repeated),
        cmocka_unit_test(a_client_that_leaves_ends_the_reading_between_frames),
        cmocka_unit_test(pairs_are_encoded_once_and_rows_are_read_once),
        cmocka_unit_test(the_rows_of_frames_at_another_time_are_not_used),
        cmocka_unit_test(a_model_without_the_token_for_frames_takes_no_video)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
