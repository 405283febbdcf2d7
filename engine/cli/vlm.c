/*
 * build/vlm: the engine on the command line, for people who look at a checkpoint before they
 * deploy it.  The same library as the nginx module's, nothing added.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "vlm.h"

#define MAX_IMAGES  64
#define MAX_FILE    (64u << 20)        /* bytes of a picture */

typedef struct {
    vlm_conf_t   conf;
    const char  *prompt, *text, *task;
    const char  *image[MAX_IMAGES];
    size_t       n_images;
    uint32_t     top;
    int          raw, json, json_mode;
    float        temperature;
    uint64_t     seed;
} vlm_args_t;

typedef int (*vlm_command_fn)(const vlm_args_t *a, vlm_err_t *err);

static int parse(int argc, char **argv, vlm_args_t *a, vlm_err_t *err);
static int option(const char *name, const char *value, vlm_args_t *a, vlm_err_t *err);
static int plan(const vlm_args_t *a, vlm_err_t *err);
static int tokenize(const vlm_args_t *a, vlm_err_t *err);
static int chat(const vlm_args_t *a, vlm_err_t *err);
static int logits(const vlm_args_t *a, vlm_err_t *err);

static const struct {
    const char      *name;
    vlm_command_fn   run;
} commands[] = {
    { "plan", plan }, { "tokenize", tokenize }, { "chat", chat }, { "logits", logits }
};

static const char  usage[] =
    "usage: vlm plan DIR                              the memory plan\n"
    "       vlm tokenize DIR TEXT                     ids of a text\n"
    "       vlm chat DIR --image F --prompt P         an answer\n"
    "       vlm logits DIR --prompt P [--image F ...] [--raw] --top K\n"
    "                                                 the likeliest K ids at each position;\n"
    "                                                 0: all\n"
    "\n"
    "  --device auto|cpu|cuda[:N]   --ops plain|avx2|avxvnni|avx512|amx --weights int8|bf16|f32\n"
    "  --threads N    --context N   --slots N   --memory BYTES[k|m|g]   --max-pixels N\n"
    "  --max-tokens N --temperature T           --seed N        --task NAME\n"
    "  --features N   --json for machines       --json-mode: the answer is a JSON object\n"
    "  --cache DIR    that keeps the int8 form\n"
    "\n"
    "       vlm --version\n";


int
main(int argc, char **argv)
{
    size_t      i;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_args_t  a;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("vlm " VLM_VERSION);
        return 0;
    }

    for (i = 0; argc >= 3 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) != 0) {
            continue;
        }

        if (parse(argc, argv, &a, &err) == 0 && commands[i].run(&a, &err) == 0) {
            return 0;
        }

        fprintf(stderr, "vlm %s: %s\n", argv[1], err.text);
        return 1;
    }

    fputs(usage, stderr);

    return 2;
}


static int
parse(int argc, char **argv, vlm_args_t *a, vlm_err_t *err)
{
    int          i;
    const char  *name;

    memset(a, 0, sizeof(*a));
    vlm_conf_default(&a->conf);
    a->conf.model = argv[2];
    a->conf.slots = 1;
    a->top = 5;
    a->temperature = -1;

    for (i = 3; i < argc; i++) {
        name = argv[i];

        if (strncmp(name, "--", 2) != 0) {
            a->text = name;

        } else if (strcmp(name, "--raw") == 0) {
            a->raw = 1;

        } else if (strcmp(name, "--json") == 0) {
            a->json = 1;

        } else if (strcmp(name, "--json-mode") == 0) {
            a->json_mode = 1;

        } else if (i + 1 == argc) {
            err->code = VLM_EINPUT;
            (void) snprintf(err->text, sizeof(err->text), "%.40s wants a value", name);
            return -1;

        } else if (option(name, argv[++i], a, err) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
wrong(vlm_err_t *err, const char *what, const char *value)
{
    err->code = VLM_EINPUT;
    (void) snprintf(err->text, sizeof(err->text), "%.60s: \"%.200s\"", what, value);

    return -1;
}


/* "8k", "600m": powers of 1024. */
static int
number(const char *text, uint64_t *out)
{
    char                *end;
    unsigned long long   n;

    errno = 0;
    n = strtoull(text, &end, 10);

    if (end == text || text[0] == '-' || errno != 0) {
        return -1;
    }

    switch (*end) {
    case 'g': case 'G': n *= 1024;                 /* fall through */
    case 'm': case 'M': n *= 1024;                 /* fall through */
    case 'k': case 'K': n *= 1024; end++;
    }

    *out = n;

    return *end == '\0' ? 0 : -1;
}


static int
set_weights(vlm_conf_t *conf, const char *value)
{
    if (strcmp(value, "int8") == 0) {
        conf->weights = VLM_INT8;
    } else if (strcmp(value, "bf16") == 0) {
        conf->weights = VLM_BF16;
    } else if (strcmp(value, "f32") == 0) {
        conf->weights = VLM_F32;
    } else {
        return -1;
    }

    return 0;
}


static int
option(const char *name, const char *value, vlm_args_t *a, vlm_err_t *err)
{
    size_t     i;
    uint64_t   n;
    struct {
        const char  *name;
        uint32_t    *to;
    } numbers[] = {
        { "--threads", &a->conf.threads }, { "--context", &a->conf.context },
        { "--slots", &a->conf.slots }, { "--max-tokens", &a->conf.max_tokens },
        { "--features", &a->conf.features }, { "--top", &a->top }
    };
    struct {
        const char   *name;
        const char  **to;
    } texts[] = {
        { "--prompt", &a->prompt }, { "--device", &a->conf.device }, { "--ops", &a->conf.ops },
        { "--task", &a->task }, { "--cache", &a->conf.cache }
    };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            if (number(value, &n) != 0 || n > UINT32_MAX) {
                return wrong(err, name, value);
            }

            *numbers[i].to = (uint32_t) n;
            return 0;
        }
    }

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return 0;
        }
    }

    if (strcmp(name, "--image") == 0) {
        if (a->n_images == MAX_IMAGES) {
            return wrong(err, "too many pictures", value);
        }

        a->image[a->n_images++] = value;
        return 0;
    }

    if (strcmp(name, "--weights") == 0) {
        return set_weights(&a->conf, value) == 0 ? 0 : wrong(err, name, value);
    }

    if (strcmp(name, "--memory") == 0) {
        return number(value, &a->conf.memory) == 0 ? 0 : wrong(err, name, value);
    }

    if (strcmp(name, "--max-pixels") == 0) {
        return number(value, &a->conf.max_pixels) == 0 ? 0 : wrong(err, name, value);
    }

    if (strcmp(name, "--seed") == 0) {
        return number(value, &a->seed) == 0 ? 0 : wrong(err, name, value);
    }

    if (strcmp(name, "--temperature") == 0) {
        a->temperature = strtof(value, NULL);
        return 0;
    }

    return wrong(err, "no such option", name);
}


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


static void
print_json_plan(const vlm_plan_t *p, const vlm_facts_t *f)
{
    printf("{\"weights\":%" PRIu64 ",\"vision\":%" PRIu64 ",\"kv\":%" PRIu64
           ",\"workspace\":%" PRIu64 ",\"device\":%" PRIu64 ",\"total\":%" PRIu64,
           p->weights, p->vision, p->kv, p->workspace, p->device, p->total);

    printf(",\"model\":{\"architecture\":\"%s\",\"parameters\":%" PRIu64 ",\"layers\":%u"
           ",\"heads\":%u,\"kv_heads\":%u,\"hidden\":%u,\"mlp\":%u,\"vocab\":%u"
           ",\"context_max\":%u,\"vision_layers\":%u,\"patch\":%u}}\n",
           f->architecture, f->parameters, f->layers, f->heads, f->kv_heads, f->hidden, f->mlp,
           f->vocab, f->context_max, f->vision_layers, f->patch);
}


static int
plan(const vlm_args_t *a, vlm_err_t *err)
{
    int          rc;
    vlm_plan_t   p;
    vlm_facts_t  f;

    rc = vlm_plan(&a->conf, &p, err);

    if (p.total == 0 || vlm_facts(&a->conf, &f, err) != 0) {
        return -1;
    }

    if (a->json) {
        print_json_plan(&p, &f);
        return rc;
    }

    printf("weights    %12" PRIu64 "  %8.1f MiB\n", p.weights, (double) p.weights / 1048576);
    printf("vision     %12" PRIu64 "  %8.1f MiB\n", p.vision, (double) p.vision / 1048576);
    printf("kv         %12" PRIu64 "  %8.1f MiB\n", p.kv, (double) p.kv / 1048576);
    printf("workspace  %12" PRIu64 "  %8.1f MiB\n", p.workspace, (double) p.workspace / 1048576);
    printf("device     %12" PRIu64 "  %8.1f MiB\n", p.device, (double) p.device / 1048576);
    printf("total      %12" PRIu64 "  %8.1f MiB\n", p.total, (double) p.total / 1048576);

    return rc;
}


static int
tokenize(const vlm_args_t *a, vlm_err_t *err)
{
    int           rc;
    size_t        n, i;
    vlm_t        *v;
    uint32_t     *ids;

    if (a->text == NULL) {
        return wrong(err, "tokenize wants a text", "");
    }

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
        (void) wrong(err, "cannot read the picture", path);

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
    vlm_part_t      parts[MAX_IMAGES + 1];
    vlm_prompt_t   *p;
    vlm_message_t   message;

    if (a->prompt == NULL) {
        (void) wrong(err, "--prompt is missing", "");
        return NULL;
    }

    task = a->task == NULL ? VLM_GENERAL : vlm_task_find(a->task, strlen(a->task));
    if (task < 0) {
        (void) wrong(err, "no such task", a->task);
        return NULL;
    }

    text = vlm_task_prompt((vlm_task_t) task, a->prompt, strlen(a->prompt));
    if (text == NULL) {
        (void) wrong(err, "no memory", "");
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
chat(const vlm_args_t *a, vlm_err_t *err)
{
    int              rc, idle;
    vlm_t           *v;
    vlm_prompt_t    *p;
    vlm_sampling_t   s;

    rc = -1;
    v = vlm_open(&a->conf, err);
    p = v == NULL ? NULL : make_prompt(v, a, err);

    if (p == NULL || vlm_load(v, err) != 0) {
        goto done;
    }

    vlm_sampling_default(v, &s);
    s.seed = a->seed;
    s.json = a->json_mode;

    if (a->temperature >= 0) {
        s.temperature = a->temperature;
    }

    if (vlm_submit(v, p, &s, NULL, &idle, err) == NULL) {
        goto done;
    }

    p = NULL;
    rc = vlm_run(v, err) == 0 ? print_events(v, a, err) : -1;

done:

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


static int
logits(const vlm_args_t *a, vlm_err_t *err)
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

    if (p == NULL || vlm_load(v, err) != 0 || vlm_logits(v, p, &all, &V, err) != 0) {
        goto done;
    }

    ranked = malloc(V * sizeof(*ranked));
    if (ranked == NULL) {
        (void) wrong(err, "no memory", "");
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
