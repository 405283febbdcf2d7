
/*
 * Answers of a Redis: refusals, each with its code, and answers beyond all bounds.  A server of
 * one line stands for it.
 */


#define _GNU_SOURCE

#include <pthread.h>

#include "store/store_fixture.h"


#define EDOWN     VLM_STORE_EDOWN
#define EREFUSES  VLM_STORE_EREFUSES


static long long
ms_since(const struct timespec *from)
{
    struct timespec  now;

    (void) clock_gettime(CLOCK_MONOTONIC, &now);

    return (now.tv_sec - from->tv_sec) * 1000LL + (now.tv_nsec - from->tv_nsec) / 1000000;
}


/* A server that answers each command with the same line, until its client has gone. */

typedef struct {
    int                 fd;                 /* listens */
    const char         *line;
    size_t              n, bytes;           /* strings behind it, and bytes of each */
    struct sockaddr_un  sun;
} refuser_t;


static void
refuser_open(refuser_t *r, vlm_redis_conf_t *c)
{
    char   url[128];
    err_t  err;

    memset(r, 0, sizeof(*r));

    r->sun.sun_family = AF_UNIX;
    (void) snprintf(r->sun.sun_path, sizeof(r->sun.sun_path), "%.64s/refuser", redis_dir);
    (void) snprintf(url, sizeof(url), "redis://unix:%s", r->sun.sun_path);
    assert_int_equal(vlm_redis_parse(url, c, &err), OK);

    r->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(r->fd, (struct sockaddr *) &r->sun, sizeof(r->sun)), 0);
    assert_int_equal(listen(r->fd, 1), 0);
}


static void
refuser_close(refuser_t *r)
{
    (void) close(r->fd);
    (void) unlink(r->sun.sun_path);
}


static int
send_all(int fd, const char *text, size_t bytes)
{
    return write(fd, text, bytes) == (ssize_t) bytes ? 0 : -1;
}


static void
send_strings(int fd, const refuser_t *r)
{
    char    head[32], *text;
    size_t  i;

    text = calloc(1, r->bytes + 2);

    if (text == NULL) {
        return;
    }

    (void) snprintf(head, sizeof(head), "$%zu\r\n", r->bytes);
    memcpy(text + r->bytes, "\r\n", 2);

    for (i = 0; i < r->n; i++) {
        if (send_all(fd, head, strlen(head)) != 0 || send_all(fd, text, r->bytes + 2) != 0) {
            break;
        }
    }

    free(text);
}


static void *
refuse(void *data)
{
    int         fd;
    char        some[16384];
    refuser_t  *r;

    r = data;
    fd = accept(r->fd, NULL, NULL);

    while (fd != -1 && read(fd, some, sizeof(some)) > 0) {
        if (send_all(fd, r->line, strlen(r->line)) != 0) {
            break;
        }

        send_strings(fd, r);
    }

    (void) close(fd);

    return NULL;
}


static void
each_refusal_of_a_redis_has_its_code(void **state)
{
    size_t              i;
    err_t               err;
    store_t            *one;
    refuser_t           r;
    pthread_t           thread;
    vlm_redis_conf_t    c;

    static const struct {
        const char  *line;
        int          code;
        const char  *said;
    } known[] = {
        { "-OOM command not allowed when used memory > 'maxmemory'.\r\n", EREFUSES,
          "has no memory left (maxmemory)" },
        { "-READONLY You can't write against a read only replica.\r\n", EREFUSES,
          "is a replica, which cannot be written" },
        { "-MISCONF Redis is configured to save RDB snapshots\r\n", EREFUSES,
          "refuses writes, because it cannot save them" },
        { "-NOREPLICAS Not enough good replicas to write.\r\n", EREFUSES,
          "refuses writes, because it has too few replicas" },
        { "-ERR Error running script (call to f_0): @user_script:1: @user_script: 1:"
          " -NOREPLICAS Not enough good replicas to write.\r\n", EREFUSES,
          "refuses writes, because it has too few replicas" },
        { "-LOADING Redis is loading the dataset in memory\r\n", EDOWN, "is loading its data" },
        { "-MASTERDOWN Link with MASTER is down\r\n", EDOWN,
          "is a replica without its primary" },
        { "-CLUSTERDOWN The cluster is down\r\n", EDOWN, "is part of a cluster that is down" },
        { "-BUSY Redis is busy running a script.\r\n", EDOWN, "is busy with a script" },
        { "-NOAUTH Authentication required.\r\n", VLM_STORE_EREADONLY, "wants a password" },
        { "-MOVED 3999 secret:6381\r\n", VLM_STORE_EIO, "answers with the error MOVED" },
    };

    (void) state;

    refuser_open(&r, &c);

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        r.line = known[i].line;
        assert_int_equal(pthread_create(&thread, NULL, refuse, &r), 0);

        one = vlm_store_open_redis(&c, dir, 0);
        assert_non_null(one);
        assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), known[i].code);
        assert_non_null(strstr(err.text, known[i].said));
        assert_null(strstr(err.text, "secret"));
        vlm_store_close(one);

        (void) pthread_join(thread, NULL);
    }

    refuser_close(&r);

    assert_string_equal(vlm_store_text(EREFUSES),
                        "The store takes no writes at the moment, try again");
}


/* the most address space that this process has had, in KiB */

static long
peak(void)
{
    long   kb;
    char   line[128];
    FILE  *f;

    kb = -1;
    f = fopen("/proc/self/status", "r");
    assert_non_null(f);

    while (kb == -1 && fgets(line, sizeof(line), f) != NULL) {
        (void) sscanf(line, "VmPeak: %ld", &kb);
    }

    (void) fclose(f);

    return kb;
}


static void
an_answer_beyond_all_bounds_takes_no_memory_and_no_time(void **state)
{
    long                before;
    size_t              i;
    err_t               err;
    store_t            *one;
    refuser_t           r;
    pthread_t           thread;
    vlm_redis_conf_t    c;
    struct timespec     from;

    static const struct {
        const char  *line;
        size_t       n, bytes;
        long         kb;
    } bad[] = {
        { "*2147483647\r\n$1\r\na\r\n", 0, 0, 65536 },
        { "*2147483648\r\n", 0, 0, 65536 },
        { "*9223372036854775807\r\n", 0, 0, 65536 },
        { "*50000000\r\n$1\r\na\r\n", 0, 0, 65536 },
        { "*65\r\n", 65, 1, 65536 },
        { "*1\r\n*1\r\n$1\r\na\r\n", 0, 0, 65536 },
        { "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n", 0, 0, 65536 },
        { "$9223372036854775808\r\n", 0, 0, 65536 },
        { "*40\r\n", 40, 5 << 20, 1 << 20 },          /* no string of them is too long */
    };

    (void) state;

    refuser_open(&r, &c);

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        r.line = bad[i].line;
        r.n = bad[i].n;
        r.bytes = bad[i].bytes;
        assert_int_equal(pthread_create(&thread, NULL, refuse, &r), 0);

        one = vlm_store_open_redis(&c, dir, 0);
        assert_non_null(one);

        before = peak();
        (void) clock_gettime(CLOCK_MONOTONIC, &from);

        assert_int_equal(vlm_store_session_ensure(one, S("s"), &err), EDOWN);
        assert_non_null(strstr(err.text, "answers what no Redis answers"));
        assert_in_range(ms_since(&from), 0, 2 * VLM_REDIS_CALL_MS);
        assert_in_range(peak() - before, 0, bad[i].kb);

        vlm_store_close(one);
        (void) pthread_join(thread, NULL);
    }

    refuser_close(&r);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(each_refusal_of_a_redis_has_its_code),
        TEST(an_answer_beyond_all_bounds_takes_no_memory_and_no_time),
    };

    return cmocka_run_group_tests(tests, redis_start, redis_stop);
}
