
/*
 * Evicts from the store: sessions, files and documents unused for long, and the oldest files and
 * documents when there are too many bytes of them.
 *
 * A file's age is that of its last upload.  Files are removed in batches, each within a
 * transaction, so that an upload of the same bytes either finds its file and resets its age, or
 * does not find it.
 */


#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/calls.h"
#include "store/document.h"


#define BATCH           64                 /* sessions, files */
#define BATCHES         100                /* of each in a call: a second */
#define NS              1000000000
#define GRACE           (VLM_STORE_GRACE * (int64_t) NS)
#define TEMP            (3600 * (int64_t) NS)  /* half-written, by a crash */

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t        store_t;
typedef vlm_store_err_t    err_t;
typedef vlm_store_swept_t  swept_t;


typedef struct {
    int64_t                       time;        /* ns since 1970 */
    uint64_t                      bytes;
} file_t;


/* all files of the store, for the sum and the oldest */

typedef struct {
    file_t                       *files;
    size_t                        n;
    size_t                        size;
    uint64_t                      bytes;
} list_t;


typedef struct {
    store_t                      *st;
    swept_t                      *swept;
    int64_t                       now;         /* ns since 1970 */
    int64_t                       before;      /* files of before this go */
    int64_t                       used;        /* us: sessions used since then
                                                  keep their picture */
    unsigned                      batches;     /* of files, done */
} sweep_t;


static const char *const  folders[] = { "uploads", "results" };


static int sweep_sessions(store_t *st, int64_t before, swept_t *swept,
    err_t *err);
static int sweep_documents(sweep_t *sw, vlm_document_eviction_t *ev,
    vlm_document_unused_t *docs, size_t n, err_t *err);
static int list_documents(store_t *st, list_t *list,
    vlm_document_unused_t **docs, size_t *n, err_t *err);
static int list_folder(list_t *list, const char *path, err_t *err);
static int list_add(list_t *list, const file_t *f, err_t *err);
static int64_t newest_to_evict(list_t *list, uint64_t bytes);
static int by_time(const void *one, const void *two);
static int sweep_folder(sweep_t *sw, const char *path, err_t *err);
static int sweep_files(sweep_t *sw, DIR *d, char name[][256], size_t n,
    err_t *err);
static int file_of(DIR *d, const char *name, file_t *f);
static DIR *open_folder(const char *path, err_t *err);


int
vlm_store_sweep(store_t *st, int64_t age, uint64_t bytes,
    swept_t *swept, err_t *err)
{
    int              rc;
    char             path[VLM_STORE_PATH + sizeof("/uploads")];
    list_t           list;
    size_t           i, n;
    int64_t          full;
    sweep_t          sw;
    struct timespec  ts;

    vlm_document_unused_t    *docs;
    vlm_document_eviction_t   ev;

    memset(swept, 0, sizeof(swept_t));
    memset(&list, 0, sizeof(list_t));
    memset(&sw, 0, sizeof(sweep_t));
    memset(&ev, 0, sizeof(ev));
    docs = NULL;
    n = 0;

    (void) clock_gettime(CLOCK_REALTIME, &ts);

    sw.st = st;
    sw.swept = swept;
    sw.now = (int64_t) ts.tv_sec * NS + ts.tv_nsec;

    rc = OK;

    if (age > 0 && age < ts.tv_sec) {
        sw.before = sw.now - age * NS;
        ev.age = sw.before / 1000;
        rc = sweep_sessions(st, sw.before / 1000, swept, err);
    }

    for (i = 0; i < 2 && rc == OK; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", st->dir, folders[i]);
        rc = list_folder(&list, path, err);
    }

    if (rc == OK && st->db != NULL) {
        rc = list_documents(st, &list, &docs, &n, err);
    }

    swept->left = list.bytes;

    if (rc == OK && bytes > 0 && list.bytes > bytes) {

        full = newest_to_evict(&list, bytes) + 1;
        ev.full = full / 1000 + 1;

        if (full > sw.before) {
            sw.before = full;
            sw.used = ((int64_t) ts.tv_sec - VLM_STORE_IN_USE) * 1000000;
        }
    }

    free(list.files);

    if (sw.before > sw.now - GRACE) {
        sw.before = sw.now - GRACE;
    }

    for (i = 0; i < 2 && rc == OK; i++) {
        (void) snprintf(path, sizeof(path), "%s/%s", st->dir, folders[i]);
        rc = sweep_folder(&sw, path, err);
    }

    if (rc == OK && st->db != NULL) {
        rc = sweep_documents(&sw, &ev, docs, n, err);
    }

    free(docs);

    return rc;
}


static int
sweep_documents(sweep_t *sw, vlm_document_eviction_t *ev,
    vlm_document_unused_t *docs, size_t n, err_t *err)
{
    int      rc;
    int64_t  recent;

    recent = (sw->now - GRACE) / 1000;
    ev->age = ev->age > recent ? recent : ev->age;
    ev->full = ev->full > recent ? recent : ev->full;

    rc = vlm_document_evict(sw->st, ev, docs, n, sw->swept, err);

    return rc == OK ? vlm_document_orphans(sw->st, recent, err) : rc;
}


/* documents are files whose time is that of their last use */

static int
list_documents(store_t *st, list_t *list, vlm_document_unused_t **docs,
    size_t *n, err_t *err)
{
    int     rc;
    file_t  f;
    size_t  i;

    rc = vlm_document_unused(st, docs, n, err);

    for (i = 0; i < *n && rc == OK; i++) {
        f.time = (*docs)[i].used * 1000;
        f.bytes = (*docs)[i].bytes;
        rc = list_add(list, &f, err);
    }

    return rc;
}


static int
sweep_sessions(store_t *st, int64_t before, swept_t *swept, err_t *err)
{
    int       rc;
    uint64_t  n;
    unsigned  batches;

    batches = 0;

    do {
        n = 0;

        if (batches++ == BATCHES) {
            swept->more = 1;
            return OK;
        }

        rc = st->calls->expire(st, before, &n, err);

        swept->sessions += n;

    } while (rc == OK && n > 0);

    return rc;
}


static int
list_folder(list_t *list, const char *path, err_t *err)
{
    DIR            *d;
    int             rc;
    file_t          f;
    struct dirent  *e;

    d = open_folder(path, err);
    if (d == NULL) {
        return err == NULL ? VLM_STORE_EIO : (int) err->code;
    }

    rc = OK;

    while (rc == OK && (e = readdir(d)) != NULL) {

        if (e->d_name[0] == '.' || file_of(d, e->d_name, &f) != 0) {
            continue;
        }

        rc = list_add(list, &f, err);
    }

    (void) closedir(d);

    return rc;
}


static int
list_add(list_t *list, const file_t *f, err_t *err)
{
    file_t  *files;

    if (list->n == list->size) {
        list->size = list->size == 0 ? 256 : list->size * 2;

        files = realloc(list->files, list->size * sizeof(file_t));

        if (files == NULL) {
            return vlm_db_fail(err, VLM_STORE_EIO,
                               "no memory for a list of %zu"
                               " files", list->size);
        }

        list->files = files;
    }

    list->files[list->n++] = *f;
    list->bytes += f->bytes;

    return OK;
}


/* the time before which files must be removed, so that the rest fits */

static int64_t
newest_to_evict(list_t *list, uint64_t bytes)
{
    size_t    i;
    uint64_t  left;

    qsort(list->files, list->n, sizeof(file_t), by_time);

    left = list->bytes;

    for (i = 0; i < list->n; i++) {
        left -= list->files[i].bytes;

        if (left <= bytes) {
            return list->files[i].time;
        }
    }

    return 0;
}


static int
by_time(const void *one, const void *two)
{
    const file_t  *a, *b;

    a = one;
    b = two;

    return a->time < b->time ? -1 : a->time > b->time;
}


static int
sweep_folder(sweep_t *sw, const char *path, err_t *err)
{
    int             rc;
    DIR            *d;
    char            name[BATCH][256];
    file_t          f;
    size_t          n;
    struct dirent  *e;

    d = open_folder(path, err);
    if (d == NULL) {
        return err == NULL ? VLM_STORE_EIO : (int) err->code;
    }

    n = 0;
    rc = OK;

    while (rc == OK && (e = readdir(d)) != NULL) {

        if (file_of(d, e->d_name, &f) != 0) {
            continue;
        }

        if (e->d_name[0] == '.') {

            if (f.time < sw->now - TEMP) {
                (void) unlinkat(dirfd(d), e->d_name, 0);
            }

            continue;
        }

        if (f.time >= sw->before) {
            continue;
        }

        memcpy(name[n++], e->d_name, strlen(e->d_name) + 1);

        if (n == BATCH) {

            if (sw->batches++ == BATCHES) {
                sw->swept->more = 1;
                n = 0;
                break;
            }

            rc = sweep_files(sw, d, name, n, err);
            n = 0;
        }
    }

    if (rc == OK && n > 0) {
        rc = sweep_files(sw, d, name, n, err);
    }

    (void) closedir(d);

    return rc;
}


static int
sweep_files(sweep_t *sw, DIR *d, char name[][256], size_t n, err_t *err)
{
    int                         rc;
    file_t                      f;
    size_t                      i;
    vlm_store_t                *st;
    vlm_store_text_t            text;

    st = sw->st;

    rc = st->calls->begin(st, err);
    if (rc != OK) {
        return rc;
    }

    for (i = 0; i < n && rc == OK; i++) {

        /* the file may have been uploaded again since it was listed */

        if (file_of(d, name[i], &f) != 0 || f.time >= sw->before) {
            continue;
        }

        text = vlm_store_string(name[i]);

        rc = st->calls->shows(st, text, sw->used, err);

        if (rc == OK) {
            continue;
        }

        if (rc != NOTFOUND) {
            break;
        }

        rc = st->calls->forget(st, text, err);

        if (rc == OK && unlinkat(dirfd(d), name[i], 0) == 0) {
            sw->swept->files++;
            sw->swept->bytes += f.bytes;
            sw->swept->left -= f.bytes < sw->swept->left ? f.bytes
                                                         : sw->swept->left;
        }
    }

    return st->calls->end(st, rc, err);
}


/* 0, or -1: missing, or not a regular file */

static int
file_of(DIR *d, const char *name, file_t *f)
{
    struct stat  sb;

    if (fstatat(dirfd(d), name, &sb, AT_SYMLINK_NOFOLLOW) != 0
        || !S_ISREG(sb.st_mode))
    {
        return -1;
    }

    f->time = (int64_t) sb.st_mtim.tv_sec * NS + sb.st_mtim.tv_nsec;
    f->bytes = (uint64_t) sb.st_size;

    return 0;
}


static DIR *
open_folder(const char *path, err_t *err)
{
    DIR  *d;

    d = opendir(path);

    if (d == NULL) {
        (void) vlm_db_fail_errno(err, errno, path);
    }

    return d;
}
