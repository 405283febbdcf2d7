/*
 * Fuzz target: a quantised cache file.  Its head is made valid, so that its entries are read; every
 * accepted matrix must lie in the file, to the last row.
 */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sha256.h"
#include "format/format.h"
#include "format/panel.h"
#include "load/packed.h"

#define HEAD     96                    /* magic, version, n, flip, bytes, id, check: see packed.c */
#define BYTES    24
#define CHECK    64
#define ENTRY    32
#define N_MOST   64                    /* matrices, so that heads are short */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char           dir[] = "/dev/shm/vlm-packed-XXXXXX";
static char           path[4096];
static int            fd = -1;         /* one file, whose bytes are written again for each input */
static const uint8_t  id[VLM_PACKED_ID];


static void
end(void)
{
    (void) close(fd);
    (void) unlink(path);
    (void) rmdir(dir);
}


static int
begin(void)
{
    vlm_packed_t  p;

    if (mkdtemp(dir) == NULL || vlm_packed_create(&p, dir, dir, VLM_INT8, id, 0, 1, 0, NULL) != 0) {
        return -1;
    }

    strcpy(path, p.path);
    vlm_packed_close(&p);
    fd = open(path, O_RDWR|O_CREAT|O_CLOEXEC, 0600);

    return fd == -1 ? -1 : atexit(end);
}


/* A head for these bytes: of this version and source, of this length, and with its sum. */
static void
mend(uint8_t *file, uint64_t bytes)
{
    uint32_t      n, version = 6;
    vlm_sha256_t  s;

    memcpy(&n, file + 12, sizeof(n));
    n %= N_MOST;

    if (bytes < HEAD + (uint64_t) n * ENTRY) {
        n = 0;
    }

    memset(file, 0, HEAD);
    memcpy(file, "vlm-int8", 8);
    memcpy(file + 8, &version, sizeof(version));
    memcpy(file + 12, &n, sizeof(n));
    memcpy(file + BYTES, &bytes, sizeof(bytes));

    vlm_sha256_start(&s);
    vlm_sha256_add(&s, file, HEAD);
    vlm_sha256_add(&s, file + HEAD, (size_t) n * ENTRY);
    vlm_sha256_end(&s, file + CHECK);
}


static void
read_all(vlm_packed_t *p)
{
    uint32_t        m, i;
    uint64_t        bytes;
    volatile int    sink = 0;
    const uint8_t  *panel;

    for (m = 0; m < p->n; m++) {
        vlm_packed_entry_t  e = p->entry[m];

        if (vlm_packed_begin(p, (vlm_type_t) e.type, e.N, e.K, NULL) != 0) {
            __builtin_trap();
        }

        if ((const uint8_t *) (vlm_packed_factor(p) + e.N) > p->file.data + p->file.bytes) {
            __builtin_trap();
        }

        bytes = vlm_format_of((vlm_type_t) e.type)->panel_bytes(e.K);

        for (i = 0; i < (e.N + VLM_PANEL - 1) / VLM_PANEL && i < 1000; i++) {
            panel = vlm_packed_panel(p, i);
            sink += bytes > 0 ? panel[bytes - 1] : 0;
        }

        if (vlm_packed_end(p, NULL) != 0) {
            return;
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint8_t       *file;
    vlm_packed_t   p;

    if (fd == -1 && begin() != 0) {
        return 0;
    }

    file = malloc(bytes + 1);
    if (file == NULL) {
        return 0;
    }

    memcpy(file, data, bytes);

    if (bytes >= HEAD && data[0] != 0) {
        mend(file, bytes);
    }

    if (pwrite(fd, file, bytes, 0) == (ssize_t) bytes && ftruncate(fd, (off_t) bytes) == 0
        && vlm_packed_open(&p, dir, dir, VLM_INT8, id, NULL) == 0)
    {
        read_all(&p);
        vlm_packed_close(&p);
    }

    free(file);

    return 0;
}
