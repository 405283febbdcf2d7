/* The history of a session, in front of a question and as JSON. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "robobrain/history.h"


static vlm_store_entry_t
entry(vlm_store_role_t role, const char *content, const char *image)
{
    vlm_store_entry_t  e;

    memset(&e, 0, sizeof(e));

    e.role = role;
    e.content = vlm_store_string(content);
    e.image = vlm_store_string(image);
    e.task = vlm_store_string("general");
    strcpy(e.time, "2025-11-27T22:45:20.161117");

    return e;
}


static void
asked(const vlm_store_entry_t *entries, size_t n, const char *want)
{
    char    *text;
    size_t   len;

    text = vlm_history_text(entries, n, vlm_store_string("And now?"), &len);

    assert_non_null(text);
    assert_int_equal(len, strlen(want));
    assert_memory_equal(text, want, len);
    free(text);
}


static void
a_question_without_a_history_stands_alone(void **state)
{
    (void) state;

    asked(NULL, 0, "And now?");
}


static void
the_entries_stand_in_front_of_the_question(void **state)
{
    const vlm_store_entry_t  entries[] = {
        entry(VLM_STORE_USER, "Where is it?", "/a.png"),
        entry(VLM_STORE_ASSISTANT, "There.", NULL),
        entry(VLM_STORE_USER, "", NULL),
        entry(VLM_STORE_ASSISTANT, "Yes.", NULL)
    };

    (void) state;

    asked(entries, 4, "[Previous conversation context]\nUser (with image): Where is it?\n"
          "Assistant: There.\nUser: \nAssistant: Yes.\n[Current query]\nAnd now?");
}


static void
put(const vlm_store_entry_t *e, const char *want)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, SIZE_MAX);
    vlm_history_put(&w, e);
    vlm_json_put_raw(&w, "", 1);
    assert_int_equal(vlm_json_done(&w), 0);
    assert_string_equal(w.data, want);
    vlm_json_release(&w);
}


static void
an_entry_has_its_picture_and_its_task(void **state)
{
    vlm_store_entry_t  e;

    (void) state;

    e = entry(VLM_STORE_USER, "Where?", "/a.png");
    put(&e, "{\"content\":\"Where?\",\"image_path\":\"/a.png\",\"metadata\":{},\"role\":\"user\","
        "\"task\":\"general\",\"timestamp\":\"2025-11-27T22:45:20.161117\"}");
}


static void
an_answer_has_its_task_and_its_drawing_in_the_metadata(void **state)
{
    vlm_store_entry_t  e;

    (void) state;

    e = entry(VLM_STORE_ASSISTANT, "There.", NULL);
    put(&e, "{\"content\":\"There.\",\"image_path\":null,\"metadata\":{\"output_image\":null,"
        "\"task\":\"general\",\"thinking\":null},\"role\":\"assistant\",\"task\":null,"
        "\"timestamp\":\"2025-11-27T22:45:20.161117\"}");

    e.output = vlm_store_string("b.jpg");
    e.thinking = vlm_store_string("Hm");
    put(&e, "{\"content\":\"There.\",\"image_path\":null,\"metadata\":{\"output_image\":"
        "\"result/b.jpg\",\"task\":\"general\",\"thinking\":\"Hm\"},\"role\":\"assistant\","
        "\"task\":null,\"timestamp\":\"2025-11-27T22:45:20.161117\"}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_question_without_a_history_stands_alone),
        cmocka_unit_test(the_entries_stand_in_front_of_the_question),
        cmocka_unit_test(an_entry_has_its_picture_and_its_task),
        cmocka_unit_test(an_answer_has_its_task_and_its_drawing_in_the_metadata)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
