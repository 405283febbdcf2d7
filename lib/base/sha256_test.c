/* SHA-256 against the examples of FIPS 180-4 and its validation set. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/sha256.h"


static const char *
hex(const uint8_t sum[32])
{
    int          i;
    static char  text[65];

    for (i = 0; i < 32; i++) {
        snprintf(text + 2 * i, 3, "%02x", sum[i]);
    }

    return text;
}


static void
the_examples_of_fips_180_4_come_out(void **state)
{
    size_t   i;
    uint8_t  sum[32];

    static const struct { const char *text, *sum; }  cases[] = {
        { "",
          "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc",
          "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
          "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vlm_sha256(cases[i].text, strlen(cases[i].text), sum);
        assert_string_equal(hex(sum), cases[i].sum);
    }
}


static void
a_million_letters_a_come_out(void **state)
{
    int           i;
    char          text[1000];
    uint8_t       sum[32];
    vlm_sha256_t  s;

    (void) state;

    memset(text, 'a', sizeof(text));
    vlm_sha256_start(&s);

    for (i = 0; i < 1000; i++) {
        vlm_sha256_add(&s, text, sizeof(text));
    }

    vlm_sha256_end(&s, sum);

    assert_string_equal(hex(sum),
                        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}


/* Around the block length 64 and the padding's 56. */
static void
pieces_of_any_length_give_the_sum_of_the_whole(void **state)
{
    size_t        n, piece, at;
    uint8_t       data[200], whole[32], parts[32];
    vlm_sha256_t  s;

    (void) state;

    for (n = 0; n < sizeof(data); n++) {
        data[n] = (uint8_t) (n * 37 + 11);
    }

    for (n = 0; n <= sizeof(data); n++) {
        vlm_sha256(data, n, whole);

        for (piece = 1; piece <= 130; piece += 3) {
            vlm_sha256_start(&s);

            for (at = 0; at < n; at += piece) {
                vlm_sha256_add(&s, data + at, n - at < piece ? n - at : piece);
            }

            vlm_sha256_end(&s, parts);
            assert_memory_equal(parts, whole, 32);
        }
    }
}


/* Made with the sha256sum tool from the same bytes. */
static void
lengths_around_the_padding_have_their_known_sums(void **state)
{
    size_t   i;
    char     text[64];
    uint8_t  sum[32];

    static const struct { size_t n; const char *sum; }  cases[] = {
        { 55, "9f4390f8d30c2dd92ec9f095b65e2b9ae9b0a925a5258e241c9f1e910f734318" },
        { 56, "b35439a4ac6f0948b6d6f9e3c6af0f5f590ce20f1bde7090ef7970686ec6738a" },
        { 63, "7d3e74a05d7db15bce4ad9ec0658ea98e3f06eeecf16b4c6fff2da457ddc2f34" },
        { 64, "ffe054fe7ae0cb6dc65c3af9b61d5209f439851db43d0ba5997337df154668eb" }
    };

    (void) state;

    memset(text, 'a', sizeof(text));

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        vlm_sha256(text, cases[i].n, sum);
        assert_string_equal(hex(sum), cases[i].sum);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_examples_of_fips_180_4_come_out),
        cmocka_unit_test(a_million_letters_a_come_out),
        cmocka_unit_test(pieces_of_any_length_give_the_sum_of_the_whole),
        cmocka_unit_test(lengths_around_the_padding_have_their_known_sums)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
