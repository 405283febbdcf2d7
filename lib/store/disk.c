
/*
 * Safe names, random ids, files written by rename.  See the header.
 */


#define _GNU_SOURCE

#include "store/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unicode.h"
#include "base/utf8.h"


#define MAX_PATH   4096
#define CHUNK      65536


typedef struct {
    char                     *dst;
    size_t                    len;
    int                       space;       /* white space since the last */
} secure_t;


static void put(secure_t *s, int c);
static int write_whole(int fd, const char *p, size_t bytes);
static int sync_dir(const char *dir);


size_t
vlm_disk_secure(char dst[VLM_DISK_SECURE + 1],
    const char *name, size_t len)
{
    char                    buf[VLM_DISK_SECURE * 2];
    char                   *p;
    size_t                  i, k, n, used;
    secure_t                s;
    uint32_t                c, out[VLM_UNICODE_DECOMPOSED];

    s.dst = buf;
    s.len = 0;
    s.space = 0;

    for (i = 0; i < len; i += used) {

        used = vlm_utf8((const unsigned char *) name + i, len - i, &c);

        if (used == 0) {                   /* invalid UTF-8: dropped */
            used = 1;
            continue;
        }

        n = vlm_unicode_decompose(c, out);

        for (k = 0; k < n; k++) {
            put(&s, (int) out[k]);
        }
    }

    p = buf;

    while (s.len > 0 && (*p == '.' || *p == '_')) {
        p++;
        s.len--;
    }

    while (s.len > 0 && (p[s.len - 1] == '.' || p[s.len - 1] == '_')) {
        s.len--;
    }

    if (s.len > VLM_DISK_SECURE) {
        p += s.len - VLM_DISK_SECURE;
        s.len = VLM_DISK_SECURE;
    }

    memcpy(dst, p, s.len);
    dst[s.len] = '\0';

    return s.len;
}


/*
 * The buffer holds twice the length of a name.  When it is full, its first half is dropped, because
 * only the end of so long a name is kept anyway.
 */

static void
put(secure_t *s, int c)
{
    size_t  half;

    half = VLM_DISK_SECURE;

    /* ASCII white space, as Python's str.split() defines it */

    if (c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f)
        || c == '/')
    {
        s->space = 1;
        return;
    }

    if (c < 0 || c >= 0x80) {
        return;
    }

    if (s->len + 2 > half * 2) {
        memmove(s->dst, s->dst + half, s->len - half);
        s->len -= half;
    }

    /* white space separates words of any ASCII, also of characters that are dropped */

    if (s->space) {
        s->space = 0;
        s->dst[s->len++] = '_';
    }

    if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z')
        || (c >= 'a' && c <= 'z') || c == '_' || c == '.' || c == '-')
    {
        s->dst[s->len++] = (char) c;
    }
}


int
vlm_disk_uuid(char id[37])
{
    size_t         i, n;
    ssize_t        rc;
    unsigned char  b[16];

    static const char  hex[] = "0123456789abcdef";

    do {
        rc = getrandom(b, sizeof(b), 0);
    } while (rc == -1 && errno == EINTR);

    if (rc != (ssize_t) sizeof(b)) {
        return -1;
    }

    b[6] = (unsigned char) ((b[6] & 0x0f) | 0x40);     /* version 4 */
    b[8] = (unsigned char) ((b[8] & 0x3f) | 0x80);     /* variant of RFC 4122 */

    for (i = 0, n = 0; i < sizeof(b); i++) {

        if (i == 4 || i == 6 || i == 8 || i == 10) {
            id[n++] = '-';
        }

        id[n++] = hex[b[i] >> 4];
        id[n++] = hex[b[i] & 0x0f];
    }

    id[n] = '\0';

    return 0;
}


int
vlm_disk_plain(const char *name, size_t len)
{
    return len > 0 && len <= 255 && name[0] != '.'
           && memchr(name, '/', len) == NULL
           && memchr(name, '\0', len) == NULL;
}


int
vlm_disk_write(const char *dir, const char *name, const void *data,
    size_t bytes)
{
    int   fd, rc;
    char  id[37], temp[MAX_PATH], path[MAX_PATH];

    if (vlm_disk_uuid(id) != 0) {
        return EIO;
    }

    if (snprintf(temp, sizeof(temp), "%s/.%s.tmp", dir, id)
        >= (int) sizeof(temp)
        || snprintf(path, sizeof(path), "%s/%s", dir, name)
           >= (int) sizeof(path))
    {
        return ENAMETOOLONG;
    }

    fd = open(temp, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC|O_NOFOLLOW, 0644);
    if (fd == -1) {
        return errno;
    }

    rc = write_whole(fd, data, bytes);

    if (rc == 0 && fsync(fd) != 0) {
        rc = errno;
    }

    if (close(fd) != 0 && rc == 0) {
        rc = errno;
    }

    if (rc == 0 && rename(temp, path) != 0) {
        rc = errno;
    }

    if (rc != 0) {
        (void) unlink(temp);
        return rc;
    }

    return sync_dir(dir);
}


static int
write_whole(int fd, const char *p, size_t bytes)
{
    ssize_t  n;

    while (bytes > 0) {

        n = write(fd, p, bytes);

        if (n == -1) {

            if (errno == EINTR) {
                continue;
            }

            return errno;
        }

        if (n == 0) {
            return EIO;
        }

        p += n;
        bytes -= (size_t) n;
    }

    return 0;
}


/* the name is on disk only after its directory was synced */

static int
sync_dir(const char *dir)
{
    int  fd, rc;

    fd = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    if (fd == -1) {
        return errno;
    }

    rc = fsync(fd) == 0 ? 0 : errno;

    (void) close(fd);

    return rc;
}


int
vlm_disk_same(const char *path, const void *data, size_t bytes)
{
    int          fd, same;
    char         buf[CHUNK];
    size_t       done;
    ssize_t      n;
    struct stat  sb;

    fd = open(path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW|O_NONBLOCK);
    if (fd == -1) {
        return 0;
    }

    same = fstat(fd, &sb) == 0 && S_ISREG(sb.st_mode)
           && (size_t) sb.st_size == bytes;

    for (done = 0; same && done < bytes; done += (size_t) n) {

        n = read(fd, buf, sizeof(buf));

        if (n == -1 && errno == EINTR) {
            n = 0;
            continue;
        }

        same = n > 0 && (size_t) n <= bytes - done
               && memcmp(buf, (const char *) data + done, (size_t) n) == 0;
    }

    (void) close(fd);

    return same;
}
