/*
 * Times a model with adapters of all linear layers of its language model.
 *
 *   build/bench-adapters DIR [--ops SET] [--threads N] [--rounds N] [--label TEXT]
 *
 * One engine has places of rank 16 for two adapters.  Its passes through all layers, without the
 * head, take turns: one as without `lora`, then one with places but no adapter in the batch, with
 * one adapter, or with two in turn.  Figures are rates in that as without `lora`, of the medians of
 * a round's passes.  Then a file of about 60 MB is read and put into its place.
 *
 * With --threads 1 times are the thread's processor time: see model.c.
 */

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"
#include "run/adapters.h"
#include "run/engine.h"

#define SLOTS    8
#define RANK     16
#define MOST     32                    /* passes of a kind in a round */
#define BYTES    60e6                  /* of the file that is read */
#define READS    5
#define NAME     "adapter"

typedef enum { WITHOUT, NONE, ONE, TWO, KINDS } kind_t;

typedef struct {
    vlm_t           *v;
    const char      *label;
    uint32_t         rounds;
    char             dir[32];          /* of adapters */
} bench_t;

typedef struct {                       /* sequences that read some rows each, in so many passes */
    const char  *name;
    uint32_t     S, rows, passes;
} shape_t;

static const shape_t  shapes[] = {
    { "decode", 1, 1, MOST }, { "together8", 8, 1, MOST / 2 }, { "prefill256", 1, 256, 2 }
};

#define SHAPES  (sizeof(shapes) / sizeof(shapes[0]))


/* ---- an adapter's files -------------------------------------------------- */

static int
is_text(const vlm_lora_matrix_t *t)
{
    return !t->tower && !t->table && strstr(t->name[0], "layers.") != NULL;
}


/* Rows of A and B together for a rank of 1, of all parts. */
static double
values_of(const bench_t *b)
{
    double              n;
    uint32_t            i, p;
    const vlm_lora_t   *x = b->v->sched.model.lora;

    for (n = 0, i = 0; i < x->n; i++) {
        for (p = 0; p < x->matrix[i].lows.parts && is_text(&x->matrix[i]); p++) {
            n += (double) x->matrix[i].w->K + x->matrix[i].rows[p];
        }
    }

    return n;
}


static void
write_head(FILE *f, const bench_t *b, uint32_t rank)
{
    char               *text, *p;
    size_t              bytes, room = 4 << 20;
    uint64_t            at, n, head;
    uint32_t            i, part, ab;
    const vlm_lora_t   *x = b->v->sched.model.lora;

    text = p = malloc(room);
    at = 0;

    for (i = 0; i < x->n && text != NULL; i++) {
        for (part = 0; part < x->matrix[i].lows.parts && is_text(&x->matrix[i]); part++) {
            for (ab = 0; ab < 2; ab++) {
                n = 2 * (uint64_t) rank * (ab == 0 ? x->matrix[i].w->K : x->matrix[i].rows[part]);
                p += snprintf(p, room - (size_t) (p - text),
                              "%c\"base_model.model.%s.lora_%c.weight\":{\"dtype\":\"BF16\","
                              "\"shape\":[%u,%u],\"data_offsets\":[%llu,%llu]}",
                              at == 0 ? '{' : ',',
                              x->matrix[i].name[part], ab == 0 ? 'A' : 'B',
                              ab == 0 ? rank : x->matrix[i].rows[part],
                              ab == 0 ? x->matrix[i].w->K : rank, (unsigned long long) at,
                              (unsigned long long) (at + n));
                at += n;
            }
        }
    }

    if (text != NULL) {
        bytes = (size_t) (p - text);
        memset(p, ' ', 8);
        p[0] = '}';
        head = (bytes + 8) / 8 * 8;
        (void) fwrite(&head, 8, 1, f);
        (void) fwrite(text, 1, head, f);
    }

    free(text);
}


/* An adapter of small values, of the text's linear layers. */
static int
write_files(const bench_t *b, uint32_t rank)
{
    FILE      *f;
    char       path[128];
    double     left;
    uint32_t   i, state;
    uint16_t   values[4096];

    (void) snprintf(path, sizeof(path), "%s/" NAME, b->dir);
    (void) mkdir(path, 0700);
    (void) snprintf(path, sizeof(path), "%s/" NAME "/adapter_config.json", b->dir);

    if ((f = fopen(path, "w")) == NULL) {
        return -1;
    }

    (void) fprintf(f, "{\"peft_type\":\"LORA\",\"r\":%u,\"lora_alpha\":%u,\"bias\":\"none\"}", rank,
                   rank);
    (void) fclose(f);
    (void) snprintf(path, sizeof(path), "%s/" NAME "/adapter_model.safetensors", b->dir);

    if ((f = fopen(path, "w")) == NULL) {
        return -1;
    }

    write_head(f, b, rank);

    for (state = 1, left = values_of(b) * rank; left > 0; left -= 4096) {
        for (i = 0; i < 4096; i++) {
            state = state * 1664525 + 1013904223;
            values[i] = (uint16_t) (0x3c00 | (state >> 17 & 0x807f));      /* 1/128 to 1/64 */
        }

        (void) fwrite(values, 2, left < 4096 ? (size_t) left : 4096, f);
    }

    return fclose(f);
}


static void
remove_files(const bench_t *b)
{
    char  path[128];

    (void) snprintf(path, sizeof(path), "%s/" NAME "/adapter_config.json", b->dir);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/" NAME "/adapter_model.safetensors", b->dir);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/" NAME, b->dir);
    (void) rmdir(path);
    (void) rmdir(b->dir);
}


/* ---- passes -------------------------------------------------------------- */

/* Rows of the next pass: which adapter they have; WITHOUT: matrices have no places. */
static void
choose(bench_t *b, kind_t kind, uint32_t rows, uint32_t place[], float scale[])
{
    uint32_t     i;
    vlm_lora_t  *x = b->v->sched.model.lora;

    for (i = 0; i < x->n; i++) {
        x->matrix[i].w->low = kind == WITHOUT ? NULL : &x->matrix[i].lows;
    }

    for (i = 0; i < rows; i++) {
        place[i] = kind == TWO ? i % 2 : 0;
        scale[i] = 1;
    }

    x->rows = (vlm_low_rows_t) {
        .any = kind == ONE || kind == TWO, .place = place, .scale = scale, .all = VLM_NONE
    };
}


/* Seconds of a pass. */
static double
time_pass(bench_t *b, const shape_t *shape, kind_t kind)
{
    float         scale[VLM_SLICE];
    double        start;
    int32_t       pos[3];
    uint32_t      s, i, place[VLM_SLICE];
    vlm_batch_t   batch;
    vlm_model_t  *m = &b->v->sched.model;
    vlm_rows_t   *r = &b->v->sched.rows;

    choose(b, kind, shape->S * shape->rows, place, scale);
    start = bench_now();
    vlm_rows_clear(r);

    for (s = 0; s < shape->S; s++) {
        vlm_rows_sequence(r, s, 128);

        for (i = 0; i < shape->rows; i++) {
            pos[0] = pos[1] = pos[2] = (int32_t) (128 + i);
            vlm_rows_add(r, (s * 977 + i * 31) % m->n_vocab, VLM_NONE, pos);
        }
    }

    vlm_rows_put(r, b->v->ops, b->v->device, m->work.ids, m->work.pick, &batch);
    (void) vlm_text_forward(m, &batch, NULL, NULL);
    (void) b->v->ops->basic->sync(b->v->device, NULL);

    return bench_now() - start;
}


static void
measure_shape(bench_t *b, const shape_t *shape)
{
    char                name[64];
    double              seconds[KINDS][3 * MOST], base;
    kind_t              k;
    uint32_t            r, i;
    bench_rounds_t      rounds[KINDS];
    static const char  *names[] = { "without", "none", "one", "two" };

    memset(rounds, 0, sizeof(rounds));
    (void) time_pass(b, shape, TWO);

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 3 * shape->passes; i++) {
            k = NONE + (i + r) % 3;
            seconds[WITHOUT][i] = time_pass(b, shape, WITHOUT);
            seconds[k][i / 3] = time_pass(b, shape, k);
        }

        base = bench_median(seconds[WITHOUT], 3 * shape->passes);
        bench_add(&rounds[WITHOUT], base * 1e3, 0);

        for (k = NONE; k < KINDS; k++) {
            bench_add(&rounds[k], base / bench_median(seconds[k], shape->passes), 0);
        }
    }

    (void) snprintf(name, sizeof(name), "adapters_%s_int8_%s", shape->name, b->label);
    bench_print(name, "ms", &rounds[WITHOUT], 0);

    for (k = NONE; k < KINDS; k++) {
        (void) snprintf(name, sizeof(name), "adapters_%s_%s_int8_%s", shape->name, names[k],
                        b->label);
        bench_print(name, "x", &rounds[k], 0);
    }
}


/* ---- reading ------------------------------------------------------------- */

/* Reads the adapter and puts it into a place; the figures, which may be NULL, are of seconds. */
static int
read_adapter(bench_t *b, uint32_t place, bench_rounds_t *read, bench_rounds_t *slice,
             vlm_err_t *err)
{
    int               done;
    char              path[128];
    double            start, longest, seconds;
    vlm_lora_data_t  *d;

    (void) snprintf(path, sizeof(path), "%s/" NAME, b->dir);
    start = bench_now();
    d = vlm_lora_read(&b->v->sched.model, NAME, path, err);

    if (d == NULL) {
        return -1;
    }

    bench_add(read, (bench_now() - start) * 1e3, 1e3);

    for (longest = 0, done = 0; !done; ) {
        start = bench_now();
        done = vlm_lora_put(&b->v->sched.model, d, place, VLM_ADAPTER_SLICE);
        seconds = bench_now() - start;
        longest = seconds > longest ? seconds : longest;
    }

    bench_add(slice, longest * 1e3, 0);
    vlm_lora_data_free(d);

    return 0;
}


static int
open_engine(bench_t *b, vlm_conf_t *conf, uint32_t rank, vlm_err_t *err)
{
    vlm_stat_t  stat;

    conf->lora = b->dir;
    conf->lora_rank = rank;
    b->v = vlm_open(conf, err);

    if (b->v == NULL || vlm_load(b->v, err) != 0) {
        return -1;
    }

    for (vlm_stat(b->v, &stat); stat.filling; vlm_stat(b->v, &stat)) {
        (void) usleep(10000);          /* the cache is read into memory meanwhile */
    }

    return 0;
}


static int
measure(bench_t *b, vlm_conf_t *conf, vlm_err_t *err)
{
    char            name[64];
    double          values;
    uint32_t        i, rank;
    bench_rounds_t  read = { 0 }, slice = { 0 };

    if (open_engine(b, conf, RANK, err) != 0 || write_files(b, RANK) != 0
        || read_adapter(b, 0, &read, &slice, err) != 0
        || read_adapter(b, 1, &read, &slice, err) != 0)
    {
        return -1;
    }

    values = values_of(b);

    for (i = 0; i < SHAPES; i++) {
        measure_shape(b, &shapes[i]);
    }

    remove_files(b);
    (void) mkdir(b->dir, 0700);
    vlm_close(b->v);
    rank = (uint32_t) (BYTES / 2 / values + 0.5);
    read.n = slice.n = 0;

    if (open_engine(b, conf, rank, err) != 0 || write_files(b, rank) != 0) {
        return -1;
    }

    for (i = 0; i < READS; i++) {
        if (read_adapter(b, 0, &read, &slice, err) != 0) {
            return -1;
        }
    }

    (void) snprintf(name, sizeof(name), "adapters_read_%s", b->label);
    bench_print(name, "ms", &read, 1);
    (void) snprintf(name, sizeof(name), "adapters_slice_%s", b->label);
    bench_print(name, "ms", &slice, 0);

    return 0;
}


static int
read_options(bench_t *b, vlm_conf_t *conf, int argc, char **argv)
{
    int  i;

    vlm_conf_default(conf);
    conf->device = "cpu";
    conf->context = 512;
    conf->slots = SLOTS;
    conf->lora_max = 2;
    conf->lora_tower = 0;
    b->rounds = 8;
    b->label = "3b";

    if (argc < 2 || argc % 2 != 0) {
        return -1;
    }

    conf->model = conf->cache = argv[1];

    for (i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--ops") == 0) {
            conf->ops = argv[i + 1];
        } else if (strcmp(argv[i], "--threads") == 0) {
            conf->threads = (uint32_t) strtoul(argv[i + 1], NULL, 10);
            bench_clock = conf->threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            b->rounds = (uint32_t) strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--label") == 0) {
            b->label = argv[i + 1];
        } else {
            return -1;
        }
    }

    return b->rounds >= 1 && b->rounds <= BENCH_ROUNDS ? 0 : -1;
}


int
main(int argc, char **argv)
{
    int          rc;
    bench_t      b = { .dir = "/tmp/bench-adapters-XXXXXX" };
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;

    if (read_options(&b, &conf, argc, argv) != 0) {
        fputs("usage: bench-adapters DIR [--ops SET] [--threads N] [--rounds N] [--label TEXT]\n",
              stderr);
        return 2;
    }

    if (mkdtemp(b.dir) == NULL) {
        perror("bench-adapters");
        return 1;
    }

    rc = measure(&b, &conf, &err);
    remove_files(&b);
    vlm_close(b.v);

    if (rc != 0) {
        fprintf(stderr, "bench-adapters: %s\n", err.text[0] != '\0' ? err.text : "cannot write");
    }

    return rc == 0 ? 0 : 1;
}
