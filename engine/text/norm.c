/*
 * Canonical composition (NFC).  No other file of the engine includes utf8proc.
 *
 * utf8proc knows each character; the ordering of marks is done here, because utf8proc's own sort
 * takes the square of the length of a run of marks, and a client can send runs of any length.
 */

#include "text/norm.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/size.h"

#define FIRST_MARK      0x300          /* below it nothing is reordered or composed */
#define MAX_DECOMPOSED  4              /* code points of one's canonical decomposition */
#define FEW_MARKS       16             /* sorted in place; longer runs are counted */
#define N_CLASSES       256            /* combining classes are bytes */
#define BEFORE_FINALS   0x11a7         /* the vowel jamo in front of Hangul's final consonants */

typedef struct {
    int32_t  *cp;                      /* [room] decomposed text */
    int32_t  *sorted;                  /* [room] only while a long run is put in order */
    size_t    n, room;
} chars_t;


/* One character of text that is known to be UTF-8. */
static int32_t
next_char(const uint8_t **p)
{
    int32_t         cp;
    const uint8_t  *s;

    s = *p;

    if (s[0] < 0x80) {
        *p += 1;
        return s[0];
    }

    if (s[0] < 0xe0) {
        *p += 2;
        return (s[0] & 0x1f) << 6 | (s[1] & 0x3f);
    }

    cp = (s[1] & 0x3f) << 6 | (s[2] & 0x3f);

    if (s[0] < 0xf0) {
        *p += 3;
        return (s[0] & 0x0f) << 12 | cp;
    }

    *p += 4;

    return (s[0] & 0x07) << 18 | cp << 6 | (s[3] & 0x3f);
}


static int
combining_class(int32_t cp)
{
    return cp < FIRST_MARK ? 0 : utf8proc_get_property(cp)->combining_class;
}


/*
 * 1 if this character can change anything.  A 0 is certain: it has no canonical decomposition, does
 * not move, and never joins the one before it (marks and the jamo of Hangul may).
 */
static int
is_inert(int32_t cp)
{
    int32_t                     parts[MAX_DECOMPOSED];
    const utf8proc_property_t  *prop;

    if (cp < FIRST_MARK || (cp >= 0x3400 && cp < 0xa000)) {        /* Latin; CJK */
        return 1;
    }

    if (cp >= 0xac00 && cp < 0xd7a4) {                             /* Hangul syllables */
        return 1;
    }

    if (cp >= 0x1100 && cp < 0x1200) {                             /* jamo */
        return 0;
    }

    prop = utf8proc_get_property(cp);

    if (prop->combining_class != 0 || prop->category == UTF8PROC_CATEGORY_MN
        || prop->category == UTF8PROC_CATEGORY_MC || prop->category == UTF8PROC_CATEGORY_ME)
    {
        return 0;
    }

    return utf8proc_decompose_char(cp, parts, MAX_DECOMPOSED,
                                   UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL) == 1
           && parts[0] == cp;
}


int
vlm_norm_is_nfc(const char *text, size_t bytes)
{
    const uint8_t  *p, *end;

    p = (const uint8_t *) text;
    end = p + bytes;

    while (p < end) {
        if (*p < 0xcc) {               /* the first byte of U+0300 */
            p += *p < 0x80 ? 1 : 2;
            continue;
        }

        if (!is_inert(next_char(&p))) {
            return 0;
        }
    }

    return 1;
}


/* Puts a run of marks in the order of their classes; equal ones keep theirs. */
static void
sort_run(chars_t *c, size_t from, size_t to)
{
    size_t   i, j, at, n[N_CLASSES + 1];
    int32_t  cp;

    if (to - from <= FEW_MARKS) {
        for (i = from + 1; i < to; i++) {
            cp = c->cp[i];
            for (j = i; j > from && combining_class(c->cp[j - 1]) > combining_class(cp); j--) {
                c->cp[j] = c->cp[j - 1];
            }
            c->cp[j] = cp;
        }
        return;
    }

    memset(n, 0, sizeof(n));

    for (i = from; i < to; i++) {
        n[(uint8_t) combining_class(c->cp[i]) + 1]++;
    }

    for (i = 1; i <= N_CLASSES; i++) {
        n[i] += n[i - 1];
    }

    for (i = from; i < to; i++) {
        at = n[(uint8_t) combining_class(c->cp[i])]++;
        c->sorted[at] = c->cp[i];
    }

    memcpy(c->cp + from, c->sorted, (to - from) * sizeof(int32_t));
}


static void
sort_marks(chars_t *c)
{
    size_t  from, to;

    for (from = 0; from < c->n; from = to) {
        to = from + 1;
        if (combining_class(c->cp[from]) == 0) {
            continue;
        }

        while (to < c->n && combining_class(c->cp[to]) != 0) {
            to++;
        }

        sort_run(c, from, to);
    }
}


static void
decompose(chars_t *c, const char *text, size_t bytes)
{
    int32_t           cp;
    const uint8_t    *p, *end;
    utf8proc_ssize_t  n;

    p = (const uint8_t *) text;
    end = p + bytes;

    while (p < end) {
        cp = next_char(&p);
        n = utf8proc_decompose_char(cp, c->cp + c->n, (utf8proc_ssize_t) (c->room - c->n),
                                    UTF8PROC_STABLE | UTF8PROC_DECOMPOSE, NULL);
        if (n < 1 || n > MAX_DECOMPOSED) {
            c->cp[c->n] = cp;          /* not a character: it stays as it is */
            n = 1;
        }

        c->n += (size_t) n;
    }
}


/*
 * Composes between two U+11A7 at a time.  utf8proc counts final consonants from that vowel, so that
 * after a syllable it takes the vowel for "no final consonant" and drops it.  The vowel itself
 * starts a character and composes with nothing on either side, so that a text may be cut at it.
 */
static int
compose(chars_t *c)
{
    size_t            from, to, n;
    utf8proc_ssize_t  composed;

    for (n = 0, from = 0; from < c->n; from = to + 1) {

        for (to = from; to < c->n && c->cp[to] != BEFORE_FINALS; to++) { /* void */ }

        composed = utf8proc_normalize_utf32(c->cp + from, (utf8proc_ssize_t) (to - from),
                                            UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        if (composed < 0 || (size_t) composed > to - from) {
            return -1;
        }

        memmove(c->cp + n, c->cp + from, (size_t) composed * sizeof(int32_t));
        n += (size_t) composed;

        if (to < c->n) {
            c->cp[n++] = BEFORE_FINALS;
        }
    }

    c->n = n;

    return 0;
}


/* Bytes of UTF-8 become at most half as many code points again: U+01D5 is two bytes, then three. */
static int
make_room(chars_t *c, size_t bytes, vlm_err_t *err)
{
    uint64_t  room;

    memset(c, 0, sizeof(*c));

    room = vlm_add(vlm_add(bytes, bytes / 2), MAX_DECOMPOSED);

    c->cp = vlm_malloc(vlm_mul(room, sizeof(int32_t)));
    c->sorted = vlm_malloc(vlm_mul(room, sizeof(int32_t)));
    if (c->cp == NULL || c->sorted == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to normalise a text of %zu bytes", bytes);
    }

    c->room = room;

    return 0;
}


static void
free_room(chars_t *c)
{
    free(c->cp);
    free(c->sorted);
}


int
vlm_norm_nfc(const char *text, size_t bytes, char **out, size_t *out_bytes, vlm_err_t *err)
{
    size_t    i;
    uint8_t  *p;
    chars_t   c;

    *out = NULL;
    *out_bytes = 0;

    if (vlm_norm_is_nfc(text, bytes)) {
        return 0;
    }

    if (make_room(&c, bytes, err) != 0) {
        free_room(&c);
        return -1;
    }

    decompose(&c, text, bytes);
    sort_marks(&c);

    if (compose(&c) != 0) {
        free_room(&c);
        return vlm_fail(err, VLM_EINPUT, "a text of %zu bytes cannot be normalised", bytes);
    }

    p = vlm_malloc(vlm_mul(c.n, 4));
    if (p == NULL) {
        free_room(&c);
        return vlm_fail(err, VLM_EMEMORY, "no memory to normalise a text of %zu bytes", bytes);
    }

    *out = (char *) p;

    for (i = 0; i < c.n; i++) {
        p += utf8proc_encode_char(c.cp[i], p);
    }

    *out_bytes = (size_t) (p - (uint8_t *) *out);

    free_room(&c);

    return 0;
}
