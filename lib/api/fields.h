/*
 * The fields of requests that control an answer, of all interfaces but the LoRA service's
 * (lite.h): one table has the names, types and ranges.
 *
 * Fields that are not in the table are ignored, as clients send more of them each year, and
 * Ollama's options may be those of another runner; a known one of the wrong type is refused by its
 * name.  null is no field.
 */

#ifndef VLM_FIELDS_H
#define VLM_FIELDS_H

#include "api/constraint.h"
#include "base/logits.h"

#define VLM_FIELDS_STOPS  16
#define VLM_FIELDS_STOP   1024         /* bytes, of one of them */

/* Numbers and booleans; an absent one is NAN. */
typedef enum {
    VLM_FIELD_IGNORED = 0,             /* its type is checked */
    VLM_FIELD_TEMPERATURE,
    VLM_FIELD_TOP_P,
    VLM_FIELD_TOP_K,                   /* 0 and less: disabled */
    VLM_FIELD_FREQUENCY,
    VLM_FIELD_PRESENCE,
    VLM_FIELD_REPETITION,
    VLM_FIELD_MAX_TOKENS,              /* 0 and less: no limit */
    VLM_FIELD_MAX_COMPLETION,          /* the smaller of the two counts */
    VLM_FIELD_MIN_TOKENS,
    VLM_FIELD_NGRAM,
    VLM_FIELD_TOP_LOGPROBS,
    VLM_FIELD_STREAM,
    VLM_FIELD_INCLUDE,                 /* OpenAI's include_usage */
    VLM_FIELD_LOGPROBS,
    VLM_FIELD_TRUNCATE,
    VLM_FIELD_RAW,
    VLM_FIELD_THINK,
    VLM_FIELD_TIMINGS,
    VLM_FIELD_UNLOADS,                 /* Ollama's keep_alive is 0 */
    VLM_FIELD_BASE64,                  /* the form of vectors */
    VLM_FIELD_NUMBERS
} vlm_field_e;

/* The objects that have fields, as bits. */
enum {
    VLM_OF_BRAIN = 0x01,               /* RoboBrain's /api/chat */
    VLM_OF_CHAT = 0x02,                /* /v1/chat/completions */
    VLM_OF_TEXT = 0x04,                /* /v1/completions */
    VLM_OF_STREAM = 0x08,              /* their "stream_options" */
    VLM_OF_OLLAMA = 0x10,              /* Ollama's /api/chat */
    VLM_OF_GENERATE = 0x20,            /* /api/generate */
    VLM_OF_OPTIONS = 0x40,             /* their "options" */
    VLM_OF_EMBEDDINGS = 0x80,          /* /v1/embeddings */
    VLM_OF_EMBED = 0x100               /* /api/embed */
};

/* Settings that the values of some fields depend on. */
typedef struct {
    const char  *name;                 /* of the model, as the request has it */
    uint32_t     vocab;                /* tokens */
    uint32_t     hidden;               /* numbers of a vector */
    int          thinks;               /* it can think before it answers */
} vlm_fields_model_t;

typedef struct {
    double            number[VLM_FIELD_NUMBERS];
    char             *stop[VLM_FIELDS_STOPS];      /* [n_stop] */
    size_t            n_stop;
    vlm_bias_t       *bias;            /* [n_bias] each id once */
    size_t            n_bias;
    uint64_t          seed;            /* 0: a fresh one; "seed": 0 is UINT64_MAX */
    int               task;            /* vlm_task_t of "task", or VLM_GENERAL */
    vlm_constraint_t  constraint;      /* of "format" */

    /* of an error */
    char              param[64];       /* the path of the field that was read last */
    const char       *code;            /* OpenAI's; constant or NULL */
} vlm_fields_t;

/* f is zeroed by the caller; no field was given yet. */
void vlm_fields_init(vlm_fields_t *f);

/*
 * Reads the fields that objects of this kind have, a bit of VLM_OF_; others are left as they are.
 *
 *   err       VLM_OK before
 *   returns   0; or -1, f->param and f->code: VLM_EINPUT, VLM_EMEMORY
 */
int vlm_fields_read(vlm_fields_t *f, const vlm_json_t *json, unsigned of,
                    const vlm_fields_model_t *model, vlm_err_t *err);

void vlm_fields_free(vlm_fields_t *f);     /* safe twice */

#endif
