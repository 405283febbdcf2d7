/* The pages and pieces of a prompt, from the scores of a search. */

#include "document/pick.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "document/terms.h"

#define BARE  64                           /* bytes of text: a page with less is looked at */


/* The source of a page, or NULL. */
static vlm_source_t *
find(vlm_source_t *sources, size_t n, uint32_t document, uint32_t page)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (sources[i].document == document && sources[i].page == page) {
            return &sources[i];
        }
    }

    return NULL;
}


static void
add(vlm_source_t *sources, size_t *n, const vlm_piece_t *piece, double score, int whole)
{
    sources[*n] = (vlm_source_t) {
        .document = piece->document, .page = piece->page, .first = piece->first,
        .bytes = piece->bytes, .score = score, .rank = (uint32_t) *n, .whole = whole
    };
    (*n)++;
}


/* Whole pages in the order of the documents, as far as there is room. */
static void
add_pages(vlm_source_t *sources, size_t *n, const uint32_t *pages, uint32_t n_documents)
{
    vlm_piece_t  at = { 0 };

    for (at.document = 0; at.document < n_documents; at.document++) {
        for (at.page = 1; at.page <= pages[at.document] && *n < VLM_PICK_WHOLE; at.page++) {
            if (find(sources, *n, at.document, at.page) == NULL) {
                add(sources, n, &at, 0, 1);
            }
        }
    }
}


/* The best pieces; those of the best pages become one whole page. */
static void
add_found(vlm_source_t *sources, size_t *n, vlm_pages_t mode, const vlm_piece_t *pieces,
    const double *scores, const size_t *best, size_t n_best)
{
    size_t              i, whole;
    const vlm_piece_t  *p;
    const vlm_source_t *s;

    for (i = whole = 0; i < n_best; i++) {
        p = &pieces[best[i]];
        s = find(sources, *n, p->document, p->page);

        if (s != NULL && s->whole) {
            continue;
        }

        if (whole < VLM_PICK_WHOLE) {
            add(sources, n, p, scores[best[i]], 1);
            whole++;

        } else if (mode == VLM_PAGES_AUTO) {
            add(sources, n, p, scores[best[i]], 0);
        }
    }
}


size_t
vlm_pick_pieces(vlm_source_t sources[VLM_PICK_MAX], size_t k, const vlm_piece_t *pieces,
    const double *scores, size_t n)
{
    size_t  i, j, found, n_best, best[VLM_PICK_PIECES];

    k = k < VLM_PICK_PIECES ? k : VLM_PICK_PIECES;
    n_best = vlm_best(best, k, scores, n);

    for (i = found = 0; i < n_best; i++) {
        add(sources, &found, &pieces[best[i]], scores[best[i]], 0);
    }

    for (i = 0; i < n && found < k; i++) {
        for (j = 0; j < n_best && best[j] != i; j++) { }

        if (j == n_best) {
            add(sources, &found, &pieces[i], 0, 0);
        }
    }

    return found;
}


/* Are there so few pages that each may be whole? */
static int
all_fit(const uint32_t *pages, uint32_t n_documents)
{
    uint32_t  i;
    uint64_t  sum;

    for (i = 0, sum = 0; i < n_documents; i++) {
        sum += pages[i];
    }

    return sum <= VLM_PICK_WHOLE;
}


size_t
vlm_pick(vlm_source_t sources[VLM_PICK_MAX], vlm_pages_t mode, const vlm_piece_t *pieces,
    const double *scores, size_t n, const uint32_t *pages, uint32_t n_documents)
{
    size_t  found, n_best, best[VLM_PICK_PIECES];

    if (mode == VLM_PAGES_TEXT) {
        return vlm_pick_pieces(sources, VLM_PICK_TEXT, pieces, scores, n);
    }

    found = 0;
    n_best = vlm_best(best, VLM_PICK_PIECES, scores, n);
    add_found(sources, &found, mode, pieces, scores, best, n_best);

    if (n_best == 0 || all_fit(pages, n_documents)) {
        add_pages(sources, &found, pages, n_documents);
    }

    return found;
}


/* Do the words of a phrase follow each other in a question?  A 0 is any number. */
static int
has_phrase(const uint32_t *asked, size_t n, const char *phrase)
{
    int        found;
    size_t     i, m;
    uint32_t  *words;

    if (vlm_terms_list(&words, &m, phrase, strlen(phrase)) != 0) {
        return 0;
    }

    for (i = 0, found = 0; i + m <= n && !found; i++) {
        found = memcmp(asked + i, words, m * sizeof(*words)) == 0;
    }

    free(words);

    return found;
}


/* "table 3", "in the table", "does the table show": a part of a page, not a piece of furniture. */
static int
has_part(const uint32_t *asked, size_t n, const char *name)
{
    char    phrase[64];
    size_t  i;

    static const char *const  forms[] = {
        "%s 0", "in the %s", "in this %s", "from the %s", "%s show", "%s shows", "%s shown",
        "%s says", "%s say", "%s on page", "%s on the page", "%s above", "%s below"
    };

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        (void) snprintf(phrase, sizeof(phrase), forms[i], name);

        if (has_phrase(asked, n, phrase)) {
            return 1;
        }
    }

    return 0;
}


/* Phrases that mean nothing else, and names of parts of a page that are also those of others. */
int
vlm_pick_shows(const char *question, size_t bytes)
{
    int        rc;
    size_t     i, n;
    uint32_t  *asked;

    static const char *const  phrases[] = {
        "chart", "charts", "graph", "graphs", "diagram", "diagrams", "picture", "pictures", "photo",
        "photos", "photograph", "photographs", "illustration", "screenshot", "sketch", "logo",
        "signature", "signatures", "who signed", "signed by", "handwriting", "handwritten",
        "a stamp", "stamp on", "stamped", "official seal", "company seal", "wax seal",
        "on the map", "a map of", "on the image", "on the drawing", "page layout", "layout of",
        "look like", "looks like", "what colour", "which colour", "what color", "which color",
        "tabelle", "abbildung", "bild", "diagramm", "unterschrift",
        "le tableau", "du tableau", "tableau 0", "l'image", "schéma", "la tabla", "tabla 0",
        "gráfico", "imagen", "la firma", "तालिका", "चित्र", "हस्ताक्षर",
        "表格", "图表", "图片", "图像", "照片", "签名", "印章"
    };
    static const char *const  names[] = {
        "table", "tables", "figure", "figures", "fig", "map", "maps", "plot", "plots", "image",
        "images", "drawing", "drawings", "stamp"
    };

    if (vlm_terms_list(&asked, &n, question, bytes) != 0) {
        return 0;
    }

    for (i = 0, rc = 0; i < sizeof(phrases) / sizeof(phrases[0]) && !rc; i++) {
        rc = has_phrase(asked, n, phrases[i]);
    }

    for (i = 0; i < sizeof(names) / sizeof(names[0]) && !rc; i++) {
        rc = has_part(asked, n, names[i]);
    }

    free(asked);

    return rc;
}


int
vlm_pick_picture(vlm_pages_t mode, int shows, int scan, size_t text_bytes)
{
    return mode == VLM_PAGES_PICTURES
           || (mode == VLM_PAGES_AUTO && (shows || scan || text_bytes < BARE));
}


static size_t
worst(const vlm_source_t *sources, size_t n, int whole)
{
    size_t  i, at;

    for (i = 0, at = n; i < n; i++) {
        if (sources[i].whole == whole && (at == n || sources[i].rank > sources[at].rank)) {
            at = i;
        }
    }

    return at;
}


/* The last source loses a part. */
static int
cut(vlm_source_t *s, vlm_pages_t mode)
{
    if (!s->whole || s->textless) {
        return 0;
    }

    if (s->picture && mode == VLM_PAGES_PICTURES) {
        s->textless = 1;
        return 1;
    }

    if (s->picture && s->bytes > 0) {
        s->picture = 0;
        return 1;
    }

    if (s->picture) {
        s->textless = 1;
        return 1;
    }

    s->whole = 0;

    return s->bytes > 0;
}


int
vlm_pick_drop(vlm_source_t *sources, size_t *n, vlm_pages_t mode)
{
    size_t  at;

    if (*n == 0) {
        return 0;
    }

    if (*n == 1) {
        return cut(&sources[0], mode);
    }

    at = worst(sources, *n, 0);

    if (at == *n) {
        at = worst(sources, *n, 1);
    }

    memmove(&sources[at], &sources[at + 1], (*n - at - 1) * sizeof(*sources));
    (*n)--;

    return 1;
}


static int
by_place(const void *a, const void *b)
{
    const vlm_source_t  *x = a, *y = b;

    if (x->whole != y->whole) {
        return y->whole - x->whole;
    }

    if (x->document != y->document) {
        return x->document < y->document ? -1 : 1;
    }

    if (x->page != y->page) {
        return x->page < y->page ? -1 : 1;
    }

    return (x->first > y->first) - (x->first < y->first);
}


void
vlm_pick_sort(vlm_source_t *sources, size_t n)
{
    if (n > 1) {
        qsort(sources, n, sizeof(*sources), by_place);
    }
}
