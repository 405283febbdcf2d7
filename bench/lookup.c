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

    /* The prompt's last row has given the answer's first token, which no step is counted for. */
    for (tokens += n - at - 1; at + 1 < n; at += 1 + right) {
        most = n - at - 2 < VLM_GUESSES ? (uint32_t) (n - at - 2) : VLM_GUESSES;
        guesses = most > 0 && vlm_guess_pays(&g)
                  ? vlm_guess_tokens(id, (uint32_t) at, id[at], most, guess) : 0;

        for (right = 0; right < guesses && guess[right] == id[at + 1 + right]; right++) {
            /* void */
        }

        if (guesses > 0) {
            vlm_guess_count(&g, guesses, right);
        }

        steps[guesses]++;
    }
}


/* A text without its NUL: its bytes, 0 at the end, or -1: it does not end in one. */
static ssize_t
read_text(char **text, size_t *room)
{
    ssize_t  bytes;

    bytes = getdelim(text, room, '\0', stdin);

    return bytes <= 0 ? 0 : (*text)[bytes - 1] == '\0' && bytes > 1 ? bytes - 1 : -1;
}


static int
read_pairs(const vlm_tokenizer_t *t, vlm_err_t *err)
{
    int         rc;
    char       *text[2] = { NULL, NULL };
    size_t      room[2] = { 0, 0 }, at;
    ssize_t     bytes[2];
    vlm_ids_t   ids;

    for (rc = 0; rc == 0 && (bytes[0] = read_text(&text[0], &room[0])) != 0; ) {
        bytes[1] = read_text(&text[1], &room[1]);

        if (bytes[0] < 0 || bytes[1] <= 0) {
            *err = (vlm_err_t) { VLM_EINPUT, "texts are pairs, and each ends in a NUL" };
            rc = -1;
            break;
        }

        memset(&ids, 0, sizeof(ids));
        rc = vlm_encode(t, text[0], (size_t) bytes[0], &ids, err);
        at = ids.n;
        rc = rc == 0 ? vlm_encode(t, text[1], (size_t) bytes[1], &ids, err) : rc;

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
    uint32_t          i;
    vlm_err_t         err = { VLM_OK, "there is no text" };
    vlm_tokenizer_t  *t;

    if (argc != 2) {
        fputs("usage: bench-lookup DIR < TEXTS\n", stderr);
        return 2;
    }

    t = vlm_tokenizer_open(argv[1], NULL, &err);
    rc = t == NULL ? -1 : read_pairs(t, &err);

    for (n = 0, i = 0; i <= VLM_GUESSES; i++) {
        n += (double) steps[i];
    }

    vlm_tokenizer_close(t);

    if (rc != 0 || n == 0) {
        fprintf(stderr, "bench-lookup: %s\n", err.text);
        return 1;
    }

    print("lookup_tokens", "tokens/step", (double) tokens / n);
    print("lookup_one", "of steps", (double) steps[1] / n);
    print("lookup_two", "of steps", (double) steps[2] / n);

    return 0;
}
