/*
 * The cost of a search of a session: its chunks are loaded from the store and scored by BM25, then
 * by BM25 and vectors of 384 numbers (retrieval hybrid), which are made up.
 *
 *   documents DIR CHUNKS     a new store in DIR; documents of 400 chunks, of words that are
 *                            distributed as in a language (Zipf)
 *   documents DIR evict [N]  adds N documents of 1 MB, 1,000 by default, makes them an hour old, and
 *                            sweeps the store down to N / 5 MiB
 *
 * Prints the processor time of this thread, the median of nine runs.  20,000 chunks are five
 * sessions, since one has 4,000 at most: each is loaded and scored.
 */

#define _GNU_SOURCE

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <sqlite3.h>

#include "document/hybrid.h"
#include "store/documents.h"

#define RUNS    9
#define EACH    400                        /* chunks of a document */
#define DIM     384
#define WORDS   160                        /* of a chunk: about 1,000 characters */

static uint64_t  seed = 1;


static uint32_t
any(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((seed >> 33) % n);
}


static double
now_ms(void)
{
    struct timespec  ts;

    (void) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);

    return (double) ts.tv_sec * 1e3 + (double) ts.tv_nsec / 1e6;
}


static void
must(int rc, const vlm_store_err_t *err)
{
    if (rc != VLM_STORE_OK) {
        (void) fprintf(stderr, "%s\n", err->text);
        exit(1);
    }
}


/* Words by 1 / rank of 30,000. */
static size_t
write_words(char *text, size_t room, size_t n)
{
    size_t  i, at;

    for (i = at = 0; i < n; i++) {
        at += (size_t) snprintf(text + at, room - at, "w%u ",
                                (uint32_t) exp(any(10000) / 10000. * log(30000)));
    }

    return at - 1;
}


static void
add_document(vlm_store_t *st, const char *session, int number)
{
    char                    bytes[32], *texts;
    size_t                  i;
    vlm_chunk_t             chunks[EACH];
    vlm_terms_t             terms[EACH];
    vlm_document_t          doc;
    vlm_store_err_t         err;
    vlm_document_page_t     pages[EACH];
    vlm_document_upload_t   up = { bytes, 0, 0, { 5, "x.pdf" } };

    up.bytes = (size_t) snprintf(bytes, sizeof(bytes), "document %d", number);
    texts = malloc(EACH * 2000);

    for (i = 0; i < EACH; i++) {
        pages[i] = (vlm_document_page_t) {
            .number = (uint32_t) i + 1, .width = 595, .height = 842, .text = texts + i * 2000,
            .chunks = &chunks[i], .terms = &terms[i], .n_chunks = 1
        };
        pages[i].bytes = write_words(texts + i * 2000, 2000, WORDS);
        chunks[i] = (vlm_chunk_t) { 0, pages[i].bytes };
        (void) vlm_terms_of(&terms[i], pages[i].text, pages[i].bytes);
    }

    must(vlm_document_add(st, vlm_store_string(session), &up, &doc, &err), &err);
    must(vlm_document_take(st, &doc, &err), &err);
    must(vlm_document_done(st, &doc, vlm_store_string("x"), pages, EACH, NULL, &err), &err);

    for (i = 0; i < EACH; i++) {
        free(terms[i].terms);
    }

    free(texts);
}


static int
by_value(const void *a, const void *b)
{
    return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b);
}


static void
evict(vlm_store_t *st, const char *dir, int n_documents)
{
    int                     i;
    char                    path[1024], session[16], *bytes;
    double                  start;
    sqlite3                *db;
    uint64_t                n[VLM_DOCUMENT_FAILED + 1];
    vlm_document_t          doc;
    vlm_store_err_t         err;
    vlm_store_swept_t       swept;
    vlm_document_upload_t   up = { 0 };

    bytes = calloc(1, 1000000);
    up.data = bytes;
    up.bytes = 1000000;

    for (i = 0; i < n_documents; i++) {
        (void) snprintf(bytes, 32, "document %d", i);
        (void) snprintf(session, sizeof(session), "s%d", i / VLM_DOCUMENT_MAX);
        must(vlm_store_session_ensure(st, vlm_store_string(session), &err), &err);
        must(vlm_document_add(st, vlm_store_string(session), &up, &doc, &err), &err);
        must(vlm_document_take(st, &doc, &err), &err);
        must(vlm_document_done(st, &doc, vlm_store_string("x"), NULL, 0, NULL, &err), &err);
    }

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);

    if (sqlite3_open(path, &db) != SQLITE_OK
        || sqlite3_exec(db, "UPDATE document SET used = used - 3600000000;"
                        "UPDATE session SET used = used - 3600000000", NULL, NULL, NULL)
           != SQLITE_OK)
    {
        exit(1);
    }

    (void) sqlite3_close(db);

    start = now_ms();
    must(vlm_store_sweep(st, 0, (uint64_t) (n_documents / 5) << 20, &swept, &err), &err);
    start = now_ms() - start;

    must(vlm_document_count(st, n, &err), &err);
    (void) printf("%d MB to %d MiB: %llu documents removed, %llu bytes of %llu documents stay,"
                  " %.0f ms\n", n_documents, n_documents / 5, (unsigned long long) swept.documents,
                  (unsigned long long) swept.left,
                  (unsigned long long) n[VLM_DOCUMENT_READY], start);
    free(bytes);
}


typedef struct {                           /* ms, of one run over all sessions */
    double  load, words, hybrid, products;
} times_t;


/* A vector of any direction: the cost does not depend on it. */
static vlm_vector_t
any_vector(int8_t values[DIM])
{
    size_t  i;

    for (i = 0; i < DIM; i++) {
        values[i] = (int8_t) (any(255) - 127);
    }

    return (vlm_vector_t) { values, vlm_vector_scale(values, DIM) };
}


/* Loads the chunks of a session and searches them in both ways. */
static void
search(vlm_store_t *st, const char *session, const vlm_terms_t *query, const vlm_vector_t *vectors,
       times_t *took)
{
    float                products[VLM_DOCUMENT_CHUNKS];
    double               start, scores[VLM_DOCUMENT_CHUNKS];
    size_t               found, best[16];
    vlm_store_err_t      err;
    vlm_document_set_t   set;

    start = now_ms();
    must(vlm_document_chunks(st, vlm_store_string(session), NULL, 0, 0, &set, &err), &err);
    took->load += now_ms() - start;

    start = now_ms();
    vlm_bm25(scores, set.terms, set.n, query);
    (void) vlm_best(best, 16, scores, set.n);
    took->words += now_ms() - start;

    start = now_ms();

    if (vlm_hybrid(best, &found, 16, set.terms, vectors, set.n, DIM, query, vectors) != 0) {
        exit(1);
    }

    took->hybrid += now_ms() - start;

    start = now_ms();
    vlm_similar(products, vectors, set.n, DIM, vectors);
    took->products += now_ms() - start;

    vlm_document_set_free(&set);
}


/* The median and the worst of one of the times. */
static void
print(const char *what, const times_t *took, size_t at)
{
    int     i;
    double  ms[RUNS];

    for (i = 0; i < RUNS; i++) {
        ms[i] = *(const double *) ((const char *) &took[i] + at);
    }

    qsort(ms, RUNS, sizeof(double), by_value);
    (void) printf("%s %.1f ms (worst %.1f)", what, ms[RUNS / 2], ms[RUNS - 1]);
}


int
main(int argc, char **argv)
{
    int              run, i, n_sessions, n;
    char             text[256], session[16];
    int8_t          *values;
    times_t          took[RUNS] = { { 0 } };
    vlm_terms_t      query;
    vlm_store_t     *st;
    vlm_vector_t    *vectors;
    vlm_store_err_t  err;

    if (argc < 3 || argc > 4) {
        return 2;
    }

    n = atoi(argv[2]);
    n_sessions = (n + VLM_DOCUMENT_CHUNKS - 1) / VLM_DOCUMENT_CHUNKS;

    must(vlm_store_prepare(argv[1], (uid_t) -1, (gid_t) -1, &err), &err);
    st = vlm_store_open(argv[1]);

    if (n == 0) {
        evict(st, argv[1], argc == 4 ? atoi(argv[3]) : 1000);
        vlm_store_close(st);
        return 0;
    }

    for (i = 0; i < n / EACH; i++) {
        (void) snprintf(session, sizeof(session), "s%d", i * EACH / VLM_DOCUMENT_CHUNKS);
        must(vlm_store_session_ensure(st, vlm_store_string(session), &err), &err);
        add_document(st, session, i);
    }

    values = malloc((size_t) VLM_DOCUMENT_CHUNKS * DIM);
    vectors = malloc(VLM_DOCUMENT_CHUNKS * sizeof(*vectors));
    (void) vlm_terms_of(&query, text, write_words(text, sizeof(text), 12));

    for (i = 0; i < VLM_DOCUMENT_CHUNKS; i++) {
        vectors[i] = any_vector(values + (size_t) i * DIM);
    }

    for (run = 0; run < RUNS; run++) {
        for (i = 0; i < n_sessions; i++) {
            (void) snprintf(session, sizeof(session), "s%d", i);
            search(st, session, &query, vectors, &took[run]);
        }
    }

    (void) printf("%d chunks: ", n);
    print("load", took, offsetof(times_t, load));
    print(", by words", took, offsetof(times_t, words));
    print(", by words and vectors", took, offsetof(times_t, hybrid));
    print(", of which products", took, offsetof(times_t, products));
    (void) printf("\n");

    free(query.terms);
    free(vectors);
    free(values);
    vlm_store_close(st);

    return 0;
}
