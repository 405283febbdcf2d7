/*
 * Measures the time to the first token of a second question about a picture, against the first.
 *
 *   build/again DIR PICTURE [ROUNDS [WEIGHTS]]
 *
 * A round asks three questions one after the other, with answers of one token: a question about a
 * new picture, another question about it, and the same question again.  Each round has its own
 * cache salt, so the caches of the round before are not used.
 */

#include <string.h>

#include "bench.h"
#include "vlm.h"

#define MAX_PICTURE  (64 << 20)        /* bytes of the file */
#define ASKS         3

static const char *const  names[ASKS] = {
    "again_first_demo", "again_another_demo", "again_same_demo"
};
static const char *const  questions[ASKS] = {
    "Where is the cup on the table, and what stands beside it?",
    "How many red objects can be seen in this picture?",
    "How many red objects can be seen in this picture?"
};

static double  first_ms[ASKS][BENCH_ROUNDS];     /* submit to the token */


static void *
read_file(const char *path, size_t *bytes)
{
    void  *data;
    FILE  *f;

    f = fopen(path, "rb");
    data = f == NULL ? NULL : malloc(MAX_PICTURE);
    *bytes = data == NULL ? 0 : fread(data, 1, MAX_PICTURE, f);

    if (f != NULL) {
        fclose(f);
    }

    return data;
}


static vlm_prompt_t *
make_prompt(vlm_t *v, vlm_picture_t *picture, const char *question, int salt, vlm_err_t *err)
{
    vlm_part_t     parts[2] = { { .picture = picture }, { .text = question, .bytes = strlen(question) } };
    vlm_message_t  message = { VLM_USER, parts, 2 };
    vlm_prompt_t  *p;

    p = vlm_prompt_make(v, &message, 1, NULL, err);

    if (p == NULL) {
        vlm_picture_free(picture);
    } else {
        vlm_prompt_salt(p, &salt, sizeof(salt));
    }

    return p;
}


static int
ask(vlm_t *v, const void *data, size_t bytes, const char *question, int salt, double *ms,
    vlm_err_t *err)
{
    int              idle;
    double           start;
    vlm_event_t      e;
    vlm_prompt_t    *p;
    vlm_picture_t   *picture;
    vlm_sampling_t   s;

    picture = vlm_picture_read_salted(v, data, bytes, &salt, sizeof(salt), NULL, NULL, err);
    if (picture == NULL || (p = make_prompt(v, picture, question, salt, err)) == NULL) {
        return -1;
    }

    vlm_sampling_default(v, &s);
    s.temperature = 0;
    s.max_tokens = 1;

    start = bench_now();
    if (vlm_submit(v, p, &s, NULL, &idle, err) == NULL) {
        vlm_prompt_free(p);
        return -1;
    }

    if (vlm_run(v, err) != 0) {
        return -1;
    }

    *ms = (bench_now() - start) * 1e3;

    while (vlm_next_event(v, &e)) {
        if (e.kind == VLM_FAILED) {
            *err = e.err;
            return -1;
        }
    }

    return 0;
}


/* The share is relative to the first question's time in the same round. */
static void
print(int rounds)
{
    int             i, r;
    bench_rounds_t  figure;

    for (i = 0; i < ASKS; i++) {
        memset(&figure, 0, sizeof(figure));

        for (r = 0; r < rounds; r++) {
            bench_add(&figure, first_ms[i][r], i == 0 ? 0 : first_ms[0][r]);
        }

        bench_print(names[i], "ms", &figure, 0);
    }
}


int
main(int argc, char **argv)
{
    int          i, round, rounds;
    void        *data;
    size_t       bytes;
    vlm_t       *v;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;

    if (argc < 3 || argc > 5) {
        fputs("usage: again DIR PICTURE [ROUNDS [int8|bf16|f32]]\n", stderr);
        return 2;
    }

    rounds = argc > 3 ? atoi(argv[3]) : 5;
    rounds = rounds < 1 ? 1 : rounds > BENCH_ROUNDS ? BENCH_ROUNDS : rounds;

    vlm_conf_default(&conf);
    conf.model = argv[1];
    conf.device = "cpu";
    if (argc > 4 && vlm_weights_find(argv[4], &conf.weights, &err) != 0) {
        fprintf(stderr, "again: %s\n", err.text);
        return 2;
    }

    data = read_file(argv[2], &bytes);
    v = vlm_open(&conf, &err);

    if (data == NULL || v == NULL || vlm_load(v, &err) != 0) {
        fprintf(stderr, "again: %s\n", data == NULL ? "the picture cannot be read" : err.text);
        return 1;
    }

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < ASKS; i++) {
            if (ask(v, data, bytes, questions[i], round, &first_ms[i][round], &err) != 0) {
                fprintf(stderr, "again: %s\n", err.text);
                return 1;
            }
        }
    }

    print(rounds);
    vlm_close(v);
    free(data);

    return 0;
}
