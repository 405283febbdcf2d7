
/*
 * The store with errors of the system: a directory without its rights, a full disk, a database that
 * is invalid, damaged, of another version, or moved away.  Each gives a sentence, and nothing else
 * is lost.
 */


#define _GNU_SOURCE

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "store/store_fixture.h"
#include "store/documents_fixture.h"


/* runs as a user with read access only; root may always write */

static int
as_nobody(int (*run)(err_t *err), err_t *err)
{
    int    fd[2], rc;
    pid_t  pid;

    assert_int_equal(pipe(fd), 0);

    pid = fork();
    assert_true(pid != -1);

    if (pid == 0) {

        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) {
            _exit(99);
        }

        rc = run(err);

        if (write(fd[1], err, sizeof(*err)) != sizeof(*err)) {
            _exit(98);
        }

        _exit(rc);
    }

    (void) close(fd[1]);
    assert_int_equal(read(fd[0], err, sizeof(*err)), sizeof(*err));
    (void) close(fd[0]);

    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_true(WIFEXITED(rc));

    return WEXITSTATUS(rc);
}


static int
create_one(err_t *err)
{
    int       rc;
    char      id[37];
    store_t  *st;

    st = vlm_store_open(dir);
    rc = vlm_store_session_create(st, 0, id, err);
    vlm_store_close(st);

    return rc;
}


static int
upload_one(err_t *err)
{
    int       rc;
    file_t    file;
    store_t  *st;

    st = vlm_store_open(dir);
    rc = vlm_store_result_add(st, "x", 1, S("x.png"), "pointing",
                              &file, err);
    vlm_store_close(st);

    return rc;
}


static int
add_one(err_t *err)
{
    int       rc;
    doc_t     doc;
    store_t  *st;

    st = vlm_store_open(dir);
    rc = add(st, "s", "x", "x.pdf", 0, &doc, err);
    vlm_store_close(st);

    return rc;
}


static void
a_directory_that_cannot_be_written_is_reported(void **state)
{
    int    i;
    char   path[128];
    err_t  err;

    (void) state;

    /* without a database, then with one that others made */

    for (i = 0; i < 2; i++) {

        (void) snprintf(path, sizeof(path), "%s/results", dir);
        assert_int_equal(chmod(path, 0555), 0);
        assert_int_equal(chmod(dir, 0555), 0);

        memset(&err, 0, sizeof(err));
        assert_int_equal(as_nobody(create_one, &err),
                         VLM_STORE_EREADONLY);
        assert_non_null(strstr(err.text, "cannot be written"));
        assert_non_null(strstr(err.text, dir));

        assert_int_equal(as_nobody(upload_one, &err),
                         VLM_STORE_EREADONLY);
        assert_non_null(strstr(err.text, "cannot be written"));

        if (i == 1) {
            assert_int_equal(as_nobody(add_one, &err), VLM_STORE_EREADONLY);
            assert_non_null(strstr(err.text, "cannot be written"));
        }

        assert_int_equal(chmod(dir, 0700), 0);
        assert_int_equal(chmod(path, 0700), 0);

        assert_int_equal(create_one(&err), OK);
        assert_int_equal(add_one(&err), OK);
    }
}


static void
tell(const char *path, const char *text)
{
    int  fd;

    fd = open(path, O_WRONLY);

    if (fd != -1) {
        (void) !write(fd, text, strlen(text));
        (void) close(fd);
    }
}


/* a small file system of our own at dir, where the system lets us have one */

static int
small_disk(void)
{
    char  uid[32], gid[32];

    (void) snprintf(uid, sizeof(uid), "0 %d 1", (int) geteuid());
    (void) snprintf(gid, sizeof(gid), "0 %d 1", (int) getegid());

    if (unshare(CLONE_NEWUSER|CLONE_NEWNS) != 0) {
        return -1;
    }

    tell("/proc/self/setgroups", "deny");
    tell("/proc/self/uid_map", uid);
    tell("/proc/self/gid_map", gid);

    return mount("none", dir, "tmpfs", 0, "size=512k");
}


static int
only_one_folder(void)
{
    int   n;
    char  command[128];

    (void) snprintf(command, sizeof(command), "test $(ls %s/documents | wc -l) = 1", dir);
    n = system(command);

    return n;
}


static int
fill_up(err_t *err)
{
    int       i, rc, used;
    doc_t     doc, more, docs[VLM_DOCUMENT_MAX];
    page_t    page;
    char     *big;
    char      id[37];
    turn_t    t;
    size_t    n;
    file_t    file;
    store_t  *st;

    if (small_disk() != 0) {
        return 77;
    }

    big = calloc(1, 100000);
    memset(big, 'b', 99999);

    memset(&t, 0, sizeof(t));
    t.message = S(big);
    t.answer = S(big);

    st = vlm_store_open(dir);

    if (vlm_store_prepare(dir, (uid_t) -1, (gid_t) -1, err) != OK
        || vlm_store_session_create(st, 0, id, err) != OK
        || add(st, id, "x", "x.pdf", 0, &doc, err) != OK
        || vlm_document_take(st, &doc, err) != OK)
    {
        return 78;
    }

    for (i = 0; i < 20; i++) {
        rc = vlm_store_session_append(st, S(id), epoch_of(st, id),
                                      &t, &n, &used, err);
        if (rc != OK) {
            break;
        }
    }

    if (rc != VLM_STORE_EFULL || i == 0) {
        return 79;
    }

    for (i = 0; i < 20; i++) {
        rc = vlm_store_result_add(st, big, 99999, S("x.png"), "t",
                                  &file, err);
        if (rc != OK) {
            break;
        }
    }

    /* a document that does not fit leaves nothing; one that was read stays as it was */

    if (add(st, id, big, "big.pdf", 0, &more, err) != VLM_STORE_EFULL
        || done(st, &doc, 200, 19, err) != VLM_STORE_EFULL
        || vlm_document_page(st, S(doc.id), 1, &page, NULL) != NOTFOUND
        || vlm_document_list(st, S(id), docs, &n, NULL) != OK
        || n != 1 || docs[0].state != VLM_DOCUMENT_READING
        || only_one_folder() != 0)
    {
        return 80;
    }

    err->code = (vlm_store_code_t) rc;
    vlm_store_close(st);
    free(big);

    return rc;
}


static void
a_full_disk_is_reported(void **state)
{
    int    rc, fd[2];
    err_t  err;
    pid_t  pid;

    (void) state;

    assert_int_equal(pipe(fd), 0);
    memset(&err, 0, sizeof(err));

    pid = fork();
    assert_true(pid != -1);

    if (pid == 0) {
        rc = fill_up(&err);
        _exit(write(fd[1], &err, sizeof(err)) == sizeof(err) ? rc : 98);
    }

    assert_int_equal(read(fd[0], &err, sizeof(err)), sizeof(err));
    (void) close(fd[0]);
    (void) close(fd[1]);
    assert_int_equal(waitpid(pid, &rc, 0), pid);
    assert_true(WIFEXITED(rc));

    if (WEXITSTATUS(rc) == 77) {
        print_message("# no file system can be mounted here: a full disk is not tested\n");
        skip();
    }

    assert_int_equal(err.code, VLM_STORE_EFULL);
    assert_int_equal(WEXITSTATUS(rc), VLM_STORE_EFULL);
    assert_non_null(strstr(err.text, "the disk is full"));
}


static void
a_file_that_is_no_database_is_reported_and_can_be_replaced(void **state)
{
    char      id[37], path[128];
    err_t     err;
    store_t  *st;

    st = *state;

    spoil("vlm.db", 0, 10000, 1);

    assert_int_equal(vlm_store_session_create(st, 0, id, &err),
                     VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "is damaged or no database"));
    assert_non_null(strstr(err.text, "move it away"));

    (void) snprintf(path, sizeof(path), "%s/vlm.db", dir);
    assert_int_equal(unlink(path), 0);

    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
}


/* two connections stand for two workers */

static void
a_database_that_is_moved_away_is_left_by_every_connection(void **state)
{
    int       i;
    char      id[37], from[128], to[128];
    err_t     err;
    store_t  *st, *other;

    static const char *const  files[] = { "", "-wal", "-shm" };

    st = *state;
    other = vlm_store_open(dir);

    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
    assert_int_equal(vlm_store_session_create(other, 0, id, &err), OK);
    assert_int_equal(count(st), 2);

    for (i = 0; i < 3; i++) {
        (void) snprintf(from, sizeof(from), "%s/vlm.db%s", dir, files[i]);
        (void) snprintf(to, sizeof(to), "%s/old.db%s", dir, files[i]);
        assert_int_equal(rename(from, to), 0);
    }

    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
    assert_int_equal(count(st), 1);
    assert_int_equal(vlm_store_session_create(other, 0, id, &err), OK);
    assert_int_equal(count(other), 2);
    assert_int_equal(count(st), 2);

    vlm_store_close(other);
    vlm_store_close(st);

    *state = st = vlm_store_open(dir);
    assert_int_equal(count(st), 2);
}


static void
a_damaged_database_is_reported(void **state)
{
    int       i, used, rc;
    char      id[37];
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    for (i = 0; i < 50; i++) {
        assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
        assert_int_equal(append(st, id, epoch_of(st, id), 1, &n, &used, &err),
                         OK);
    }

    vlm_store_close(st);            /* the log goes into the file */
    *state = st = vlm_store_open(dir);

    spoil("vlm.db", 4096, 8 * 4096, 0);

    rc = OK;

    for (i = 0; i < 50 && rc == OK; i++) {
        rc = vlm_store_session_create(st, 0, id, &err);
    }

    assert_int_equal(rc, VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "is damaged or no database"));
}


static void
a_database_of_a_later_version_is_left_alone(void **state)
{
    int       rc;
    char      id[37], command[256];
    err_t     err;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_create(st, 0, id, &err), OK);
    vlm_store_close(st);

    /* user_version is at byte 60 of the file, big-endian */

    (void) snprintf(command, sizeof(command), "%s/vlm.db", dir);
    rc = open(command, O_WRONLY);
    assert_true(rc != -1);
    assert_int_equal(pwrite(rc, "\0\0\0\11", 4, 60), 4);
    (void) close(rc);

    *state = st = vlm_store_open(dir);

    assert_int_equal(vlm_store_session_create(st, 0, id, &err),
                     VLM_STORE_ECORRUPT);
    assert_non_null(strstr(err.text, "has schema 9, this server knows 6"));
}


static void
a_database_of_the_first_version_is_brought_up_to_date(void **state)
{
    int       used;
    err_t     err;
    size_t    n;
    store_t  *st;

    st = *state;

    assert_int_equal(vlm_store_session_ensure(st, S("s"), &err), OK);
    assert_int_equal(append(st, "s", epoch_of(st, "s"), 1, &n, &used, &err),
                     OK);
    vlm_store_close(st);

    sql("DROP INDEX session_used; DROP INDEX session_image;"
        "DROP INDEX upload_name;"
        "ALTER TABLE entry DROP COLUMN key; ALTER TABLE entry DROP COLUMN body;"
        "ALTER TABLE entry DROP COLUMN number;"
        "ALTER TABLE session DROP COLUMN read;"
        "DROP TRIGGER session_unlinked; DROP TABLE document; DROP TABLE link;"
        "DROP TABLE page; DROP TABLE content; DROP TABLE vector;"
        "PRAGMA user_version = 1;");

    *state = st = vlm_store_open(dir);

    assert_int_equal(append(st, "s", epoch_of(st, "s"), 2, &n, &used, &err),
                     OK);
    assert_int_equal(n, 4);

    sql("DROP INDEX session_used");        /* the index exists again */
}


static void
a_store_without_its_directory_is_reported(void **state)
{
    char      id[37];
    err_t     err;
    store_t  *st;

    (void) state;

    st = vlm_store_open("/nonexistent/store");

    assert_int_equal(vlm_store_session_create(st, 0, id, &err),
                     VLM_STORE_EIO);
    assert_non_null(strstr(err.text, "/nonexistent/store"));
    assert_non_null(strstr(err.text, "No such file or directory"));

    vlm_store_close(st);

    assert_int_equal(vlm_store_prepare("/nonexistent/store",
                         (uid_t) -1, (gid_t) -1, &err),
                     VLM_STORE_EIO);
}


static void
prepare_gives_a_user_what_it_makes_and_nothing_else(void **state)
{
    char         path[128], new[96];
    err_t        err;
    size_t       i;
    struct stat  sb;

    static const char *const  names[] = { "", "/vlm.db", "/uploads", "/results", "/documents" };

    (void) state;

    if (geteuid() != 0) {
        print_message("# only root gives files to a user: this is not tested\n");
        skip();
    }

    assert_int_equal(chmod(dir, 0755), 0);
    (void) snprintf(new, sizeof(new), "%s/new", dir);

    assert_int_equal(vlm_store_make(new, 65534, 65534, &err), OK);
    assert_int_equal(vlm_store_prepare(new, 65534, 65534, &err), OK);

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        (void) snprintf(path, sizeof(path), "%s%s", new, names[i]);
        assert_int_equal(stat(path, &sb), 0);
        assert_int_equal(sb.st_uid, 65534);
        assert_int_equal(sb.st_gid, 65534);
        assert_int_equal(sb.st_mode & 0777, i == 1 ? 0600 : 0700);
    }

    /* Another start finds them, with links and modes that are not its own. */

    assert_int_equal(chmod(path, 0755), 0);
    (void) snprintf(path, sizeof(path), "%s/vlm.db", new);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(vlm_store_prepare(new, 65533, 65533, &err), OK);
    assert_int_equal(stat("/etc/hostname", &sb), 0);
    assert_int_equal(sb.st_uid, 0);
    (void) snprintf(path, sizeof(path), "%s/documents", new);
    assert_int_equal(stat(path, &sb), 0);
    assert_int_equal(sb.st_uid, 65534);
    assert_int_equal(sb.st_mode & 0777, 0755);

    /* That is root's, and stays root's. */

    assert_int_equal(vlm_store_make(dir, 65534, 65534, &err), OK);
    assert_int_equal(vlm_store_prepare(dir, 65534, 65534, &err), OK);
    assert_int_equal(stat(dir, &sb), 0);
    assert_int_equal(sb.st_uid, 0);

    /* The workers' user cannot lead root elsewhere by its own directories. */

    (void) snprintf(path, sizeof(path), "%s/link", new);
    assert_int_equal(symlink("/tmp", path), 0);
    (void) snprintf(path, sizeof(path), "%s/link/vlm-of-link", new);
    assert_int_not_equal(vlm_store_check(path, &err), OK);
    assert_non_null(strstr(err.text, "store: \"link\" in \"/tmp/vlm-store-"));
    assert_int_not_equal(vlm_store_make(path, 65534, 65534, &err), OK);
    assert_int_equal(lstat("/tmp/vlm-of-link", &sb), -1);
}


static void
the_error_names_the_file_that_prevents_a_store(void **state)
{
    char         path[128], longer[1100];
    err_t        err;

    (void) state;

    assert_int_equal(vlm_store_check(dir, &err), OK);

    (void) snprintf(path, sizeof(path), "%s/new", dir);
    assert_int_equal(vlm_store_check(path, &err), OK);

    (void) snprintf(path, sizeof(path), "%s/none/new", dir);
    assert_int_not_equal(vlm_store_check(path, &err), OK);
    assert_non_null(strstr(err.text, "/none: No such file or directory"));

    memset(longer, 'x', sizeof(longer) - 1);
    longer[0] = '/';
    longer[sizeof(longer) - 1] = '\0';
    assert_int_not_equal(vlm_store_check(longer, &err), OK);
    assert_non_null(strstr(err.text, "1099 bytes, it may have"));

    (void) snprintf(path, sizeof(path), "%s/vlm.db-wal", dir);
    (void) unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_not_equal(vlm_store_check(dir, &err), OK);
    assert_non_null(strstr(err.text, "\"vlm.db-wal\" is no plain file"));
    assert_int_equal(vlm_store_check(path, &err), OK);
    assert_int_equal(rmdir(path), 0);

    (void) snprintf(path, sizeof(path), "%s/results", dir);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(symlink("/etc", path), 0);

    if (geteuid() == 0) {
        assert_int_not_equal(vlm_store_check(dir, &err), OK);
        assert_non_null(strstr(err.text, "\"results\" is a link: move it"));

    } else {
        assert_int_equal(vlm_store_check(dir, &err), OK);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_directory_that_cannot_be_written_is_reported),
        TEST(a_full_disk_is_reported),
        TEST(a_file_that_is_no_database_is_reported_and_can_be_replaced),
        TEST(a_database_that_is_moved_away_is_left_by_every_connection),
        TEST(a_damaged_database_is_reported),
        TEST(a_database_of_a_later_version_is_left_alone),
        TEST(a_database_of_the_first_version_is_brought_up_to_date),
        TEST(a_store_without_its_directory_is_reported),
        TEST(prepare_gives_a_user_what_it_makes_and_nothing_else),
        TEST(the_error_names_the_file_that_prevents_a_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
