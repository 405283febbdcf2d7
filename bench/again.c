/*
 * The second question about a picture against the first: time to the first token, in the engine.
 *
 *   build/again DIR PICTURE [ROUNDS [WEIGHTS]]
 *
 * A round asks three times, one after the other, each answer one token long: about a picture that
 * the engine has not seen, another question about it, and the same question again.  Rounds differ
 * in their salt, so that nothing is known from the round before.  Prints medians.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vlm.h"

#define MAX_ROUNDS   100
#define MAX_PICTURE  (64 << 20)        /* bytes of the file */
#define ASKS         3

typedef struct {
    double       read_ms, first_ms;    /* the picture's way to patches; submit to the token */
    vlm_usage_t  usage;
} answer_t;

static const char *const  names[ASKS] = { "first", "another question", "the same again" };
static const char *const  questions[ASKS] = {
    "Where is the cup on the table, and what stands beside it?",
    "How many red objects can be seen in this picture?",
    "How many red objects can be seen in this picture?"
};

static answer_t  answers[ASKS][MAX_ROUNDS];


static double
now_ms(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (double) t.tv_sec * 1e3 + (double) t.tv_nsec / 1e6;
}


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
    vlm_part_t     parts[2] = { { picture, NULL, 0 }, { NULL, question, strlen(question) } };
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
ask(vlm_t *v, const void *data, size_t bytes, const char *question, int salt, answer_t *a,
    vlm_err_t *err)
{
    int              idle;
    double           start;
    vlm_event_t      e;
    vlm_prompt_t    *p;
    vlm_picture_t   *picture;
    vlm_sampling_t   s;

    start = now_ms();
    picture = vlm_picture_read_salted(v, data, bytes, &salt, sizeof(salt), err);
    if (picture == NULL || (p = make_prompt(v, picture, question, salt, err)) == NULL) {
        return -1;
    }

    a->read_ms = now_ms() - start;

    vlm_sampling_default(v, &s);
    s.temperature = 0;
    s.max_tokens = 1;

    start = now_ms();
    if (vlm_submit(v, p, &s, NULL, &idle, err) == NULL) {
        vlm_prompt_free(p);
        return -1;
    }

    if (vlm_run(v, err) != 0) {
        return -1;
    }

    a->first_ms = now_ms() - start;

    while (vlm_next_event(v, &e)) {
        if (e.kind == VLM_DONE) {
            a->usage = e.usage;
        }

        if (e.kind == VLM_FAILED) {
            *err = e.err;
            return -1;
        }
    }

    return 0;
}


static int
by_first(const void *a, const void *b)
{
    const answer_t  *x = a, *y = b;

    return (x->first_ms > y->first_ms) - (x->first_ms < y->first_ms);
}


static void
print(int rounds)
{
    int              i;
    const answer_t  *a;

    printf("%-18s %10s %10s %10s %10s %7s %8s %8s\n", "median", "picture ms", "first ms",
           "encode ms", "prefill ms", "tokens", "cached", "of first");

    for (i = 0; i < ASKS; i++) {
        qsort(answers[i], (size_t) rounds, sizeof(answers[i][0]), by_first);
    }

    for (i = 0; i < ASKS; i++) {
        a = &answers[i][rounds / 2];
        printf("%-18s %10.2f %10.2f %10u %10u %7u %8u %7.1f%%\n", names[i], a->read_ms, a->first_ms,
               a->usage.encode_ms, a->usage.prefill_ms, a->usage.prompt_tokens,
               a->usage.cached_tokens, 100 * a->first_ms / answers[0][rounds / 2].first_ms);
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
    rounds = rounds < 1 ? 1 : rounds > MAX_ROUNDS ? MAX_ROUNDS : rounds;

    vlm_conf_default(&conf);
    conf.model = argv[1];
    conf.device = "cpu";
    conf.weights = argc < 5 || strcmp(argv[4], "int8") == 0 ? VLM_INT8
                   : strcmp(argv[4], "bf16") == 0 ? VLM_BF16 : VLM_F32;

    data = read_file(argv[2], &bytes);
    v = vlm_open(&conf, &err);

    if (data == NULL || v == NULL || vlm_load(v, &err) != 0) {
        fprintf(stderr, "again: %s\n", data == NULL ? "the picture cannot be read" : err.text);
        return 1;
    }

    for (round = 0; round < rounds; round++) {
        for (i = 0; i < ASKS; i++) {
            if (ask(v, data, bytes, questions[i], round, &answers[i][round], &err) != 0) {
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
