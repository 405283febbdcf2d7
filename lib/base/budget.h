
/*
 * The memory that requests may use beside the engine's plan: http_memory.
 *
 * Work that needs much memory runs in threads, and for a short time: a body is parsed, a picture is
 * decoded.  A thread takes bytes from the budget before, waits if it has to, and gives them back
 * after.  No thread takes twice without giving back, so a thread never waits for itself.
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

/* any thread but the loop's; ms: the longest wait; stop(data), unless NULL, is called meanwhile,
   and nonzero ends the wait: LATE */

vlm_budget_e vlm_budget_take(vlm_budget_t *b,
    uint64_t bytes, uint32_t ms, int (*stop)(void *data), void *data);
void vlm_budget_give(vlm_budget_t *b, uint64_t bytes);

/* any thread: used, peak and waits, read at one moment */

void vlm_budget_look(vlm_budget_t *b,
    vlm_budget_t *copy);


/* the bytes that a body of this size may take while it is parsed */

uint64_t vlm_budget_body(uint64_t len);


#endif /* _NGX_HTTP_VLM_BUDGET_H_INCLUDED_ */
