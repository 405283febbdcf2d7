
/*
 * The memory that requests may hold beside the engine's plan: http_memory.
 *
 * What takes much memory is done in threads, and for a moment: a body becomes
 * a tree, a picture is decoded.  A thread takes from the budget before, waits
 * if it has to, and gives back after.  Nobody takes twice without giving, so
 * nobody waits for himself.
 *
 * No nginx here: threads use it, and its test.
 */


#ifndef _NGX_HTTP_VLM_BUDGET_H_INCLUDED_
#define _NGX_HTTP_VLM_BUDGET_H_INCLUDED_


#include <pthread.h>
#include <stdint.h>


typedef struct {
    pthread_mutex_t           mutex;
    pthread_cond_t            given;
    uint64_t                  total;       /* bytes */
    uint64_t                  used;
    uint64_t                  peak;        /* the most that was used */
    uint64_t                  waits;       /* takes that had to wait */
} vlm_budget_t;


typedef enum {
    VLM_BUDGET_OK = 0,
    VLM_BUDGET_LATE,              /* not within the time */
    VLM_BUDGET_NEVER              /* more than there is at all */
} vlm_budget_e;


int vlm_budget_init(vlm_budget_t *b, uint64_t total);
void vlm_budget_destroy(vlm_budget_t *b);

/* any thread but the loop's; ms: how long it may wait; stop(data), or NULL, is
   asked meanwhile whether it should not go on: LATE */

vlm_budget_e vlm_budget_take(vlm_budget_t *b,
    uint64_t bytes, uint32_t ms, int (*stop)(void *data), void *data);
void vlm_budget_give(vlm_budget_t *b, uint64_t bytes);

/* any thread: used, peak, waits, of one moment */

void vlm_budget_look(vlm_budget_t *b,
    vlm_budget_t *copy);


/* what a body of so many bytes may become while it is parsed */

uint64_t vlm_budget_body(uint64_t len);


#endif /* _NGX_HTTP_VLM_BUDGET_H_INCLUDED_ */
