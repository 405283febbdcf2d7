/*
 * The numbers in a text, in a form that can be compared.
 *
 * A number is a run of decimal digits, of any script, with the separators within it: 1,234.5 and
 * 1.234,5 and 1 234,5 are the same number.  One that can be read in two ways, as 1.234, has both
 * values.  A run that is no number as a whole, as a date 15.03.2024 or a version 1.2.3, is taken as
 * several.  Sign, unit and percent sign do not belong to a number.
 */

#ifndef VLM_NUMBER_H
#define VLM_NUMBER_H

#include <stddef.h>
#include <stdint.h>

#define VLM_NUMBER_VALUES  2

typedef struct {
    size_t    first, bytes;                /* of the text; zeros before the first number */
    uint64_t  value[VLM_NUMBER_VALUES];    /* hashes: equal for equal numbers */
    size_t    n_values;                    /* 1 or 2 */
    size_t    single;                      /* before this byte each run of digits is a number */
} vlm_number_t;

/* The next number of a text, which is UTF-8 as far as it is looked at; 0: there is none. */
int vlm_number_next(vlm_number_t *number, const char *text, size_t bytes);

#endif
