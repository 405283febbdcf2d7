
/*
 * Pictures in the store: kept once, found only by the names in an upload's answer, and results
 * named after them.
 */


#define _GNU_SOURCE

#include "store/store_fixture.h"


static void
the_same_picture_is_kept_once(void **state)
{
    char        path[512];
    err_t       err;
    file_t      one, two;
    store_t    *st;

    st = *state;

    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0,
                         S("my cat.png"), &one, &err), OK);
    assert_int_equal(strlen(one.name), 36 + 1 + strlen("my_cat.png"));
    assert_string_equal(one.name + 36, "_my_cat.png");

    (void) snprintf(path, sizeof(path), "%s/uploads/%s", dir, one.name);
    assert_string_equal(one.path, path);

    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0,
                         S("my cat.png"), &two, &err), OK);
    assert_string_equal(one.name, two.name);

    /* another name, other bytes, or missing on disk: another file */

    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0, S("b.png"),
                                          &two, &err), OK);
    assert_string_equal(two.name + 36, "_b.png");

    assert_int_equal(vlm_store_upload_add(st, "abd", 3, 0,
                         S("my cat.png"), &two, &err), OK);
    assert_string_not_equal(one.name, two.name);

    assert_int_equal(unlink(one.path), 0);
    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0,
                         S("my cat.png"), &two, &err), OK);
    assert_string_not_equal(one.name, two.name);

    /* the file was overwritten: the store promised its old bytes */

    spoil("x", 0, 3, 1);
    (void) snprintf(path, sizeof(path), "%s/x", dir);
    assert_int_equal(rename(path, two.path), 0);
    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0,
                         S("my cat.png"), &one, &err), OK);
    assert_string_not_equal(one.name, two.name);
}


static void
a_name_may_be_empty_and_a_file_too(void **state)
{
    err_t     err;
    file_t    f;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_upload_add(st, "", 0, 0,
                         S("\xe5\x9b\xbe"), &f, &err), OK);
    assert_int_equal(strlen(f.name), 37);
    assert_int_equal(f.name[36], '_');
    assert_int_equal(vlm_store_upload_find(st, S(f.name), &f, &err),
                     OK);
}


static void
an_upload_is_found_by_name_path_and_url_and_nothing_else(void **state)
{
    char      text[512], link[256];
    err_t     err;
    file_t    f, g;
    size_t    i;
    store_t  *st;

    static const char *const  bad[] = {
        "", ".", "..", "/", "//", "/etc/passwd", "../../../etc/passwd",
        "uploads", "vlm.db", "../vlm.db", "/uploads/../vlm.db",
        "/uploads/", "/uploads/..", "uploads/link", "link", "folder",
        "/uploads/link", "http://example.com/cat.png", "none.png"
    };

    st = *state;

    assert_int_equal(vlm_store_upload_add(st, "abc", 3, 0,
                                          S("cat.png"), &f, &err),
                     OK);

    (void) snprintf(link, sizeof(link), "%s/uploads/link", dir);
    assert_int_equal(symlink("/etc/passwd", link), 0);
    (void) snprintf(link, sizeof(link), "%s/uploads/folder", dir);
    assert_int_equal(mkdir(link, 0700), 0);

    assert_int_equal(vlm_store_upload_find(st, S(f.name), &g, &err),
                     OK);
    assert_string_equal(g.path, f.path);
    assert_string_equal(g.name, f.name);

    assert_int_equal(vlm_store_upload_find(st, S(f.path), &g, &err),
                     OK);
    assert_string_equal(g.name, f.name);

    (void) snprintf(text, sizeof(text), "/uploads/%s", f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     OK);
    assert_string_equal(g.path, f.path);

    /* the right name with a wrong directory, and the right path spelled differently: a client's
       path is compared, and never looked up */

    (void) snprintf(text, sizeof(text), "%s/results/../uploads//./%s", dir,
                    f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);

    (void) snprintf(link, sizeof(link), "%s/way", dir);
    (void) snprintf(text, sizeof(text), "%s/uploads", dir);
    assert_int_equal(symlink(text, link), 0);
    (void) snprintf(text, sizeof(text), "%s/way/%s", dir, f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);

    (void) snprintf(text, sizeof(text), "/etc/%s", f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);
    (void) snprintf(text, sizeof(text), "uploads/%s", f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);
    (void) snprintf(text, sizeof(text), "%s/uploads/folder/%s", dir, f.name);
    assert_int_equal(vlm_store_upload_find(st, S(text), &g, &err),
                     NOTFOUND);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(vlm_store_upload_find(st, S(bad[i]), &g,
                                               &err), NOTFOUND);

        (void) snprintf(text, sizeof(text), "%s/uploads/%s", dir, bad[i]);
        assert_int_equal(vlm_store_upload_find(st, S(text), &g,
                                               &err), NOTFOUND);
    }

    (void) snprintf(text, sizeof(text), "%s", f.name);
    assert_int_equal(vlm_store_upload_find(st,
                         (vlm_store_text_t) { strlen(text) + 1,
                                              text }, &g, &err),
                     NOTFOUND);

    memset(text, 'a', sizeof(text));
    assert_int_equal(vlm_store_upload_find(st,
                         (vlm_store_text_t) { sizeof(text), text },
                         &g, &err), NOTFOUND);
}


static void
a_result_is_named_after_its_picture_and_task(void **state)
{
    char      path[VLM_STORE_PATH];
    err_t     err;
    file_t    f;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_result_add(st, "j", 1,
            S("/x/0123abcd-0123-4123-8123-0123456789ab_my.cat.png"),
            "affordance", &f, &err), OK);
    assert_string_equal(f.name + 36, "_my.cat_with_affordance_annotated.jpg");
    assert_int_equal(access(f.path, R_OK), 0);

    assert_int_equal(vlm_store_path(dir, VLM_STORE_RESULTS,
                                    S(f.name), path), OK);
    assert_string_equal(path, f.path);

    assert_int_equal(vlm_store_result_add(st, "j", 1,
            S("0123abcd-0123-4123-8123-0123456789ab_"), "pointing", &f,
            &err), OK);
    assert_string_equal(f.name + 36, "_with_pointing_annotated.jpg");

    assert_int_equal(vlm_store_path(dir, VLM_STORE_UPLOADS,
                                    S(".."), path), NOTFOUND);
    assert_int_equal(vlm_store_path(dir, VLM_STORE_UPLOADS,
                                    S("a/b"), path), NOTFOUND);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(the_same_picture_is_kept_once),
        TEST(a_name_may_be_empty_and_a_file_too),
        TEST(an_upload_is_found_by_name_path_and_url_and_nothing_else),
        TEST(a_result_is_named_after_its_picture_and_task),
    };

    return run_over_both(tests, COUNT(tests), tests, COUNT(tests));
}
