/* The frames of vlm-pdf, read as if their writer were hostile. */

#include "document/frame.h"

#include <string.h>

#include "base/utf8.h"


static int
broken(vlm_err_t *err, const char *what)
{
    return vlm_fail(err, VLM_EINPUT, "the PDF reader's answer is damaged: %s", what);
}


/* Whole characters of UTF-8 without control characters, but for those that separate lines. */
static int
is_text(const char *text, size_t bytes, int lines)
{
    size_t  i;

    for (i = 0; i < bytes; i++) {
        if (((unsigned char) text[i] < 0x20 && !(lines && (text[i] == '\n' || text[i] == '\t')))
            || text[i] == 0x7f)
        {
            return 0;
        }
    }

    return vlm_utf8_whole(text, bytes) == bytes;
}


static size_t
characters(const char *text, size_t bytes)
{
    size_t  i, n;

    for (i = n = 0; i < bytes; i++) {
        n += ((unsigned char) text[i] & 0xc0) != 0x80;
    }

    return n;
}


int
vlm_frame_head(const void *head, uint32_t *kind, uint32_t *bytes, vlm_err_t *err)
{
    uint32_t  n[2];

    memcpy(n, head, sizeof(n));

    if (n[0] < VLM_FRAME_INFO || n[0] > VLM_FRAME_DENIED) {
        return broken(err, "a frame of an unknown kind");
    }

    if (n[1] > VLM_FRAME_MAX) {
        return broken(err, "a frame that is too long");
    }

    *kind = n[0];
    *bytes = n[1];

    return 0;
}


int
vlm_frame_is_last(uint32_t kind)
{
    return kind == VLM_FRAME_ERROR || kind == VLM_FRAME_END || kind == VLM_FRAME_KILLED;
}


void
vlm_frame_write_head(void *head, vlm_frame_kind_t kind, uint32_t bytes)
{
    const uint32_t  n[2] = { kind, bytes };

    memcpy(head, n, sizeof(n));
}


static int
read_info(vlm_frames_t *frames, const char *body, uint32_t bytes, vlm_frame_t *frame,
    vlm_err_t *err)
{
    if (frames->to_read != 0) {
        return broken(err, "the number of pages is said twice");
    }

    if (bytes < 8 || bytes > 8 + VLM_FRAME_TITLE) {
        return broken(err, "the first frame has a wrong length");
    }

    memcpy(&frame->pages, body, 4);
    memcpy(&frame->to_read, body + 4, 4);
    frame->text = body + 8;
    frame->bytes = bytes - 8;

    if (frame->pages < 1 || frame->pages > VLM_PDF_PAGES
        || frame->to_read < 1 || frame->to_read > frame->pages)
    {
        return broken(err, "an impossible number of pages");
    }

    if (frame->to_read > frames->max_pages) {
        return broken(err, "more pages than were asked for");
    }

    if (!is_text(frame->text, frame->bytes, 0)) {
        return broken(err, "a title that is not UTF-8");
    }

    frames->to_read = frame->to_read;

    return 0;
}


/* A box within its page; comparisons with NaN are false. */
static int
is_box(const vlm_pdf_word_t *word, const vlm_pdf_page_head_t *page)
{
    return word->x0 >= 0 && word->x0 <= word->x1 && word->x1 <= page->width
           && word->y0 >= 0 && word->y0 <= word->y1 && word->y1 <= page->height;
}


/* Words follow each other in the text, begin and end at whole characters and are not empty. */
static int
check_words(const vlm_pdf_page_head_t *page, const vlm_pdf_word_t *words, const char *text,
    vlm_err_t *err)
{
    size_t                 i, end;
    const vlm_pdf_word_t  *word;

    end = 0;

    for (i = 0; i < page->words; i++) {
        word = &words[i];

        if (word->first < end || word->bytes < 1 || word->first > page->text_bytes
            || word->bytes > page->text_bytes - word->first)
        {
            return broken(err, "a word outside its page's text");
        }

        end = (size_t) word->first + word->bytes;

        if ((text[word->first] & 0xc0) == 0x80
            || (end < page->text_bytes && (text[end] & 0xc0) == 0x80))
        {
            return broken(err, "a word that begins or ends within a character");
        }

        if (!is_box(word, page)) {
            return broken(err, "a word outside its page");
        }

        if (word->flags > VLM_PDF_HIDDEN) {
            return broken(err, "unknown flags of a word");
        }
    }

    return 0;
}


int
vlm_frame_page(const vlm_pdf_page_head_t *page, const vlm_pdf_word_t *words, const char *text,
    vlm_err_t *err)
{
    /* 200 inches, Acrobat's limit, times a user unit of 75,000. */
    if (!(page->width > 0 && page->width <= 14400.f * 75000
          && page->height > 0 && page->height <= 14400.f * 75000))
    {
        return broken(err, "a page without a size");
    }

    if (page->flags > (VLM_PDF_SCAN | VLM_PDF_OCR) && page->flags != VLM_PDF_DAMAGED) {
        return broken(err, "unknown flags of a page");
    }

    if (page->flags == VLM_PDF_DAMAGED && (page->words > 0 || page->text_bytes > 0)) {
        return broken(err, "text of a page that cannot be read");
    }

    if (!is_text(text, page->text_bytes, 1)) {
        return broken(err, "text that is not UTF-8");
    }

    return check_words(page, words, text, err);
}


static int
read_page(vlm_frames_t *frames, const char *body, uint32_t bytes, vlm_frame_t *frame,
    vlm_err_t *err)
{
    vlm_pdf_page_head_t  *page = &frame->page;

    if (bytes < sizeof(*page)) {
        return broken(err, "a page that is too short");
    }

    memcpy(page, body, sizeof(*page));

    if (page->words > VLM_PDF_WORDS || page->text_bytes > VLM_PDF_TEXT
        || bytes != sizeof(*page) + (uint64_t) page->words * sizeof(vlm_pdf_word_t)
                    + page->text_bytes)
    {
        return broken(err, "a page whose length is not that of its parts");
    }

    frame->words = (const vlm_pdf_word_t *) (const void *) (body + sizeof(*page));
    frame->text = (const char *) (frame->words + page->words);
    frame->bytes = page->text_bytes;

    /* Prompts and page numbers count on there being all pages up to the last. */
    if (page->number != frames->last + 1 || page->number > frames->to_read) {
        return broken(err, "pages out of order");
    }

    if (vlm_frame_page(page, frame->words, frame->text, err)) {
        return -1;
    }

    frames->characters += characters(frame->text, frame->bytes);

    if (frames->characters > frames->max_characters) {
        return broken(err, "more text than was asked for");
    }

    frames->last = page->number;
    frames->n_pages++;

    return 0;
}


static int
read_picture(vlm_frames_t *frames, const char *body, uint32_t bytes, vlm_frame_t *frame,
    vlm_err_t *err)
{
    static const char  magic[] = "\211PNG\r\n\032\n";

    if (bytes < 12 + sizeof(magic) - 1 || memcmp(body + 12, magic, sizeof(magic) - 1) != 0) {
        return broken(err, "a picture that is no PNG");
    }

    memcpy(&frame->number, body, 4);
    memcpy(&frame->width, body + 4, 4);
    memcpy(&frame->height, body + 8, 4);
    frame->text = body + 12;
    frame->bytes = bytes - 12;

    if (frames->pictured || frame->number == 0 || frame->number != frames->picture) {
        return broken(err, "a picture that was not asked for");
    }

    if (frame->width < 1 || frame->width > VLM_PDF_SIDE
        || frame->height < 1 || frame->height > VLM_PDF_SIDE)
    {
        return broken(err, "a picture of an impossible size");
    }

    frames->pictured = 1;

    return 0;
}


static int
read_end(vlm_frames_t *frames, const char *body, uint32_t bytes, vlm_frame_t *frame,
    vlm_err_t *err)
{
    if (bytes != 4) {
        return broken(err, "an end of a wrong length");
    }

    memcpy(&frame->read, body, 4);

    if (frame->read != frames->n_pages) {
        return broken(err, "a number of pages that is not that of the pages sent");
    }

    if (frames->picture != 0 && !frames->pictured) {
        return broken(err, "the picture is missing");
    }

    return 0;
}


static int
read_sentence(const char *body, uint32_t bytes, vlm_frame_t *frame, vlm_err_t *err)
{
    if (bytes < 1 || bytes > VLM_FRAME_ERROR_TEXT || !is_text(body, bytes, 0)) {
        return broken(err, "a reason that is not a sentence");
    }

    frame->text = body;
    frame->bytes = bytes;

    return 0;
}


int
vlm_frame_read(vlm_frames_t *frames, uint32_t kind, const void *body, uint32_t bytes,
    vlm_frame_t *frame, vlm_err_t *err)
{
    memset(frame, 0, sizeof(*frame));
    frame->kind = kind;

    if (frames->ended) {
        return broken(err, "a frame after the last");
    }

    if (frames->to_read == 0 && kind != VLM_FRAME_INFO && kind != VLM_FRAME_ERROR
        && kind != VLM_FRAME_KILLED && kind != VLM_FRAME_DENIED)
    {
        return broken(err, "pages before their number");
    }

    if (frames->denied && !vlm_frame_is_last(kind)) {
        return broken(err, "files that were denied, and no end");
    }

    frames->denied = kind == VLM_FRAME_DENIED;
    frames->ended = vlm_frame_is_last(kind);

    switch (kind) {
    case VLM_FRAME_INFO:    return read_info(frames, body, bytes, frame, err);
    case VLM_FRAME_PAGE:    return read_page(frames, body, bytes, frame, err);
    case VLM_FRAME_PICTURE: return read_picture(frames, body, bytes, frame, err);
    case VLM_FRAME_DENIED:
    case VLM_FRAME_KILLED:
    case VLM_FRAME_ERROR:   return read_sentence(body, bytes, frame, err);
    case VLM_FRAME_END:     return read_end(frames, body, bytes, frame, err);
    default:                return broken(err, "a frame of an unknown kind");
    }
}
