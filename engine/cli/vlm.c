/*
 * build/vlm: the engine on the command line, to look at a checkpoint before it is deployed.  The
 * program links the same library as the nginx module.
 *
 * This file reads the command line and has the command plan.
 */

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"

#define EXIT_USAGE  2

typedef int (*vlm_command_fn)(const vlm_args_t *a, vlm_err_t *err);

enum { PLAN = 1, TOKENIZE = 2, CHAT = 4, LOGITS = 8, DOCTOR = 16, BENCH = 32 };

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

static const vlm_command_t  commands[] = {
    { PLAN, "plan", "DIR", plan, 0, "prints the memory that a server needs for the checkpoint",
      "Prints the memory that a server plans for the checkpoint in DIR, in bytes and in MiB,\n"
      "rounded up as \"nginx -t\" does. Without options the plan is that of a vlm_engine { }\n"
      "which sets its model alone. Before the weights are there, config.json is enough.\n"
      "DIR may be a GGUF file, with --mmproj.",
      "vlm plan /models/RoboBrain2.0-3B --slots 2 --context 8k --memory 6g" },

    { DOCTOR, "doctor", "DIR", vlm_cli_doctor, 0,
      "says what would stop the checkpoint on this machine",
      "Looks at the checkpoint in DIR and at this machine, and prints a line for each finding:\n"
      "\"ok\", \"warn\" or \"stop\", a sentence, and a remedy. It neither loads weights nor\n"
      "changes files. The exit status is 1 if something stops a server with these settings. As\n"
      "root the command also tries to read the files as the user of nginx's workers.",
      "vlm doctor /models/RoboBrain2.0-3B --context 8k" },

    { BENCH, "bench", "DIR", vlm_cli_bench, 0, "measures tokens/s and the time to a first token",
      "Loads the checkpoint in DIR and prints a table for an issue: tokens/s of an answer and of\n"
      "a prompt, and the time to a first token for a picture of 448x448. A 3B takes a minute at\n"
      "most: slow machines measure fewer tokens. Without options the settings are those of a\n"
      "vlm_engine { } which sets its model alone, whose quantised cache is used if it is there.",
      "vlm bench /models/RoboBrain2.0-3B --weights int4" },

    { TOKENIZE, "tokenize", "DIR TEXT", vlm_cli_tokenize, 1, "prints the token ids of a text",
      "Prints the ids of the tokens of TEXT. A control token that is spelt out is plain text.",
      "vlm tokenize /models/RoboBrain2.0-3B 'Where is the cup?'" },

    { CHAT, "chat", "DIR", vlm_cli_chat, 1, "prints the answer to a prompt about pictures",
      "Loads the checkpoint in DIR and prints its answer while it comes.",
      "vlm chat /models/RoboBrain2.0-3B --image desk.jpg --prompt 'Where is the cup?'" },

    { LOGITS, "logits", "DIR", vlm_cli_logits, 1,
      "prints the likeliest tokens at each place of a prompt",
      "Prints a line for each token of the prompt: its id, then the likeliest next ids with\n"
      "their logits.",
      "vlm logits /models/RoboBrain2.0-3B --raw --prompt 'The cup is' --top 3" }
};

#define RUNS    (CHAT | LOGITS)
#define SERVES  (PLAN | DOCTOR | BENCH)
#define PLANS   (SERVES | RUNS)
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
    { PLANS, "--ops", "NAME", TEXT, AT(conf.ops), "plain, avx2, avxvnni, avx512, amx, neon "
      "or i8mm; default: the best" },
    { PLANS, "--weights", "TYPE", WEIGHTS, AT(conf.weights), "int4, int8, bf16 or f32; "
      "default: int8" },
    { PLANS, "--kv", "TYPE", KV, AT(conf.kv_int8), "of keys and values: int8 or auto; "
      "default: auto" },
    { PLANS, "--context", "TOKENS", COUNT, AT(conf.context), "of a prompt and its answer" },
    { SERVES, "--slots", "N", COUNT, AT(conf.slots), "requests that are answered together" },
    { PLANS, "--max-pixels", "PIXELS", SIZE, AT(conf.max_pixels), "of a picture after its resize" },
    { SERVES, "--features", "N", COUNT, AT(conf.features), "pictures whose features are cached" },
    { PLANS, "--memory", "BYTES", SIZE, AT(conf.memory), "a plan above it fails; "
      "default: no bound" },
    { PLANS, "--threads", "N", COUNT, AT(conf.threads), "of the CPU; default: all cores allowed" },
    { PLANS | TOKENIZE, "--mmproj", "FILE", TEXT, AT(conf.mmproj), "the vision encoder, if DIR is "
      "a GGUF file" },
    { PLANS, "--lora", "PATH", TEXT, AT(conf.lora), "directory whose directories are adapters" },
    { PLANS, "--lora-max", "N", COUNT, AT(conf.lora_max), "adapters that have places" },
    { PLANS, "--lora-rank", "N", COUNT, AT(conf.lora_rank), "the highest of an adapter" },
    { RUNS, "--adapter", "NAME", TEXT, AT(adapter), "the adapter of the answer" },
    { RUNS | DOCTOR | BENCH, "--cache", "PATH", TEXT, AT(conf.cache), "directory of the quantised "
      "cache" },
    { DOCTOR, "--user", "NAME", TEXT, AT(user), "of nginx's workers; default: that of nginx.conf" },
    { DOCTOR, "--nginx", "FILE", TEXT, AT(nginx), "the program; default: the first in PATH" },
    { DOCTOR, "--module", "FILE", TEXT, AT(module), "default: where that nginx has its modules" },
    { PLAN | RUNS | TOKENIZE, "--json", NULL, FLAG, AT(json), "prints JSON" }
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


int
vlm_cli_wrong(vlm_err_t *err, const char *what, const char *value)
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
        if (a->n_images == VLM_CLI_IMAGES) {
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
                return vlm_cli_wrong(err, "not expected", argv[i]);
            }

            continue;
        }

        o = find_option(c, argv[i]);
        if (o == NULL) {
            return vlm_cli_wrong(err, "no such option", argv[i]);
        }

        if (o->kind != FLAG && ++i == argc) {
            return vlm_cli_wrong(err, "a value is missing after", o->name);
        }

        if (set(o, argv[i], a) != 0) {
            (void) snprintf(err->text, sizeof(err->text), "%s \"%.100s\": expected %s", o->name,
                            argv[i], expected[o->kind]);
            return -1;
        }
    }

    if (a->conf.model == NULL || (c->bit == TOKENIZE && a->text == NULL)) {
        return vlm_cli_wrong(err, "missing", a->conf.model == NULL ? "DIR" : "TEXT");
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

        fputs("usage: vlm plan|doctor|bench|tokenize|chat|logits DIR [OPTION ...]; see \"vlm "
              "--help\"\n", stderr);
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
