/*
 * build/vlm: the engine on the command line, to look at a checkpoint before it is deployed.  The
 * program links the same library as the nginx module.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "base/size.h"
#include "robobrain/task.h"
#include "vlm.h"

#define MAX_IMAGES  64
#define MAX_FILE    (64u << 20)        /* bytes of a picture */

#define EXIT_USAGE  2

typedef struct {
    vlm_conf_t   conf;
    const char  *prompt, *text, *task, *adapter;
    const char  *image[MAX_IMAGES];
    size_t       n_images;
    uint32_t     top;
    int          raw, json, json_mode, help;
    float        temperature;
    uint64_t     seed;
} vlm_args_t;

typedef int (*vlm_command_fn)(const vlm_args_t *a, vlm_err_t *err);

enum { PLAN = 1, TOKENIZE = 2, CHAT = 4, LOGITS = 8 };

typedef struct {
    unsigned         bit;              /* PLAN, ... */
    const char      *name, *operands;
    vlm_command_fn   run;
    uint32_t         slots;            /* 0: a server's default */
    const char      *summary, *about, *example;
} vlm_command_t;

typedef enum { FLAG, COUNT, SIZE, REAL, TEXT, WEIGHTS, KV, IMAGE } vlm_kind_t;

typedef struct {
    unsigned      commands;
    const char   *name, *value;        /* value: as help shows it */
    vlm_kind_t    kind;
    size_t        at;                  /* in vlm_args_t */
    const char   *about;
} vlm_option_t;

static int plan(const vlm_args_t *a, vlm_err_t *err);
static int tokenize(const vlm_args_t *a, vlm_err_t *err);
static int chat(const vlm_args_t *a, vlm_err_t *err);
static int logits(const vlm_args_t *a, vlm_err_t *err);

static const vlm_command_t  commands[] = {
    { PLAN, "plan", "DIR", plan, 0, "prints the memory that a server needs for the checkpoint",
      "Prints the memory that a server plans for the checkpoint in DIR, in bytes and in MiB,\n"
      "rounded up as \"nginx -t\" does. Without options the plan is that of a vlm_engine { }\n"
      "which sets its model alone. Before the weights are there, config.json is enough.\n"
      "DIR may be a GGUF file, with --mmproj.",
      "vlm plan /models/RoboBrain2.0-3B --slots 2 --context 8k --memory 6g" },

    { TOKENIZE, "tokenize", "DIR TEXT", tokenize, 1, "prints the token ids of a text",
      "Prints the ids of the tokens of TEXT. A control token that is spelt out is plain text.",
      "vlm tokenize /models/RoboBrain2.0-3B 'Where is the cup?'" },

    { CHAT, "chat", "DIR", chat, 1, "prints the answer to a prompt about pictures",
      "Loads the checkpoint in DIR and prints its answer while it comes.",
      "vlm chat /models/RoboBrain2.0-3B --image desk.jpg --prompt 'Where is the cup?'" },

    { LOGITS, "logits", "DIR", logits, 1, "prints the likeliest tokens at each place of a prompt",
      "Prints a line for each token of the prompt: its id, then the likeliest next ids with\n"
      "their logits.",
      "vlm logits /models/RoboBrain2.0-3B --raw --prompt 'The cup is' --top 3" }
};

#define RUNS    (CHAT | LOGITS)
#define PLANS   (PLAN | RUNS)
#define AT(x)   offsetof(vlm_args_t, x)

static const vlm_option_t  options[] = {
    { RUNS, "--prompt", "TEXT", TEXT, AT(prompt), "the prompt; required" },
    { RUNS, "--image", "FILE", IMAGE, 0, "a picture before the prompt; up to 64 times" },
    { RUNS, "--task", "NAME", TEXT, AT(task), "wraps the prompt in a task's words: general, "
      "grounding, affordance, trajectory or pointing" },
    { RUNS, "--raw", NULL, FLAG, AT(raw), "the prompt alone, without the chat template" },
    { CHAT, "--max-tokens", "TOKENS", COUNT, AT(conf.max_tokens), "the longest answer" },
    { CHAT, "--temperature", "T", REAL, AT(temperature), "0: the likeliest token; "
      "default: the checkpoint's" },
    { CHAT, "--seed", "N", SIZE, AT(seed), "the same seed gives the same answer; 0: a new one" },
    { CHAT, "--json-mode", NULL, FLAG, AT(json_mode), "the answer is a JSON object" },
    { LOGITS, "--top", "N", COUNT, AT(top), "ids at each position; 0: the whole vocabulary" },
    { PLANS, "--device", "NAME", TEXT, AT(conf.device), "auto, cpu, cuda or cuda:N" },
    { PLANS, "--ops", "NAME", TEXT, AT(conf.ops), "plain, avx2, avxvnni, avx512 or amx; "
      "default: the best" },
    { PLANS, "--weights", "TYPE", WEIGHTS, AT(conf.weights), "int4, int8, bf16 or f32; "
      "default: int8" },
    { PLANS, "--kv", "TYPE", KV, AT(conf.kv_int8), "of keys and values: int8 or auto; "
      "default: auto" },
    { PLANS, "--context", "TOKENS", COUNT, AT(conf.context), "of a prompt and its answer" },
    { PLAN, "--slots", "N", COUNT, AT(conf.slots), "requests that are answered together" },
    { PLANS, "--max-pixels", "PIXELS", SIZE, AT(conf.max_pixels), "of a picture after its resize" },
    { PLAN, "--features", "N", COUNT, AT(conf.features), "pictures whose features are cached" },
    { PLANS, "--memory", "BYTES", SIZE, AT(conf.memory), "a plan above it fails; "
      "default: no bound" },
    { PLANS, "--threads", "N", COUNT, AT(conf.threads), "of the CPU; default: all cores allowed" },
    { PLANS | TOKENIZE, "--mmproj", "FILE", TEXT, AT(conf.mmproj), "the vision encoder, if DIR is "
      "a GGUF file" },
    { PLANS, "--lora", "PATH", TEXT, AT(conf.lora), "directory whose directories are adapters" },
    { PLANS, "--lora-max", "N", COUNT, AT(conf.lora_max), "adapters that have places" },
    { PLANS, "--lora-rank", "N", COUNT, AT(conf.lora_rank), "the highest of an adapter" },
    { RUNS, "--adapter", "NAME", TEXT, AT(adapter), "the adapter of the answer" },
    { RUNS, "--cache", "PATH", TEXT, AT(conf.cache), "directory of the quantised cache" },
    { PLANS | TOKENIZE, "--json", NULL, FLAG, AT(json), "prints JSON" }
};

/* The values that an option can have, for an error. */
static const char *const  expected[] = {
    [COUNT] = "a number such as 600 or 8k", [SIZE] = "a number such as 600, 600m or 6g",
    [REAL] = "a number from 0 on", [WEIGHTS] = "int4, int8, bf16 or f32",
    [KV] = "auto or int8",
    [IMAGE] = "64 pictures at most"
};

#define N_COMMANDS  (sizeof(commands) / sizeof(commands[0]))
#define N_OPTIONS   (sizeof(options) / sizeof(options[0]))


static void
defaults(const vlm_command_t *c, vlm_args_t *a)
{
    memset(a, 0, sizeof(*a));
    vlm_conf_default(&a->conf);

    if (c->slots != 0) {
        a->conf.slots = c->slots;
    }

    a->top = 5;
    a->temperature = -1;
}


static void
help(void)
{
    size_t  i;

    puts("usage: vlm COMMAND DIR [OPTION ...]\n\n"
         "Looks at the checkpoint in DIR before a server is configured for it.\n");

    for (i = 0; i < N_COMMANDS; i++) {
        printf("  %-10s%s\n", commands[i].name, commands[i].summary);
    }

    puts("\n"
         "vlm COMMAND --help  describes a command and its options\n"
         "vlm --version       prints the version");
}


static void
help_command(const vlm_command_t *c)
{
    char                 left[40];
    size_t               i;
    uint64_t             n;
    vlm_args_t           a;
    const void          *at;
    const vlm_option_t  *o;

    defaults(c, &a);
    printf("usage: vlm %s %s [OPTION ...]\n\n%s\n\n", c->name, c->operands, c->about);

    for (i = 0; i < N_OPTIONS; i++) {
        o = &options[i];

        if (!(o->commands & c->bit)) {
            continue;
        }

        (void) snprintf(left, sizeof(left), "%s %s", o->name, o->value == NULL ? "" : o->value);
        printf("  %-22s%s", left, o->about);

        at = (const char *) &a + o->at;
        n = o->kind == COUNT ? *(const uint32_t *) at
            : o->kind == SIZE ? *(const uint64_t *) at : 0;

        if (n != 0) {
            printf("; default: %" PRIu64, n);
        }

        putchar('\n');
    }

    if (c->bit & PLANS) {
        puts("\nNumbers may end in k, m or g: powers of 1024.");
    }

    printf("\nexample: %s\n", c->example);
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
number(const char *text, uint64_t most, uint64_t *out)
{
    int                  shift;
    char                *end;
    unsigned long long   n;

    errno = 0;
    n = strtoull(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || errno != 0) {
        return -1;
    }

    switch (*end) {
    case 'g': case 'G': shift = 30; break;
    case 'm': case 'M': shift = 20; break;
    case 'k': case 'K': shift = 10; break;
    default: shift = 0;
    }

    if (end[shift != 0] != '\0' || n > most >> shift) {
        return -1;
    }

    *out = (uint64_t) n << shift;

    return 0;
}


/* The value of an option: 0, or -1 for one that it cannot have. */
static int
set(const vlm_option_t *o, const char *value, vlm_args_t *a)
{
    char      *end;
    float      real;
    void      *to;
    uint64_t   n;

    to = (char *) a + o->at;

    switch (o->kind) {

    case FLAG:
        *(int *) to = 1;
        return 0;

    case COUNT:
        if (number(value, UINT32_MAX, &n) != 0) {
            return -1;
        }

        *(uint32_t *) to = (uint32_t) n;
        return 0;

    case SIZE:
        return number(value, UINT64_MAX, to);

    case REAL:
        real = strtof(value, &end);

        if (end == value || *end != '\0' || !(real >= 0)) {
            return -1;
        }

        *(float *) to = real;
        return 0;

    case TEXT:
        *(const char **) to = value;
        return 0;

    case WEIGHTS:
        return vlm_weights_find(value, &a->conf.weights, NULL);

    case KV:
        a->conf.kv_int8 = strcmp(value, "int8") == 0;
        return a->conf.kv_int8 || strcmp(value, "auto") == 0 ? 0 : -1;

    default:
        if (a->n_images == MAX_IMAGES) {
            return -1;
        }

        a->image[a->n_images++] = value;
        return 0;
    }
}


static const vlm_option_t *
find_option(const vlm_command_t *c, const char *name)
{
    size_t  i;

    for (i = 0; i < N_OPTIONS; i++) {
        if ((options[i].commands & c->bit) && strcmp(name, options[i].name) == 0) {
            return &options[i];
        }
    }

    return NULL;
}


static int
operand(const vlm_command_t *c, const char *value, vlm_args_t *a)
{
    if (a->conf.model == NULL) {
        a->conf.model = value;

    } else if (c->bit == TOKENIZE && a->text == NULL) {
        a->text = value;

    } else {
        return -1;
    }

    return 0;
}


static int
parse(const vlm_command_t *c, int argc, char **argv, vlm_args_t *a, vlm_err_t *err)
{
    int                  i;
    const vlm_option_t  *o;

    defaults(c, a);

    for (i = 2; i < argc; i++) {

        if (strcmp(argv[i], "--help") == 0 || (i == 2 && strcmp(argv[i], "-h") == 0)) {
            a->help = 1;
            return 0;
        }

        if (strncmp(argv[i], "--", 2) != 0) {
            if (operand(c, argv[i], a) != 0) {
                return wrong(err, "not expected", argv[i]);
            }

            continue;
        }

        o = find_option(c, argv[i]);
        if (o == NULL) {
            return wrong(err, "no such option", argv[i]);
        }

        if (o->kind != FLAG && ++i == argc) {
            return wrong(err, "a value is missing after", o->name);
        }

        if (set(o, argv[i], a) != 0) {
            (void) snprintf(err->text, sizeof(err->text), "%s \"%.100s\": expected %s", o->name,
                            argv[i], expected[o->kind]);
            return -1;
        }
    }

    if (a->conf.model == NULL || (c->bit == TOKENIZE && a->text == NULL)) {
        return wrong(err, "missing", a->conf.model == NULL ? "DIR" : "TEXT");
    }

    return 0;
}


static const vlm_command_t *
find_command(const char *name)
{
    size_t  i;

    for (i = 0; i < N_COMMANDS; i++) {
        if (strcmp(name, commands[i].name) == 0) {
            return &commands[i];
        }
    }

    return NULL;
}


static int
is_help(const char *text)
{
    return strcmp(text, "help") == 0 || strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0;
}


int
main(int argc, char **argv)
{
    vlm_err_t             err = { VLM_OK, "" };
    vlm_args_t            a;
    const vlm_command_t  *c;

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        puts("vlm " VLM_VERSION);
        return 0;
    }

    if (argc == 2 && is_help(argv[1])) {
        help();
        return 0;
    }

    c = argc < 2 ? NULL : find_command(argv[1]);
    if (c == NULL) {
        if (argc >= 2) {
            fprintf(stderr, "vlm: no such command: \"%.200s\"\n", argv[1]);
        }

        fputs("usage: vlm plan|tokenize|chat|logits DIR [OPTION ...]; see \"vlm --help\"\n",
              stderr);
        return EXIT_USAGE;
    }

    if (parse(c, argc, argv, &a, &err) != 0) {
        fprintf(stderr, "vlm %s: %s; see \"vlm %s --help\"\n", c->name, err.text, c->name);
        return EXIT_USAGE;
    }

    if (a.help) {
        help_command(c);
        return 0;
    }

    if (c->run(&a, &err) != 0) {
        fprintf(stderr, "vlm %s: %s\n", c->name, err.text);
        return 1;
    }

    return 0;
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
    printf("{\"weights\":%" PRIu64 ",\"vision\":%" PRIu64 ",\"lora\":%" PRIu64 ",\"kv\":%" PRIu64
           ",\"workspace\":%" PRIu64 ",\"device\":%" PRIu64 ",\"total\":%" PRIu64
           ",\"assumed\":%s", p->weights, p->vision, p->lora, p->kv, p->workspace, p->device,
           p->total, p->assumed ? "true" : "false");

    printf(",\"model\":{\"architecture\":\"%s\",\"parameters\":%" PRIu64 ",\"layers\":%u"
           ",\"heads\":%u,\"kv_heads\":%u,\"hidden\":%u,\"mlp\":%u,\"vocab\":%u"
           ",\"context_max\":%u,\"vision_layers\":%u,\"patch\":%u}}\n",
           f->architecture, f->parameters, f->layers, f->heads, f->kv_heads, f->hidden, f->mlp,
           f->vocab, f->context_max, f->vision_layers, f->patch);
}


static void
print_part(const char *name, uint64_t bytes)
{
    printf("%-10s %12" PRIu64 "  %6" PRIu64 " MiB\n", name, bytes, vlm_mib(bytes));
}


static int
plan(const vlm_args_t *a, vlm_err_t *err)
{
    int          rc;
    vlm_conf_t   conf;
    vlm_plan_t   p;
    vlm_facts_t  f;

    conf = a->conf;
    conf.ahead = 1;
    rc = vlm_plan(&conf, &p, err);

    if (p.total == 0 || vlm_facts(&conf, &f, err) != 0) {
        return -1;
    }

    if (a->json) {
        print_json_plan(&p, &f);
        return rc;
    }

    print_part("weights", p.weights);
    print_part("vision", p.vision);

    if (a->conf.lora != NULL) {
        print_part("lora", p.lora);
    }

    print_part("kv", p.kv);
    print_part("workspace", p.workspace);
    print_part("device", p.device);
    print_part("total", p.total);

    if (p.assumed) {
        printf("\nThe weights are not there yet: the plan assumes the tensors of %s with the sizes "
               "in config.json.\n", f.family);
    }

    return rc;
}


static int
tokenize(const vlm_args_t *a, vlm_err_t *err)
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
    vlm_part_t      parts[MAX_IMAGES + 1] = { 0 };
    vlm_facts_t     facts;
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

    if (vlm_facts(&a->conf, &facts, err) != 0) {
        return NULL;
    }

    text = vlm_task_prompt(facts.tasks, (vlm_task_t) task, a->prompt, strlen(a->prompt));
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
adapt(vlm_t *v, vlm_prompt_t *p, const vlm_args_t *a, vlm_err_t *err)
{
    return a->adapter == NULL ? 0 : vlm_prompt_adapter(v, p, a->adapter, 1, err);
}


static int
chat(const vlm_args_t *a, vlm_err_t *err)
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

    if (p == NULL || vlm_load(v, err) != 0 || adapt(v, p, a, err) != 0
        || vlm_logits(v, p, &all, &V, err) != 0)
    {
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
