
/*
 * The lock that hands the model from one worker to the next: a file, so that a
 * crash frees it, too.  With "reload wait" one worker has it at a time.
 *
 * With "reload overlap" there are two such files and a worker has one of them,
 * whichever is free: so during a reload two have the model, and never three.
 * Who waits needs all that there are, in their order, so that a reload from
 * one way to the other is neither stuck nor shares by mistake.
 */


#include "ngx_http_vlm.h"
#include <sys/file.h>


#define NGX_HTTP_VLM_LOCK_WAIT  10         /* ms between two tries */


static int ngx_http_vlm_lock_all(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
static int ngx_http_vlm_lock_any(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
static int ngx_http_vlm_lock_one(ngx_http_vlm_engine_t *eng, ngx_uint_t i,
    vlm_err_t *err);
static int ngx_http_vlm_lock_pause(ngx_http_vlm_engine_t *eng, vlm_err_t *err);


ngx_int_t
ngx_http_vlm_lock_make(ngx_http_vlm_engine_t *eng, uid_t uid, gid_t gid,
    ngx_log_t *log)
{
    int         fd;
    ngx_uint_t  i;

    for (i = 0; i < (eng->overlap ? NGX_HTTP_VLM_LOCKS : 1); i++) {

        fd = open((char *) eng->locks[i].data, O_RDWR|O_CREAT|O_CLOEXEC, 0600);

        if (fd == -1) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "vlm_engine \"%V\": open() \"%V\" failed",
                          &eng->name, &eng->locks[i]);
            return NGX_ERROR;
        }

        if (uid != (uid_t) -1 && fchown(fd, uid, gid) == -1) {
            ngx_log_error(NGX_LOG_EMERG, log, ngx_errno,
                          "vlm_engine \"%V\": chown() \"%V\" failed",
                          &eng->name, &eng->locks[i]);
            (void) close(fd);
            return NGX_ERROR;
        }

        (void) close(fd);
    }

    return NGX_OK;
}


int
ngx_http_vlm_lock_take(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    int         rc;
    ngx_msec_t  ms;

    for (ms = 0; ms < eng->backoff; ms += NGX_HTTP_VLM_LOCK_WAIT) {

        if (ngx_http_vlm_lock_pause(eng, err) != 0) {
            return -1;
        }
    }

    do {
        rc = eng->overlap ? ngx_http_vlm_lock_any(eng, err)
                          : ngx_http_vlm_lock_all(eng, err);

    } while (rc == 0 && ngx_http_vlm_lock_pause(eng, err) == 0);

    if (rc == 1) {
        return 0;
    }

    ngx_http_vlm_lock_give(eng);

    return -1;
}


/* 1: it is ours, 0: not yet, -1: it never will be */

static int
ngx_http_vlm_lock_all(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    int         rc;
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_LOCKS; i++) {

        if (i && access((char *) eng->locks[i].data, F_OK) == -1
            && ngx_errno == ENOENT)
        {
            return 1;
        }

        rc = ngx_http_vlm_lock_one(eng, i, err);

        if (rc != 1) {
            return rc;
        }
    }

    return 1;
}


static int
ngx_http_vlm_lock_any(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    int         rc;
    ngx_uint_t  i;

    rc = 0;

    for (i = 0; i < NGX_HTTP_VLM_LOCKS && rc == 0; i++) {
        rc = ngx_http_vlm_lock_one(eng, i, err);
    }

    return rc;
}


static int
ngx_http_vlm_lock_one(ngx_http_vlm_engine_t *eng, ngx_uint_t i,
    vlm_err_t *err)
{
    int  fd;

    if (eng->lock_fds[i] != -1) {
        return 1;
    }

    fd = open((char *) eng->locks[i].data, O_RDWR|O_CLOEXEC);

    if (fd != -1 && flock(fd, LOCK_EX|LOCK_NB) == 0) {
        eng->lock_fds[i] = fd;
        return 1;
    }

    if (fd != -1 && (ngx_errno == EWOULDBLOCK || ngx_errno == EINTR)) {
        (void) close(fd);
        return 0;
    }

    err->code = VLM_EDEVICE;
    (void) ngx_snprintf((u_char *) err->text, sizeof(err->text) - 1,
                        "the lock file \"%V\" cannot be %s: %s%Z",
                        &eng->locks[i], fd == -1 ? "opened" : "locked",
                        strerror(ngx_errno));

    if (fd != -1) {
        (void) close(fd);
    }

    return -1;
}


static int
ngx_http_vlm_lock_pause(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    if (eng->conf.stop(eng)) {
        err->code = VLM_ECANCELLED;
        return -1;
    }

    ngx_msleep(NGX_HTTP_VLM_LOCK_WAIT);

    return 0;
}


void
ngx_http_vlm_lock_give(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t  i;

    for (i = 0; i < NGX_HTTP_VLM_LOCKS; i++) {

        if (eng->lock_fds[i] != -1) {
            (void) close(eng->lock_fds[i]);
            eng->lock_fds[i] = -1;
        }
    }
}
