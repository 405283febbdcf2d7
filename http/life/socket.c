
/*
 * The unix socket of the hop: the worker that accepts on it, and the users
 * that may connect.  Its requests bypass TLS, authentication and limits, so
 * its mode never admits other users, and a connection of another user is
 * closed unread.
 *
 * A listener marked "reuseport" is skipped by every worker but the one whose
 * number it has.  The mark is set after the sockets were opened, and then has
 * no other effect; a respawned worker keeps its number.
 */


#include "life.h"
#include "base/listener.h"


static ngx_listening_t *
ngx_http_vlm_socket_find(volatile ngx_cycle_t *cycle,
    ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t        i;
    ngx_listening_t  *ls;

    ls = cycle->listening.elts;

    for (i = 0; i < cycle->listening.nelts; i++) {

        if (ls[i].addr_text.len == sizeof("unix:") - 1 + eng->conf.socket.len
            && ngx_strncmp(ls[i].addr_text.data + sizeof("unix:") - 1,
                           eng->conf.socket.data, eng->conf.socket.len)
               == 0)
        {
            return &ls[i];
        }
    }

    return NULL;
}


/*
 * nginx binds a socket and then gives it mode 0666, also if another user has
 * put a link in its place, but does not touch a socket that is already open.
 * ngx_cycle is still the old cycle, whose sockets nginx inherits.
 */

ngx_int_t
ngx_http_vlm_socket_bind(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle,
    uid_t uid, gid_t gid)
{
    int               removed;
    vlm_err_t         err;
    ngx_listening_t  *ls;

    ls = ngx_http_vlm_socket_find(cycle, eng);

    if (ls == NULL || ngx_http_vlm_socket_find(ngx_cycle, eng)) {
        return NGX_OK;
    }

    if (ngx_test_config) {
        ls->fd = socket(AF_UNIX, SOCK_STREAM, 0);
        return ls->fd == (ngx_socket_t) -1 ? NGX_ERROR : NGX_OK;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    ls->fd = vlm_listener_give(ls->sockaddr, ls->socklen, ls->backlog, uid, gid,
                               &removed, &err);

    if (removed) {
        ngx_http_vlm_log(NGX_LOG_NOTICE, cycle->log, 0, eng, "removes \"%V\", "
                         "on which no process listens", &eng->conf.socket);
    }

    if (ls->fd == (ngx_socket_t) -1) {
        ngx_http_vlm_log(NGX_LOG_EMERG, cycle->log, 0, eng, "%s in %s:%ui",
                         err.text, eng->conf.file, eng->conf.line);
        return NGX_ERROR;
    }

    /* closed by nginx if it refuses the configuration after all */

    ls->open = 1;

    return NGX_OK;
}


/* the socket's mode refuses other users; one may have connected before the
   mode was set, if the directory is open to it */

static void
ngx_http_vlm_socket_accepted(ngx_connection_t *c)
{
    socklen_t     len;
    struct ucred  peer;

    len = sizeof(struct ucred);

    if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == -1) {
        ngx_log_error(NGX_LOG_ERR, c->log, ngx_socket_errno,
                      "getsockopt(SO_PEERCRED) failed");

    } else if (peer.uid == 0 || peer.uid == geteuid()) {
        ngx_http_init_connection(c);
        return;

    } else {
        ngx_log_error(NGX_LOG_WARN, c->log, 0,
                      "a connection of process %P, user %ud, to \"%V\" was "
                      "closed: only workers may use this socket",
                      peer.pid, peer.uid, &c->listening->addr_text);
    }

    ngx_http_close_connection(c);
}


/* in the master, with all sockets open, of which ours may be inherited */

ngx_int_t
ngx_http_vlm_socket_own(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle,
    uid_t uid, gid_t gid, vlm_err_t *err)
{
    int               rc;
    ngx_listening_t  *ls;

    ls = ngx_http_vlm_socket_find(cycle, eng);
    if (ls == NULL) {
        return NGX_OK;
    }

    ls->reuseport = 1;
    ls->worker = eng->conf.worker;
    ls->handler = ngx_http_vlm_socket_accepted;

    rc = ngx_test_config ? 0
         : vlm_listener_renew(ls->fd, ls->sockaddr, ls->socklen, ls->backlog,
                              uid, gid, err);
    if (rc > 0) {
        ngx_http_vlm_log(NGX_LOG_WARN, cycle->log, 0, eng, "socket \"%V\" %s "
                         "and is made again", &eng->conf.socket,
                         rc == 1 ? "was gone" : "was not the workers' alone");
    }

    return rc == -1 ? NGX_ERROR : NGX_OK;
}


static void
ngx_http_vlm_socket_event(ngx_event_t *rev)
{
    ngx_connection_t       *c;
    ngx_http_vlm_engine_t  *eng;

    c = rev->data;
    eng = c->data;

    if (c->close) {
        c->close = 0;
        c->idle = 0;

        if (!ngx_http_vlm_engine_exit(eng)) {
            ngx_http_vlm_socket_open(eng, 0);
        }

        return;
    }

    if (rev->timedout) {
        rev->timedout = 0;
        ngx_http_vlm_socket_open(eng, 1);
        return;
    }

    /* the next worker has loaded its model: the connection is left to it */

    if (eng->life.draining && !ngx_http_vlm_zone_owned(eng)) {
        ngx_http_vlm_socket_open(eng, 0);
        return;
    }

    ngx_event_accept(rev);

    /* no descriptors left: nginx has set a timer, and pauses its own sockets,
       too */

    if (rev->timer_set && rev->active) {
        (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
    }
}


/*
 * With "reload overlap" the socket passes from one worker to the next when the
 * next has loaded its model, but nginx closes listening sockets at the
 * beginning of an exit.  So the worker duplicates the descriptor and makes a
 * connection of its own for it.
 */

ngx_int_t
ngx_http_vlm_socket_keep(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    int                fd;
    ngx_connection_t  *c;
    ngx_listening_t   *ls;

    ls = ngx_http_vlm_socket_find(cycle, eng);
    if (ls == NULL) {
        return NGX_ERROR;
    }

    fd = fcntl(ls->fd, F_DUPFD_CLOEXEC, 0);
    if (fd == -1) {
        return NGX_ERROR;
    }

    c = ngx_http_vlm_idle(fd, &ls->log, ngx_http_vlm_socket_event, eng);
    if (c == NULL) {
        (void) close(fd);
        return NGX_ERROR;
    }

    c->type = SOCK_STREAM;
    c->listening = ls;
    c->read->accept = 1;

    if (ls->connection) {
        ngx_http_vlm_idle_free(ls->connection);
        ls->connection = NULL;
    }

    eng->life.listener = c;

    return NGX_OK;
}


/* nginx notifies idle connections of a graceful exit, and has no other hook
   for a module: such a connection for a descriptor of ours */

ngx_connection_t *
ngx_http_vlm_idle(int fd, ngx_log_t *log, ngx_event_handler_pt handler,
    ngx_http_vlm_engine_t *eng)
{
    ngx_connection_t  *c;

    c = ngx_get_connection(fd, eng->log);
    if (c == NULL) {
        return NULL;
    }

    c->data = eng;
    c->log = log;
    c->idle = 1;

    c->read->handler = handler;
    c->read->log = log;
    c->write->log = log;

    return c;
}


void
ngx_http_vlm_idle_free(ngx_connection_t *c)
{
    ngx_http_vlm_timer_off(c->read);

    if (c->read->posted) {
        ngx_delete_posted_event(c->read);
    }

    if (c->read->active) {
        (void) ngx_del_event(c->read, NGX_READ_EVENT, 0);
    }

    ngx_free_connection(c);
    c->fd = (ngx_socket_t) -1;
}


void
ngx_http_vlm_socket_open(ngx_http_vlm_engine_t *eng, ngx_uint_t open)
{
    ngx_event_t  *rev;

    if (eng->life.listener == NULL) {
        return;
    }

    rev = eng->life.listener->read;

    ngx_http_vlm_timer_off(rev);

    if (open && !rev->active) {

        if (ngx_add_event(rev, NGX_READ_EVENT, 0) != NGX_OK) {
            ngx_http_vlm_log(NGX_LOG_CRIT, rev->log, 0, eng, "no event for its "
                             "socket");
        }

    } else if (!open && rev->active) {
        (void) ngx_del_event(rev, NGX_READ_EVENT, 0);
    }
}


void
ngx_http_vlm_socket_close(ngx_http_vlm_engine_t *eng)
{
    int  fd;

    if (eng->life.listener) {
        fd = eng->life.listener->fd;

        ngx_http_vlm_idle_free(eng->life.listener);
        (void) close(fd);

        eng->life.listener = NULL;
    }
}
