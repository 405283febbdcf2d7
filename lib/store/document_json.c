/* Documents and their pages as clients read them: see document_json.h. */

#include "store/document_json.h"


void
vlm_document_put(vlm_json_out_t *w, const vlm_document_t *doc, const char *state)
{
    vlm_json_open(w, '{');
    vlm_json_add_int(w, "bytes", (int64_t) doc->bytes);
    vlm_json_add_int(w, "chunks", doc->n_chunks);
    vlm_json_add_string(w, "error", doc->error[0] != '\0' ? doc->error : NULL);
    vlm_json_add_int(w, "hidden_words", doc->hidden_words);
    vlm_json_add_string(w, "id", doc->id);
    vlm_json_add_string(w, "name", doc->name[0] != '\0' ? doc->name : NULL);
    vlm_json_add_int(w, "ocr_pages", doc->ocr_pages);
    vlm_json_add_int(w, "pages", doc->pages);
    vlm_json_add_int(w, "pages_read", doc->read);
    vlm_json_add_int(w, "pages_to_read", doc->to_read);
    vlm_json_add_int(w, "scans", doc->scans);
    vlm_json_add_string(w, "state", state);
    vlm_json_add_string(w, "title", doc->title[0] != '\0' ? doc->title : NULL);
    vlm_json_shut(w, '}');
}


static void
put_word(vlm_json_out_t *w, const vlm_document_page_t *page, const vlm_pdf_word_t *word)
{
    vlm_json_open(w, '{');
    vlm_json_add_open(w, "box", '[');
    vlm_json_put_double(w, word->x0);
    vlm_json_put_double(w, word->y0);
    vlm_json_put_double(w, word->x1);
    vlm_json_put_double(w, word->y1);
    vlm_json_shut(w, ']');
    vlm_json_add_bool(w, "hidden", (word->flags & VLM_PDF_HIDDEN) != 0);
    vlm_json_add_text(w, "text", page->text + word->first, word->bytes);
    vlm_json_shut(w, '}');
}


void
vlm_document_put_page(vlm_json_out_t *w, const vlm_document_page_t *page)
{
    size_t  i;

    vlm_json_open(w, '{');
    vlm_json_add_double(w, "height", page->height);
    vlm_json_add_int(w, "number", page->number);
    vlm_json_add_bool(w, "ocr", (page->flags & VLM_PDF_OCR) != 0);
    vlm_json_add_bool(w, "scan", (page->flags & VLM_PDF_SCAN) != 0);
    vlm_json_add_text(w, "text", page->text, page->bytes);
    vlm_json_add_double(w, "width", page->width);
    vlm_json_add_open(w, "words", '[');

    for (i = 0; i < page->n_words; i++) {
        put_word(w, page, &page->words[i]);
    }

    vlm_json_shut(w, ']');
    vlm_json_shut(w, '}');
}
