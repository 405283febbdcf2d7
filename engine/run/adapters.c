/* Names, versions and places of adapters: see the header. */

#include "run/adapters.h"

#include <dirent.h>
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


typedef int (*each_fn)(void *data, const char *name, const char *path, vlm_err_t *err);

/* Calls for each adapter of the directory, in the order of names, as many as there are places. */
static int
each_adapter(const vlm_conf_t *conf, each_fn fn, void *data, vlm_err_t *err)
{
    int              rc, i, n;
    char             path[sizeof(((vlm_adapter_info_t *) NULL)->path)];
    uint32_t         found;
    struct dirent  **list;

    n = scandir(conf->lora, &list, is_adapter, alphasort);
    if (n < 0) {
        return vlm_fail(err, VLM_EMODEL, "lora: %.200s is not a directory that can be read",
                        conf->lora);
    }

    for (rc = 0, found = 0, i = 0; i < n; i++) {
        if (rc == 0 && find_path(conf, list[i]->d_name, path, sizeof(path))) {
            found++;
            rc = found <= conf->lora_max ? fn(data, list[i]->d_name, path, err) : 0;
        }

        free(list[i]);
    }

    free(list);

    if (rc == 0 && found > conf->lora_max && !conf->lora_load) {
        return vlm_fail(err, VLM_EMODEL, "lora: %.200s has %u adapters, max is %u", conf->lora,
                        found, conf->lora_max);
    }

    return rc;
}


static int
check_one(void *data, const char *name, const char *path, vlm_err_t *err)
{
    return vlm_lora_check(data, name, path, err);
}


int
vlm_adapters_check(const vlm_conf_t *conf, const vlm_model_t *m, vlm_err_t *err)
{
    return m->lora == NULL ? 0 : each_adapter(conf, check_one, (void *) m, err);
}


typedef struct {
    vlm_adapter_info_t  *list;
    uint32_t             n, room;
} collected_t;

static int
collect_one(void *data, const char *name, const char *path, vlm_err_t *err)
{
    collected_t         *c = data;
    vlm_adapter_info_t  *to = &c->list[c->n];

    (void) err;

    if (c->n < c->room) {
        (void) snprintf(to->name, sizeof(to->name), "%s", name);
        (void) snprintf(to->path, sizeof(to->path), "%s", path);
        c->n++;
    }

    return 0;
}


uint32_t
vlm_adapters_planned(const vlm_conf_t *conf, vlm_adapter_info_t *list, uint32_t room)
{
    collected_t  c = { list, 0, room };

    if (conf->lora != NULL) {
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
    (void) snprintf(a->info.name, sizeof(a->info.name), "%s", name);
    (void) snprintf(a->info.path, sizeof(a->info.path), "%s", path);

    pthread_mutex_lock(&v->mutex);

    for (i = 0; i < v->conf.lora_max && v->adapter[i] != NULL; i++) { /* void */ }

    if (!replace && find(v, name) != NULL) {
        (void) vlm_fail(err, VLM_ECANCELLED, "adapter \"%s\" is loaded already", name);
        i = UINT32_MAX;

    } else if (i == v->conf.lora_max) {
        (void) vlm_fail(err, VLM_ELIMIT, "all %u places of adapters are in use", i);
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
        a->tower = d->tower;
        memcpy(a->identity, d->identity, sizeof(a->identity));
        a->data = d;

        if (replace) {
            list_version(a);
        }

    } else if (a->listed) {
        a->listed = 0;
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
    vlm_adapter_t  *a;

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


static int
list_one(void *data, const char *name, const char *path, vlm_err_t *err)
{
    vlm_adapter_t  *a;

    a = reserve(data, name, path, 0, err);
    if (a == NULL) {
        return -1;
    }

    a->opening = 1;
    leave(a);

    return 0;
}


int
vlm_adapters_list(vlm_t *v, vlm_err_t *err)
{
    return v->conf.lora == NULL ? 0 : each_adapter(&v->conf, list_one, v, err);
}


/* Until the model is loaded the list does not change. */
int
vlm_adapters_open(vlm_t *v, vlm_err_t *err)
{
    uint32_t  i;

    for (i = 0; v->conf.lora != NULL && i < v->conf.lora_max; i++) {
        if (v->adapter[i] == NULL || !v->adapter[i]->opening) {
            continue;
        }

        if (read_files(v, v->adapter[i], 0, err) != 0) {
            return -1;
        }

        while (!v->adapter[i]->ready) {
            if (vlm_adapters_put(v, err) != 0) {
                return -1;
            }
        }

        v->adapter[i]->opening = 0;
    }

    return 0;
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
