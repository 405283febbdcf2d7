/* Tokenizers of lists: a token is there once. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "text/tokenizer.h"

#define N_MOST  300

typedef struct {
    char              text[N_MOST][24];
    vlm_token_kind_t  of[N_MOST];
    uint32_t          n, at;
} tokens_t;


static void
add(tokens_t *t, const char *text, vlm_token_kind_t kind)
{
    strcpy(t->text[t->n], text);
    t->of[t->n++] = kind;
}


/* The characters that stand for the bytes in a byte-level vocabulary. */
static void
add_bytes(tokens_t *t)
{
    char      text[3] = "";
    uint32_t  b, c, next = 256;

    for (b = 0; b < 256; b++) {
        c = (b >= 33 && b <= 126) || (b >= 161 && b != 173) ? b : next++;
        text[0] = (char) (c < 128 ? c : 0xc0 | c >> 6);
        text[1] = (char) (c < 128 ? 0 : 0x80 | (c & 63));
        add(t, text, VLM_TOKEN_BYTES);
    }
}


static void
go_back(void *data)
{
    ((tokens_t *) data)->at = 0;
}


static const char *
next(void *data, int list, size_t *n)
{
    tokens_t  *t = data;

    (void) list;
    *n = strlen(t->text[t->at]);

    return t->text[t->at++];
}


static vlm_token_kind_t
kind(void *data, uint32_t id)
{
    return ((tokens_t *) data)->of[id];
}


static vlm_tokenizer_t *
make(tokens_t *t, vlm_err_t *err)
{
    vlm_token_list_t  l = {
        .name = "x", .n_tokens = t->n, .data = t, .rewind = go_back, .next = next, .kind = kind
    };

    memset(err, 0, sizeof(*err));

    return vlm_tokenizer_list(&l, "\\p{L}+|.", err);
}


static void
a_token_that_is_there_twice_is_refused_with_both_ids(void **state)
{
    vlm_err_t         err;
    tokens_t          t = { .n = 0 };
    vlm_tokenizer_t  *made;

    (void) state;

    add_bytes(&t);
    made = make(&t, &err);             /* no token has a name */
    assert_non_null(made);
    vlm_tokenizer_close(made);

    add(&t, "<end>", VLM_TOKEN_SPECIAL);
    add(&t, "<call>", VLM_TOKEN_ADDED);
    add(&t, "<end", VLM_TOKEN_SPECIAL);

    made = make(&t, &err);
    assert_non_null(made);
    assert_int_equal(vlm_special(made, "<end>"), 256);
    vlm_tokenizer_close(made);

    add(&t, "<end>", VLM_TOKEN_ADDED);
    assert_null(make(&t, &err));
    assert_string_equal(err.text, "x: ids 256 and 259 are both the token \"<end>\"");

    t.of[259] = VLM_TOKEN_NONE;        /* a place that is left empty has any text */
    made = make(&t, &err);
    assert_non_null(made);
    vlm_tokenizer_close(made);

    add(&t, "a", VLM_TOKEN_BYTES);
    assert_null(make(&t, &err));
    assert_string_equal(err.text, "x: ids 97 and 260 are the same token");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_token_that_is_there_twice_is_refused_with_both_ids)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
