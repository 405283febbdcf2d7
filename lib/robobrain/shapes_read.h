/*
 * Readers for the pieces that coordinates are written in: numbers, tuples, strings, tags.  The
 * readers copy nothing.
 */

#ifndef VLM_SHAPES_READ_H
#define VLM_SHAPES_READ_H

#include <stdint.h>

#include "robobrain/shapes.h"

#define VLM_MAX_COORDINATE  1000000.0  /* a side has 32768 pixels: no coordinate is larger */
#define VLM_MAX_TUPLE       (2 * VLM_MAX_SHAPES)   /* numbers; those beyond it are left out */

typedef struct {
    uint32_t  n;
    double    v[VLM_MAX_TUPLE];        /* [n] */
} vlm_tuple_t;

typedef struct {
    const char   *name, *label;        /* [name_bytes]; [label_bytes] of alt or label, or NULL */
    size_t        name_bytes, label_bytes;
    int           closes;              /* </name> or <|name_end|> */
    vlm_tuple_t   places;              /* x1="..." y1="..." x2= and so on */
} vlm_tag_t;

/*
 * The punctuation at p < end, as ASCII: ( ) [ ] , - + : or ' ' for any blank, and its length.  0:
 * some other character, and length 1.  A full-width form counts as its ASCII twin, ';' as a comma.
 */
int vlm_scan_mark(const char *p, const char *end, size_t *bytes);

const char *vlm_skip_blanks(const char *p, const char *end);

/*
 * Returns the end of the number at p ("12", "-0.5", "40px"); or NULL: no number, too large, or part
 * of a word.
 */
const char *vlm_scan_number(double *v, const char *p, const char *end);

/*
 * Reads numbers with commas or blanks between them, each possibly named (x1=10).  Returns their
 * end; without any number that is p, and t->n is 0.
 */
const char *vlm_scan_numbers(vlm_tuple_t *t, const char *p, const char *end);

/* Returns the end of a bracket, numbers alone, and the matching bracket; or NULL. */
const char *vlm_scan_tuple(vlm_tuple_t *t, const char *p, const char *end);

/* Returns the quote that ends the string which begins with the quote at p; or NULL. */
const char *vlm_scan_string(const char *p, const char *end);

/* Returns the end of the tag at p, behind its >; or NULL: there is no tag. */
const char *vlm_scan_tag(vlm_tag_t *t, const char *p, const char *end);

/* 0 to 3 for x or x1, y or y1, x2, y2; 4, 5, ... for x3, y3, ...; or -1. */
int vlm_scan_axis(const char *name, size_t bytes);

/*
 * Writes the inside of a JSON string as a label: escapes undone, blanks made spaces, whole
 * characters.
 */
void vlm_scan_label(char label[64], const char *p, const char *end);

#endif
