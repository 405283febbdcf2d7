/* Panels of int8: values survive packing and unpacking, and lie where the header says. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "format/panel.h"

#define MAX_K  200

static const uint32_t  flips[] = { 0, VLM_FLIP };


static int8_t
value(uint32_t row, uint32_t k)
{
    return (int8_t) ((row * 37 + k * 11) % 255 - 127);
}


static void
every_value_lies_in_its_place_and_comes_back(void **state)
{
    static int8_t    rows[VLM_PANEL * MAX_K], back[VLM_PANEL * MAX_K + 1];
    static uint32_t  panel[VLM_PANEL * (MAX_K + VLM_BLOCK) / 4];
    uint8_t          want;
    size_t           f;
    uint32_t         n, K, i, k;

    (void) state;

    for (n = 1; n <= VLM_PANEL; n += n < 4 ? 1 : 15) {
        for (K = 1; K <= MAX_K; K += K % 64 > 61 || K < 6 ? 1 : 7) {
            for (i = 0; i < n * K; i++) {
                rows[i] = value(i / K, i % K);
            }

            for (f = 0; f < sizeof(flips) / sizeof(flips[0]); f++) {
                memset(panel, 0x55, sizeof(panel));
                vlm_pack_words(panel, rows, n, K, flips[f]);

                for (i = 0; i < VLM_PANEL; i++) {
                    for (k = 0; k < vlm_panel_bytes(K) / VLM_PANEL; k++) {
                        want = (uint8_t) ((i < n && k < K ? value(i, k) : 0) ^ (flips[f] & 255));

                        if (((uint8_t *) panel)[(k / 4 * 64 + i) * 4 + k % 4] != want) {
                            fail_msg("n %u, K %u, flip %x: row %u, k %u", n, K, flips[f], i, k);
                        }
                    }
                }

                memset(back, 0x33, sizeof(back));
                vlm_unpack_words(back, panel, n, K, flips[f]);
                assert_memory_equal(back, rows, n * K);
                assert_int_equal(back[n * K], 0x33);       /* and nothing behind it */
            }
        }
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_value_lies_in_its_place_and_comes_back)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
