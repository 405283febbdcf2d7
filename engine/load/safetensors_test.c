/* Headers with one false field each; files that end early; files of a real writer. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "load/fixture.h"
#include "load/safetensors.h"

#define DATA_BYTES  20

/* Two tensors over 20 bytes: every hostile header is this one with something else in it. */
#define GOOD  "{\"__metadata__\":{\"format\":\"pt\"}," \
              "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]}," \
              "\"b\":{\"dtype\":\"BF16\",\"shape\":[2],\"data_offsets\":[16,20]}}"

typedef struct {
    uint32_t  n;
    char      names[16][32];
    uint64_t  bytes;
} seen_t;


static int
see(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    seen_t  *s;

    (void) err;

    s = data;
    snprintf(s->names[s->n % 16], sizeof(s->names[0]), "%s", t->name);
    s->n++;
    s->bytes += t->bytes;

    return 0;
}


static int
refuse(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    (void) data;

    return vlm_fail(err, VLM_EMODEL, "%s: not wanted", t->name);
}


/* A file in memory of its exact size, so that a sanitizer sees one byte too many. */
static uint8_t *
build(const char *header, uint64_t length, size_t data_bytes, size_t *bytes)
{
    int       i;
    size_t    n;
    uint8_t  *file;

    n = strlen(header);
    *bytes = 8 + n + data_bytes;
    file = calloc(1, *bytes);
    assert_non_null(file);

    for (i = 0; i < 8; i++) {
        file[i] = (uint8_t) (length >> (8 * i));
    }

    memcpy(file + 8, header, n);

    return file;
}


static int
parse(const char *header, size_t data_bytes, seen_t *seen, vlm_err_t *err)
{
    int       rc;
    size_t    bytes;
    uint8_t  *file;

    memset(seen, 0, sizeof(*seen));
    memset(err, 0, sizeof(*err));

    file = build(header, strlen(header), data_bytes, &bytes);
    rc = vlm_safetensors_parse(file, bytes, "x", see, seen, err);
    free(file);

    return rc;
}


static void
tensors_come_in_the_order_of_their_bytes(void **state)
{
    seen_t     seen;
    vlm_err_t  err;

    (void) state;

    assert_int_equal(parse(GOOD, DATA_BYTES, &seen, &err), 0);
    assert_int_equal(seen.n, 2);
    assert_string_equal(seen.names[0], "a");
    assert_string_equal(seen.names[1], "b");
    assert_int_equal(seen.bytes, 20);

    assert_int_equal(parse("{\"b\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[4,6]},"
                           "\"a\":{\"dtype\":\"I8\",\"shape\":[4],\"data_offsets\":[0,4]}}   ", 6,
                           &seen, &err), 0);
    assert_string_equal(seen.names[0], "a");
    assert_string_equal(seen.names[1], "b");
}


static void
empty_files_tensors_and_scalars_are_fine(void **state)
{
    seen_t     seen;
    vlm_err_t  err;

    (void) state;

    assert_int_equal(parse("{}", 0, &seen, &err), 0);
    assert_int_equal(seen.n, 0);

    assert_int_equal(parse("{\"z\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[0,0]},"
                           "\"s\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                           "\"y\":{\"dtype\":\"F32\",\"shape\":[3,0],\"data_offsets\":[4,4]}}", 4,
                           &seen, &err), 0);
    assert_int_equal(seen.n, 3);
}


static void
every_field_that_lies_is_refused_with_a_sentence(void **state)
{
    size_t     i;
    seen_t     seen;
    vlm_err_t  err;

    static const struct {
        const char  *header, *says;
    } lies[] = {
        { "[]", "no JSON object" },
        { "{", "not JSON" },
        { "", "not JSON" },
        { GOOD "x", "not JSON" },
        { "{\"a\":1}", "expected dtype" },
        { "{\"a\":{}}", "expected dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20],\"x\":1}}",
          "expected dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"data_offsets\":[0,20]}}", "shape" },
        { "{\"a\":{\"dtype\":\"F31\",\"shape\":[5],\"data_offsets\":[0,20]}}", "\"F31\"" },
        { "{\"a\":{\"dtype\":7,\"shape\":[5],\"data_offsets\":[0,20]}}", "dtype" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":5,\"data_offsets\":[0,20]}}", "shape" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,5],\"data_offsets\":[0,20]}}",
          "at most 8" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-5],\"data_offsets\":[0,20]}}", "-5" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2.5,2],\"data_offsets\":[0,20]}}", "2.5" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1e300],\"data_offsets\":[0,20]}}", "e+300" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"5\"],\"data_offsets\":[0,20]}}", "not a number" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[6],\"data_offsets\":[0,20]}}",
          "20 bytes in the file, 24 by" },
        { "{\"a\":{\"dtype\":\"F16\",\"shape\":[5],\"data_offsets\":[0,20]}}", "10 by" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,1073741824],"
          "\"data_offsets\":[0,20]}}", "18446744073709551615 by" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,5],"
          "\"data_offsets\":[0,20]}}", "18446744073709551615 by" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0]}}", "2 numbers" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20,20]}}", "2 numbers" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":{\"a\":0,\"b\":20}}}",
          "2 numbers" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[20,0]}}", "20 to 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[4,24]}}",
          "it was not downloaded to its end" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[-4,16]}}", "-4" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,18446744073709551616]}}",
          "e+19" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "end at 16" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[4,20]}}",
          "begins at byte 4, the tensor before it ends at 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}", "ends at 16" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[12,20]}}", "ends at 8" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]},"
          "\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}", "begins at byte 0" },
        { "{\"a\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]},"
          "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[20,20]}}", "twice" }
    };

    (void) state;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        if (parse(lies[i].header, DATA_BYTES, &seen, &err) != -1 || err.code != VLM_EMODEL
            || strstr(err.text, lies[i].says) == NULL || seen.n != 0)
        {
            fail_msg("%s: \"%s\", should say \"%s\"", lies[i].header, err.text, lies[i].says);
        }
    }
}


static void
a_header_longer_than_the_file_is_refused_with_both_lengths(void **state)
{
    size_t     i, bytes;
    seen_t     seen = { 0 };
    uint8_t   *file;
    vlm_err_t  err;

    static const uint64_t  lengths[] = { 21 + sizeof(GOOD), UINT64_MAX, UINT64_MAX - 7,
                                         UINT64_C(1) << 63, UINT64_C(1) << 32, (16u << 20) + 1 };

    (void) state;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        memset(&err, 0, sizeof(err));
        file = build(GOOD, lengths[i], DATA_BYTES, &bytes);
        assert_int_equal(vlm_safetensors_parse(file, bytes, "x", see, &seen, &err), -1);
        assert_non_null(strstr(err.text, "in a file of"));
        free(file);
    }

    assert_int_equal(seen.n, 0);
}


static void
a_name_of_any_length_is_no_trouble(void **state)
{
    char       header[600], name[512];
    seen_t     seen;
    vlm_err_t  err;

    (void) state;

    memset(name, 'n', sizeof(name));
    name[256] = '\0';
    snprintf(header, sizeof(header),
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}", name);
    assert_int_equal(parse(header, DATA_BYTES, &seen, &err), 0);

    name[256] = 'n';
    name[257] = '\0';
    snprintf(header, sizeof(header),
             "{\"%s\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]}}", name);
    assert_int_equal(parse(header, DATA_BYTES, &seen, &err), -1);
    assert_non_null(strstr(err.text, "257 bytes"));
}


static void
a_file_cut_at_any_byte_is_refused(void **state)
{
    size_t       bytes, n;
    seen_t       seen = { 0 };
    uint8_t     *cut;
    vlm_err_t    err;
    vlm_file_t   f;

    (void) state;

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_open(&f, FIXTURES "/types.safetensors", 0, &err), 0);
    bytes = f.bytes;

    for (n = 0; n < bytes; n++) {
        memset(&err, 0, sizeof(err));
        cut = malloc(n + 1);
        assert_non_null(cut);
        memcpy(cut + 1, f.data, n);    /* unaligned, and ending where the allocation does */
        assert_int_equal(vlm_safetensors_parse(cut + 1, n, "x", see, &seen, &err), -1);
        assert_int_equal(err.code, VLM_EMODEL);
        free(cut);
    }

    assert_int_equal(seen.n, 0);
    assert_int_equal(vlm_safetensors_parse(f.data, bytes, "x", see, &seen, NULL), 0);
    assert_int_equal(seen.n, 7);

    vlm_file_close(&f);
}


/* The data alone is cut: the header says how much there should be. */
static void
a_partial_download_is_reported_with_both_sizes(void **state)
{
    char       says[96];
    size_t     bytes;
    seen_t     seen = { 0 };
    uint8_t   *file;
    vlm_err_t  err;

    (void) state;

    for (bytes = 0; bytes < DATA_BYTES; bytes++) {
        assert_int_equal(parse(GOOD, bytes, &seen, &err), -1);
        snprintf(says, sizeof(says), "x: the file has %zu bytes of %zu: it was not downloaded to "
                 "its end; download it again", 8 + strlen(GOOD) + bytes,
                 8 + strlen(GOOD) + DATA_BYTES);
        assert_string_equal(err.text, says);
    }

    memset(&err, 0, sizeof(err));
    file = build(GOOD, strlen(GOOD) + 1, 0, &bytes);
    assert_int_equal(vlm_safetensors_parse(file, bytes, "x", see, &seen, &err), -1);
    assert_non_null(strstr(err.text, "it was not downloaded to its end"));
    free(file);
}


static void
any_one_byte_changed_in_a_header_is_survived(void **state)
{
    int        v;
    size_t     i, bytes;
    seen_t     seen;
    uint8_t   *file, was;
    vlm_err_t  err;

    (void) state;

    file = build(GOOD, sizeof(GOOD) - 1, DATA_BYTES, &bytes);

    for (i = 0; i < bytes - DATA_BYTES; i++) {
        was = file[i];
        for (v = 0; v < 256; v++) {
            memset(&seen, 0, sizeof(seen));
            memset(&err, 0, sizeof(err));
            file[i] = (uint8_t) v;
            if (vlm_safetensors_parse(file, bytes, "x", see, &seen, &err) == 0) {
                assert_int_equal(seen.bytes, DATA_BYTES);
            } else {
                assert_int_equal(err.code, VLM_EMODEL);
            }
        }
        file[i] = was;
    }

    free(file);
}


static void
the_callbacks_error_ends_the_parse(void **state)
{
    size_t     bytes;
    uint8_t   *file;
    vlm_err_t  err = { 0 };

    (void) state;

    file = build(GOOD, sizeof(GOOD) - 1, DATA_BYTES, &bytes);
    assert_int_equal(vlm_safetensors_parse(file, bytes, "x", refuse, NULL, &err), -1);
    assert_string_equal(err.text, "a: not wanted");
    free(file);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(tensors_come_in_the_order_of_their_bytes),
        cmocka_unit_test(empty_files_tensors_and_scalars_are_fine),
        cmocka_unit_test(every_field_that_lies_is_refused_with_a_sentence),
        cmocka_unit_test(a_header_longer_than_the_file_is_refused_with_both_lengths),
        cmocka_unit_test(a_name_of_any_length_is_no_trouble),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(a_partial_download_is_reported_with_both_sizes),
        cmocka_unit_test(any_one_byte_changed_in_a_header_is_survived),
        cmocka_unit_test(the_callbacks_error_ends_the_parse)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
