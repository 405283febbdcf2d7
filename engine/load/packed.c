/* The quantised cache file of a checkpoint: see the header. */

#define _GNU_SOURCE

#include "load/packed.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/size.h"
#include "format/format.h"
#include "format/panel.h"

#define MAGIC      "vlm-int8"
#define VERSION    6                   /* of the file, of the turns, and of the forms */
#define MAX_ROOM   100000              /* matrices: a model of thousands of layers */
#define ALIGN      64
#define WINDOW     (16u << 20)         /* bytes of a write: see write_part() */
#define PREFIX     "vlm-"
#define TEMPORARY  ".making-"

typedef struct {                       /* at 0; then entry_t [n]; then the matrices */
    char      magic[8];
    uint32_t  version, n, flip, unused;
    uint64_t  bytes;                   /* of the whole file */
    uint8_t   id[VLM_PACKED_ID];       /* of the source */
    uint8_t   check[32];               /* SHA-256 of this with zeros here, and of the entries */
} head_t;

/* The model's path, not its content, names the file, so that a changed model has one file only. */
static int
set_path(vlm_packed_t *p, const char *dir, const char *model, vlm_type_t weights,
         const uint8_t *id, vlm_err_t *err)
{
    int      n;
    char     real[PATH_MAX];
    uint8_t  sum[32];

    memset(p, 0, sizeof(*p));
    p->fd = -1;
    memcpy(p->id, id, VLM_PACKED_ID);

    if (realpath(model, real) == NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s", model, strerror(errno));
    }

    vlm_sha256(real, strlen(real), sum);

    n = snprintf(p->path, sizeof(p->path), "%s/" PREFIX "%s-%02x%02x%02x%02x%02x%02x%02x%02x.bin",
                 dir, vlm_weights_name(weights), sum[0], sum[1], sum[2], sum[3], sum[4], sum[5],
                 sum[6], sum[7]);

    if (n < 0 || (size_t) n >= sizeof(p->path)) {
        return vlm_fail(err, VLM_EMODEL, "%.200s...: path longer than %zu bytes", dir,
                        sizeof(p->path) - 1);
    }

    return 0;
}


static void
check_head(const head_t *head, const vlm_packed_entry_t *entry, uint8_t out[32])
{
    head_t        copy;
    vlm_sha256_t  s;

    copy = *head;
    memset(copy.check, 0, sizeof(copy.check));

    vlm_sha256_start(&s);
    vlm_sha256_add(&s, &copy, sizeof(copy));
    vlm_sha256_add(&s, entry, head->n * sizeof(*entry));
    vlm_sha256_end(&s, out);
}


static uint64_t
panel_bytes(const vlm_packed_entry_t *e)
{
    return vlm_format_of(e->type)->panel_bytes(e->K);
}


static uint64_t
panels_bytes(const vlm_packed_entry_t *e)
{
    return vlm_mul(vlm_round(e->N, VLM_PANEL) / VLM_PANEL, panel_bytes(e));
}


/* Bytes of the scales, of what is added to the bias, or of the factors. */
static uint64_t
vector_bytes(uint32_t N)
{
    return vlm_round(vlm_mul(N, sizeof(float)), ALIGN);
}


/* Bytes of a matrix, from its panels to the end of the factors. */
static uint64_t
matrix_bytes(const vlm_packed_entry_t *e)
{
    return vlm_add(panels_bytes(e), vlm_mul(3, vector_bytes(e->N)));
}


/* Checks everything but the matrices themselves; the head is trusted after its sum. */
static int
read_head(vlm_packed_t *p, vlm_err_t *err)
{
    head_t    head;
    uint8_t   check[32];
    uint32_t  i;
    uint64_t  need;

    if (p->file.bytes < sizeof(head)) {
        return vlm_fail(err, VLM_EMODEL, "%s has %" PRIu64 " bytes", p->path, p->file.bytes);
    }

    memcpy(&head, p->file.data, sizeof(head));

    if (memcmp(head.magic, MAGIC, sizeof(head.magic)) != 0 || head.version != VERSION
        || (head.flip != 0 && head.flip != VLM_FLIP))
    {
        return vlm_fail(err, VLM_EMODEL, "%s is of another version", p->path);
    }

    need = vlm_add(sizeof(head), vlm_mul(head.n, sizeof(*p->entry)));

    if (head.n > MAX_ROOM || need > p->file.bytes || head.bytes != p->file.bytes) {
        return vlm_fail(err, VLM_EMODEL, "%s has %" PRIu64 " bytes of %" PRIu64, p->path,
                        p->file.bytes, head.bytes);
    }

    p->entry = malloc(vlm_mul(head.n, sizeof(*p->entry)) + 1);
    if (p->entry == NULL) {
        return vlm_fail(err, VLM_EMODEL, "no memory for %u matrices", head.n);
    }

    memcpy(p->entry, p->file.data + sizeof(head), head.n * sizeof(*p->entry));
    check_head(&head, p->entry, check);

    if (memcmp(check, head.check, sizeof(check)) != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s: its header is damaged", p->path);
    }

    if (memcmp(head.id, p->id, sizeof(head.id)) != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s was made from other weights", p->path);
    }

    for (i = 0; i < head.n; i++) {
        if (!vlm_format_of(p->entry[i].type)->cached
            || p->entry[i].at % ALIGN != 0
            || vlm_add(p->entry[i].at, matrix_bytes(&p->entry[i])) > p->file.bytes)
        {
            return vlm_fail(err, VLM_EMODEL, "%s: matrix %u is not in it", p->path, i);
        }
    }

    p->n = p->room = head.n;
    p->flip = head.flip;

    return 0;
}


int
vlm_packed_open(vlm_packed_t *p, const char *dir, const char *model, vlm_type_t weights,
                const uint8_t *id, vlm_err_t *err)
{
    if (set_path(p, dir, model, weights, id, err) != 0) {
        return -1;
    }

    if (access(p->path, F_OK) != 0 && errno == ENOENT) {
        return vlm_fail(err, VLM_EMODEL, "there is no %s yet", p->path);
    }

    if (vlm_file_open(&p->file, p->path, 0, err) != 0) {
        return -1;
    }

    if (read_head(p, err) != 0) {
        vlm_packed_close(p);
        return -1;
    }

    return 0;
}


/* Removes abandoned temporary files: those whose lock no process holds. */
static void
sweep(const char *dir)
{
    int             fd;
    DIR            *d;
    struct dirent  *e;

    d = opendir(dir);

    while (d != NULL && (e = readdir(d)) != NULL) {

        if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) != 0
            || strstr(e->d_name, TEMPORARY) == NULL)
        {
            continue;
        }

        fd = openat(dirfd(d), e->d_name, O_RDWR|O_NOFOLLOW|O_CLOEXEC);

        if (fd != -1 && flock(fd, LOCK_EX|LOCK_NB) == 0) {
            (void) unlinkat(dirfd(d), e->d_name, 0);
        }

        if (fd != -1) {
            (void) close(fd);
        }
    }

    if (d != NULL) {
        (void) closedir(d);
    }
}


int
vlm_packed_create(vlm_packed_t *p, const char *dir, const char *model, vlm_type_t weights,
                  const uint8_t *id, uint32_t flip, uint32_t room, uint64_t bytes, vlm_err_t *err)
{
    static _Atomic uint32_t  serial;   /* two engines of one process may share a directory */

    if (set_path(p, dir, model, weights, id, err) != 0) {
        return -1;
    }

    sweep(dir);

    (void) snprintf(p->temporary, sizeof(p->temporary), "%s" TEMPORARY "%ld-%u", p->path,
                    (long) getpid(), atomic_fetch_add(&serial, 1));

    p->fd = open(p->temporary, O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0644);

    if (p->fd == -1 || flock(p->fd, LOCK_EX|LOCK_NB) != 0) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s", p->temporary, strerror(errno));
        vlm_packed_close(p);
        return -1;
    }

    p->flip = flip;
    p->room = room;
    p->end = vlm_round(sizeof(head_t) + (uint64_t) room * sizeof(*p->entry), ALIGN);

    /* If a file system cannot reserve room, a write finds that the disk is full. */

    if (fallocate(p->fd, 0, 0, (off_t) vlm_add(p->end, bytes)) != 0
        && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
    {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s, %" PRIu64 " bytes are needed", p->temporary,
                        strerror(errno), vlm_add(p->end, bytes));
        vlm_packed_close(p);
        return -1;
    }

    p->entry = calloc(room, sizeof(*p->entry));
    p->window = calloc(1, WINDOW);

    if (p->entry == NULL || p->window == NULL) {
        vlm_packed_close(p);
        return vlm_fail(err, VLM_EMODEL, "no memory for %u matrices", room);
    }

    return 0;
}


int
vlm_packed_begin(vlm_packed_t *p, vlm_type_t type, uint32_t N, uint32_t K, vlm_err_t *err)
{
    vlm_packed_entry_t  *e;

    if (p->next == p->room) {
        p->failed = -1;
        return vlm_fail(err, VLM_EMODEL, "%s has %u matrices, the model has more", p->path,
                        p->room);
    }

    e = &p->entry[p->next];
    p->sum = 0;

    if (p->fd != -1) {
        e->at = p->end;
        e->N = N;
        e->K = K;
        e->type = type;
        p->end = vlm_add(p->end, matrix_bytes(e));
        return 0;
    }

    if (vlm_file_whole(&p->file, p->path, err) != 0) {
        p->failed = -1;
        return -1;
    }

    if (e->N != N || e->K != K || e->type != (uint32_t) type) {
        p->failed = -1;
        return vlm_fail(err, VLM_EMODEL, "%s: matrix %u is %s [%u, %u], the model has %s "
                        "[%u, %u]", p->path, p->next, vlm_weights_name(e->type), e->N, e->K,
                        vlm_weights_name(type), N, K);
    }

    return 0;
}


static inline void
add_words(uint64_t *s, const uint8_t *from)
{
    uint64_t  w[4];

    memcpy(w, from, sizeof(w));

    s[0] = (s[0] ^ w[0]) * 0x9e3779b97f4a7c15;
    s[1] = (s[1] ^ w[1]) * 0xc2b2ae3d27d4eb4f;
    s[2] = (s[2] ^ w[2]) * 0x165667b19e3779f9;
    s[3] = (s[3] ^ w[3]) * 0x27d4eb2f165667c5;

    s[0] ^= s[0] >> 29;
    s[1] ^= s[1] >> 31;
    s[2] ^= s[2] >> 27;
    s[3] ^= s[3] >> 33;
}


/*
 * A fast sum rather than a strong one: it detects faults of disks and crashes, four words at a
 * time.
 */
static uint64_t
sum_bytes(const void *data, uint64_t bytes, uint64_t seed)
{
    uint8_t         last[32];
    uint64_t        s[4] = { seed ^ bytes, seed + 1, seed + 2, seed + 3 };
    const uint8_t  *at = data;

    for ( /* void */ ; bytes >= sizeof(last); at += sizeof(last), bytes -= sizeof(last)) {
        add_words(s, at);
    }

    if (bytes > 0) {
        memset(last, 0, sizeof(last));
        memcpy(last, at, bytes);
        add_words(s, last);
    }

    return (s[0] + s[1] * 3) ^ (s[2] * 5 + s[3] * 7);
}


void *
vlm_packed_panels(const vlm_packed_t *p)
{
    return (void *) (p->file.data + p->entry[p->next].at);
}


float *
vlm_packed_scale(const vlm_packed_t *p)
{
    const vlm_packed_entry_t  *e = &p->entry[p->next];

    return (float *) (p->file.data + e->at + panels_bytes(e));
}


const float *
vlm_packed_offset(const vlm_packed_t *p)
{
    return vlm_packed_scale(p) + vector_bytes(p->entry[p->next].N) / sizeof(float);
}


const float *
vlm_packed_factor(const vlm_packed_t *p)
{
    return vlm_packed_offset(p) + vector_bytes(p->entry[p->next].N) / sizeof(float);
}


const void *
vlm_packed_panel(vlm_packed_t *p, uint32_t i)
{
    uint64_t        bytes;
    const uint8_t  *panel;

    bytes = panel_bytes(&p->entry[p->next]);
    panel = (const uint8_t *) vlm_packed_panels(p) + i * bytes;

    /* Panels come from several threads in any order, so their sums are added up. */

    (void) atomic_fetch_add(&p->sum, sum_bytes(panel, bytes, i));

    return panel;
}


static uint64_t
sum_scale(const vlm_packed_entry_t *e, const float *scale, const float *offset,
          const float *factor)
{
    return sum_bytes(scale, e->N * sizeof(float), ~(uint64_t) 0)
           + sum_bytes(offset, e->N * sizeof(float), ~(uint64_t) 1)
           + sum_bytes(factor, e->N * sizeof(float), ~(uint64_t) 2);
}


static int
write_all(int fd, const void *data, uint64_t bytes, uint64_t at)
{
    ssize_t         n;
    const uint8_t  *from = data;

    while (bytes > 0) {
        n = pwrite(fd, from, bytes, (off_t) at);

        if (n == -1 && errno == EINTR) {
            continue;
        }

        if (n <= 0) {
            return n == 0 ? ENOSPC : errno;
        }

        from += n;
        at += (uint64_t) n;
        bytes -= (uint64_t) n;
    }

    return 0;
}


static void
write_window(vlm_packed_t *p, uint64_t bytes)
{
    if (p->failed == 0) {
        p->failed = write_all(p->fd, p->window, bytes, p->window_at);
    }

    memset(p->window, 0, WINDOW);
    p->window_at += WINDOW;
}


/*
 * Offsets only grow.  Bytes are gathered and written in large pieces at multiples of them, so that
 * the system can keep each in large pages, which all mappings of the file then have.
 */
static void
write_part(vlm_packed_t *p, const void *data, uint64_t bytes, uint64_t at)
{
    uint64_t        n;
    const uint8_t  *from = data;

    while (bytes > 0) {
        while (at >= p->window_at + WINDOW) {
            write_window(p, WINDOW);
        }

        n = p->window_at + WINDOW - at;
        n = n < bytes ? n : bytes;
        memcpy(p->window + (at - p->window_at), from, n);

        from += n;
        at += n;
        bytes -= n;
    }
}


void
vlm_packed_add(vlm_packed_t *p, uint32_t first, uint32_t n, const void *panels)
{
    uint32_t                   i;
    uint64_t                   bytes;
    const vlm_packed_entry_t  *e = &p->entry[p->next];

    bytes = panel_bytes(e);
    write_part(p, panels, n * bytes, e->at + first * bytes);

    for (i = 0; i < n; i++) {
        p->sum += sum_bytes((const uint8_t *) panels + i * bytes, bytes, first + i);
    }
}


void
vlm_packed_add_scale(vlm_packed_t *p, const float *scale, const float *offset,
                     const float *factor)
{
    uint64_t                   at;
    const vlm_packed_entry_t  *e = &p->entry[p->next];

    at = e->at + panels_bytes(e);
    write_part(p, scale, e->N * sizeof(float), at);
    write_part(p, offset, e->N * sizeof(float), at + vector_bytes(e->N));
    write_part(p, factor, e->N * sizeof(float), at + 2 * vector_bytes(e->N));
    p->sum += sum_scale(e, scale, offset, factor);
}


int
vlm_packed_end(vlm_packed_t *p, vlm_err_t *err)
{
    vlm_packed_entry_t  *e = &p->entry[p->next];

    if (p->fd != -1) {
        e->sum = p->sum;
        p->n = ++p->next;
        return 0;
    }

    if (e->sum != p->sum + sum_scale(e, vlm_packed_scale(p), vlm_packed_offset(p),
                                     vlm_packed_factor(p)))
    {
        p->failed = -1;
        return vlm_fail(err, VLM_EMODEL, "%s is damaged in matrix %u of %u", p->path, p->next,
                        p->n);
    }

    p->next++;

    return 0;
}


void
vlm_packed_done(const vlm_packed_t *p)
{
    const vlm_packed_entry_t  *e = &p->entry[p->next - 1];

    vlm_file_done(&p->file, e->at, matrix_bytes(e));
}


int
vlm_packed_finish(vlm_packed_t *p, vlm_err_t *err)
{
    int     rc;
    head_t  head;

    memset(&head, 0, sizeof(head));
    memcpy(head.magic, MAGIC, sizeof(head.magic));
    memcpy(head.id, p->id, sizeof(head.id));
    head.version = VERSION;
    head.n = p->n;
    head.flip = p->flip;
    head.bytes = p->end;
    check_head(&head, p->entry, head.check);

    if (p->end > p->window_at) {
        write_window(p, p->end - p->window_at);
    }

    rc = p->failed;

    if (rc == 0) {
        rc = write_all(p->fd, p->entry, p->n * sizeof(*p->entry), sizeof(head));
    }

    if (rc == 0) {
        rc = ftruncate(p->fd, (off_t) p->end) == 0 ? 0 : errno;
    }

    /* The write to the disk is not awaited: the sums detect a file torn by a crash. */

    if (rc == 0) {
        rc = write_all(p->fd, &head, sizeof(head), 0);
    }

    if (rc == 0) {
        rc = rename(p->temporary, p->path) == 0 ? 0 : errno;
    }

    if (rc != 0) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s", p->temporary, strerror(rc));
        vlm_packed_close(p);
        return -1;
    }

    p->temporary[0] = '\0';
    vlm_packed_close(p);

    return 0;
}


void
vlm_packed_close(vlm_packed_t *p)
{
    if (p->fd != -1 && p->temporary[0] != '\0') {
        (void) unlink(p->temporary);
    }

    if (p->fd != -1) {
        (void) close(p->fd);
        p->fd = -1;
    }

    vlm_file_close(&p->file);
    free(p->entry);
    free(p->window);
    p->entry = NULL;
    p->window = NULL;
    p->stays = 0;
    p->n = p->room = p->next = 0;
}
