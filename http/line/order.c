
/*
 * The order of the queue: chooses the next prompt.
 *
 * Every request has a rank, in ms, and the smallest is next.  The rank is the
 * time of arrival, less the worth of the request's priority; a request of a
 * client that has others here is placed at a fixed distance after the client's
 * previous one, if that is later.  A rank is set once, so time changes no
 * order, and a red-black tree finds the first in O(log n).  The clock of
 * arrivals advances, so a waiting request is passed only by those that arrive
 * soon after it: this is the ageing.
 *
 * The clock advances to the rank of each request that begins.  So a client
 * that was alone, however late its ranks are, has no disadvantage against
 * clients that arrive later.
 *
 * The variables are evaluated where the client is connected.  The hop carries
 * their values in a header that the outer server replaces; the inner one
 * listens on a socket of ours.
 */


#include "line.h"
#include <ngx_sha1.h>


#define NGX_HTTP_VLM_PLACES        1000    /* most positions counted */
#define NGX_HTTP_VLM_PLACES_MS     200     /* ms between two counts */


/* ms, of a request's priority */

#define ngx_http_vlm_order_worth(ctx)                                         \
    ((ctx)->place.rank.given.priority                                         \
     * (int64_t) (ctx)->engine->conf.rank.priority_age)


struct ngx_http_vlm_client_s {
    ngx_rbtree_node_t             node;        /* the key is the client's */
    ngx_uint_t                    n;           /* requests, until they end */
    int64_t                       next;        /* start of its next request */
};


static void
ngx_http_vlm_order_insert_value(ngx_rbtree_node_t *temp,
    ngx_rbtree_node_t *node, ngx_rbtree_node_t *sentinel)
{
    ngx_rbtree_node_t   **p;
    ngx_http_vlm_ctx_t   *ctx, *other;

    ctx = ngx_rbtree_data(node, ngx_http_vlm_ctx_t, place.rank.node);

    for ( ;; ) {
        other = ngx_rbtree_data(temp, ngx_http_vlm_ctx_t, place.rank.node);

        p = ngx_http_vlm_order_before(ctx, other) ? &temp->left : &temp->right;

        if (*p == sentinel) {
            break;
        }

        temp = *p;
    }

    *p = node;
    node->parent = temp;
    node->left = sentinel;
    node->right = sentinel;
    ngx_rbt_red(node);
}


void
ngx_http_vlm_order_init(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_order_t  *order;

    order = &eng->line.order;

    ngx_rbtree_init(&order->waiting[0], &order->waiting_sentinel,
                    ngx_http_vlm_order_insert_value);
    ngx_rbtree_init(&order->waiting[1], &order->waiting_sentinel,
                    ngx_http_vlm_order_insert_value);
    ngx_rbtree_init(&order->clients, &order->clients_sentinel,
                    ngx_rbtree_insert_value);
}


ngx_uint_t
ngx_http_vlm_order_set(ngx_http_vlm_engine_t *eng)
{
    return eng->conf.rank.priority || eng->conf.rank.fair;
}


ngx_int_t
ngx_http_vlm_order_read(ngx_http_vlm_ctx_t *ctx)
{
    ngx_table_elt_t          *h;
    ngx_http_request_t       *r;
    ngx_http_vlm_loc_conf_t  *lcf;

    r = ctx->request;

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (!lcf->inner) {
        return ngx_http_vlm_order_value(r, ctx->engine, &ctx->place.rank);
    }

    h = ngx_http_vlm_header(r, "x-vlm-line");

    if (h) {
        vlm_rank_read(&ctx->place.rank.given, (char *) h->value.data);
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_order_variable(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    ngx_http_vlm_rank_t     rank;
    ngx_http_vlm_engine_t  *eng;

    eng = ngx_http_vlm_engine_of(r);

    if (eng == NULL
        || (!ngx_http_vlm_order_set(eng) && !eng->conf.rank.salt))
    {
        v->not_found = 1;
        return NGX_OK;
    }

    ngx_memzero(&rank, sizeof(ngx_http_vlm_rank_t));

    v->data = ngx_pnalloc(r->pool, VLM_RANK_TEXT);

    if (v->data == NULL || ngx_http_vlm_order_value(r, eng, &rank) != NGX_OK) {
        return NGX_ERROR;
    }

    v->len = vlm_rank_write(&rank.given, (char *) v->data);
    v->valid = 1;
    v->no_cacheable = 0;
    v->not_found = 0;

    return NGX_OK;
}


/* returns 0 for an empty value, which names no client */

static ngx_uint_t
ngx_http_vlm_order_hash(ngx_str_t *value, u_char *hash)
{
    ngx_sha1_t  sha1;

    if (value->len == 0) {
        return 0;
    }

    ngx_sha1_init(&sha1);
    ngx_sha1_update(&sha1, value->data, value->len);
    ngx_sha1_final(hash, &sha1);

    return 1;
}


ngx_int_t
ngx_http_vlm_order_value(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_rank_t *rank)
{
    u_char                     hash[VLM_RANK_SALT];
    ngx_str_t                  value;
    ngx_http_vlm_rank_conf_t  *conf;

    conf = &eng->conf.rank;

    if (conf->priority) {
        if (ngx_http_complex_value(r, conf->priority, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        rank->given.priority = vlm_rank_priority((char *) value.data,
                                                 value.len);
    }

    if (conf->fair) {
        if (ngx_http_complex_value(r, conf->fair, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        if (ngx_http_vlm_order_hash(&value, hash)) {
            ngx_memcpy(&rank->given.key, hash, sizeof(uint64_t));
        }
    }

    if (conf->salt) {
        if (ngx_http_complex_value(r, conf->salt, &value) != NGX_OK) {
            return NGX_ERROR;
        }

        rank->given.salted = ngx_http_vlm_order_hash(&value,
                                                     rank->given.salt);
    }

    return NGX_OK;
}


uint64_t
ngx_http_vlm_order_salt(ngx_http_vlm_rank_t *rank)
{
    uint64_t  salt;

    salt = 0;

    if (rank->given.salted) {
        ngx_memcpy(&salt, rank->given.salt, sizeof(uint64_t));
    }

    return salt;
}


/* a client's record lives as long as the client has requests here; NULL: there
   is none, or no memory to add it */

static ngx_http_vlm_client_t *
ngx_http_vlm_order_client(ngx_http_vlm_engine_t *eng, uint64_t key,
    ngx_uint_t add)
{
    ngx_rbtree_t           *clients;
    ngx_rbtree_key_t        k;
    ngx_rbtree_node_t      *node;
    ngx_http_vlm_client_t  *client;

    clients = &eng->line.order.clients;
    k = (ngx_rbtree_key_t) key;

    for (node = clients->root;
         node != clients->sentinel;
         node = k < node->key ? node->left : node->right)
    {
        if (node->key == k) {
            return ngx_rbtree_data(node, ngx_http_vlm_client_t, node);
        }
    }

    client = add ? ngx_calloc(sizeof(ngx_http_vlm_client_t), eng->log) : NULL;

    if (client) {
        client->node.key = k;
        ngx_rbtree_insert(clients, &client->node);
    }

    return client;
}


static int64_t
ngx_http_vlm_order_start(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_client_t *client)
{
    int64_t  now;

    now = (int64_t) ngx_current_msec + eng->line.order.clock;

    return client ? ngx_max(now, client->next) : now;
}


ngx_int_t
ngx_http_vlm_order_rank(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_rank_t         *rank;
    ngx_http_vlm_engine_conf_t  *conf;

    rank = &ctx->place.rank;
    conf = &ctx->engine->conf;

    if (rank->given.key && rank->client == NULL) {
        rank->client = ngx_http_vlm_order_client(ctx->engine, rank->given.key,
                                                 1);

        if (rank->client == NULL) {
            return NGX_ERROR;
        }

        rank->client->n++;
    }

    rank->start = ngx_http_vlm_order_start(ctx->engine, rank->client);
    rank->value = rank->start - ngx_http_vlm_order_worth(ctx);

    if (rank->client) {
        rank->client->next = rank->start + (int64_t) (conf->rank.fair_age
                                                      ? conf->rank.fair_age
                                                      : conf->queue_timeout);
    }

    return NGX_OK;
}


ngx_uint_t
ngx_http_vlm_order_would(ngx_http_vlm_ctx_t *ctx, ngx_http_vlm_ctx_t *other)
{
    ngx_http_vlm_rank_t    *rank;
    ngx_http_vlm_client_t  *client;

    rank = &ctx->place.rank;
    client = rank->client;

    if (client == NULL && rank->given.key) {
        client = ngx_http_vlm_order_client(ctx->engine, rank->given.key, 0);
    }

    return ngx_http_vlm_order_start(ctx->engine, client)
           - ngx_http_vlm_order_worth(ctx) < other->place.rank.value;
}


void
ngx_http_vlm_order_leave(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_client_t  *client;

    client = ctx->place.rank.client;

    ctx->place.rank.client = NULL;

    if (--client->n == 0) {
        ngx_rbtree_delete(&ctx->engine->line.order.clients, &client->node);
        ngx_free(client);
    }
}


ngx_uint_t
ngx_http_vlm_order_before(ngx_http_vlm_ctx_t *one, ngx_http_vlm_ctx_t *two)
{
    if (one->place.rank.value != two->place.rank.value) {
        return one->place.rank.value < two->place.rank.value;
    }

    return one->place.seq < two->place.seq;
}


void
ngx_http_vlm_order_insert(ngx_http_vlm_ctx_t *ctx)
{
    ngx_rbtree_insert(&ctx->engine->line.order.waiting[ctx->heavy],
                      &ctx->place.rank.node);

    ctx->place.rank.in_order = 1;
}


void
ngx_http_vlm_order_remove(ngx_http_vlm_ctx_t *ctx)
{
    ctx->place.rank.in_order = 0;

    ngx_rbtree_delete(&ctx->engine->line.order.waiting[ctx->heavy],
                      &ctx->place.rank.node);
}


static ngx_http_vlm_ctx_t *
ngx_http_vlm_order_least_of(ngx_http_vlm_engine_t *eng, ngx_uint_t heavy)
{
    ngx_rbtree_t       *line;
    ngx_rbtree_node_t  *node;

    line = &eng->line.order.waiting[heavy];

    if (line->root == line->sentinel) {
        return NULL;
    }

    node = ngx_rbtree_min(line->root, line->sentinel);

    return ngx_rbtree_data(node, ngx_http_vlm_ctx_t, place.rank.node);
}


static ngx_http_vlm_ctx_t *
ngx_http_vlm_order_least(ngx_http_vlm_ctx_t *one, ngx_http_vlm_ctx_t *two)
{
    if (one == NULL || two == NULL) {
        return one ? one : two;
    }

    return ngx_http_vlm_order_before(one, two) ? one : two;
}


ngx_http_vlm_ctx_t *
ngx_http_vlm_order_first(ngx_http_vlm_engine_t *eng, ngx_uint_t heavy)
{
    return ngx_http_vlm_order_least(ngx_http_vlm_order_least_of(eng, 0),
                      heavy ? ngx_http_vlm_order_least_of(eng, 1) : NULL);
}


void
ngx_http_vlm_order_begun(ngx_http_vlm_ctx_t *ctx)
{
    int64_t                ahead;
    ngx_http_vlm_order_t  *order;

    order = &ctx->engine->line.order;
    ahead = ctx->place.rank.start - (int64_t) ngx_current_msec;

    order->clock = ngx_max(order->clock, ahead);
}


/* for all requests that ask within the interval, not for each of them */

static void
ngx_http_vlm_order_count(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t             n, i;
    ngx_rbtree_node_t     *node;
    ngx_http_vlm_ctx_t    *ctx, *next[2];
    ngx_http_vlm_order_t  *order;

    order = &eng->line.order;

    order->count++;
    order->counted_at = ngx_current_msec;

    next[0] = ngx_http_vlm_order_least_of(eng, 0);
    next[1] = ngx_http_vlm_order_least_of(eng, 1);

    for (n = 1; n <= NGX_HTTP_VLM_PLACES; n++) {
        ctx = ngx_http_vlm_order_least(next[0], next[1]);

        if (ctx == NULL) {
            break;
        }

        ctx->place.rank.place = n;
        ctx->place.rank.count = order->count;

        i = ctx->heavy;
        node = ngx_rbtree_next(&order->waiting[i], &ctx->place.rank.node);
        next[i] = node ? ngx_rbtree_data(node, ngx_http_vlm_ctx_t,
                                         place.rank.node)
                       : NULL;
    }
}


ngx_uint_t
ngx_http_vlm_order_place(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_order_t  *order;

    order = &ctx->engine->line.order;

    if (!ctx->place.rank.in_order) {
        return 0;
    }

    if (order->count == 0
        || ngx_current_msec - order->counted_at >= NGX_HTTP_VLM_PLACES_MS)
    {
        ngx_http_vlm_order_count(ctx->engine);
    }

    return ctx->place.rank.count == order->count ? ctx->place.rank.place : 0;
}
