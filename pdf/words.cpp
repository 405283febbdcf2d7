/* Words by poppler's interface for C++: see words.h. */

#include "words.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <poppler-document.h>
#include <poppler-global.h>
#include <poppler-page.h>

#include "document/frame.h"

#define UNKNOWN  0xfffd                    /* the replacement character */


struct pdf_words_s {
    std::unique_ptr<poppler::document>  document;
};


static void
say_nothing(const std::string &, void *)
{
}


pdf_words_t *
pdf_words_open(const char *data, size_t bytes)
{
    poppler::set_debug_error_function(say_nothing, NULL);

    if (bytes > INT_MAX) {
        return NULL;
    }

    std::unique_ptr<poppler::document>  document(
        poppler::document::load_from_raw_data(data, (int) bytes));

    return document ? new pdf_words_s { std::move(document) } : NULL;
}


void
pdf_words_close(pdf_words_t *words)
{
    delete words;
}


static std::vector<uint32_t>
characters_of(const poppler::ustring &text)
{
    std::vector<uint32_t>  characters;

    for (size_t i = 0; i < text.size(); i++) {
        uint32_t  c = text[i];

        if ((c & 0xfc00) == 0xd800 && i + 1 < text.size() && (text[i + 1] & 0xfc00) == 0xdc00) {
            c = 0x10000 + ((c & 0x3ff) << 10) + (text[++i] & 0x3ff);
        }

        characters.push_back((c & ~0x7ffu) == 0xd800 ? UNKNOWN : c);
    }

    return characters;
}


static pdf_box_t
box_of(const poppler::rectf &r)
{
    return { r.left(), r.top(), r.right(), r.bottom() };
}


/* poppler gives zeros for the box of a character that a word does not have. */
static bool
has_box(const poppler::text_box &word, size_t i)
{
    const poppler::rectf  r = word.char_bbox(i);

    return r.left() != 0 || r.top() != 0 || r.right() != 0 || r.bottom() != 0;
}


/*
 * A glyph of a vertical font hangs from the middle of its upper side.  poppler's box has that point
 * in its lower left corner, as seen in the direction of an upright page.
 */
static void
hang(std::vector<pdf_char_t>::iterator first, std::vector<pdf_char_t>::iterator end)
{
    static const double  shift[4][2] = { { 1, 0.5 }, { -0.5, 1 }, { -1, -0.5 }, { 0.5, -1 } };
    const int            rotation = first->rotation;
    const double         size = rotation % 2 ? first->word.x1 - first->word.x0
                                             : first->word.y1 - first->word.y0;
    const double         x = size * shift[rotation][0], y = size * shift[rotation][1];

    for (; first != end; first++) {
        for (pdf_box_t *box : { &first->box, &first->word }) {
            box->x0 += x;
            box->x1 += x;
            box->y0 += y;
            box->y1 += y;
        }
    }
}


/*
 * poppler cuts a text that it cannot convert, so that characters and boxes do not pair: the whole
 * word's box is then that of each.
 */
static void
add_word(std::vector<pdf_char_t> &all, const poppler::text_box &word)
{
    std::vector<uint32_t>  characters = characters_of(word.text());
    const size_t           n = characters.size();
    const bool             paired = n > 0 && has_box(word, n - 1) && !has_box(word, n);
    pdf_char_t             added = { };

    if (!paired) {
        characters.push_back(UNKNOWN);
    }

    added.rotation = (uint8_t) (word.rotation() & 3);
    added.word = box_of(word.bbox());

    for (size_t i = 0; i < characters.size(); i++) {
        added.c = characters[i];
        added.box = paired ? box_of(word.char_bbox(i)) : added.word;
        all.push_back(added);
    }

    if (word.get_wmode() == poppler::text_box::vertical_wmode) {
        hang(all.end() - (ptrdiff_t) characters.size(), all.end());
    }

    all.back().ends_word = 1;
    all.back().space = word.has_space_after();
}


/*
 * Which fonts are vertical takes poppler a third of its time for a page, so it is asked only where
 * a line does not run to the right, or may do so because the page is turned.
 */
static std::vector<poppler::text_box>
words_of(const poppler::page &page)
{
    std::vector<poppler::text_box>  words = page.text_list();
    bool                            turned = page.orientation() != poppler::page::portrait;

    for (const poppler::text_box &word : words) {
        turned = turned || word.rotation() != 0;
    }

    return turned ? page.text_list(poppler::page::text_list_include_font) : std::move(words);
}


pdf_char_t *
pdf_words_page(pdf_words_t *words, uint32_t number, size_t *n)
{
    pdf_char_t                      *copy;
    std::vector<pdf_char_t>          all;
    std::unique_ptr<poppler::page>   page(words->document->create_page((int) number));

    if (page) {
        for (const poppler::text_box &word : words_of(*page)) {
            add_word(all, word);
        }
    }

    *n = all.size() < VLM_PDF_TEXT ? all.size() : VLM_PDF_TEXT;

    if (*n == 0) {
        return NULL;
    }

    copy = (pdf_char_t *) malloc(*n * sizeof(*copy));

    if (copy == NULL) {
        std::abort();                      /* as a vector does: the parent says why */
    }

    std::copy(all.begin(), all.begin() + (ptrdiff_t) *n, copy);

    return copy;
}
