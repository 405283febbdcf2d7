/* Rows of a batch: the rows added reach the device, in one piece. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "run/batch.h"

#define MAX_T  7
#define MAX_S  3


static vlm_device_t *
open_cpu(const vlm_ops_t **ops)
{
    vlm_err_t  err = { VLM_OK, "" };

    return vlm_cpu_open("plain", 1, ops, &err);
}


/* Fewer rows than there is room for, twice: positions are packed to the rows there are. */
static void
the_rows_of_a_batch_are_those_that_were_added(void **state)
{
    int32_t           pos[3];
    uint32_t         *ids, round, s, t, n, axis;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_rows_t        r;
    vlm_pick_t        pick, picks[MAX_S];
    vlm_batch_t       b;
    vlm_device_t     *d;
    const vlm_ops_t  *ops;

    (void) state;

    d = open_cpu(&ops);
    assert_int_equal(vlm_rows_open(&r, MAX_T, MAX_S, &err), 0);
    ids = malloc(vlm_batch_words(MAX_T, MAX_S) * sizeof(uint32_t));
    memset(&pick, 0, sizeof(pick));

    for (round = 0; round < 2; round++) {
        vlm_rows_clear(&r);

        for (n = 0, s = 0; s < MAX_S; s++) {
            vlm_rows_sequence(&r, 10 + s, 100 * s);

            for (t = 0; t <= s % (2 + round); t++, n++) {
                pos[0] = (int32_t) n;
                pos[1] = (int32_t) n + 1000;
                pos[2] = (int32_t) n + 2000;
                vlm_rows_add(&r, 5 * n, n % 2 == 0 ? VLM_NONE : n, pos);
            }

            if (s != 1) {
                pick.seed = s;
                vlm_rows_pick(&r, &pick);
            }
        }

        vlm_rows_put(&r, ops, d, ids, picks, &b);

        assert_int_equal(b.T, n);
        assert_int_equal(b.S, MAX_S);
        assert_int_equal(b.R, 2);
        assert_int_equal(b.start[0], 0);
        assert_int_equal(b.start[MAX_S], n);

        for (t = 0; t < n; t++) {
            assert_int_equal(b.token[t], 5 * t);
            assert_int_equal(b.source[t], t % 2 == 0 ? VLM_NONE : t);
            assert_true(b.start[b.seq[t]] <= t && t < b.start[b.seq[t] + 1]);

            for (axis = 0; axis < 3; axis++) {
                assert_int_equal(b.pos[axis * n + t], t + 1000 * axis);
            }
        }

        for (s = 0; s < MAX_S; s++) {
            assert_int_equal(b.slot[s], 10 + s);
            assert_int_equal(b.n_ctx[s], 100 * s);
        }

        assert_int_equal(b.logit_row[0], b.start[1] - 1);
        assert_int_equal(b.logit_row[1], n - 1);
        assert_int_equal(b.pick[0].seed, 0);
        assert_int_equal(b.pick[1].seed, 2);

        /* The arrays copied lie within the planned ones. */

        assert_true(b.logit_row + MAX_S <= ids + vlm_batch_words(MAX_T, MAX_S));
    }

    free(ids);
    vlm_rows_close(&r);
    vlm_rows_close(&r);
    ops->basic->close(d);
}


static void
a_full_batch_fits(void **state)
{
    int32_t           pos[3] = { 1, 2, 3 };
    uint32_t         *ids, t;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_rows_t        r;
    vlm_pick_t        pick, picks[MAX_S];
    vlm_batch_t       b;
    vlm_device_t     *d;
    const vlm_ops_t  *ops;

    (void) state;

    d = open_cpu(&ops);
    assert_int_equal(vlm_rows_open(&r, MAX_S, MAX_S, &err), 0);
    ids = malloc(vlm_batch_words(MAX_S, MAX_S) * sizeof(uint32_t));
    memset(&pick, 0, sizeof(pick));
    vlm_rows_clear(&r);

    for (t = 0; t < MAX_S; t++) {
        vlm_rows_sequence(&r, t, t);
        vlm_rows_add(&r, t, VLM_NONE, pos);
        vlm_rows_pick(&r, &pick);
    }

    vlm_rows_put(&r, ops, d, ids, picks, &b);
    assert_int_equal(b.R, MAX_S);
    assert_int_equal(b.pos[0], 1);
    assert_int_equal(b.pos[3 * MAX_S - 1], 3);
    assert_int_equal(b.logit_row[MAX_S - 1], MAX_S - 1);

    free(ids);
    vlm_rows_close(&r);
    ops->basic->close(d);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_rows_of_a_batch_are_those_that_were_added),
        cmocka_unit_test(a_full_batch_fits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
