/*
 * Doctor's finding about nginx: whether there is one, and whether it takes the module.
 *
 * "nginx -V" says where its files are, and "nginx -t" with a configuration of one line, in memory,
 * whether it loads the module.  Neither touches a server that runs.
 */

#define _GNU_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"

#define MODULE  "ngx_http_vlm_module.so"
#define SAID    65536                  /* bytes of what nginx prints: -V has long lines */


/* Runs a program, which writes to one pipe; its exit status, or -1. */
static int
run(char *const argv[], char *said, size_t bytes)
{
    int      fd[2], status, null;
    pid_t    pid;
    size_t   n;
    ssize_t  got;

    said[0] = '\0';

    if (pipe(fd) != 0) {
        return -1;
    }

    (void) fflush(NULL);
    pid = fork();

    if (pid == 0) {
        null = open("/dev/null", O_RDONLY);
        (void) dup2(null, 0);
        (void) dup2(fd[1], 1);
        (void) dup2(fd[1], 2);
        (void) close(fd[0]);
        (void) close(fd[1]);
        execv(argv[0], argv);
        _exit(127);
    }

    (void) close(fd[1]);

    for (n = 0; pid > 0 && n < bytes - 1; n += (size_t) got) {
        got = read(fd[0], said + n, bytes - 1 - n);

        if (got <= 0) {
            break;
        }
    }

    said[n] = '\0';
    (void) close(fd[0]);

    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        return -1;
    }

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}


/* The first nginx of PATH, or of the directories where packages and "make install" put it. */
static int
find(const char *given, char *path, size_t bytes)
{
    char         list[4096], *dir, *rest;
    const char  *env = getenv("PATH");

    if (given != NULL) {
        (void) snprintf(path, bytes, "%s", given);
        return access(path, X_OK) == 0;
    }

    (void) snprintf(list, sizeof(list), "%s:/usr/sbin:/usr/local/sbin:/usr/local/nginx/sbin",
                    env == NULL ? "" : env);

    for (dir = strtok_r(list, ":", &rest); dir != NULL; dir = strtok_r(NULL, ":", &rest)) {
        (void) snprintf(path, bytes, "%s/nginx", dir);

        if (access(path, X_OK) == 0) {
            return 1;
        }
    }

    return 0;
}


/* The value behind a word of a text, up to the next blank; "" if the word is not there. */
static void
behind(const char *text, const char *word, char *value, size_t bytes)
{
    const char  *p;

    p = strstr(text, word);
    value[0] = '\0';

    if (p != NULL) {
        p += strlen(word);
        (void) snprintf(value, bytes, "%.*s", (int) strcspn(p, " \n"), p);
    }
}


/* The user of the configuration's first line that names one; else the one of the build. */
static void
find_user(const char *conf_path, const char *built, char *user, size_t bytes)
{
    char   line[1024], name[256];
    FILE  *f;

    (void) snprintf(user, bytes, "%s", built[0] != '\0' ? built : "nobody");

    f = fopen(conf_path, "re");

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, " user %255[^ ;\t]", name) == 1) {
            (void) snprintf(user, bytes, "%s", name);
            break;
        }
    }

    if (f != NULL) {
        (void) fclose(f);
    }
}


/* Asks "nginx -V". */
static int
describe(const vlm_args_t *a, vlm_nginx_t *n, char *said)
{
    char         prefix[2048], modules[2048], conf[4096], built[256];
    char        *argv[] = { n->path, "-V", NULL };

    if (run(argv, said, SAID) != 0) {
        return -1;
    }

    behind(said, "nginx version: ", n->version, sizeof(n->version));
    behind(said, "--prefix=", prefix, sizeof(prefix));
    behind(said, "--modules-path=", modules, sizeof(modules));
    behind(said, "--conf-path=", conf, sizeof(conf));
    behind(said, "--user=", built, sizeof(built));

    if (prefix[0] == '\0') {
        (void) snprintf(prefix, sizeof(prefix), "/usr/local/nginx");
    }

    if (conf[0] == '\0') {
        (void) snprintf(conf, sizeof(conf), "%s/conf/nginx.conf", prefix);
    }

    find_user(conf, built, n->user, sizeof(n->user));

    if (a->module != NULL) {
        if (realpath(a->module, n->module) == NULL) {
            (void) snprintf(n->module, sizeof(n->module), "%s", a->module);
        }

    } else if (modules[0] != '\0') {
        (void) snprintf(n->module, sizeof(n->module), "%s/" MODULE, modules);

    } else {
        (void) snprintf(n->module, sizeof(n->module), "%s/modules/" MODULE, prefix);
    }

    return 0;
}


/* "nginx -t" with a configuration; its exit status, and what it prints. */
static int
try_conf(vlm_nginx_t *n, const char *text, char *said)
{
    int    fd, status;
    char   path[64];
    char  *argv[] = { n->path, "-t", "-q", "-e", "stderr", "-c", path, NULL };

    fd = memfd_create("nginx.conf", 0);
    if (fd == -1) {
        return -1;
    }

    (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    status = write(fd, text, strlen(text)) == (ssize_t) strlen(text) ? run(argv, said, SAID) : -1;
    (void) close(fd);

    return status;
}


/* The text behind "[emerg] " up to the end of the line, in place. */
static const char *
reason(char *said)
{
    char  *p;

    p = strstr(said, "] ");
    p = p == NULL ? said : p + 2;
    p[strcspn(p, "\n")] = '\0';

    return p[0] == '\0' ? "nginx -t fails" : p;
}


static void
say_module(vlm_doctor_t *d, char *said)
{
    char          text[4400];
    vlm_nginx_t  *n = &d->nginx;

    if (access(n->module, F_OK) == 0) {
        (void) snprintf(text, sizeof(text), "load_module \"%s\";\npid /dev/null;\nevents { }\n",
                        n->module);

        if (try_conf(n, text, said) == 0) {
            vlm_doctor_say(d, VLM_FINE, NULL, "%s loads %s", n->version, n->module);
        } else {
            vlm_doctor_say(d, VLM_STOPS, "build the module for this nginx: docs/install.md",
                           "%s does not load its module: %s", n->version, reason(said));
        }

        return;
    }

    (void) try_conf(n, "pid /dev/null;\nevents { }\nhttp { vlm_engine doctor { } }\n", said);

    if (d->args->module == NULL && strstr(said, "unknown directive") == NULL
        && strstr(said, "vlm_engine") != NULL)
    {
        vlm_doctor_say(d, VLM_FINE, NULL, "%s has the module inside", n->version);
        return;
    }

    vlm_doctor_say(d, VLM_STOPS, "apt install libnginx-mod-http-vlm, or \"make install\"; --module "
                   "FILE names it elsewhere", "%s has no %s", n->version, n->module);
}


void
vlm_doctor_nginx(vlm_doctor_t *d)
{
    char         *said;
    vlm_nginx_t  *n = &d->nginx;

    said = malloc(SAID);

    if (said == NULL || !find(d->args->nginx, n->path, sizeof(n->path))
        || describe(d->args, n, said) != 0)
    {
        vlm_doctor_say(d, VLM_STOPS, "apt install nginx; --nginx FILE names one elsewhere",
                       "no nginx %s", d->args->nginx == NULL ? "is in PATH or in its usual places"
                                                             : "runs there");
        n->path[0] = '\0';
        free(said);
        return;
    }

    say_module(d, said);
    free(said);
}
