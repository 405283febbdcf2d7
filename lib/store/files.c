
/*
 * Uploads and results: files under the store's directory.
 *
 * A front end uploads its picture again with every message.  The same bytes
 * under the same name are kept once: the database finds a candidate by a
 * hash, and the bytes decide.
 */


#define _GNU_SOURCE

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "store/calls.h"
#include "store/disk.h"


#define PATH            VLM_STORE_PATH

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t       store_t;
typedef vlm_store_text_t  text_t;
typedef vlm_store_err_t   err_t;
typedef vlm_store_file_t  file_t;
typedef vlm_store_upload_t  upload_t;


static int known(store_t *st, const upload_t *up, file_t *file, err_t *err);
static int64_t content_hash(const void *data, size_t bytes, uint64_t salt);
static int is_uploads(store_t *st, const char *dir, size_t len);
static int keep(store_t *st, const char *folder, const void *data,
    size_t bytes, file_t *file, err_t *err);
static int file_named(store_t *st, const char *folder, text_t name,
    file_t *file);


int
vlm_store_upload_add(store_t *st, const void *data, size_t bytes,
    uint64_t salt, text_t name, file_t *file, err_t *err)
{
    int       rc;
    char      id[37], secure[VLM_DISK_SECURE + 1];
    upload_t  up;

    up.hash = content_hash(data, bytes, salt);
    up.data = data;
    up.bytes = bytes;
    up.secure.len = vlm_disk_secure(secure, name.data, name.len);
    up.secure.data = secure;

    rc = known(st, &up, file, err);
    if (rc != NOTFOUND) {
        return rc;
    }

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO,
                           "no random numbers for a file name");
    }

    (void) snprintf(file->name, sizeof(file->name), "%s_%s", id, secure);

    rc = keep(st, "uploads", data, bytes, file, err);
    if (rc != OK) {
        return rc;
    }

    return st->calls->note(st, &up, vlm_store_string(file->name), err);
}


/*
 * The file that this upload equals, or NOTFOUND.  The bytes are compared outside of a transaction,
 * because that may take long.
 */

static int
known(store_t *st, const upload_t *up, file_t *file, err_t *err)
{
    int   rc;
    char  name[VLM_STORE_NAME + 1];

    rc = st->calls->known(st, up, name, err);
    if (rc != OK) {
        return rc;
    }

    if (file_named(st, "uploads", vlm_store_string(name), file) != OK
        || !vlm_disk_same(file->path, up->data, up->bytes))
    {
        return NOTFOUND;
    }

    rc = st->calls->begin(st, err);
    if (rc != OK) {
        return rc;
    }

    /* resets the file's age, and no eviction removes it in between */

    if (utimensat(AT_FDCWD, file->path, NULL, AT_SYMLINK_NOFOLLOW) != 0) {
        rc = NOTFOUND;
    }

    return st->calls->end(st, rc, err);
}


/*
 * FNV-1a over words of eight bytes: it need not resist attackers, since the bytes are compared
 * after it, but must be fast for megabytes of a picture.  The same bytes with two salts never have
 * the same hash, because each step is a bijection.
 */

static int64_t
content_hash(const void *data, size_t bytes, uint64_t salt)
{
    size_t                i;
    uint64_t              h, word;
    const unsigned char  *p;

    p = data;
    h = 14695981039346656037u ^ salt;

    for (i = 0; i < bytes; i += sizeof(word)) {

        word = 0;
        memcpy(&word, p + i, bytes - i < sizeof(word) ? bytes - i
                                                      : sizeof(word));

        h = (h ^ word) * 1099511628211u;
    }

    return (int64_t) h;
}


int
vlm_store_upload_find(store_t *st, text_t image, file_t *file,
    err_t *err)
{
    text_t       name;
    const char  *slash;
    struct stat  sb;

    if (image.data == NULL || image.len == 0 || image.len >= PATH
        || memchr(image.data, '\0', image.len) != NULL)
    {
        goto not_found;
    }

    name = image;
    slash = memrchr(image.data, '/', image.len);

    if (slash != NULL) {
        name.data = slash + 1;
        name.len = image.len - (size_t) (name.data - image.data);

        if (!is_uploads(st, image.data, (size_t) (slash - image.data))) {
            goto not_found;
        }
    }

    if (file_named(st, "uploads", name, file) != OK
        || lstat(file->path, &sb) != 0 || !S_ISREG(sb.st_mode))
    {
        goto not_found;
    }

    return OK;

not_found:

    return vlm_db_fail(err, NOTFOUND, "No such upload");
}


/* Is that our directory, as written in answers to uploads? */

static int
is_uploads(store_t *st, const char *dir, size_t len)
{
    size_t  n;

    n = strlen(st->dir);

    if (len == n + sizeof("/uploads") - 1 && memcmp(dir, st->dir, n) == 0) {
        dir += n;
        len -= n;
    }

    return len == sizeof("/uploads") - 1 && memcmp(dir, "/uploads", len) == 0;
}


int
vlm_store_result_add(store_t *st, const void *data, size_t bytes,
    text_t image, const char *task, file_t *file, err_t *err)
{
    char         id[37], stem[VLM_DISK_SECURE + 1];
    size_t       len;
    const char  *p;

    p = image.len > 0 ? memrchr(image.data, '/', image.len) : NULL;

    if (p != NULL) {
        image.len -= (size_t) (p + 1 - image.data);
        image.data = p + 1;
    }

    /* "<uuid4>_cat.png" was made from "cat" */

    if (image.len >= 37 && image.data[36] == '_') {
        image.data += 37;
        image.len -= 37;
    }

    p = image.len > 0 ? memrchr(image.data, '.', image.len) : NULL;

    if (p != NULL && p != image.data) {
        image.len = (size_t) (p - image.data);
    }

    len = vlm_disk_secure(stem, image.data, image.len);

    if (vlm_disk_uuid(id) != 0) {
        return vlm_db_fail(err, VLM_STORE_EIO,
                           "no random numbers for a file name");
    }

    (void) snprintf(file->name, sizeof(file->name),
                    "%s_%.100s%swith_%.20s_annotated.jpg", id, stem,
                    len == 0 ? "" : "_", task);

    return keep(st, "results", data, bytes, file, err);
}


/* writes file->name into a folder and sets its path */

static int
keep(store_t *st, const char *folder, const void *data, size_t bytes,
    file_t *file, err_t *err)
{
    int     e;
    char    dir[PATH + sizeof("/uploads")];
    text_t  name;

    name.data = file->name;
    name.len = strlen(file->name);

    if (file_named(st, folder, name, file) != OK) {
        return vlm_db_fail(err, VLM_STORE_EIO,
                           "store %.150s: no file name", st->dir);
    }

    (void) snprintf(dir, sizeof(dir), "%s/%s", st->dir, folder);

    e = vlm_disk_write(dir, file->name, data, bytes);

    return e == 0 ? OK : vlm_db_fail_errno(err, e, dir);
}


static int
file_named(store_t *st, const char *folder, text_t name, file_t *file)
{
    int  n;

    if (!vlm_disk_plain(name.data, name.len)) {
        return NOTFOUND;
    }

    memmove(file->name, name.data, name.len);
    file->name[name.len] = '\0';

    n = snprintf(file->path, sizeof(file->path), "%s/%s/%s", st->dir, folder,
                 file->name);

    return n > 0 && (size_t) n < sizeof(file->path) ? OK : NOTFOUND;
}


int
vlm_store_path(const char *dir, vlm_store_folder_t folder,
    text_t name, char path[PATH])
{
    int  n;

    if (!vlm_disk_plain(name.data, name.len)) {
        return NOTFOUND;
    }

    n = snprintf(path, PATH, "%s/%s/%.*s", dir,
                 folder == VLM_STORE_UPLOADS ? "uploads" : "results",
                 (int) name.len, name.data);

    return n > 0 && n < PATH ? OK : NOTFOUND;
}
