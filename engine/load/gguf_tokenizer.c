/* The tokenizer that a GGUF file has among its keys. */

#include <stdio.h>
#include <string.h>

#include "load/gguf_model.h"

#define KEY  "tokenizer.ggml."

/* Kinds of tokens in the file. */
enum { NORMAL = 1, CONTROL = 3, NAMED = 4 };

typedef struct {
    const vlm_gguf_value_t  *tokens, *kinds;
    const uint8_t           *at[2];    /* the next token, the next merge */
} lists_t;


static void
go_back(void *data)
{
    lists_t  *l = data;

    l->at[0] = l->tokens->data;
}


static const char *
next(void *data, int list, size_t *n)
{
    lists_t          *l = data;
    vlm_gguf_text_t   t;

    t = vlm_gguf_next(&l->at[list]);
    *n = (size_t) t.n;

    return t.p;
}


static vlm_token_kind_t
kind_of(void *data, uint32_t i)
{
    double    kind = NORMAL;
    lists_t  *l = data;

    (void) vlm_gguf_number(l->kinds, i, &kind);

    return kind == NORMAL ? VLM_TOKEN_BYTES
           : kind == CONTROL ? VLM_TOKEN_SPECIAL : kind == NAMED ? VLM_TOKEN_ADDED : VLM_TOKEN_NONE;
}


static const vlm_gguf_splitter_t *
find_splitter(const vlm_gguf_splitter_t *s, vlm_gguf_text_t name)
{
    for ( /* void */ ; s->name != NULL; s++) {
        if (vlm_gguf_same(name, s->name)) {
            return s;
        }
    }

    return NULL;
}


static void
list_splitters(const vlm_gguf_splitter_t *s, char *text, size_t bytes)
{
    size_t  n;

    for (n = 0; s->name != NULL && n < bytes; s++) {
        n += (size_t) snprintf(text + n, bytes - n, "%s\"%s\"", n == 0 ? "" : " or ", s->name);
    }
}


vlm_tokenizer_t *
vlm_gguf_tokenizer(const vlm_gguf_model_t *m, vlm_err_t *err)
{
    char                     known[120];
    lists_t                  l;
    vlm_gguf_text_t          model, pre;
    vlm_token_list_t         list;
    const vlm_gguf_t        *g = &m->text;
    const vlm_gguf_value_t  *merges;
    const vlm_gguf_splitter_t  *splitter;

    model = vlm_gguf_text(vlm_gguf_find(g, KEY "model"));
    pre = vlm_gguf_text(vlm_gguf_find(g, KEY "pre"));
    splitter = find_splitter(m->family->gguf->splitter, pre);
    merges = vlm_gguf_find(g, KEY "merges");
    l.tokens = vlm_gguf_find(g, KEY "tokens");
    l.kinds = vlm_gguf_find(g, KEY "token_type");

    if (!vlm_gguf_same(model, "gpt2") || splitter == NULL) {
        list_splitters(m->family->gguf->splitter, known, sizeof(known));
        (void) vlm_fail(err, VLM_EMODEL, "%s: the tokenizer is \"%s\", \"%s\", only \"gpt2\" with "
                        "%s is understood", g->path, vlm_printable_part(model.p, model.n),
                        vlm_printable_part(pre.p, pre.n), known);
        return NULL;
    }

    if (!vlm_gguf_is_texts(l.tokens) || !vlm_gguf_is_texts(merges) || l.kinds == NULL
        || l.kinds->n != l.tokens->n)
    {
        (void) vlm_fail(err, VLM_EMODEL, "%s: no " KEY "tokens, token_type and merges, or of "
                        "different lengths", g->path);
        return NULL;
    }

    l.at[1] = merges->data;

    list.name = g->path;
    list.n_tokens = (uint32_t) l.tokens->n;
    list.n_merges = (uint32_t) merges->n;
    list.nfc = splitter->nfc;
    list.whole = splitter->whole;
    list.data = &l;
    list.rewind = go_back;
    list.next = next;
    list.kind = kind_of;

    return vlm_tokenizer_list(&list, splitter->pattern, err);
}
