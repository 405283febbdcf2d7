/*
 * A directory is made where the one above it is there, one that is there is left alone, and no link
 * of another user leads root elsewhere, at no moment.
 */

#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/listener.h"

#define NOBODY  65534

static char  top[64], path[96], above[96];


static int
setup(void **state)
{
    (void) state;

    strcpy(top, "/tmp/vlm-folder-XXXXXX");

    return mkdtemp(top) != NULL && chdir(top) == 0 ? 0 : -1;
}


static int
teardown(void **state)
{
    char  command[96];

    (void) state;

    (void) snprintf(command, sizeof(command), "rm -rf %s", top);

    return chdir("/") == 0 ? system(command) : -1;
}


static const char *
at(const char *name)
{
    (void) snprintf(path, sizeof(path), "%s/%s", top, name);

    return path;
}


/* The owner and mode of what the last call has opened or made. */
static struct stat
made(int fd)
{
    struct stat  st;

    assert_true(fd != -1);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(close(fd), 0);

    return st;
}


static void
a_new_one_is_its_user_s_alone(void **state)
{
    mode_t       mask = umask(0);
    vlm_err_t    err = { 0 };
    struct stat  st;
    const uid_t  user = geteuid() == 0 ? NOBODY : getuid();
    const gid_t  group = geteuid() == 0 ? NOBODY : getgid();

    (void) state;

    st = made(vlm_folder_make(at("own"), (uid_t) -1, (gid_t) -1, &err));
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, geteuid());

    st = made(vlm_folder_make(at("theirs//"), user, group, &err));
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(st.st_uid, user);
    assert_int_equal(st.st_gid, group);
    assert_string_equal(err.text, "");

    (void) umask(mask);
}


static void
one_that_is_there_keeps_its_mode_and_owner(void **state)
{
    struct stat  st;

    (void) state;

    assert_int_equal(mkdir(at("there"), 0700), 0);
    assert_int_equal(chmod(path, 0755), 0);
    st = made(vlm_folder_make(path, geteuid() == 0 ? NOBODY : getuid(), getgid(), NULL));
    assert_int_equal(st.st_mode & 07777, 0755);
    assert_int_equal(st.st_uid, geteuid());
}


static void
without_the_one_above_none_is_made(void **state)
{
    vlm_err_t  err = { 0 };

    (void) state;

    errno = 0;
    assert_int_equal(vlm_folder_make(at("none/none"), (uid_t) -1, (gid_t) -1, &err), -1);
    assert_int_equal(errno, ENOENT);
    assert_non_null(strstr(err.text, "/none/none\": No such file or directory"));
}


/* ---- links ------------------------------------------------------------------------------- */

static void
need_root(void)
{
    if (geteuid() != 0) {
        print_message("# only root does not follow links: this is not tested\n");
        skip();
    }
}


/* A directory of this user, with a mode, which holds a directory "d". */
static void
make_dir(const char *name, uid_t uid, mode_t mode)
{
    char  inner[128];

    assert_int_equal(mkdir(at(name), 0700), 0);
    (void) snprintf(inner, sizeof(inner), "%s/d", path);
    assert_int_equal(mkdir(inner, 0755), 0);
    assert_int_equal(chmod(path, mode), 0);
    assert_int_equal(chown(path, uid, (gid_t) -1), 0);
}


static void
make_link(const char *target, const char *name, uid_t uid)
{
    char  copy[96];                        /* of a path that at() has made */

    (void) snprintf(copy, sizeof(copy), "%s", target);
    assert_int_equal(symlink(copy, at(name)), 0);
    assert_int_equal(lchown(path, uid, (gid_t) -1), 0);
}


static void
opens(const char *name)
{
    vlm_err_t  err = { 0 };

    (void) made(vlm_folder_open(name[0] == '/' ? name : at(name), &err));
    assert_string_equal(err.text, "");
}


static void
refuses(const char *name, const char *component)
{
    char       text[64];
    vlm_err_t  err = { 0 };

    errno = 0;
    assert_int_equal(vlm_folder_open(at(name), &err), -1);
    assert_int_equal(errno, ELOOP);
    (void) snprintf(text, sizeof(text), "\"%s\" in \"/", component);
    assert_memory_equal(err.text, text, strlen(text));
    assert_non_null(strstr(err.text, "is a link, which is followed only if root made it"));

    assert_int_equal(vlm_folder_make(path, NOBODY, NOBODY, NULL), -1);
    assert_int_equal(errno, ELOOP);
}


static void
a_link_is_followed_if_only_root_can_have_made_it(void **state)
{
    struct stat  st;

    (void) state;
    need_root();

    make_dir("safe", 0, 0755);
    make_link("../safe/d", "safe/up", 0);
    make_link("up", "safe/twice", 0);
    make_link(at("safe"), "safe/whole", 0);
    opens("safe/up");
    opens("safe/twice/../d");
    opens("safe/whole/twice");
    opens("safe/whole/./whole//d/");
    make_link("../safe/to-come", "safe/dangling", 0);
    assert_int_equal(vlm_folder_open(at("safe/dangling"), NULL), -1);
    assert_int_equal(errno, ENOENT);

    if (lstat("/var/run", &st) == 0 && S_ISLNK(st.st_mode)) {
        opens("/var/run");
    }

    make_link("loop", "safe/loop", 0);
    refuses("safe/loop", "loop");
    make_link("d", "safe/foreign", NOBODY);
    refuses("safe/foreign", "foreign");
    refuses("safe/whole/foreign/x", "foreign");
}


static void
a_link_in_a_directory_that_others_write_is_refused(void **state)
{
    (void) state;
    need_root();

    make_dir("theirs-all", NOBODY, 0755);
    make_dir("sticky", 0, 01777);
    make_dir("group", 0, 0775);
    make_link("d", "theirs-all/link", 0);
    make_link("d", "sticky/link", 0);
    make_link("d", "group/link", 0);

    opens("theirs-all/d");
    opens("sticky/d");
    refuses("theirs-all/link", "link");
    refuses("sticky/link", "link");
    refuses("group/link/../d", "link");

    /* A path that root trusts ends in one that it does not. */

    make_link(at("theirs-all/link"), "safe/out", 0);
    refuses("safe/out", "link");
}


static void
a_path_of_another_kind_is_no_directory(void **state)
{
    char         many[8192];
    const char  *name;

    (void) state;

    assert_int_equal(close(mkstemp(strcpy(path, "plainXXXXXX"))), 0);
    assert_int_equal(vlm_folder_open(path, NULL), -1);
    assert_int_equal(errno, ENOTDIR);
    strcat(path, "/below");
    assert_int_equal(vlm_folder_open(path, NULL), -1);
    assert_int_equal(errno, ENOTDIR);

    memset(many, 'x', sizeof(many));
    many[sizeof(many) - 1] = '\0';
    assert_int_equal(vlm_folder_open(many, NULL), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(vlm_folder_make(many, NOBODY, NOBODY, NULL), -1);
    assert_int_equal(errno, ENAMETOOLONG);

    assert_int_equal(close(vlm_folder_above("name", &name, NULL)), 0);
    assert_string_equal(name, "name");
    assert_int_equal(close(vlm_folder_above("/name", &name, NULL)), 0);
    assert_string_equal(name, "name");
}


/* ---- files and sockets ------------------------------------------------------------------- */

static void
a_file_that_is_there_is_given_to_no_one(void **state)
{
    int          dir;
    struct stat  st;

    (void) state;
    need_root();

    make_dir("files", NOBODY, 0755);
    dir = vlm_folder_open(at("files"), NULL);

    assert_int_equal(vlm_folder_file_at(dir, "new", NOBODY, NOBODY), 0);
    assert_int_equal(fstatat(dir, "new", &st, 0), 0);
    assert_int_equal(st.st_uid, NOBODY);
    assert_int_equal(st.st_mode & 07777, 0600);

    assert_int_equal(close(open(at("secret"), O_WRONLY|O_CREAT, 0640)), 0);
    assert_int_equal(linkat(AT_FDCWD, path, dir, "hard", 0), 0);
    assert_int_equal(symlinkat(path, dir, "soft"), 0);
    assert_int_equal(symlinkat("nowhere", dir, "open"), 0);
    assert_int_equal(vlm_folder_file_at(dir, "hard", NOBODY, NOBODY), EEXIST);
    assert_int_equal(vlm_folder_file_at(dir, "soft", NOBODY, NOBODY), EEXIST);
    assert_int_equal(vlm_folder_file_at(dir, "open", NOBODY, NOBODY), EEXIST);
    assert_int_equal(fstatat(dir, "nowhere", &st, 0), -1);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 07777, 0640);

    /* Nor does a directory's name that another user has taken lead elsewhere. */

    assert_int_equal(symlinkat(top, dir, "uploads"), 0);
    assert_int_equal(vlm_folder_make_at(dir, "uploads", NOBODY, NOBODY), -1);
    assert_int_equal(stat(top, &st), 0);
    assert_int_equal(st.st_uid, 0);

    assert_int_equal(close(dir), 0);
}


static int
listen_at(const char *name)
{
    struct sockaddr_un  a = { .sun_family = AF_UNIX };

    strcpy(a.sun_path, at(name));

    return vlm_listener_open((struct sockaddr *) &a, sizeof(a), 1);
}


static void
a_socket_is_given_once(void **state)
{
    int  fd, dir;

    (void) state;
    need_root();

    make_dir("sockets", NOBODY, 0755);
    dir = vlm_folder_open(at("sockets"), NULL);
    fd = listen_at("sockets/s");

    assert_int_equal(vlm_folder_socket_at(dir, "none", NOBODY), ENOENT);
    assert_int_equal(vlm_folder_socket_at(dir, "d", NOBODY), ENOTSOCK);
    assert_int_equal(vlm_folder_socket_at(dir, "s", (uid_t) -1), 0);
    assert_int_equal(vlm_folder_socket_at(dir, "s", NOBODY), EPERM);

    assert_int_equal(symlinkat("s", dir, "soft"), 0);
    assert_int_equal(vlm_folder_give_socket(dir, "soft", NOBODY, NOBODY), ENOTSOCK);
    assert_int_equal(linkat(dir, "s", dir, "hard", 0), 0);
    assert_int_equal(vlm_folder_give_socket(dir, "s", NOBODY, NOBODY), EPERM);
    assert_int_equal(unlinkat(dir, "hard", 0), 0);

    assert_int_equal(vlm_folder_give_socket(dir, "s", NOBODY, NOBODY), 0);
    assert_int_equal(vlm_folder_socket_at(dir, "s", NOBODY), 0);
    assert_int_equal(vlm_folder_give_socket(dir, "s", NOBODY, NOBODY), EPERM);
    assert_int_equal(fchmodat(dir, "s", 0666, 0), 0);
    assert_int_equal(vlm_folder_socket_at(dir, "s", NOBODY), EPERM);

    assert_int_equal(close(fd), 0);
    assert_int_equal(close(dir), 0);
}


/* ---- races ------------------------------------------------------------------------------- */

/* As nobody: puts a link to root's directory and one of its own in turn under the names that root
   is about to use, until it is killed. */
static pid_t
begin_attack(const char *dir, const char *victim)
{
    pid_t  pid = fork();

    if (pid != 0) {
        return pid;
    }

    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0 || chdir(dir) != 0
        || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    {
        _exit(1);
    }

    for ( ;; ) {
        (void) symlink(victim, "link");
        (void) rename("link", "walk");
        (void) rename("store", "aside");
        (void) symlink(victim, "store");
        (void) unlink("store");
        (void) rmdir("aside");
        (void) unlink("walk");
        (void) mkdir("walk", 0755);
        (void) mkdir("walk/store", 0755);
        (void) rmdir("walk/store");
        (void) rmdir("walk");
    }
}


static void
no_race_gives_root_s_directory_away(void **state)
{
    int          i, dir, fd, n_made = 0;
    char         victim[96], inside[sizeof(victim) + 8];
    pid_t        pid;
    struct stat  st;

    (void) state;
    need_root();

    assert_int_equal(chmod(top, 0755), 0);
    make_dir("victim", 0, 0755);
    strcpy(victim, path);
    make_dir("attack", NOBODY, 0755);
    strcpy(above, path);
    dir = vlm_folder_open(above, NULL);
    pid = begin_attack(above, victim);
    assert_true(pid > 0);

    for (i = 0; i < 20000 || (n_made == 0 && i < 2000000); i++) {
        fd = vlm_folder_make(at(i & 1 ? "attack/walk/store" : "attack/store"), NOBODY, NOBODY,
                             NULL);

        if (fd != -1) {
            n_made++;
            assert_int_equal(close(fd), 0);
        }

        (void) vlm_folder_file_at(dir, "walk", NOBODY, NOBODY);

        assert_int_equal(stat(victim, &st), 0);
        assert_int_equal(st.st_uid, 0);
        (void) snprintf(inside, sizeof(inside), "%s/store", victim);
        assert_int_equal(lstat(inside, &st), -1);
    }

    assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(close(dir), 0);
    assert_true(n_made > 0);
}


static void
check_new(const char *name, int is_new, const char *dir)
{
    assert_int_equal(vlm_folder_is_new(name, above, sizeof(above)), is_new);
    assert_string_equal(above, dir);
}


static void
a_new_one_is_told_from_one_that_cannot_be_made(void **state)
{
    char  dir[80], tight[8];

    (void) state;

    (void) snprintf(dir, sizeof(dir), "%s/", top);

    check_new(at("n"), 1, dir);
    check_new(at("n/"), 1, dir);
    check_new(at("n//"), 1, dir);
    check_new("n", 1, ".");
    check_new("n/", 1, ".");
    check_new("/vlm-folder-none", 1, "/");

    check_new(at("n/n"), 0, "");
    check_new(top, 0, "");
    check_new("/", 0, "");
    check_new("", 0, "");

    assert_int_equal(close(mkstemp(strcpy(path, "fileXXXXXX"))), 0);
    check_new(path, 0, "");

    strcat(path, "/n");
    check_new(path, 0, "");

    assert_int_equal(vlm_folder_is_new(at("n"), tight, sizeof(tight)), 0);
    assert_string_equal(tight, "");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_new_one_is_its_user_s_alone),
        cmocka_unit_test(one_that_is_there_keeps_its_mode_and_owner),
        cmocka_unit_test(without_the_one_above_none_is_made),
        cmocka_unit_test(a_link_is_followed_if_only_root_can_have_made_it),
        cmocka_unit_test(a_link_in_a_directory_that_others_write_is_refused),
        cmocka_unit_test(a_path_of_another_kind_is_no_directory),
        cmocka_unit_test(a_file_that_is_there_is_given_to_no_one),
        cmocka_unit_test(a_socket_is_given_once),
        cmocka_unit_test(no_race_gives_root_s_directory_away),
        cmocka_unit_test(a_new_one_is_told_from_one_that_cannot_be_made),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
