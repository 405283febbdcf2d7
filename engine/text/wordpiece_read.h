/* The parts of a WordPiece tokenizer, shared by the two files that read and use it. */

#ifndef VLM_WORDPIECE_READ_H
#define VLM_WORDPIECE_READ_H

#include "text/vocab.h"
#include "text/wordpiece.h"

#define VLM_PIECE_CHARS    256         /* of a word, at most; the rest of it is unknown */
#define VLM_PIECE_PREFIX   16          /* bytes */
#define VLM_PIECE_CONTROL  64          /* tokens */

struct vlm_wordpiece_s {
    vlm_vocab_t  vocab;
    uint32_t     begin, end, unknown;  /* ids */
    uint32_t     max_chars;            /* longer words are unknown */
    char         prefix[VLM_PIECE_PREFIX + 1];     /* [n_prefix] of pieces within a word */
    size_t       n_prefix;
    int          clean, ideographs, strip, lower;  /* changes to a text before it is split */
    uint32_t     control[VLM_PIECE_CONTROL];       /* [n_control] ids of tokens with a name */
    uint32_t     n_control;
    uint8_t      starts[256];          /* 1: one of their names begins with this byte */
};

#endif
