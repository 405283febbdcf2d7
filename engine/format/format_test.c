/* The forms of weights: names in both directions, sizes, and elements of files as f32. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "format/bf16.h"
#include "format/format.h"

static const vlm_type_t  types[] = { VLM_F32, VLM_F16, VLM_BF16, VLM_INT8 };


static void
a_form_is_found_by_its_name_and_by_its_spelling(void **state)
{
    size_t               i;
    vlm_type_t           type;
    vlm_err_t            err;
    const vlm_format_t  *f;

    (void) state;

    for (i = 0; i < 4; i++) {
        f = vlm_format_of(types[i]);
        assert_int_equal(f->type, types[i]);
        assert_string_equal(f->name, vlm_weights_name(types[i]));
        assert_true(f->spelt == NULL || vlm_format_spelt(f->spelt) == f);

        memset(&err, 0, sizeof(err));
        type = VLM_F16;
        assert_int_equal(vlm_weights_find(f->name, &type, &err), f->resident ? 0 : -1);
        assert_int_equal(type, f->resident ? types[i] : VLM_F16);
        assert_int_equal(err.code, f->resident ? VLM_OK : VLM_EINPUT);
    }

    assert_null(vlm_format_spelt("I8"));
    assert_null(vlm_format_spelt("f32"));
}


static void
the_refusal_of_an_unknown_form_of_weights_lists_the_known(void **state)
{
    vlm_type_t  type;
    vlm_err_t   err = { VLM_OK, "" };

    (void) state;

    assert_int_equal(vlm_weights_find("int3", &type, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "weights \"int3\" is not one of int4, int8, bf16, f32");
}


static void
rows_and_scales_have_their_sizes(void **state)
{
    (void) state;

    assert_int_equal(vlm_format_row(vlm_format_of(VLM_F32), 33), 132);
    assert_int_equal(vlm_format_row(vlm_format_of(VLM_BF16), 33), 66);
    assert_int_equal(vlm_format_row(vlm_format_of(VLM_INT8), 33), 33);
    assert_int_equal(vlm_format_row(vlm_format_of(VLM_INT4), 33), 34);
    assert_int_equal(vlm_format_row(vlm_format_of(VLM_INT4), 128), 68);
    assert_int_equal(vlm_format_scales(vlm_format_of(VLM_BF16), 7), 0);
    assert_int_equal(vlm_format_scales(vlm_format_of(VLM_INT8), 7), 7);
    assert_int_equal(vlm_format_row(vlm_format_of(VLM_INT16), 33), 66);
    assert_int_equal(vlm_format_scales(vlm_format_of(VLM_INT16), 7), 7);
    assert_int_equal(vlm_format_of(VLM_F32)->kv, VLM_F32);
    assert_int_equal(vlm_format_of(VLM_INT8)->kv, VLM_BF16);
    assert_int_equal(vlm_format_kv(vlm_format_of(VLM_INT8), 0, 1), VLM_INT16);
    assert_int_equal(vlm_format_kv(vlm_format_of(VLM_INT4), 0, 0), VLM_BF16);
    assert_int_equal(vlm_format_kv(vlm_format_of(VLM_BF16), 0, 1), VLM_BF16);
    assert_int_equal(vlm_format_kv(vlm_format_of(VLM_F32), 1, 1), VLM_INT8);
}


/* Every half and every bf16, from bytes that are not aligned. */
static void
each_element_of_16_bits_is_read_exactly(void **state)
{
    float     got[2], want;
    uint8_t   bytes[5];
    uint16_t  half;
    uint32_t  h, exponent, fraction;

    (void) state;

    for (h = 0; h < 65536; h++) {
        half = (uint16_t) h;
        memcpy(bytes + 1, "xx", 2);
        memcpy(bytes + 3, &half, 2);

        vlm_format_of(VLM_BF16)->read(bytes + 1, 1, 1, got);
        want = vlm_bf16_f32(half);
        assert_memory_equal(got, &want, sizeof(want));

        exponent = h >> 10 & 31;
        fraction = h & 1023;

        if (exponent == 31) {
            continue;                  /* infinities and values that are no numbers */
        }

        want = exponent == 0 ? ldexpf((float) fraction, -24)
                             : ldexpf((float) (1024 + fraction), (int) exponent - 25);
        want = h & 0x8000 ? -want : want;
        vlm_format_of(VLM_F16)->read(bytes + 1, 1, 1, got);
        assert_memory_equal(got, &want, sizeof(want));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_form_is_found_by_its_name_and_by_its_spelling),
        cmocka_unit_test(the_refusal_of_an_unknown_form_of_weights_lists_the_known),
        cmocka_unit_test(rows_and_scales_have_their_sizes),
        cmocka_unit_test(each_element_of_16_bits_is_read_exactly)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
