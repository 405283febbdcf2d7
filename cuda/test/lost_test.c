/*
 * A device that fails: each class of CUDA's errors, returned by the driver at one call after
 * another while a model loads and while it answers.
 *
 * The engine must behave as fault.c's table says.  A refused call fails the requests that were at
 * work, and the next one is answered as before.  After any other error the driver is not called
 * again, the run ends with VLM_EDEVICE, and a new process works, for which a new engine stands in
 * here.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "library.h"

#define TOKENS_WANTED  3
#define LAST           40              /* calls of a load, of which the most capture */

static const int  codes[] = { 1, 2, 701, 46, 214, 700, 702, 719, 999, 4242 };


static vlm_t *
open_model(vlm_err_t *err)
{
    vlm_t       *v;
    vlm_conf_t   conf;

    vlm_tiny_conf(&conf);
    conf.device = "cuda";
    conf.max_pixels = 3136;
    conf.context = 200;

    memset(err, 0, sizeof(*err));
    v = vlm_open(&conf, err);
    assert_non_null(v);

    return v;
}


static void
fail_at(int code, uint64_t call)
{
    set(VLM_EMU_FAIL_CODE, (uint64_t) code);
    set(VLM_EMU_FAIL_AT, call);
}


/* Calls that open a device: version to stream, with all the kernels that there are. */
static uint64_t
opening(void)
{
    return 7 + counts().loaded;
}


static int
is_refused(int code)
{
    return vlm_fault_of(code) == VLM_FAULT_REFUSED;
}


/* A short answer about a picture. */
static int
answer(vlm_t *v, vlm_answer_t *a, vlm_err_t *err)
{
    int              rc;
    vlm_sampling_t   s;

    s = vlm_tiny_sampling(3);
    s.max_tokens = TOKENS_WANTED;
    (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "What is this?", 1), &s, a);

    memset(err, 0, sizeof(*err));
    rc = vlm_run(v, err);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(a->n_ends, 1);

    return rc;
}


/* Memory still held when the engine is closed: none, unless the device may not be called. */
static void
check_released(int code)
{
    vlm_emu_counts_t  c = counts();

    assert_int_equal(c.calls_after_loss, 0);

    if (is_refused(code)) {
        assert_int_equal(c.blocks, 0);
        assert_int_equal(c.streams, 0);
        assert_int_equal(c.graphs, 0);
    }

    set(VLM_EMU_FORGET, 0);            /* as the end of the process does */
}


/* A load that failed says whether another process may succeed: not without any device. */
static void
check_lost(const vlm_t *v, int code, uint64_t call)
{
    vlm_stat_t  stat;

    vlm_stat(v, &stat);
    assert_int_equal(stat.state,
                     vlm_fault_of(code) == VLM_FAULT_LOST
                     || (call > opening() && !is_refused(code)) ? VLM_LOST : VLM_LOADING);
}


/* All of the first calls, which open the device, and some of the last, which capture steps. */
static uint64_t
call_after(uint64_t n, uint64_t calls)
{
    if (n < 12) {
        return n + 1;
    }

    return n + calls / 7 < calls - LAST ? n + calls / 7 : n < calls - LAST ? calls - LAST : n + 7;
}


/* A driver that refuses to capture steps is used without: the load goes on, and answers come. */
static int
goes_on_without_graphs(vlm_t *v, int code)
{
    vlm_err_t      err;
    vlm_answer_t   a;

    if (!is_refused(code) || strstr(v->stat.device, ", no graphs") == NULL) {
        return 0;
    }

    return answer(v, &a, &err) == 0 && a.err.code == VLM_OK;
}


static void
a_load_that_fails_says_why_and_leaves_nothing(void **state)
{
    int         rc;
    vlm_t      *v;
    uint64_t    calls, n;
    uint32_t    i, without;
    vlm_err_t   err;

    (void) state;

    calls = counts().calls;
    v = open_model(&err);
    assert_int_equal(vlm_load(v, &err), 0);
    calls = counts().calls - calls;
    vlm_close(v);
    assert_true(calls > 50);
    without = 0;

    for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        for (n = 1; n <= calls; n = call_after(n, calls)) {
            v = open_model(&err);
            fail_at(codes[i], n);

            rc = vlm_load(v, &err);

            if (rc == 0 && goes_on_without_graphs(v, codes[i])) {
                without++;

            } else if (rc == -1 && (err.code == VLM_EDEVICE || err.code == VLM_EMEMORY)) {
                assert_non_null(strstr(err.text, "cuda:0"));
                check_lost(v, codes[i], n);

            } else {
                fail_msg("error %d at call %u of a load: code %d, \"%s\"", codes[i], (unsigned) n,
                         err.code, err.text);
            }

            vlm_close(v);
            check_released(codes[i]);
        }
    }

    assert_true(without > 0);
}


static void
an_answer_that_fails_says_why_and_the_next_one_is_as_ever(void **state)
{
    int             rc, refused;
    vlm_t          *v;
    uint64_t        calls, n;
    uint32_t        i;
    vlm_err_t       err;
    vlm_answer_t    want, a;

    (void) state;

    v = open_model(&err);
    assert_int_equal(vlm_load(v, &err), 0);
    calls = counts().calls;
    assert_int_equal(answer(v, &want, &err), 0);
    calls = counts().calls - calls;
    assert_int_equal(want.err.code, VLM_OK);

    for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        refused = is_refused(codes[i]);

        /* The last call is the loop's own, when no job is left. */

        for (n = 1 + i % 3; n < calls; n += calls / 5) {
            if (v == NULL) {
                v = open_model(&err);
                assert_int_equal(vlm_load(v, &err), 0);
            }

            vlm_features_forget(&v->sched.features, 0);
            vlm_prefix_forget(&v->sched.prefix, 0);
            vlm_prefix_forget(&v->sched.prefix, 1);

            fail_at(codes[i], n);
            rc = answer(v, &a, &err);

            if (a.err.code != (refused ? VLM_EMEMORY : VLM_EDEVICE)
                || strstr(a.err.text, "cuda:0") == NULL)
            {
                fail_msg("error %d at call %u of an answer: code %d, \"%s\"", codes[i],
                         (unsigned) n, a.err.code, a.err.text);
            }

            assert_int_equal(rc, refused ? 0 : -1);
            assert_int_equal(counts().calls_after_loss, 0);

            if (refused) {
                fail_at(0, 0);
                assert_int_equal(answer(v, &a, &err), 0);
                assert_int_equal(a.err.code, VLM_OK);
                assert_string_equal(a.text, want.text);
                continue;
            }

            assert_int_equal(err.code, VLM_EDEVICE);
            vlm_close(v);
            v = NULL;
            check_released(codes[i]);
        }
    }

    vlm_close(v);
    check_released(1);
}


static void
the_message_names_the_missing_part_with_its_numbers(void **state)
{
    vlm_t      *v;
    uint32_t    i;
    vlm_err_t   err;

    static const struct {
        vlm_emu_setting_t  setting;
        uint64_t           value, normal;
        const char        *words;
    } cases[] = {
        { VLM_EMU_DRIVER, 0, 13000, "there is no NVIDIA driver" },
        { VLM_EMU_DRIVER, 12040, 13000, "too old: it knows CUDA 12.4, and the library, which CUDA "
          "13.0 has built, wants a driver from 580 on; for this driver install "
          "nvidia-cuda-toolkit of Debian 12 or 13, " },
        { VLM_EMU_DRIVER, 11080, 13000, "install nvidia-cuda-toolkit of Debian 12 (CUDA 11.8), " },
        { VLM_EMU_DRIVER, 10020, 13000, "install a driver from 450 on, " },
        { VLM_EMU_DEVICES, 0, 1, "there is no CUDA device" },
        { VLM_EMU_ARCH, 70, 90, "is of sm_70, sm_75 is the least" },
        { VLM_EMU_BYTES, 1 << 20, UINT64_C(8) << 30, "has 1m free of 1m, the plan wants" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(cases[i].setting, cases[i].value);
        v = open_model(&err);
        assert_int_equal(vlm_load(v, &err), -1);
        assert_int_equal(err.code, VLM_EDEVICE);

        if (strstr(err.text, cases[i].words) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].words, err.text);
        }

        vlm_close(v);
        set(cases[i].setting, cases[i].normal);
    }

    assert_int_equal(counts().blocks, 0);
    assert_int_equal(counts().streams, 0);
}


static void
a_driver_is_refused_by_its_major_version_alone(void **state)
{
    vlm_t      *v;
    uint32_t    i;
    vlm_err_t   err;

    static const struct {
        uint64_t     driver, built_by;
        const char  *words;            /* NULL: it is taken */
    } cases[] = {
        { 12020, 12040, NULL },        /* Debian 12's driver, Debian 13's toolkit */
        { 12000, 12090, NULL },
        { 11000, 11080, NULL },
        { 13000, 11080, NULL },
        { 10020, 11080, "which CUDA 11.8 has built, wants a driver from 450 on; " },
        { 11080, 12040, "which CUDA 12.4 has built, wants a driver from 525 on; " },
        { 12090, 13000, "which CUDA 13.0 has built, wants a driver from 580 on; " }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(VLM_EMU_DRIVER, cases[i].driver);
        set(VLM_EMU_BUILT_BY, cases[i].built_by);
        v = open_model(&err);
        assert_int_equal(vlm_load(v, &err), cases[i].words == NULL ? 0 : -1);

        if (cases[i].words != NULL && strstr(err.text, cases[i].words) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].words, err.text);
        }

        vlm_close(v);
    }

    set(VLM_EMU_DRIVER, 13000);
    set(VLM_EMU_BUILT_BY, 13000);
}


/* Calls 1 to 5 look at the device, from the 6th on its kernels are loaded. */
static void
a_card_without_kernels_is_named_with_the_toolkit(void **state)
{
    vlm_t      *v;
    uint32_t    i;
    vlm_err_t   err;

    static const struct {
        uint64_t     code;
        const char  *words;
    } cases[] = {
        { 209, "is of sm_120, for which the library, which CUDA 11.8 has built, has no" },
        { 218, "is of sm_120, newer than the library, which CUDA 11.8 has built, and" },
        { 221, "the driver cannot compile its kernels: " },
        { 222, "the driver cannot compile its kernels: " },
        { 223, "the driver cannot compile its kernels: " }
    };

    (void) state;
    set(VLM_EMU_ARCH, 120);
    set(VLM_EMU_BUILT_BY, 11080);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        set(VLM_EMU_FAIL_CODE, cases[i].code);
        set(VLM_EMU_FAIL_AT, 6);
        v = open_model(&err);
        assert_int_equal(vlm_load(v, &err), -1);

        if (strstr(err.text, cases[i].words) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", cases[i].words, err.text);
        }

        vlm_close(v);
        set(VLM_EMU_FORGET, 1);
    }

    set(VLM_EMU_ARCH, VLM_EMU / 10);
    set(VLM_EMU_BUILT_BY, 13000);
}


/* One of these faults under auto: the cpu answers, and says why.  Without a fault, cuda does. */
static void
device_auto_takes_the_cpu_and_says_why(void **state)
{
    vlm_t         *v;
    vlm_err_t      err;
    vlm_conf_t     conf;
    vlm_stat_t     stat;
    vlm_answer_t   a;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.device = "auto";
    conf.max_pixels = 3136;
    set(VLM_EMU_DRIVER, 0);
    v = vlm_tiny_open(&conf);
    vlm_stat(v, &stat);
    assert_int_equal(strncmp(stat.device, "cpu, ", 5), 0);
    assert_int_equal(stat.plan.device, 0);
    assert_non_null(strstr(stat.reason, "took the cpu: cuda:0: there is no NVIDIA driver"));
    assert_int_equal(answer(v, &a, &err), 0);
    assert_int_equal(a.err.code, VLM_OK);
    vlm_close(v);

    set(VLM_EMU_DRIVER, 13000);
    v = vlm_tiny_open(&conf);
    vlm_stat(v, &stat);
    assert_string_equal(stat.device, "cuda:0, emulator 0, sm_90");
    assert_true(stat.plan.device > 0);
    assert_non_null(strstr(stat.reason, "took cuda:0"));
    vlm_close(v);
}


/* The memory was free when the device was opened, and another process took it before the load. */
static void
device_auto_takes_the_cpu_when_memory_that_was_free_is_not_given(void **state)
{
    vlm_t         *v;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_conf_t     conf;
    vlm_stat_t     stat;
    vlm_answer_t   a;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.device = "auto";
    conf.max_pixels = 3136;
    v = vlm_open(&conf, &err);
    assert_non_null(v);

    fail_at(2, opening() + 1);         /* the first memory */
    assert_int_equal(vlm_load(v, &err), 0);
    vlm_stat(v, &stat);
    assert_int_equal(stat.state, VLM_READY);
    assert_int_equal(strncmp(stat.device, "cpu, ", 5), 0);
    assert_non_null(strstr(stat.reason, "took the cpu: cuda:0: a call failed"));
    assert_int_equal(answer(v, &a, &err), 0);
    assert_int_equal(a.err.code, VLM_OK);
    assert_int_equal(counts().blocks, 0);
    assert_int_equal(counts().streams, 0);
    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_load_that_fails_says_why_and_leaves_nothing),
        cmocka_unit_test(an_answer_that_fails_says_why_and_the_next_one_is_as_ever),
        cmocka_unit_test(the_message_names_the_missing_part_with_its_numbers),
        cmocka_unit_test(a_driver_is_refused_by_its_major_version_alone),
        cmocka_unit_test(a_card_without_kernels_is_named_with_the_toolkit),
        cmocka_unit_test(a_driver_is_refused_by_its_major_version_alone),
        cmocka_unit_test(a_card_without_kernels_is_named_with_the_toolkit),
        cmocka_unit_test(device_auto_takes_the_cpu_and_says_why),
        cmocka_unit_test(device_auto_takes_the_cpu_when_memory_that_was_free_is_not_given)
    };

    return cmocka_run_group_tests(tests, find_library, NULL);
}
