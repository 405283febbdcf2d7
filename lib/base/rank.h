/*
 * The rank of a request, which orders the queue: its priority, its client and its salt; and the
 * text of a header by which a worker tells them to the one that has the model.
 */

#ifndef VLM_RANK_H
#define VLM_RANK_H

#include <stddef.h>
#include <stdint.h>

#define VLM_RANK_PRIORITY  10          /* to -10 */
#define VLM_RANK_SALT      20          /* bytes, of a hash */
#define VLM_RANK_TEXT      (4 + 17 + 2 * VLM_RANK_SALT + 1)    /* with a zero */

typedef struct {
    int       priority;                /* -VLM_RANK_PRIORITY to VLM_RANK_PRIORITY */
    int       salted;                  /* it has a salt */
    uint64_t  key;                     /* of its client; 0: there is none */
    uint8_t   salt[VLM_RANK_SALT];
} vlm_rank_t;

/* A level: a number, "high" or "low"; out of range it is the nearest, and without meaning 0. */
int vlm_rank_priority(const char *text, size_t bytes);

/* "PRIORITY KEY SALT", or "-" without a salt; returns its bytes, without the zero. */
size_t vlm_rank_write(const vlm_rank_t *rank, char text[VLM_RANK_TEXT]);

/* Reads such a text into what is zero before; what does not belong to one is left out. */
void vlm_rank_read(vlm_rank_t *rank, const char *text);

#endif
