/*
 * Fuzz target: the settings and the tokenizer of an encoder of texts, and a text: config.json,
 * sentence_bert_config.json, 1_Pooling/config.json, tokenizer.json and the text, separated by bytes
 * 0xff, which neither has a use for.  Accepted files must keep their promises.
 */

#include <string.h>

#include "embed/settings.h"
#include "text/wordpiece.h"

#define PARTS  5
#define TEXT   4
#define MOST   48

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}


static void
check(const vlm_settings_t *s)
{
    const vlm_text_config_t  *t = &s->config.text;

    require(t->heads > 0 && t->head_dim % 4 == 0 && t->heads * t->head_dim == t->hidden);
    require(t->layers > 0 && t->layers <= VLM_MAX_LAYERS && t->vocab > 0 && t->mlp > 0);
    require(s->tokens >= 3 && s->tokens <= t->max_positions && s->config.family->pieces != NULL);
}


static void
use(const vlm_wordpiece_t *t, uint32_t vocab, const uint8_t *text, size_t bytes)
{
    uint32_t   i, most, n, ids[MOST];
    vlm_err_t  err = { 0 };

    for (most = 2; most <= MOST; most += MOST - 2) {
        if (vlm_wordpiece_ids(t, (const char *) text, bytes, ids, most, &n, &err) != 0) {
            require(err.code == VLM_EINPUT);
            continue;
        }

        require(n >= 2 && n <= most);

        for (i = 0; i < n; i++) {
            require(ids[i] < vocab);
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int                  i, rc;
    size_t               n[PARTS];
    vlm_err_t            err = { 0 };
    vlm_settings_t       s;
    const uint8_t       *end, *part[PARTS];
    vlm_wordpiece_t     *t;
    vlm_settings_file_t  file[VLM_SETTINGS_FILES];

    for (i = 0; i < PARTS; i++) {
        end = bytes == 0 || i == TEXT ? NULL : memchr(data, 0xff, bytes);
        part[i] = data;
        n[i] = end == NULL ? bytes : (size_t) (end - data);
        bytes -= end == NULL ? bytes : n[i] + 1;
        data = end == NULL ? data + n[i] : end + 1;
    }

    for (i = 0; i < VLM_SETTINGS_FILES; i++) {
        file[i].path = "fuzz";
        file[i].data = i > 0 && n[i] == 0 ? NULL : part[i];
        file[i].bytes = n[i];
    }

    rc = vlm_settings_parse(&s, file, &err);
    require((rc != 0) == (err.code != VLM_OK));

    if (rc != 0) {
        return 0;
    }

    check(&s);
    t = vlm_wordpiece_read(part[3], n[3], "fuzz", s.config.family->pieces, s.config.text.vocab,
                           &err);
    require((t == NULL) == (err.code != VLM_OK));

    if (t != NULL) {
        use(t, s.config.text.vocab, part[TEXT], n[TEXT]);
        vlm_wordpiece_close(t);
    }

    return 0;
}
