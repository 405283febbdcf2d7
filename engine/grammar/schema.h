/* A schema while it is compiled: for the files that do so. */

#ifndef VLM_SCHEMA_H
#define VLM_SCHEMA_H

#include "grammar/grammar.h"

/* Groups of keywords. */
#define NOTE      0x001                /* says nothing about values */
#define TYPE      0x002
#define NULLABLE  0x004
#define REF       0x008
#define FIXED     0x010
#define UNION     0x020
#define OBJECT    0x040
#define ARRAY     0x080
#define STRING    0x100
#define ROOT      0x200                /* a note at the root alone */
#define NUMBER    0x400
#define ID        0x800                /* a note, unless it changes what a "$ref" within means */
#define MORE      0x1000               /* a note, unless "items" is an array */

/* Bits of types. */
enum { T_NULL = 1, T_BOOLEAN = 2, T_INTEGER = 4, T_NUMBER = 8, T_STRING = 16, T_ARRAY = 32,
       T_OBJECT = 64, T_ALL = 127 };

typedef struct at_s  at_t;

struct at_s {                          /* the place of a schema, for messages */
    const at_t  *up;                   /* NULL: key is a pointer from the root */
    const char  *key;                  /* NULL: the number */
    uint32_t     number, depth;
};

typedef struct later_s  later_t;

struct later_s {                       /* a schema that was referred to */
    later_t            *next;
    const vlm_json_t   *schema;
    const vlm_json_t   *root;          /* of its own pointers */
    const char         *pointer;
    vlm_node_t         *node;
};

typedef struct one_of_s  one_of_t;

struct one_of_s {                      /* checked once all parts are known */
    one_of_t    *next;
    char        *place;
    vlm_node_t **part;                 /* [n] */
    uint32_t     n;
};

typedef struct document_s  document_t;    /* made of parts of the schema */

typedef struct {
    vlm_maker_t        k;
    const vlm_json_t  *root;
    document_t        *documents;
    uint64_t           bytes;          /* of them */
    later_t           *later, **last;
    one_of_t          *one_of;
    vlm_node_t        *string, *number, *integer, *boolean, *null, *object, *array, *any;
} schema_t;

int vlm_schema_size(const vlm_json_t *schema, vlm_err_t *err);         /* -1: it is too large */

/* vlm_schema_make() with the steps of work that were done before, which it counts on. */
vlm_grammar_t *vlm_schema_within(const vlm_tokens_t *pieces, const vlm_json_t *schema,
                                 uint32_t *steps, vlm_err_t *err);

/* All return NULL with an error that was set. */

/* The node of a schema that is compiled later, once; pointer: its place, for messages. */
vlm_node_t *vlm_schema_later(schema_t *s, const vlm_json_t *target, const char *pointer);
/* Compiles what is left for later, and makes a whole of the nodes.  NULL frees the grammar. */
vlm_grammar_t *vlm_schema_finish(schema_t *s, vlm_node_t *root);

/* Fails: "the schema's PLACE/key what".  key NULL: the place itself. */
vlm_node_t *vlm_schema_refuse(schema_t *s, const at_t *at, const char *key, const char *what);

vlm_node_t *vlm_schema_compile(schema_t *s, const vlm_json_t *j, const at_t *at);
/* The schemas of an array, *n of them; NULL: it is none, or one of them is refused. */
vlm_node_t **vlm_schema_list(schema_t *s, const vlm_json_t *list, const char *key, uint32_t *n,
                             const at_t *at);

vlm_node_t *vlm_schema_any(schema_t *s);           /* any value */
vlm_node_t *vlm_schema_union(schema_t *s, vlm_node_t *const *part, uint32_t n);
/* The values of "enum" or "const" that are of these types. */
vlm_node_t *vlm_schema_fixed(schema_t *s, const vlm_json_t *j, unsigned types, const at_t *at);
/* A string with "pattern" or "format"; lengths: a node that has them. */
vlm_node_t *vlm_schema_pattern(schema_t *s, const vlm_json_t *j, const vlm_node_t *lengths,
                               const at_t *at);
/* A number, or an integer, with the bounds that there are. */
vlm_node_t *vlm_schema_range(schema_t *s, const vlm_json_t *j, int integer, const at_t *at);
/*
 * A schema that holds where a and b (or NULL), what they refer to and their "allOf" hold; "but" is
 * a keyword of a that is left out, or NULL.  It lives until vlm_schema_forget().
 */
const vlm_json_t *vlm_schema_merge(schema_t *s, const vlm_json_t *a, const vlm_json_t *b,
                                   const char *but, const at_t *at);
void vlm_schema_forget(schema_t *s);
/* Of two numbers: 1 if the first is greater, -1 if it is less, to the last digit of 64 bits. */
int vlm_schema_compare(const vlm_json_t *one, const vlm_json_t *other);

/* The schema at a pointer from the root, "#/a/0", or NULL. */
const vlm_json_t *vlm_schema_find(const vlm_json_t *root, const char *pointer);
/* Bits of "type"; 0: it is refused.  The name of a bit, or NULL behind the last. */
unsigned vlm_schema_types(schema_t *s, const vlm_json_t *j, const at_t *at);
const char *vlm_schema_type(uint32_t bit);
int vlm_schema_is_note(const char *keyword);       /* 1: it says nothing about values */
/* Not 0: it is not the root, and names an address from which a "$ref" within it is read. */
int vlm_schema_has_base(schema_t *s, const vlm_json_t *j);

/* Values of these types, with the bounds of these groups of keywords. */
vlm_node_t *vlm_schema_typed(schema_t *s, const vlm_json_t *j, unsigned groups, unsigned types,
                             const at_t *at);

#endif
