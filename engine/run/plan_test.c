/*
 * The plan: the planned bytes are the reserved ones, and an error says with numbers what does not
 * fit.
 */

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/fixture.h"

static uint64_t  mapped;               /* bytes of anonymous memory asked for, while counting */
static int       counting;


/*
 * In place of libc's: the engine's device reserves by mmap() and nothing else.  Room for a large
 * file's mapping is no memory.
 */
void *
mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    if (counting && (flags & MAP_ANONYMOUS) != 0 && prot != PROT_NONE) {
        mapped += bytes;
    }

    return (void *) syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}


static uint64_t
total_of(const vlm_conf_t *conf)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_plan_t  plan;

    assert_int_equal(vlm_plan(conf, &plan, &err), 0);
    assert_int_equal(plan.total, plan.weights + plan.vision + plan.kv + plan.workspace
                                 + plan.device);

    return plan.total;
}


static void
the_reserved_bytes_are_the_planned_ones(void **state)
{
    vlm_t             *v;
    uint32_t           i;
    vlm_conf_t         conf;
    vlm_stat_t         stat;
    const vlm_type_t   forms[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT4 };

    (void) state;

    for (i = 0; i < 16; i++) {
        vlm_tiny_conf(&conf);
        conf.model = i < 8 ? CHECKPOINT : DEEP;
        conf.weights = forms[i % 4];
        conf.kv_int8 = i / 2 % 2;
        conf.slots = 1 + i;
        conf.context = 512 << i / 4;
        conf.threads = 1 + i / 4 % 2;
        conf.ops = i / 4 % 2 == 0 ? "plain" : NULL;

        mapped = 0;
        counting = 1;
        v = vlm_tiny_open(&conf);
        counting = 0;

        /* Two threads have a stack, which the system maps: pages that are written count, few. */

        vlm_stat(v, &stat);
        assert_int_equal(stat.plan.total, total_of(&conf));

        if (conf.threads == 1) {
            assert_int_equal(mapped, stat.plan.total);
        }

        vlm_close(v);
    }
}


static void
each_purpose_grows_with_what_it_is_for(void **state)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  a, b;

    (void) state;

    vlm_tiny_conf(&conf);
    assert_int_equal(vlm_plan(&conf, &a, &err), 0);

    conf.slots *= 3;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_int_equal(b.kv, 3 * a.kv);
    assert_int_equal(b.weights, a.weights);

    /* 2 slots, 2 layers, 2 heads of 16 in int16 with a scale, k and v, 1024 rows */

    assert_int_equal(a.kv, 2 * 2 * 2 * (2 * 16 + 4) * 2 * 1024);

    /* the same in int8, with an f32 scale for each 16 */

    conf.slots = 2;
    conf.kv_int8 = 1;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_int_equal(b.kv, 2 * 2 * 2 * (16 + 4) * 2 * 1024);
    assert_int_equal(b.total, a.total - a.kv + b.kv);

    vlm_tiny_conf(&conf);
    conf.max_pixels *= 2;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_true(b.vision > a.vision && b.kv == a.kv && b.weights == a.weights);

    /* 8 pictures of 2^16 pixels, that is 83 rows of 64 floats; slots at least */

    vlm_tiny_conf(&conf);
    conf.features = 8 + 16;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_int_equal(b.vision - a.vision, 16 * 83 * 64 * 4);
    assert_true(b.kv == a.kv && b.workspace == a.workspace);

    conf.features = 0;
    assert_int_equal(vlm_plan(&conf, &a, &err), 0);
    conf.features = conf.slots;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_int_equal(a.vision, b.vision);

    /* The same of 64 rows of 80, in four parts; keys and values of 4 layers with 3 heads of 32. */

    conf.model = DEEP;
    assert_int_equal(vlm_plan(&conf, &a, &err), 0);
    assert_int_equal(a.kv, 2 * 4 * 3 * (2 * 32 + 4) * 2 * 1024);
    conf.features = 2 + 16;
    assert_int_equal(vlm_plan(&conf, &b, &err), 0);
    assert_int_equal(b.vision - a.vision, 16 * 4 * 64 * 80 * 4);
}


/* "context 1k needs 21m": the number behind a remedy's name, or -1. */
static int64_t
remedy(const char *text, const char *name)
{
    char   unit;
    char  *at;
    long   value;

    at = strstr(text, name);

    if (at == NULL || sscanf(at + strlen(name), " %ld%c", &value, &unit) != 2) {
        return -1;
    }

    return unit == 'k' ? value * 1024 : value;
}


static void
a_plan_that_does_not_fit_is_refused_with_every_number(void **state)
{
    char        want[256];
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.memory = 1 << 20;
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_true(plan.total > conf.memory);         /* filled in all the same */

    (void) snprintf(want, sizeof(want),
                    "%um needed (weights %um, vision %um, kv %um, workspace %um, device 0m), "
                    "memory is 1m", (unsigned) ((plan.total + 1048575) >> 20),
                    (unsigned) ((plan.weights + 1048575) >> 20),
                    (unsigned) ((plan.vision + 1048575) >> 20),
                    (unsigned) ((plan.kv + 1048575) >> 20),
                    (unsigned) ((plan.workspace + 1048575) >> 20));

    /* No setting makes it fit into so little, so no remedy is named. */

    assert_string_equal(err.text, want);

    memset(&err, 0, sizeof(err));
    conf.memory = (1 << 20) + 1;                   /* rounded up as the others are */
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_non_null(strstr(err.text, "memory is 2m"));
}


static void
a_text_encoder_beside_the_model_counts(void **state)
{
    uint64_t    alone;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    vlm_tiny_conf(&conf);
    alone = total_of(&conf);

    conf.encoder = 5 << 20;
    conf.memory = alone + conf.encoder;
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_int_equal(plan.encoder, conf.encoder);
    assert_int_equal(plan.total, alone + conf.encoder);

    conf.memory--;
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_non_null(strstr(err.text, "encoder 5m, device 0m), memory is"));

    memset(&err, 0, sizeof(err));
    conf.encoder = UINT64_MAX;
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
}


static void
a_remedy_is_named_only_if_the_plan_with_it_fits(void **state)
{
    int64_t     value;
    uint32_t    named, i;
    uint64_t    full, least;
    vlm_err_t   err;
    vlm_conf_t  conf, with;
    vlm_plan_t  plan;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.context = 8192;
    conf.slots = 8;
    full = total_of(&conf);
    with = conf;
    with.context = 1024;
    with.slots = 1;
    least = total_of(&with);

    for (named = 0, i = 0; i < 24; i++) {
        memset(&err, 0, sizeof(err));
        conf.memory = least / 2 + (full - least / 2) / 24 * i;
        assert_int_equal(vlm_plan(&conf, &plan, &err), -1);

        value = remedy(err.text, "context");

        if (value > 0) {
            with = conf;
            with.memory = 0;
            with.context = (uint32_t) value;
            assert_true(total_of(&with) <= conf.memory);
            named++;
        }

        value = remedy(err.text, "slots");

        if (value > 0) {
            with = conf;
            with.memory = 0;
            with.slots = (uint32_t) value;
            assert_true(total_of(&with) <= conf.memory);
            named++;
        }

        assert_true(strchr("0123456789m", err.text[strlen(err.text) - 1]) != NULL);
    }

    assert_true(named > 10);
}


static void
a_plan_that_fits_exactly_loads_and_one_byte_less_does_not(void **state)
{
    vlm_t       *v;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_plan_t   plan;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.memory = total_of(&conf);
    vlm_close(vlm_tiny_open(&conf));

    conf.memory--;
    assert_int_equal(vlm_plan(&conf, &plan, &err), -1);

    memset(&err, 0, sizeof(err));
    v = vlm_open(&conf, &err);
    assert_non_null(v);
    assert_int_equal(vlm_load(v, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    vlm_close(v);
}


static void
the_largest_settings_do_not_overflow_into_a_small_plan(void **state)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;
    vlm_plan_t  plan;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.context = 1 << 20;
    conf.slots = 256;
    conf.max_pixels = 1 << 26;
    conf.threads = 256;
    assert_int_equal(vlm_plan(&conf, &plan, &err), 0);
    assert_int_equal(plan.kv, (uint64_t) 256 * 2 * 2 * (2 * 16 + 4) * 2 << 20);
    assert_true(plan.total > plan.kv);
}


static void
settings_out_of_range_are_said_with_the_range(void **state)
{
    uint32_t     i;
    vlm_t       *v;
    vlm_err_t    err;
    vlm_conf_t   conf;
    vlm_plan_t   plan;
    const char  *words[] = {
        "context is 15", "context is 1048577", "slots is 0", "slots is 257", "max_tokens is 0",
        "max_pixels is 783", "max_pixels is 67108865", "weights", "model", "device is \"gpu\"",
        "device is \"cuda:x\"", "ops=sse", "threads is 257", "device", "features is 1025",
        "min_pixels is 65537, more than max_pixels 65536",
        "max_pixels is 1023, less than one cell of this model: 1024"
    };

    (void) state;

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        memset(&err, 0, sizeof(err));
        vlm_tiny_conf(&conf);
        conf.context = i == 0 ? 15 : i == 1 ? (1 << 20) + 1 : 1024;
        conf.slots = i == 2 ? 0 : i == 3 ? 257 : 2;
        conf.max_tokens = i == 4 ? 0 : 16;
        conf.max_pixels = i == 5 ? 783 : i == 6 ? (1 << 26) + 1
                          : i == 16 ? 1023 : 1 << 16;
        conf.weights = i == 7 ? VLM_F16 : VLM_INT8;
        conf.model = i == 8 ? NULL : i == 16 ? DEEP : CHECKPOINT;
        conf.device = i == 9 ? "gpu" : i == 10 ? "cuda:x" : i == 13 ? NULL : "cpu";
        conf.ops = i == 11 ? "sse" : NULL;
        conf.threads = i == 12 ? 257 : 1;
        conf.features = i == 14 ? 1025 : 0;
        conf.min_pixels = i == 15 ? (1 << 16) + 1 : 0;

        assert_int_equal(vlm_plan(&conf, &plan, &err), -1);
        assert_int_equal(err.code, VLM_EINPUT);

        if (strstr(err.text, words[i]) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", words[i], err.text);
        }

        memset(&err, 0, sizeof(err));
        v = vlm_open(&conf, &err);
        assert_true(v == NULL || (i >= 9 && i <= 13 && vlm_load(v, &err) == -1));
        vlm_close(v);
    }
}


static void
a_device_that_was_taken_automatically_has_a_reason(void **state)
{
    vlm_t       *v;
    vlm_conf_t   conf;
    vlm_stat_t   stat;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.device = "auto";
    v = vlm_tiny_open(&conf);
    vlm_stat(v, &stat);
    assert_int_equal(strncmp(stat.device, "cpu, ", 5), 0);
    assert_true(stat.reason[0] != '\0');
    vlm_close(v);
}


static int
stop_now(void *data)
{
    return --*(int *) data < 0;
}


static void
a_load_that_is_stopped_leaves_nothing(void **state)
{
    int          left, i;
    vlm_t       *v;
    vlm_err_t    err;
    vlm_conf_t   conf;

    (void) state;

    for (i = 0; i < 12; i += 5) {
        left = i;
        memset(&err, 0, sizeof(err));
        vlm_tiny_conf(&conf);
        conf.stop = stop_now;
        conf.data = &left;
        v = vlm_open(&conf, &err);
        assert_non_null(v);
        assert_int_equal(vlm_load(v, &err), -1);
        assert_int_equal(err.code, VLM_ECANCELLED);
        vlm_close(v);
    }
}


static void
the_defaults_are_the_documented_ones(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_conf_default(&conf);
    assert_null(conf.model);
    assert_string_equal(conf.device, "auto");
    assert_int_equal(conf.weights, VLM_INT8);
    assert_int_equal(conf.kv_int8, 0);
    assert_int_equal(conf.context, 4096);
    assert_int_equal(conf.slots, 4);
    assert_int_equal(conf.max_pixels, 1003520);
    assert_int_equal(conf.max_tokens, 768);
    assert_int_equal(conf.features, 8);
    assert_int_equal(conf.memory, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_reserved_bytes_are_the_planned_ones),
        cmocka_unit_test(each_purpose_grows_with_what_it_is_for),
        cmocka_unit_test(a_plan_that_does_not_fit_is_refused_with_every_number),
        cmocka_unit_test(a_text_encoder_beside_the_model_counts),
        cmocka_unit_test(a_remedy_is_named_only_if_the_plan_with_it_fits),
        cmocka_unit_test(a_plan_that_fits_exactly_loads_and_one_byte_less_does_not),
        cmocka_unit_test(the_largest_settings_do_not_overflow_into_a_small_plan),
        cmocka_unit_test(settings_out_of_range_are_said_with_the_range),
        cmocka_unit_test(a_device_that_was_taken_automatically_has_a_reason),
        cmocka_unit_test(a_load_that_is_stopped_leaves_nothing),
        cmocka_unit_test(the_defaults_are_the_documented_ones)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
