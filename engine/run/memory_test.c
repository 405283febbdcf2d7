/*
 * The engine thread allocates nothing while it runs: all of a request's memory is planned.
 *
 * malloc() and its like are this program's own here, and count for the thread that asks them to.  A
 * sanitizer has its own malloc(): then nothing is counted.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/fixture.h"

/* volatile: the compiler knows that libc's malloc() looks at neither */
static __thread volatile int       watching;
static __thread volatile uint64_t  n_calls;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

#define SEEN  __attribute__((visibility("default")))       /* by libc's own qsort(), for one */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void __libc_free(void *p);


SEEN void *
malloc(size_t bytes)
{
    n_calls += (uint64_t) watching;

    return __libc_malloc(bytes);
}


SEEN void *
calloc(size_t n, size_t bytes)
{
    n_calls += (uint64_t) watching;

    return __libc_calloc(n, bytes);
}


SEEN void *
realloc(void *p, size_t bytes)
{
    n_calls += (uint64_t) watching;

    return __libc_realloc(p, bytes);
}


SEEN void
free(void *p)
{
    n_calls += (uint64_t) (watching && p != NULL);
    __libc_free(p);
}

#endif


static void
a_run_calls_no_allocator_whatever_the_jobs_want(void **state)
{
    vlm_t          *v;
    uint32_t        i, form;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_conf_t      conf;
    const char     *stop[] = { "never", "said", "by", "anybody" };
    vlm_bias_t      bias[] = { { 7, 3 }, { 70, -100 } };
    vlm_answer_t    a[6];
    vlm_grammar_t  *object;
    vlm_sampling_t  s;

    (void) state;

    for (form = 0; form < 3; form++) {
        vlm_tiny_conf(&conf);
        conf.weights = form == 0 ? VLM_F32 : form == 1 ? VLM_BF16 : VLM_INT8;
        conf.threads = form + 1;
        v = vlm_tiny_open(&conf);
        object = vlm_grammar_object(v, &err);
        assert_non_null(object);

        for (i = 0; i < 6; i++) {
            s = vlm_tiny_sampling(i + 1);
            s.temperature = i == 0 ? 0 : 1;
            s.top_k = i % 2 == 0 ? 50 : 0;
            s.top_p = i % 3 == 0 ? 1 : 0.9f;
            s.repetition_penalty = 1.05f;
            s.stop = stop;
            s.n_stop = 4;
            s.frequency_penalty = i % 2 == 0 ? 0 : 0.5f;
            s.bias = bias;
            s.n_bias = i % 3;
            s.logprobs = i >= 3;
            s.top_logprobs = 20;
            s.grammar = i % 4 == 3 ? object : NULL;

            (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Where is the cup?", i % 3), &s, &a[i]);
        }

        n_calls = 0;
        watching = 1;
        (void) vlm_run(v, &err);
        watching = 0;

        assert_int_equal(n_calls, 0);
        vlm_tiny_drain(v, NULL);

        for (i = 0; i < 6; i++) {
            assert_int_equal(a[i].n_ends, 1);
            assert_int_equal(a[i].err.code, VLM_OK);
        }

        vlm_grammar_free(object);
        vlm_close(v);
    }
}


static void
calls_are_counted_at_all(void **state)
{
    (void) state;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    void *volatile  p;                 /* else the compiler sees that the memory is not read */

    n_calls = 0;
    watching = 1;
    p = malloc(100);
    free(p);
    watching = 0;
    assert_int_equal(n_calls, 2);
#endif
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(calls_are_counted_at_all),
        cmocka_unit_test(a_run_calls_no_allocator_whatever_the_jobs_want)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
