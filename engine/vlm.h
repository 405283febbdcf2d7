/*
 * The interface between the engine and its host: a checkpoint directory becomes a plan, a plan
 * becomes a loaded model, and a loaded model answers several prompts at once.
 *
 * Each function says which of three kinds of thread may call it:
 *
 *   loop     the host's event loop; such a function never waits and takes microseconds
 *   engine   the one thread that runs vlm_load() and vlm_run()
 *   any      any thread but the loop; pictures and prompts take milliseconds
 *
 * A function without such a word takes microseconds, and every thread may call it.
 *
 * The engine prints nothing, never exits, and knows no HTTP.  A function that can fail takes a
 * vlm_err_t as its last argument and returns 0 or -1 (or a pointer or NULL).  The error is one
 * sentence with the numbers in it, for the person who has to act on it; a NULL for it is allowed.
 * Each function that allocates can fail with VLM_EMEMORY, too.
 */

#ifndef VLM_H
#define VLM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/facts.h"
#include "base/json.h"
#include "base/logits.h"
#include "base/pixels.h"

#define VLM_VERSION "0.2.0"            /* version of the project: engine, module, tools */


/* ---- configuration and plan ---------------------------------------------- */

typedef enum { VLM_F32, VLM_F16, VLM_BF16, VLM_INT8, VLM_INT4, VLM_INT16 } vlm_type_t;

typedef enum { VLM_LOG_ERROR, VLM_LOG_WARN, VLM_LOG_NOTICE } vlm_log_level_t;

/* The host's settings.  The host keeps the strings as long as the engine lives. */
typedef struct {
    const char  *model;                /* checkpoint directory, or a GGUF file */
    const char  *mmproj;               /* the GGUF file of its vision encoder, or NULL */
    const char  *chat_template;        /* name of the words of a conversation; NULL: those that the
                                          model's own template has, if it was compared, else the
                                          family's */
    const char  *device;               /* "auto", "cpu" or "cuda[:N]" */
    const char  *ops;                  /* kernels of the CPU: "plain", "avx2", "avxvnni", "avx512",
                                          "amx", "neon" or "i8mm"; NULL: the best that it runs */
    vlm_type_t   weights;              /* of vlm_weights_find() */
    int          kv_int8;              /* 1: keys and values are int8, on the CPU; 0: f32 as the
                                          weights are, int16 beside int8 and int4 weights on the
                                          CPU, else bf16 */
    uint64_t     memory;               /* bytes that the plan may take; 0: no bound */
    uint64_t     encoder;              /* bytes of a text encoder beside the model (embedder.h) */
    uint32_t     context;              /* tokens of one sequence, prompt and answer */
    uint32_t     slots;                /* sequences that step together */
    uint64_t     max_pixels;           /* pixels of a picture after its resize */
    uint64_t     min_pixels;           /* smaller pictures are enlarged to it; 0: to the least that
                                          the checkpoint takes */
    uint32_t     features;             /* pictures whose features are cached; at least one a slot */
    uint32_t     max_tokens;           /* upper bound of an answer's length */
    uint64_t     grammars;             /* bytes of compiled grammars that are kept */
    uint32_t     threads;              /* 0: the cgroup's quota, else the cores */
    const char  *lora;                 /* directory, with one for each adapter; NULL: none */
    uint32_t     lora_max;             /* adapters at a time */
    uint32_t     lora_rank;            /* the highest of an adapter */
    int          lora_tower;           /* 1: they may change the vision encoder, too */
    int          lora_load;            /* 1: they are loaded on demand: there may be more of them */
    int          ahead;                /* 1: vlm_plan() and vlm_facts() need no weights */
    const char  *cache;                /* directory of the quantised cache file; NULL: no cache */
    void       (*log)(void *data, vlm_log_level_t level, const char *text);     /* may be NULL */
    int        (*stop)(void *data);    /* asked often while loading and running; may be NULL */
    void        *data;                 /* passed to log and stop */
} vlm_conf_t;

void vlm_conf_default(vlm_conf_t *conf);           /* sets the defaults; model is NULL */

/* The form of weights of a name ("int8").  -1 and VLM_EINPUT with the names that there are. */
int vlm_weights_find(const char *name, vlm_type_t *type, vlm_err_t *err);
const char *vlm_weights_name(vlm_type_t type);     /* static */

/* Bytes by purpose, counted by the same code that later places the buffers. */
typedef struct {
    uint64_t  weights;                 /* every tensor in its resident form */
    uint64_t  lora;                    /* places of adapters */
    uint64_t  vision;                  /* vision encoder, its workspace, features of pictures */
    uint64_t  kv;                      /* keys and values of all slots */
    uint64_t  workspace;               /* activations of one step, logits, sampling */
    uint64_t  encoder;                 /* as in vlm_conf_t; it is in RAM */
    uint64_t  device;                  /* the device's own use; 0 on the CPU */
    uint64_t  total;                   /* on a GPU without the encoder */
    int       assumed;                 /* 1: the weights are not there yet, and counted as those of
                                          the family, of the sizes in config.json */
    uint32_t  left_out;                /* adapters that a load would leave out */
    char      left_out_reason[256];    /* of the first of them */
} vlm_plan_t;

/*
 * Plans the memory of a model: reads config.json and the headers of the tensors, touches no device
 * and keeps no memory.  any: the host calls it while it checks its configuration.
 *
 *   returns  0 and *plan; or -1: VLM_EINPUT a setting out of its range, VLM_EMODEL not a checkpoint
 *            that the engine can run, VLM_EDEVICE the device cannot run it, VLM_ELIMIT more bytes
 *            than conf->memory: the error names both sizes and the settings to lower, and *plan is
 *            filled in
 */
int vlm_plan(const vlm_conf_t *conf, vlm_plan_t *plan, vlm_err_t *err);

/* any: reads the files that vlm_plan() reads; of conf the model is used.  0, or -1: VLM_EMODEL. */
int vlm_facts(const vlm_conf_t *conf, vlm_facts_t *f, vlm_err_t *err);

/* 1: a model of this family at this path, whose last part is its name, thinks before it answers,
   unless configured otherwise. */
int vlm_thinks(const vlm_facts_t *f, const char *path);


/* ---- life ---------------------------------------------------------------- */

typedef struct vlm_s          vlm_t;
typedef struct vlm_picture_s  vlm_picture_t;
typedef struct vlm_prompt_s   vlm_prompt_t;
typedef struct vlm_job_s      vlm_job_t;
typedef struct vlm_adapter_s  vlm_adapter_t;

/*
 * Opens host structures, config.json, the tokenizer, and the fd.  Prompts need no more, so that
 * they can be prepared while the model loads.  any: a large vocabulary takes 10 to 400 ms.
 *
 *   conf     copied, its strings are not
 *   returns  an engine, freed with vlm_close(); or NULL: VLM_EINPUT a setting out of its range,
 *            VLM_EMODEL a file that is missing, damaged, or of a model that the engine cannot run
 */
vlm_t *vlm_open(const vlm_conf_t *conf, vlm_err_t *err);

/*
 * engine: opens the device, takes memory, loads weights.  The function asks conf->stop() between
 * tensors and reports progress in vlm_stat().
 *
 *   returns  0; or -1: the errors of vlm_plan(), VLM_ECANCELLED conf->stop() has returned true,
 *            VLM_EDEVICE.  If the state in vlm_stat() is VLM_LOST then, the device was lost during
 *            the load: another process may succeed
 */
int vlm_load(vlm_t *v, vlm_err_t *err);

/*
 * engine: runs until no job is left or conf->stop() returns true; unfinished jobs then end with
 * VLM_ECANCELLED.  Returns 0; or -1 and VLM_EDEVICE: the device is lost.
 */
int vlm_run(vlm_t *v, vlm_err_t *err);

/* Ends with this error each job that no vlm_run() will take up, as after a failed load. */
void vlm_fail_jobs(vlm_t *v, const vlm_err_t *err);

/*
 * any: frees an engine and its jobs, after vlm_run() has returned.  Prompts and pictures that were
 * made with it are freed before.  v may be NULL.
 */
void vlm_close(vlm_t *v);


/* ---- pictures and prompts ------------------------------------------------ */

typedef struct {
    uint32_t  width, height;           /* pixels as sent, orientation applied */
    uint32_t  resized_width, resized_height;       /* pixels that the model sees */
    uint32_t  scaled;                  /* 1: shrunk or enlarged by a bound on pixels, not only
                                          rounded to whole cells */
    uint32_t  pictures;                /* 1; of a video, the groups of frames that are encoded
                                          together, and cached so: pairs */
    uint32_t  tokens;                  /* that the picture takes in a prompt */
    uint32_t  decode_us, resize_us;    /* time taken; 0 if the patches came from the cache */
    uint64_t  memory;                  /* bytes that decoding holds at most; set by
                                          vlm_picture_check() and vlm_picture_measure() alone */
} vlm_picture_info_t;

/*
 * Tells whether a long piece of work should end.  The thread that does the work calls stop() every
 * few milliseconds, and stop() may read the clock for a deadline.  Once stop() returns 1, the work
 * ends with VLM_ECANCELLED.
 */
typedef struct {
    int   (*stop)(void *data);
    void   *data;                      /* passed to stop */
} vlm_stop_t;

/*
 * Decodes a picture (JPEG, PNG, GIF, BMP or WebP, known by its first bytes), turns it upright, lays
 * alpha over white, resizes it as the family's processor does and cuts it into patches.
 *
 *   data, bytes   a whole file; not kept, but its patches are cached: see conf->features
 *   returns       a picture, freed with vlm_picture_free() or taken over by vlm_prompt_make(); or
 *                 NULL: VLM_EINPUT not a picture, or damaged; VLM_ELIMIT more pixels than may be
 *                 decoded, or one side too long for the other
 *
 * any: takes some hundred milliseconds for a photograph.
 */
vlm_picture_t *vlm_picture_read(const vlm_t *v, const void *data, size_t bytes, vlm_err_t *err);

/*
 * any: vlm_picture_read() for a prompt with a salt: patches cached under another salt are not used.
 * VLM_ECANCELLED, too.
 *
 *   salt    [salt_bytes] as for vlm_prompt_salt(); not kept
 *   pixels  bounds in place of min_pixels and, if lower, of max_pixels; may be NULL
 *   stop    asked while a JPEG, PNG or WebP is decoded, and between decoding, resizing and cutting;
 *           a GIF or BMP is decoded in one go, whose time its pixels bound; NULL: never asked
 */
vlm_picture_t *vlm_picture_read_salted(const vlm_t *v, const void *data, size_t bytes,
                                       const void *salt, size_t salt_bytes,
                                       const vlm_pixels_t *pixels, const vlm_stop_t *stop,
                                       vlm_err_t *err);

typedef struct {
    const void  *data;                 /* [bytes] a whole file */
    size_t       bytes;
} vlm_bytes_t;

#define VLM_MAX_FRAMES  512            /* of a video */
#define VLM_MIN_FPS     0.01
#define VLM_MAX_FPS     1000.0

typedef struct {
    const vlm_bytes_t  *frame;         /* [n] pictures of one size */
    uint32_t            n;             /* 1 to VLM_MAX_FRAMES */
    double              fps;           /* frames in a second, VLM_MIN_FPS to VLM_MAX_FPS */
} vlm_video_t;

/*
 * any: vlm_picture_read_salted() for the frames of a video, which become one picture of vlm_part_t.
 * The family's processor of video decides their size; pixels are bounds of a frame.  The last frame
 * is repeated where the encoder takes more frames together than are left.  VLM_EINPUT, too: frames
 * of different sizes, or numbers out of their bounds.
 */
vlm_picture_t *vlm_video_read(const vlm_t *v, const vlm_video_t *video, const void *salt,
                              size_t salt_bytes, const vlm_pixels_t *pixels,
                              const vlm_stop_t *stop, vlm_err_t *err);

/*
 * The size and the tokens of a video of n frames, of which one has the width and height in *info:
 * sets resized_width, resized_height, pictures and tokens.  0; or -1: VLM_EINPUT n or fps out of
 * its bounds, VLM_ELIMIT the sides, or less than a cell.
 */
int vlm_video_measure(const vlm_t *v, uint32_t n, double fps, const vlm_pixels_t *pixels,
                      vlm_picture_info_t *info, vlm_err_t *err);

/* Copies what is known of a picture or of a whole video to *info. */
void vlm_picture_info(const vlm_picture_t *p, vlm_picture_info_t *info);

/* Frees a picture that no prompt has taken over.  p may be NULL. */
void vlm_picture_free(vlm_picture_t *p);

/*
 * Looks at the header of a picture alone, and sets width, height and memory of *info; the rest
 * of *info is 0.
 *
 *   data, bytes   a whole file; not kept
 *   returns       0; or -1 and the error that vlm_picture_read() would refuse the header with
 *
 * any: the time is linear in bytes; nothing is allocated.
 */
int vlm_picture_check(const void *data, size_t bytes, vlm_picture_info_t *info, vlm_err_t *err);

/*
 * any: vlm_picture_check() that also sets resized_width, resized_height, scaled and tokens.  pixels
 * is as for vlm_picture_read_salted().
 */
int vlm_picture_measure(const vlm_t *v, const void *data, size_t bytes, const vlm_pixels_t *pixels,
                        vlm_picture_info_t *info, vlm_err_t *err);

/*
 * Decodes a picture for other purposes than a prompt: upright, at its full size, alpha over white.
 *
 *   data, bytes    a whole file; not kept
 *   width, height  set to the size in pixels
 *   stop           as for vlm_picture_read_salted(); may be NULL
 *   returns        u8 [*height][*width][3], free()d by the caller; or NULL: the errors of
 *                  vlm_picture_read(), VLM_ECANCELLED
 *
 * any: takes some hundred milliseconds for a photograph, and holds as many bytes meanwhile as
 * vlm_picture_check() says.
 */
uint8_t *vlm_picture_decode(const void *data, size_t bytes, uint32_t *width, uint32_t *height,
                            const vlm_stop_t *stop, vlm_err_t *err);

/*
 * Encodes pixels as a baseline JPEG, without chroma subsampling, so that thin coloured lines stay
 * sharp.
 *
 *   rgb           u8 [height][width][3]; not kept
 *   jpeg, bytes   set to a whole file, free()d by the caller
 *   returns       0; or -1: VLM_EMEMORY
 *
 * any: takes some hundred milliseconds for a photograph.
 */
int vlm_jpeg_encode(const uint8_t *rgb, uint32_t width, uint32_t height, void **jpeg, size_t *bytes,
                    vlm_err_t *err);

typedef enum { VLM_SYSTEM, VLM_USER, VLM_ASSISTANT, VLM_TOOL } vlm_role_t;    /* tool: a result */

/* A part of a message: a picture, or UTF-8 text, which never becomes control tokens. */
typedef struct {
    vlm_picture_t  *picture;           /* or a video; NULL: text */
    const char     *text;
    size_t          bytes;
    int             marked;            /* the host's text, in which the marks of calls (vlm_facts_t)
                                          become control tokens, if the tokenizer has them */
} vlm_part_t;

typedef struct {
    vlm_role_t         role;
    const vlm_part_t  *parts;          /* [n_parts] */
    size_t             n_parts;
} vlm_message_t;

/*
 * Applies the family's chat template: messages become tokens and positions.
 *
 *   messages  [n], of which the texts are not kept; a default system message is put before them
 *             if they bring none
 *   tail      text that the assistant's turn begins with ("<think>"), or NULL
 *   returns   a prompt, owned by the caller until vlm_submit() takes it; or NULL.  The pictures are
 *             taken over on success only.  VLM_EINPUT: broken UTF-8, no messages, a picture that
 *             stands in them twice.  VLM_ELIMIT: longer than the context less one token; the error
 *             has both numbers
 *
 * any: takes milliseconds.
 */
vlm_prompt_t *vlm_prompt_make(const vlm_t *v, const vlm_message_t *messages, size_t n,
                              const char *tail, vlm_err_t *err);

/* any: the same with tools: JSON objects, each behind a newline; NULL: none. */
vlm_prompt_t *vlm_prompt_tools(const vlm_t *v, const vlm_message_t *messages, size_t n,
                               const char *tools, const char *tail, vlm_err_t *err);

/*
 * any: vlm_prompt_make() without the template: the text of parts [n] becomes tokens unchanged.  For
 * completions, build/vlm and tests.
 */
vlm_prompt_t *vlm_prompt_raw(const vlm_t *v, const vlm_part_t *parts, size_t n, vlm_err_t *err);

/* The number of a prompt's tokens, and the tokens: [vlm_prompt_tokens()], the prompt's own. */
uint32_t vlm_prompt_tokens(const vlm_prompt_t *p);
const uint32_t *vlm_prompt_ids(const vlm_prompt_t *p);

/*
 * Sets a prompt's salt, [bytes], of which a hash is kept.  Cached rows, features and patches of one
 * prompt are used for another that has the same beginning or the same pictures, if both have the
 * same salt.  A cache hit changes no answer, but shortens the time to the first token, which one
 * tenant could measure to learn of another's prompts; so each tenant should have its own salt.  No
 * bytes: no salt.
 */
void vlm_prompt_salt(vlm_prompt_t *p, const void *salt, size_t bytes);

/*
 * Sets a prompt's adapter: the version that has this name now, which the prompt keeps until it is
 * freed.  Rows and features of one adapter are not used for another.
 *
 *   scale    0 to 4, times the adapter's own
 *   returns  0; or -1: VLM_EINPUT no such adapter, or the scale
 */
int vlm_prompt_adapter(vlm_t *v, vlm_prompt_t *p, const char *name, double scale, vlm_err_t *err);

/* Frees a prompt that vlm_submit() has not taken, and its pictures.  p may be NULL. */
void vlm_prompt_free(vlm_prompt_t *p);

/*
 * Turns a text into ids, without template and control tokens.
 *
 *   text, bytes   UTF-8; not kept
 *   ids, n        set to the tokens, [*n], free()d by the caller
 *   returns       0; or -1: VLM_EINPUT broken UTF-8, VLM_ELIMIT more than 4 MiB
 *
 * any: takes up to seconds for the longest text.
 */
int vlm_tokenize(const vlm_t *v, const char *text, size_t bytes, uint32_t **ids, size_t *n,
                 vlm_err_t *err);

/* The fewest tokens that a text of so many bytes can have. */
uint64_t vlm_tokens_least(const vlm_t *v, size_t bytes);

/* The most bytes of memory that vlm_tokenize() holds for a text of so many bytes. */
uint64_t vlm_tokenize_memory(size_t bytes);


/* ---- adapters ------------------------------------------------------------ */

#define VLM_MAX_ADAPTERS  64
#define VLM_LORA_SCALE    4.0          /* the largest */

typedef struct {
    char  name[64], path[1024];        /* of its directory */
    char  reason[256];                 /* why it was left out; "": prompts can have it */
} vlm_adapter_info_t;

#define VLM_ADAPTERS_ALL  "."          /* the name of one whose path is conf->lora itself: all were
                                          left out, since the directory cannot be read */

/* 1: the name may be that of an adapter: letters, digits, '.', '_' and '-'.  Else 0. */
int vlm_adapter_named(const char *name);

/*
 * any: reads an adapter, which prompts can have under its name from then on.  Takes a second for
 * 100 MB.
 *
 *   dir      of conf->lora, by its own name
 *   replace  1: a loaded adapter of this name is replaced once the new one has been read; both have
 *            places until then, and longer if prompts have the old one
 *   idle     set to 1 if the host has to start a vlm_run() for it, as for vlm_submit()
 *   returns  0; or -1: VLM_EINPUT not a name, or no such directory, VLM_EMODEL not one that this
 *            engine can run, VLM_ELIMIT all places are in use, VLM_ECANCELLED the name is loaded,
 *            VLM_EDEVICE the model is not loaded
 */
int vlm_adapter_load(vlm_t *v, const char *name, const char *dir, int replace, int *idle,
                     vlm_err_t *err);

/*
 * Takes an adapter from the list.  Answers in progress keep it, and its place is free once they
 * have ended.  0; or -1: VLM_EINPUT there is no such adapter.
 */
int vlm_adapter_unload(vlm_t *v, const char *name, vlm_err_t *err);

/*
 * any: tries the adapters again that were left out, since they were incomplete, not ones that this
 * engine can run on this model, or too many.  The log has a line for each that is loaded now.
 *
 *   idle      as of vlm_adapter_load()
 *   returns   1: the list of vlm_adapters() has changed, 0: it has not
 */
int vlm_adapters_again(vlm_t *v, int *idle);

/* any: the adapters that an engine has once it is open; their number, at most `room`. */
uint32_t vlm_adapters_planned(const vlm_conf_t *conf, vlm_adapter_info_t *list, uint32_t room);

/* The adapters that prompts can have, by their places, and then those that were left out; returns
   their number, at most `room`. */
uint32_t vlm_adapters(const vlm_t *v, vlm_adapter_info_t *list, uint32_t room);


/* ---- grammars ------------------------------------------------------------ */

typedef struct vlm_grammar_s  vlm_grammar_t;

typedef enum {
    VLM_FORM_SCHEMA = 0,               /* a JSON schema: the answer is a value that it describes,
                                          with the keys of objects in the order of "properties" */
    VLM_FORM_CHOICE,                   /* a list of texts, of which the answer is one */
    VLM_FORM_REGEX,                    /* a regular expression that the whole answer matches */
    VLM_FORM_GBNF,                     /* a grammar in llama.cpp's form */
    VLM_FORM_TOOLS                     /* a list of tools as OpenAI's clients send them: the answer
                                          is an object with the name and the arguments of one */
} vlm_form_t;

/*
 * any: compiles a form, or finds one that was compiled before.  Takes milliseconds; at most some
 * tenths of a second and 16 MiB.
 *
 *   form      not kept; its SHA-256 is
 *   returns   a grammar, freed with vlm_grammar_free(); or NULL: VLM_EINPUT with the place of a
 *             keyword that is not supported, or of a contradiction; VLM_ELIMIT more than 64 KiB,
 *             or another bound, which the sentence names
 */
vlm_grammar_t *vlm_grammar_make(const vlm_t *v, const vlm_json_t *form, vlm_form_t kind,
                                vlm_err_t *err);

/* The answer is any JSON object.  VLM_EINPUT: the vocabulary lacks a byte, as for the others. */
vlm_grammar_t *vlm_grammar_object(const vlm_t *v, vlm_err_t *err);

/* Jobs that were submitted with it keep it.  g may be NULL. */
void vlm_grammar_free(vlm_grammar_t *g);

/* Tokens of the shortest answer. */
uint32_t vlm_grammar_least(const vlm_grammar_t *g);


/* ---- jobs ---------------------------------------------------------------- */

/*
 * Sampling of one token, in this order: logprobs are reported; frequency and presence penalty,
 * bias, no_repeat_ngram_size, min_tokens and the grammar's mask are applied; then repetition
 * penalty, temperature, top k, top p, and one draw.
 *
 * With a grammar, only tokens are picked that can lead to a whole answer within max_tokens, which
 * must have room for the shortest, and the prompt must have no tail.  The answer ends with
 * VLM_FINISH_STOP once nothing may follow, whatever min_tokens says; and a bias of -100 then only
 * makes a token unlikely.  Stop strings apply as always; one that occurs in the answer cuts it.
 */
typedef struct {
    float               temperature;   /* 0: greedy */
    float               top_p;         /* 1: off */
    float               repetition_penalty;        /* 1: off */
    float               frequency_penalty;         /* -2 to 2, 0: off; times a token's count in */
    float               presence_penalty;          /* the answer; -2 to 2, 0: off; once */
    uint32_t            top_k;         /* 0: off */
    uint32_t            no_repeat_ngram_size;      /* 0: off; a token is not picked if it repeats so
                                          many tokens of prompt or answer; ignored with a
                                          grammar */
    uint32_t            min_tokens;    /* the model cannot end an answer of fewer tokens */
    uint32_t            max_tokens;    /* 0: conf->max_tokens */
    uint64_t            seed;          /* 0: a random one */
    const char *const  *stop;          /* [n_stop] copied; text before a match is kept */
    size_t              n_stop;        /* at most 16, of 1024 bytes each */
    const vlm_bias_t   *bias;          /* [n_bias] copied, each id once; added to the logits */
    size_t              n_bias;        /* at most VLM_MAX_BIAS */
    int                 logprobs;      /* events carry vlm_token_t's */
    uint32_t            top_logprobs;  /* with logprobs: 0 to VLM_TOP_LOGPROBS */
    vlm_grammar_t      *grammar;       /* of the answer, whole within max_tokens; or NULL */
    const char         *trigger;       /* constant: the answer is free up to this text, behind which
                                          the grammar holds if there is room; NULL: none */
    vlm_grammar_t      *between;       /* a choice of two texts, the longer of which leads to a
                                          further value of the grammar; NULL: there is one value */
    uint32_t            vector;        /* 1: nothing is picked, and all of the above is ignored; the
                                          text of the job's one VLM_TEXT is f32 [hidden]: what the
                                          head would read for the prompt's last token, behind the
                                          last norm, divided by its length */
} vlm_sampling_t;

/*
 * Sets the values of generation_config.json.  A key that is absent there takes transformers'
 * default (greedy, no penalties).  Without the file: 0.7 / top_k 50 / top_p 1 / penalty 1.05.
 */
void vlm_sampling_default(const vlm_t *v, vlm_sampling_t *s);

typedef enum {
    VLM_STARTED,                       /* the job left the queue: its prompt is being read */
    VLM_TEXT,                          /* text, bytes: whole characters of the answer */
    VLM_DONE,                          /* finish and the counts; the last event of a job */
    VLM_FAILED                         /* err; the last event of a job */
} vlm_event_kind_t;

typedef enum { VLM_FINISH_NONE, VLM_FINISH_STOP, VLM_FINISH_LENGTH, VLM_FINISH_CANCELLED }
    vlm_finish_t;

typedef struct {
    uint32_t  prompt_tokens, completion_tokens;
    uint32_t  cached_tokens;           /* of the prompt: computed before, or for another job */
    uint32_t  pictures, cached_pictures;           /* of the prompt; not encoded for this job; a
                                          video has as many as vlm_picture_info_t says */
    uint32_t  wait_ms;                 /* vlm_submit() to a slot */
    uint32_t  encode_ms, prefill_ms, decode_ms;    /* of this job, waiting for others included */
    uint32_t  pick_ms;                 /* part of prefill_ms: logits and pick of the first token */
    uint32_t  first_ms;                /* vlm_submit() to the first token */
} vlm_usage_t;

typedef struct {
    vlm_event_kind_t  kind;
    void             *user;            /* vlm_submit()'s argument; NULL once cancelled */
    const char       *text;            /* VLM_TEXT: valid until the next vlm_next_event() */
    size_t            bytes;           /* may be 0 if there are tokens */
    const vlm_token_t *tokens;         /* VLM_TEXT, if logprobs were asked for: those whose text */
    size_t            n_tokens;        /* has become visible with this event; valid as text is */
    int               started;         /* VLM_DONE, VLM_FAILED: VLM_STARTED was sent before */
    vlm_finish_t      finish;          /* VLM_DONE */
    vlm_usage_t       usage;           /* VLM_DONE */
    vlm_err_t         err;             /* VLM_FAILED */
} vlm_event_t;

/*
 * loop: submits a prompt.  The host keeps the queue: the engine never needs more than slots + 1
 * jobs at a time.
 *
 *   p        the engine's on success
 *   s        copied; max_tokens is cut to conf->max_tokens and to what the context has left
 *   user     given back with each event; not used otherwise
 *   idle     set to 1 if no vlm_run() is in progress that would see the job: the host starts one
 *   returns  a job, which lives until the call of vlm_next_event() after its last event; or NULL:
 *            VLM_EINPUT a sampling value out of its range, VLM_ELIMIT no room for an answer, or for
 *            the shortest of the grammar's
 */
vlm_job_t *vlm_submit(vlm_t *v, vlm_prompt_t *p, const vlm_sampling_t *s, void *user, int *idle,
                      vlm_err_t *err);

/*
 * loop: cancels a job, whose last event still comes, with user NULL.  The function must not be
 * called after that event was taken.
 */
void vlm_cancel(vlm_t *v, vlm_job_t *job);

/*
 * loop: takes the next event.  Returns 1 and *e, or 0: there is none now.  The call after a job's
 * last event frees the job's memory.
 */
int vlm_next_event(vlm_t *v, vlm_event_t *e);

/*
 * loop: an eventfd of the engine's own, readable after new events.  The host reads its counter
 * first, and then takes events until there is none.
 */
int vlm_fd(const vlm_t *v);


/* ---- statistics: any thread, without waiting ------------------------------ */

typedef enum {
    VLM_LOADING,                       /* from vlm_open() on, and after a failed load */
    VLM_READY,
    VLM_LOST                           /* the device is lost: the process should be replaced */
} vlm_state_t;

typedef struct {
    vlm_state_t  state;
    uint32_t     progress;             /* percent of the load */
    int          filling;              /* 1: after the load, planned memory is being committed */
    uint64_t     ticks;                /* slices and steps since the start: they show progress */
    uint32_t     running;              /* jobs in slots */
    uint64_t     kv_rows;              /* rows of the KV cache that hold tokens, of slots x context:
                                          of jobs, and kept after them */
    uint64_t     prompt_tokens, completion_tokens; /* since the start */
    uint64_t     guessed_tokens, taken_tokens;     /* read as guesses, and of them picked */
    uint64_t     forced_tokens;        /* of completion_tokens: a grammar left no choice, and they
                                          were not picked */
    uint64_t     cached_tokens, pictures, cached_pictures;     /* as in vlm_usage_t */
    char         device[64];           /* "cpu, avx512, 2 threads" */
    char         reason[480];          /* why device auto chose it; "" if configured */
    vlm_plan_t   plan;
    uint64_t     taken;                /* the device's own use, measured after the load, where
                                          plan.device is a declared figure; 0: not known */
} vlm_stat_t;

/* Copies the state and the counters to *s. */
void vlm_stat(const vlm_t *v, vlm_stat_t *s);


/* ---- for tests and build/vlm --------------------------------------------- */

/*
 * engine, with no job running: computes the logits of every position of a prompt.  The function
 * uses slot 0, whose cached rows are lost.
 *
 *   logits   set to f32 [vlm_prompt_tokens()][*vocab], free()d by the caller
 *   returns  0; or -1 and *logits NULL: VLM_ELIMIT longer than the context, VLM_EDEVICE
 */
int vlm_logits(vlm_t *v, const vlm_prompt_t *p, float **logits, uint32_t *vocab, vlm_err_t *err);

/* The bytes of one id (a piece of UTF-8), [*bytes], valid as long as v; NULL: no such id. */
const char *vlm_piece(const vlm_t *v, uint32_t id, size_t *bytes);

#endif
