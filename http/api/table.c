
/*
 * The fields of requests that control an answer: one table of all interfaces,
 * and the function that reads an object by it.  The LoRA service's fields,
 * which are read as pydantic reads them, are in lib/api/lite_fields.c.
 *
 * Fields that are not in the table are ignored, as clients send more of them
 * each year, and Ollama's options may be those of another runner; a known one
 * of the wrong type is refused by its name.  null is no field.
 */


#include "fields.h"
#include <inttypes.h>
#include <math.h>


typedef enum {
    NGX_HTTP_VLM_REAL = 0,                     /* numbers, from low to high */
    NGX_HTTP_VLM_WHOLE,
    NGX_HTTP_VLM_ENDLESS,                      /* whole, or -1: no limit */
    NGX_HTTP_VLM_ONE,                          /* 1: there is one answer */
    NGX_HTTP_VLM_ABSENT,                       /* a feature that there is not:
                                                  a value that disables it */
    NGX_HTTP_VLM_VALUE,                        /* of any type, for its reader */
    NGX_HTTP_VLM_FLAG,
    NGX_HTTP_VLM_STRING,
    NGX_HTTP_VLM_ARRAY,
    NGX_HTTP_VLM_OBJECT
} ngx_http_vlm_type_e;


typedef struct {
    const char                   *name;
    ngx_uint_t                    of;          /* the objects that have it */
    ngx_http_vlm_type_e           type;
    ngx_http_vlm_number_e         target;
    double                        low, high;
    ngx_http_vlm_reader_t        *read;        /* or NULL; after the type was
                                                  checked */
    ngx_uint_t                    inner;       /* what an object has */
} ngx_http_vlm_field_t;


#define BRAIN       NGX_HTTP_VLM_OF_BRAIN
#define CHAT        NGX_HTTP_VLM_OF_CHAT
#define TEXT        NGX_HTTP_VLM_OF_TEXT
#define STREAM      NGX_HTTP_VLM_OF_STREAM
#define OLLAMA      NGX_HTTP_VLM_OF_OLLAMA
#define GENERATE    NGX_HTTP_VLM_OF_GENERATE
#define OPTIONS     NGX_HTTP_VLM_OF_OPTIONS
#define EMBEDDINGS  NGX_HTTP_VLM_OF_EMBEDDINGS
#define EMBED       NGX_HTTP_VLM_OF_EMBED

#define NUMBER(name, of, type, target, low, high)                             \
    { name, of, NGX_HTTP_VLM_##type, NGX_HTTP_VLM_##target, low, high, NULL, 0 }
#define FLAG(name, of, target)                                                \
    { name, of, NGX_HTTP_VLM_FLAG, NGX_HTTP_VLM_##target, 0, 1, NULL, 0 }
#define OTHER(name, of, type)                                                 \
    { name, of, NGX_HTTP_VLM_##type, NGX_HTTP_VLM_IGNORED, 0, 0, NULL, 0 }
#define READ(name, of, type, read, inner)                                     \
    { name, of, NGX_HTTP_VLM_##type, NGX_HTTP_VLM_IGNORED, 0, 0, read, inner }


/* fields of one object are read, and refused, in this order */

static const ngx_http_vlm_field_t  ngx_http_vlm_table[] = {

    /* how tokens are picked */

    NUMBER("temperature", BRAIN|CHAT|TEXT, REAL, TEMPERATURE, 0, 2),
    NUMBER("temperature", OPTIONS, REAL, TEMPERATURE, 0, 100),
    NUMBER("top_p", BRAIN|CHAT|TEXT|OPTIONS, REAL, TOP_P, 0, 1),
    NUMBER("top_k", CHAT|TEXT, WHOLE, TOP_K, -1, 1000),
    NUMBER("top_k", OPTIONS, WHOLE, TOP_K, -1, 2147483647),
    NUMBER("frequency_penalty", CHAT|TEXT|OPTIONS, REAL, FREQUENCY, -2, 2),
    NUMBER("presence_penalty", CHAT|TEXT|OPTIONS, REAL, PRESENCE, -2, 2),
    NUMBER("repetition_penalty", CHAT|TEXT, REAL, REPETITION, 0.1, 10),
    NUMBER("repeat_penalty", OPTIONS, REAL, REPETITION, 0.01, 10),
    NUMBER("no_repeat_ngram_size", CHAT|TEXT, WHOLE, NGRAM, 0, 64),
    READ("seed", BRAIN|CHAT|TEXT|OPTIONS, VALUE, ngx_http_vlm_value_seed, 0),
    READ("logit_bias", CHAT|TEXT, OBJECT, ngx_http_vlm_value_biases, 0),

    /* where the answer ends */

    NUMBER("max_tokens", BRAIN|CHAT|TEXT, ENDLESS, MAX_TOKENS, 1, 2147483647),
    NUMBER("max_completion_tokens", CHAT, ENDLESS, MAX_COMPLETION, 1,
           2147483647),
    NUMBER("num_predict", OPTIONS, WHOLE, MAX_TOKENS, -2, 2147483647),
    NUMBER("num_ctx", OPTIONS, WHOLE, IGNORED, 0, 2147483647),
    NUMBER("min_tokens", CHAT|TEXT, WHOLE, MIN_TOKENS, 0, 2147483647),
    READ("stop", BRAIN|CHAT|TEXT|OPTIONS, VALUE, ngx_http_vlm_value_stops, 0),

    /* the form of the answer */

    OTHER("n", CHAT|TEXT, ONE),
    OTHER("best_of", TEXT, ONE),
    OTHER("echo", TEXT, ABSENT),
    OTHER("suffix", TEXT, ABSENT),
    FLAG("stream", CHAT|TEXT|OLLAMA|GENERATE, STREAM),
    READ("stream_options", CHAT|TEXT, OBJECT, ngx_http_vlm_value_streams,
         STREAM),
    FLAG("include_usage", STREAM, INCLUDE),
    FLAG("timings_per_token", CHAT|TEXT, TIMINGS),
    FLAG("timings", BRAIN|CHAT|TEXT|OLLAMA|GENERATE, TIMINGS),
    NUMBER("logprobs", TEXT, WHOLE, TOP_LOGPROBS, 0, VLM_TOP_LOGPROBS),
    FLAG("logprobs", CHAT|OLLAMA|GENERATE, LOGPROBS),
    NUMBER("top_logprobs", CHAT|OLLAMA|GENERATE, WHOLE, TOP_LOGPROBS, 0,
           VLM_TOP_LOGPROBS),
    FLAG("parallel_tool_calls", CHAT, IGNORED),
    READ("format", BRAIN|OLLAMA|GENERATE, VALUE, ngx_http_vlm_value_format, 0),
    READ("think", OLLAMA|GENERATE, VALUE, ngx_http_vlm_value_think, 0),
    READ("task", CHAT|OLLAMA|GENERATE, VALUE, ngx_http_vlm_value_task, 0),

    /* Ollama's, of a prompt */

    FLAG("truncate", OLLAMA|GENERATE|EMBED, TRUNCATE),
    READ("options", OLLAMA|GENERATE, OBJECT, NULL, OPTIONS),
    OTHER("options", EMBED, OBJECT),
    READ("keep_alive", OLLAMA|GENERATE, VALUE, ngx_http_vlm_value_keep, 0),
    OTHER("messages", OLLAMA, ARRAY),
    OTHER("suffix", GENERATE, STRING),
    OTHER("template", GENERATE, STRING),
    OTHER("system", GENERATE, STRING),
    FLAG("raw", GENERATE, RAW),
    OTHER("context", GENERATE, ARRAY),
    OTHER("prompt", GENERATE, STRING),

    /* of vectors */

    READ("encoding_format", EMBEDDINGS, VALUE, ngx_http_vlm_value_encoding, 0),
    READ("dimensions", EMBEDDINGS|EMBED, VALUE, ngx_http_vlm_value_dimensions,
         0)
};


static ngx_int_t
ngx_http_vlm_table_number(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_field_t *row, double x)
{
    char        range[64];
    ngx_uint_t  whole, limit;

    whole = row->type != NGX_HTTP_VLM_REAL;
    limit = row->type == NGX_HTTP_VLM_ENDLESS;

    if ((x >= row->low && x <= row->high && (!whole || x == floor(x)))
        || (limit && x == -1))
    {
        ngx_http_vlm_fields(ctx)->number[row->target] = x;
        return NGX_OK;
    }

    if (whole) {
        (void) snprintf(range, sizeof(range), "%" PRId64 " to %" PRId64,
                        (int64_t) row->low, (int64_t) row->high);

    } else {
        (void) snprintf(range, sizeof(range), "%g to %g", row->low, row->high);
    }

    return ngx_http_vlm_fail_input(ctx, "%s is not a %snumber from %s%s",
                                   row->name, whole ? "whole " : "", range,
                                   limit ? ", or -1 for no limit" : "");
}


/* a field that clients send, of which only one value is possible here */

static ngx_int_t
ngx_http_vlm_table_fixed(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_field_t *row, const vlm_json_t *value)
{
    if (row->type == NGX_HTTP_VLM_ABSENT) {
        return !vlm_json_is_true(value) ? NGX_OK
               : ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                        "unsupported_parameter",
                                        "%s is not supported by this server",
                                        row->name);
    }

    return vlm_json_number(value, 0) == 1 ? NGX_OK
           : ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                    vlm_json_is_number(value)
                                    ? "unsupported_value" : NULL,
                                    "%s can only be 1: a request has one "
                                    "answer", row->name);
}


static ngx_int_t
ngx_http_vlm_table_one(ngx_http_vlm_ctx_t *ctx,
    const ngx_http_vlm_field_t *row, const vlm_json_t *value)
{
    ngx_uint_t  i;

    static const struct {
        int        (*is)(const vlm_json_t *json);
        const char  *name;
    } types[] = {
        { vlm_json_is_bool, "a boolean" },
        { vlm_json_is_string, "a string" },
        { vlm_json_is_array, "an array" },
        { vlm_json_is_object, "an object" }
    };

    if (row->type < NGX_HTTP_VLM_ONE) {
        return ngx_http_vlm_table_number(ctx, row,
                                         vlm_json_number(value, NAN));
    }

    if (row->type < NGX_HTTP_VLM_VALUE) {
        return ngx_http_vlm_table_fixed(ctx, row, value);
    }

    if (row->type == NGX_HTTP_VLM_VALUE) {
        return NGX_OK;
    }

    i = row->type - NGX_HTTP_VLM_FLAG;

    if (!types[i].is(value)) {
        return ngx_http_vlm_fail_input(ctx, "%s is not %s", row->name,
                                       types[i].name);
    }

    ngx_http_vlm_fields(ctx)->number[row->target] = vlm_json_is_true(value);

    return NGX_OK;
}


/* an object within the request, or the request itself, which has no name */

static ngx_int_t
ngx_http_vlm_table_read(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t of, const char *outer)
{
    ngx_uint_t                   i;
    const vlm_json_t            *value;
    const ngx_http_vlm_field_t  *row;

    for (i = 0; i < sizeof(ngx_http_vlm_table) / sizeof(*row); i++) {
        row = &ngx_http_vlm_table[i];
        value = row->of & of ? vlm_json_get(json, row->name) : NULL;

        if (vlm_json_is_null(value)) {
            continue;
        }

        ngx_http_vlm_fail_param(ctx, "%s%s%s", outer, *outer ? "." : "",
                                row->name);

        if (ngx_http_vlm_table_one(ctx, row, value) != NGX_OK
            || (row->read && row->read(ctx, value, row->name) != NGX_OK)
            || (row->inner && ngx_http_vlm_table_read(ctx, value, row->inner,
                                                      row->name) != NGX_OK))
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_fields_read(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t of)
{
    return ngx_http_vlm_table_read(ctx, json, of, "");
}
