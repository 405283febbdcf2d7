/*
 * Compiles JSON schemas, says which texts their automata take, and writes texts by them: the other
 * half of schema_set.py.
 *
 * Each line of the standard input is {"schema": TEXT, "texts": [TEXT, ...], "walks": N}, and is
 * answered by a line: {"error": SENTENCE}, or {"takes": [BOOL, ...], "walks": [TEXT, ...], "ms": X}.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/json_out.h"
#include "grammar/mask.h"
#include "text/tokenizer.h"

#include "family/qwen.h"

#define MORE  120                      /* tokens of a text, beside those of the shortest one */
#define ROOM  (1u << 20)               /* bytes of a text */

static vlm_tokenizer_t  *tokenizer;
static vlm_tokens_t     *pieces;
static vlm_walk_t       *walker;
static vlm_match_t       match;
static uint32_t         *allowed;      /* [n_words] */
static uint64_t          seed = 1;
static char              text[ROOM];


static uint32_t
random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((seed >> 33) % n);
}


static int
takes(const vlm_grammar_t *g, const char *p)
{
    vlm_match_start(&match, g);

    while (*p != '\0' && vlm_match_read(&match, walker, p, 1) == 0) {
        p++;
    }

    return *p == '\0' && vlm_match_may_end(&match);
}


/* An allowed token, each as likely; UINT32_MAX: there is none. */
static uint32_t
pick(void)
{
    uint32_t  w, n, id;

    for (n = 0, w = 0; w < pieces->n_words; w++) {
        n += (uint32_t) __builtin_popcount(allowed[w]);
    }

    if (n == 0) {
        return UINT32_MAX;
    }

    n = random_below(n);

    for (id = 0; n > 0 || !(allowed[id / 32] >> (id % 32) & 1); id++) {
        n -= allowed[id / 32] >> (id % 32) & 1;
    }

    return id;
}


/* A text of random tokens; NULL: it came to no end. */
static const char *
walk(const vlm_grammar_t *g)
{
    size_t       n, bytes;
    uint32_t     id, left;
    const char  *p;

    vlm_match_start(&match, g);
    left = vlm_grammar_least(g) + MORE;

    for (n = 0; !vlm_match_done(&match); n += bytes, left--) {
        if (vlm_match_may_end(&match) && (left == 0 || random_below(2) == 0)) {
            break;
        }

        if (left == 0) {
            return NULL;
        }

        vlm_mask(pieces, &match, walker, left - 1, allowed);
        id = pick();

        if (id == UINT32_MAX && vlm_match_may_end(&match)) {
            break;
        }

        p = id == UINT32_MAX ? NULL : vlm_token_bytes(tokenizer, id, &bytes);

        if (p == NULL || n + bytes >= ROOM || vlm_match_read(&match, walker, p, bytes) != 0) {
            return NULL;
        }

        memcpy(text + n, p, bytes);
    }

    text[n] = '\0';

    return text;
}


static void
report(const vlm_grammar_t *g, const vlm_json_t *line, double ms, vlm_json_out_t *w)
{
    uint32_t           i, n;
    const char        *p;
    const vlm_json_t  *j;

    n = (uint32_t) vlm_json_number(vlm_json_get(line, "walks"), 0);
    vlm_json_add_double(w, "ms", ms);
    vlm_json_add_open(w, "takes", '[');

    for (j = vlm_json_first(vlm_json_get(line, "texts")); j != NULL; j = vlm_json_next(j)) {
        vlm_json_put_bool(w, takes(g, vlm_json_text(j)));
    }

    vlm_json_shut(w, ']');
    vlm_json_add_open(w, "walks", '[');

    for (i = 0; i < n; i++) {
        p = walk(g);
        vlm_json_put_text(w, p, p == NULL ? 0 : strlen(p));
    }

    vlm_json_shut(w, ']');
}


static void
answer(const char *data, size_t bytes)
{
    uint64_t         from;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_json_t      *line, *schema;
    const char      *p;
    vlm_grammar_t   *g;
    vlm_json_out_t   w;

    line = vlm_json_parse(data, bytes, &err);
    p = vlm_json_text(vlm_json_get(line, "schema"));
    schema = p == NULL ? NULL : vlm_json_parse(p, strlen(p), &err);
    from = vlm_now_us();
    g = schema == NULL ? NULL : vlm_schema_make(pieces, schema, &err);

    vlm_json_init(&w, 64u << 20);
    vlm_json_open(&w, '{');

    if (g == NULL) {
        vlm_json_add_string(&w, "error", err.text);
    } else {
        report(g, line, (double) (vlm_now_us() - from) / 1000, &w);
    }

    vlm_json_shut(&w, '}');
    (void) vlm_json_done(&w);
    (void) fwrite(w.data, 1, w.len, stdout);
    (void) fflush(stdout);

    vlm_json_release(&w);
    vlm_grammar_free(g);
    vlm_json_free(schema);
    vlm_json_free(line);
}


int
main(int argc, char **argv)
{
    char       *data = NULL;
    size_t      room = 0;
    ssize_t     n;
    vlm_err_t   err = { VLM_OK, "" };

    if (argc != 2) {
        (void) fprintf(stderr, "usage: schema-set CHECKPOINT <REQUESTS\n");
        return 2;
    }

    tokenizer = vlm_tokenizer_open(argv[1], vlm_qwen_split, &err);
    pieces = tokenizer == NULL ? NULL
             : vlm_tokens_open(tokenizer, vlm_vocab_size(tokenizer), NULL, 0, &err);
    walker = vlm_walk_open(pieces);
    allowed = pieces == NULL ? NULL : calloc(pieces->n_words, sizeof(*allowed));

    if (walker == NULL || allowed == NULL) {
        (void) fprintf(stderr, "%s: %s\n", argv[1], err.text);
        return 1;
    }

    while ((n = getline(&data, &room, stdin)) > 0) {
        answer(data, (size_t) n);
    }

    free(data);
    free(allowed);
    vlm_walk_close(walker);
    vlm_tokens_close(pieces);
    vlm_tokenizer_close(tokenizer);

    return 0;
}
