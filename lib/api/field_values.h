/* Readers of fields that are more than a number or a boolean: for the table of fields.c. */

#ifndef VLM_FIELD_VALUES_H
#define VLM_FIELD_VALUES_H

#include "api/fields.h"

typedef struct {
    vlm_fields_t              *f;
    const vlm_fields_model_t  *model;
    vlm_err_t                 *err;
} vlm_field_reader_t;

/* Reads a value that is not null; returns as vlm_fields_read(). */
typedef int vlm_field_read_t(vlm_field_reader_t *r, const vlm_json_t *value, const char *name);

vlm_field_read_t  vlm_field_seed;              /* of 64 bits */
vlm_field_read_t  vlm_field_stops;             /* a string, or some */
vlm_field_read_t  vlm_field_biases;
vlm_field_read_t  vlm_field_streams;           /* beside "stream": true */
vlm_field_read_t  vlm_field_format;            /* "json", or a schema */
vlm_field_read_t  vlm_field_task;
vlm_field_read_t  vlm_field_think;             /* a boolean, or a level */
vlm_field_read_t  vlm_field_keep;              /* Ollama's keep_alive */
vlm_field_read_t  vlm_field_encoding;          /* of vectors */
vlm_field_read_t  vlm_field_dimensions;

#endif
