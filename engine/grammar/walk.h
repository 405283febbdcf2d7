/* The inside of match.h, for the files that read bytes by it. */

#ifndef VLM_WALK_H
#define VLM_WALK_H

#include "grammar/match.h"

#define VLM_WALK_CELLS    (VLM_MATCH_CELLS + (VLM_PIECE_BYTES + 1) * VLM_GRAMMAR_CHOICES * 2)
#define VLM_WALK_THREADS  ((VLM_PIECE_BYTES + 1) * VLM_GRAMMAR_CHOICES)
#define VLM_NO_CELL       UINT16_MAX
#define VLM_NO_NODE       UINT32_MAX
#define VLM_HASH          0x9e3779b97f4a7c15u

enum {                                 /* places */
    VALUE,                             /* before a value */
    FIRST_KEY,                         /* behind "{" */
    KEY,                               /* behind "," in an object */
    COLON,                             /* behind a name */
    FIRST_ITEM,                        /* behind "[" */
    AFTER,                             /* behind a value */
    DONE,

    IN_FIXED,
    IN_KEY,                            /* one of the object's */
    IN_PATTERN,                        /* count: the state */
    IN_RULE,                           /* the same; cells have where the rules around it go on */

    TEXT,                              /* in a string */
    ESCAPE,                            /* behind "\" */
    HEX_FIRST,                         /* behind "\u" */
    HEX_D,                             /* behind "\ud": above 7 begins a surrogate */
    HEX,
    CHARACTER,                         /* any continuation byte; below, its first is bounded */
    CHARACTER_E0, CHARACTER_ED, CHARACTER_F0, CHARACTER_F4,

    MINUS,                             /* from here on: a number */
    POINT, E, E_SIGN,                  /* a digit must follow */
    ZERO, INTEGER, FRACTION,           /* from here on: it may end here */
    EXPONENT, EXPONENT_END,

    NOWHERE
};

#define VLM_WALK_BUCKETS  1024         /* a power of two */
#define VLM_WALK_VISITS   1024         /* a power of two */

typedef struct {                       /* a place in rules that a byte was read at */
    const vlm_node_t  *node;
    uint32_t           state, stamp;   /* stamp: of the byte */
    uint16_t           cell;
    uint8_t            how;
} vlm_visit_t;

struct vlm_walk_s {
    int            blanks;             /* of the grammar */
    uint64_t       work, most;         /* steps since vlm_walk_allow(), and how many there may be */
    uint64_t       look;               /* steps at which quit is looked at again */
    const atomic_int  *quit;           /* or NULL */
    int            spent;              /* 1: there were more steps, or *quit is set */
    uint32_t       n_threads[VLM_PIECE_BYTES + 1], n_cells[VLM_PIECE_BYTES + 1];  /* by state */
    vlm_thread_t  *to;                 /* [n] threads of the state that is made */
    uint32_t       n, cells;           /* cells: of that state */
    uint32_t       hash[VLM_GRAMMAR_CHOICES];   /* [n] of to */
    vlm_thread_t   thread[VLM_WALK_THREADS];    /* VLM_GRAMMAR_CHOICES for each state */
    vlm_cell_t     cell[VLM_WALK_CELLS];        /* no two are equal */
    uint16_t       bucket[VLM_WALK_BUCKETS];    /* the last cell of each hash, or VLM_NO_CELL */
    uint16_t       before[VLM_WALK_CELLS];      /* the one of the same hash before it */
    vlm_visit_t    visit[VLM_WALK_VISITS];
    uint32_t       stamp;
    uint16_t       moved[VLM_WALK_CELLS];          /* where cells go when an answer is kept */
    uint64_t       listed[VLM_PIECE_BYTES + 1][4]; /* mask.c's, by depth: classes with nodes */
    uint32_t       first[VLM_PIECE_BYTES + 1][256];            /* of a class, or VLM_NO_NODE */
    uint32_t       alike[];            /* [nodes of a trie] the next of the same class */
};

int vlm_thread_deep(const vlm_thread_t *t, const vlm_node_t *n);   /* 1: too many brackets */
uint32_t vlm_thread_tail(const vlm_thread_t *t);       /* tokens to the end, behind the value */
uint32_t vlm_thread_left(const vlm_thread_t *t);       /* the same, from its place */

/*
 * The first way from a branch to a member that may come, or the first behind another way; NULL:
 * there is none.
 */
const vlm_way_t *vlm_thread_way(const vlm_thread_t *t, const vlm_branch_t *b,
                                const vlm_way_t *behind);

/* 1: t is a thread of the state that is made.  It replaces another if it has to be kept. */
int vlm_thread_put(vlm_walk_t *w, const vlm_thread_t *t);

/*
 * Opens a cell around what follows: one that is equal, or a new one.  Equal cells are one, so that
 * threads with the same brackets or rules open are equal, too.  VLM_NO_CELL: there is no room, and
 * w is spent.
 */
uint16_t vlm_walk_cell(vlm_walk_t *w, const vlm_cell_t *c);
void vlm_walk_forget(vlm_walk_t *w, uint32_t cells);           /* those from that number on */

void vlm_walk_look(vlm_walk_t *w);     /* sets w->spent */

/* Counts n steps of work. */
static inline void
vlm_walk_count(vlm_walk_t *w, uint64_t n)
{
    w->work += n;

    if (w->work >= w->look) {
        vlm_walk_look(w);
    }
}

/* Adds the threads behind a byte to the state that is made. */
void vlm_thread_step(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c);

#endif
