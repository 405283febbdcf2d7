/*
 * Counts the steps of answers with guessed tokens (engine/run/guess.h), without a model.
 *
 *   bench-lookup DIR < TEXTS
 *
 * DIR has a tokenizer.  TEXTS are pairs that end in a NUL each: what stands in a context before an
 * answer, and the answer.  A step takes an answer's next token, and those that were guessed right
 * after it, as the engine's steps do.  The figures are means of all answers: tokens a step, and the
 * shares of steps that read one and two guesses.
 */

#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "run/guess.h"
#include "text/tokenizer.h"
#include "vlm.h"

static uint64_t  tokens, steps[VLM_GUESSES + 1];     /* [n]: with n guesses */


/* The ids are those of the context and the answer, which begins at `at`. */
static void
count_steps(const uint32_t *id, size_t n, size_t at)
{
    uint32_t     guess[VLM_GUESSES], guesses, right, most;
    vlm_guess_t  g = { 0, 0 };

    /* The prompt's last row has given the answer's first token. */
    for (tokens += n - at; at + 1 < n; at += 1 + right) {
        most = n - at - 2 < VLM_GUESSES ? (uint32_t) (n - at - 2) : VLM_GUESSES;
        guesses = most > 0 && vlm_guess_pays(&g)
                  ? vlm_guess_tokens(id, (uint32_t) at, id[at], most, guess) : 0;

        for (right = 0; right < guesses && guess[right] == id[at + 1 + right]; right++) { /* void */ }

        if (guesses > 0) {
            vlm_guess_count(&g, guesses, right);
        }

        steps[guesses]++;
    }
}


static int
read_pairs(const vlm_tokenizer_t *t, vlm_err_t *err)
{
    int         rc;
    char       *text[2] = { NULL, NULL };
    size_t      room[2] = { 0, 0 }, at;
    ssize_t     bytes[2];
    vlm_ids_t   ids;

    for (rc = 0; rc == 0 && (bytes[0] = getdelim(&text[0], &room[0], '\0', stdin)) > 0
                 && (bytes[1] = getdelim(&text[1], &room[1], '\0', stdin)) > 0; )
    {
        memset(&ids, 0, sizeof(ids));
        rc = vlm_encode(t, text[0], (size_t) bytes[0] - 1, &ids, err);
        at = ids.n;
        rc = rc == 0 ? vlm_encode(t, text[1], (size_t) bytes[1] - 1, &ids, err) : rc;

        if (rc == 0 && ids.n > at) {
            count_steps(ids.ids, ids.n, at);
        }

        free(ids.ids);
    }

    free(text[0]);
    free(text[1]);

    return rc;
}


static void
print(const char *name, const char *unit, double value)
{
    bench_rounds_t  figure = { 0, { 0 }, { 0 } };

    bench_add(&figure, value, 0);
    bench_print(name, unit, &figure, 0);
}


int
main(int argc, char **argv)
{
    int               rc;
    double            n;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_tokenizer_t  *t;

    t = argc == 2 ? vlm_tokenizer_open(argv[1], NULL, &err) : NULL;
    rc = t == NULL ? -1 : read_pairs(t, &err);
    n = (double) (steps[0] + steps[1] + steps[2]);

    if (rc != 0 || n == 0) {
        fprintf(stderr, "usage: bench-lookup DIR < TEXTS: %s\n", rc == 0 ? "no text" : err.text);
        return 1;
    }

    print("lookup_tokens", "tokens/step", (double) tokens / n);
    print("lookup_one", "of steps", (double) steps[1] / n);
    print("lookup_two", "of steps", (double) steps[2] / n);
    vlm_tokenizer_close(t);

    return 0;
}
