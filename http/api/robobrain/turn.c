
/*
 * A turn of a session: makes a prompt from history and picture, and stores the
 * pair of question and answer.  All of it runs in threads.
 */


#include "chat.h"


#define NGX_HTTP_VLM_TRIES    3                    /* tries, against concurrent
                                                      resets */

#define NGX_HTTP_UNPROCESSABLE  422


void
ngx_http_vlm_turn_task(ngx_http_vlm_ctx_t *ctx, int task)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    chat->task = vlm_task_of(ctx->engine->conf.facts.tasks, task);

    if (chat->task >= 0) {
        ngx_http_vlm_copy(chat->task_name, vlm_task_name(chat->task));
    }
}


/*
 * The session as it is now, with the picture of this request as its current
 * one.  If it is reset or deleted meanwhile, the session is loaded again.
 */

static ngx_int_t
ngx_http_vlm_turn_load(ngx_http_vlm_ctx_t *ctx, vlm_store_loaded_t *loaded)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int              rc;
    ngx_uint_t       i;
    vlm_store_t     *store;
    vlm_store_err_t  err;

    store = ctx->engine->store;

    for (i = 0; i < NGX_HTTP_VLM_TRIES; i++) {

        rc = vlm_store_session_ensure(store, ctx->place.session, &err);

        if (rc == VLM_STORE_OK) {
            rc = vlm_store_session_load(store, ctx->place.session,
                                        VLM_STORE_CONTEXT, loaded, &err);
        }

        if (rc == VLM_STORE_NOTFOUND) {
            continue;
        }

        if (rc != VLM_STORE_OK) {
            break;
        }

        if (loaded->total == 0) {
            (void) ngx_http_vlm_zone_sessions(ctx->engine, NULL);
        }

        if (chat->image == NULL) {
            return NGX_OK;
        }

        rc = vlm_store_session_image(store, ctx->place.session, loaded->epoch,
                                     vlm_store_string(chat->image), &err);

        if (rc == VLM_STORE_OK) {
            return NGX_OK;
        }

        vlm_store_loaded_free(loaded);

        if (rc != VLM_STORE_GONE && rc != VLM_STORE_NOTFOUND) {
            break;
        }
    }

    return ngx_http_vlm_fail_store(ctx, &err);
}


/* a sentence for a file that could not be mapped, with its name */

static void
ngx_http_vlm_turn_map_error(ngx_http_vlm_ctx_t *ctx, int e, uint64_t size)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    const char  *name;

    name = strrchr(chat->image, '/');
    name = name ? name + 1 : chat->image;

    switch (e) {

    case ENODATA:
        (void) ngx_http_vlm_fail_input(ctx, "The image is empty: %s has 0 "
                                       "bytes", name);
        return;

    case EFBIG:
        (void) ngx_http_vlm_fail_input(ctx, "The image has %uL bytes, it may "
                                       "have %d", size, NGX_HTTP_VLM_MAP_MAX);
        return;

    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ELOOP:
        (void) ngx_http_vlm_fail_input(ctx, "Image not found: %s", name);
        return;

    default:
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The image cannot be read");
    }
}


vlm_picture_t *
ngx_http_vlm_turn_decode(ngx_http_vlm_ctx_t *ctx, vlm_file_t *file,
    const vlm_pixels_t *pixels)
{
    vlm_bytes_t     bytes = { file->data, file->bytes };
    vlm_video_t     still = { .frame = &bytes, .n = 1 };
    vlm_picture_t  *picture;

    picture = ngx_http_vlm_input_picture(ctx, &still, pixels);

    vlm_file_close(file);

    return picture;
}


static vlm_picture_t *
ngx_http_vlm_turn_picture(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int             e;
    vlm_file_t      file;
    vlm_picture_t  *picture;

    e = ngx_http_vlm_map(&file, chat->image);

    if (e != 0) {
        ngx_http_vlm_turn_map_error(ctx, e, file.bytes);
        return NULL;
    }

    picture = ngx_http_vlm_turn_decode(ctx, &file, &chat->pixels);

    if (picture) {
        vlm_picture_info(picture, &ctx->out.seen);
    }

    return picture;
}


/*
 * The prompt.  A history that does not fit loses its oldest pair, repeatedly;
 * a request that does not fit without history is refused as the client's
 * error.
 */

static ngx_int_t
ngx_http_vlm_turn_make(ngx_http_vlm_ctx_t *ctx,
    vlm_store_loaded_t *loaded, vlm_picture_t *picture)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    char          *text, *wrapped;
    size_t         len, first;
    vlm_part_t     parts[2];
    vlm_message_t  message;

    ngx_memzero(parts, sizeof(parts));
    parts[0].picture = picture;

    message.role = VLM_USER;
    message.parts = picture ? &parts[0] : &parts[1];
    message.n_parts = picture ? 2 : 1;

    for (first = 0; /* void */ ; first += 2) {

        if (first > loaded->n) {
            first = loaded->n;
        }

        wrapped = NULL;
        text = vlm_history_text(&loaded->entries[first], loaded->n - first,
                                chat->message, &len);

        if (text) {
            wrapped = vlm_task_prompt(ctx->engine->conf.facts.tasks,
                                      chat->task, text, len);
            free(text);
        }

        if (wrapped == NULL) {
            return ngx_http_vlm_fail_memory(ctx, "the prompt");
        }

        parts[1].text = wrapped;
        parts[1].bytes = ngx_strlen(wrapped);

        ngx_memzero(&ctx->error.err, sizeof(vlm_err_t));

        ctx->prompt = vlm_prompt_make(ctx->engine->life.vlm, &message, 1,
                                      ngx_http_vlm_thinking_tail(ctx),
                                      &ctx->error.err);
        free(wrapped);

        if (ctx->prompt) {
            chat->n_dropped = first;
            return NGX_OK;
        }

        if (ctx->error.err.code != VLM_ELIMIT || first == loaded->n) {
            break;
        }
    }

    return ngx_http_vlm_fail_engine(ctx, NULL, NULL);
}


void
ngx_http_vlm_turn_prompt(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_picture_t      *picture;
    vlm_store_loaded_t  loaded;

    picture = NULL;

    /* checked before it becomes the session's picture: a broken one must not
       replace the old one */

    if (chat->image) {
        picture = ngx_http_vlm_turn_picture(ctx);

        if (picture == NULL) {
            return;
        }
    }

    if (ngx_http_vlm_turn_load(ctx, &loaded) != NGX_OK) {
        vlm_picture_free(picture);
        return;
    }

    chat->epoch = loaded.epoch;
    chat->n_entries = loaded.total;

    if (chat->image == NULL && loaded.image && !chat->text_only) {
        chat->image = strdup(loaded.image);
    }

    /* a model without a vision encoder cannot be helped by a picture */

    if (chat->image == NULL && ctx->engine->conf.facts.vision_layers == 0) {
        chat->text_only = 1;
    }

    if (chat->image == NULL && !chat->text_only) {
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_OK, "No image set. Use "
                                 "set_image() or provide image_path.");

    } else if (chat->task < 0) {
        chat->inference = 1;
        (void) ngx_http_vlm_fail(ctx, NGX_HTTP_OK, "Invalid task type: %s. "
                                 "Supported tasks are 'general', 'pointing', "
                                 "'affordance', 'trajectory', 'grounding'.",
                                 chat->task_name);

    } else {

        if (picture == NULL && !chat->text_only) {
            picture = ngx_http_vlm_turn_picture(ctx);
        }

        if ((picture || chat->text_only)
            && ngx_http_vlm_turn_make(ctx, &loaded, picture) == NGX_OK)
        {
            picture = NULL;
        }
    }

    vlm_picture_free(picture);
    vlm_store_loaded_free(&loaded);
}


/* the size of a stored picture, as the model sees it; as ..._turn_check() */

static ngx_int_t
ngx_http_vlm_turn_measure(ngx_http_vlm_ctx_t *ctx, const char *path,
    vlm_picture_info_t *info, vlm_err_t *err)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int         rc;
    vlm_file_t  file;

    if (ngx_http_vlm_map(&file, path) != 0) {
        return NGX_DECLINED;
    }

    rc = vlm_picture_measure(ctx->engine->life.vlm, file.data, file.bytes,
                             &chat->pixels, info, err);

    vlm_file_close(&file);

    return rc == 0 ? NGX_OK : NGX_ERROR;
}


static ngx_int_t
ngx_http_vlm_turn_again(ngx_http_vlm_ctx_t *ctx, vlm_store_entry_t *e)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    chat->repeated = e;
    chat->turn_number = e->number;
    chat->context_used = e->number > 2;

    ngx_http_vlm_copy(chat->task_name, e->task.data ? e->task.data : "");

    if (e->output.data) {
        chat->result = calloc(1, sizeof(vlm_store_file_t));

        if (chat->result == NULL) {
            return ngx_http_vlm_fail_memory(ctx, "the answer");
        }

        ngx_http_vlm_copy(chat->result->name, e->output.data);
    }

    /* the size that the answer's coordinates belong to */

    if (e->image.data) {
        (void) ngx_http_vlm_turn_measure(ctx, e->image.data, &ctx->out.seen,
                                         NULL);
    }

    return NGX_OK;
}


/*
 * A client that repeats a request, because its connection was cut, gets the
 * stored turn.  The first request precedes this one in the session's chain, so
 * its turn is stored by now, or will never be.
 */

ngx_int_t
ngx_http_vlm_turn_repeated(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    int                  rc;
    size_t               i;
    vlm_store_err_t      err;
    vlm_store_entry_t   *e;
    vlm_store_loaded_t  *loaded;

    loaded = &chat->session_of;

    rc = vlm_store_session_load(ctx->engine->store, ctx->place.session,
                                VLM_STORE_ENTRIES, loaded, &err);

    if (rc == VLM_STORE_NOTFOUND) {
        return NGX_DECLINED;
    }

    if (rc != VLM_STORE_OK) {
        return ngx_http_vlm_fail_store(ctx, &err);
    }

    for (i = 0; i < loaded->n; i++) {
        e = &loaded->entries[i];

        if (e->key.data == NULL
            || ngx_strcmp(e->key.data, chat->key) != 0
            || e->us <= ctx->times.wall - VLM_STORE_REPEAT)
        {
            continue;
        }

        if (e->body != (int64_t) ctx->hash) {
            return ngx_http_vlm_fail(ctx, NGX_HTTP_UNPROCESSABLE,
                                     "This session has had another request "
                                     "with this Idempotency-Key");
        }

        return ngx_http_vlm_turn_again(ctx, e);
    }

    vlm_store_loaded_free(loaded);

    return NGX_DECLINED;
}


ngx_int_t
ngx_http_vlm_turn_check(ngx_http_vlm_ctx_t *ctx, vlm_err_t *err)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    ngx_int_t           rc;
    const char         *path;
    vlm_picture_info_t  info;
    vlm_store_loaded_t  loaded;

    ngx_memzero(err, sizeof(vlm_err_t));
    ngx_memzero(&loaded, sizeof(vlm_store_loaded_t));

    path = chat->image;

    if (path == NULL
        && vlm_store_session_load(ctx->engine->store, ctx->place.session, 0,
                                  &loaded, NULL)
           == VLM_STORE_OK)
    {
        path = loaded.image;
    }

    rc = path ? ngx_http_vlm_turn_measure(ctx, path, &info, err) : NGX_DECLINED;

    vlm_store_loaded_free(&loaded);

    return rc;
}


/*
 * "apart": text and picture are for separate prompts.  A missing file, or one
 * that is no picture, is reported later with a sentence of its own.
 */

ngx_int_t
ngx_http_vlm_turn_fit(ngx_http_vlm_ctx_t *ctx, ngx_uint_t apart)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_picture_info_t  info;
    ngx_http_vlm_fit_t  parts[2];

    ngx_memzero(parts, sizeof(parts));

    parts[0].text = chat->message.data;
    parts[0].len = chat->message.len;

    if (ctx->opened && chat->image
        && ngx_http_vlm_turn_measure(ctx, chat->image, &info, NULL) == NGX_OK)
    {
        parts[1].tokens = info.tokens;
    }

    if (!apart) {
        return ngx_http_vlm_fit(ctx, parts, 2);
    }

    if (ngx_http_vlm_fit(ctx, &parts[0], 1) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_vlm_fit(ctx, &parts[1], 1);
}


void
ngx_http_vlm_turn_store(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_chat_t *chat = ctx->data;

    vlm_store_turn_t    turn;
    vlm_store_loaded_t  loaded;

    if (chat->repeated) {
        return;
    }

    ngx_memzero(&turn, sizeof(vlm_store_turn_t));

    turn.key = vlm_store_string(chat->key);
    turn.body = (int64_t) ctx->hash;

    if (ctx->place.lease.token[0]) {
        turn.lease = &ctx->place.lease;
    }

    turn.message = chat->message;
    turn.asked = ctx->times.wall;

    turn.task = vlm_store_string(chat->task_name);
    turn.image = vlm_store_string(chat->image);

    turn.answer.data = (char *) ctx->out.answer.data;
    turn.answer.len = ctx->out.answer.len;

    turn.thinking.data = (char *) ctx->out.thinking.data;
    turn.thinking.len = ctx->out.thinking.len;

    /* a thinking model may state its coordinates in its thinking alone */

    chat->result = ngx_http_vlm_draw(ctx, ctx->out.answer.len
                                          ? &ctx->out.answer
                                          : &ctx->out.thinking);

    if (chat->result) {
        turn.output = vlm_store_string(chat->result->name);
    }

    ctx->stored.code = vlm_store_session_append(ctx->engine->store,
                                                ctx->place.session,
                                                chat->epoch, &turn,
                                                &chat->turn_number,
                                                &chat->context_used,
                                                &ctx->stored);

    if (ctx->stored.code == VLM_STORE_OK) {
        return;
    }

    chat->turn_number = 0;
    chat->context_used = 0;

    if (vlm_store_session_load(ctx->engine->store, ctx->place.session,
                               0, &loaded, NULL)
        == VLM_STORE_OK)
    {
        chat->turn_number = loaded.total;
        vlm_store_loaded_free(&loaded);
    }
}
