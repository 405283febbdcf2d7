
/*
 * Eviction of documents.  A document goes as a whole: its rows in one commit, then its folder.  Its
 * last use is its own or that of a session that has it.  Folders without a row, which a crash
 * leaves, go as well.
 */


#define _GNU_SOURCE

#include "store/document.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>


#define BATCH           16                 /* documents of a transaction */
#define LIST            256                /* rows read at a time */

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t               store_t;
typedef vlm_store_err_t           err_t;
typedef vlm_store_swept_t         swept_t;
typedef vlm_document_unused_t     unused_t;
typedef vlm_document_eviction_t   eviction_t;


/* the next row of DOCUMENT_UNUSED */

static int
unused_row(store_t *st, unused_t *u, err_t *err)
{
    int               rc;
    int64_t           bytes;
    vlm_db_stmt_t     get;
    vlm_store_text_t  id;

    get = VLM_DB_DOCUMENT_UNUSED;

    rc = vlm_db_row(st->db, get, err);
    if (rc != OK) {
        return rc;
    }

    memset(u, 0, sizeof(*u));

    u->n = vlm_db_col_int(st->db, get, 0);
    id = vlm_db_col_text(st->db, get, 1);
    u->busy = vlm_db_col_int(st->db, get, 2) < VLM_DOCUMENT_READY;
    bytes = vlm_db_col_int(st->db, get, 3);
    u->used = vlm_db_col_int(st->db, get, 4);
    u->linked = vlm_db_col_int(st->db, get, 5) != 0;

    u->bytes = bytes > 0 && bytes < INT64_MAX / 2 ? (uint64_t) bytes : 0;

    if (u->used < 0 || u->used > INT64_MAX / 1000) {       /* as ns it would not fit */
        u->used = 0;
    }

    /* a damaged id has no folder, and its row can go */

    if (id.data != NULL && vlm_document_is_id(id.data, id.len)) {
        memcpy(u->id, id.data, id.len);
    }

    return OK;
}


static int
list_rows(store_t *st, unused_t *list, size_t max, int64_t after, size_t *n, err_t *err)
{
    int  rc;

    *n = 0;

    rc = vlm_db_enter(st->db, VLM_DB_READ, err);
    if (rc != OK) {
        return rc;
    }

    vlm_db_int(st->db, VLM_DB_DOCUMENT_UNUSED, 1, after);
    vlm_db_int(st->db, VLM_DB_DOCUMENT_UNUSED, 2, (int64_t) max);

    do {
        rc = unused_row(st, &list[*n], err);
        *n += rc == OK;
    } while (rc == OK && *n < max);

    vlm_db_end(st->db, VLM_DB_DOCUMENT_UNUSED);

    return vlm_db_leave(st->db, rc == NOTFOUND ? OK : rc, err);
}


int
vlm_document_unused(store_t *st, unused_t **list, size_t *n, err_t *err)
{
    int        rc;
    size_t     i, found;
    int64_t    after;
    unused_t  *more;

    *list = NULL;
    *n = 0;
    after = INT64_MIN;

    do {
        more = realloc(*list, (*n + LIST) * sizeof(**list));

        if (more == NULL) {
            return vlm_db_fail(err, VLM_STORE_EIO, "no memory for a list of documents");
        }

        *list = more;

        rc = list_rows(st, more + *n, LIST, after, &found, err);

        for (i = 0; i < found; i++, (*n)++) {
            after = more[*n].n;
            more[*n].bytes += vlm_document_folder_bytes(st, more[*n].id);
        }

    } while (rc == OK && found == LIST);

    return rc;
}


static int
goes(const eviction_t *ev, const unused_t *u)
{
    return (!u->linked && u->used < ev->age) || (!u->busy && u->used < ev->full);
}


/* Removes the rows of those that still go: they may have been used since they were listed. */

static int
drop_rows(store_t *st, const eviction_t *ev, unused_t **gone, size_t n, err_t *err)
{
    int       rc;
    size_t    i;
    unused_t  now;

    rc = vlm_db_enter(st->db, VLM_DB_WRITE, err);
    if (rc != OK) {
        return rc;
    }

    for (i = 0; i < n && rc == OK; i++) {
        vlm_db_int(st->db, VLM_DB_DOCUMENT_UNUSED, 1, gone[i]->n - 1);
        vlm_db_int(st->db, VLM_DB_DOCUMENT_UNUSED, 2, 1);

        rc = unused_row(st, &now, err);

        if (rc == OK) {
            vlm_db_end(st->db, VLM_DB_DOCUMENT_UNUSED);
        }

        if (rc == NOTFOUND || (rc == OK && (now.n != gone[i]->n || !goes(ev, &now)))) {
            gone[i] = NULL;
            rc = OK;
            continue;
        }

        if (rc == OK) {
            vlm_db_int(st->db, VLM_DB_DOCUMENT_DROP, 1, now.n);
            rc = vlm_db_run(st->db, VLM_DB_DOCUMENT_DROP, err);
        }
    }

    return vlm_db_leave(st->db, rc, err);
}


static int
drop(store_t *st, const eviction_t *ev, unused_t **gone, size_t n, swept_t *swept, err_t *err)
{
    int     rc;
    size_t  i;

    rc = drop_rows(st, ev, gone, n, err);

    for (i = 0; i < n && rc == OK; i++) {
        if (gone[i] == NULL) {
            continue;
        }

        if (gone[i]->id[0] != '\0') {
            vlm_document_remove(st, gone[i]->id);
        }

        swept->documents++;
        swept->bytes += gone[i]->bytes;
        swept->left -= gone[i]->bytes < swept->left ? gone[i]->bytes : swept->left;
    }

    return rc;
}


int
vlm_document_evict(store_t *st, const eviction_t *ev, unused_t *list, size_t n, swept_t *swept,
    err_t *err)
{
    int        rc;
    size_t     i, k;
    unused_t  *gone[BATCH];

    for (i = k = 0, rc = OK; i < n && rc == OK; i++) {
        if (goes(ev, &list[i])) {
            gone[k++] = &list[i];
        }

        if (k == BATCH) {
            rc = drop(st, ev, gone, k, swept, err);
            k = 0;
        }
    }

    return rc == OK && k > 0 ? drop(st, ev, gone, k, swept, err) : rc;
}


/* A folder is there before its row, so a new one may get a row yet. */

int
vlm_document_orphans(store_t *st, int64_t before, err_t *err)
{
    int             rc;
    DIR            *d;
    char            path[VLM_STORE_PATH];
    struct stat     sb;
    struct dirent  *e;
    vlm_document_t  doc;

    vlm_document_root(st, path);

    d = opendir(path);
    if (d == NULL) {
        return errno == ENOENT ? OK : vlm_db_fail_errno(err, errno, path);
    }

    rc = OK;

    while (rc == OK && (e = readdir(d)) != NULL) {

        if (!vlm_document_is_id(e->d_name, strlen(e->d_name))
            || fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) != 0
            || !S_ISDIR(sb.st_mode) || (int64_t) sb.st_mtim.tv_sec * 1000000 >= before)
        {
            continue;
        }

        rc = vlm_document_get(st, NULL, vlm_store_string(e->d_name), &doc, err);

        if (rc == NOTFOUND) {
            vlm_document_remove(st, e->d_name);
            rc = OK;

        } else if (rc == VLM_STORE_ECORRUPT) {
            rc = OK;
        }
    }

    (void) closedir(d);

    return rc;
}
