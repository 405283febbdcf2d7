/*
 * Planned memory is committed beside the first answers: all of it; not after the engine was closed;
 * and if the system has none, the log says so and the engine goes on.
 */

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "run/fixture.h"

#define POPULATE_WRITE  23
#define LARGE           (2u << 20)

static char         dir[] = "/tmp/vlm-fill-XXXXXX";
static char         said[4096];        /* by the log */
static atomic_int   slow, refuse, refuse_move;
static atomic_int   closed;            /* 1: committing memory now is too late */
static atomic_int   late;
static atomic_uint  taken;             /* pieces */
static int          cuts;              /* how often the cache file is cut once it is open */
static atomic_size_t  longest;         /* bytes of one */


/* In place of libc's. */
int
madvise(void *at, size_t bytes, int advice)
{
    if (advice == POPULATE_WRITE) {
        if (slow) {
            usleep(100000);
        }

        atomic_fetch_add(&taken, 1);
        longest = bytes > longest ? bytes : longest;
        atomic_fetch_or(&late, atomic_load(&closed));

        if (refuse) {
            errno = ENOMEM;
            return -1;
        }
    }

    return (int) syscall(SYS_madvise, at, bytes, advice);
}


void *
mremap(void *at, size_t old, size_t bytes, int flags, ...)
{
    void     *to;
    va_list   args;

    if (refuse_move) {
        errno = ENOMEM;
        return MAP_FAILED;
    }

    va_start(args, flags);
    to = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void *) : NULL;
    va_end(args);

    return (void *) syscall(SYS_mremap, at, old, bytes, flags, to);
}


static void
note(void *data, vlm_log_level_t level, const char *text)
{
    char    path[4096];
    size_t  n = strlen(said);

    (void) data;
    (void) level;
    (void) snprintf(said + n, sizeof(said) - n, "%s\n", text);

    if (cuts > 0 && sscanf(text, "weights come from %4095s", path) == 1) {
        assert_int_equal(truncate(path, 4096), 0);
        cuts--;
    }
}


static vlm_t *
open_kept(const char *ops)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.weights = VLM_INT8;
    conf.cache = dir;
    conf.ops = ops;
    conf.log = note;

    said[0] = '\0';
    taken = 0;
    closed = late = 0;

    return vlm_tiny_open(&conf);
}


static int
filling(const vlm_t *v)
{
    vlm_stat_t  stat;

    vlm_stat(v, &stat);

    return stat.filling;
}


static void
wait_until_full(const vlm_t *v)
{
    int  i;

    for (i = 0; i < 10000 && filling(v); i++) {
        usleep(1000);
    }

    assert_false(filling(v));
}


static int
is_mapped(const char *name)
{
    int    found;
    char   line[5000];
    FILE  *maps;

    maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);

    for (found = 0; !found && fgets(line, sizeof(line), maps) != NULL; /* void */) {
        found = strstr(line, name) != NULL;
    }

    (void) fclose(maps);

    return found;
}


/* With the cache file's order, with another, and with a cache file written by the first start. */
static void
nothing_of_the_file_is_mapped_once_all_memory_is_taken(void **state)
{
    int                       i;
    vlm_t                    *v;
    static const char *const  sets[] = { NULL, NULL, "plain" };

    (void) state;

    for (i = 0; i < 3; i++) {
        v = open_kept(sets[i]);
        assert_non_null(strstr(said, "weights come from"));
        wait_until_full(v);
        assert_false(is_mapped("vlm-int8"));
        assert_true(taken > 0);
        assert_true(longest <= LARGE);     /* the map is locked for one large page at a time */
        assert_null(strstr(said, "memory"));
        vlm_close(v);
    }
}


static void
no_memory_is_taken_for_an_engine_that_is_closed(void **state)
{
    int     i;
    vlm_t  *v;

    (void) state;

    for (i = 0; i < 5; i++) {
        slow = 1;
        v = open_kept(NULL);
        assert_true(filling(v));
        usleep((unsigned) i * 30000);
        vlm_close(v);
        closed = 1;
        usleep(200000);
        slow = 0;
        assert_int_equal(late, 0);
    }
}


static void
a_system_without_the_memory_is_named_in_the_log(void **state)
{
    vlm_t  *v;

    (void) state;

    refuse = 1;
    v = open_kept(NULL);
    wait_until_full(v);
    refuse = 0;
    assert_non_null(strstr(said, "the system does not have the planned memory"));
    vlm_close(v);
}


static void
weights_that_cannot_be_moved_are_used_where_they_are(void **state)
{
    vlm_t  *v;

    (void) state;

    refuse_move = 1;
    v = open_kept(NULL);
    wait_until_full(v);
    refuse_move = 0;

    if (v->packed.stays) {             /* plain has an order of its own */
        assert_non_null(strstr(said, "no memory for a copy of the weights"));
        assert_true(is_mapped("vlm-int8"));
    }

    vlm_close(v);
    assert_false(is_mapped("vlm-int8"));
}


/* The first time it is made again; the second time the model is loaded without it. */
static void
a_cache_that_is_cut_while_it_is_read_does_not_fail_the_load(void **state)
{
    int     n;
    vlm_t  *v;

    (void) state;

    for (n = 1; n <= 2; n++) {
        cuts = n;
        v = open_kept(NULL);
        assert_int_equal(cuts, 0);
        assert_non_null(strstr(said, " to 4096 bytes while it was read"));
        assert_int_equal(strstr(said, "so that this start quantises the weights itself") != NULL,
                         n == 2);
        vlm_close(v);
    }
}


static int
set_up(void **state)
{
    (void) state;

    return mkdtemp(dir) == NULL ? -1 : 0;
}


static int
tear_down(void **state)
{
    char  command[64];

    (void) state;
    snprintf(command, sizeof(command), "rm -r %s", dir);

    return system(command);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_of_the_file_is_mapped_once_all_memory_is_taken),
        cmocka_unit_test(no_memory_is_taken_for_an_engine_that_is_closed),
        cmocka_unit_test(a_system_without_the_memory_is_named_in_the_log),
        cmocka_unit_test(weights_that_cannot_be_moved_are_used_where_they_are),
        cmocka_unit_test(a_cache_that_is_cut_while_it_is_read_does_not_fail_the_load)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
