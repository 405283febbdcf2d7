/*
 * The commands that give a text to the model, or to its tokenizer: tokenize, chat and logits.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "cli/cli.h"
#include "robobrain/task.h"

#define MAX_FILE  (64u << 20)          /* bytes of a picture */


static void
print_json_text(const char *text, size_t bytes)
{
    size_t  i;

    putchar('"');

    for (i = 0; i < bytes; i++) {
        if (text[i] == '"' || text[i] == '\\') {
            printf("\\%c", text[i]);
        } else if ((unsigned char) text[i] < 0x20) {
            printf("\\u%04x", text[i]);
        } else {
            putchar(text[i]);
        }
    }

    putchar('"');
}


int
vlm_cli_tokenize(const vlm_args_t *a, vlm_err_t *err)
{
    int           rc;
    size_t        n, i;
    vlm_t        *v;
    uint32_t     *ids;

    v = vlm_open(&a->conf, err);
    if (v == NULL) {
        return -1;
    }

    rc = vlm_tokenize(v, a->text, strlen(a->text), &ids, &n, err);

    if (rc == 0) {
        for (i = 0; i < n; i++) {
            printf("%s%u", i == 0 ? (a->json ? "[" : "") : a->json ? "," : " ", ids[i]);
        }

        puts(a->json ? (n == 0 ? "[]" : "]") : "");
        free(ids);
    }

    vlm_close(v);

    return rc;
}


static vlm_picture_t *
read_picture(const vlm_t *v, const char *path, vlm_err_t *err)
{
    FILE           *f;
    char           *data;
    size_t          bytes;
    struct stat     st;
    vlm_picture_t  *p;

    f = fopen(path, "rb");
    if (f == NULL || fstat(fileno(f), &st) != 0 || st.st_size > MAX_FILE
        || (data = malloc((size_t) st.st_size + 1)) == NULL)
    {
        (void) vlm_cli_wrong(err, "cannot read the picture", path);

        if (f != NULL) {
            fclose(f);
        }

        return NULL;
    }

    bytes = fread(data, 1, (size_t) st.st_size, f);
    fclose(f);

    p = vlm_picture_read(v, data, bytes, err);
    free(data);

    return p;
}


/* The pictures, then the text: one user message, or the bare parts. */
static vlm_prompt_t *
make_prompt(const vlm_t *v, const vlm_args_t *a, vlm_err_t *err)
{
    int             task;
    char           *text;
    size_t          i, n;
    vlm_part_t      parts[VLM_CLI_IMAGES + 1] = { 0 };
    vlm_facts_t     facts;
    vlm_prompt_t   *p;
    vlm_message_t   message;

    if (a->prompt == NULL) {
        (void) vlm_cli_wrong(err, "--prompt is missing", "");
        return NULL;
    }

    task = a->task == NULL ? VLM_GENERAL : vlm_task_find(a->task, strlen(a->task));
    if (task < 0) {
        (void) vlm_cli_wrong(err, "no such task", a->task);
        return NULL;
    }

    if (vlm_facts(&a->conf, &facts, err) != 0) {
        return NULL;
    }

    text = vlm_task_prompt(facts.tasks, (vlm_task_t) task, a->prompt, strlen(a->prompt));
    if (text == NULL) {
        (void) vlm_cli_wrong(err, "no memory", "");
        return NULL;
    }

    memset(parts, 0, sizeof(parts));
    p = NULL;

    for (n = 0; n < a->n_images; n++) {
        parts[n].picture = read_picture(v, a->image[n], err);
        if (parts[n].picture == NULL) {
            goto done;
        }
    }

    parts[n].text = text;
    parts[n].bytes = strlen(text);

    message.role = VLM_USER;
    message.parts = parts;
    message.n_parts = n + 1;

    p = a->raw ? vlm_prompt_raw(v, parts, n + 1, err) : vlm_prompt_make(v, &message, 1, NULL, err);

done:

    for (i = 0; p == NULL && i < n; i++) {
        vlm_picture_free(parts[i].picture);
    }

    free(text);

    return p;
}


static void
print_answer(const vlm_args_t *a, const char *text, size_t bytes, const vlm_event_t *e)
{
    if (!a->json) {
        putchar('\n');
        return;
    }

    printf("{\"answer\":");
    print_json_text(text, bytes);
    printf(",\"finish\":\"%s\",\"prompt_tokens\":%u,\"completion_tokens\":%u,\"encode_ms\":%u,"
           "\"prefill_ms\":%u,\"first_ms\":%u,\"decode_ms\":%u}\n",
           e->finish == VLM_FINISH_STOP ? "stop" : "length", e->usage.prompt_tokens,
           e->usage.completion_tokens, e->usage.encode_ms, e->usage.prefill_ms, e->usage.first_ms,
           e->usage.decode_ms);
}


/* Prints pieces as they come, or all of it at the end for machines. */
static int
print_events(vlm_t *v, const vlm_args_t *a, vlm_err_t *err)
{
    char         *text, *grown;
    size_t        bytes;
    vlm_event_t   e;

    text = NULL;
    bytes = 0;

    while (vlm_next_event(v, &e)) {
        switch (e.kind) {

        case VLM_TEXT:
            grown = realloc(text, bytes + e.bytes);
            if (grown == NULL) {
                break;
            }

            text = grown;
            memcpy(text + bytes, e.text, e.bytes);
            bytes += e.bytes;

            if (!a->json) {
                fwrite(e.text, 1, e.bytes, stdout);
            }

            break;

        case VLM_FAILED:
            *err = e.err;
            free(text);
            return -1;

        case VLM_DONE:
            print_answer(a, text == NULL ? "" : text, bytes, &e);
            free(text);
            return 0;

        default:
            break;
        }
    }

    free(text);

    return -1;
}


static int
adapt(vlm_t *v, vlm_prompt_t *p, const vlm_args_t *a, vlm_err_t *err)
{
    return a->adapter == NULL ? 0 : vlm_prompt_adapter(v, p, a->adapter, 1, err);
}


int
vlm_cli_chat(const vlm_args_t *a, vlm_err_t *err)
{
    int              rc, idle;
    vlm_t           *v;
    vlm_prompt_t    *p;
    vlm_grammar_t   *grammar;
    vlm_sampling_t   s;

    rc = -1;
    grammar = NULL;
    v = vlm_open(&a->conf, err);
    p = v == NULL ? NULL : make_prompt(v, a, err);

    if (p == NULL || vlm_load(v, err) != 0 || adapt(v, p, a, err) != 0) {
        goto done;
    }

    vlm_sampling_default(v, &s);
    s.seed = a->seed;
    s.grammar = grammar = a->json_mode ? vlm_grammar_object(v, err) : NULL;

    if (a->temperature >= 0) {
        s.temperature = a->temperature;
    }

    if ((a->json_mode && grammar == NULL) || vlm_submit(v, p, &s, NULL, &idle, err) == NULL) {
        goto done;
    }

    p = NULL;
    rc = vlm_run(v, err) == 0 ? print_events(v, a, err) : -1;

done:

    vlm_grammar_free(grammar);
    vlm_prompt_free(p);
    vlm_close(v);

    return rc;
}


typedef struct {
    float     logit;
    uint32_t  id;
} vlm_ranked_t;


static int
by_logit(const void *a, const void *b)
{
    const vlm_ranked_t  *x = a, *y = b;

    return x->logit != y->logit ? (x->logit < y->logit ? 1 : -1)
                                : (x->id > y->id) - (x->id < y->id);
}


static void
print_position(const vlm_args_t *a, uint32_t id, const float *row, uint32_t V, vlm_ranked_t *ranked)
{
    uint32_t  i, n;

    for (i = 0; i < V; i++) {
        ranked[i].logit = row[i];
        ranked[i].id = i;
    }

    qsort(ranked, V, sizeof(*ranked), by_logit);
    n = a->top == 0 || a->top > V ? V : a->top;

    printf(a->json ? "{\"id\":%u,\"top\":[" : "%6u ", id);

    for (i = 0; i < n; i++) {
        if (a->json) {
            printf("%s[%u,%.9g]", i == 0 ? "" : ",", ranked[i].id, ranked[i].logit);
        } else {
            printf(" %u:%.5f", ranked[i].id, ranked[i].logit);
        }
    }

    puts(a->json ? "]}" : "");
}


int
vlm_cli_logits(const vlm_args_t *a, vlm_err_t *err)
{
    int             rc;
    float          *all;
    vlm_t          *v;
    uint32_t        i, V;
    vlm_prompt_t   *p;
    vlm_ranked_t   *ranked;

    rc = -1;
    all = NULL;
    ranked = NULL;
    v = vlm_open(&a->conf, err);
    p = v == NULL ? NULL : make_prompt(v, a, err);

    if (p == NULL || vlm_load(v, err) != 0 || adapt(v, p, a, err) != 0
        || vlm_logits(v, p, &all, &V, err) != 0)
    {
        goto done;
    }

    ranked = malloc(V * sizeof(*ranked));
    if (ranked == NULL) {
        (void) vlm_cli_wrong(err, "no memory", "");
        goto done;
    }

    for (i = 0; i < vlm_prompt_tokens(p); i++) {
        print_position(a, vlm_prompt_ids(p)[i], all + (size_t) i * V, V, ranked);
    }

    rc = 0;

done:

    free(ranked);
    free(all);
    vlm_prompt_free(p);
    vlm_close(v);

    return rc;
}
