/*
 * Linked into a vlm-pdf that is built with the sanitizers.  Its walls are the real ones, but for a
 * limit and a system call.  A report ends the process, as a crash does.
 */

#define _GNU_SOURCE

#include <dlfcn.h>
#include <seccomp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *__asan_default_options(void);
int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);


/* The server starts vlm-pdf without environment.  Leaks are looked for by ptrace(). */
const char *
__asan_default_options(void)
{
    return "detect_leaks=0:symbolize=0";
}


/* The sanitizers reserve more addresses than vlm-pdf may have. */
int
setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return resource == RLIMIT_AS ? 0 : (int) syscall(SYS_prlimit64, 0, resource, limit, NULL);
}


/* They ask for the signals' stack before each call that does not return, such as _exit(). */
int
seccomp_load(const scmp_filter_ctx filter)
{
    int    rc = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(sigaltstack), 0);
    void  *real = dlsym(RTLD_NEXT, "seccomp_load");
    int  (*load)(const scmp_filter_ctx filter);

    memcpy(&load, &real, sizeof(load));

    return rc < 0 ? rc : load(filter);
}
