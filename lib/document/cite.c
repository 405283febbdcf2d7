/*
 * Compares an answer with its sources: marks, numbers and terms.  cite_box.c finds the places on a
 * page.
 */

#include "document/cite.h"

#include <stdlib.h>
#include <string.h>

#include "document/cite_box.h"
#include "document/number.h"
#include "document/terms.h"

#define TERMS_SHARE  0.6                   /* of the answer's, that a cited source has */
#define LIST         99                    /* the longest list that is counted */
#define MARK         64                    /* bytes of a mark, at most */
#define DIGITS       3                     /* of a source's number, at most */

typedef struct {
    uint64_t  *value;
    size_t     n, room;
} values_t;


/* ---- numbers of texts ----------------------------------------------------------------------- */

static int
add_value(values_t *v, uint64_t value)
{
    size_t     room;
    uint64_t  *more;

    if (v->n == v->room) {
        room = v->room ? 2 * v->room : 64;
        more = realloc(v->value, room * sizeof(*more));

        if (more == NULL) {
            return -1;
        }

        v->value = more;
        v->room = room;
    }

    v->value[v->n++] = value;

    return 0;
}


static int
add_numbers(values_t *v, const char *text, size_t bytes)
{
    size_t        i;
    vlm_number_t  number = { 0 };

    while (vlm_number_next(&number, text, bytes)) {
        for (i = 0; i < number.n_values; i++) {
            if (add_value(v, number.value[i])) {
                return -1;
            }
        }
    }

    return 0;
}


static int
by_value(const void *a, const void *b)
{
    const uint64_t  x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


static int
has_number(const values_t *v, const vlm_number_t *number)
{
    size_t  i;

    for (i = 0; i < number->n_values && v->n > 0; i++) {
        if (bsearch(&number->value[i], v->value, v->n, sizeof(*v->value), by_value) != NULL) {
            return 1;
        }
    }

    return 0;
}


/* ---- numbers of the answer that state something --------------------------------------------- */

static int
is_of_mark(char c)
{
    return (c >= '0' && c <= '9') || c == ',' || c == ' ';
}


/* The number that a text begins with, of *digits; 0: none, or not that of a source. */
static size_t
source_of(const char *text, size_t bytes, size_t n_sources, size_t *digits)
{
    size_t  n, value;

    for (n = value = 0; n < bytes && text[n] >= '0' && text[n] <= '9'; n++) {
        value = n < DIGITS ? 10 * value + (size_t) (text[n] - '0') : 0;
    }

    *digits = n;

    return n <= DIGITS && value <= n_sources ? value : 0;
}


/*
 * The bytes of a mark such as [2] or [1, 3], which the text begins with; 0: it has none.  Each
 * number is a source's: [1,350] is a number in brackets.
 */
static size_t
mark_of(const char *text, size_t bytes, size_t n_sources)
{
    size_t  at, n;

    if (bytes == 0 || text[0] != '[') {
        return 0;
    }

    for (at = 1; at < bytes && at <= MARK && is_of_mark(text[at]); at += n > 0 ? n : 1) {
        if (source_of(text + at, bytes - at, n_sources, &n) == 0 && n > 0) {
            return 0;
        }
    }

    return at < bytes && text[at] == ']' ? at + 1 : 0;
}


/* Is byte at within a mark? */
static int
in_mark(const char *text, size_t bytes, size_t at, size_t n_sources)
{
    size_t  first;

    for (first = at; first > 0 && at - first < MARK && is_of_mark(text[first - 1]); first--) { }

    return first > 0 && mark_of(text + first - 1, bytes - (first - 1), n_sources) > 0;
}


/* Is this the next number of a list, "3." or "3)" at the beginning of a line? */
static int
in_list(const char *text, size_t bytes, const vlm_number_t *n, uint32_t *last)
{
    size_t    at, end;
    uint32_t  value;

    for (at = n->first; at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'); at--) { }

    end = n->first + n->bytes;

    if ((at > 0 && text[at - 1] != '\n') || n->bytes > 2 || end + 1 >= bytes
        || (text[end] != '.' && text[end] != ')') || text[end + 1] != ' ')
    {
        return 0;
    }

    for (value = 0, at = n->first; at < end; at++) {
        if (text[at] < '0' || text[at] > '9') {
            return 0;
        }

        value = 10 * value + (uint32_t) (text[at] - '0');
    }

    if (value > LIST || (value != 1 && value != *last + 1)) {
        return 0;
    }

    *last = value;

    return 1;
}


/* "page 3" or "p. 3", where 3 is the page of a source. */
static int
is_page(const char *text, const vlm_number_t *n, const vlm_cite_t *sources, size_t n_sources)
{
    size_t    i, at;
    uint32_t  value;

    for (at = n->first; at > 0 && text[at - 1] == ' '; at--) { }

    if (!((at >= 4 && strncmp(text + at - 4, "page", 4) == 0)
          || (at >= 4 && strncmp(text + at - 4, "Page", 4) == 0)
          || (at >= 2 && strncmp(text + at - 2, "p.", 2) == 0)))
    {
        return 0;
    }

    for (value = 0, i = 0; i < n->bytes && i < 6; i++) {
        if (text[n->first + i] < '0' || text[n->first + i] > '9') {
            return 0;
        }

        value = 10 * value + (uint32_t) (text[n->first + i] - '0');
    }

    for (i = 0; i < n_sources; i++) {
        if (sources[i].number == value) {
            return 1;
        }
    }

    return 0;
}


typedef struct {
    const char        *text;
    size_t             bytes;
    const vlm_cite_t  *sources;
    size_t             n_sources;
    vlm_number_t       number;             /* the latest */
    uint32_t           list;               /* the latest number of a list */
} stated_t;


/* The next number of the answer that states something; 0: there is none. */
static int
next_stated(stated_t *s)
{
    while (vlm_number_next(&s->number, s->text, s->bytes)) {
        if (!in_mark(s->text, s->bytes, s->number.first, s->n_sources)
            && !in_list(s->text, s->bytes, &s->number, &s->list)
            && !is_page(s->text, &s->number, s->sources, s->n_sources))
        {
            return 1;
        }
    }

    return 0;
}


/* ---- which sources are cited ---------------------------------------------------------------- */

/* The sources whose numbers stand in marks. */
static void
read_marks(vlm_cite_t *sources, size_t n, const char *text, size_t bytes)
{
    size_t  at, end, source, digits;

    for (at = end = 0; at < bytes; at += digits > 0 ? digits : 1) {
        if (at >= end) {
            end = at + mark_of(text + at, bytes - at, n);
        }

        source = source_of(text + at, bytes - at, n, &digits);

        if (at < end && source > 0) {
            sources[source - 1].cited = 1;
        }
    }
}


/* Terms that two texts share, of those that the first has; both ascend. */
static size_t
shared(const vlm_terms_t *a, const vlm_terms_t *b)
{
    size_t  i, j, n;

    for (i = j = n = 0; i < a->n && j < b->n; ) {
        if (a->terms[i].hash == b->terms[j].hash) {
            n++;
            i++;
            j++;
        } else if (a->terms[i].hash < b->terms[j].hash) {
            i++;
        } else {
            j++;
        }
    }

    return n;
}


/* Parts of the answer that a source's text has. */
#define ALL_NUMBERS   1                    /* and there are some */
#define SOME_NUMBERS  2
#define WORDS         4

static int
numbers_of(const values_t *have, stated_t answer)
{
    size_t  n, found;

    for (n = found = 0; next_stated(&answer); n++) {
        found += has_number(have, &answer.number);
    }

    return (found > 0 ? SOME_NUMBERS : 0) | (found > 0 && found == n ? ALL_NUMBERS : 0);
}


static int
find_agreement(vlm_cite_t *s, const vlm_terms_t *terms, const values_t *numbers,
    const stated_t *answer, const char *text, size_t bytes)
{
    vlm_terms_t  have;

    if (vlm_terms_of(&have, text, bytes) != 0) {
        return -1;
    }

    s->agrees = numbers_of(numbers, *answer);

    if (terms->n > 0 && (double) shared(terms, &have) >= TERMS_SHARE * (double) terms->n) {
        s->agrees |= WORDS;
    }

    free(have.terms);

    return 0;
}


/* Where sources have numbers of the answer, the words of one without them are not enough. */
static void
decide(vlm_cite_t *sources, size_t n)
{
    int     enough;
    size_t  i;

    for (i = 0, enough = WORDS; i < n; i++) {
        if (sources[i].agrees & SOME_NUMBERS) {
            enough = WORDS | SOME_NUMBERS;
        }
    }

    for (i = 0; i < n; i++) {
        sources[i].cited |= (sources[i].agrees & ALL_NUMBERS) != 0
                            || (sources[i].agrees & enough) == enough;
    }
}


/* ---- all of it ------------------------------------------------------------------------------ */

static int
check_source(vlm_cite_t *s, const vlm_terms_t *terms, const stated_t *answer, values_t *all)
{
    int       rc;
    char     *text;
    size_t    bytes;
    values_t  own = { 0 };

    text = vlm_prompt_text(&s->page, s->first, s->bytes, &bytes);

    if (text == NULL) {
        return -1;
    }

    rc = add_numbers(&own, text, bytes);

    if (rc == 0) {
        rc = add_numbers(all, text, bytes);
    }

    if (rc == 0) {
        rc = add_numbers(all, s->name, strlen(s->name));     /* it is in the prompt */
    }

    if (rc == 0 && own.n > 0) {
        qsort(own.value, own.n, sizeof(*own.value), by_value);
    }

    if (rc == 0) {
        rc = find_agreement(s, terms, &own, answer, text, bytes);
    }

    free(text);
    free(own.value);

    return rc;
}


static void
find_unsupported(values_t *all, stated_t answer, vlm_unsupported_t *unsupported)
{
    if (all->n > 0) {
        qsort(all->value, all->n, sizeof(*all->value), by_value);
    }

    while (unsupported->n < VLM_CITE_NUMBERS && next_stated(&answer)) {
        if (!has_number(all, &answer.number)) {
            unsupported->range[unsupported->n++] = (vlm_cite_range_t) {
                .first = answer.number.first, .bytes = answer.number.bytes
            };
        }
    }
}


static int
find_boxes(vlm_cite_t *s, const vlm_terms_t *terms, stated_t answer)
{
    int       rc = 0;
    size_t    i;
    values_t  wanted = { 0 };

    while (rc == 0 && next_stated(&answer)) {
        for (i = 0; i < answer.number.n_values && rc == 0; i++) {
            rc = add_value(&wanted, answer.number.value[i]);
        }
    }

    if (rc == 0 && wanted.n > 0) {
        qsort(wanted.value, wanted.n, sizeof(*wanted.value), by_value);
        vlm_cite_number_boxes(s, wanted.value, wanted.n);
    }

    free(wanted.value);

    if (rc == 0 && s->n_boxes == 0) {
        rc = vlm_cite_word_boxes(s, terms);
    }

    return rc;
}


int
vlm_cite(vlm_cite_t *sources, size_t n, const char *answer, size_t bytes,
    vlm_unsupported_t *unsupported)
{
    int          rc;
    size_t       i;
    values_t     all = { 0 };
    stated_t     stated = { .text = answer, .bytes = bytes, .sources = sources, .n_sources = n };
    vlm_terms_t  terms;

    unsupported->n = 0;

    if (vlm_terms_of(&terms, answer, bytes) != 0) {
        return -1;
    }

    for (i = 0, rc = 0; i < n; i++) {
        sources[i].cited = 0;
        sources[i].n_boxes = 0;
    }

    read_marks(sources, n, answer, bytes);

    for (i = 0; i < n && rc == 0; i++) {
        rc = check_source(&sources[i], &terms, &stated, &all);
    }

    if (rc == 0) {
        decide(sources, n);
    }

    for (i = 0; i < n && rc == 0; i++) {
        if (sources[i].cited) {
            rc = find_boxes(&sources[i], &terms, stated);
        }
    }

    if (rc == 0) {
        find_unsupported(&all, stated, unsupported);
    }

    free(terms.terms);
    free(all.value);

    return rc;
}
