/*
 * Times a whole model: reading a prompt, one more token, a picture, the first token of an answer.
 *
 *   build/bench-model DIR [--ops SET] [--weights FORM,FORM...] [--kv int8] [--threads N]
 *                     [--rounds N] [--label TEXT] [--what PART,PART...]
 *
 * The parts are decode, together, prefill, encode and first.  Every round measures the limits of
 * the machine as well.  The names of figures end in the form of the weights and the label
 * ("_int8_3b").  Several forms are measured in turn in each round of the first three parts; a
 * figure "_int4_over_int8_3b" is then the median of the rounds' ratios, and its limit that of the
 * bytes that a token reads.
 *
 * With --threads 1 times are the thread's processor time: figures of one core and its limits, also
 * on a machine with other load.
 *
 * engine/run/measure.h has the passes, which build the rows of a step without the scheduler.  The
 * part "first" uses the engine's public functions.
 */

#include <string.h>

#include "bench.h"
#include "base/cgroup.h"
#include "run/measure.h"

#define CONTEXT      8448              /* 8k, and room for the rows of a step */
#define SLOTS        8
#define STEPS        4                 /* of a decode figure in one round */
#define MOST_TOKENS  2048
#define TEXT_TOKENS  32                /* beside the picture */
#define FORMS        2                 /* of weights in one run */
#define FIGURES      4                 /* of a part */

typedef struct {                       /* a model with weights of one form */
    vlm_t                 *v;
    const char            *name;       /* of the form */
    vlm_measure_weights_t  w;
} form_t;

typedef struct {
    form_t           form[FORMS];
    uint32_t         n_forms;
    vlm_t           *v;                /* of the form in use */
    const form_t    *now;              /* and the form */
    bench_limits_t  *limits;
    const char      *label, *what;
    uint32_t         rounds;
    int              salt;             /* makes pictures differ */
} bench_t;


static void
use(bench_t *b, uint32_t form)
{
    b->now = &b->form[form];
    b->v = b->now->v;
}


/* Prints a figure of each form, and of two the ratio of their rates; its limit is that of bytes. */
static void
print_forms(const bench_t *b, const char *what, bench_rounds_t of[FORMS][FIGURES], uint32_t i)
{
    char            name[96];
    uint32_t        f, r;
    bench_rounds_t  over;

    memset(&over, 0, sizeof(over));

    for (r = 0; r < of[0][i].n && b->n_forms == FORMS; r++) {
        bench_add(&over, of[1][i].value[r] / of[0][i].value[r],
                  b->form[0].w.bytes / b->form[1].w.bytes);
    }

    for (f = 0; f < b->n_forms; f++) {
        (void) snprintf(name, sizeof(name), "%s_%s_%s", what, b->form[f].name, b->label);
        bench_print(name, "tokens/s", &of[f][i], 0);
    }

    if (over.n > 0) {
        (void) snprintf(name, sizeof(name), "%s_%s_over_%s_%s", what, b->form[1].name,
                        b->form[0].name, b->label);
        bench_print(name, "x", &over, 0);
    }
}


/* ---- steps without the scheduler ----------------------------------------------------------- */

static double
time_steps(bench_t *b, uint32_t S, uint32_t n_ctx)
{
    double    start;
    uint32_t  i;

    start = bench_now();

    for (i = 0; i < STEPS; i++) {
        vlm_measure_pass(b->v, S, n_ctx + i, 1, 1);
    }

    return (bench_now() - start) / STEPS;
}


static double
time_prefill(bench_t *b, uint32_t tokens)
{
    double  start;

    start = bench_now();
    vlm_measure_prompt(b->v, tokens);

    return bench_now() - start;
}


static void
measure_decode(bench_t *b)
{
    double                 seconds;
    uint32_t               f, i, r;
    bench_rounds_t         rounds[FORMS][FIGURES];
    static const uint32_t  at[] = { 128, 2048, 8192 };
    static const char     *names[] = { "decode", "decode2k", "decode8k" };

    memset(rounds, 0, sizeof(rounds));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 3; i++) {
            for (f = 0; f < b->n_forms; f++) {
                use(b, f);
                seconds = time_steps(b, 1, at[i]);
                bench_add(&rounds[f][i], 1 / seconds,
                          bench_read_rate(b->limits) / (b->now->w.bytes + vlm_measure_kv_bytes(b->v, at[i])));
            }
        }
    }

    for (i = 0; i < 3; i++) {
        print_forms(b, names[i], rounds, i);
    }
}


/* Several sequences in one pass, which reads the weights once for the tokens of all. */
static void
measure_together(bench_t *b)
{
    char                   name[32];
    double                 seconds, bytes;
    uint32_t               f, i, r;
    bench_rounds_t         rounds[FORMS][FIGURES];
    static const uint32_t  S[FIGURES] = { 1, 2, 4, 8 };

    memset(rounds, 0, sizeof(rounds));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < FIGURES; i++) {
            for (f = 0; f < b->n_forms; f++) {
                use(b, f);
                seconds = time_steps(b, S[i], 128);
                bytes = b->now->w.bytes + S[i] * vlm_measure_kv_bytes(b->v, 128);
                bench_add(&rounds[f][i], S[i] / seconds,
                          S[i] * bench_read_rate(b->limits) / bytes);
            }
        }
    }

    for (i = 0; i < FIGURES; i++) {
        (void) snprintf(name, sizeof(name), "together%u", S[i]);
        print_forms(b, name, rounds, i);
    }
}


static void
measure_prefill(bench_t *b)
{
    char                   name[32];
    double                 seconds;
    uint32_t               f, i, r;
    bench_rounds_t         rounds[FORMS][FIGURES];
    static const uint32_t  tokens[] = { 128, 512, 2048 };

    memset(rounds, 0, sizeof(rounds));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 3; i++) {
            if (tokens[i] > 512 && r >= (b->rounds + 1) / 2) {
                continue;              /* the picture is long enough for a steady figure */
            }

            for (f = 0; f < b->n_forms; f++) {
                use(b, f);
                seconds = time_prefill(b, tokens[i]);
                bench_add(&rounds[f][i], tokens[i] / seconds,
                          bench_int8_rate(b->limits) / 2 / b->now->w.values);
            }
        }
    }

    for (i = 0; i < 3; i++) {
        (void) snprintf(name, sizeof(name), "prefill%u", tokens[i]);
        print_forms(b, name, rounds, i);
    }
}


/* ---- pictures ------------------------------------------------------------------------------ */

static const uint32_t  sides[2][2] = { { 448, 448 }, { 896, 672 } };
static const char     *side_names[2] = { "448", "896x672" };


/* Returns a picture that no other question has had; the caller frees it. */
static uint8_t *
new_picture(bench_t *b, uint32_t width, uint32_t height, size_t *bytes)
{
    return vlm_measure_picture(width, height, (uint32_t) ++b->salt, bytes);
}


/* Returns the seconds at the limits: matrices at the int8 rate, attention at the f32 rate. */
static double
vision_limit(bench_t *b, uint32_t patches, uint32_t window)
{
    double                      linear, attend;
    uint32_t                    i;
    const vlm_model_t          *m = &b->v->sched.model;
    const vlm_vision_config_t  *c = &m->config.vision;

    linear = attend = 0;

    for (i = 0; i < c->depth; i++) {
        linear += 2.0 * patches * ((double) m->block[i].qkv.N * m->block[i].qkv.K
                                   + (double) m->block[i].o.N * m->block[i].o.K
                                   + (double) m->block[i].up.N * m->block[i].up.K
                                   + (double) m->block[i].down.N * m->block[i].down.K);
        attend += 4.0 * patches * (c->full[i] ? patches : window) * c->hidden;
    }

    patches /= c->merge * c->merge;
    linear += 2.0 * patches * (1 + c->deep) * ((double) m->merger.first.N * m->merger.first.K
                                               + (double) m->merger.second.N
                                                 * m->merger.second.K);

    return linear / bench_int8_rate(b->limits) + attend / bench_f32_rate(b->limits);
}


static int
time_encode(bench_t *b, int which, bench_rounds_t *rounds, vlm_err_t *err)
{
    double          start, seconds;
    size_t          bytes;
    uint8_t        *file;
    uint32_t        patches;
    vlm_model_t    *m = &b->v->sched.model;
    vlm_picture_t  *p;

    file = new_picture(b, sides[which][0], sides[which][1], &bytes);
    p = file == NULL ? NULL : vlm_picture_read(b->v, file, bytes, err);
    free(file);

    if (p == NULL) {
        return -1;
    }

    start = bench_now();
    vlm_vision_begin(m, p, 0);

    while (!vlm_vision_blocks(m, 1)) { /* void */ }

    vlm_vision_end(m);
    seconds = bench_now() - start;

    patches = p->n_patches;
    vlm_picture_free(p);
    bench_add(rounds, seconds * 1e3, vision_limit(b, patches, 64) * 1e3);

    return 0;
}


static int
measure_encode(bench_t *b, vlm_err_t *err)
{
    int             i;
    char            name[64];
    uint32_t        r;
    bench_rounds_t  rounds[2];

    memset(rounds, 0, sizeof(rounds));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 2; i++) {
            if (time_encode(b, i, &rounds[i], err) != 0) {
                return -1;
            }
        }
    }

    for (i = 0; i < 2; i++) {
        (void) snprintf(name, sizeof(name), "encode%s_%s_%s", side_names[i], b->now->name,
                        b->label);
        bench_print(name, "ms", &rounds[i], 1);
    }

    return 0;
}


/* ---- the first token ----------------------------------------------------------------------- */

/* Returns the ms from submit to the first token; picture and prompt are made before. */
static int
ask(bench_t *b, const uint8_t *file, size_t bytes, const char *text, double *ms, vlm_err_t *err)
{
    double          start;
    vlm_prompt_t   *p;
    vlm_picture_t  *picture;

    picture = vlm_picture_read(b->v, file, bytes, err);
    p = picture == NULL ? NULL : vlm_measure_question(b->v, picture, text, TEXT_TOKENS, err);

    if (p == NULL) {
        return -1;
    }

    start = bench_now();

    if (vlm_measure_first(b->v, p, err) != 0) {
        return -1;
    }

    *ms = (bench_now() - start) * 1e3;

    return 0;
}


static const char  question[] =
    "Where on the table is the cup, what stands beside it, and how would a robot with one arm take "
    "it away without touching anything else that is near?  Say it in one line, and then say why.";
static const char  another[] =
    "How many red objects can be seen in this picture, and which of them is the largest one?  Tell "
    "their names from left to right, and leave out those that are hidden behind some other thing.";


static int
measure_first(bench_t *b, vlm_err_t *err)
{
    int             i, rc;
    char            name[64];
    size_t          bytes;
    double          ms, again, limit;
    uint8_t        *file;
    uint32_t        r, tokens;
    bench_rounds_t  first[2], second[2];

    memset(first, 0, sizeof(first));
    memset(second, 0, sizeof(second));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 2; i++) {
            file = new_picture(b, sides[i][0], sides[i][1], &bytes);

            rc = file == NULL || ask(b, file, bytes, question, &ms, err) != 0
                 || ask(b, file, bytes, another, &again, err) != 0;
            free(file);

            if (rc) {
                return -1;
            }

            tokens = sides[i][0] * sides[i][1] / (28 * 28) + TEXT_TOKENS;
            limit = vision_limit(b, sides[i][0] * sides[i][1] / (14 * 14), 64)
                    + 2 * b->now->w.values * tokens / bench_int8_rate(b->limits);
            bench_add(&first[i], ms, limit * 1e3);
            bench_add(&second[i], again, ms);
        }
    }

    for (i = 0; i < 2; i++) {
        (void) snprintf(name, sizeof(name), "ttft%s_%s_%s", side_names[i], b->now->name,
                        b->label);
        bench_print(name, "ms", &first[i], 1);
        (void) snprintf(name, sizeof(name), "again%s_%s_%s", side_names[i], b->now->name,
                        b->label);
        bench_print(name, "ms", &second[i], 0);        /* of the first one's time */
    }

    return 0;
}


/* ---- the command --------------------------------------------------------------------------- */

static int
wanted(const bench_t *b, const char *part)
{
    size_t       n;
    const char  *p;

    n = strlen(part);

    for (p = b->what; p != NULL; p = strchr(p, ',') == NULL ? NULL : strchr(p, ',') + 1) {
        if (strncmp(p, part, n) == 0 && (p[n] == '\0' || p[n] == ',')) {
            return 1;
        }
    }

    return b->what == NULL;
}


static int
run(bench_t *b, vlm_err_t *err)
{
    uint32_t  f;

    for (f = 0; f < b->n_forms; f++) {
        use(b, f);
        vlm_measure_pass(b->v, 1, 0, 1, 1);           /* wakes threads, touches memory */
        vlm_measure_pass(b->v, SLOTS, 128, 1, 1);
    }

    (void) bench_read_rate(b->limits);

    if (wanted(b, "decode")) {
        measure_decode(b);
    }

    if (wanted(b, "together")) {
        measure_together(b);
    }

    if (wanted(b, "prefill")) {
        measure_prefill(b);
    }

    for (f = 0; f < b->n_forms; f++) {
        use(b, f);

        if ((wanted(b, "encode") && measure_encode(b, err) != 0)
            || (wanted(b, "first") && measure_first(b, err) != 0))
        {
            return -1;
        }
    }

    return 0;
}


/* "int8,int4" */
static int
read_forms(bench_t *b, char *names)
{
    char        *name, *rest;
    vlm_err_t    err;
    vlm_type_t   type;

    b->n_forms = 0;

    for (name = strtok_r(names, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        if (b->n_forms == FORMS || vlm_weights_find(name, &type, &err) != 0) {
            return -1;
        }

        b->form[b->n_forms++].name = vlm_weights_name(type);
    }

    return b->n_forms == 0 ? -1 : 0;
}


static int
read_options(bench_t *b, vlm_conf_t *conf, int argc, char **argv)
{
    int  i;

    vlm_conf_default(conf);
    conf->device = "cpu";
    conf->context = CONTEXT;
    conf->slots = SLOTS;
    b->rounds = 5;
    b->label = "3b";
    b->n_forms = 1;
    b->form[0].name = vlm_weights_name(conf->weights);

    if (argc < 2 || argc % 2 != 0) {
        return -1;
    }

    conf->model = argv[1];
    conf->cache = argv[1];

    for (i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--ops") == 0) {
            conf->ops = argv[i + 1];
        } else if (strcmp(argv[i], "--weights") == 0) {
            if (read_forms(b, argv[i + 1]) != 0) {
                return -1;
            }
        } else if (strcmp(argv[i], "--kv") == 0) {
            conf->kv_int8 = strcmp(argv[i + 1], "int8") == 0;
        } else if (strcmp(argv[i], "--threads") == 0) {
            conf->threads = (uint32_t) strtoul(argv[i + 1], NULL, 10);
            bench_clock = conf->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            b->rounds = (uint32_t) strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--label") == 0) {
            b->label = argv[i + 1];
        } else if (strcmp(argv[i], "--what") == 0) {
            b->what = argv[i + 1];
        } else {
            return -1;
        }
    }

    return b->rounds >= 1 && b->rounds <= BENCH_ROUNDS ? 0 : -1;
}


static int
load(form_t *f, vlm_conf_t *conf, vlm_stat_t *stat, vlm_err_t *err)
{
    if (vlm_weights_find(f->name, &conf->weights, err) != 0
        || (f->v = vlm_open(conf, err)) == NULL || vlm_load(f->v, err) != 0)
    {
        return -1;
    }

    /* A quantised cache is read into memory during the first answers; measuring begins later. */

    (void) vlm_measure_wait(f->v, 600);
    vlm_stat(f->v, stat);
    vlm_measure_weights(f->v, &f->w);

    return 0;
}


int
main(int argc, char **argv)
{
    int          rc;
    char         device[64];
    bench_t      b = { 0 };
    uint32_t     f;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_stat_t   stat;

    if (read_options(&b, &conf, argc, argv) != 0) {
        fputs("usage: bench-model DIR [--ops SET] [--weights FORM,FORM] [--kv int8] [--threads N]\n"
              "       [--rounds N] [--label TEXT] [--what decode,together,prefill,encode,first]\n",
              stderr);
        return 2;
    }

    for (f = 0; f < b.n_forms; f++) {
        if (load(&b.form[f], &conf, &stat, &err) != 0) {
            fprintf(stderr, "bench-model: %s\n", err.text);
            return 1;
        }
    }

    /* "cpu, avx512, 2 threads" */

    (void) snprintf(device, sizeof(device), "%s", strchr(stat.device, ' ') + 1);
    *strchr(device, ',') = '\0';
    fprintf(stderr, "# %s\n", stat.device);

    b.limits = bench_limits_open(device, conf.threads ? conf.threads : vlm_processors(),
                                 (uint64_t) b.form[0].w.values);

    if (b.limits == NULL) {
        fputs("bench-model: no memory for measuring the machine\n", stderr);
        return 1;
    }

    rc = run(&b, &err);
    if (rc != 0) {
        fprintf(stderr, "bench-model: %s\n", err.text);
    }

    bench_limits_close(b.limits);

    for (f = 0; f < b.n_forms; f++) {
        vlm_close(b.form[f].v);
    }

    return rc == 0 ? 0 : 1;
}
