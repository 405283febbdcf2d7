/* The cache of pictures: hits, evictions, and the owner that frees the arrays. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "image/known.h"

#define N  3

static const uint8_t  no_salt[32], salt[32] = { 1 };


/* A picture with arrays of its own, as vlm_picture_make() leaves it. */
static vlm_picture_t *
picture(uint8_t n)
{
    vlm_picture_t  *p;

    p = calloc(1, sizeof(*p));
    p->pixels = malloc(100);
    p->row = malloc(10);
    p->column = malloc(10);
    p->border = malloc(10);
    p->cell = malloc(10);
    memset(p->pixels, n, 100);
    p->info.decode_us = 7;
    p->sha256[5] = n;

    return p;
}


static vlm_picture_t *
look_for(vlm_known_t *k, uint8_t n, const uint8_t *with)
{
    uint8_t  sha256[32] = { 0 };

    sha256[5] = n;

    return vlm_known_find(k, sha256, with);
}


static int
is_known(vlm_known_t *k, uint8_t n, const uint8_t *with)
{
    int             known;
    vlm_picture_t  *p;

    p = look_for(k, n, with);
    known = p != NULL;
    assert_true(!known || (p->pixels[99] == n && p->info.decode_us == 0));
    vlm_picture_free(p);

    return known;
}


static void
add(vlm_known_t *k, uint8_t n, const uint8_t *with)
{
    vlm_picture_t  *p;

    p = vlm_known_add(k, picture(n), with);
    assert_int_equal(p->pixels[0], n);
    assert_int_equal(p->info.decode_us, 7);
    vlm_picture_free(p);
}


static void
open_known(vlm_known_t *k)
{
    vlm_err_t  err = { VLM_OK, "" };

    assert_int_equal(vlm_known_open(k, N, &err), 0);
}


static void
a_file_is_found_with_the_salt_that_it_was_read_with(void **state)
{
    vlm_known_t  k;

    (void) state;
    open_known(&k);

    assert_false(is_known(&k, 1, no_salt));
    add(&k, 1, no_salt);
    assert_true(is_known(&k, 1, no_salt));
    assert_false(is_known(&k, 2, no_salt));
    assert_false(is_known(&k, 1, salt));
    add(&k, 1, salt);
    assert_true(is_known(&k, 1, salt));
    assert_true(is_known(&k, 1, no_salt));

    vlm_known_close(&k);
}


static void
the_least_recently_used_picture_is_evicted_first(void **state)
{
    vlm_known_t  k;

    (void) state;
    open_known(&k);

    add(&k, 1, no_salt);
    add(&k, 2, no_salt);
    add(&k, 3, no_salt);
    assert_true(is_known(&k, 1, no_salt));
    add(&k, 4, no_salt);
    assert_false(is_known(&k, 2, no_salt));
    assert_true(is_known(&k, 1, no_salt));
    assert_true(is_known(&k, 3, no_salt));
    assert_true(is_known(&k, 4, no_salt));

    vlm_known_close(&k);
}


/* Under AddressSanitizer this test also checks that the arrays are freed once. */
static void
a_picture_in_use_outlives_its_place_and_the_list(void **state)
{
    uint8_t         n;
    vlm_known_t     k;
    vlm_picture_t  *a, *b, *c;

    (void) state;
    open_known(&k);

    a = vlm_known_add(&k, picture(1), no_salt);
    b = look_for(&k, 1, no_salt);
    assert_ptr_equal(a->pixels, b->pixels);
    assert_ptr_not_equal(a, b);

    for (n = 10; n < 10 + 2 * N; n++) {
        add(&k, n, no_salt);
    }

    assert_false(is_known(&k, 1, no_salt));
    vlm_picture_free(a);
    assert_int_equal(b->pixels[50], 1);

    c = vlm_picture_share(b);
    vlm_picture_free(b);
    vlm_known_close(&k);
    assert_int_equal(c->pixels[50], 1);
    vlm_picture_free(c);
}


static void
of_two_threads_that_read_one_file_the_first_result_is_cached(void **state)
{
    uint32_t        i, kept;
    vlm_known_t     k;
    vlm_picture_t  *a, *b, *c;

    (void) state;
    open_known(&k);

    a = vlm_known_add(&k, picture(1), no_salt);
    b = vlm_known_add(&k, picture(1), no_salt);
    c = look_for(&k, 1, no_salt);
    assert_ptr_equal(c->pixels, a->pixels);
    assert_ptr_not_equal(b->pixels, a->pixels);

    for (kept = 0, i = 0; i < N; i++) {
        kept += k.entry[i].picture != NULL;
    }

    assert_int_equal(kept, 1);
    vlm_picture_free(a);
    vlm_picture_free(b);
    vlm_picture_free(c);
    vlm_known_close(&k);
}


typedef struct {
    vlm_known_t  *k;
    uint8_t       first;
} reader_t;


static void *
read_many(void *arg)
{
    uint32_t        i;
    uint8_t         n;
    reader_t       *r = arg;
    vlm_picture_t  *p;

    for (i = 0; i < 2000; i++) {
        n = (uint8_t) ((r->first + i * 7) % 5);
        p = look_for(r->k, n, no_salt);
        p = p != NULL ? p : vlm_known_add(r->k, picture(n), no_salt);

        if (p->pixels[99] != n) {
            return r;
        }

        vlm_picture_free(p);
    }

    return NULL;
}


static void
threads_share_and_free_without_synchronisation(void **state)
{
    void         *wrong;
    uint32_t      i;
    reader_t      r[4];
    pthread_t     thread[4];
    vlm_known_t   k;

    (void) state;
    open_known(&k);

    for (i = 0; i < 4; i++) {
        r[i].k = &k;
        r[i].first = (uint8_t) i;
        assert_int_equal(pthread_create(&thread[i], NULL, read_many, &r[i]), 0);
    }

    for (i = 0; i < 4; i++) {
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }

    vlm_known_close(&k);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_file_is_found_with_the_salt_that_it_was_read_with),
        cmocka_unit_test(the_least_recently_used_picture_is_evicted_first),
        cmocka_unit_test(a_picture_in_use_outlives_its_place_and_the_list),
        cmocka_unit_test(of_two_threads_that_read_one_file_the_first_result_is_cached),
        cmocka_unit_test(threads_share_and_free_without_synchronisation)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
