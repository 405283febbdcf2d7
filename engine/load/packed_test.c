/* The quantised cache file: the bytes written are read back, and any other bytes are refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "load/checkpoint.h"
#include "load/fixture.h"
#include "load/packed.h"
#include "format/panel.h"

#define N  130                         /* two panels of 64 and a piece */
#define K  63
#define M  3                           /* matrices */
#define P  3                           /* panels */

static char     dir[] = "/tmp/vlm-packed-XXXXXX";
static char     path[4096];
static uint8_t  panels[M][P][64 * 64];
static float    scale[M][N], offset[M][N], factor[M][N];
static uint8_t  id[VLM_PACKED_ID] = { 1, 2, 3 };


static int
set_up(void **state)
{
    int  m, i;

    (void) state;

    for (m = 0; m < M; m++) {
        for (i = 0; i < P * 64 * 64; i++) {
            panels[m][i / 4096][i % 4096] = (uint8_t) (i * 31 + m * 7);
        }

        for (i = 0; i < N; i++) {
            scale[m][i] = (float) (i + 1) / (float) (m + 2);
            offset[m][i] = (float) i - (float) m;
            factor[m][i] = (float) (i + 1) * (float) (m + 2);
        }
    }

    return mkdtemp(dir) == NULL ? -1 : 0;
}


static int
tear_down(void **state)
{
    char  command[128];

    (void) state;
    snprintf(command, sizeof(command), "rm -r %s", dir);

    return system(command);
}


static unsigned
n_files(void)
{
    char      command[128];
    unsigned  n;
    FILE     *f;

    snprintf(command, sizeof(command), "ls %s | wc -l", dir);
    f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fscanf(f, "%u", &n), 1);
    pclose(f);

    return n;
}


static void
fill(vlm_packed_t *p, int n)
{
    int        m;
    vlm_err_t  err = { 0 };

    for (m = 0; m < n; m++) {
        assert_int_equal(vlm_packed_begin(p, VLM_INT8, N, K, &err), 0);
        vlm_packed_add(p, 0, 1, panels[m][0]);
        vlm_packed_add(p, 1, P - 1, panels[m][1]);
        vlm_packed_add_scale(p, scale[m], offset[m], factor[m]);
        assert_int_equal(vlm_packed_end(p, &err), 0);
    }
}


static void
make(void)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  p;

    if (vlm_packed_create(&p, dir, dir, VLM_INT8, id, VLM_FLIP, M + 2, M * 4 * sizeof(panels[0]),
                          &err) != 0)
    {
        fail_msg("%s", err.text);
    }

    fill(&p, M);
    strcpy(path, p.path);
    assert_int_equal(vlm_packed_finish(&p, &err), 0);
    vlm_packed_close(&p);
}


/* 0, or the name of the first fault. */
static const char *
read_all(vlm_err_t *err)
{
    int           m;
    uint32_t      i;
    const void   *panel;
    vlm_packed_t  p;

    memset(err, 0, sizeof(*err));

    if (vlm_packed_open(&p, dir, dir, VLM_INT8, id, err) != 0) {
        return "open";
    }

    for (m = 0; m < M; m++) {
        if (vlm_packed_begin(&p, VLM_INT8, N, K, err) != 0) {
            vlm_packed_close(&p);
            return "begin";
        }

        for (i = P; i-- > 0; /* void */) {         /* in any order */
            panel = vlm_packed_panel(&p, i);

            if (path[0] == '\0') {
                assert_memory_equal(panel, panels[m][i], sizeof(panels[m][i]));
                assert_ptr_equal((const uint8_t *) vlm_packed_panels(&p) + i * 4096, panel);
            }
        }

        if (path[0] == '\0') {
            assert_int_equal(p.flip, VLM_FLIP);
            assert_memory_equal(vlm_packed_scale(&p), scale[m], sizeof(scale[m]));
            assert_memory_equal(vlm_packed_offset(&p), offset[m], sizeof(offset[m]));
            assert_memory_equal(vlm_packed_factor(&p), factor[m], sizeof(factor[m]));
        }

        if (vlm_packed_end(&p, err) != 0) {
            vlm_packed_close(&p);
            return "end";
        }
    }

    vlm_packed_close(&p);

    return NULL;
}


static void
a_written_cache_is_read_bit_for_bit(void **state)
{
    vlm_err_t  err;

    (void) state;

    make();
    path[0] = '\0';                    /* compare */
    assert_null(read_all(&err));
    make();
    assert_int_equal(n_files(), 1);
}


static void
a_missing_file_is_reported_with_its_path(void **state)
{
    vlm_err_t  err;

    (void) state;

    make();
    unlink(path);
    assert_string_equal(read_all(&err), "open");
    assert_non_null(strstr(err.text, path));
}


static void
weights_of_another_checkpoint_are_not_taken(void **state)
{
    vlm_err_t  err;

    (void) state;

    make();
    id[31] ^= 1;
    assert_string_equal(read_all(&err), "open");
    assert_non_null(strstr(err.text, "from other weights"));
    id[31] ^= 1;
    assert_null(read_all(&err));
}


static void
a_file_cut_off_anywhere_is_noticed(void **state)
{
    long         at;
    vlm_err_t    err;
    struct stat  st;

    (void) state;

    make();
    assert_int_equal(stat(path, &st), 0);

    for (at = 0; at < st.st_size; at += at < 400 ? 1 : 997) {
        make();
        assert_int_equal(truncate(path, at), 0);
        assert_string_equal(read_all(&err), "open");
    }
}


static void
a_file_cut_off_while_it_is_read_is_damaged(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  p;

    (void) state;

    make();
    assert_int_equal(vlm_packed_open(&p, dir, dir, VLM_INT8, id, &err), 0);
    assert_int_equal(truncate(path, 1000), 0);         /* reading a panel would be SIGBUS */
    assert_int_equal(vlm_packed_begin(&p, VLM_INT8, N, K, &err), -1);
    assert_non_null(strstr(err.text, " to 1000 bytes while it was read"));
    assert_int_equal(p.failed, -1);
    vlm_packed_close(&p);
}


/* The alignment behind vectors, and the room for entries, belong to no matrix. */
static int
is_gap(long at, long size)
{
    long  m, from;
    long  head = 96, entry = 32;
    long  first = (head + (M + 2) * entry + 63) / 64 * 64;
    long  s = (N * 4 + 63) / 64 * 64, all = (long) sizeof(panels[0]) + 3 * s;

    assert_int_equal(first + M * all, size);

    if (at < first) {
        return at >= head + M * entry;
    }

    m = (at - first) / all;
    from = at - first - m * all - (long) sizeof(panels[0]);

    return from >= 0 && from % s >= N * 4;
}


static void
every_byte_that_is_changed_is_noticed(void **state)
{
    int          c;
    long         at;
    FILE        *f;
    vlm_err_t    err;
    struct stat  st;

    (void) state;

    make();
    assert_int_equal(stat(path, &st), 0);

    for (at = 0; at < st.st_size; at += at < 256 ? 1 : 101) {
        f = fopen(path, "r+b");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        c = fgetc(f);
        fseek(f, at, SEEK_SET);
        fputc(c ^ 0x10, f);
        fclose(f);

        if ((read_all(&err) == NULL) != is_gap(at, st.st_size)) {
            fail_msg("byte %ld of %ld", at, (long) st.st_size);
        }

        f = fopen(path, "r+b");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        fputc(c, f);
        fclose(f);
    }

    assert_null(read_all(&err));
}


static void
two_that_make_it_at_once_do_not_hurt_each_other(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  a, b;

    (void) state;

    make();
    assert_int_equal(vlm_packed_create(&a, dir, dir, VLM_INT8, id, 0, M, 0, &err), 0);
    fill(&a, 1);
    assert_int_equal(vlm_packed_create(&b, dir, dir, VLM_INT8, id, 0, M, 0, &err), 0);
    assert_int_equal(n_files(), 3);
    fill(&b, M);
    assert_int_equal(vlm_packed_finish(&b, &err), 0);
    assert_null(read_all(&err));

    assert_int_equal(vlm_packed_begin(&a, VLM_INT8, N, K, &err), 0);
    vlm_packed_close(&a);                      /* gives up */
    assert_int_equal(n_files(), 1);
    assert_null(read_all(&err));
}


static void
a_file_that_a_killed_process_began_is_removed_by_the_next(void **state)
{
    char  name[4200];

    (void) state;

    make();
    snprintf(name, sizeof(name), "%s.making-1-1", path);
    fixture_write(dir, strrchr(name, '/') + 1, "x", 1);
    assert_int_equal(n_files(), 2);
    make();
    assert_int_equal(n_files(), 1);
}


static void
a_directory_that_cannot_be_written_is_reported(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  p;

    (void) state;

    assert_int_equal(vlm_packed_create(&p, "/proc/nowhere", dir, VLM_INT8, id, 0, M, 0, &err), -1);
    assert_non_null(strstr(err.text, "/proc/nowhere/vlm-int8-"));
    vlm_packed_close(&p);
}


static void
a_disk_without_the_room_is_reported_at_once(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  p;

    (void) state;

    make();
    assert_int_equal(vlm_packed_create(&p, dir, dir, VLM_INT8, id, 0, M, (uint64_t) 1 << 50, &err),
                     -1);
    assert_non_null(strstr(err.text, "1125899906842816 bytes are needed"));
    assert_int_equal(n_files(), 1);
}


static void
another_model_is_not_read_as_this_one(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_packed_t  p;

    (void) state;

    make();
    assert_int_equal(vlm_packed_open(&p, dir, dir, VLM_INT8, id, &err), 0);
    assert_int_equal(vlm_packed_begin(&p, VLM_INT8, N, K + 1, &err), -1);
    assert_non_null(strstr(err.text, "matrix 0 is int8 [130, 63], the model has int8 [130, 64]"));
    vlm_packed_close(&p);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_written_cache_is_read_bit_for_bit),
        cmocka_unit_test(a_missing_file_is_reported_with_its_path),
        cmocka_unit_test(weights_of_another_checkpoint_are_not_taken),
        cmocka_unit_test(a_file_cut_off_anywhere_is_noticed),
        cmocka_unit_test(a_file_cut_off_while_it_is_read_is_damaged),
        cmocka_unit_test(every_byte_that_is_changed_is_noticed),
        cmocka_unit_test(two_that_make_it_at_once_do_not_hurt_each_other),
        cmocka_unit_test(a_file_that_a_killed_process_began_is_removed_by_the_next),
        cmocka_unit_test(a_directory_that_cannot_be_written_is_reported),
        cmocka_unit_test(a_disk_without_the_room_is_reported_at_once),
        cmocka_unit_test(another_model_is_not_read_as_this_one)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
