/* The child: poppler's pages as frames. */

#include "pdf.h"

#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <poppler.h>
#include <string.h>

#include "order.h"

#define SEEN_DPI   50.0                    /* of the picture in which words are looked for */
#define SEEN       8                       /* levels, of 255, that differ in a box with something
                                              visible */
#define MAX_DPI    300.0                   /* of a page's picture */
#define SCAN       0.8                     /* of a page's area: more is a scan */

typedef struct {
    double    width, height;               /* points */
    GString  *text;                        /* without control characters */
    GArray   *words;                       /* vlm_pdf_word_t */
} page_text_t;


/*
 * Control characters become spaces, and so do line feeds unless they are kept; a text that is not
 * UTF-8 is cut.  The bytes that are left.
 */
static size_t
clean(char *text, size_t bytes, int keep_lines)
{
    size_t       i;
    const char  *end;

    if (!g_utf8_validate(text, (gssize) bytes, &end)) {
        bytes = (size_t) (end - text);
    }

    for (i = 0; i < bytes; i++) {
        if (((unsigned char) text[i] < 0x20 && !(keep_lines && text[i] == '\n'))
            || text[i] == 0x7f)
        {
            text[i] = ' ';
        }
    }

    return bytes;
}


static int
write_error(int out, const char *sentence)
{
    char    text[VLM_FRAME_ERROR_TEXT];
    size_t  bytes;

    g_strlcpy(text, sentence, sizeof(text));
    bytes = clean(text, strlen(text), 0);

    return pdf_write_frame(out, VLM_FRAME_ERROR, text, bytes);
}


/* ---- words -------------------------------------------------------------------------------- */

static float
within(double v, double most)
{
    return (float) (v >= 0 ? v <= most ? v : most : 0);    /* NaN is 0 */
}


static void
add_box(vlm_pdf_word_t *word, const PopplerRectangle *r, double width, double height)
{
    const float  x0 = within(MIN(r->x1, r->x2), width), x1 = within(MAX(r->x1, r->x2), width);
    const float  y0 = within(MIN(r->y1, r->y2), height), y1 = within(MAX(r->y1, r->y2), height);

    if (word->bytes == 0) {
        word->x0 = x0;
        word->y0 = y0;
        word->x1 = x1;
        word->y1 = y1;
        return;
    }

    word->x0 = MIN(word->x0, x0);
    word->y0 = MIN(word->y0, y0);
    word->x1 = MAX(word->x1, x1);
    word->y1 = MAX(word->y1, y1);
}


/* Appends a character, to a new word if word is NULL.  The word; NULL: there are too many. */
static vlm_pdf_word_t *
extend(page_text_t *t, vlm_pdf_word_t *word, const char *p, size_t bytes,
    const PopplerRectangle *box)
{
    if (word == NULL && t->words->len < VLM_PDF_WORDS) {
        g_array_set_size(t->words, t->words->len + 1);
        word = &g_array_index(t->words, vlm_pdf_word_t, t->words->len - 1);
        word->first = (uint32_t) t->text->len;
    }

    if (word != NULL) {
        add_box(word, box, t->width, t->height);
        word->bytes += (uint32_t) bytes;
    }

    g_string_append_len(t->text, p, (gssize) bytes);

    return word;
}


/* Appends at most *left characters, and finds their words, which are what spaces separate. */
static void
append_text(page_text_t *t, const char *text, size_t bytes, const PopplerRectangle *boxes,
    size_t step, uint32_t *left)
{
    const char      *p, *next;
    vlm_pdf_word_t  *word;

    word = NULL;

    for (p = text; p < text + bytes && *left > 0; p = next, boxes += step, (*left)--) {
        next = g_utf8_next_char(p);

        if (g_unichar_isspace(g_utf8_get_char(p))) {
            g_string_append_len(t->text, p, next - p);
            word = NULL;
        } else {
            word = extend(t, word, p, (size_t) (next - p), boxes);
        }
    }
}


static void
append_separator(page_text_t *t, char c, uint32_t *left)
{
    if (t->text->len > 0 && *left > 0) {
        g_string_append_c(t->text, c);
        (*left)--;
    }
}


/* ---- pieces -------------------------------------------------------------------------------- */

typedef struct {
    const char              *text;         /* without spaces at its ends */
    size_t                   bytes;
    const PopplerRectangle  *boxes;        /* of its characters */
    size_t                   row;
} source_t;

typedef struct {
    GArray  *pieces;                       /* pdf_piece_t */
    GArray  *sources;                      /* source_t, as many */
    size_t   row;
} pieces_t;


/* A gap as wide as a character is high separates two columns, or two cells of a table. */
static int
is_apart(const PopplerRectangle *a, const PopplerRectangle *b)
{
    const double  height = MAX(fabs(a->y2 - a->y1), fabs(b->y2 - b->y1));

    return MIN(b->x1, b->x2) - MAX(a->x1, a->x2) > height
           || MIN(a->x1, a->x2) - MAX(b->x1, b->x2) > height;
}


static void
add_character(pieces_t *all, const char *p, const char *next, const PopplerRectangle *box,
    int begins)
{
    pdf_piece_t  *piece;
    source_t     *source;

    if (begins) {
        g_array_set_size(all->pieces, all->pieces->len + 1);
        g_array_set_size(all->sources, all->sources->len + 1);
    }

    piece = &g_array_index(all->pieces, pdf_piece_t, all->pieces->len - 1);
    source = &g_array_index(all->sources, source_t, all->sources->len - 1);

    if (begins) {
        *piece = (pdf_piece_t) { (float) MIN(box->x1, box->x2), (float) MAX(box->x1, box->x2), 0 };
        *source = (source_t) { .text = p, .boxes = box, .row = all->row };
    }

    piece->x0 = MIN(piece->x0, (float) MIN(box->x1, box->x2));
    piece->x1 = MAX(piece->x1, (float) MAX(box->x1, box->x2));
    piece->characters++;
    source->bytes = (size_t) (next - source->text);
}


/* Cuts poppler's text into pieces: at the ends of rows and at gaps. */
static void
find_pieces(pieces_t *all, const char *text, size_t bytes, const PopplerRectangle *boxes,
    guint n_boxes)
{
    guint                    i;
    gunichar                 c;
    const char              *p, *next;
    const PopplerRectangle  *last;

    last = NULL;

    for (p = text, i = 0; p < text + bytes && i < n_boxes; p = next, i++) {
        next = g_utf8_next_char(p);
        c = g_utf8_get_char(p);

        if (c == '\n') {
            all->row++;
            last = NULL;

        } else if (!g_unichar_isspace(c)) {
            add_character(all, p, next, &boxes[i], last == NULL || is_apart(last, &boxes[i]));
            last = &boxes[i];
        }
    }
}


/* Appends the pieces in the order of reading: a row's are separated by a tab. */
static void
append_pieces(page_text_t *t, const pieces_t *all, uint32_t *left)
{
    size_t     i, *order;
    source_t  *source, *last;

    order = g_new(size_t, 2 * (size_t) all->pieces->len);
    pdf_order((const pdf_piece_t *) (const void *) all->pieces->data, all->pieces->len,
              (float) t->width, order, order + all->pieces->len);

    for (i = 0, last = NULL; i < all->sources->len; i++, last = source) {
        source = &g_array_index(all->sources, source_t, order[i]);

        if (last != NULL) {
            append_separator(t, last->row == source->row ? '\t' : '\n', left);
        }

        append_text(t, source->text, source->bytes, source->boxes, 1, left);
    }

    g_free(order);
}


/* The page's own text. */
static void
append_page(page_text_t *t, PopplerPage *page, uint32_t *left)
{
    char              *text;
    guint              n_boxes;
    pieces_t           all = { 0 };
    PopplerRectangle  *boxes;

    text = poppler_page_get_text(page);
    boxes = NULL;
    n_boxes = 0;

    if (text != NULL && poppler_page_get_text_layout(page, &boxes, &n_boxes)) {
        all.pieces = g_array_new(FALSE, FALSE, sizeof(pdf_piece_t));
        all.sources = g_array_new(FALSE, FALSE, sizeof(source_t));

        find_pieces(&all, text, clean(text, strnlen(text, VLM_PDF_TEXT / 2), 1), boxes, n_boxes);
        append_pieces(t, &all, left);

        g_array_free(all.pieces, TRUE);
        g_array_free(all.sources, TRUE);
    }

    g_free(boxes);
    g_free(text);
}


/* ---- fields -------------------------------------------------------------------------------- */

/* The value that was filled in; NULL: none, or none that is text. */
static char *
field_value(PopplerFormField *field)
{
    switch (poppler_form_field_get_field_type(field)) {
    case POPPLER_FORM_FIELD_TEXT:
        return poppler_form_field_text_is_password(field) ? NULL
                                                          : poppler_form_field_text_get_text(field);
    case POPPLER_FORM_FIELD_CHOICE:
        return poppler_form_field_choice_get_text(field);
    default:
        return NULL;
    }
}


/*
 * poppler's text has no fields of a form.  Their areas count from the lower left corner of the
 * page before its rotation; on a page that lies on its side a field's box is the whole page.
 */
static void
append_fields(page_text_t *t, PopplerPage *page, uint32_t *left)
{
    char              *value;
    GList             *list, *l;
    PopplerRectangle   crop, box;

    list = poppler_page_get_form_field_mapping(page);
    poppler_page_get_crop_box(page, &crop);

    for (l = list; l != NULL && *left > 0; l = l->next) {
        box = ((PopplerFormFieldMapping *) l->data)->area;

        if (fabs(crop.x2 - crop.x1 - t->width) < 1) {
            box.y1 = t->height - box.y1;
            box.y2 = t->height - box.y2;
        } else {
            box = (PopplerRectangle) { .x2 = t->width, .y2 = t->height };
        }

        value = field_value(((PopplerFormFieldMapping *) l->data)->field);

        if (value != NULL && *value != '\0' && t->text->len < VLM_PDF_TEXT / 2) {
            append_separator(t, '\n', left);
            append_text(t, value, clean(value, strnlen(value, VLM_PDF_TEXT / 2 - 1), 1), &box, 0,
                        left);
        }

        g_free(value);
    }

    poppler_page_free_form_field_mapping(list);
}


static cairo_surface_t *
draw(PopplerPage *page, double width, double height, double scale)
{
    cairo_t          *cr;
    cairo_status_t    status;
    cairo_surface_t  *surface;

    surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24,
                                         (int) CLAMP(ceil(width * scale - 0.001), 1, VLM_PDF_SIDE),
                                         (int) CLAMP(ceil(height * scale - 0.001), 1, VLM_PDF_SIDE));
    cr = cairo_create(surface);
    cairo_set_source_rgb(cr, 1, 1, 1);
    cairo_paint(cr);
    cairo_scale(cr, scale, scale);
    poppler_page_render(page, cr);
    status = cairo_status(cr);
    cairo_destroy(cr);
    cairo_surface_flush(surface);

    if (status != CAIRO_STATUS_SUCCESS || cairo_surface_status(surface) != CAIRO_STATUS_SUCCESS) {
        cairo_surface_destroy(surface);
        return NULL;
    }

    return surface;
}


/* Whether the pixels of a box differ by more than antialiasing of nothing. */
static int
is_blank(cairo_surface_t *surface, const vlm_pdf_word_t *word, double scale)
{
    int                   x, y, c, x0, y0, x1, y1, low[3], high[3];
    const unsigned char  *row;

    x0 = (int) (word->x0 * scale);
    y0 = (int) (word->y0 * scale);
    x1 = MIN((int) ceil(word->x1 * scale), cairo_image_surface_get_width(surface));
    y1 = MIN((int) ceil(word->y1 * scale), cairo_image_surface_get_height(surface));

    for (c = 0; c < 3; c++) {
        low[c] = 255;
        high[c] = 0;
    }

    for (y = y0; y < y1; y++) {
        row = cairo_image_surface_get_data(surface)
              + (size_t) y * (size_t) cairo_image_surface_get_stride(surface);

        for (x = x0; x < x1; x++) {
            for (c = 0; c < 3; c++) {
                low[c] = MIN(low[c], row[4 * x + c]);
                high[c] = MAX(high[c], row[4 * x + c]);
            }
        }
    }

    return high[0] - low[0] <= SEEN && high[1] - low[1] <= SEEN && high[2] - low[2] <= SEEN;
}


/* A word is hidden if it is white, has no ink, or lies under something. */
static void
find_hidden(page_text_t *t, PopplerPage *page)
{
    guint             i;
    double            scale;
    vlm_pdf_word_t   *word;
    cairo_surface_t  *surface;

    scale = MIN(SEEN_DPI / 72, 2000 / MAX(t->width, t->height));
    surface = t->words->len > 0 ? draw(page, t->width, t->height, scale) : NULL;

    if (surface == NULL) {
        return;
    }

    for (i = 0; i < t->words->len; i++) {
        word = &g_array_index(t->words, vlm_pdf_word_t, i);
        word->flags |= is_blank(surface, word, scale) ? VLM_PDF_HIDDEN : 0;
    }

    cairo_surface_destroy(surface);
}


static int
is_scan(const page_text_t *t, PopplerPage *page)
{
    int                  found;
    GList               *list, *l;
    PopplerRectangle    *r;

    found = 0;
    list = poppler_page_get_image_mapping(page);

    for (l = list; l != NULL; l = l->next) {
        r = &((PopplerImageMapping *) l->data)->area;
        found |= fabs(r->x2 - r->x1) * fabs(r->y2 - r->y1) >= SCAN * t->width * t->height;
    }

    poppler_page_free_image_mapping(list);

    return found;
}


/* ---- frames ------------------------------------------------------------------------------- */

static int
write_page(int out, PopplerPage *page, uint32_t number, const page_text_t *t)
{
    const size_t               bytes = t->words->len * sizeof(vlm_pdf_word_t);
    const vlm_pdf_page_head_t  head = {
        .number = number, .width = (float) t->width, .height = (float) t->height,
        .flags = is_scan(t, page) ? VLM_PDF_SCAN : 0, .words = t->words->len,
        .text_bytes = (uint32_t) t->text->len
    };

    return pdf_write_head(out, VLM_FRAME_PAGE, sizeof(head) + bytes + t->text->len)
           || pdf_write(out, &head, sizeof(head)) || pdf_write(out, t->words->data, bytes)
           || pdf_write(out, t->text->str, t->text->len) ? -1 : 0;
}


/* A size that poppler cannot say, or says wrongly, is that of a letter. */
static void
page_size(PopplerPage *page, double *width, double *height)
{
    poppler_page_get_size(page, width, height);
    *width = (float) *width;                             /* as the frame has them */
    *height = (float) *height;

    if (!(*width >= 1 && *width <= 1e9 && *height >= 1 && *height <= 1e9)) {
        *width = 612;
        *height = 792;
    }
}


/* Reads at most *left characters of a page and takes them off. */
static int
read_page(int out, PopplerPage *page, uint32_t number, uint32_t *left)
{
    int          rc;
    page_text_t  t = { 0 };

    page_size(page, &t.width, &t.height);
    t.text = g_string_new(NULL);
    t.words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t));

    append_page(&t, page, left);
    append_fields(&t, page, left);
    find_hidden(&t, page);

    rc = write_page(out, page, number, &t);
    g_array_free(t.words, TRUE);
    g_string_free(t.text, TRUE);

    return rc;
}


static int
read_pages(const pdf_job_t *job, int out, PopplerDocument *document, uint32_t to_read)
{
    uint32_t      i, left, n;
    PopplerPage  *page;

    left = job->characters;

    for (i = 0, n = 0; i < to_read && left > 0; i++) {
        page = poppler_document_get_page(document, (int) i);

        if (page == NULL) {
            continue;
        }

        if (read_page(out, page, i + 1, &left)) {
            return -1;
        }

        n++;
        g_object_unref(page);
    }

    if (n == 0) {
        return write_error(out, "damaged: none of its pages can be read");
    }

    return pdf_write_frame(out, VLM_FRAME_END, &n, 4);
}


static cairo_status_t
append(void *bytes, const unsigned char *data, unsigned int n)
{
    g_byte_array_append(bytes, data, n);

    return CAIRO_STATUS_SUCCESS;
}


static int
write_picture(int out, uint32_t number, cairo_surface_t *surface)
{
    int             rc;
    GByteArray     *png;
    const uint32_t  none = 0;
    const uint32_t  head[3] = { number, (uint32_t) cairo_image_surface_get_width(surface),
                                (uint32_t) cairo_image_surface_get_height(surface) };

    png = g_byte_array_new();

    if (cairo_surface_write_to_png_stream(surface, append, png) != CAIRO_STATUS_SUCCESS
        || png->len > VLM_FRAME_MAX - sizeof(head))
    {
        rc = write_error(out, "the page's picture is too large");

    } else {
        rc = pdf_write_head(out, VLM_FRAME_PICTURE, sizeof(head) + png->len)
             || pdf_write(out, head, sizeof(head)) || pdf_write(out, png->data, png->len)
             || pdf_write_frame(out, VLM_FRAME_END, &none, 4) ? -1 : 0;
    }

    g_byte_array_free(png, TRUE);

    return rc;
}


/* The page as large as fits job->pixels, at most MAX_DPI. */
static int
draw_page(const pdf_job_t *job, int out, PopplerDocument *document)
{
    int               rc;
    double            width, height, scale;
    PopplerPage      *page;
    cairo_surface_t  *surface;

    page = poppler_document_get_page(document, (int) job->picture - 1);

    if (page == NULL) {
        return write_error(out, "the page cannot be read");
    }

    page_size(page, &width, &height);
    scale = sqrt(job->pixels / (width * height));
    scale = MIN(scale, MIN(MAX_DPI / 72, (VLM_PDF_SIDE - 1) / MAX(width, height)));

    /* Sides are rounded up, to one pixel at least. */
    while (MAX(ceil(width * scale), 1) * MAX(ceil(height * scale), 1) > job->pixels) {
        scale *= 0.99;
    }

    surface = draw(page, width, height, scale);
    g_object_unref(page);

    if (surface == NULL) {
        return write_error(out, "the page cannot be drawn");
    }

    rc = write_picture(out, job->picture, surface);
    cairo_surface_destroy(surface);

    return rc;
}


/* ---- the document ------------------------------------------------------------------------- */

static int
write_info(int out, PopplerDocument *document, uint32_t pages, uint32_t to_read)
{
    char            *title;
    size_t           bytes;
    int              rc;
    const uint32_t   numbers[2] = { pages, to_read };

    title = poppler_document_get_title(document);
    bytes = 0;

    if (title != NULL) {
        bytes = clean(title, strnlen(title, VLM_FRAME_TITLE), 0);
    }

    rc = pdf_write_head(out, VLM_FRAME_INFO, sizeof(numbers) + bytes)
         || pdf_write(out, numbers, sizeof(numbers)) || pdf_write(out, title, bytes) ? -1 : 0;
    g_free(title);

    return rc;
}


static int
refuse(int out, const GError *error)
{
    char  text[VLM_FRAME_ERROR_TEXT];

    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED)) {
        return write_error(out, "a password is needed");
    }

    g_snprintf(text, sizeof(text), "damaged: %s", error->message);

    return write_error(out, text);
}


static int
read_document(const pdf_job_t *job, int out, PopplerDocument *document)
{
    const int       n = poppler_document_get_n_pages(document);
    const uint32_t  pages = (uint32_t) CLAMP(n, 0, VLM_PDF_PAGES);

    if (pages == 0) {
        return write_error(out, "damaged: it has no pages");
    }

    if (job->picture > pages) {
        return write_error(out, "there is no such page");
    }

    if (write_info(out, document, pages, MIN(pages, job->pages))) {
        return -1;
    }

    return job->picture ? draw_page(job, out, document)
                        : read_pages(job, out, document, MIN(pages, job->pages));
}


/* The walls forbid this later: fontconfig writes its cache, iconv loads the module of UTF-16. */
static int
prepare(void)
{
    return !FcInit() || g_iconv_open("UTF-8", "UTF-16BE") == (GIConv) -1 ? -1 : 0;
}


int
pdf_read(const pdf_job_t *job, int out)
{
    int               rc;
    char              text[VLM_FRAME_ERROR_TEXT];
    GError           *error;
    PopplerDocument  *document;

    if (prepare()) {
        return write_error(out, "fonts cannot be read");
    }

    if (pdf_walls(job, text, sizeof(text))) {
        return write_error(out, text);
    }

    error = NULL;
    document = poppler_document_new_from_fd(0, NULL, &error);

    if (document == NULL) {
        return refuse(out, error);
    }

    rc = read_document(job, out, document);
    g_object_unref(document);

    return rc;
}
