/*
 * A font of strokes.  A glyph is its width and some strokes, in hexadecimal, x then y: capitals and
 * digits stand from 0 to a (10), small letters from 4 to a, descenders go to d.  A stroke with a ~
 * is a curve: it begins and ends at its first and last point and is drawn towards those between,
 * which it touches only halfway from one to the next (a quadratic B-spline).
 */

#include "robobrain/draw_text.h"

#include <string.h>

#define CAPITAL  10.0                  /* units from a capital's first point to its last */
#define WEIGHT   1.6                   /* units that a stroke is wide, half of it to each side */
#define GAP      2.7                   /* units between two glyphs, from point to point */
#define PIECES   6                     /* straight ones, of a curve from one point to the next */

static const char *const  glyphs[0x7f - 0x20] = {
    "2",                                           /* blank */
    "0 00 07|0a 0a", "2 00 03|20 23", "6 20 1a|50 4a|03 63|07 67",
    "7 ~72 60 00 05 75 7a 1a 08|30 3a", "8 80 0a|~20 00 04 44 40 20|~66 46 4a 8a 86 66",
    "8 ~8a 23 10 50 64 06 0a 7a 76", "0 00 03",    /* ! " # $ % & ' */
    "2 ~20 02 0a 2c", "2 ~00 22 2a 0c", "4 22 28|03 47|43 07", "6 33 39|06 66", "1 ~19 1b 0c",
    "4 06 46", "0 0a 0a", "5 50 0a",               /* ( ) * + , - . / */
    "6 ~30 00 0a 6a 60 30", "3 02 30 3a", "6 ~02 00 60 64 0a|0a 6a",
    "6 ~01 10 60 65 25|~25 65 6a 1a 09", "6 4a 40 07 67", "6 60 10 05|~05 14 64 6a 1a 09",
    "6 ~51 30 00 07|~34 04 0a 6a 64 34", "6 00 60 2a",
    "6 ~30 00 05 65 60 30|~35 05 0a 6a 65 35", "6 ~30 00 06 66 60 30|~63 6a 3a 19",
    "0 04 04|0a 0a", "1 14 14|~1a 1b 0d", "5 53 06 59", "5 04 54|08 58", "5 03 56 09",
    "6 ~02 00 60 64 34 37|3a 3a",                  /* : ; < = > ? */
    "9 ~67 64 34 37 67|~64 68 98 95 90 00 0a 7a",  /* @ */
    "8 0a 40 8a|17 77", "7 00 0a|~00 20 60 65 25 05|~25 75 7a 2a 0a|05 25", "7 ~72 60 00 0a 6a 78",
    "7 00 0a|~00 20 70 7a 2a 0a", "6 60 00 0a 6a|05 55", "6 60 00 0a|05 55",
    "7 ~72 60 00 0a 7a 76|76 46", "7 00 0a|70 7a|05 75",
    "0 00 0a", "5 ~50 57 5a 0a 07", "7 00 0a|60 06|24 7a", "6 00 0a 6a",
    "8 0a 00 47 80 8a", "7 0a 00 7a 70", "8 ~40 00 0a 8a 80 40", "7 00 0a|~00 20 70 76 26 06",
    "8 ~40 00 0a 8a 80 40|57 8b", "7 00 0a|~00 20 70 75 25 05|35 7a", "7 ~72 60 00 05 75 7a 1a 08",
    "8 00 80|40 4a", "7 ~00 06 0a 7a 76 70", "8 00 4a 80", "c 00 3a 60 9a c0", "7 00 7a|70 0a",
    "8 00 45 80|45 4a", "7 00 70 0a 7a",           /* A to Z */
    "2 20 00 0c 2c", "5 00 5a", "2 00 20 2c 0c", "6 03 30 63", "6 0b 6b", "2 00 22",
    "6 ~05 14 64 68 6a|~66 06 0a 4a 68", "6 00 0a|~06 14 64 6a 1a 08", "5 ~55 44 04 0a 4a 59",
    "6 60 6a|~66 54 04 0a 5a 68", "6 07 67|~67 64 04 0a 5a 69", "4 ~40 10 13 1a|04 44",
    "6 ~66 54 04 0a 5a 68|~64 6a 6d 1d 0c", "6 00 0a|~06 14 64 67 6a", "0 04 0a|01 01",
    "2 ~24 2b 2d 0d|21 21", "5 00 0a|54 08|26 5a", "2 ~00 07 0a 2a",
    "a 04 0a|~06 14 54 57 5a|~56 64 a4 a7 aa", "6 04 0a|~06 14 64 67 6a", "6 ~34 04 0a 6a 64 34",
    "6 04 0d|~06 14 64 6a 1a 08", "6 64 6d|~66 54 04 0a 5a 68", "4 04 0a|~07 04 44",
    "5 ~55 44 04 07 57 5a 1a 09", "4 ~11 18 1a 4a|04 44", "6 ~04 07 0a 5a 68|64 6a", "6 04 3a 64",
    "8 04 2a 44 6a 84", "5 04 5a|54 0a", "6 04 3a|~64 3a 2d 0d", "5 04 54 0a 5a",  /* a to z */
    "3 ~30 10 16 06|~06 16 1c 3c", "0 00 0d", "3 ~00 20 26 36|~36 26 2c 0c", "6 ~07 05 25 47 67 65"
};

typedef struct {
    vlm_stroke_t  strokes[VLM_MAX_STROKES];
    size_t        n;
} outline_t;


static int
hex(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}


static const char *
find(char c)
{
    return (c >= 0x20 && c < 0x7f) ? glyphs[c - 0x20] : NULL;
}


static void
add(outline_t *o, vlm_spot_t a, vlm_spot_t b)
{
    if (o->n < VLM_MAX_STROKES) {
        o->strokes[o->n++] = (vlm_stroke_t) { a, b };
    }
}


static vlm_spot_t
middle(vlm_spot_t a, vlm_spot_t b)
{
    return (vlm_spot_t) { (a.x + b.x) / 2, (a.y + b.y) / 2 };
}


/* From a to b, drawn towards c. */
static void
add_curve(outline_t *o, vlm_spot_t a, vlm_spot_t c, vlm_spot_t b)
{
    int         i;
    double      t, u;
    vlm_spot_t  at, last;

    last = a;

    for (i = 1; i <= PIECES; i++) {
        t = (double) i / PIECES;
        u = 1 - t;
        at.x = u * u * a.x + 2 * u * t * c.x + t * t * b.x;
        at.y = u * u * a.y + 2 * u * t * c.y + t * t * b.y;
        add(o, last, at);
        last = at;
    }
}


static void
add_stroke(outline_t *o, const vlm_spot_t *p, size_t n, int curved)
{
    size_t      i;
    vlm_spot_t  last, next;

    last = p[0];

    for (i = 1; i < n; i++) {
        if (!curved) {
            add(o, p[i - 1], p[i]);

        } else if (i + 1 < n) {
            next = i + 2 < n ? middle(p[i], p[i + 1]) : p[i + 1];
            add_curve(o, last, p[i], next);
            last = next;
        }
    }
}


/* A glyph's strokes, its upper left corner at `at`, a unit being that many pixels. */
static void
trace(outline_t *o, const char *glyph, vlm_spot_t at, double unit)
{
    int         curved;
    size_t      n;
    vlm_spot_t  p[16];

    o->n = 0;

    for (glyph++; *glyph != '\0'; ) {
        glyph++;                                   /* a blank or a | */
        curved = *glyph == '~';
        glyph += curved;

        for (n = 0; *glyph != '\0' && *glyph != '|'; glyph += 2) {
            glyph += *glyph == ' ';
            p[n++] = (vlm_spot_t) { at.x + hex(glyph[0]) * unit, at.y + hex(glyph[1]) * unit };
        }

        add_stroke(o, p, n, curved);
    }
}


double
vlm_text_width(const char *text, size_t n, double size)
{
    size_t       i;
    double       width;
    const char  *glyph;

    width = n > 0 ? WEIGHT - GAP : 0;

    for (i = 0; i < n; i++) {
        glyph = find(text[i]);

        if (glyph == NULL) {
            return -1;
        }

        width += hex(glyph[0]) + GAP;
    }

    return width * size / (CAPITAL + WEIGHT);
}


void
vlm_text_draw(vlm_canvas_t *c, const char *text, size_t n, vlm_spot_t at, double size,
              vlm_ink_t ink)
{
    size_t       i;
    double       unit;
    outline_t    o;
    const char  *glyph;

    unit = size / (CAPITAL + WEIGHT);
    at.x += WEIGHT / 2 * unit;
    at.y += WEIGHT / 2 * unit;

    for (i = 0; i < n; i++) {
        glyph = find(text[i]);

        if (glyph != NULL) {
            trace(&o, glyph, at, unit);
            vlm_draw_strokes(c, o.strokes, o.n, WEIGHT * unit, ink);
            at.x += (hex(glyph[0]) + GAP) * unit;
        }
    }
}
