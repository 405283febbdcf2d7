/*
 * Words that a page has, but does not show: see hidden.h.
 *
 * The page is drawn with its text and without.  Where both are equal no text is seen, be it white,
 * or under a bar or a photo; where that of another line may be, a word is drawn alone.  Invisible
 * text (mode 3) is never drawn: as the layer of text of a scan, it may say what the picture behind
 * it shows, and it counts as seen where a picture is and has ink.
 */

#include "hidden.h"

#include <cairo.h>
#include <math.h>
#include <stdlib.h>

#include "glyphs.h"
#include "picture.h"

#define SEEN_DPI  50.0                     /* of the pictures in which words are looked for */
#define SEEN      8                        /* levels, of 255, that differ where something is seen */
#define BESIDE    5                        /* pixels, of a box without a width */
#define OVER      0.3                      /* of a box, where ink of the line above may be */
#define UNDER     0.25                     /* and of the line below */

typedef struct {
    int               x0, y0, x1, y1;      /* pixels; x1 and y1 are outside */
} area_t;

typedef struct {
    double            scale;               /* pixels a point */
    cairo_surface_t  *page;
    cairo_surface_t  *bare;                /* the page without text; NULL: it draws none */
    cairo_surface_t  *own;                 /* with text of the words in doubt alone; NULL: none */
    int               in_doubt;            /* there are such words */
    pdf_glyphs_t      glyphs;
} drawn_t;


/* ---- pixels --------------------------------------------------------------------------------- */

static const unsigned char *
row_of(cairo_surface_t *surface, int y)
{
    return cairo_image_surface_get_data(surface)
           + (size_t) y * (size_t) cairo_image_surface_get_stride(surface);
}


/* Do the pixels of an area differ by no more than antialiasing of nothing? */
static int
is_even(cairo_surface_t *surface, area_t a)
{
    int                   x, y, c, low[3] = { 255, 255, 255 }, high[3] = { 0 };
    const unsigned char  *row;

    for (y = a.y0; y < a.y1; y++) {
        row = row_of(surface, y);

        for (x = a.x0; x < a.x1; x++) {
            for (c = 0; c < 3; c++) {
                low[c] = MIN(low[c], row[4 * x + c]);
                high[c] = MAX(high[c], row[4 * x + c]);

                if (high[c] - low[c] > SEEN) {
                    return 0;
                }
            }
        }
    }

    return 1;
}


/* Does the text of a picture change the pixels of an area? */
static int
has_text(const drawn_t *d, cairo_surface_t *picture, area_t a)
{
    int                   i, y;
    const unsigned char  *with, *bare;

    for (y = a.y0; y < a.y1; y++) {
        with = row_of(picture, y);
        bare = row_of(d->bare, y);

        for (i = 4 * a.x0; i < 4 * a.x1; i++) {
            if (abs(with[i] - bare[i]) > SEEN) {
                return 1;
            }
        }
    }

    return 0;
}


static uint8_t *
glyphs_of(const drawn_t *d, int x, int y)
{
    return &d->glyphs.at[(size_t) y * (size_t) d->glyphs.width + (size_t) x];
}


/* Is a glyph drawn in an area, or next to it? */
static int
is_drawn(const drawn_t *d, area_t a)
{
    int  x, y;

    for (y = MAX(a.y0 - 1, 0); y < MIN(a.y1 + 1, d->glyphs.height); y++) {
        for (x = MAX(a.x0 - 1, 0); x < MIN(a.x1 + 1, d->glyphs.width); x++) {
            if (*glyphs_of(d, x, y) & PDF_GLYPH_STANDS) {
                return 1;
            }
        }
    }

    return 0;
}


static void
want(drawn_t *d, area_t a)
{
    int  x, y;

    for (y = a.y0; y < a.y1; y++) {
        for (x = a.x0; x < a.x1; x++) {
            *glyphs_of(d, x, y) |= PDF_GLYPH_WANTED;
        }
    }

    d->in_doubt = 1;
}


/* ---- areas ---------------------------------------------------------------------------------- */

/* A box without its sides, which its neighbours' ink touches, if it is wide enough for that. */
static area_t
area_of(const drawn_t *d, const vlm_pdf_word_t *word, int side)
{
    area_t  a = { (int) (word->x0 * d->scale), (int) (word->y0 * d->scale),
                  (int) ceil(word->x1 * d->scale), (int) ceil(word->y1 * d->scale) };

    if (a.x1 - a.x0 >= 2 * side + 2) {
        a.x0 += side;
        a.x1 -= side;
    }

    a.x1 = MIN(a.x1, d->glyphs.width);
    a.y1 = MIN(a.y1, d->glyphs.height);

    return a;
}


/* A box, or what lies around one without a width, as marks on letters have. */
static area_t
ink_of(const drawn_t *d, const vlm_pdf_word_t *word, int side)
{
    area_t     a = area_of(d, word, side);
    const int  more = MIN(a.x1 - a.x0, a.y1 - a.y0) > 1 ? 0 : BESIDE;

    return (area_t) { MAX(a.x0 - more, 0), MAX(a.y0 - more, 0),
                      MIN(a.x1 + more, d->glyphs.width), MIN(a.y1 + more, d->glyphs.height) };
}


/* Takes shares of a box off both of its ends, from from to end; a pixel is left. */
static void
cut(int *from, int *end, double v0, double v1, double first, double last)
{
    const int  a = (int) (v0 + first * (v1 - v0) + 0.5), b = (int) (v1 - last * (v1 - v0) + 0.5);

    *from = MIN(MAX(*from, a), MAX(*end - 1, *from));
    *end = MAX(MIN(*end, b), MIN(*from + 1, *end));
}


/* Takes shares off the upper and the lower end of a box, as its line's rotation has them. */
static area_t
trim(const drawn_t *d, const vlm_pdf_word_t *word, area_t a, unsigned rotation, double upper,
    double lower)
{
    const double  s = d->scale;
    const double  first = rotation == 0 || rotation == 3 ? upper : lower;
    const double  last = rotation == 0 || rotation == 3 ? lower : upper;

    if (rotation % 2 == 0) {
        cut(&a.y0, &a.y1, word->y0 * s, word->y1 * s, first, last);
    } else {
        cut(&a.x0, &a.x1, word->x0 * s, word->x1 * s, first, last);
    }

    return a;
}


/* The zone that most letters and digits have ink in, and no letter of another line. */
static area_t
core_of(const drawn_t *d, const vlm_pdf_word_t *word, unsigned rotation, int side)
{
    return trim(d, word, area_of(d, word, side), rotation, OVER, UNDER);
}


/* Where the origins of its own glyphs are: on its line, and not those of the line above. */
static area_t
origins_of(const drawn_t *d, const vlm_pdf_word_t *word, unsigned rotation)
{
    area_t  a = trim(d, word, area_of(d, word, 0), rotation, 0.5, 0);

    /* The next glyph's origin is at the end of this one. */
    if (rotation % 2 == 0) {
        a.x0 = MAX(a.x0 - 1, 0);
        a.x1 = MAX(a.x1 - 2, MIN(a.x0 + 2, d->glyphs.width));
    } else {
        a.y0 = MAX(a.y0 - 1, 0);
        a.y1 = MAX(a.y1 - 2, MIN(a.y0 + 2, d->glyphs.height));
    }

    return a;
}


/* ---- words ---------------------------------------------------------------------------------- */

/* Letters that stand above the others are no measure of what is seen, nor are signs. */
static int
is_measure(gunichar c)
{
    return g_unichar_isalnum(c) && g_unichar_type(c) != G_UNICODE_MODIFIER_LETTER;
}


/*
 * Does drawn text show in its core?  Some letters have their ink elsewhere, where that of other
 * lines may be, too: these are in doubt, until they are drawn alone.
 */
static int
is_shown(drawn_t *d, const vlm_pdf_word_t *box, unsigned rotation, int side)
{
    if (has_text(d, d->page, core_of(d, box, rotation, side))) {
        return 1;
    }

    if (d->own != NULL) {
        return has_text(d, d->own, ink_of(d, box, side));
    }

    if (has_text(d, d->page, ink_of(d, box, side))) {
        want(d, origins_of(d, box, rotation));
    }

    return 0;
}


/* Is the middle of a box in a picture? */
static int
is_on_picture(const drawn_t *d, const vlm_pdf_word_t *box)
{
    const area_t  a = area_of(d, box, 0);
    const int     x = (a.x0 + a.x1) / 2, y = (a.y0 + a.y1) / 2;

    return x >= 0 && x < d->glyphs.width && y >= 0 && y < d->glyphs.height
           && (*glyphs_of(d, x, y) & PDF_PICTURE);
}


/* Is anything seen of a word?  One without letters and digits may have its ink anywhere. */
static int
is_word_seen(drawn_t *d, const vlm_pdf_word_t *word, unsigned rotation, int drawn, int measured)
{
    const area_t  whole = area_of(d, word, 0);

    if (is_even(d->page, whole)) {
        return 0;
    }

    if (drawn) {
        return measured ? is_shown(d, word, rotation, 0) : has_text(d, d->page, ink_of(d, word, 0));
    }

    return is_on_picture(d, word)
           && (!measured || !is_even(d->page, core_of(d, word, rotation, 0)));
}


/* The letters of a scan are not just where its layer of text has them: their whole boxes count. */
static int
is_letter_seen(drawn_t *d, const vlm_pdf_word_t *c, int drawn)
{
    return !is_even(d->page, area_of(d, c, 1))
           && (drawn ? is_shown(d, c, c->flags, 1) : is_on_picture(d, c));
}


/*
 * Appends a word whose characters are c[0..n), in parts that are seen or hidden: white digits may
 * stand right behind a black one.  A sign goes with the letter or digit before it.
 */
static void
add_parts(GArray *words, const pdf_text_t *t, const vlm_pdf_word_t *c, guint n, drawn_t *d,
    int drawn)
{
    guint            i;
    uint32_t         flags = 0;
    vlm_pdf_word_t  *part = NULL;

    for (i = 0; i < n; i++, c++) {
        if (is_measure(g_utf8_get_char(t->text->str + c->first))) {
            flags = is_letter_seen(d, c, drawn) ? 0 : VLM_PDF_HIDDEN;
        }

        if (part == NULL || part->flags != flags) {
            g_array_append_val(words, *c);
            part = &g_array_index(words, vlm_pdf_word_t, words->len - 1);
            part->flags = flags;
            continue;
        }

        part->bytes += c->bytes;
        part->x0 = MIN(part->x0, c->x0);
        part->y0 = MIN(part->y0, c->y0);
        part->x1 = MAX(part->x1, c->x1);
        part->y1 = MAX(part->y1, c->y1);
    }
}


static int
has_measure(const pdf_text_t *t, const vlm_pdf_word_t *c, guint n)
{
    for (; n > 0; n--, c++) {
        if (is_measure(g_utf8_get_char(t->text->str + c->first))) {
            return 1;
        }
    }

    return 0;
}


/* The words, and parts of words, with VLM_PDF_HIDDEN where they are. */
static GArray *
marked(const pdf_text_t *t, drawn_t *d)
{
    int              drawn;
    guint            i, n;
    GArray          *words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t));
    vlm_pdf_word_t   word, *c = (vlm_pdf_word_t *) (void *) t->chars->data;

    for (i = 0; i < t->words->len; i++, c += n) {
        word = g_array_index(t->words, vlm_pdf_word_t, i);
        n = (guint) g_utf8_strlen(t->text->str + word.first, word.bytes);
        drawn = d->bare != NULL && is_drawn(d, area_of(d, &word, 0));

        if (!is_word_seen(d, &word, c->flags, drawn, has_measure(t, c, n))
            || (n > 1 && words->len + n + t->words->len - i > VLM_PDF_WORDS))
        {
            word.flags |= VLM_PDF_HIDDEN;
            g_array_append_val(words, word);

        } else {
            add_parts(words, t, c, n, d, drawn);
        }
    }

    return words;
}


/* ---- the page ------------------------------------------------------------------------------- */

static cairo_surface_t *
drawn_with(drawn_t *d, const pdf_text_t *t, PopplerPage *page, pdf_glyphs_kind_t kind)
{
    cairo_surface_t  *surface;

    d->glyphs.drawn = kind;
    pdf_glyphs_watch(&d->glyphs);
    surface = pdf_draw(page, t->width, t->height, d->scale);
    pdf_glyphs_watch(NULL);

    return surface;
}


/* NULL: the page cannot be drawn. */
static GArray *
find(drawn_t *d, const pdf_text_t *t, PopplerPage *page)
{
    GArray  *words;

    d->page = drawn_with(d, t, page, PDF_GLYPHS_ALL);

    if (d->page != NULL && d->glyphs.n > 0) {
        d->bare = drawn_with(d, t, page, PDF_GLYPHS_NONE);
    }

    if (d->page == NULL || (d->glyphs.n > 0 && d->bare == NULL)) {
        return NULL;
    }

    words = marked(t, d);

    if (d->in_doubt) {
        g_array_free(words, TRUE);
        d->own = drawn_with(d, t, page, PDF_GLYPHS_WANTED);
        words = d->own != NULL ? marked(t, d) : NULL;
    }

    return words;
}


int
pdf_hidden_find(pdf_text_t *t, PopplerPage *page)
{
    GArray   *words;
    drawn_t   d = { .scale = MIN(SEEN_DPI / 72, 2000 / MAX(t->width, t->height)) };

    pdf_draw_size(t->width, t->height, d.scale, &d.glyphs.width, &d.glyphs.height);
    d.glyphs.at = g_malloc0((size_t) d.glyphs.width * (size_t) d.glyphs.height);
    words = find(&d, t, page);

    if (words != NULL) {
        g_array_free(t->words, TRUE);
        t->words = words;
    }

    cairo_surface_destroy(d.page);         /* NULL is fine */
    cairo_surface_destroy(d.bare);
    cairo_surface_destroy(d.own);
    g_free(d.glyphs.at);

    return words != NULL ? 0 : -1;
}
