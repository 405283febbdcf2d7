/* A model as Ollama's clients see it: see ollama.h. */

#include "api/ollama.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

#define LATER  3153600000              /* s: a hundred years, for a model that stays loaded */


void
vlm_ollama_add_time(vlm_json_out_t *w, const char *key, time_t sec, unsigned ms)
{
    struct tm  tm;

    if (gmtime_r(&sec, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900) {
        vlm_json_add_string(w, key, NULL);
        return;
    }

    vlm_json_add_format(w, key, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
                        tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, ms);
}


/* A name without a tag has the tag "latest". */
static void
add_names(vlm_json_out_t *w, const char *name, size_t bytes)
{
    const char  *tag;

    tag = memchr(name, ':', bytes) != NULL ? "" : ":latest";

    vlm_json_add_format(w, "name", "%.*s%s", (int) bytes, name, tag);
    vlm_json_add_format(w, "model", "%.*s%s", (int) bytes, name, tag);
}


/* The digits look like SHA-256, but not of the files: they are the same while the checkpoint, the
   form of its weights, and the adapter's directory are. */
static void
add_digest(vlm_json_out_t *w, const vlm_ollama_model_t *m, const char *adapter)
{
    int           i;
    char          digits[2 * 32 + 1];
    uint8_t       sum[32];
    uint64_t      facts[2] = { (uint64_t) m->created, m->facts->parameters };
    vlm_sha256_t  s;

    vlm_sha256_start(&s);
    vlm_sha256_add(&s, facts, sizeof(facts));
    vlm_sha256_add(&s, m->weights, strlen(m->weights) + 1);
    vlm_sha256_add(&s, adapter, strlen(adapter) + 1);
    vlm_sha256_add(&s, m->directory, m->directory_bytes);
    vlm_sha256_end(&s, sum);

    for (i = 0; i < 32; i++) {
        (void) sprintf(digits + 2 * i, "%02x", sum[i]);
    }

    vlm_json_add_string(w, "digest", digits);
}


/* Ollama writes a family without underscores. */
static void
family_of(const vlm_ollama_model_t *m, char family[32])
{
    char        *p;
    const char  *s;

    p = family;

    for (s = m->facts->architecture; *s != '\0' && p < family + 31; s++) {
        if (*s != '_') {
            *p++ = *s;
        }
    }

    *p = '\0';
}


static void
add_details(vlm_json_out_t *w, const vlm_ollama_model_t *m, int adapter)
{
    int       i;
    char      family[32], form[32];
    uint64_t  n;

    n = m->facts->parameters;
    family_of(m, family);

    for (i = 0; m->weights[i] != '\0' && i < 31; i++) {
        form[i] = (char) toupper((unsigned char) m->weights[i]);
    }

    form[i] = '\0';

    vlm_json_add_open(w, "details", '{');
    vlm_json_add_text(w, "parent_model", m->name, adapter ? m->name_bytes : 0);
    vlm_json_add_string(w, "format", m->format);
    vlm_json_add_string(w, "family", family);

    vlm_json_add_open(w, "families", '[');
    vlm_json_put_text(w, family, strlen(family));
    vlm_json_shut(w, ']');

    if (n >= 1000000000) {
        vlm_json_add_format(w, "parameter_size", "%.1fB", n / 1e9);

    } else {
        vlm_json_add_format(w, "parameter_size", "%.2fM", n / 1e6);
    }

    vlm_json_add_string(w, "quantization_level", form);
    vlm_json_shut(w, '}');
}


void
vlm_ollama_put_tag(vlm_json_out_t *w, const vlm_ollama_model_t *m, const char *name, size_t bytes,
                   const char *adapter)
{
    vlm_json_open(w, '{');
    add_names(w, name, bytes);
    vlm_ollama_add_time(w, "modified_at", m->created, 0);
    vlm_json_add_int(w, "size", (int64_t) m->bytes);
    add_digest(w, m, adapter);
    add_details(w, m, adapter[0] != '\0');
    vlm_json_shut(w, '}');
}


void
vlm_ollama_put_loaded(vlm_json_out_t *w, const vlm_ollama_model_t *m, uint64_t bytes,
                      uint64_t vram, time_t now)
{
    vlm_json_open(w, '{');
    add_names(w, m->name, m->name_bytes);
    vlm_json_add_int(w, "size", (int64_t) bytes);
    vlm_json_add_int(w, "size_vram", (int64_t) vram);
    add_digest(w, m, "");
    add_details(w, m, 0);
    vlm_ollama_add_time(w, "expires_at", now + LATER, 0);
    vlm_json_add_int(w, "context_length", m->context);
    vlm_json_shut(w, '}');
}


/* ---- /api/show ---------------------------------------------------------------------------- */

static void
add_info(vlm_json_out_t *w, const vlm_ollama_model_t *m)
{
    char                family[32], key[64];
    size_t              i;
    const vlm_facts_t  *f = m->facts;

    const struct {
        const char  *key;
        uint64_t     n;
    } facts[] = {
        { "attention.head_count", f->heads },
        { "attention.head_count_kv", f->kv_heads },
        { "block_count", f->layers },
        { "context_length", m->context },
        { "embedding_length", f->hidden },
        { "feed_forward_length", f->mlp },
        { "vision.block_count", f->vision_layers },
        { "vision.patch_size", f->patch },
        { "vocab_size", f->vocab }
    };

    family_of(m, family);

    vlm_json_add_open(w, "model_info", '{');
    vlm_json_add_string(w, "general.architecture", family);
    vlm_json_add_text(w, "general.basename", m->directory, m->directory_bytes);
    vlm_json_add_int(w, "general.parameter_count", (int64_t) f->parameters);

    for (i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        (void) snprintf(key, sizeof(key), "%s.%s", family, facts[i].key);
        vlm_json_add_int(w, key, (int64_t) facts[i].n);
    }

    vlm_json_shut(w, '}');
}


static void
add_template(vlm_json_out_t *w, const vlm_facts_t *f)
{
    if (f->turn == NULL) {
        vlm_json_add_string(w, "template", "{{ .Prompt }}");
        return;
    }

    vlm_json_add_format(w, "template",
                        "{{- range .Messages }}%s{{ .Role }}\n"
                        "{{ .Content }}%s\n"
                        "{{ end }}%sassistant\n", f->turn, f->turn_end, f->turn);
}


static void
add_capabilities(vlm_json_out_t *w, const vlm_ollama_model_t *m)
{
    vlm_json_add_open(w, "capabilities", '[');
    vlm_json_put_text(w, "completion", strlen("completion"));

    if (m->facts->vision_layers > 0) {
        vlm_json_put_text(w, "vision", strlen("vision"));
    }

    if (m->calls) {
        vlm_json_put_text(w, "tools", strlen("tools"));
    }

    if (m->thinks) {
        vlm_json_put_text(w, "thinking", strlen("thinking"));
    }

    vlm_json_shut(w, ']');
}


void
vlm_ollama_show(vlm_json_out_t *w, const vlm_ollama_model_t *m, int adapter)
{
    vlm_json_open(w, '{');
    vlm_json_add_format(w, "modelfile", "FROM %.*s\n", (int) m->directory_bytes, m->directory);
    vlm_json_add_format(w, "parameters",
                        "num_ctx                        %u\n"
                        "num_predict                    %u", m->context, m->max_tokens);
    add_template(w, m->facts);
    add_details(w, m, adapter);
    add_info(w, m);
    add_capabilities(w, m);
    vlm_ollama_add_time(w, "modified_at", m->created, 0);
    vlm_json_shut(w, '}');
}
