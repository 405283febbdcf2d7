/*
 * A grammar of answers: JSON that a schema describes, or one of several texts.
 *
 * A schema is compiled once into a graph of nodes, one for each place where a value stands, with
 * the keys and the fixed texts in tries.  match.h reads bytes by it; mask.h says which tokens may
 * come next.  The graph is read-only once it is made, and any number of threads may use it.
 *
 * Every node knows the least number of tokens that a value takes (the fixed texts are counted in
 * the vocabulary's own tokens), and how many brackets the shortest value opens within each other.
 * From these an answer is steered to its end before its tokens run out.
 */

#ifndef VLM_GRAMMAR_H
#define VLM_GRAMMAR_H

#include <stdatomic.h>

#include "base/json_out.h"
#include "grammar/tokens.h"
#include "vlm.h"

#define VLM_GRAMMAR_BYTES    (64u << 10)       /* of a schema, written without blanks */
#define VLM_GRAMMAR_MEMORY   (16u << 20)       /* bytes of a compiled one */
#define VLM_GRAMMAR_STEPS    (32u << 20)       /* of work: some tenths of a second */
#define VLM_GRAMMAR_CHOICES  64                /* that may begin at one place */
#define VLM_GRAMMAR_DEPTH    64                /* brackets open in an answer */
#define VLM_GRAMMAR_NEVER    (1u << 30)        /* tokens: there is no end */

typedef enum {
    VLM_NODE_STRING,
    VLM_NODE_NUMBER,
    VLM_NODE_INTEGER,
    VLM_NODE_FIXED,                    /* the texts of a trie */
    VLM_NODE_OBJECT,
    VLM_NODE_ARRAY,
    VLM_NODE_PATTERN,                  /* the texts of an automaton */
    VLM_NODE_RULE,                     /* the same, with other rules in it: rules.h */
    VLM_NODE_ANY                       /* one of several, none of which is such a node */
} vlm_node_kind_t;

typedef struct vlm_node_s    vlm_node_t;
typedef struct vlm_branch_s  vlm_branch_t;
typedef struct vlm_member_s  vlm_member_t;
typedef struct vlm_text_s    vlm_text_t;
typedef struct vlm_dfa_s     vlm_dfa_t;

/* A way through an object's keys: the member, and the tokens from here to behind its colon. */
typedef struct {
    uint32_t  member, tokens;
} vlm_way_t;

struct vlm_branch_s {                  /* of a trie: the end of some bytes */
    vlm_branch_t  *child, *sibling;
    vlm_branch_t  *made;               /* the one that was made before */
    vlm_way_t     *way;                /* [n_ways] of keys, by rising member */
    uint32_t       n_ways;
    uint32_t       tokens;             /* of texts: the fewest to an end; of keys: to a quote that
                                          ends a key which is none of them */
    uint32_t       member;             /* of keys: that ends here */
    uint8_t        byte;
    uint8_t        ends;               /* a text ends here, or may */
};

struct vlm_member_s {                  /* and one more behind the last, for what may follow it */
    vlm_node_t    *value;
    const char    *key;                /* [bytes] as in an answer, without quotes */
    uint32_t       bytes;
    uint32_t       required;
    uint32_t       must;               /* the next required one, from this on; n_members: none */
    uint32_t       key_tokens;         /* from the quote to the colon */
    uint32_t       tokens;             /* to the object's end, from before this member's key */
    uint32_t       best;               /* the same, of this or an optional one passed over to */
    uint32_t       tail;               /* the same, from behind the value before */
};

struct vlm_text_s {
    vlm_text_t  *next;
    const char  *text;                 /* [bytes] */
    uint32_t     bytes;
};

struct vlm_node_s {
    vlm_node_kind_t   kind;
    vlm_node_t       *made;            /* the one that was made before */
    vlm_node_t       *queued;          /* while unions are made flat */
    uint32_t          mark;            /* the same */
    vlm_text_t       *texts;           /* the fixed ones, the last first */
    uint32_t          tokens;          /* of the shortest value */
    uint32_t          need;            /* brackets that it opens within each other */
    uint32_t          deep;            /* the most that a part of an object or array needs */
    uint32_t          low, high;       /* characters or items; UINT32_MAX: no bound */
    vlm_branch_t     *trie;            /* fixed texts, or keys; NULL: no keys */
    uint32_t          far;             /* of keys: the largest of their branches' tokens */
    vlm_member_t     *member;          /* [n + 1] of an object */
    vlm_node_t      **part;            /* [n] of ANY; of an array the first items; of a rule all
                                          rules */
    uint32_t         *tail;            /* [n + 1] of an array: tokens from behind that many items */
    uint32_t          n;
    vlm_node_t       *rest;            /* further items or members; NULL: none */
    const vlm_dfa_t  *dfa;             /* of a pattern: its quotes are part of it */
    const uint8_t    *need_of;         /* [n_states] of a rule: "need" of the rest of it */
    uint8_t           begins[32];      /* of a rule: a bit for each byte that it may begin with */
    char              first;           /* of it: '"' a string, '0' a number, '\0' a text as it is */
    double            from, to;        /* of such a number: it lies within these, both included */
};

typedef struct vlm_block_s  vlm_block_t;

struct vlm_grammar_s {
    atomic_int     users;
    vlm_node_t    *root;
    int            blanks;             /* JSON: blanks may stand between its parts; 2: and before */
    uint8_t        class_of[256];      /* bytes of one class lead to the same, wherever they are */
    uint32_t       n_classes;
    vlm_block_t   *blocks;             /* of memory */
    uint64_t       bytes;              /* of them */
};

/* A grammar while it is made. */
typedef struct {
    vlm_grammar_t       *g;
    const vlm_tokens_t  *pieces;
    uint8_t             *block;        /* [room] not yet given out */
    size_t               room;
    vlm_node_t          *nodes;        /* the last that was made */
    uint32_t             steps;
    vlm_err_t           *err;
} vlm_maker_t;

/* All return NULL or -1 with err set: VLM_ELIMIT or VLM_EMEMORY. */

vlm_grammar_t *vlm_grammar_begin(vlm_maker_t *k, const vlm_tokens_t *pieces, vlm_err_t *err);
void *vlm_grammar_take(vlm_maker_t *k, uint64_t bytes);        /* zeroed */
vlm_node_t *vlm_grammar_node(vlm_maker_t *k, vlm_node_kind_t kind);
int vlm_grammar_step(vlm_maker_t *k, uint32_t n);              /* counts work */

/* The branch behind some bytes, made where there is none. */
vlm_branch_t *vlm_trie_add(vlm_maker_t *k, vlm_branch_t **trie, const char *text, size_t bytes);
const vlm_branch_t *vlm_trie_child(const vlm_branch_t *b, uint8_t byte);       /* or NULL */
int vlm_trie_fix(vlm_maker_t *k, vlm_node_t *fixed, const char *text, size_t bytes);
/* Counts the tokens of fixed texts; lists the ways of an object's keys. */
int vlm_trie_count(vlm_maker_t *k, vlm_branch_t *trie);
int vlm_trie_keys(vlm_maker_t *k, vlm_node_t *object);

/* Puts what each ANY node may begin with in place of nodes of that kind. */
int vlm_union_flatten(vlm_maker_t *k);
/* 1: no value is both; only what is certain counts. */
int vlm_union_apart(vlm_maker_t *k, const vlm_node_t *a, const vlm_node_t *b, uint32_t depth);

/* Sets tokens, need and deep of every node, and the same of members. */
int vlm_cost(vlm_maker_t *k);

/* Sets class_of.  -1: it is too much work. */
int vlm_grammar_classes(vlm_maker_t *k);

/* Makes a whole of the nodes: unions flat, texts counted, costs; fails if no value has an end. */
int vlm_grammar_end(vlm_maker_t *k, vlm_node_t *root);

static inline uint32_t
vlm_cost_add(uint32_t a, uint32_t b)
{
    return a >= VLM_GRAMMAR_NEVER || b >= VLM_GRAMMAR_NEVER - a ? VLM_GRAMMAR_NEVER : a + b;
}

/* The node of an array's item, from 0; NULL: it can have no such item. */
static inline const vlm_node_t *
vlm_grammar_item(const vlm_node_t *array, uint32_t i)
{
    return i >= array->high ? NULL : i < array->n ? array->part[i] : array->rest;
}

/*
 * Compiles a JSON schema.  VLM_EINPUT with the place of what is not supported or contradicts
 * itself; VLM_ELIMIT with the bound.
 */
vlm_grammar_t *vlm_schema_make(const vlm_tokens_t *pieces, const vlm_json_t *schema,
                               vlm_err_t *err);

/* Writes a text as JSON, without its quotes; a value.  -1: it would be written as another one. */
void vlm_fixed_text(vlm_json_out_t *w, const char *text);
int vlm_fixed_value(vlm_json_out_t *w, const vlm_json_t *j, uint32_t depth);

/* A text that matches a regular expression as a whole. */
vlm_grammar_t *vlm_regex_make(const vlm_tokens_t *pieces, const char *expression, vlm_err_t *err);

/* A text by the rule "root" of a grammar in llama.cpp's form, GBNF. */
vlm_grammar_t *vlm_gbnf_make(const vlm_tokens_t *pieces, const char *text, vlm_err_t *err);

/* One of the strings of a list, as plain text. */
vlm_grammar_t *vlm_choice_make(const vlm_tokens_t *pieces, const vlm_json_t *list,
                               vlm_err_t *err);

/*
 * A call of one of these tools, which stand in OpenAI's form: {"name": "...", "arguments": {...}}.
 * Where a tool is not "strict" and its schema cannot be compiled, its arguments are any object.
 */
vlm_grammar_t *vlm_tools_make(const vlm_tokens_t *pieces, const vlm_json_t *tools,
                              vlm_err_t *err);

/* Any JSON object. */
vlm_grammar_t *vlm_object_make(const vlm_tokens_t *pieces, vlm_err_t *err);

vlm_grammar_t *vlm_grammar_share(vlm_grammar_t *g);            /* one more user; takes NULL */

#endif
