
/*
 * The module structure: directives, configurations and hooks.  Their functions
 * are in http/, one topic a file; http/ngx_http_vlm.h lists the folders.
 */


#include "http/conf/conf.h"


static ngx_int_t ngx_http_vlm_postconfiguration(ngx_conf_t *cf);
static void *ngx_http_vlm_create_main_conf(ngx_conf_t *cf);
static void *ngx_http_vlm_create_loc_conf(ngx_conf_t *cf);
static char *ngx_http_vlm_merge_loc_conf(ngx_conf_t *cf, void *parent,
    void *child);


static ngx_command_t  ngx_http_vlm_commands[] = {

    { ngx_string("vlm_engine"),
      NGX_HTTP_MAIN_CONF|NGX_CONF_BLOCK|NGX_CONF_TAKE1,
      ngx_http_vlm_engine_block,
      NGX_HTTP_MAIN_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("vlm_pass"),
      NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_vlm_pass,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("vlm_status"),
      NGX_HTTP_LOC_CONF|NGX_CONF_TAKE12,
      ngx_http_vlm_status,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    { ngx_string("vlm_cors"),
      NGX_HTTP_MAIN_CONF|NGX_HTTP_SRV_CONF|NGX_HTTP_LOC_CONF|NGX_CONF_1MORE,
      ngx_http_vlm_cors_set,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

    /* used only in the text that vlm_engine generates */

    { ngx_string("vlm_inner"),
      NGX_HTTP_SRV_CONF|NGX_CONF_TAKE1,
      ngx_http_vlm_inner,
      NGX_HTTP_LOC_CONF_OFFSET,
      0,
      NULL },

      ngx_null_command
};


static ngx_http_module_t  ngx_http_vlm_module_ctx = {
    ngx_http_vlm_add_variables,            /* preconfiguration */
    ngx_http_vlm_postconfiguration,        /* postconfiguration */

    ngx_http_vlm_create_main_conf,         /* create main configuration */
    ngx_http_vlm_engines_check,            /* init main configuration */

    NULL,                                  /* create server configuration */
    NULL,                                  /* merge server configuration */

    ngx_http_vlm_create_loc_conf,          /* create location configuration */
    ngx_http_vlm_merge_loc_conf            /* merge location configuration */
};


ngx_module_t  ngx_http_vlm_module = {
    NGX_MODULE_V1,
    &ngx_http_vlm_module_ctx,              /* module context */
    ngx_http_vlm_commands,                 /* module directives */
    NGX_HTTP_MODULE,                       /* module type */
    NULL,                                  /* init master */
    ngx_http_vlm_init_module,              /* init module */
    ngx_http_vlm_init_process,             /* init process */
    NULL,                                  /* init thread */
    NULL,                                  /* exit thread */
    ngx_http_vlm_exit_process,             /* exit process */
    NULL,                                  /* exit master */
    NGX_MODULE_V1_PADDING
};


static ngx_int_t
ngx_http_vlm_postconfiguration(ngx_conf_t *cf)
{
    ngx_http_handler_pt        *h;
    ngx_http_vlm_main_conf_t   *mcf;
    ngx_http_core_main_conf_t  *cmcf;

    mcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_vlm_module);

    if (mcf->engines.nelts == 0) {
        return NGX_OK;
    }

    cmcf = ngx_http_conf_get_module_main_conf(cf, ngx_http_core_module);

    h = ngx_array_push(&cmcf->phases[NGX_HTTP_POST_READ_PHASE].handlers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    *h = ngx_http_vlm_inner_handler;

    return ngx_http_vlm_cors_init(cf) == NGX_OK ? ngx_http_vlm_filter_init(cf)
                                                : NGX_ERROR;
}


static void *
ngx_http_vlm_create_main_conf(ngx_conf_t *cf)
{
    ngx_http_vlm_main_conf_t  *mcf;

    mcf = ngx_pcalloc(cf->pool, sizeof(ngx_http_vlm_main_conf_t));
    if (mcf == NULL) {
        return NULL;
    }

    if (ngx_array_init(&mcf->engines, cf->pool, 2,
                       sizeof(ngx_http_vlm_engine_t *))
        != NGX_OK
        || ngx_array_init(&mcf->passes, cf->pool, 1,
                          sizeof(ngx_http_vlm_passed_t))
           != NGX_OK)
    {
        return NULL;
    }

    return mcf;
}


static void *
ngx_http_vlm_create_loc_conf(ngx_conf_t *cf)
{
    ngx_http_vlm_loc_conf_t  *conf;

    conf = ngx_pcalloc(cf->pool, sizeof(ngx_http_vlm_loc_conf_t));
    if (conf == NULL) {
        return NULL;
    }

    conf->cors = NGX_CONF_UNSET_UINT;

    return conf;
}


static char *
ngx_http_vlm_merge_loc_conf(ngx_conf_t *cf, void *parent, void *child)
{
    ngx_http_vlm_loc_conf_t *prev = parent;
    ngx_http_vlm_loc_conf_t *conf = child;

    ngx_http_core_loc_conf_t  *clcf;

    if (conf->cors == NGX_CONF_UNSET_UINT) {
        conf->origins = prev->origins;
    }

    ngx_conf_merge_uint_value(conf->cors, prev->cors, NGX_HTTP_VLM_CORS_SAME);

    clcf = ngx_http_conf_get_module_loc_conf(cf, ngx_http_core_module);

    /* "if" and "limit_except" within a location inherit vlm_pass; nested
       locations do not */

    if (conf->engine == NULL && clcf->noname && prev->engine
        && !prev->inner)
    {
        *conf = *prev;

        if (clcf->lmt_excpt) {
            clcf->handler = ngx_http_vlm_handler;
        }
    }

    if (conf->hop && !clcf->noname && clcf->handler != ngx_http_vlm_handler) {
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0,
                      "location \"%V\" has \"vlm_pass %V\" and another handler "
                      "behind it: remove \"fastcgi_pass\" or the other handler",
                      &clcf->name, &conf->engine->name);
        return NGX_CONF_ERROR;
    }

    if (conf->max_body && clcf->client_max_body_size == 1024 * 1024) {
        clcf->client_max_body_size = conf->max_body;
    }

    return NGX_CONF_OK;
}
