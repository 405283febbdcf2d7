
/*
 * The messages of a request on their way from JSON to a prompt.
 *
 * Many requests may wait, and for long.  So their pictures wait in a file, and
 * only texts wait in memory.  Pictures are decoded when the prompt is made,
 * which is for few requests at a time, and only as far as the context has room
 * for them.
 */


#include "messages.h"
#include "base/base64.h"
#include "api/calls.h"
#include "robobrain/task.h"


typedef struct {
    char                         *text;        /* or NULL and a picture */
    size_t                        len;         /* of text, or of the file */
    off_t                         offset;      /* of the picture's file */
    uint32_t                      tokens;      /* of it, if that is known */
    uint32_t                      n;           /* 1; or frames of the video that
                                                  begins here; 0: a later one */
    unsigned                      marked:1;    /* text is the template's own */
    double                        fps;         /* of a video, else 0 */
    vlm_pixels_t                  pixels;      /* bounds of it */
    vlm_picture_t                *picture;     /* once it was read */
} ngx_http_vlm_messages_part_t;


typedef struct {
    vlm_role_t                    role;
    size_t                        first;       /* in parts */
    size_t                        n;
} ngx_http_vlm_messages_one_t;


struct ngx_http_vlm_messages_s {
    ngx_http_vlm_ctx_t           *ctx;
    ngx_http_vlm_messages_one_t  *messages;
    size_t                        n_messages;
    ngx_http_vlm_messages_part_t *parts;
    size_t                        n_parts;
    size_t                        n_pictures;  /* with frames of videos */
    size_t                        n_frames;
    size_t                        text;        /* bytes, of all */
    int                           fd;          /* of the file of all pictures,
                                                  or -1 */
    off_t                         size;        /* its bytes */
    vlm_file_t                    map;         /* while they are decoded */
    char                         *tools;       /* or NULL */
    int                           task;
    vlm_picture_info_t            seen;        /* of the last picture */
};


ngx_http_vlm_messages_t *
ngx_http_vlm_messages_create(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_messages_t  *m;

    m = calloc(1, sizeof(ngx_http_vlm_messages_t));

    if (m == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the messages");
        return NULL;
    }

    m->ctx = ctx;
    m->fd = -1;

    return m;
}


ngx_int_t
ngx_http_vlm_messages_role(const char *text, vlm_role_t *role)
{
    ngx_uint_t  i;

    static const char *const  names[] = {
        [VLM_SYSTEM] = "system",
        [VLM_USER] = "user",
        [VLM_ASSISTANT] = "assistant",
        [VLM_TOOL] = "tool"
    };

    for (i = 0; text && i < sizeof(names) / sizeof(names[0]); i++) {

        if (ngx_strcmp(text, names[i]) == 0) {
            *role = (vlm_role_t) i;
            return NGX_OK;
        }
    }

    return NGX_DECLINED;
}


/* an array with room for one more; its capacity is the power of two from n
   on */

static void *
ngx_http_vlm_messages_grow(void *array, size_t n, size_t size)
{
    if (n & (n - 1)) {
        return array;
    }

    return realloc(array, (n ? 2 * n : 1) * size);
}


ngx_int_t
ngx_http_vlm_messages_begin(ngx_http_vlm_messages_t *m, vlm_role_t role)
{
    void                         *array;
    ngx_http_vlm_messages_one_t  *one;

    if (m->n_messages == NGX_HTTP_VLM_MESSAGES) {
        return ngx_http_vlm_fail_input(m->ctx, "There are more than %d "
                                       "messages", NGX_HTTP_VLM_MESSAGES);
    }

    array = ngx_http_vlm_messages_grow(m->messages, m->n_messages,
                                       sizeof(ngx_http_vlm_messages_one_t));
    if (array == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    m->messages = array;

    one = &m->messages[m->n_messages++];

    one->role = role;
    one->first = m->n_parts;
    one->n = 0;

    return NGX_OK;
}


/* a further part of the last message: a picture, as long as it has no text */

static ngx_http_vlm_messages_part_t *
ngx_http_vlm_messages_part(ngx_http_vlm_messages_t *m)
{
    void                          *array;
    ngx_http_vlm_messages_part_t  *part;

    if (m->n_parts == NGX_HTTP_VLM_PARTS) {
        (void) ngx_http_vlm_fail_input(m->ctx, "The messages have more than %d "
                                       "parts", NGX_HTTP_VLM_PARTS);
        return NULL;
    }

    array = ngx_http_vlm_messages_grow(m->parts, m->n_parts,
                                       sizeof(ngx_http_vlm_messages_part_t));
    if (array == NULL) {
        (void) ngx_http_vlm_fail_memory(m->ctx, "the messages");
        return NULL;
    }

    m->parts = array;

    part = &m->parts[m->n_parts++];
    ngx_memzero(part, sizeof(ngx_http_vlm_messages_part_t));

    m->messages[m->n_messages - 1].n++;

    return part;
}


ngx_int_t
ngx_http_vlm_messages_text(ngx_http_vlm_messages_t *m, const char *text)
{
    size_t                         len;
    ngx_http_vlm_messages_part_t  *part;

    len = ngx_strlen(text);

    if (len > NGX_HTTP_VLM_MESSAGES_TEXT - m->text) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "context_length_exceeded",
                                      "This model's maximum context length is "
                                      "%uD tokens. The messages have more than "
                                      "%d bytes of text.",
                                      m->ctx->engine->conf.vlm.context,
                                      NGX_HTTP_VLM_MESSAGES_TEXT);
    }

    part = ngx_http_vlm_messages_part(m);
    if (part == NULL) {
        return NGX_ERROR;
    }

    part->text = malloc(len + 1);
    if (part->text == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    ngx_memcpy(part->text, text, len + 1);
    part->len = len;

    m->text += len;

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_messages_marked(ngx_http_vlm_messages_t *m, const char *text)
{
    if (ngx_http_vlm_messages_text(m, text) != NGX_OK) {
        return NGX_ERROR;
    }

    m->parts[m->n_parts - 1].marked = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_messages_call(ngx_http_vlm_messages_t *m, const char *name,
    const vlm_json_t *arguments)
{
    ngx_int_t                     rc;
    vlm_facts_t                  *facts;
    vlm_json_out_t                w;
    ngx_http_vlm_messages_one_t  *one;

    facts = &m->ctx->engine->conf.facts;
    one = &m->messages[m->n_messages - 1];

    vlm_json_init(&w, NGX_HTTP_VLM_MESSAGES_TEXT);
    vlm_json_put_raw(&w, "\n{\"name\": ", sizeof("\n{\"name\": ") - 1);
    vlm_calls_string(&w, name);
    vlm_json_put_raw(&w, ", \"arguments\": ", sizeof(", \"arguments\": ") - 1);
    vlm_calls_arguments(&w, arguments);
    vlm_json_put_raw(&w, "}", 1);

    if (vlm_json_done(&w) != 0) {
        vlm_json_release(&w);
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    vlm_json_put_raw(&w, "", 1);

    rc = (one->n && ngx_http_vlm_messages_text(m, "\n") != NGX_OK)
         || ngx_http_vlm_messages_marked(m, facts->call) != NGX_OK
         || w.failed
         || ngx_http_vlm_messages_text(m, w.data) != NGX_OK
         || ngx_http_vlm_messages_marked(m, facts->call_end) != NGX_OK
         ? NGX_ERROR : NGX_OK;

    vlm_json_release(&w);

    return rc;
}


void
ngx_http_vlm_messages_tools(ngx_http_vlm_messages_t *m, char *tools)
{
    free(m->tools);
    m->tools = tools;
}


void
ngx_http_vlm_messages_task(ngx_http_vlm_messages_t *m, int task)
{
    m->task = task;
}


const vlm_picture_info_t *
ngx_http_vlm_messages_seen(ngx_http_vlm_messages_t *m)
{
    return m->seen.width ? &m->seen : NULL;
}


static ngx_int_t
ngx_http_vlm_messages_keep(ngx_http_vlm_messages_t *m, u_char *data,
    size_t len, uint32_t tokens)
{
    int                            e;
    ngx_http_vlm_messages_part_t  *part;

    part = ngx_http_vlm_messages_part(m);
    if (part == NULL) {
        return NGX_ERROR;
    }

    if (m->fd == -1) {
        m->fd = vlm_file_unnamed((char *) m->ctx->engine->conf.store_dir.data);
    }

    e = m->fd == -1 ? ngx_errno : vlm_file_write(m->fd, data, len, m->size);

    if (e) {
        return ngx_http_vlm_fail(m->ctx, e == ENOSPC || e == EDQUOT
                                         ? NGX_HTTP_INSUFFICIENT_STORAGE
                                         : NGX_HTTP_INTERNAL_SERVER_ERROR,
                                 "The image cannot be kept while it waits: %s",
                                 strerror(e));
    }

    part->offset = m->size;
    m->size += len;

    part->len = len;
    part->tokens = tokens;

    m->n_pictures++;
    m->ctx->heavy = 1;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_messages_pixels(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *fields,
    vlm_pixels_t *pixels)
{
    vlm_err_t  err;

    ngx_memzero(&err, sizeof(vlm_err_t));

    return vlm_pixels_read(pixels, fields, ctx->engine->conf.vlm.max_pixels,
                           &err)
           == 0 ? NGX_OK : ngx_http_vlm_fail_input(ctx, "%s", err.text);
}


ngx_int_t
ngx_http_vlm_messages_picture(ngx_http_vlm_messages_t *m, const char *text,
    const vlm_json_t *fields)
{
    int                  bad;
    size_t               n;
    u_char              *data;
    ngx_int_t            rc;
    vlm_err_t           *err;
    vlm_pixels_t         pixels;
    vlm_picture_info_t   info;

    if (m->n_pictures - m->n_frames >= NGX_HTTP_VLM_PICTURES) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "too_many_images", "There are more than "
                                      "%d images", NGX_HTTP_VLM_PICTURES);
    }

    if (ngx_http_vlm_messages_pixels(m->ctx, fields, &pixels) != NGX_OK) {
        return NGX_ERROR;
    }

    data = ngx_http_vlm_messages_bytes(m->ctx, text, ngx_strlen(text), &n);

    if (data == NULL) {
        return NGX_ERROR;
    }

    err = &m->ctx->error.err;

    ngx_memzero(err, sizeof(vlm_err_t));

    bad = m->ctx->opened
          ? vlm_picture_measure(m->ctx->engine->life.vlm, data, n, &pixels,
                                &info, err)
          : vlm_picture_check(data, n, &info, err);

    rc = bad ? ngx_http_vlm_fail_engine(m->ctx, "unsupported_image_format",
                                        "image_too_large")
             : ngx_http_vlm_messages_keep(m, data, n, info.tokens);

    if (rc == NGX_OK) {
        m->parts[m->n_parts - 1].pixels = pixels;
        m->parts[m->n_parts - 1].n = 1;
    }

    free(data);

    return rc;
}


/* its header is checked here, and that it has the size of the first */

static ngx_int_t
ngx_http_vlm_messages_frame(ngx_http_vlm_messages_t *m, const ngx_str_t *text,
    size_t i, vlm_picture_info_t *first)
{
    size_t               n;
    u_char              *data;
    ngx_int_t            rc;
    vlm_err_t            err;
    vlm_picture_info_t   info;

    data = ngx_http_vlm_messages_bytes(m->ctx, (char *) text->data, text->len,
                                       &n);

    if (data == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(&err, sizeof(vlm_err_t));

    if (vlm_picture_check(data, n, &info, &err) != 0) {
        rc = ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                    err.code == VLM_ELIMIT
                                    ? "image_too_large"
                                    : "unsupported_image_format",
                                    "Frame %uz: %s", i + 1, err.text);

    } else if (i && (info.width != first->width
                     || info.height != first->height))
    {
        rc = ngx_http_vlm_fail_input(m->ctx, "Frame %uz has %uDx%uD pixels, "
                                     "the first one %uDx%uD: the frames of a "
                                     "video have one size", i + 1, info.width,
                                     info.height, first->width, first->height);

    } else {
        rc = ngx_http_vlm_messages_keep(m, data, n, 0);
    }

    if (i == 0) {
        *first = info;
    }

    free(data);

    return rc;
}


/* a video that is too long is refused after its first frame */

static ngx_int_t
ngx_http_vlm_messages_length(ngx_http_vlm_messages_t *m, size_t n, double fps,
    const vlm_pixels_t *pixels, vlm_picture_info_t *info)
{
    uint32_t  context;

    if (!m->ctx->opened) {
        return NGX_OK;
    }

    ngx_memzero(&m->ctx->error.err, sizeof(vlm_err_t));

    if (vlm_video_measure(m->ctx->engine->life.vlm, n, fps, pixels, info,
                          &m->ctx->error.err)
        != 0)
    {
        return ngx_http_vlm_fail_engine(m->ctx, NULL, "image_too_large");
    }

    context = m->ctx->engine->conf.vlm.context;

    if (info->tokens < context) {
        return NGX_OK;
    }

    return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                  "context_length_exceeded", "This model's "
                                  "maximum context length is %uD tokens. "
                                  "%uz frames need %uD, at %uDx%uD pixels: "
                                  "send fewer, or a lower max_pixels.",
                                  context, n, info->tokens,
                                  info->resized_width, info->resized_height);
}


/* each frame is a part; the first has what is known of all */

ngx_int_t
ngx_http_vlm_messages_video(ngx_http_vlm_messages_t *m,
    const ngx_str_t *frames, size_t n, double fps, const vlm_json_t *fields)
{
    size_t                         i, at;
    vlm_pixels_t                   pixels;
    vlm_picture_info_t             info;
    ngx_http_vlm_messages_part_t  *part;

    if (n == 0 || n > NGX_HTTP_VLM_FRAMES - m->n_frames) {
        return ngx_http_vlm_fail_code(m->ctx, NGX_HTTP_BAD_REQUEST,
                                      "too_many_frames", "The request has %uz "
                                      "frames, it may have 1 to %d",
                                      m->n_frames + n, NGX_HTTP_VLM_FRAMES);
    }

    if (!(fps >= VLM_MIN_FPS && fps <= VLM_MAX_FPS)) {
        return ngx_http_vlm_fail_input(m->ctx, "fps is no number from 0.01 to "
                                       "1000");
    }

    if (ngx_http_vlm_messages_pixels(m->ctx, fields, &pixels) != NGX_OK) {
        return NGX_ERROR;
    }

    at = m->n_parts;

    for (i = 0; i < n; i++) {

        if (ngx_http_vlm_messages_frame(m, &frames[i], i, &info) != NGX_OK
            || (i == 0
                && ngx_http_vlm_messages_length(m, n, fps, &pixels, &info)
                   != NGX_OK))
        {
            return NGX_ERROR;
        }
    }

    part = &m->parts[at];

    part->n = n;
    part->fps = fps;
    part->pixels = pixels;
    part->tokens = info.tokens;

    m->n_frames += n;

    return NGX_OK;
}


u_char *
ngx_http_vlm_messages_bytes(ngx_http_vlm_ctx_t *ctx, const char *text,
    size_t len, size_t *n)
{
    u_char  *data;

    if (len >= 5 && strncasecmp(text, "data:", 5) == 0) {
        text = vlm_base64_url(text, len, &len);

        if (text == NULL) {
            (void) ngx_http_vlm_fail_input(ctx, "The image is a data URL "
                                           "without \";base64,\"");
            return NULL;
        }
    }

    data = malloc(vlm_base64_room(len));

    if (data == NULL) {
        (void) ngx_http_vlm_fail_memory(ctx, "the image");
        return NULL;
    }

    if (vlm_base64_decode(data, n, text, len) != 0) {
        (void) ngx_http_vlm_fail_input(ctx, "The image is not base64");
        free(data);
        return NULL;
    }

    return data;
}


/* some chat programs send more tools with every message than the context has
   room for; their user sees this sentence */

static void
ngx_http_vlm_messages_too_long(ngx_http_vlm_messages_t *m)
{
    size_t                 len, tools;
    ngx_http_vlm_error_t  *e;

    e = &m->ctx->error;
    tools = m->tools ? ngx_strlen(m->tools) : 0;

    if (tools <= m->text || e->err.code != VLM_ELIMIT || e->code == NULL
        || ngx_strcmp(e->code, "context_length_exceeded") != 0)
    {
        return;
    }

    len = ngx_strlen(e->err.text);

    (void) snprintf(e->err.text + len, sizeof(e->err.text) - len,
                    " %zu bytes of it are tools: send fewer, or have a larger "
                    "\"context\" or \"tools ignore\" in vlm_engine.", tools);
}


ngx_int_t
ngx_http_vlm_messages_fit(ngx_http_vlm_messages_t *m, ngx_uint_t whole)
{
    size_t                         i, k, n;
    ngx_int_t                      rc;
    ngx_http_vlm_fit_t            *parts;
    ngx_http_vlm_messages_one_t   *one;
    ngx_http_vlm_messages_part_t  *part;

    parts = calloc(m->n_parts + 2, sizeof(ngx_http_vlm_fit_t));

    if (parts == NULL) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    n = 0;

    for (i = 0; i < m->n_messages; i++) {
        one = &m->messages[i];

        if (!whole && one->role != VLM_SYSTEM && i + 1 < m->n_messages) {
            continue;
        }

        for (k = one->first; k < one->first + one->n; k++) {
            part = &m->parts[k];

            parts[n].text = part->text;
            parts[n].len = part->len;
            parts[n++].tokens = part->tokens;
        }
    }

    if (m->tools) {
        parts[n].text = m->tools;
        parts[n++].len = ngx_strlen(m->tools);
    }

    rc = ngx_http_vlm_fit(m->ctx, parts, n);

    free(parts);

    if (rc != NGX_OK) {
        ngx_http_vlm_messages_too_long(m);
    }

    return rc;
}


static void
ngx_http_vlm_messages_empty(ngx_http_vlm_messages_t *m)
{
    size_t  i;

    for (i = 0; i < m->n_parts; i++) {
        vlm_picture_free(m->parts[i].picture);
        free(m->parts[i].text);
    }

    if (m->fd != -1) {
        (void) close(m->fd);
    }

    m->fd = -1;
    m->size = 0;

    m->n_messages = 0;
    m->n_parts = 0;
    m->n_pictures = 0;
    m->n_frames = 0;
    m->text = 0;
}


/* part i, or the video of which it is the first frame */

static vlm_picture_t *
ngx_http_vlm_messages_open(ngx_http_vlm_messages_t *m, size_t i)
{
    uint32_t                       k;
    vlm_video_t                    video;
    vlm_bytes_t                    frames[NGX_HTTP_VLM_FRAMES];
    ngx_http_vlm_messages_part_t  *part;

    part = &m->parts[i];

    for (k = 0; k < part->n; k++) {
        frames[k].data = m->map.data + part[k].offset;
        frames[k].bytes = part[k].len;
    }

    video.frame = frames;
    video.n = part->n;
    video.fps = part->fps;

    return ngx_http_vlm_input_picture(m->ctx, &video, &part->pixels);
}


static ngx_int_t
ngx_http_vlm_messages_decode(ngx_http_vlm_messages_t *m)
{
    size_t                         i;
    uint64_t                       n_tokens;
    ngx_http_vlm_ctx_t            *ctx;
    vlm_picture_info_t             info;
    ngx_http_vlm_messages_part_t  *part;

    ctx = m->ctx;
    n_tokens = 0;

    for (i = 0; i < m->n_parts; i++) {
        part = &m->parts[i];

        if (part->text || part->n == 0) {
            continue;
        }

        if (n_tokens > ctx->engine->conf.vlm.context) {
            return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                          "context_length_exceeded",
                                          "This model's maximum context length "
                                          "is %uD tokens. The first images "
                                          "alone have %uL.",
                                          ctx->engine->conf.vlm.context,
                                          n_tokens);
        }

        if (part->picture == NULL) {

            part->picture = ngx_http_vlm_messages_open(m, i);

            if (part->picture == NULL) {
                return NGX_ERROR;
            }
        }

        vlm_picture_info(part->picture, &info);
        n_tokens += info.tokens;
        m->seen = info;
    }

    return NGX_OK;
}


/* decodes the pictures that were not decoded yet */

static ngx_int_t
ngx_http_vlm_messages_read(ngx_http_vlm_messages_t *m)
{
    ngx_int_t  rc;

    ngx_memzero(&m->ctx->error.err, sizeof(vlm_err_t));

    if (m->n_pictures == 0) {
        return NGX_OK;
    }

    if (vlm_file_map_fd(&m->map, m->fd, m->size) != 0) {
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    rc = ngx_http_vlm_messages_decode(m);

    vlm_file_close(&m->map);

    return rc;
}


/* the last text of the last message in the words of a visual task, malloc()ed;
   NULL: there is none, or no memory, which err has */

static char *
ngx_http_vlm_messages_worded(ngx_http_vlm_messages_t *m, size_t *at)
{
    size_t                        i;
    char                         *text;
    ngx_http_vlm_messages_one_t  *one;

    if (m->task <= VLM_GENERAL || m->n_messages == 0) {
        return NULL;
    }

    one = &m->messages[m->n_messages - 1];

    for (i = one->first + one->n; i > one->first; i--) {

        if (m->parts[i - 1].text == NULL) {
            continue;
        }

        *at = i - 1;
        text = vlm_task_prompt(m->ctx->engine->conf.facts.tasks, m->task,
                               m->parts[i - 1].text, m->parts[i - 1].len);
        if (text == NULL) {
            (void) ngx_http_vlm_fail_memory(m->ctx, "the prompt");
        }

        return text;
    }

    return NULL;
}


ngx_int_t
ngx_http_vlm_messages_prompt(ngx_http_vlm_messages_t *m, ngx_uint_t raw,
    const char *tail)
{
    char                *worded;
    size_t               i, at;
    vlm_part_t          *parts;
    vlm_message_t       *messages;
    ngx_http_vlm_ctx_t  *ctx;

    if (ngx_http_vlm_messages_read(m) != NGX_OK) {
        return NGX_ERROR;
    }

    parts = calloc(m->n_parts + 1, sizeof(vlm_part_t));
    messages = calloc(m->n_messages + 1, sizeof(vlm_message_t));

    if (parts == NULL || messages == NULL) {
        free(parts);
        free(messages);
        return ngx_http_vlm_fail_memory(m->ctx, "the messages");
    }

    for (i = 0; i < m->n_parts; i++) {
        parts[i].picture = m->parts[i].picture;
        parts[i].text = m->parts[i].text;
        parts[i].bytes = m->parts[i].text ? m->parts[i].len : 0;
        parts[i].marked = m->parts[i].marked && parts[i].bytes;
    }

    for (i = 0; i < m->n_messages; i++) {
        messages[i].role = m->messages[i].role;
        messages[i].parts = &parts[m->messages[i].first];
        messages[i].n_parts = m->messages[i].n;
    }

    ctx = m->ctx;
    worded = raw ? NULL : ngx_http_vlm_messages_worded(m, &at);

    if (worded) {
        parts[at].text = worded;
        parts[at].bytes = ngx_strlen(worded);
    }

    ctx->prompt = raw ? vlm_prompt_raw(ctx->engine->life.vlm, parts, m->n_parts,
                                       &ctx->error.err)
                      : vlm_prompt_tools(ctx->engine->life.vlm, messages,
                                         m->n_messages, m->tools, tail,
                                         &ctx->error.err);
    free(messages);
    free(parts);
    free(worded);

    if (ctx->prompt == NULL) {
        (void) ngx_http_vlm_fail_engine(ctx, NULL, "context_length_exceeded");
        ngx_http_vlm_messages_too_long(m);
        return NGX_ERROR;
    }

    /* the engine owns the pictures now */

    for (i = 0; i < m->n_parts; i++) {
        m->parts[i].picture = NULL;
    }

    ngx_http_vlm_messages_empty(m);

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_messages_drop_one(ngx_http_vlm_messages_t *m)
{
    size_t                         i, k;
    ngx_http_vlm_messages_one_t   *one;
    ngx_http_vlm_messages_part_t  *part;

    for (i = 0; /* void */ ; i++) {

        if (i + 1 >= m->n_messages) {
            return NGX_DECLINED;
        }

        one = &m->messages[i];

        if (one->role != VLM_SYSTEM) {
            break;
        }
    }

    /* its parts stay in the array, emptied, and belong to no message */

    for (k = one->first; k < one->first + one->n; k++) {
        part = &m->parts[k];

        if (part->text == NULL) {
            vlm_picture_free(part->picture);
            part->picture = NULL;
            part->text = calloc(1, 1);

            if (part->text == NULL) {
                return ngx_http_vlm_fail_memory(m->ctx, "the messages");
            }

            m->n_pictures--;
        }

        part->len = 0;
    }

    m->n_messages--;

    ngx_memmove(one, one + 1,
                (m->n_messages - i) * sizeof(ngx_http_vlm_messages_one_t));

    ngx_http_vlm_fail_clear(m->ctx);

    return NGX_OK;
}


/* drops an eighth at a time, so at most eight prompts are discarded */

ngx_int_t
ngx_http_vlm_messages_drop(ngx_http_vlm_messages_t *m)
{
    size_t     n;
    ngx_int_t  rc;

    n = m->n_messages / 8;
    rc = ngx_http_vlm_messages_drop_one(m);

    for ( /* void */ ; n && rc == NGX_OK; n--) {
        (void) ngx_http_vlm_messages_drop_one(m);
    }

    return rc;
}


void
ngx_http_vlm_messages_free(ngx_http_vlm_messages_t *m)
{
    if (m == NULL) {
        return;
    }

    ngx_http_vlm_messages_empty(m);

    free(m->tools);
    free(m->messages);
    free(m->parts);
    free(m);
}
