
/*
 * Rows of documents that the store has not written: any type and any bytes in any column.  A row
 * is refused, or every byte that is loaded from it is valid; and a sweep removes it.
 */


#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#include <sqlite3.h>

#include "store/documents.h"
#include "store/documents_fixture.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static char          dir[] = "/dev/shm/vlm-store-XXXXXX";
static vlm_store_t  *store;
static sqlite3      *db;
static doc_t         doc;

static const char *const  columns[] = {
    "UPDATE page SET width = ?1", "UPDATE page SET height = ?1", "UPDATE page SET flags = ?1",
    "UPDATE page SET text = ?1", "UPDATE page SET words = ?1",
    "UPDATE content SET chunks = ?1", "UPDATE content SET terms = ?1",
    "UPDATE vector SET dim = ?1", "UPDATE vector SET vectors = ?1",
    "UPDATE document SET id = ?1", "UPDATE document SET title = ?1",
    "UPDATE document SET error = ?1", "UPDATE document SET state = ?1",
    "UPDATE document SET bytes = ?1", "UPDATE document SET rows = ?1",
    "UPDATE document SET pages = ?1", "UPDATE document SET to_read = ?1",
    "UPDATE document SET read = ?1", "UPDATE document SET scans = ?1",
    "UPDATE document SET chunks = ?1", "UPDATE document SET attempt = ?1",
    "UPDATE document SET used = ?1", "UPDATE link SET name = ?1", "UPDATE link SET added = ?1"
};

#define COLUMNS  (sizeof(columns) / sizeof(columns[0]))


static void
end(void)
{
    char  command[64];

    (void) snprintf(command, sizeof(command), "rm -rf %s", dir);

    if (system(command) != 0) {
        abort();
    }
}


/* one document with two pages, as the store writes it */

static void
fresh(void)
{
    static unsigned  n;

    char  name[32];

    (void) snprintf(name, sizeof(name), "%u", n++);

    if (sqlite3_exec(db, "DELETE FROM document", NULL, NULL, NULL) != SQLITE_OK
        || add(store, "s", name, name, 0, &doc, NULL) != VLM_STORE_OK
        || vlm_document_take(store, &doc, NULL) != VLM_STORE_OK
        || done(store, &doc, 2, 2, NULL) != VLM_STORE_OK
        || vlm_document_vectors(store, vlm_store_string(doc.id), 1,
                                (const int8_t *) "\1\2\3\4\5\6\7\10", 4, 2, NULL)
           != VLM_STORE_OK)
    {
        abort();
    }
}


static int
begin(void)
{
    char  path[128];

    if (mkdtemp(dir) == NULL
        || atexit(end) != 0
        || vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, NULL) != VLM_STORE_OK
        || (store = vlm_store_open(dir)) == NULL
        || vlm_store_session_ensure(store, vlm_store_string("s"), NULL) != VLM_STORE_OK)
    {
        return -1;
    }

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);

    return sqlite3_open(path, &db) == SQLITE_OK
           && sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) == SQLITE_OK
           ? 0 : -1;
}


/* the document's folder, if the sweep did not find it under its damaged id */

static void
leave(void)
{
    char  path[VLM_STORE_PATH];

    vlm_document_path(store, doc.id, path);
    (void) unlink(path);
    *strrchr(path, '/') = '\0';
    (void) rmdir(path);
}


static void
set_column(const char *sql, unsigned kind, const uint8_t *data, size_t bytes)
{
    double         x;
    int64_t        n;
    sqlite3_stmt  *stmt;

    if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK) {
        abort();
    }

    n = 0;
    memcpy(&n, data, bytes < sizeof(n) ? bytes : sizeof(n));
    memcpy(&x, &n, sizeof(x));

    switch (kind % 4) {
    case 0:
        (void) sqlite3_bind_blob(stmt, 1, data, (int) bytes, SQLITE_STATIC);
        break;
    case 1:
        (void) sqlite3_bind_text(stmt, 1, (const char *) data, (int) bytes, SQLITE_STATIC);
        break;
    case 2:
        (void) sqlite3_bind_int64(stmt, 1, n);
        break;
    default:
        (void) sqlite3_bind_double(stmt, 1, x);
    }

    (void) sqlite3_step(stmt);             /* NOT NULL may refuse it */
    (void) sqlite3_finalize(stmt);
}


/* walks through all that a search and its answer would use */

static void
use(const set_t *set, const page_t *page)
{
    size_t              i, k;
    volatile unsigned   sink;
    vlm_store_text_t    text;

    for (i = 0, sink = 0; i < set->n; i++) {
        if (set->chunks[i].document >= set->n_docs) {
            abort();
        }

        for (k = 0; k < set->terms[i].n; k++) {
            sink += set->terms[i].terms[k].hash;
        }

        for (k = 0; set->chunks[i].vector && k < set->dim; k++) {
            sink += (unsigned) set->chunks[i].vector[k];
        }

        if (page->memory && vlm_document_text(page, &set->chunks[i], &text) == 0) {
            for (k = 0; k < text.len; k++) {
                sink += (unsigned char) text.data[k];
            }
        }
    }

    for (i = 0; i < page->n_words; i++) {
        for (k = 0; k < page->words[i].bytes; k++) {
            sink += (unsigned char) page->text[page->words[i].first + k];
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    set_t               set;
    page_t              page;
    size_t              n;
    vlm_store_swept_t   swept;

    if (store == NULL && begin() != 0) {
        return 0;
    }

    fresh();

    while (bytes > 2) {
        n = data[1] < bytes - 2 ? data[1] : bytes - 2;
        set_column(columns[data[0] % COLUMNS], data[0] / COLUMNS, data + 2, n);
        data += 2 + n;
        bytes -= 2 + n;
    }

    memset(&page, 0, sizeof(page));
    memset(&set, 0, sizeof(set));

    (void) vlm_document_page(store, vlm_store_string(doc.id), 1, &page, NULL);
    (void) vlm_document_chunks(store, vlm_store_string("s"), NULL, 0, 1, &set, NULL);

    use(&set, &page);

    vlm_document_page_free(&page);
    vlm_document_set_free(&set);

    if (vlm_store_sweep(store, 1, 1, &swept, NULL) != VLM_STORE_OK) {
        abort();
    }

    leave();

    return 0;
}
