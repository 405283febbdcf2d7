/*
 * Doctor's finding about the user of nginx's workers, who reads the model's files and writes the
 * quantised cache: root tries it as that user, in a child; any other user can only try as itself.
 */

#define _GNU_SOURCE

#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"

#define READS   1                      /* of the child's exit status */
#define WRITES  2


/* As the user: 0, or -1 and the reason. */
static int
try_files(const vlm_doctor_t *d, vlm_err_t *err)
{
    vlm_t       *v;
    vlm_conf_t   conf = d->args->conf;
    vlm_plan_t   plan;

    conf.lora = NULL;
    conf.memory = 0;
    conf.device = "cpu";
    conf.ops = NULL;
    v = vlm_open(&conf, err);

    if (v == NULL) {
        return -1;
    }

    vlm_close(v);

    return vlm_plan(&conf, &plan, err);
}


/* In a child: takes the user, tries, and leaves its sentence in the pipe. */
static void
be_user(const vlm_doctor_t *d, const struct passwd *pw, const char *dir, int fd)
{
    int        status;
    vlm_err_t  err = { VLM_OK, "" };

    if (setgid(pw->pw_gid) != 0 || initgroups(pw->pw_name, pw->pw_gid) != 0
        || setuid(pw->pw_uid) != 0)
    {
        _exit(READS | WRITES);         /* a container without that right: nothing was tried */
    }

    status = try_files(d, &err) == 0 ? READS : 0;
    status |= dir == NULL || access(dir, W_OK) == 0 ? WRITES : 0;

    if (write(fd, err.text, strlen(err.text)) < 0) {
        _exit(status);
    }

    _exit(status);
}


/* The child's exit status, and its sentence. */
static int
ask_as(const vlm_doctor_t *d, const struct passwd *pw, const char *dir, char *text, size_t bytes)
{
    int      fd[2], status;
    pid_t    pid;
    ssize_t  n;

    text[0] = '\0';
    status = 0;

    if (pipe(fd) != 0) {
        return READS | WRITES;
    }

    (void) fflush(NULL);               /* the child has copies of what is not written yet */
    pid = fork();

    if (pid == 0) {
        (void) close(fd[0]);
        be_user(d, pw, dir, fd[1]);
    }

    (void) close(fd[1]);

    while (pid > 0 && (n = read(fd[0], text, bytes - 1)) > 0) {
        text[n] = '\0';
    }

    (void) close(fd[0]);

    if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status)) {
        return READS | WRITES;
    }

    return WEXITSTATUS(status);
}


static void
say_user(vlm_doctor_t *d, const struct passwd *pw)
{
    int                status, written;
    char               text[480];
    vlm_cache_t        cache;
    vlm_cache_state_t  state;

    state = d->planned ? vlm_cli_cache(&d->args->conf, d->config, &d->plan, &cache)
                       : VLM_CACHE_NONE;
    written = (state == VLM_CACHE_ABSENT || state == VLM_CACHE_STALE) && cache.above[0] == '\0';
    status = ask_as(d, pw, written ? cache.dir : NULL, text, sizeof(text));

    if (!(status & READS)) {
        vlm_doctor_say(d, VLM_STOPS, "let that user read every file of the model, and search each "
                       "directory above it", "%s, the user of nginx's workers, cannot read the "
                       "model: %s", pw->pw_name, text);
        return;
    }

    vlm_doctor_say(d, VLM_FINE, NULL, "%s, the user of nginx's workers, can read the model",
                   pw->pw_name);

    if (!(status & WRITES)) {
        vlm_doctor_say(d, VLM_WARNS, "let that user write there, or name a directory of its own "
                       "with cache", "%s cannot write the quantised cache into \"%s\", so that "
                       "each start quantises the weights", pw->pw_name, cache.dir);
    }
}


void
vlm_doctor_user(vlm_doctor_t *d)
{
    const char           *name;
    const struct passwd  *pw;

    name = d->args->user != NULL ? d->args->user : d->nginx.user;

    if (!d->tokens || !d->whole || name[0] == '\0') {
        return;
    }

    pw = getpwnam(name);

    if (pw == NULL) {
        vlm_doctor_say(d, VLM_STOPS, "add the user, or name another one with \"user\" in "
                       "nginx.conf", "there is no user %s, as whom nginx's workers would run",
                       name);

    } else if (getuid() != 0 && getuid() != pw->pw_uid) {
        vlm_doctor_say(d, VLM_WARNS, "run this command as root, or as that user", "it was not "
                       "tried whether %s, the user of nginx's workers, can read the model", name);

    } else {
        say_user(d, pw);
    }
}
