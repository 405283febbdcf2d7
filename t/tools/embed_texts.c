/*
 * Encodes texts with a text encoder, for comparisons with another program.
 *
 *     embed-texts DIR f32|int8|...|ids [THREADS] <TEXTS >VECTORS
 *
 * A text is its number of bytes, u32, and the bytes.  For each text come the number of its tokens,
 * u32, their ids, u32, and its vector, f32 [dim], which is zeros if only ids are asked for.  The time that all vectors took goes to stderr.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "embed/embed.h"

#define MAX_TEXTS  100000
#define MAX_BYTES  (1u << 20)


static double
seconds(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);

    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}


static size_t
read_texts(vlm_embedder_text_t *texts)
{
    char      *p;
    size_t     n;
    uint32_t   bytes;

    for (n = 0; n < MAX_TEXTS && fread(&bytes, sizeof(bytes), 1, stdin) == 1; n++) {
        p = bytes > MAX_BYTES ? NULL : malloc(bytes + 1);

        if (p == NULL || fread(p, 1, bytes, stdin) != bytes) {
            fprintf(stderr, "embed-texts: text %zu cannot be read\n", n);
            exit(1);
        }

        texts[n] = (vlm_embedder_text_t) { p, bytes };
    }

    return n;
}


static void
write_ids(const vlm_embedder_t *e, const vlm_embedder_text_t *text, uint32_t *ids)
{
    uint32_t   n;
    vlm_err_t  err = { VLM_OK, "" };

    if (vlm_wordpiece_ids(e->pieces, text->text, text->bytes, ids, e->facts.tokens, &n, &err) != 0)
    {
        fprintf(stderr, "embed-texts: %s\n", err.text);
        exit(1);
    }

    fwrite(&n, sizeof(n), 1, stdout);
    fwrite(ids, sizeof(*ids), n, stdout);
}


int
main(int argc, char **argv)
{
    int                         ids_alone;
    float                      *out;
    size_t                      i, n;
    double                      began;
    uint32_t                   *ids;
    vlm_err_t                   err = { VLM_OK, "" };
    vlm_type_t                  type;
    vlm_embedder_t             *e;
    static vlm_embedder_text_t  texts[MAX_TEXTS];

    if (argc < 3) {
        fprintf(stderr, "usage: embed-texts DIR WEIGHTS [THREADS]\n");
        return 1;
    }

    ids_alone = strcmp(argv[2], "ids") == 0;
    e = vlm_weights_find(ids_alone ? "f32" : argv[2], &type, &err) != 0 ? NULL
        : vlm_embedder_open(argv[1], type, argc < 4 ? 1 : (uint32_t) atoi(argv[3]), &err);

    n = read_texts(texts);
    out = e == NULL ? NULL : calloc((n + 1) * e->facts.dim, sizeof(float));
    ids = e == NULL ? NULL : malloc(e->facts.tokens * sizeof(uint32_t));

    if (out == NULL || ids == NULL) {
        fprintf(stderr, "embed-texts: %s\n", err.text);
        return 1;
    }

    began = seconds();

    if (!ids_alone && vlm_embedder_run(e, texts, n, out, &err) != 0) {
        fprintf(stderr, "embed-texts: %s\n", err.text);
        return 1;
    }

    fprintf(stderr, "%.6f\n", seconds() - began);

    for (i = 0; i < n; i++) {
        write_ids(e, &texts[i], ids);
        fwrite(out + i * e->facts.dim, sizeof(float), e->facts.dim, stdout);
    }

    vlm_embedder_close(e);

    return 0;
}
