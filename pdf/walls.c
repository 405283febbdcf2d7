/* The walls around the process that reads a stranger's PDF. */

#define _GNU_SOURCE

#include "pdf.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/landlock.h>

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

#define WRITES    (O_ACCMODE | O_CREAT | O_TRUNC)      /* of an open file's flags, O_RDONLY is 0 */

/* The registers of openat() in a signal's context. */
#if defined(__x86_64__)
enum { DIRECTORY = REG_RDI, PATH = REG_RSI, FLAGS = REG_RDX, RESULT = REG_RAX };
#define REGISTERS(u)  ((u)->uc_mcontext.gregs)
#elif defined(__aarch64__)
enum { DIRECTORY, PATH, FLAGS, RESULT = 0 };
#define REGISTERS(u)  ((u)->uc_mcontext.regs)
#endif

/* Directories of fonts and of poppler's tables for East Asian encodings. */
static const char *const  READABLE[] = {
    "/etc/fonts", "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/fontconfig",
    "/usr/share/poppler", "/var/cache/fontconfig"
};

/* Reading, memory and time.  Opening for reading and memory without code are added below. */
static const int  ALLOWED[] = {
    SCMP_SYS(read), SCMP_SYS(pread64), SCMP_SYS(readv), SCMP_SYS(write), SCMP_SYS(writev),
    SCMP_SYS(close), SCMP_SYS(fstat), SCMP_SYS(newfstatat), SCMP_SYS(stat), SCMP_SYS(lstat),
    SCMP_SYS(statx), SCMP_SYS(lseek), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getdents64), SCMP_SYS(statfs),
    SCMP_SYS(fstatfs), SCMP_SYS(fadvise64), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise),
    SCMP_SYS(brk), SCMP_SYS(futex), SCMP_SYS(exit),
    SCMP_SYS(exit_group), SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(getpid),
    SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid), SCMP_SYS(getegid),
    SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(getrandom), SCMP_SYS(sysinfo),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_yield), SCMP_SYS(getrusage), SCMP_SYS(uname)
};


static int
fail(char *text, size_t bytes, const char *what)
{
    snprintf(text, bytes, "%s: %s", what, strerror(errno));

    return -1;
}


/* A limit that is lower already stays. */
static int
limit(int resource, rlim_t n)
{
    struct rlimit  now;

    if (getrlimit(resource, &now)) {
        return -1;
    }

    now.rlim_max = now.rlim_max < n ? now.rlim_max : n;
    now.rlim_cur = now.rlim_max;

    return setrlimit(resource, &now);
}


/* With a file size of 0 nothing can grow; the frames go to a pipe, which has no size. */
static int
set_limits(const pdf_job_t *job)
{
    return limit(RLIMIT_AS, job->memory) | limit(RLIMIT_CPU, job->seconds)
           | limit(RLIMIT_FSIZE, 0) | limit(RLIMIT_NOFILE, 64) | limit(RLIMIT_CORE, 0)
           | limit(RLIMIT_MEMLOCK, 0);
}


/* Everything of a file system that the kernel's Landlock can forbid. */
static uint64_t
landlock_rights(int abi)
{
    uint64_t  rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;    /* the first version's */

    if (abi >= 2) {
        rights |= 1ull << 13;                                     /* REFER */
    }

    if (abi >= 3) {
        rights |= 1ull << 14;                                     /* TRUNCATE */
    }

    return rights;
}


static int
allow_reading(int ruleset, const char *dir)
{
    int                               rc;
    struct landlock_path_beneath_attr  rule = {
        .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR
    };

    rule.parent_fd = open(dir, O_PATH | O_CLOEXEC);

    if (rule.parent_fd < 0) {
        return errno == ENOENT ? 0 : -1;
    }

    rc = (int) syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(rule.parent_fd);

    return rc;
}


static int
set_landlock(const char *more, char *text, size_t bytes)
{
    int                              abi, ruleset;
    size_t                           i;
    struct landlock_ruleset_attr     attr = { 0 };

    abi = (int) syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);

    if (abi < 1) {
        return fail(text, bytes, "this kernel has no Landlock, and sandbox=seccomp is not set");
    }

    attr.handled_access_fs = landlock_rights(abi);
    ruleset = (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);

    if (ruleset < 0) {
        return fail(text, bytes, "Landlock");
    }

    for (i = 0; i < COUNT(READABLE); i++) {
        if (allow_reading(ruleset, READABLE[i])) {
            return fail(text, bytes, READABLE[i]);
        }
    }

    if (more != NULL && allow_reading(ruleset, more)) {
        return fail(text, bytes, more);
    }

    if (syscall(SYS_landlock_restrict_self, ruleset, 0)) {
        return fail(text, bytes, "Landlock");
    }

    close(ruleset);

    return 0;
}


/* ---- system calls that seccomp stops ------------------------------------------------------- */

#ifdef REGISTERS

static void
note_denied(const char *path)
{
    const uint32_t  n = pdf_hint->n_denied++;

    if (n < PDF_DENIED) {
        (void) memccpy(pdf_hint->denied[n], path, '\0', PDF_DENIED_PATH - 1);
    }
}


/*
 * Makes the openat() that was stopped, to see what comes of it.  The kernel decides about the file
 * at this one time, so the note is true.  A process that has been taken over can use the tag or
 * take the note back, and is denied the file all the same.
 */
static int
open_for_reading(ucontext_t *u)
{
    int  fd, saved = errno;

    if ((REGISTERS(u)[FLAGS] & WRITES) != O_RDONLY) {
        return -1;
    }

    fd = (int) syscall(SYS_openat, REGISTERS(u)[DIRECTORY], REGISTERS(u)[PATH],
                       REGISTERS(u)[FLAGS], 0, PDF_OPEN_TAG);

    if (fd < 0 && errno == EACCES) {
        note_denied((const char *) (uintptr_t) REGISTERS(u)[PATH]);
    }

    REGISTERS(u)[RESULT] = fd < 0 ? -errno : fd;
    errno = saved;

    return 0;
}

#endif


/* The call was not made.  The number of a forbidden one is a hint for the parent's sentence. */
static void
on_stopped(int signo, siginfo_t *info, void *context)
{
    (void) signo;
    (void) context;

#ifdef REGISTERS
    if (info->si_syscall == SYS_openat && open_for_reading(context) == 0) {
        return;
    }
#endif

    pdf_hint->call = info->si_syscall + 1;
    _exit(1);
}


static int
allow_opening(scmp_filter_ctx filter)
{
    const struct scmp_arg_cmp  reads = SCMP_A2(SCMP_CMP_MASKED_EQ, WRITES, O_RDONLY);

#ifdef REGISTERS
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 2, reads,
                            SCMP_A4(SCMP_CMP_EQ, PDF_OPEN_TAG, 0));
#else
    return seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1, reads);
#endif
}


static int
set_seccomp(void)
{
    int               rc;
    size_t            i;
    struct sigaction  action;
    scmp_filter_ctx   filter;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = on_stopped;
    action.sa_flags = SA_SIGINFO;
    filter = seccomp_init(SCMP_ACT_TRAP);

    if (filter == NULL || sigaction(SIGSYS, &action, NULL)) {
        return -1;
    }

    rc = 0;

    for (i = 0; i < COUNT(ALLOWED); i++) {
        rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, ALLOWED[i], 0);
    }

    rc |= allow_opening(filter);
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1,
                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1,
                           SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                           SCMP_A1(SCMP_CMP_EQ, F_GETFL, 0));
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                           SCMP_A1(SCMP_CMP_EQ, F_GETFD, 0));
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                           SCMP_A1(SCMP_CMP_EQ, F_SETFD, 0));
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                           SCMP_A1(SCMP_CMP_EQ, F_DUPFD_CLOEXEC, 0));

    /* C's library asks what kind of file its output is, and abort() sends itself a signal. */
    rc |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOTTY), SCMP_SYS(ioctl), 0);
    rc |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                           SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t) getpid(), 0));

    rc = rc == 0 ? seccomp_load(filter) : rc;
    seccomp_release(filter);
    errno = rc < 0 ? -rc : 0;

    return rc;
}


int
pdf_walls(const pdf_job_t *job, const char *more, char *text, size_t bytes)
{
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)) {
        return fail(text, bytes, "prctl()");
    }

    if (!job->seccomp_alone && set_landlock(more, text, bytes)) {
        return -1;
    }

    if (set_limits(job)) {
        return fail(text, bytes, "setrlimit()");
    }

    if (set_seccomp()) {
        return fail(text, bytes, "seccomp");
    }

    return 0;
}


void
pdf_call_name(int number, char *text, size_t bytes)
{
    char  *name;

    name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);

    if (name != NULL) {
        snprintf(text, bytes, "%s()", name);
    } else {
        snprintf(text, bytes, "number %d", number);
    }

    free(name);
}
