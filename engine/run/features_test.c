/* Pictures that are encoded once: the cache's entries, and the work saved over a tiny model. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/fixture.h"

#define ENTRIES  4

static vlm_picture_key_t
key_of(uint32_t n)
{
    vlm_picture_key_t  key;

    memset(&key, 0, sizeof(key));
    memcpy(key.sha256, &n, sizeof(n));
    key.grid_h = 4;
    key.grid_w = 6;

    return key;
}


static uint32_t
hold(vlm_features_t *f, uint32_t n, int *hit)
{
    vlm_picture_key_t  key = key_of(n);

    return vlm_features_hold(f, &key, hit);
}


/* Holds a picture, has it encoded if it was not, and releases it; returns whether it was a hit. */
static int
look_at(vlm_features_t *f, uint32_t n)
{
    int       hit;
    uint32_t  i;

    i = hold(f, n, &hit);
    assert_int_equal(f->entry[i].ready, hit);
    f->entry[i].ready = 1;
    vlm_features_release(f, i);

    return hit;
}


static void
open_cache(vlm_features_t *f)
{
    vlm_err_t  err = { VLM_OK, "" };

    assert_int_equal(vlm_features_open(f, ENTRIES, &err), 0);
}


static void
a_picture_differs_by_its_bytes_its_grid_and_its_salt(void **state)
{
    int                hit;
    uint32_t           i, at;
    vlm_features_t     f;
    vlm_picture_key_t  key;

    (void) state;
    open_cache(&f);

    at = hold(&f, 7, &hit);
    assert_int_equal(hit, 0);
    assert_int_equal(hold(&f, 7, &hit), at);
    assert_int_equal(hit, 1);

    for (i = 0; i < 3; i++) {
        key = key_of(7);
        key.sha256[31] = i == 0;
        key.salt[31] = i == 1;
        key.grid_h = i == 2 ? 6 : 4;
        key.grid_w = i == 2 ? 4 : 6;

        assert_int_not_equal(vlm_features_hold(&f, &key, &hit), at);
        assert_int_equal(hit, 0);
    }

    vlm_features_close(&f);
}


static void
an_entry_with_a_holder_is_given_to_no_other_job(void **state)
{
    int             hit;
    uint32_t        i, held;
    vlm_features_t  f;

    (void) state;
    open_cache(&f);
    held = hold(&f, 1000, &hit);
    f.entry[held].ready = 1;

    for (i = 0; i < 50; i++) {
        assert_int_equal(look_at(&f, i), 0);
    }

    assert_int_equal(hold(&f, 1000, &hit), held);
    assert_true(hit);
    vlm_features_close(&f);
}


static void
the_picture_released_first_is_evicted(void **state)
{
    uint32_t        i;
    vlm_features_t  f;

    (void) state;
    open_cache(&f);

    for (i = 0; i < ENTRIES; i++) {
        assert_int_equal(look_at(&f, i), 0);
    }

    assert_int_equal(look_at(&f, 0), 1);           /* now 1 is the oldest */
    assert_int_equal(look_at(&f, 100), 0);
    assert_int_equal(look_at(&f, 0), 1);
    assert_int_equal(look_at(&f, 2), 1);
    assert_int_equal(look_at(&f, 3), 1);
    assert_int_equal(look_at(&f, 1), 0);

    vlm_features_close(&f);
}


static void
features_without_a_holder_before_they_are_made_are_dropped(void **state)
{
    int             hit;
    uint32_t        at;
    vlm_features_t  f;

    (void) state;
    open_cache(&f);

    at = hold(&f, 1, &hit);
    (void) hold(&f, 1, &hit);
    vlm_features_release(&f, at);
    (void) hold(&f, 1, &hit);
    assert_int_equal(hit, 1);          /* one holder is left */

    vlm_features_release(&f, at);
    vlm_features_release(&f, at);
    (void) hold(&f, 1, &hit);
    assert_int_equal(hit, 0);

    vlm_features_close(&f);
}


/* ---- with a model -------------------------------------------------------- */

static vlm_t        *v;
static uint32_t      n_encoded, encoder_was;
static vlm_job_t    *to_cancel;
static const char   *pictures[] = {
    "t/fidelity/pictures/200x150.png", "t/fidelity/pictures/168x168.png",
    "t/fidelity/pictures/113x57-grey.png"
};


/* A spy in place of stop(): counts pictures that begin in the vision encoder. */
static int
watch_encoder(void *data)
{
    uint32_t  encoder;

    (void) data;

    if (v == NULL) {
        return 0;                      /* it still loads */
    }

    encoder = v->sched.encoder;

    if (encoder != VLM_NONE && encoder != encoder_was) {
        n_encoded++;

        if (to_cancel != NULL) {
            vlm_cancel(v, to_cancel);
            to_cancel = NULL;
        }
    }

    encoder_was = encoder;

    return 0;
}


static void
open_engine(uint32_t slots, uint32_t features)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.slots = slots;
    conf.features = features;
    conf.stop = watch_encoder;
    v = NULL;
    v = vlm_tiny_open(&conf);
    n_encoded = 0;
    encoder_was = VLM_NONE;
    to_cancel = NULL;
}


/* A question about a picture, beginning with other words each time. */
static vlm_prompt_t *
ask(const char *path, uint32_t n)
{
    char             words[32];
    vlm_err_t        err = { VLM_OK, "" };
    vlm_file_t       f;
    vlm_part_t       parts[2] = { { .text = words }, { .text = NULL } };
    vlm_prompt_t    *p;
    vlm_message_t    message = { VLM_USER, parts, 2 };

    parts[0].bytes = (size_t) snprintf(words, sizeof(words), "%u: what is in it? ", n);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    parts[1].picture = vlm_picture_read(v, f.data, f.bytes, &err);
    assert_non_null(parts[1].picture);
    vlm_file_close(&f);

    p = vlm_prompt_make(v, &message, 1, NULL, &err);
    assert_non_null(p);

    return p;
}


static void
expect_same(const vlm_answer_t *a, const vlm_answer_t *b)
{
    assert_int_equal(a->n_ends, 1);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->text, b->text, a->bytes);
}


static void
five_requests_with_one_picture_encode_it_once(void **state)
{
    uint32_t        i, cached;
    vlm_answer_t    alone[5], got[5];
    vlm_sampling_t  s = vlm_tiny_sampling(3);

    (void) state;

    for (i = 0; i < 5; i++) {
        open_engine(1, 0);
        vlm_tiny_alone(v, ask(pictures[0], i), &s, &alone[i]);
        assert_int_equal(n_encoded, 1);
        assert_int_equal(alone[i].usage.pictures, 1);
        assert_int_equal(alone[i].usage.cached_pictures, 0);
        vlm_close(v);
    }

    open_engine(4, 0);

    for (i = 0; i < 5; i++) {
        (void) vlm_tiny_submit(v, ask(pictures[0], i), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(n_encoded, 1);

    for (cached = 0, i = 0; i < 5; i++) {
        expect_same(&got[i], &alone[i]);
        cached += got[i].usage.cached_pictures;
    }

    assert_int_equal(cached, 4);
    vlm_close(v);
}


static void
a_request_that_leaves_hands_its_picture_to_those_that_wait_for_it(void **state)
{
    uint32_t        i;
    vlm_answer_t    alone[3], got[3], orphan;
    vlm_sampling_t  s = vlm_tiny_sampling(3);

    (void) state;
    open_engine(1, 0);

    for (i = 0; i < 3; i++) {
        vlm_tiny_alone(v, ask(pictures[0], i), &s, &alone[i]);
    }

    vlm_close(v);
    open_engine(4, 0);

    for (i = 0; i < 3; i++) {
        to_cancel = vlm_tiny_submit(v, ask(pictures[0], i), &s, &got[i]);
    }

    memset(&orphan, 0, sizeof(orphan));
    vlm_tiny_run(v);
    vlm_tiny_drain(v, &orphan);
    assert_int_equal(orphan.n_ends, 1);
    assert_int_equal(orphan.finish, VLM_FINISH_CANCELLED);
    assert_int_equal(n_encoded, 1);
    expect_same(&got[0], &alone[0]);
    expect_same(&got[1], &alone[1]);
    vlm_close(v);
}


static void
as_many_pictures_are_kept_as_was_said_and_no_more(void **state)
{
    uint32_t        i;
    vlm_answer_t    first[3], got;
    vlm_sampling_t  s = vlm_tiny_sampling(5);

    (void) state;
    open_engine(1, 2);

    for (i = 0; i < 3; i++) {
        vlm_tiny_alone(v, ask(pictures[i], i), &s, &first[i]);
    }

    assert_int_equal(n_encoded, 3);

    /* 2 and 1 are there, 0 is not; it takes the place of 2. */

    vlm_tiny_alone(v, ask(pictures[2], 2), &s, &got);
    expect_same(&got, &first[2]);
    vlm_tiny_alone(v, ask(pictures[1], 11), &s, &got);
    assert_int_equal(n_encoded, 3);
    vlm_tiny_alone(v, ask(pictures[0], 0), &s, &got);
    expect_same(&got, &first[0]);
    assert_int_equal(n_encoded, 4);
    vlm_tiny_alone(v, ask(pictures[2], 12), &s, &got);
    assert_int_equal(n_encoded, 5);
    vlm_close(v);
}


static void
a_prompt_with_another_salt_knows_of_no_picture(void **state)
{
    uint32_t         i;
    vlm_answer_t     got[4];
    vlm_prompt_t    *p;
    vlm_sampling_t   s = vlm_tiny_sampling(5);
    const char      *salts[] = { "", "a", "b", "a" };

    (void) state;

    for (i = 0; i < 4; i++) {
        open_engine(2, 8);
        p = ask(pictures[0], 0);
        vlm_prompt_salt(p, "a", 1);
        vlm_tiny_alone(v, p, &s, &got[i]);

        p = ask(pictures[0], i + 1);
        vlm_prompt_salt(p, salts[i], strlen(salts[i]));
        vlm_tiny_alone(v, p, &s, &got[i]);
        assert_int_equal(got[i].usage.cached_pictures, salts[i][0] == 'a');
        assert_int_equal(n_encoded, 2 - (salts[i][0] == 'a'));
        vlm_close(v);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_picture_differs_by_its_bytes_its_grid_and_its_salt),
        cmocka_unit_test(an_entry_with_a_holder_is_given_to_no_other_job),
        cmocka_unit_test(the_picture_released_first_is_evicted),
        cmocka_unit_test(features_without_a_holder_before_they_are_made_are_dropped),
        cmocka_unit_test(five_requests_with_one_picture_encode_it_once),
        cmocka_unit_test(a_request_that_leaves_hands_its_picture_to_those_that_wait_for_it),
        cmocka_unit_test(as_many_pictures_are_kept_as_was_said_and_no_more),
        cmocka_unit_test(a_prompt_with_another_salt_knows_of_no_picture)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
