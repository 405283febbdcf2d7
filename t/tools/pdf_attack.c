/*
 * vlm-pdf as if a file had taken poppler over: behind the walls, in place of opening the document,
 * it makes the system calls that the file's last line names.  Everything else is vlm-pdf's own.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poppler.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>


static int
try_socket(const char *path)
{
    (void) path;

    return socket(AF_INET, SOCK_STREAM, 0);
}


static int
try_execve(const char *path)
{
    (void) path;

    return execl("/bin/sh", "sh", "-c", "exit 7", (char *) NULL);
}


static int
try_kill(const char *path)
{
    (void) path;

    return kill(getpid(), SIGKILL);
}


static int
try_fork(const char *path)
{
    (void) path;

    return fork();
}


static int
try_ptrace(const char *path)
{
    (void) path;

    return (int) ptrace(PTRACE_TRACEME, 0, 0, 0);
}


static int
try_code(const char *path)
{
    (void) path;

    return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
           == MAP_FAILED ? -1 : 0;
}


static int
try_writing(const char *path)
{
    (void) path;

    return open("/etc/passwd", O_WRONLY | O_APPEND);
}


static int
try_open(const char *path)
{
    return open(path, O_RDONLY);
}


/* The call itself, without C's library. */
static int
try_openat(const char *path)
{
    return (int) syscall(SYS_openat, AT_FDCWD, path, O_RDONLY);
}


/* No address of the process. */
static int
try_nothing(const char *path)
{
    (void) path;

    return open((const char *) 8, O_RDONLY);
}


static int
try_flood(const char *path)
{
    int  i, rc = -1;

    for (i = 0; i < 100000 && rc < 0; i++) {
        rc = open(path, O_RDONLY);
    }

    return rc;
}


static int
attempt(const char *name, const char *path)
{
    size_t  i;
    const struct {
        const char  *name;
        int        (*call)(const char *path);
    } calls[] = {
        { "socket", try_socket }, { "execve", try_execve }, { "kill", try_kill },
        { "fork", try_fork }, { "ptrace", try_ptrace }, { "code", try_code },
        { "writing", try_writing }, { "open", try_open }, { "openat", try_openat },
        { "nothing", try_nothing }, { "flood", try_flood }
    };

    for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (strcmp(name, calls[i].name) == 0) {
            return calls[i].call(path);
        }
    }

    errno = ENOSYS;

    return -1;
}


typedef struct {
    char  name[40], how[40], path[2000];
} attack_t;


/* The last line: "%NAME HOW PATH". */
static int
last_line(int fd, attack_t *attack)
{
    char         text[3000] = "";
    const char  *line;
    const off_t  most = sizeof(text) - 1;
    struct stat  st;

    memset(attack, 0, sizeof(*attack));

    if (fstat(fd, &st) || pread(fd, text, (size_t) most,
                                st.st_size < most ? 0 : st.st_size - most) < 1)
    {
        return -1;
    }

    line = memrchr(text, '%', sizeof(text));

    return line != NULL && sscanf(line, "%%%39s %39s %1999[^\n]", attack->name, attack->how,
                                  attack->path) >= 2 ? 0 : -1;
}


/* poppler's function, which is called next behind the walls. */
PopplerDocument *
poppler_document_new_from_bytes(GBytes *bytes, const char *password, GError **error)
{
    int        rc;
    void      *real;
    attack_t   attack;
    PopplerDocument *(*function)(GBytes *bytes, const char *password, GError **error);

    if (last_line(0, &attack)) {
        g_set_error(error, POPPLER_ERROR, POPPLER_ERROR_INVALID, "no attack");
        return NULL;
    }

    rc = attempt(attack.name, attack.path);

    if (rc >= 0 || strcmp(attack.how, "says") == 0) {
        g_set_error(error, POPPLER_ERROR, POPPLER_ERROR_INVALID, "%s: %s", attack.name,
                    rc < 0 ? strerror(errno) : "it was not denied");
        return NULL;
    }

    /* Goes on as if nothing had been. */
    real = dlsym(RTLD_NEXT, "poppler_document_new_from_bytes");
    memcpy(&function, &real, sizeof(function));

    return function(bytes, password, error);
}
