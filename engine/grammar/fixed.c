/* Values that a schema fixes, as their one text; and the choice of one of several texts. */

#include "grammar/grammar.h"

#include <stdio.h>
#include <string.h>


/* A text as JSON, without the quotes: only what has to be is escaped. */
void
vlm_fixed_text(vlm_json_out_t *w, const char *text)
{
    char        buf[8];
    const char *p, *letter;

    for (p = text; *p != '\0'; p++) {
        letter = strchr("\"\"\\\\\bb\ff\nn\rr\tt", *p);

        if (*p == '"' || *p == '\\' || ((unsigned char) *p < 0x20 && letter != NULL)) {
            buf[0] = '\\';
            buf[1] = letter[1];
            vlm_json_put_raw(w, buf, 2);

        } else if ((unsigned char) *p < 0x20) {
            (void) snprintf(buf, sizeof(buf), "\\u%04x", (unsigned) *p);
            vlm_json_put_raw(w, buf, 6);

        } else {
            vlm_json_put_raw(w, p, 1);
        }
    }
}


/* 0; or -1: a number that would be written as another one. */
int
vlm_fixed_value(vlm_json_out_t *w, const vlm_json_t *j, uint32_t depth)
{
    int64_t            n;
    const char        *digits = vlm_json_digits(j);
    const vlm_json_t  *m;
    const int          object = vlm_json_is_object(j);

    w->comma = 0;

    if (object || vlm_json_is_array(j)) {
        if (depth == VLM_GRAMMAR_DEPTH) {
            return -1;
        }

        vlm_json_put_raw(w, object ? "{" : "[", 1);

        for (m = vlm_json_first(j); m != NULL; m = vlm_json_next(m)) {
            if (object) {
                vlm_json_put_raw(w, "\"", 1);
                vlm_fixed_text(w, vlm_json_key(m));
                vlm_json_put_raw(w, "\":", 2);
            }

            if (vlm_fixed_value(w, m, depth + 1) != 0) {
                return -1;
            }

            vlm_json_put_raw(w, ",", vlm_json_next(m) != NULL);
        }

        vlm_json_put_raw(w, object ? "}" : "]", 1);

    } else if (vlm_json_is_string(j)) {
        vlm_json_put_raw(w, "\"", 1);
        vlm_fixed_text(w, vlm_json_text(j));
        vlm_json_put_raw(w, "\"", 1);

    } else if (vlm_json_int(j, INT64_MIN, INT64_MAX, &n) == 0) {
        vlm_json_put_int(w, n);

    } else if (digits != NULL) {
        vlm_json_put_raw(w, digits, strlen(digits));

    } else if (vlm_json_is_number(j)) {
        if (!(vlm_json_number(j, 1e300) < 9007199254740992.0
              && vlm_json_number(j, 1e300) > -9007199254740992.0))
        {
            return -1;
        }

        vlm_json_put_double(w, vlm_json_number(j, 0));

    } else if (vlm_json_is_bool(j)) {
        vlm_json_put_bool(w, vlm_json_bool(j, 0));

    } else {
        vlm_json_put_null(w);
    }

    return 0;
}


vlm_grammar_t *
vlm_choice_make(const vlm_tokens_t *pieces, const vlm_json_t *list, vlm_err_t *err)
{
    uint64_t           bytes;
    const char        *text;
    vlm_node_t        *root;
    vlm_maker_t        k;
    const vlm_json_t  *j;

    if (vlm_grammar_begin(&k, pieces, err) == NULL) {
        return NULL;
    }

    root = vlm_grammar_node(&k, VLM_NODE_FIXED);
    bytes = 0;
    j = vlm_json_is_array(list) ? vlm_json_first(list) : NULL;

    if (j == NULL) {
        (void) vlm_fail(err, VLM_EINPUT, "the choice is not an array of strings");
        root = NULL;
    }

    for ( /* void */ ; root != NULL && j != NULL; j = vlm_json_next(j)) {
        text = vlm_json_text(j);
        bytes += text == NULL ? 0 : strlen(text);

        if (text == NULL || text[0] == '\0') {
            (void) vlm_fail(err, VLM_EINPUT, "the choice has a text that is empty or no string");
            root = NULL;

        } else if (bytes > VLM_GRAMMAR_BYTES) {
            (void) vlm_fail(err, VLM_ELIMIT, "the choice has more than %u bytes",
                            VLM_GRAMMAR_BYTES);
            root = NULL;

        } else if (vlm_trie_fix(&k, root, text, strlen(text)) != 0) {
            root = NULL;
        }
    }

    if (root == NULL || vlm_grammar_end(&k, root) != 0) {
        vlm_grammar_free(k.g);
        return NULL;
    }

    return k.g;
}
