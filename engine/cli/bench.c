/*
 * The command bench: tokens a second, and the time to a first token, as a table for an issue.
 *
 * Each figure has so many seconds.  It is the median of as many rounds as fit, and on a slow
 * machine fewer tokens are measured, so that a 3B takes a minute at most.
 */

#define _GNU_SOURCE

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/size.h"
#include "cli/doctor.h"
#include "family/family.h"
#include "load/files.h"
#include "run/measure.h"

#define ROUNDS   5                     /* of a figure, at most */
#define STEPS    32                    /* of one round of decode, at most */
#define CONTEXT  128                   /* rows before a token of decode */
#define PROMPT   512                   /* tokens, at most */
#define PROBE    32                    /* tokens by which the time of a prompt is estimated */
#define SIDE     448                   /* pixels */
#define TEXT     32                    /* tokens beside the picture */
#define LEAST    (256u << 20)          /* bytes of weights: fewer may stay in a processor's cache */
#define FILLING  30                    /* seconds that planned memory may take, the load included */

#define DECODE_SECONDS  6.0
#define PROMPT_SECONDS  10.0
#define FIRST_SECONDS   12.0
#define LONGEST         30.0           /* a first token that takes longer is not measured */

typedef struct {
    double    value[ROUNDS];
    uint32_t  n;
} rounds_t;

typedef struct {
    vlm_t                 *v;
    const vlm_args_t      *args;
    vlm_facts_t            facts;
    vlm_stat_t             stat;
    vlm_measure_weights_t  weights;
    vlm_threads_t         *threads;    /* NULL: the memory is not this machine's */
    double                 busy;       /* the machine, before: getloadavg() */
    double                 load;       /* seconds */
    int                    filled;     /* 1: all planned memory was taken before measuring */
    int                    cached;     /* 1: the weights came from the quantised cache */
    double                 row;        /* seconds of one row of a prompt */
    uint32_t               prompt;     /* tokens of the prompt that was measured */
    rounds_t               decode, share, rate, prefill, first;
    char                   why[480];   /* there is no first token: the reason */
} bench_t;

static const char  question[] =
    "Where on the table is the cup, what stands beside it, and how would a robot with one arm take "
    "it away without touching anything else that is near?  Say it in one line, and then say why.";


static double
now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


static void
add(rounds_t *r, double value)
{
    r->value[r->n++] = value;
}


static int
by_value(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


static double
median(rounds_t *r)
{
    qsort(r->value, r->n, sizeof(r->value[0]), by_value);

    return (r->value[(r->n - 1) / 2] + r->value[r->n / 2]) / 2;
}


/* 1: another round, after one of so many seconds at least. */
static int
again(const rounds_t *r, double start, double seconds)
{
    double  taken = now() - start;

    return r->n == 0 || (r->n < ROUNDS && taken + taken / r->n < seconds);
}


/* ---- the figures ----------------------------------------------------------- */

/* Tokens a second of one sequence, and the share of what the memory gives in the same round. */
static void
measure_decode(bench_t *b)
{
    double    start, begin, seconds, rate;
    uint32_t  i, n_ctx, steps;

    n_ctx = b->v->conf.context / 2 < CONTEXT ? b->v->conf.context / 2 : CONTEXT;

    begin = now();
    vlm_measure_pass(b->v, 1, n_ctx, 1, 1);
    seconds = now() - begin;

    steps = (uint32_t) fmin(STEPS, fmax(1, DECODE_SECONDS / ROUNDS / seconds));
    steps = steps < n_ctx ? steps : 1;
    start = now();

    while (again(&b->decode, start, DECODE_SECONDS)) {
        begin = now();

        for (i = 0; i < steps; i++) {
            vlm_measure_pass(b->v, 1, n_ctx + i, 1, 1);
        }

        seconds = (now() - begin) / steps;
        add(&b->decode, 1 / seconds);

        if (b->threads != NULL) {
            begin = now();
            rate = (double) vlm_measure_read(b->v, b->threads) / (now() - begin);
            add(&b->rate, rate);
            add(&b->share, (b->weights.bytes + vlm_measure_kv_bytes(b->v, n_ctx)) / seconds / rate);
        }
    }
}


static void
measure_prompt(bench_t *b)
{
    double    start, begin;
    uint32_t  n, probe, most = b->v->conf.context - 1;

    probe = PROBE < most ? PROBE : most;
    begin = now();
    vlm_measure_prompt(b->v, probe);
    b->row = (now() - begin) / probe;

    for (n = PROMPT; n > probe && (n > most || n * b->row > PROMPT_SECONDS); n /= 2) { /* void */ }

    b->prompt = n < probe ? probe : n;
    start = now();

    while (again(&b->prefill, start, PROMPT_SECONDS)) {
        begin = now();
        vlm_measure_prompt(b->v, b->prompt);
        add(&b->prefill, b->prompt / (now() - begin));
    }

    b->row = 1 / median(&b->prefill);
}


/* Seconds to a first token, from the time of a row and the products for a patch; attention among
   patches comes on top. */
static double
estimate(const bench_t *b)
{
    double                      patches, values;
    const vlm_vision_config_t  *c = &b->v->config.vision;

    if (c->depth == 0) {
        return b->row * TEXT;
    }

    patches = (double) SIDE * SIDE / (c->patch * c->patch);
    values = (double) c->depth * c->hidden * (4.0 * c->hidden + 3.0 * c->mlp);

    return b->row * (TEXT + patches / (c->merge * c->merge)
                     + 1.5 * patches * values / b->weights.values);
}


/* One question about a picture that no other has had, or without one. */
static int
ask(bench_t *b, uint32_t seed, vlm_err_t *err)
{
    double          begin;
    size_t          bytes;
    uint8_t        *file;
    vlm_prompt_t   *p;
    vlm_picture_t  *picture = NULL;

    if (b->v->config.vision.depth > 0) {
        file = vlm_measure_picture(SIDE, SIDE, seed, &bytes);
        picture = file == NULL ? NULL : vlm_picture_read(b->v, file, bytes, err);
        free(file);

        if (picture == NULL) {
            return vlm_fail(err, VLM_EMEMORY, "no memory for a picture");
        }
    }

    p = vlm_measure_question(b->v, picture, question, TEXT, err);
    if (p == NULL) {
        return -1;
    }

    begin = now();

    if (vlm_measure_first(b->v, p, err) != 0) {
        return -1;
    }

    add(&b->first, now() - begin);

    return 0;
}


static void
measure_first(bench_t *b)
{
    double     start;
    uint32_t   seed;
    vlm_err_t  err = { VLM_OK, "" };

    if (estimate(b) > LONGEST) {
        (void) snprintf(b->why, sizeof(b->why), "it takes about %.0f s", estimate(b));
        return;
    }

    start = now();

    for (seed = 1; again(&b->first, start, FIRST_SECONDS); seed++) {
        if (ask(b, seed, &err) != 0) {
            (void) snprintf(b->why, sizeof(b->why), "%s", err.text);
            return;
        }
    }
}


/* ---- the table --------------------------------------------------------------- */

/* The processor's name in /proc/cpuinfo, or the machine's kind. */
static void
processor(const struct utsname *u, char *name, size_t bytes)
{
    char   line[512], *p;
    FILE  *f;

    (void) snprintf(name, bytes, "%s", u->machine);
    f = fopen("/proc/cpuinfo", "re");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        p = strchr(line, ':');

        if (strncmp(line, "model name", 10) == 0 && p != NULL) {
            p[strcspn(p, "\n")] = '\0';
            (void) snprintf(name, bytes, "%s", p + 2);
            break;
        }
    }

    if (f != NULL) {
        (void) fclose(f);
    }
}


static void
print_machine(const bench_t *b)
{
    char            name[256];
    vlm_ram_t       ram;
    struct utsname  u;

    (void) uname(&u);
    processor(&u, name, sizeof(name));
    vlm_ram("", &ram);

    puts("| | |\n|---|---|");
    puts("| version | vlm " VLM_VERSION " |");
    printf("| machine | %s, %" PRIu32 " processors, %" PRIu64 "m, %s %s %s, load %.1f |\n", name,
           vlm_processors(), ram.bytes / 1048576, u.sysname, u.release, u.machine, b->busy);
    printf("| device | %s |\n", b->stat.device);
}


static const char *
last_part(const char *path)
{
    size_t       n = strlen(path);
    const char  *p = path + n;

    while (p > path && (p[-1] != '/' || p == path + n)) {
        p--;
    }

    return p;
}


static void
print_model(const bench_t *b)
{
    const vlm_conf_t  *c = &b->args->conf;

    printf("| model | %s: %s, %" PRIu64 " parameters |\n", last_part(c->model), b->facts.family,
           b->facts.parameters);
    printf("| settings | weights %s, kv %s, context %" PRIu32 ", slots %" PRIu32 ", %" PRIu64
           "m planned |\n", vlm_weights_name(c->weights),
           vlm_weights_name(b->v->sched.model.kv.type), c->context, c->slots,
           vlm_mib(b->stat.plan.total));
    printf("| load | %.1f s, from the %s%s |\n", b->load,
           b->cached ? "quantised cache" : "checkpoint",
           b->filled ? "" : "; memory was still being taken while the rest was measured");
}


/* Three digits. */
static void
print_number(double n, const char *unit)
{
    printf("%.*f %s", n < 10 ? 2 : n < 100 ? 1 : 0, n, unit);
}


static void
print_rounds(const rounds_t *r)
{
    printf(" (%" PRIu32 " round%s) |\n", r->n, r->n == 1 ? "" : "s");
}


static void
print_figures(bench_t *b)
{
    double  first;

    printf("| decode | ");
    print_number(median(&b->decode), "tokens/s");

    if (b->share.n > 0 && b->weights.bytes >= LEAST) {
        printf(", %.0f %% of the memory's ", 100 * median(&b->share));
        print_number(median(&b->rate) / 1e9, "GB/s");
    }

    print_rounds(&b->decode);
    printf("| prompt of %" PRIu32 " tokens | ", b->prompt);
    print_number(median(&b->prefill), "tokens/s");
    print_rounds(&b->prefill);

    if (b->v->config.vision.depth > 0) {
        printf("| first token, picture of %dx%d | ", SIDE, SIDE);
    } else {
        printf("| first token, text of %d tokens | ", TEXT);
    }

    if (b->first.n == 0) {
        printf("not measured: %s |\n", b->why);
        return;
    }

    first = median(&b->first);
    print_number(first < 1 ? first * 1e3 : first, first < 1 ? "ms" : "s");
    print_rounds(&b->first);
}


/* ---- the command --------------------------------------------------------------- */

/* The cache that a server has left, unless another is named: loading takes seconds then. */
static int
find_cache(vlm_conf_t *conf, vlm_cache_t *cache)
{
    int            there;
    vlm_plan_t     plan;
    vlm_config_t  *config;

    config = malloc(sizeof(*config));

    there = config != NULL && vlm_files_config(conf, config, NULL) == 0
            && vlm_plan(conf, &plan, NULL) == 0
            && vlm_cli_cache(conf, config, &plan, cache) == VLM_CACHE_WHOLE;
    free(config);

    if (there && conf->cache == NULL) {
        conf->cache = cache->dir;
    }

    return there;
}


static int
load(bench_t *b, const vlm_conf_t *conf, vlm_err_t *err)
{
    double  start;

    start = now();
    b->v = vlm_open(conf, err);

    if (b->v == NULL || vlm_load(b->v, err) != 0) {
        return -1;
    }

    b->load = now() - start;
    b->filled = vlm_measure_wait(b->v, (uint32_t) fmax(5, FILLING - b->load));
    vlm_stat(b->v, &b->stat);
    vlm_measure_weights(b->v, &b->weights);

    if (b->stat.plan.device == 0) {
        b->threads = vlm_threads_open(b->v->conf.threads, err);
        return b->threads == NULL ? -1 : 0;
    }

    return 0;
}


int
vlm_cli_bench(const vlm_args_t *a, vlm_err_t *err)
{
    int          rc;
    bench_t      b = { .args = a };
    vlm_conf_t   conf = a->conf;
    vlm_cache_t  cache;

    (void) getloadavg(&b.busy, 1);
    b.cached = find_cache(&conf, &cache);

    if (isatty(STDERR_FILENO)) {
        fputs("vlm bench: loading and measuring, about a minute\n", stderr);
    }

    rc = vlm_facts(&conf, &b.facts, err) != 0 || load(&b, &conf, err) != 0 ? -1 : 0;

    if (rc == 0) {
        measure_decode(&b);
        measure_prompt(&b);
        measure_first(&b);
        print_machine(&b);
        print_model(&b);
        print_figures(&b);
    }

    vlm_threads_close(b.threads);
    vlm_close(b.v);

    return rc;
}
