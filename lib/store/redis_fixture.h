
/*
 * A Redis for tests: a server of its own on a unix socket, which a test may stop, kill and start
 * again.  Without redis-server the tests fail.
 */


#ifndef _VLM_STORE_REDIS_FIXTURE_H_INCLUDED_
#define _VLM_STORE_REDIS_FIXTURE_H_INCLUDED_


#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/redis.h"
#include "store/store.h"


#define REDIS_PATIENCE  60                 /* s, for a server to start */


static pid_t             redis_pid = -1;
static char              redis_dir[64];
static char              redis_socket[96];
static vlm_redis_conf_t  redis_conf;


static inline int
redis_connect(void)
{
    int                 fd;
    struct sockaddr_un  sun;

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;
    memcpy(sun.sun_path, redis_socket, strlen(redis_socket));

    fd = socket(AF_UNIX, SOCK_STREAM, 0);

    if (fd != -1 && connect(fd, (struct sockaddr *) &sun, sizeof(sun)) != 0) {
        (void) close(fd);
        fd = -1;
    }

    return fd;
}


/* a command that no script may run, with its line's end; the first byte of the answer, or 0 */

static inline char
redis_command(const char *line)
{
    int   fd;
    char  first;

    first = 0;
    fd = redis_connect();

    if (fd != -1) {

        if (write(fd, line, strlen(line)) != (ssize_t) strlen(line) || read(fd, &first, 1) != 1) {
            first = 0;
        }

        (void) close(fd);
    }

    return first;
}


static inline int
redis_listens(void)
{
    return redis_command("PING\r\n") != 0;
}


/* with more arguments for the server, the last NULL; 0, or -1 */

static inline int
redis_run(char *const more[])
{
    int              i, n;
    char            *argv[32];
    struct timespec  pause = { 0, 10 * 1000000 };

    char *const  usual[] = { "redis-server", "--port", "0", "--unixsocket", redis_socket, "--dir",
                             redis_dir, "--save", "", "--logfile", "redis.log" };

    for (n = 0; n < (int) (sizeof(usual) / sizeof(usual[0])); n++) {
        argv[n] = usual[n];
    }

    for (i = 0; more != NULL && more[i] != NULL && n < 31; i++) {
        argv[n++] = more[i];
    }

    argv[n] = NULL;
    redis_pid = fork();

    if (redis_pid == 0) {
        (void) execvp(argv[0], argv);
        _exit(127);
    }

    for (i = 0; i < REDIS_PATIENCE * 100; i++) {

        if (redis_listens()) {
            return 0;
        }

        if (waitpid(redis_pid, NULL, WNOHANG) == redis_pid) {
            fprintf(stderr, "redis-server does not run: t/deps test installs it\n");
            redis_pid = -1;
            return -1;
        }

        (void) nanosleep(&pause, NULL);
    }

    return -1;
}


static inline void
redis_kill(void)
{
    if (redis_pid != -1) {
        (void) kill(redis_pid, SIGCONT);
        (void) kill(redis_pid, SIGKILL);
        (void) waitpid(redis_pid, NULL, 0);
        redis_pid = -1;
    }

    (void) unlink(redis_socket);
}


/* the first server and its address */

static inline int
redis_start(void **state)
{
    char  url[128];

    (void) state;
    (void) signal(SIGPIPE, SIG_IGN);

    strcpy(redis_dir, "/tmp/vlm-redis-XXXXXX");

    if (mkdtemp(redis_dir) == NULL) {
        return -1;
    }

    (void) snprintf(redis_socket, sizeof(redis_socket), "%s/socket", redis_dir);
    (void) snprintf(url, sizeof(url), "redis://unix:%s:/1", redis_socket);

    return vlm_redis_parse(url, &redis_conf, NULL) == VLM_STORE_OK ? redis_run(NULL) : -1;
}


static inline int
redis_stop(void **state)
{
    char  path[128];

    (void) state;

    if (redis_dir[0] == '\0') {
        return 0;
    }

    redis_kill();

    (void) snprintf(path, sizeof(path), "%s/redis.log", redis_dir);
    (void) unlink(path);
    (void) rmdir(redis_dir);

    redis_socket[0] = '\0';

    return 0;
}


#if (VLM_HIREDIS)

/* runs a script on a connection of its own, with arguments that are no keys; the first item of its
   answer as a number, or 0 */

static inline long long
redis_script(const char *script, const char *arg)
{
    long long          n;
    vlm_redis_t       *r;
    vlm_store_text_t   text;
    vlm_redis_reply_t  reply;

    n = -1;
    text = vlm_store_string(arg);
    r = vlm_redis_new(&redis_conf);

    if (r != NULL && vlm_redis_eval(r, script, &text, 1, 0, &reply, NULL) == VLM_STORE_OK) {
        n = reply.n > 0 && reply.item[0].data != NULL ? strtoll(reply.item[0].data, NULL, 10) : 0;
        vlm_redis_reply_free(&reply);
    }

    if (r != NULL) {
        vlm_redis_free(r);
    }

    return n;
}

#else

static inline long long
redis_script(const char *script, const char *arg)
{
    (void) script;
    (void) arg;

    return -1;
}

#endif


#endif /* _VLM_STORE_REDIS_FIXTURE_H_INCLUDED_ */
