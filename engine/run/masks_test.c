/* The threads of masks, on the published vocabulary: the same masks, in time, and left at once. */

#include "grammar/grammar_fixture.h"
#include "run/masks.h"

#define SLOTS   3
#define AFTER   4000
#define HEAVY   "root ::= . root [aeiou] | . root [bcdfg] | . root [^h-m] | . root [n-z ] | " \
                ". root? | ."
#define LIGHT   "root ::= \"(\" root \")\" | [a-z]+"

static vlm_masks_t    *masks;
static vlm_grammar_t  *heavy, *light;
static vlm_match_t     at[SLOTS];
static uint32_t        got[SLOTS][WORDS];


static vlm_grammar_t *
gbnf(const char *text)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    g = vlm_gbnf_make(qwen.pieces, text, &err);

    if (g == NULL) {
        fail_msg("%s", err.text);
    }

    return g;
}


static void
read_text(vlm_match_t *m, const vlm_grammar_t *g, const char *text)
{
    vlm_walk_allow(walker, VLM_MASK_MOST, NULL);
    vlm_match_start(m, g);
    assert_int_equal(vlm_match_read(m, walker, text, strlen(text)), 0);
}


static int
open_masks(void **state)
{
    vlm_err_t  err = { VLM_OK, "" };

    (void) open_all(state);
    masks = vlm_masks_open(qwen.pieces, SLOTS, &err);
    assert_non_null(masks);
    heavy = gbnf(HEAVY);
    light = gbnf(LIGHT);

    return 0;
}


static int
close_masks(void **state)
{
    vlm_masks_close(masks);
    vlm_grammar_free(heavy);
    vlm_grammar_free(light);

    return close_all(state);
}


/* The place may be left still. */
static void
ask(uint32_t slot)
{
    while (!vlm_masks_ask(masks, slot, &at[slot], AFTER)) {
        vlm_masks_wait(masks);
    }
}


static vlm_mask_state_t
wait_for(uint32_t slot, uint64_t *work)
{
    vlm_mask_state_t  s;

    while ((s = vlm_masks_take(masks, slot, got[slot], work)) == VLM_MASK_QUEUED
           || s == VLM_MASK_BUSY)
    {
        vlm_masks_wait(masks);
    }

    return s;
}


static void
a_mask_of_the_thread_is_that_of_vlm_mask(void **state)
{
    uint64_t  work;

    (void) state;

    read_text(&at[0], light, "((ab");
    ask(0);
    assert_int_equal(wait_for(0, &work), VLM_MASK_READY);
    vlm_walk_allow(walker, VLM_MASK_MOST, NULL);
    assert_int_equal(vlm_mask(qwen.pieces, &at[0], walker, AFTER, allowed), 0);
    assert_int_equal(work, vlm_walk_work(walker));
    assert_memory_equal(got[0], allowed, qwen.pieces->n_words * sizeof(*allowed));
    assert_int_equal(vlm_masks_take(masks, 0, got[0], &work), VLM_MASK_NONE);
}


static void
a_mask_of_too_much_work_says_so(void **state)
{
    uint64_t  work;

    (void) state;

    read_text(&at[0], heavy, "all of the words of this text");
    ask(0);
    assert_int_equal(wait_for(0, &work), VLM_MASK_TOO_MUCH);
    assert_true(work > VLM_MASK_MOST);
    vlm_masks_drop(masks, 0);
}


/* A thread that went on with a heavy mask would be at its end before the next one is asked for. */
static void
a_dropped_mask_is_left_unfinished(void **state)
{
    uint32_t          i;
    uint64_t          work;
    vlm_mask_state_t  s;

    (void) state;

    read_text(&at[0], heavy, "all of the words of this text");
    read_text(&at[1], light, "(a");

    for (i = 0; i < 20; i++) {
        ask(0);

        while (vlm_masks_take(masks, 0, got[0], &work) == VLM_MASK_QUEUED) {
            vlm_masks_wait(masks);
        }

        vlm_masks_drop(masks, 0);
        s = vlm_masks_take(masks, 0, got[0], &work);
        assert_true(s == VLM_MASK_LEFT || s == VLM_MASK_NONE);
        ask(1);
        assert_int_equal(wait_for(1, &work), VLM_MASK_READY);
        vlm_masks_drop(masks, 1);
    }
}


/* Two heavy ones are asked before, and neither is dropped: those who ask again would always be. */
static void
a_light_mask_waits_for_no_heavy_one(void **state)
{
    uint64_t          work;
    vlm_mask_state_t  heavy_one;

    (void) state;

    read_text(&at[0], heavy, "all of the words");
    read_text(&at[1], heavy, "all of the words");
    read_text(&at[2], light, "(a");

    ask(0);
    ask(1);
    ask(2);
    assert_int_equal(wait_for(2, &work), VLM_MASK_READY);

    heavy_one = vlm_masks_take(masks, 1, got[1], &work);
    assert_true(heavy_one == VLM_MASK_QUEUED || heavy_one == VLM_MASK_BUSY);
    assert_int_equal(wait_for(0, &work), VLM_MASK_TOO_MUCH);
    vlm_masks_drop(masks, 1);
    vlm_masks_drop(masks, 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_mask_of_the_thread_is_that_of_vlm_mask),
        cmocka_unit_test(a_mask_of_too_much_work_says_so),
        cmocka_unit_test(a_dropped_mask_is_left_unfinished),
        cmocka_unit_test(a_light_mask_waits_for_no_heavy_one),
    };

    return cmocka_run_group_tests(tests, open_masks, close_masks);
}
