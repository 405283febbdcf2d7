/* Calls of tools: the name of one of them, and arguments that its schema describes. */

#include "grammar/schema.h"

#include <stdio.h>
#include <string.h>

#define TOOLS  VLM_GRAMMAR_CHOICES

static const char  none[] = "{\"type\":\"object\",\"properties\":{}}";      /* no parameters */
static const char  any[] = "{\"type\":\"object\"}";
static const char  frame[] = "{\"properties\":{\"name\":{\"const\":\"\"},\"arguments\":true},"
                             "\"required\":[\"name\",\"arguments\"]}";

typedef struct {
    const vlm_tokens_t  *pieces;
    const vlm_json_t    *frame, *none, *any;
    uint32_t             steps;        /* of schemas that were tried */
} tools_t;


/* The schema of a tool's arguments. */
static const vlm_json_t *
arguments_of(tools_t *t, const vlm_json_t *function)
{
    vlm_err_t          err = { VLM_OK, "" };
    vlm_grammar_t     *g;
    const vlm_json_t  *schema;

    schema = vlm_json_get(function, "parameters");

    if (vlm_json_is_null(schema)) {
        return t->none;
    }

    if (vlm_json_is_true(vlm_json_get(function, "strict"))) {
        return schema;
    }

    /* One that is not strict may have a schema of any kind. */

    g = vlm_json_is_object(schema) && vlm_json_count(schema) > 0
        ? vlm_schema_within(t->pieces, schema, &t->steps, &err) : NULL;
    schema = g == NULL || g->root->kind != VLM_NODE_OBJECT ? t->any : schema;
    vlm_grammar_free(g);

    return schema;
}


static vlm_node_t *
tool_node(schema_t *s, tools_t *t, const vlm_json_t *tool, uint32_t i)
{
    char              *place;
    const char        *name;
    vlm_node_t        *call, *fixed, *arguments;
    vlm_json_out_t     w;
    const vlm_json_t  *function, *schema;

    function = vlm_json_get(tool, "function");
    name = vlm_json_text(vlm_json_get(function, "name"));
    place = vlm_grammar_take(&s->k, 48);

    if (place == NULL) {
        return NULL;
    }

    (void) snprintf(place, 48, "tools.%u.function.parameters", i);

    if (name == NULL || name[0] == '\0') {
        (void) vlm_fail(s->k.err, VLM_EINPUT, "tools.%u has no function with a name", i);
        return NULL;
    }

    schema = arguments_of(t, function);
    s->root = t->frame;
    call = vlm_schema_compile(s, t->frame, &(at_t) { NULL, place, 0, 0 });
    s->root = schema;
    arguments = vlm_schema_later(s, schema, place);
    fixed = vlm_grammar_node(&s->k, VLM_NODE_FIXED);

    if (call == NULL || arguments == NULL || fixed == NULL) {
        return NULL;
    }

    vlm_json_init(&w, VLM_GRAMMAR_BYTES);
    vlm_json_put_raw(&w, "\"", 1);
    vlm_fixed_text(&w, name);
    vlm_json_put_raw(&w, "\"", 1);

    if (vlm_json_done(&w) != 0) {
        (void) vlm_fail(s->k.err, VLM_ELIMIT, "tools.%u has a name of more than %u bytes", i,
                        VLM_GRAMMAR_BYTES);
        fixed = NULL;

    } else if (vlm_trie_fix(&s->k, fixed, w.data, w.len - 1) != 0) {
        fixed = NULL;
    }

    vlm_json_release(&w);

    if (fixed == NULL) {
        return NULL;
    }

    call->member[0].value = fixed;
    call->member[1].value = arguments;

    return call;
}


static vlm_node_t *
all_tools(schema_t *s, tools_t *t, const vlm_json_t *tools)
{
    uint32_t           n;
    vlm_node_t        *part[TOOLS];
    const vlm_json_t  *tool;

    for (n = 0, tool = vlm_json_first(tools); tool != NULL; tool = vlm_json_next(tool)) {
        if (n == TOOLS) {
            (void) vlm_fail(s->k.err, VLM_ELIMIT, "there are more than %d tools", TOOLS);
            return NULL;
        }

        part[n] = tool_node(s, t, tool, n);

        if (part[n++] == NULL) {
            return NULL;
        }
    }

    return vlm_schema_union(s, part, n);
}


vlm_grammar_t *
vlm_tools_make(const vlm_tokens_t *pieces, const vlm_json_t *tools, vlm_err_t *err)
{
    tools_t         t = { .pieces = pieces };
    schema_t        s = { 0 };
    vlm_json_t     *f, *n, *a;
    vlm_grammar_t  *g;

    if (!vlm_json_is_array(tools) || vlm_json_count(tools) == 0) {
        (void) vlm_fail(err, VLM_EINPUT, "the tools are not an array of tools");
        return NULL;
    }

    if (vlm_schema_size(tools, err) != 0 || vlm_grammar_begin(&s.k, pieces, err) == NULL) {
        return NULL;
    }

    t.frame = f = vlm_json_parse(frame, sizeof(frame) - 1, NULL);
    t.none = n = vlm_json_parse(none, sizeof(none) - 1, NULL);
    t.any = a = vlm_json_parse(any, sizeof(any) - 1, NULL);
    s.k.g->blanks = 2;
    s.last = &s.later;

    if (f == NULL || n == NULL || a == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for tools");
        vlm_grammar_free(s.k.g);
        g = NULL;

    } else {
        g = vlm_schema_finish(&s, all_tools(&s, &t, tools));
    }

    vlm_json_free(f);
    vlm_json_free(n);
    vlm_json_free(a);

    return g;
}
