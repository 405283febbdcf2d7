
/*
 * The store's sessions: a stored turn is read back unchanged, in order, within the bounds, and is
 * dropped if a reset came in between.
 */


#define _GNU_SOURCE

#include <time.h>

#include "store/store_fixture.h"


static void
a_session_is_made_found_reset_and_deleted(void **state)
{
    char      id[37];
    err_t     err;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(count(st), 0);
    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
    assert_int_equal(strlen(id), 36);
    assert_int_equal(count(st), 1);

    assert_int_equal(vlm_store_session_load(st, S(id), MAX, &l, &err),
                     OK);
    assert_int_equal(l.n, 0);
    assert_int_equal(l.total, 0);
    assert_null(l.image);
    vlm_store_loaded_free(&l);

    assert_int_equal(vlm_store_session_reset(st, S(id), &err), OK);
    assert_int_equal(count(st), 1);
    assert_int_equal(vlm_store_session_delete(st, S(id), &err), OK);
    assert_int_equal(count(st), 0);

    assert_int_equal(vlm_store_session_delete(st, S(id), &err),
                     NOTFOUND);
    assert_int_equal(err.code, NOTFOUND);
    assert_string_equal(err.text, "Session not found");
    assert_int_equal(vlm_store_session_reset(st, S(id), &err),
                     NOTFOUND);
    assert_int_equal(vlm_store_session_load(st, S(id), MAX, &l, &err),
                     NOTFOUND);
}


static void
a_client_may_bring_its_own_id_within_bounds(void **state)
{
    char      id[VLM_STORE_ID + 2];
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("my id"), &err),
                     OK);
    assert_int_equal(vlm_store_session_ensure(st, S("my id"), &err),
                     OK);
    assert_int_equal(vlm_store_session_ensure(st,
                                            S("caf\xc3\xa9 \xf0\x9f\x90\xb1"),
                                            &err), OK);
    assert_int_equal(count(st), 2);

    memset(id, 'i', sizeof(id));
    id[VLM_STORE_ID] = '\0';
    assert_int_equal(vlm_store_session_ensure(st, S(id), &err), OK);

    id[VLM_STORE_ID] = 'i';
    id[VLM_STORE_ID + 1] = '\0';
    assert_int_equal(vlm_store_session_ensure(st, S(id), &err),
                     VLM_STORE_EINPUT);
    assert_string_equal(err.text, "Session id of 129 bytes, 1 to 128 are"
                        " possible");

    assert_int_equal(vlm_store_session_ensure(st, S(""), &err),
                     VLM_STORE_EINPUT);
    assert_int_equal(vlm_store_session_ensure(st, S("a\nb"), &err),
                     VLM_STORE_EINPUT);
    assert_int_equal(vlm_store_session_ensure(st,
                         (vlm_store_text_t) { 3, "a\0b" }, &err),
                     VLM_STORE_EINPUT);
    assert_int_equal(vlm_store_session_ensure(st, S("\xff"), &err),
                     VLM_STORE_EINPUT);
    assert_int_equal(count(st), 3);
}


/* The same id is another session for each salt, and for none. */

static void
a_session_of_another_salt_is_another(void **state)
{
    int                used;
    char               room[3][VLM_STORE_SESSION + 1], id[VLM_STORE_ID + 2];
    size_t             i, n;
    err_t              err;
    store_t           *st;
    loaded_t           l;
    vlm_store_text_t   name[3];

    st = *state;

    memset(id, 'i', sizeof(id));
    id[VLM_STORE_ID] = '\0';

    for (i = 0; i < 3; i++) {
        name[i] = vlm_store_session_name(i == 2 ? UINT64_MAX : i, S(id), room[i]);
        assert_string_equal(vlm_store_session_id(name[i]).data, id);
    }

    assert_string_equal(room[0], id);          /* as before there were salts */

    assert_int_equal(vlm_store_session_ensure(st, name[1], &err), OK);
    assert_int_equal(append(st, room[1], epoch_of(st, room[1]), 1, &n, &used, &err), OK);

    for (i = 0; i < 3; i += 2) {
        assert_int_equal(vlm_store_session_load(st, name[i], MAX, &l, &err), NOTFOUND);
        assert_int_equal(vlm_store_session_reset(st, name[i], &err), NOTFOUND);
        assert_int_equal(vlm_store_session_delete(st, name[i], &err), NOTFOUND);
        assert_int_equal(vlm_store_session_ensure(st, name[i], &err), OK);
    }

    assert_int_equal(count(st), 3);
    assert_int_equal(vlm_store_session_delete(st, name[2], &err), OK);
    assert_int_equal(vlm_store_session_load(st, name[1], MAX, &l, &err), OK);
    assert_int_equal(l.n, 2);
    vlm_store_loaded_free(&l);

    /* a name is no id, and what is no id names no session */

    assert_int_equal(vlm_store_session_name(0, name[1], room[0]).len, 0);
    assert_int_equal(vlm_store_session_name(7, S("0000000000000001/i"), room[0]).len, 0);

    id[VLM_STORE_ID] = 'i';
    id[VLM_STORE_ID + 1] = '\0';
    name[0] = vlm_store_session_name(1, S(id), room[0]);
    assert_int_equal(vlm_store_session_load(st, name[0], MAX, &l, &err), NOTFOUND);
    assert_int_equal(vlm_store_session_delete(st, name[0], &err), NOTFOUND);

    assert_int_equal(vlm_store_session_create(st, 7, id, &err), OK);
    assert_int_equal(vlm_store_session_delete(st, S(id), &err), NOTFOUND);
    assert_int_equal(vlm_store_session_delete(st, vlm_store_session_name(7, S(id), room[0]), &err),
                     OK);
}


static void
a_turn_of_the_same_key_is_stored_once(void **state)
{
    int                        used;
    size_t                     n;
    err_t                      err;
    int64_t                    epoch;
    store_t                   *st;
    loaded_t                   l;
    vlm_store_turn_t           t;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    epoch = epoch_of(st, "s");

    assert_int_equal(append(st, "s", epoch, 1, &n, &used, &err), OK);

    memset(&t, 0, sizeof(t));
    t.message = S("question");
    t.answer = S("answer");
    t.key = S("k");
    t.body = -7;

    assert_int_equal(vlm_store_session_append(st, S("s"), epoch, &t,
                                              &n, &used, &err), OK);
    assert_int_equal(n, 4);
    assert_int_equal(vlm_store_session_append(st, S("s"), epoch, &t,
                                              &n, &used, &err), GONE);

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l,
                                            &err), OK);
    assert_int_equal(l.n, 4);
    assert_null(l.entries[1].key.data);
    assert_null(l.entries[2].key.data);
    assert_string_equal(l.entries[3].key.data, "k");
    assert_int_equal(l.entries[3].body, -7);
    assert_int_equal(l.entries[3].number, 4);
    vlm_store_loaded_free(&l);
}


static void
turns_are_numbered_2_4_to_20_and_the_oldest_are_dropped(void **state)
{
    int       i, used;
    char      text[32];
    size_t    n, k;
    err_t     err;
    int64_t   epoch;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    epoch = epoch_of(st, "s");

    for (i = 1; i <= 13; i++) {
        assert_int_equal(append(st, "s", epoch, i, &n, &used, &err), OK);
        assert_int_equal(n, i < 10 ? 2 * i : 20);
        assert_int_equal(used, i > 1);
    }

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l,
                                            &err), OK);
    assert_int_equal(l.n, 20);
    assert_int_equal(l.total, 20);

    for (k = 0; k < l.n; k++) {
        (void) snprintf(text, sizeof(text), "%zu", 4 + k / 2);
        assert_string_equal(l.entries[k].content.data, text);
        assert_int_equal(l.entries[k].role, k % 2);
    }

    vlm_store_loaded_free(&l);

    assert_int_equal(vlm_store_session_load(st, S("s"),
                         VLM_STORE_CONTEXT, &l, &err), OK);
    assert_int_equal(l.n, 10);
    assert_int_equal(l.total, 20);
    assert_string_equal(l.entries[0].content.data, "9");
    assert_string_equal(l.entries[9].content.data, "13");
    vlm_store_loaded_free(&l);
}


static void
an_entry_comes_back_as_it_was_stored(void **state)
{
    int                          used;
    char                         path[128];
    err_t                        err;
    size_t                       n;
    turn_t                       t;
    store_t                     *st;
    loaded_t                     l;
    struct timespec              ts;
    vlm_store_entry_t           *e;

    st = *state;

    setenv("TZ", "UTC", 1);
    tzset();

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);

    memset(&t, 0, sizeof(t));
    t.message = S("where is it? \xf0\x9f\x90\xb1 '; DROP TABLE entry; --");
    t.answer = S("[1, 2, 3, 4]");
    t.thinking = S("hm");
    t.task = S("grounding");
    t.output = S("r.jpg");
    t.asked = 1764283520161117;

    (void) snprintf(path, sizeof(path), "%s/uploads/u_cat.png", dir);
    t.image = S(path);

    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l,
                                            &err), OK);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.image, path);

    e = &l.entries[0];
    assert_int_equal(e->role, VLM_STORE_USER);
    assert_string_equal(e->content.data, t.message.data);
    assert_int_equal(e->content.len, t.message.len);
    assert_string_equal(e->image.data, path);
    assert_int_equal(e->image.len, strlen(path));
    assert_string_equal(e->task.data, "grounding");
    assert_null(e->thinking.data);
    assert_null(e->output.data);
    assert_string_equal(e->time, "2025-11-27T22:45:20.161117");

    e = &l.entries[1];
    assert_int_equal(e->role, VLM_STORE_ASSISTANT);
    assert_string_equal(e->content.data, "[1, 2, 3, 4]");
    assert_string_equal(e->image.data, path);
    assert_string_equal(e->task.data, "grounding");
    assert_string_equal(e->thinking.data, "hm");
    assert_string_equal(e->output.data, "r.jpg");

    (void) clock_gettime(CLOCK_REALTIME, &ts);
    assert_int_equal(strlen(e->time), 26);
    assert_true(strcmp(e->time, "2025-11-28") > 0);

    vlm_store_loaded_free(&l);

    /* a turn with a picture replaces the current picture, a turn without one keeps it */

    t.image = S("other.png");
    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);
    t.image.data = NULL;
    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l,
                                            &err), OK);
    (void) snprintf(path, sizeof(path), "%s/uploads/other.png", dir);
    assert_string_equal(l.image, path);
    assert_null(l.entries[4].image.data);
    vlm_store_loaded_free(&l);
}


static void
an_answer_to_a_question_before_a_reset_is_dropped(void **state)
{
    int       used;
    err_t     err;
    size_t    n;
    int64_t   epoch;
    store_t  *st;
    loaded_t  l;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    epoch = epoch_of(st, "s");

    assert_int_equal(append(st, "s", epoch, 1, &n, &used, &err), OK);
    assert_int_equal(vlm_store_session_reset(st, S("s"), &err), OK);

    assert_int_equal(append(st, "s", epoch, 2, &n, &used, &err), GONE);
    assert_int_equal(vlm_store_session_image(st, S("s"), epoch,
                                             S("a.png"), &err), GONE);

    assert_int_equal(vlm_store_session_load(st, S("s"), MAX, &l,
                                            &err), OK);
    assert_int_equal(l.n, 0);
    assert_null(l.image);
    assert_int_not_equal(l.epoch, epoch);
    epoch = l.epoch;
    vlm_store_loaded_free(&l);

    /* a session that is deleted and made again under the same name is another session */

    assert_int_equal(vlm_store_session_delete(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch, 3, &n, &used, &err), GONE);
    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch, 3, &n, &used, &err), GONE);

    assert_int_equal(append(st, "s", epoch_of(st, "s"), 4, &n, &used, &err),
                     OK);
    assert_int_equal(n, 2);
}


static void
a_turn_beyond_the_bounds_is_refused(void **state)
{
    int       used;
    char     *big;
    err_t     err;
    size_t    n;
    turn_t    t;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);

    big = malloc(VLM_STORE_TEXT + 1);
    assert_non_null(big);
    memset(big, 'b', VLM_STORE_TEXT + 1);

    memset(&t, 0, sizeof(t));
    t.message.data = big;
    t.message.len = VLM_STORE_TEXT + 1;
    t.answer = S("");

    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err),
                     VLM_STORE_EINPUT);
    t.message.len--;
    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);

    t.image = S("../x");                   /* only a path's last component is stored */
    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err), OK);
    t.image = S("/a/..");
    assert_int_equal(vlm_store_session_append(st, S("s"),
                         epoch_of(st, "s"), &t, &n, &used, &err),
                     VLM_STORE_EINPUT);

    free(big);
}


static void
a_stored_turn_outlives_the_process(void **state)
{
    int       used;
    char      id[37];
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
    assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                     OK);

    vlm_store_close(st);
    *state = st = open_store();

    assert_int_equal(append(st, id, epoch_of(st, id), 2, &n, &used, &err),
                     OK);
    assert_int_equal(n, 4);
    assert_int_equal(count(st), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_session_is_made_found_reset_and_deleted),
        TEST(a_client_may_bring_its_own_id_within_bounds),
        TEST(a_session_of_another_salt_is_another),
        TEST(a_turn_of_the_same_key_is_stored_once),
        TEST(turns_are_numbered_2_4_to_20_and_the_oldest_are_dropped),
        TEST(an_entry_comes_back_as_it_was_stored),
        TEST(an_answer_to_a_question_before_a_reset_is_dropped),
        TEST(a_turn_beyond_the_bounds_is_refused),
        TEST(a_stored_turn_outlives_the_process),
    };

    return run_over_both(tests, COUNT(tests), tests, COUNT(tests));
}
