/*
 * Templates of conversations.  A checkpoint brings a text in Jinja, which is not run here: those
 * that are published and say the same as words of this list are known by their hash.
 * t/fixtures/text/templates.py renders conversations by them, with which tests compare the words.
 */

#include "family/family.h"

#include <stdio.h>
#include <string.h>

#include "base/sha256.h"
#include "family/qwen.h"

#define SHORT  16                      /* digits of a hash that are compared */

static const vlm_words_t  words[] = {
    { .name = "qwen2", VLM_QWEN_WORDS, .system = "You are a helpful assistant." },
    { .name = "qwen2.5", VLM_QWEN_WORDS,
      .system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." },
    { .name = "qwen2.5-coder", VLM_QWEN_TURNS, VLM_QWEN_TOOLS("{{", "}}"),
      .system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant." },
    { .name = "qwen3", VLM_QWEN_WORDS, .quiet = VLM_QWEN_QUIET },
    { .name = "qwen3-2507", VLM_QWEN_WORDS },
    { .name = "chatml", VLM_QWEN_TURNS },
    { .name = "smollm2", VLM_QWEN_TURNS,
      .system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face" },
    { .name = "llama3",
      .begin = "<|begin_of_text|>", .turn = "<|start_header_id|>", .end = "<|eot_id|>",
      .role = { "system", "user", "assistant", "ipython" }, .role_end = "<|end_header_id|>",
      .role_after = "\n\n", .after = "" }
};

/* The first digits of the SHA-256 of a published Jinja template, and the name of its words. */
static const char *const  compared[][2] = {
#include "family/templates.inc"
};

#define N_WORDS     (sizeof(words) / sizeof(words[0]))
#define N_COMPARED  (sizeof(compared) / sizeof(compared[0]))


const vlm_words_t *
vlm_words_find(const char *name)
{
    size_t  i;

    for (i = 0; i < N_WORDS && strcmp(words[i].name, name) != 0; i++) { /* void */ }

    return i < N_WORDS ? &words[i] : NULL;
}


const vlm_words_t *
vlm_words_of(const char *jinja, size_t bytes)
{
    char     hex[SHORT + 1];
    size_t   i;
    uint8_t  hash[32];

    vlm_sha256(jinja, bytes, hash);

    for (i = 0; i < SHORT / 2; i++) {
        (void) snprintf(hex + 2 * i, 3, "%02x", hash[i]);
    }

    for (i = 0; i < N_COMPARED && strcmp(compared[i][0], hex) != 0; i++) { /* void */ }

    return i < N_COMPARED ? vlm_words_find(compared[i][1]) : NULL;
}


void
vlm_words_list(char *text, size_t bytes)
{
    int     used;
    size_t  i, n;

    for (n = 0, i = 0; i < N_WORDS && n < bytes; i++) {
        used = snprintf(text + n, bytes - n, "%s%s", i == 0 ? "" : ", ", words[i].name);
        n += used < 0 ? bytes : (size_t) used;
    }
}
