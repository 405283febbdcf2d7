/* Mapped files: a file that is not regular, too long or missing gives a sentence with the path. */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"

#define PAGES      5
#define HUGE_PAGE  (2u << 20)          /* bytes */
#define LARGE      (5 * HUGE_PAGE + 4099)
#define HALF       (2 * HUGE_PAGE)

static char  dir[] = "/tmp/vlm-file-XXXXXX";
static char  path[64];


static void
write_file(const void *data, size_t bytes)
{
    FILE  *f;

    f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}


static void
rewrite(size_t at, int byte)
{
    FILE  *f;

    f = fopen(path, "r+b");
    assert_non_null(f);
    assert_int_equal(fseek(f, (long) at, SEEK_SET), 0);
    assert_int_equal(fputc(byte & 0xff, f), byte & 0xff);
    assert_int_equal(fclose(f), 0);
}


static int
set_up(void **state)
{
    (void) state;

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/f", dir);

    return 0;
}


static int
tear_down(void **state)
{
    (void) state;

    unlink(path);

    return rmdir(dir);
}


static void
a_file_is_its_bytes(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("seven77", 7);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal(f.bytes, 7);
    assert_memory_equal(f.data, "seven77", 7);

    vlm_file_close(&f);
    assert_null(f.data);
    vlm_file_close(&f);
}


static void
an_empty_file_has_no_address(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("", 0);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_null(f.data);
    assert_int_equal(f.bytes, 0);
    vlm_file_done(&f, 0, 0);
    vlm_file_close(&f);
}


static void
a_file_of_the_limit_is_taken_and_one_byte_more_is_not(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_open(&f, path, 8, &err), 0);
    vlm_file_close(&f);

    assert_int_equal(vlm_file_open(&f, path, 7, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "8 bytes, at most 7"));
    assert_non_null(strstr(err.text, path));
    assert_null(f.data);
}


/* In place of the system's: before each read of the tested code, cuts its file to cut_to bytes. */
static off_t  cut_to = -1;

ssize_t
pread(int fd, void *buf, size_t bytes, off_t at)
{
    if (cut_to >= 0 && truncate(path, cut_to) != 0) {
        return -1;
    }

    return syscall(SYS_pread64, fd, buf, bytes, at);
}


static void
a_file_with_a_limit_is_a_copy_that_notices_when_it_is_cut(void **state)
{
    char        text[200];
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_open(&f, path, 100, &err), 0);
    assert_int_equal(truncate(path, 0), 0);            /* reading a map would be SIGBUS */
    assert_memory_equal(f.data, "12345678", 8);
    vlm_file_done(&f, 0, 8);
    assert_memory_equal(f.data, "12345678", 8);
    vlm_file_close(&f);

    write_file("12345678", 8);
    cut_to = 3;
    assert_int_equal(vlm_file_open(&f, path, 100, &err), -1);
    cut_to = -1;
    snprintf(text, sizeof(text), "%s: cut below 8 bytes while it was read: replace a file by "
             "renaming a new one", path);
    assert_string_equal(err.text, text);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_null(f.data);
}


static void
a_mapped_file_is_whole_until_it_is_cut(void **state)
{
    char        moved[80], text[200];
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal(vlm_file_whole(&f, path, &err), 0);
    assert_int_equal(truncate(path, 9), 0);
    assert_int_equal(vlm_file_whole(&f, path, &err), 0);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(vlm_file_whole(&f, path, &err), -1);
    snprintf(text, sizeof(text), "%s: cut from 8 to 5 bytes while it was read: replace a file by "
             "renaming a new one", path);
    assert_string_equal(err.text, text);

    /* Another file in its place is not this one. */

    snprintf(moved, sizeof(moved), "%s-moved", path);
    assert_int_equal(rename(path, moved), 0);
    memset(&err, 0, sizeof(err));
    write_file("1", 1);
    assert_int_equal(vlm_file_whole(&f, path, &err), 0);
    unlink(moved);
    vlm_file_close(&f);
}


static void
a_file_that_is_neither_copied_nor_mapped_is_read_in_parts(void **state)
{
    int         fd;
    char        part[4];
    uint64_t    bytes;
    vlm_err_t   err = { 0 };

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_handle(&fd, &bytes, path, &err), 0);
    assert_int_equal(bytes, 8);
    assert_int_equal(vlm_file_read_at(fd, part, 4, 4, path, &err), 0);
    assert_memory_equal(part, "5678", 4);
    assert_int_equal(truncate(path, 6), 0);
    assert_int_equal(vlm_file_read_at(fd, part, 4, 4, path, &err), -1);
    assert_non_null(strstr(err.text, "cut below 8 bytes while it was read"));
    close(fd);

    memset(&err, 0, sizeof(err));
    write_file("version https://git-lfs.github.com/spec/v1\n", 43);
    assert_int_equal(vlm_file_handle(&fd, &bytes, path, &err), -1);
    assert_non_null(strstr(err.text, "a Git LFS pointer"));
    assert_int_equal(fd, -1);

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_handle(&fd, &bytes, dir, &err), -1);
    assert_non_null(strstr(err.text, "not a regular file"));
}


static void
a_map_without_a_sentence_says_the_system_s_error(void **state)
{
    char        link[80];
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    assert_int_equal(vlm_file_map(&f, path, O_NOFOLLOW, 8), 0);
    assert_int_equal(f.bytes, 8);
    assert_memory_equal(f.data, "12345678", 8);
    vlm_file_close(&f);

    assert_int_equal(vlm_file_map(&f, path, O_NOFOLLOW, 7), EFBIG);
    assert_int_equal(f.bytes, 8);
    assert_null(f.data);

    snprintf(link, sizeof(link), "%s/link", dir);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(vlm_file_map(&f, link, O_NOFOLLOW, 8), ELOOP);
    assert_int_equal(vlm_file_map(&f, link, 0, 8), 0);
    vlm_file_close(&f);
    assert_int_equal(unlink(link), 0);

    assert_int_equal(vlm_file_map(&f, link, O_NOFOLLOW, 8), ENOENT);
    assert_int_equal(vlm_file_map(&f, dir, O_NOFOLLOW, 8), ENODEV);

    write_file("", 0);
    assert_int_equal(vlm_file_map(&f, path, O_NOFOLLOW, 8), ENODATA);
    assert_null(f.data);
    vlm_file_close(&f);
}


static void
an_open_file_is_mapped_and_may_be_closed(void **state)
{
    int         fd;
    vlm_file_t  f;

    (void) state;

    write_file("12345678", 8);
    fd = open(path, O_RDONLY);
    assert_true(fd != -1);
    assert_int_equal(vlm_file_map_fd(&f, fd, 5), 0);
    close(fd);
    assert_int_equal(f.bytes, 5);
    assert_memory_equal(f.data, "12345", 5);
    vlm_file_close(&f);

    assert_int_equal(vlm_file_map_fd(&f, -1, 5), EBADF);
    assert_int_equal(vlm_file_map_fd(&f, -1, UINT64_MAX), ENOMEM);
    assert_null(f.data);
}


/* Bytes that are not the same in any two pages. */
static char *
some(size_t bytes)
{
    char    *data;
    size_t   i;

    data = malloc(bytes);
    assert_non_null(data);

    for (i = 0; i < bytes; i++) {
        data[i] = (char) (i * 7 + i / 251 + (i >> 12) * 3);
    }

    return data;
}


static void
a_file_that_is_brought_is_its_bytes_and_begins_with_a_large_page(void **state)
{
    char        *data;
    size_t       bytes = LARGE;
    vlm_err_t    err = { 0 };
    vlm_file_t   f;

    (void) state;

    data = some(bytes);
    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal((uintptr_t) f.data % HUGE_PAGE, 0);

    vlm_file_bring(&f, 0, HALF);
    vlm_file_bring(&f, HALF, bytes - HALF);
    vlm_file_bring(&f, bytes, 1);      /* beyond its end: nothing */
    assert_memory_equal(f.data, data, bytes);

    vlm_file_close(&f);
    free(data);
}


typedef struct {                       /* reads while pages are moved to anonymous memory */
    const uint8_t  *at, *want;
    size_t          bytes;
    uint64_t        wrong, rounds;
    atomic_int      stop;
} reader_t;


static void *
read_on(void *arg)
{
    reader_t  *r = arg;

    do {
        r->wrong += memcmp(r->at, r->want, r->bytes) != 0;
        r->rounds++;
    } while (!atomic_load(&r->stop));

    return NULL;
}


static void
a_file_becomes_memory_while_it_is_read(void **state)
{
    int          i;
    char        *data;
    size_t       bytes = LARGE;
    pthread_t    thread;
    reader_t     r;
    vlm_err_t    err = { 0 };
    vlm_file_t   f;

    (void) state;

    data = some(bytes);
    write_file(data, bytes);

    for (i = 0; i < 5; i++) {
        assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);

        memset(&r, 0, sizeof(r));
        r.at = f.data;
        r.want = (const uint8_t *) data;
        r.bytes = bytes;
        assert_int_equal(pthread_create(&thread, NULL, read_on, &r), 0);

        assert_int_equal(vlm_file_own(&f, HALF), 0);
        assert_int_equal(vlm_file_own(&f, bytes - HALF), 0);

        atomic_store(&r.stop, 1);
        pthread_join(thread, NULL);
        assert_true(r.rounds > 0);
        assert_int_equal(r.wrong, 0);

        vlm_file_close(&f);
    }

    free(data);
}


/* The first half is anonymous memory, unaffected by the file.  The second half is still the
   file's. */
static void
memory_of_its_own_does_not_depend_on_the_file(void **state)
{
    char        *data;
    size_t       bytes = LARGE;
    vlm_err_t    err = { 0 };
    vlm_file_t   f;

    (void) state;

    data = some(bytes);
    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_int_equal(vlm_file_own(&f, HALF), 0);

    rewrite(HALF - 1, data[HALF - 1] ^ 1);
    rewrite(HALF, data[HALF] ^ 1);
    assert_memory_equal(f.data, data, HALF);
    assert_int_equal((char) f.data[HALF], data[HALF] ^ 1);

    assert_int_equal(vlm_file_own(&f, bytes - HALF), 0);
    assert_int_equal(truncate(path, 1), 0);            /* reading a file's page would be SIGBUS */
    data[HALF] ^= 1;
    assert_memory_equal(f.data, data, bytes);

    vlm_file_close(&f);
    free(data);
}


/* A model has thousands of pieces, and a process has room for 65,530 mappings. */
static void
pieces_that_became_memory_are_one_mapping(void **state)
{
    int            n;
    char          *data, line[5000];
    FILE          *maps;
    size_t         bytes = LARGE;
    uint64_t       at;
    uintptr_t      from, to;
    vlm_err_t      err = { 0 };
    vlm_file_t     f;

    (void) state;

    data = some(bytes);
    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);

    for (at = 0; bytes - at >= HUGE_PAGE; at += HUGE_PAGE) {
        assert_int_equal(vlm_file_own(&f, HUGE_PAGE), 0);
    }

    maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);

    for (n = 0; fgets(line, sizeof(line), maps) != NULL; /* void */) {
        n += sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &from, &to) == 2
             && from < (uintptr_t) f.data + at && to > (uintptr_t) f.data;
    }

    (void) fclose(maps);

    assert_int_equal(n, 1);
    assert_memory_equal(f.data, data, bytes);
    vlm_file_close(&f);
    free(data);
}


static void
a_path_that_is_no_regular_file_is_refused(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    assert_int_equal(vlm_file_open(&f, dir, 0, &err), -1);
    assert_non_null(strstr(err.text, "not a regular file"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_open(&f, "/dev/zero", 0, &err), -1);
    assert_non_null(strstr(err.text, "/dev/zero: not a regular file"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_open(&f, "/nowhere/at/all", 0, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_string_equal(err.text, "/nowhere/at/all: No such file or directory: correct the "
                        "path, or download the file");
}


static void
a_pipe_without_a_writer_does_not_block(void **state)
{
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    alarm(5);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), -1);
    alarm(0);
    assert_non_null(strstr(err.text, "not a regular file"));
    unlink(path);
}


static void
bytes_that_are_done_with_can_be_read_again(void **state)
{
    char       *data;
    size_t      page, bytes;
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    (void) state;

    page = (size_t) sysconf(_SC_PAGESIZE);
    bytes = PAGES * page + 17;
    data = some(bytes);
    write_file(data, bytes);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);

    vlm_file_done(&f, 1, bytes - 1);
    assert_memory_equal(f.data, data, bytes);
    vlm_file_done(&f, page - 1, 2);            /* no whole page */
    vlm_file_done(&f, 0, bytes);
    vlm_file_done(&f, bytes, 1);               /* outside: nothing happens */
    vlm_file_done(&f, UINT64_MAX, UINT64_MAX);
    vlm_file_done(&f, 5, UINT64_MAX);
    assert_memory_equal(f.data, data, bytes);

    vlm_file_close(&f);
    free(data);
}


static void
existence_is_asked_of_regular_files_only(void **state)
{
    (void) state;

    write_file("x", 1);
    assert_int_equal(vlm_file_exists(dir, "f"), 1);
    assert_int_equal(vlm_file_exists(dir, "g"), 0);
    assert_int_equal(vlm_file_exists(dir, "."), 0);
    assert_int_equal(vlm_file_exists("/nowhere", "f"), 0);
}


static void
the_error_names_a_git_lfs_pointer_and_other_common_mistakes(void **state)
{
    char        name[80];
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    static const char  pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n";

    (void) state;

    write_file(pointer, sizeof(pointer) - 1);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "a Git LFS pointer"));
    assert_null(f.data);

    memset(&err, 0, sizeof(err));
    write_file("GGUF\3\0\0\0", 8);
    assert_int_equal(vlm_file_check_dir(path, "config.json", &err), -1);
    assert_non_null(strstr(err.text, "a GGUF file"));

    memset(&err, 0, sizeof(err));
    write_file("GGU", 3);
    assert_int_equal(vlm_file_check_dir(path, "config.json", &err), -1);
    assert_non_null(strstr(err.text, "not a directory"));

    memset(&err, 0, sizeof(err));
    assert_int_equal(vlm_file_check_dir(dir, "config.json", &err), 0);
    assert_int_equal(vlm_file_check_dir("/nowhere/at/all", "config.json", &err), 0);
    snprintf(name, sizeof(name), "%s/model-Q8_0.gguf", dir);
    assert_int_equal(rename(path, name), 0);
    assert_int_equal(vlm_file_check_dir(dir, "config.json", &err), -1);
    assert_non_null(strstr(err.text, "\"model-Q8_0.gguf\" is a GGUF file"));
    assert_int_equal(unlink(name), 0);
    write_file("x", 1);
}


static void
a_path_that_does_not_fit_is_an_error(void **state)
{
    char       buf[8];
    vlm_err_t  err = { 0 };

    (void) state;

    assert_int_equal(vlm_file_path(buf, sizeof(buf), "abc", "def", &err), 0);
    assert_string_equal(buf, "abc/def");
    assert_int_equal(vlm_file_path(buf, sizeof(buf), "abc", "defg", &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "longer than 7 bytes"));
}


static void
the_process_that_locked_a_file_is_known(void **state)
{
    int   fd;
    long  parent;

    (void) state;

    write_file("x", 1);
    assert_int_equal(vlm_file_locker(path, &parent), 0);

    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_not_equal(fd, -1);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);

    assert_int_equal(vlm_file_locker(path, &parent), getpid());
    assert_int_equal(parent, getppid());

    assert_int_equal(close(fd), 0);
    assert_int_equal(vlm_file_locker(path, &parent), 0);
    assert_int_equal(parent, 0);
}


static void
a_lock_belongs_to_a_file_by_device_and_inode(void **state)
{
    size_t  i;
    FILE   *f;
    char    text[512];

    static const struct {
        const char  *locks;
        long         owner;
    } cases[] = {
        { "1: FLOCK  ADVISORY  WRITE 11 08:02:77 0 EOF\n"
          "2: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n", 12 },
        { "1: FLOCK  ADVISORY  WRITE 12 fe:01:77 0 EOF\n"
          "2: FLOCK  ADVISORY  WRITE 11 08:02:77 0 EOF\n", 12 },
        { "1: POSIX  ADVISORY  WRITE 11 fe:01:77 0 EOF\n"
          "2: FLOCK  ADVISORY  READ 11 fe:01:77 0 EOF\n"
          "3: -> FLOCK  ADVISORY  WRITE 11 fe:01:77 0 EOF\n", 0 },
        { "1: FLOCK  ADVISORY  WRITE 12 00:2d:77 0 EOF\n", 12 },
        { "1: FLOCK  ADVISORY  WRITE 11 00:2d:77 0 EOF\n"
          "2: FLOCK  ADVISORY  WRITE 12 00:2e:77 0 EOF\n", 0 },
        { "1: FLOCK  ADVISORY  WRITE 12 fe:01:770 0 EOF\n", 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(text, cases[i].locks);
        f = fmemopen(text, strlen(text), "r");
        assert_non_null(f);
        assert_int_equal(vlm_file_locker_in(f, makedev(0xfe, 1), 77), cases[i].owner);
        fclose(f);
    }
}


static void
a_file_without_a_name_has_the_bytes_that_are_written(void **state)
{
    int          fd;
    vlm_file_t   f;
    struct stat  st;

    (void) state;

    fd = vlm_file_unnamed(dir);
    assert_true(fd >= 0);
    assert_int_equal(vlm_file_write(fd, "world", 5, 6), 0);
    assert_int_equal(vlm_file_write(fd, "hello ", 6, 0), 0);

    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_nlink, 0);

    assert_int_equal(vlm_file_map_fd(&f, fd, 11), 0);
    assert_memory_equal(f.data, "hello world", 11);
    vlm_file_close(&f);
    close(fd);
}


static void
the_system_s_error_says_why_a_file_was_not_written(void **state)
{
    int  fd;

    (void) state;

    assert_int_equal(vlm_file_unnamed("/nowhere/at/all"), -1);
    assert_int_equal(errno, ENOENT);

    fd = open("/dev/full", O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(vlm_file_write(fd, "x", 1, 0), ENOSPC);
    close(fd);
}


static void
a_path_that_leads_elsewhere_is_noticed(void **state)
{
    int  fd;

    (void) state;

    write_file("x", 1);
    fd = open(path, O_RDONLY);
    assert_int_equal(vlm_file_moved(fd, path), 0);

    unlink(path);
    assert_int_equal(vlm_file_moved(fd, path), 1);

    write_file("x", 1);
    assert_int_equal(vlm_file_moved(fd, path), 1);
    assert_int_equal(vlm_file_moved(-1, path), 0);
    close(fd);
}


static void
a_lock_is_held_by_one_open_file(void **state)
{
    int  one, two;

    (void) state;

    unlink(path);
    assert_int_equal(vlm_file_lock(path, 0, &one), ENOENT);
    assert_int_equal(one, -1);

    assert_int_equal(vlm_file_lock(path, 1, &one), 0);
    assert_int_equal(vlm_file_lock(path, 0, &two), EWOULDBLOCK);
    assert_int_equal(two, -1);

    close(one);
    assert_int_equal(vlm_file_lock(path, 0, &two), 0);

    /* another file of this name is another lock */

    unlink(path);
    assert_int_equal(vlm_file_lock(path, 1, &one), 0);
    close(one);
    close(two);

    unlink(path);
    assert_int_equal(symlink("/dev/null", path), 0);
    assert_int_equal(vlm_file_lock(path, 1, &one), ELOOP);
    unlink(path);
}


static void
the_last_name_of_a_path_has_no_slashes(void **state)
{
    size_t  i, n;

    static const char  *paths[][2] = {
        { "/models/brain", "brain" }, { "/models/brain//", "brain" }, { "brain/", "brain" },
        { "brain", "brain" }, { "/brain", "brain" }, { "a/b", "b" }, { "/", "/" }, { "//", "/" },
        { "", "" }
    };

    (void) state;

    for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const char  *name = vlm_file_name(paths[i][0], &n);

        assert_int_equal(n, strlen(paths[i][1]));
        assert_memory_equal(name, paths[i][1], n);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_last_name_of_a_path_has_no_slashes),
        cmocka_unit_test(a_file_without_a_name_has_the_bytes_that_are_written),
        cmocka_unit_test(the_system_s_error_says_why_a_file_was_not_written),
        cmocka_unit_test(a_path_that_leads_elsewhere_is_noticed),
        cmocka_unit_test(a_lock_is_held_by_one_open_file),
        cmocka_unit_test(a_file_is_its_bytes),
        cmocka_unit_test(an_empty_file_has_no_address),
        cmocka_unit_test(a_file_of_the_limit_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(a_file_with_a_limit_is_a_copy_that_notices_when_it_is_cut),
        cmocka_unit_test(a_mapped_file_is_whole_until_it_is_cut),
        cmocka_unit_test(a_file_that_is_neither_copied_nor_mapped_is_read_in_parts),
        cmocka_unit_test(a_map_without_a_sentence_says_the_system_s_error),
        cmocka_unit_test(an_open_file_is_mapped_and_may_be_closed),
        cmocka_unit_test(a_file_that_is_brought_is_its_bytes_and_begins_with_a_large_page),
        cmocka_unit_test(a_file_becomes_memory_while_it_is_read),
        cmocka_unit_test(memory_of_its_own_does_not_depend_on_the_file),
        cmocka_unit_test(pieces_that_became_memory_are_one_mapping),
        cmocka_unit_test(a_path_that_is_no_regular_file_is_refused),
        cmocka_unit_test(a_pipe_without_a_writer_does_not_block),
        cmocka_unit_test(bytes_that_are_done_with_can_be_read_again),
        cmocka_unit_test(the_process_that_locked_a_file_is_known),
        cmocka_unit_test(existence_is_asked_of_regular_files_only),
        cmocka_unit_test(the_error_names_a_git_lfs_pointer_and_other_common_mistakes),
        cmocka_unit_test(a_path_that_does_not_fit_is_an_error),
        cmocka_unit_test(a_lock_belongs_to_a_file_by_device_and_inode)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
