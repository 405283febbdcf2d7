
/* Documents beside processes that are killed in the middle, and beside each other. */


#define _GNU_SOURCE

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "store/documents.h"
#include "store/store_fixture.h"
#include "store/documents_fixture.h"


#define PAGES   30
#define CHUNKS  4
#define KEPT    8                          /* documents of the session */


/* the oldest go, of which several may be there after writers that were killed early */

static int
delete_old(store_t *st, err_t *err)
{
    int     rc;
    doc_t   docs[VLM_DOCUMENT_MAX];
    size_t  i, n;

    rc = vlm_document_list(st, S("s"), docs, &n, err);

    for (i = 0; rc == OK && i + KEPT < n; i++) {
        rc = vlm_document_delete(st, NULL, S(docs[i].id), err);
    }

    return rc;
}


/* adds, reads and deletes documents as fast as it can, and tells each that is READY */

static void
write_documents(int run, int fd)
{
    int       n;
    char      bytes[64];
    doc_t     doc;
    err_t     err;
    store_t  *st;

    st = vlm_store_open(dir);

    for (n = 0; /* void */ ; n++) {
        (void) snprintf(bytes, sizeof(bytes), "run %d, file %d", run, n);

        if (delete_old(st, &err) != OK
            || add(st, "s", bytes, bytes, 0, &doc, &err) != OK
            || vlm_document_take(st, &doc, &err) != OK
            || vlm_document_progress(st, &doc, PAGES, PAGES, 1, &err) != OK
            || done(st, &doc, PAGES, CHUNKS, &err) != OK
            || write(fd, doc.id, 37) != 37)
        {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
    }
}


/* Every READY document has all its pages and chunks; returns how many there are. */

static size_t
check_whole(store_t *st)
{
    err_t   err;
    set_t   set;
    size_t  i, n;
    page_t  page;

    assert_int_equal(vlm_document_chunks(st, S("s"), NULL, 0, 0, &set, &err), OK);

    for (i = n = 0; i < set.n_docs; i++) {
        if (set.docs[i].state != VLM_DOCUMENT_READY) {
            continue;
        }

        n++;
        assert_int_equal(set.docs[i].read, PAGES);
        assert_int_equal(set.docs[i].n_chunks, PAGES * CHUNKS);

        /* it may be deleted meanwhile */

        if (vlm_document_page(st, S(set.docs[i].id), PAGES, &page, &err) == OK) {
            vlm_document_page_free(&page);

        } else {
            assert_int_equal(err.code, NOTFOUND);
            assert_string_equal(err.text, "Document not found");
        }
    }

    assert_int_equal(set.n, n * PAGES * CHUNKS);
    vlm_document_set_free(&set);

    return n;
}


/* rows that a query of the whole database counts */

static int
rows(const char *query)
{
    int            n;
    char           path[128];
    sqlite3       *db;
    sqlite3_stmt  *stmt;

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    (void) sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, query, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    n = sqlite3_column_int(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);

    return n;
}


static void
kill_9_at_any_point_shows_no_half_document(void **state)
{
    int       i, fd[2];
    char      told[37], last[37];
    pid_t     pid;
    doc_t     doc, docs[VLM_DOCUMENT_MAX];
    err_t     err;
    size_t    k, n;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);

    for (i = 0; i < 40; i++) {
        assert_int_equal(pipe2(fd, O_CLOEXEC), 0);

        pid = fork();
        assert_true(pid != -1);

        if (pid == 0) {
            write_documents(i, fd[1]);
        }

        (void) close(fd[1]);
        assert_int_equal(read(fd[0], last, sizeof(last)), sizeof(last));

        for (k = 0; k < (size_t) i % 5; k++) {
            (void) check_whole(st);
        }

        (void) usleep((useconds_t) (i * 1931 % 20000));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);

        while (read(fd[0], told, sizeof(told)) == sizeof(told)) {
            memcpy(last, told, sizeof(last));
        }

        (void) close(fd[0]);

        /* one that was told is READY, since only older ones are deleted */

        assert_int_equal(vlm_document_get(st, NULL, S(last), &doc, &err), OK);
        assert_int_equal(doc.state, VLM_DOCUMENT_READY);
        (void) check_whole(st);

        assert_int_equal(rows("SELECT count(*) FROM page p JOIN document d"
                              " ON d.n = p.document WHERE d.state <> 2"), 0);
        assert_int_equal(rows("SELECT count(*) FROM page WHERE document NOT IN"
                              " (SELECT n FROM document)"), 0);
        assert_int_equal(rows("SELECT count(*) FROM content WHERE document NOT IN"
                              " (SELECT n FROM document)"), 0);

        /* all documents become ready, and each row has its file */

        assert_int_equal(vlm_document_recover(st, &err), OK);

        while (vlm_document_take(st, &doc, &err) == OK) {
            assert_int_equal(done(st, &doc, PAGES, CHUNKS, &err), OK);
        }

        assert_int_equal(vlm_document_list(st, S("s"), docs, &n, &err), OK);

        for (k = 0; k < n; k++) {
            char  path[VLM_STORE_PATH];

            assert_int_equal(docs[k].state, VLM_DOCUMENT_READY);
            vlm_document_path(st, docs[k].id, path);
            assert_int_equal(access(path, R_OK), 0);
        }
    }
}


static void *
add_the_same(void *data)
{
    int      i;
    char     session[32], bytes[16];
    doc_t    doc;
    size_t   failed;

    failed = 0;

    for (i = 0; i < 15; i++) {
        (void) snprintf(bytes, sizeof(bytes), "%d", i);
        (void) snprintf(session, sizeof(session), "%lx", (unsigned long) pthread_self());
        failed += add(data, session, bytes, bytes, 0, &doc, NULL) != OK;
    }

    return (void *) failed;
}


static void *
take_all(void *data)
{
    doc_t   doc;
    size_t  n;

    for (n = 0; vlm_document_take(data, &doc, NULL) == OK; n++) {
        if (done(data, &doc, 2, 2, NULL) != OK) {
            return (void *) 1000;
        }
    }

    return (void *) n;
}


static void
threads_add_one_document_once_and_each_is_taken_once(void **state)
{
    int        i;
    void      *n;
    size_t     taken;
    uint64_t   states[4];
    pthread_t  t[6];

    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, add_the_same, *state), 0);
    }

    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(t[i], &n), 0);
        assert_null(n);
    }

    assert_int_equal(vlm_document_count(*state, states, NULL), OK);
    assert_int_equal(states[VLM_DOCUMENT_WAITING], 15);
    assert_int_equal(rows("SELECT count(*) FROM link"), 6 * 15);

    for (i = 0; i < 6; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, take_all, *state), 0);
    }

    for (i = 0, taken = 0; i < 6; i++) {
        assert_int_equal(pthread_join(t[i], &n), 0);
        taken += (size_t) n;
    }

    assert_int_equal(taken, 15);
    assert_int_equal(vlm_document_count(*state, states, NULL), OK);
    assert_int_equal(states[VLM_DOCUMENT_READY], 15);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(kill_9_at_any_point_shows_no_half_document),
        TEST(threads_add_one_document_once_and_each_is_taken_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
