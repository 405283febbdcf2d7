/*
 * Every number of a model: config.json, generation_config.json, and the processors' settings for
 * pictures, from preprocessor_config.json or processor_config.json (transformers 5), and for video,
 * from video_preprocessor_config.json, or else from those.
 *
 * config.json is read by the family that it names (family/family.h).  Its text settings stand at
 * the top (published checkpoints) or under "text_config" (re-saved by newer transformers).  Each
 * number is bounded where it is read, so that later code can multiply sizes without overflow.
 */

#ifndef VLM_CONFIG_H
#define VLM_CONFIG_H

#include "load/quant.h"
#include "vlm.h"

/*
 * Limits: generous for the largest published model (72B: hidden 8192, mlp 29568, 80 layers), and
 * small enough for a product of any three and four bytes to stay within 64 bits.
 */
#define VLM_MAX_EOS        16
#define VLM_MAX_LAYERS     256
#define VLM_MAX_HIDDEN     (1u << 16)
#define VLM_MAX_MLP        (1u << 18)
#define VLM_MAX_VOCAB      (1u << 20)
#define VLM_MAX_HEADS      512
#define VLM_MAX_HEAD_DIM   512
#define VLM_MAX_POSITIONS  (1u << 24)  /* exact as f32, so that angles are */
#define VLM_MAX_KINDS      64
#define VLM_MAX_PATCH      64
#define VLM_MAX_MERGE      8
#define VLM_MAX_TEMPORAL   4
#define VLM_MAX_PLACES     1024        /* on a side */
#define VLM_MAX_DEEP       8

typedef struct vlm_family_s         vlm_family_t;      /* family/family.h */
typedef struct vlm_vision_config_s  vlm_vision_config_t;
typedef struct vlm_layout_s         vlm_layout_t;      /* image/patch.h */

/* Names the merged cells of a picture in the order in which a family's encoder takes them. */
typedef void (*vlm_order_fn)(const vlm_vision_config_t *c, vlm_layout_t *l);

/*
 * How the angles of rotated heads grow with the position, for texts longer than those of the first
 * training; formulas: model/rope.c.
 */
typedef struct {
    enum { VLM_SCALING_NONE, VLM_SCALING_LINEAR, VLM_SCALING_LLAMA3, VLM_SCALING_YARN,
           VLM_SCALING_TABLE } kind;
    float     factor;                  /* of the length */
    uint32_t  original;                /* positions of the first training */
    float     slow, fast;              /* of llama3: low_freq_factor, high_freq_factor; of yarn:
                                          beta_slow, beta_fast */
    int       whole;                   /* yarn's bounds are whole numbers of pairs: "truncate" */
    float     size;                    /* q and k are multiplied by it; 0: they are not */
    float     divisor[VLM_MAX_HEAD_DIM / 2];       /* of a table: each pair's rate is divided */
} vlm_rope_scaling_t;

typedef struct {                       /* language model; letters as in ops/ops.h */
    uint32_t  hidden;                  /* D */
    uint32_t  layers;                  /* L */
    uint32_t  heads, kv_heads;         /* Hq, Hkv; heads is a multiple of kv_heads */
    uint32_t  head_dim;                /* even; "head_dim", else hidden / heads */
    uint32_t  mlp;                     /* F */
    uint32_t  vocab;                   /* V, rows of the embedding; ids past the tokenizer's last
                                          are padding and never picked */
    uint32_t  max_positions;
    uint32_t  kinds;                   /* of an encoder of texts: kinds of text that it tells apart
                                          (it is given the first alone) */
    uint8_t   axis[VLM_MAX_HEAD_DIM / 2];          /* [head_dim / 2] axis of each rotation: 0 time,
                                                      1 row, 2 column */
    float     rope_theta, norm_eps;
    vlm_rope_scaling_t  scaling;
    int       alibi;                   /* 1: scores fall with the distance of keys, and heads are
                                          not rotated */
    int       tied;                    /* the head is the embedding */
} vlm_text_config_t;

struct vlm_vision_config_s {           /* vision encoder; all 0: the model has none */
    uint32_t  hidden;                  /* E */
    uint32_t  depth, heads;
    uint32_t  head_dim;                /* hidden / heads, a multiple of 4 */
    uint32_t  mlp;
    uint32_t  out;                     /* D */
    uint32_t  channels;                /* 3 */
    uint32_t  patch;                   /* pixels on a side, 14 */
    uint32_t  temporal;                /* 2: frames of a video that are encoded together; a still
                                          picture is repeated */
    uint32_t  per_second;              /* positions of time in a second of video; 0: the family
                                          states the time in words */
    uint32_t  merge;                   /* patches on a side of a merged cell, 2 */
    uint32_t  window;                  /* merged cells on a side of a window, if the family has
                                          windows */
    vlm_order_fn  order;               /* the family's */
    float     norm_eps;                /* 1e-6 */
    float     rope_theta;              /* 10000 */
    uint8_t   full[VLM_MAX_LAYERS];    /* 1: this block attends over the whole picture */
    uint32_t  places;                  /* learned positions on a side of their grid; 0: none */
    uint32_t  deep;                    /* number of blocks whose output, merged as the last one's
                                          is, is added after text layers 0, 1, ..., in the order of
                                          the blocks */
    uint32_t  deep_block[VLM_MAX_DEEP];            /* [deep] of each merger, all different */
};

typedef struct {
    uint64_t  min_pixels, max_pixels;  /* of a resized picture */
    float     mean[3], std[3];         /* of pixels / 255, RGB */
    int       said;                    /* 1: read from a file; 0: the family's defaults */
    int       whole;                   /* 1: the bounds are of all frames of a video together */
} vlm_pixel_config_t;

typedef struct {
    uint32_t  image_token, vision_start, vision_end;       /* ids */
    uint32_t  eos[VLM_MAX_EOS], n_eos;
    float     temperature, top_p, repetition_penalty;      /* temperature 0: greedy */
    uint32_t  top_k;
} vlm_generation_config_t;

typedef struct {
    vlm_text_config_t        text;
    vlm_vision_config_t      vision;
    vlm_pixel_config_t       pixel;
    vlm_pixel_config_t       video;
    vlm_generation_config_t  generation;
    vlm_quant_t              quant;
    const vlm_family_t      *family;
    const struct vlm_words_s  *words;  /* of the chat template: the family's, or others by name or
                                          by the checkpoint's own template */
    int                      gguf;     /* 1: of a GGUF file */
    int                      unknown;  /* 1: the checkpoint's template is none that was compared */
} vlm_config_t;

/*
 * Reads DIR/config.json (required) and the other four if they exist.  Without a file, sampling has
 * the defaults of vlm.h and pictures have the family's.  VLM_EMODEL names file, path and value.
 */
int vlm_config_read(vlm_config_t *c, const char *dir, vlm_err_t *err);

typedef struct {
    const char  *path;                 /* for messages */
    const void  *data;                 /* [bytes], NULL: there is no such file */
    size_t       bytes;
} vlm_config_file_t;

#define VLM_CONFIG_FILES  5            /* config, generation_config, preprocessor_config, */
                                       /* processor_config, video_preprocessor_config */

/* The same without files, for the fuzzer. */
int vlm_config_parse(vlm_config_t *c, const vlm_config_file_t file[VLM_CONFIG_FILES],
                     vlm_err_t *err);

#endif
