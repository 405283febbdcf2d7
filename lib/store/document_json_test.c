/* Documents and pages as clients read them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "store/document_json.h"


static void
check(vlm_json_out_t *w, const char *text)
{
    assert_int_equal(vlm_json_done(w), 0);
    assert_int_equal(w->len, strlen(text));
    assert_memory_equal(w->data, text, w->len);
    vlm_json_release(w);
}


static void
a_document_has_null_for_what_it_lacks(void **state)
{
    vlm_json_out_t  w;
    vlm_document_t  doc;

    (void) state;

    memset(&doc, 0, sizeof(doc));
    strcpy(doc.id, "0123");
    doc.bytes = 5000000000;
    doc.pages = 3;
    doc.read = 2;

    vlm_json_init(&w, 4096);
    vlm_document_put(&w, &doc, "ready");
    check(&w, "{\"bytes\":5000000000,\"chunks\":0,\"error\":null,\"hidden_words\":0,"
              "\"id\":\"0123\",\"name\":null,\"ocr_pages\":0,\"pages\":3,\"pages_read\":2,"
              "\"pages_to_read\":0,\"scans\":0,\"state\":\"ready\",\"title\":null}\n");

    strcpy(doc.name, "a.pdf");
    strcpy(doc.title, "A");
    strcpy(doc.error, "damaged");

    vlm_json_init(&w, 4096);
    vlm_document_put(&w, &doc, "failed");
    check(&w, "{\"bytes\":5000000000,\"chunks\":0,\"error\":\"damaged\",\"hidden_words\":0,"
              "\"id\":\"0123\",\"name\":\"a.pdf\",\"ocr_pages\":0,\"pages\":3,\"pages_read\":2,"
              "\"pages_to_read\":0,\"scans\":0,\"state\":\"failed\",\"title\":\"A\"}\n");
}


static void
a_page_has_its_words_and_their_boxes(void **state)
{
    vlm_json_out_t        w;
    vlm_pdf_word_t        words[2] = { { 0, 3, 1, 2, 3.5, 4, 0 },
                                       { 4, 4, 5, 6, 7, 8, VLM_PDF_HIDDEN } };
    vlm_document_page_t   page = { .number = 2, .flags = VLM_PDF_OCR, .width = 612, .height = 792,
                                   .text = "The name", .bytes = 8, .words = words, .n_words = 2 };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_document_put_page(&w, &page);
    check(&w, "{\"height\":792.0,\"number\":2,\"ocr\":true,\"scan\":false,\"text\":\"The name\","
              "\"width\":612.0,\"words\":[{\"box\":[1.0,2.0,3.5,4.0],\"hidden\":false,"
              "\"text\":\"The\"},{\"box\":[5.0,6.0,7.0,8.0],\"hidden\":true,"
              "\"text\":\"name\"}]}\n");
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_has_null_for_what_it_lacks),
        cmocka_unit_test(a_page_has_its_words_and_their_boxes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
