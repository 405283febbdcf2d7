/* Names, versions and places of adapters: see the header. */

#include "run/adapters.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"


int
vlm_adapter_named(const char *name)
{
    return vlm_adapter_is_name(name);
}


/* ---- the directory ------------------------------------------------------- */

static int
is_adapter(const struct dirent *e)
{
    return vlm_adapter_is_name(e->d_name);
}


/* 1: it is a directory. */
static int
find_path(const vlm_conf_t *conf, const char *name, char *path, size_t bytes)
{
    DIR  *d;

    if (snprintf(path, bytes, "%s/%s", conf->lora, name) >= (int) bytes) {
        return 0;
    }

    d = opendir(path);

    return d != NULL && closedir(d) == 0;
}


/* 1: no more are wanted. */
typedef int (*each_fn)(void *data, const char *name, const char *path);

/* Calls for each adapter of the directory, in the order of names. */
static int
each_adapter(const vlm_conf_t *conf, each_fn fn, void *data, vlm_err_t *err)
{
    int              i, n, enough;
    char             path[sizeof(((vlm_adapter_info_t *) NULL)->path)];
    struct dirent  **list;

    n = scandir(conf->lora, &list, is_adapter, alphasort);
    if (n < 0) {
        return vlm_fail(err, VLM_EMODEL, "lora: %.200s is not a directory that can be read",
                        conf->lora);
    }

    for (enough = 0, i = 0; i < n; i++) {
        if (!enough && find_path(conf, list[i]->d_name, path, sizeof(path))) {
            enough = fn(data, list[i]->d_name, path);
        }

        free(list[i]);
    }

    free(list);

    return 0;
}


/* There is no place for a further one. */
static int
no_place(const char *name, uint32_t places, vlm_err_t *err)
{
    return vlm_fail(err, VLM_ELIMIT, "adapter \"%s\": all %u places of adapters are in use", name,
                    places);
}


typedef struct {
    const vlm_conf_t   *conf;
    const vlm_model_t  *m;
    vlm_plan_t         *plan;
    uint32_t            n;             /* that a load would read */
} checked_t;

static void
tell_left_out(vlm_plan_t *plan, const vlm_err_t *why)
{
    if (plan->left_out++ == 0) {
        (void) snprintf(plan->left_out_reason, sizeof(plan->left_out_reason), "%.*s",
                        (int) sizeof(plan->left_out_reason) - 1, why->text);
    }
}


static int
check_one(void *data, const char *name, const char *path)
{
    int         full;
    vlm_err_t   why = { VLM_OK, "" };
    checked_t  *c = data;

    full = c->n == c->conf->lora_max;

    if (full && c->conf->lora_load) {
        return 1;
    }

    if (vlm_lora_check(c->m, name, path, &why) != 0 || (full && no_place(name, c->n, &why) != 0)) {
        tell_left_out(c->plan, &why);
    } else {
        c->n++;
    }

    return 0;
}


void
vlm_adapters_check(const vlm_conf_t *conf, const vlm_model_t *m, vlm_plan_t *plan)
{
    vlm_err_t  why = { VLM_OK, "" };
    checked_t  c = { conf, m, plan, 0 };

    if (m->lora != NULL && each_adapter(conf, check_one, &c, &why) != 0) {
        tell_left_out(plan, &why);
    }
}


typedef struct {
    vlm_adapter_info_t  *list;
    uint32_t             n, room;
} collected_t;

static void
set_info(vlm_adapter_info_t *to, const char *name, const char *path, const char *reason)
{
    (void) snprintf(to->name, sizeof(to->name), "%s", name);
    (void) snprintf(to->path, sizeof(to->path), "%s", path);
    (void) snprintf(to->reason, sizeof(to->reason), "%.*s", (int) sizeof(to->reason) - 1, reason);
}


static int
collect_one(void *data, const char *name, const char *path)
{
    collected_t  *c = data;

    if (c->n < c->room) {
        set_info(&c->list[c->n++], name, path, "");
    }

    return c->n == c->room;
}


uint32_t
vlm_adapters_planned(const vlm_conf_t *conf, vlm_adapter_info_t *list, uint32_t room)
{
    collected_t  c = { list, 0, room < conf->lora_max ? room : conf->lora_max };

    if (conf->lora != NULL && c.room > 0) {
        (void) each_adapter(conf, collect_one, &c, NULL);
    }

    return c.n;
}


/* ---- versions ------------------------------------------------------------ */

/* Under the mutex. */
static vlm_adapter_t *
find(const vlm_t *v, const char *name)
{
    uint32_t  i;

    for (i = 0; v->conf.lora != NULL && i < v->conf.lora_max; i++) {
        if (v->adapter[i] != NULL && v->adapter[i]->listed
            && strcmp(v->adapter[i]->info.name, name) == 0)
        {
            return v->adapter[i];
        }
    }

    return NULL;
}


/* Under the mutex: its entry among those that were left out, or NULL. */
static vlm_adapter_info_t *
find_left_out(vlm_t *v, const char *name)
{
    uint32_t  i;

    for (i = 0; i < v->n_left_out; i++) {
        if (strcmp(v->left_out[i].name, name) == 0) {
            return &v->left_out[i];
        }
    }

    return NULL;
}


static void
tell(const vlm_t *v, vlm_log_level_t level, const char *text)
{
    if (v->conf.log != NULL) {
        v->conf.log(v->conf.data, level, text);
    }
}


/* The log has a line for the first reason of each, so that it does not grow with every try. */
static void
leave_out(vlm_t *v, const char *name, const char *path, const vlm_err_t *why)
{
    int                  is_new = 0;
    char                 line[600];
    vlm_adapter_info_t  *to;

    pthread_mutex_lock(&v->mutex);

    to = find_left_out(v, name);

    if (to == NULL && v->n_left_out < VLM_MAX_ADAPTERS) {
        to = &v->left_out[v->n_left_out++];
        is_new = 1;
    }

    if (to != NULL) {
        set_info(to, name, path, why->text);
    }

    pthread_mutex_unlock(&v->mutex);

    if (is_new) {
        (void) snprintf(line, sizeof(line), "left out until it can be loaded: %s", why->text);
        tell(v, VLM_LOG_ERROR, line);
    }
}


/* Under the mutex.  1: it was left out. */
static int
take_in(vlm_t *v, const char *name)
{
    vlm_adapter_info_t  *at = find_left_out(v, name);

    if (at == NULL) {
        return 0;
    }

    *at = v->left_out[--v->n_left_out];

    return 1;
}


/* Under the mutex: one user less. */
static void
release(vlm_adapter_t *a)
{
    if (--a->users > 0) {
        return;
    }

    a->v->adapter[a->place] = NULL;
    vlm_lora_data_free(a->data);
    free(a);
}


static void
leave(vlm_adapter_t *a)
{
    vlm_t  *v = a->v;

    pthread_mutex_lock(&v->mutex);
    release(a);
    pthread_mutex_unlock(&v->mutex);
}


/*
 * A version with a place, or NULL.  It is listed from now on, so that no other takes its name; one
 * that replaces another is listed in its stead once it has been read.
 */
static vlm_adapter_t *
reserve(vlm_t *v, const char *name, const char *path, int replace, vlm_err_t *err)
{
    uint32_t        i;
    vlm_adapter_t  *a;

    a = calloc(1, sizeof(*a));
    if (a == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for an adapter");
        return NULL;
    }

    a->v = v;
    a->users = 1;                      /* the caller */
    set_info(&a->info, name, path, "");

    pthread_mutex_lock(&v->mutex);

    for (i = 0; i < v->conf.lora_max && v->adapter[i] != NULL; i++) { /* void */ }

    if (!replace && find(v, name) != NULL) {
        (void) vlm_fail(err, VLM_ECANCELLED, "adapter \"%s\" is loaded already", name);
        i = UINT32_MAX;

    } else if (i == v->conf.lora_max) {
        (void) no_place(name, i, err);
        i = UINT32_MAX;

    } else {
        a->place = i;
        a->listed = !replace;
        a->users += !replace;          /* the list */
        v->adapter[i] = a;
    }

    pthread_mutex_unlock(&v->mutex);

    if (i == UINT32_MAX) {
        free(a);
        return NULL;
    }

    return a;
}


/* Under the mutex: it is listed, and an earlier one of its name is not any more. */
static void
list_version(vlm_adapter_t *a)
{
    vlm_adapter_t  *earlier = find(a->v, a->info.name);

    if (earlier != NULL) {
        earlier->listed = 0;
        release(earlier);
    }

    a->listed = 1;
    a->users++;
}


/* Reads the files into a reserved version.  On failure it is listed no more. */
static int
read_files(vlm_t *v, vlm_adapter_t *a, int replace, vlm_err_t *err)
{
    vlm_lora_data_t  *d;

    d = vlm_lora_read(&v->sched.model, a->info.name, a->info.path, err);

    pthread_mutex_lock(&v->mutex);

    if (d != NULL) {
        (void) take_in(v, a->info.name);
        a->tower = d->tower;
        memcpy(a->identity, d->identity, sizeof(a->identity));
        a->data = d;

        if (replace) {
            list_version(a);
        }

    } else if (a->listed) {
        a->listed = 0;
        a->opening = 0;
        a->failed = 1;
        release(a);
    }

    pthread_mutex_unlock(&v->mutex);

    return d == NULL ? -1 : 0;
}


int
vlm_adapter_load(vlm_t *v, const char *name, const char *dir, int replace, int *idle,
                 vlm_err_t *err)
{
    int             rc;
    char            path[sizeof(((vlm_adapter_info_t *) NULL)->path)];
    vlm_stat_t      s;
    vlm_adapter_t  *a;

    *idle = 0;

    if (!vlm_adapter_is_name(name) || v->conf.lora == NULL || !vlm_adapter_is_name(dir)
        || !find_path(&v->conf, dir, path, sizeof(path)))
    {
        return vlm_fail(err, VLM_EINPUT, "there is no adapter \"%s\"", vlm_printable(dir));
    }

    vlm_stat(v, &s);

    if (s.state != VLM_READY) {
        return vlm_fail(err, VLM_EDEVICE, "the model is not loaded");
    }

    a = reserve(v, name, path, replace, err);
    if (a == NULL) {
        return -1;
    }

    rc = read_files(v, a, replace, err);

    pthread_mutex_lock(&v->mutex);
    *idle = rc == 0 && !v->running;
    release(a);
    pthread_mutex_unlock(&v->mutex);

    return rc;
}


int
vlm_adapter_unload(vlm_t *v, const char *name, vlm_err_t *err)
{
    vlm_adapter_t  *a;

    pthread_mutex_lock(&v->mutex);

    a = find(v, name);

    /* While its files are read it has no other users, and nothing can be taken from the list. */

    if (a != NULL && (a->ready || a->data != NULL)) {
        a->listed = 0;
        release(a);

    } else {
        a = NULL;
    }

    pthread_mutex_unlock(&v->mutex);

    return a != NULL ? 0 : vlm_fail(err, VLM_EINPUT, "there is no adapter \"%s\"",
                                    vlm_printable(name));
}


int
vlm_prompt_adapter(vlm_t *v, vlm_prompt_t *p, const char *name, double scale, vlm_err_t *err)
{
    vlm_adapter_t       *a;
    vlm_adapter_info_t  *out;

    if (!(scale >= 0 && scale <= VLM_LORA_SCALE)) {
        return vlm_fail(err, VLM_EINPUT, "the scale of an adapter is %g, expected 0 to %g", scale,
                        VLM_LORA_SCALE);
    }

    pthread_mutex_lock(&v->mutex);

    a = find(v, name);

    if (a != NULL && (a->ready || a->data != NULL || a->opening)) {
        a->users++;
    } else {
        a = NULL;
        out = find_left_out(v, name);

        if (out != NULL) {
            (void) vlm_fail(err, VLM_EINPUT, "%s", out->reason);
        }
    }

    pthread_mutex_unlock(&v->mutex);

    if (a == NULL) {
        return vlm_fail(err, VLM_EINPUT, "there is no adapter \"%s\"", vlm_printable(name));
    }

    if (p->adapter != NULL) {
        p->leave(p->adapter);
    }

    p->adapter = a;
    p->leave = leave;
    p->scale = (float) scale;

    return 0;
}


void
vlm_adapter_settle(vlm_t *v, vlm_prompt_t *p)
{
    struct {
        uint8_t  identity[32];
        float    scale;
    } whole;

    if (p->adapter == NULL) {
        return;
    }

    pthread_mutex_lock(&v->mutex);
    p->tower = p->adapter->tower;
    memcpy(whole.identity, p->adapter->identity, sizeof(whole.identity));
    pthread_mutex_unlock(&v->mutex);

    whole.scale = p->scale;
    vlm_sha256(&whole, sizeof(whole), p->adapted);
}


uint32_t
vlm_adapters(const vlm_t *v, vlm_adapter_info_t *list, uint32_t room)
{
    vlm_t          *shared = (vlm_t *) v;      /* as in vlm_stat() */
    uint32_t        i, n;
    vlm_adapter_t  *a;

    pthread_mutex_lock(&shared->mutex);

    for (n = 0, i = 0; v->conf.lora != NULL && i < v->conf.lora_max && n < room; i++) {
        a = v->adapter[i];

        if (a != NULL && a->listed && (a->ready || a->data != NULL || a->opening)) {
            list[n++] = a->info;
        }
    }

    for (i = 0; i < v->n_left_out && n < room; i++) {
        list[n++] = v->left_out[i];
    }

    pthread_mutex_unlock(&shared->mutex);

    return n;
}


/* ---- the engine thread --------------------------------------------------- */

int
vlm_adapters_wait(const vlm_t *v)
{
    uint32_t  i;

    for (i = 0; v->conf.lora != NULL && i < v->conf.lora_max; i++) {
        if (v->adapter[i] != NULL && v->adapter[i]->data != NULL) {
            return 1;
        }
    }

    return 0;
}


int
vlm_adapters_put(vlm_t *v, vlm_err_t *err)
{
    int             rc, done;
    uint32_t        i, next;
    vlm_adapter_t  *a;

    if (v->conf.lora == NULL) {
        return 0;
    }

    pthread_mutex_lock(&v->mutex);

    for (a = NULL, i = 0; i < v->conf.lora_max; i++) {
        if (v->adapter[i] != NULL && v->adapter[i]->data != NULL) {
            a = v->adapter[i];
            a->users++;
            break;
        }
    }

    pthread_mutex_unlock(&v->mutex);

    if (a == NULL) {
        return 0;
    }

    next = a->data->next;
    done = vlm_lora_put(&v->sched.model, a->data, a->place, VLM_ADAPTER_SLICE);
    rc = v->ops->basic->sync(v->device, err);

    pthread_mutex_lock(&v->mutex);

    if (rc != 0) {
        a->data->next = next;

    } else if (done) {
        vlm_lora_data_free(a->data);
        a->data = NULL;
        a->ready = 1;
    }

    release(a);
    pthread_mutex_unlock(&v->mutex);

    return rc;
}


int
vlm_adapter_ready(vlm_t *v, const vlm_prompt_t *p)
{
    int  ready;

    if (p->adapter == NULL) {
        return 1;
    }

    pthread_mutex_lock(&v->mutex);
    ready = p->adapter->ready;
    pthread_mutex_unlock(&v->mutex);

    return ready;
}


int
vlm_adapter_failed(vlm_t *v, const vlm_prompt_t *p, vlm_err_t *err)
{
    int  failed;

    if (p->adapter == NULL) {
        return 0;
    }

    pthread_mutex_lock(&v->mutex);
    failed = p->adapter->failed;
    pthread_mutex_unlock(&v->mutex);

    return failed ? vlm_fail(err, VLM_EINPUT, "adapter \"%s\" cannot be loaded",
                             p->adapter->info.name) : 0;
}


/* An unfinished copy is known by its files alone: it takes no place from a whole adapter. */
static int
list_one(void *data, const char *name, const char *path)
{
    int                  rc;
    vlm_t               *v = data;
    vlm_err_t            why = { VLM_OK, "" };
    vlm_adapter_t       *a = NULL;
    vlm_adapter_file_t   f;

    rc = vlm_adapter_open(&f, name, path, v->config.family, &why);

    if (rc == 0) {
        vlm_adapter_close(&f);
        a = reserve(v, name, path, 0, &why);
    }

    if (a != NULL) {
        a->opening = 1;
        leave(a);

    } else if (why.code == VLM_ELIMIT && v->conf.lora_load) {
        return 1;                      /* it is loaded when a client asks for it */

    } else {
        leave_out(v, name, path, &why);
    }

    return 0;
}


void
vlm_adapters_list(vlm_t *v)
{
    vlm_err_t  why = { VLM_OK, "" };

    if (v->conf.lora != NULL && each_adapter(&v->conf, list_one, v, &why) != 0) {
        leave_out(v, VLM_ADAPTERS_ALL, v->conf.lora, &why);
    }
}


/* Puts one that was read.  A device without memory now gets the rest in a run. */
static int
put_whole(vlm_t *v, vlm_adapter_t *a, vlm_err_t *err)
{
    while (!a->ready) {
        if (vlm_adapters_put(v, err) == 0) {
            continue;
        }

        if (err->code != VLM_EMEMORY) {
            return -1;
        }

        memset(err, 0, sizeof(*err));
        break;
    }

    a->opening = 0;

    return 0;
}


/* Until the model is loaded the list does not change. */
int
vlm_adapters_open(vlm_t *v, vlm_err_t *err)
{
    uint32_t            i;
    vlm_err_t           why;
    vlm_adapter_t      *a;
    vlm_adapter_info_t  info;

    for (i = 0; v->conf.lora != NULL && i < v->conf.lora_max; i++) {
        a = v->adapter[i];

        if (a == NULL || !a->opening) {
            continue;
        }

        info = a->info;                /* a failure may free it */
        memset(&why, 0, sizeof(why));

        if (read_files(v, a, 0, &why) != 0) {
            leave_out(v, info.name, info.path, &why);

        } else if (put_whole(v, a, err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* ---- again --------------------------------------------------------------- */

typedef struct {
    vlm_t               *v;
    vlm_adapter_info_t   was[VLM_MAX_ADAPTERS];    /* left out before */
    int                  seen[VLM_MAX_ADAPTERS];   /* its directory is there */
    uint32_t             n;
    int                  all, changed, idle;
} again_t;

/* Headers first: an adapter that does not fit takes no place, not even for a moment. */
static int
try_one(again_t *t, const char *name, const char *path, vlm_err_t *why)
{
    int             idle;
    char            line[NAME_MAX + 32];
    vlm_t          *v = t->v;

    if (vlm_lora_check(&v->sched.model, name, path, why) != 0
        || vlm_adapter_load(v, name, name, 0, &idle, why) != 0)
    {
        return -1;
    }

    t->idle |= idle;
    (void) snprintf(line, sizeof(line), "adapter \"%s\" is loaded now", name);
    tell(v, VLM_LOG_NOTICE, line);

    return 0;
}


static int
again_one(void *data, const char *name, const char *path)
{
    uint32_t    i;
    again_t    *t = data;
    vlm_err_t   why = { VLM_OK, "" };

    for (i = 0; i < t->n && strcmp(t->was[i].name, name) != 0; i++) { /* void */ }

    if (i < t->n) {
        t->seen[i] = 1;
    }

    if (i == t->n && !t->all) {
        return 0;
    }

    if (try_one(t, name, path, &why) == 0) {
        t->changed = 1;

    } else if (why.code == VLM_ELIMIT && t->v->conf.lora_load && i == t->n) {
        return 1;

    } else if (why.code != VLM_ECANCELLED
               && (i == t->n || strncmp(t->was[i].reason, why.text, sizeof(t->was[i].reason) - 1)
                                != 0))
    {
        leave_out(t->v, name, path, &why);
        t->changed = 1;
    }

    return 0;
}


int
vlm_adapters_again(vlm_t *v, int *idle)
{
    uint32_t    i;
    again_t    *t;
    vlm_err_t   why = { VLM_OK, "" };

    *idle = 0;

    t = v->conf.lora == NULL ? NULL : calloc(1, sizeof(*t));
    if (t == NULL) {
        return 0;
    }

    t->v = v;

    pthread_mutex_lock(&v->mutex);
    t->n = v->n_left_out;
    memcpy(t->was, v->left_out, sizeof(t->was));
    t->all = find_left_out(v, VLM_ADAPTERS_ALL) != NULL;
    pthread_mutex_unlock(&v->mutex);

    if (t->n > 0 && each_adapter(&v->conf, again_one, t, &why) == 0) {

        pthread_mutex_lock(&v->mutex);

        /* Directories that are gone, and that of all, which is back. */

        for (i = 0; i < t->n; i++) {
            t->changed |= !t->seen[i] && take_in(v, t->was[i].name);
        }

        pthread_mutex_unlock(&v->mutex);
    }

    i = (uint32_t) t->changed;
    *idle = t->idle;
    free(t);

    return (int) i;
}


/* Prompts are freed before. */
void
vlm_adapters_close(vlm_t *v)
{
    uint32_t  i;

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        if (v->adapter[i] != NULL) {
            vlm_lora_data_free(v->adapter[i]->data);
            free(v->adapter[i]);
            v->adapter[i] = NULL;
        }
    }
}
