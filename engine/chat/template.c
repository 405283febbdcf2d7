/*
 * The chat template of a family, whose words are in its vlm_words_t, to token ids.
 *
 * Text between two control tokens is one stretch for the tokenizer, as in the reference, which
 * splits the rendered template at control tokens.  Control tokens are ids from the start, so that a
 * client's text never becomes one.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "chat/prompt.h"
#include "ops/ops.h"

typedef struct {                       /* a prompt being written */
    const vlm_template_t  *t;
    vlm_ids_t              ids;
    char                  *text;       /* the stretch since the last control token */
    size_t                 bytes, room;
    vlm_picture_t         *picture[VLM_MAX_PICTURES];
    uint32_t               picture_at[VLM_MAX_PICTURES], time[VLM_MAX_PICTURES];
    uint32_t               n_pictures;
    vlm_err_t             *err;
} vlm_writer_t;

static int write_message(vlm_writer_t *w, const vlm_message_t *m, const vlm_message_t *before,
                         const vlm_message_t *behind);
static int write_parts(vlm_writer_t *w, const vlm_part_t *parts, size_t n);
static int write_text(vlm_writer_t *w, const char *text, size_t bytes);
static int write_words(vlm_writer_t *w, const char *text);
static int write_marked(vlm_writer_t *w, const char *text);
static int write_control(vlm_writer_t *w, uint32_t id);
static int write_picture(vlm_writer_t *w, vlm_picture_t *p);
static int write_cells(vlm_writer_t *w, vlm_picture_t *p);
static int flush_text(vlm_writer_t *w);
static vlm_prompt_t *finish(vlm_writer_t *w);


static int
find_control(const vlm_tokenizer_t *t, const char *name, uint32_t *id, vlm_err_t *err)
{
    int64_t  found;

    found = vlm_special(t, name);
    if (found < 0) {
        return vlm_fail(err, VLM_EMODEL, "the tokenizer has no token %s", name);
    }

    *id = (uint32_t) found;

    return 0;
}


int
vlm_template_open(vlm_template_t *t, const vlm_tokenizer_t *tokenizer, const vlm_config_t *c,
                  uint32_t limit, vlm_err_t *err)
{
    uint32_t            i;
    const vlm_words_t  *words = c->words;

    t->tokenizer = tokenizer;
    t->family = c->family;
    t->words = c->words;
    t->merge = c->vision.merge;
    t->per_second = c->vision.per_second;
    t->limit = limit;

    if (vlm_vocab_size(tokenizer) > c->text.vocab) {
        return vlm_fail(err, VLM_EMODEL,
                        "the tokenizer has ids up to %u, config.json: vocab_size is %u",
                        vlm_vocab_size(tokenizer) - 1, c->text.vocab);
    }

    if (words->turn == NULL) {
        return 0;
    }

    if (find_control(tokenizer, words->turn, &t->turn, err) != 0
        || find_control(tokenizer, words->end, &t->end, err) != 0
        || (words->begin != NULL && find_control(tokenizer, words->begin, &t->begin, err) != 0)
        || (words->role_end != NULL
            && find_control(tokenizer, words->role_end, &t->role_end, err) != 0))
    {
        return -1;
    }

    for (i = 0; i < VLM_MARKS; i++) {
        if (words->mark[i] == NULL
            || find_control(tokenizer, words->mark[i], &t->mark[i], NULL) != 0)
        {
            t->mark[i] = VLM_NONE;
        }
    }

    words = &c->family->words;         /* those of pictures are the family's */

    if (words->picture == NULL) {
        return 0;
    }

    if (find_control(tokenizer, words->picture, &t->picture, err) != 0
        || find_control(tokenizer, words->picture_end, &t->picture_end, err) != 0
        || find_control(tokenizer, words->cell, &t->cell, err) != 0)
    {
        return -1;
    }

    if (find_control(tokenizer, words->frame_cell, &t->frame_cell, NULL) != 0) {
        t->frame_cell = VLM_NONE;
    }

    if (t->cell != c->generation.image_token) {
        return vlm_fail(err, VLM_EMODEL,
                        "config.json: image_token_id is %u, the tokenizer's %s is %u",
                        c->generation.image_token, words->cell, t->cell);
    }

    return 0;
}


static int
write_begin(vlm_writer_t *w)
{
    return w->t->words->begin == NULL ? 0 : write_control(w, w->t->begin);
}


/* The beginning of a turn. */
static int
write_role(vlm_writer_t *w, vlm_role_t role)
{
    const vlm_words_t  *words = w->t->words;

    if (write_control(w, w->t->turn) != 0 || write_words(w, words->role[role]) != 0) {
        return -1;
    }

    return words->role_end == NULL ? 0
           : write_control(w, w->t->role_end) != 0 ? -1 : write_words(w, words->role_after);
}


/* The system message: the first one of the conversation, or the family's; and the tools. */
static int
write_system(vlm_writer_t *w, const vlm_message_t *m, const char *tools)
{
    const vlm_words_t  *words = w->t->words;
    const int           own = m->role == VLM_SYSTEM;
    const vlm_part_t    part = { .text = own ? NULL : words->system,
                                 .bytes = own || words->system == NULL ? 0
                                          : strlen(words->system) };
    const vlm_message_t  system = { VLM_SYSTEM, own ? m->parts : &part, own ? m->n_parts : 1 };

    if (!own && words->system == NULL && tools == NULL) {
        return 0;
    }

    if (tools == NULL) {
        return write_message(w, &system, NULL, NULL);
    }

    if (words->tools[0] == NULL) {
        return vlm_fail(w->err, VLM_EINPUT, "the chat template of %s has no tools",
                        w->t->family->title);
    }

    if (write_role(w, VLM_SYSTEM) != 0
        || write_parts(w, system.parts, system.n_parts) != 0
        || ((own || words->system != NULL) && write_words(w, "\n\n") != 0)
        || write_words(w, words->tools[0]) != 0 || write_words(w, tools) != 0
        || write_marked(w, words->tools[1]) != 0 || write_control(w, w->t->end) != 0)
    {
        return -1;
    }

    return write_words(w, words->after);
}


vlm_prompt_t *
vlm_template_apply(const vlm_template_t *t, const vlm_message_t *messages, size_t n,
                   const char *tools, const char *tail, vlm_err_t *err)
{
    int                  rc;
    size_t               i;
    vlm_writer_t         w;
    const vlm_words_t   *words = t->words;

    if (n == 0) {
        (void) vlm_fail(err, VLM_EINPUT, "a prompt needs one message at least");
        return NULL;
    }

    if (words->turn == NULL) {
        (void) vlm_fail(err, VLM_EINPUT, "%s has no chat template: this model continues the text "
                        "of a prompt, and takes no messages", t->family->title);
        return NULL;
    }

    memset(&w, 0, sizeof(w));
    w.t = t;
    w.err = err;

    rc = write_begin(&w) != 0 ? -1 : write_system(&w, &messages[0], tools);

    for (i = messages[0].role == VLM_SYSTEM; i < n && rc == 0; i++) {
        rc = write_message(&w, &messages[i], i == 0 ? NULL : &messages[i - 1],
                           i + 1 == n ? NULL : &messages[i + 1]);
    }

    if (rc == 0) {
        rc = write_role(&w, VLM_ASSISTANT);
    }

    tail = tail != NULL ? tail : words->quiet;

    if (rc == 0 && tail != NULL) {
        rc = write_marked(&w, tail);
    }

    if (rc == 0) {
        return finish(&w);
    }

    free(w.text);
    free(w.ids.ids);

    return NULL;
}


vlm_prompt_t *
vlm_template_raw(const vlm_template_t *t, const vlm_part_t *parts, size_t n, vlm_err_t *err)
{
    vlm_writer_t  w;

    memset(&w, 0, sizeof(w));
    w.t = t;
    w.err = err;

    if (write_begin(&w) == 0 && write_parts(&w, parts, n) == 0) {
        return finish(&w);
    }

    free(w.text);
    free(w.ids.ids);

    return NULL;
}


/* A result of a tool; with those before and behind it, it is a turn of the user. */
static int
write_result(vlm_writer_t *w, const vlm_message_t *m, int first, int last)
{
    const vlm_words_t  *words = w->t->words;

    if (words->mark[VLM_MARK_RESULT] == NULL) {
        return vlm_fail(w->err, VLM_EINPUT, "the chat template of %s has no results of tools",
                        w->t->family->title);
    }

    if ((first ? write_role(w, VLM_TOOL) != 0 : write_words(w, "\n") != 0)
        || write_marked(w, words->mark[VLM_MARK_RESULT]) != 0 || write_words(w, "\n") != 0
        || write_parts(w, m->parts, m->n_parts) != 0 || write_words(w, "\n") != 0
        || write_marked(w, words->mark[VLM_MARK_RESULT_END]) != 0)
    {
        return -1;
    }

    return !last ? 0 : write_control(w, w->t->end) != 0 ? -1 : write_words(w, words->after);
}


static int
write_message(vlm_writer_t *w, const vlm_message_t *m, const vlm_message_t *before,
              const vlm_message_t *behind)
{
    const vlm_words_t  *words = w->t->words;

    if ((unsigned) m->role > VLM_TOOL) {
        return vlm_fail(w->err, VLM_EINPUT, "a message has no such role as %d", (int) m->role);
    }

    if (m->role == VLM_TOOL) {
        return write_result(w, m, before == NULL || before->role != VLM_TOOL,
                            behind == NULL || behind->role != VLM_TOOL);
    }

    if (write_role(w, m->role) != 0
        || write_parts(w, m->parts, m->n_parts) != 0
        || write_control(w, w->t->end) != 0)
    {
        return -1;
    }

    return write_words(w, words->after);
}


static int
write_parts(vlm_writer_t *w, const vlm_part_t *parts, size_t n)
{
    int     rc;
    size_t  i;

    for (i = 0; i < n; i++) {
        rc = parts[i].picture != NULL ? write_picture(w, parts[i].picture)
             : parts[i].marked ? write_marked(w, parts[i].text)
             : write_text(w, parts[i].text, parts[i].bytes);
        if (rc != 0) {
            return -1;
        }
    }

    return 0;
}


static int
write_text(vlm_writer_t *w, const char *text, size_t bytes)
{
    char    *p;
    size_t   room;

    if (bytes > w->room - w->bytes) {
        if (bytes > SIZE_MAX / 4 || w->bytes > SIZE_MAX / 4) {
            return vlm_fail(w->err, VLM_ELIMIT, "a text of %zu bytes", bytes);
        }

        room = 2 * (w->bytes + bytes);
        p = realloc(w->text, room);
        if (p == NULL) {
            return vlm_fail(w->err, VLM_EMEMORY, "no memory for a prompt of %zu bytes", room);
        }

        w->text = p;
        w->room = room;
    }

    if (bytes > 0) {
        memcpy(w->text + w->bytes, text, bytes);
        w->bytes += bytes;
    }

    return 0;
}


static int
write_words(vlm_writer_t *w, const char *text)
{
    return write_text(w, text, strlen(text));
}


/* Text of the template itself, in which marks become control tokens. */
static int
write_marked(vlm_writer_t *w, const char *text)
{
    size_t              n;
    uint32_t            i;
    const char         *p;
    const vlm_words_t  *words = w->t->words;

    for (p = text; *p != '\0'; ) {
        for (i = 0; i < VLM_MARKS; i++) {
            n = words->mark[i] == NULL || w->t->mark[i] == VLM_NONE ? 0 : strlen(words->mark[i]);

            if (n > 0 && strncmp(p, words->mark[i], n) == 0) {
                break;
            }
        }

        if (i == VLM_MARKS) {
            p++;
            continue;
        }

        if (write_text(w, text, (size_t) (p - text)) != 0 || write_control(w, w->t->mark[i]) != 0) {
            return -1;
        }

        p += n;
        text = p;
    }

    return write_text(w, text, (size_t) (p - text));
}


static int
flush_text(vlm_writer_t *w)
{
    size_t  bytes;

    bytes = w->bytes;
    w->bytes = 0;

    return bytes == 0 ? 0 : vlm_encode(w->t->tokenizer, w->text, bytes, &w->ids, w->err);
}


static int
write_control(vlm_writer_t *w, uint32_t id)
{
    return flush_text(w) != 0 ? -1 : vlm_ids_add(&w->ids, id, w->err);
}


/* Adds the middle of the time of frames, in the family's words. */
static int
write_seconds(vlm_writer_t *w, const vlm_picture_t *p)
{
    char                text[32];
    const vlm_words_t  *words = &w->t->family->words;

    (void) snprintf(text, sizeof(text), "%.1f", (p->first / p->fps + p->last / p->fps) / 2);

    return write_words(w, words->seconds[0]) != 0 || write_words(w, text) != 0
           ? -1 : write_words(w, words->seconds[1]);
}


/* A picture between its tokens; or the pictures of a video. */
static int
write_picture(vlm_writer_t *w, vlm_picture_t *p)
{
    int  first, apart;

    apart = p->fps > 0 && w->t->family->words.seconds[0] != NULL;

    for (first = 1; p != NULL; p = p->next, first = 0) {
        if (apart && write_seconds(w, p) != 0) {
            return -1;
        }

        if ((first || apart) && write_control(w, w->t->picture) != 0) {
            return -1;
        }

        if (write_cells(w, p) != 0) {
            return -1;
        }

        if ((p->next == NULL || apart) && write_control(w, w->t->picture_end) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
write_cells(vlm_writer_t *w, vlm_picture_t *p)
{
    uint32_t  i, token;

    if (w->n_pictures == VLM_MAX_PICTURES) {
        return vlm_fail(w->err, VLM_ELIMIT, "a prompt has at most %u pictures; frames that are "
                        "encoded together count as one", VLM_MAX_PICTURES);
    }

    token = p->fps > 0 ? w->t->frame_cell : w->t->cell;

    if (token == VLM_NONE) {
        return vlm_fail(w->err, VLM_EINPUT, "the tokenizer of this model has no token %s: it takes "
                        "no video", w->t->family->words.frame_cell);
    }

    for (i = 0; i < w->n_pictures; i++) {
        if (w->picture[i] == p) {
            return vlm_fail(w->err, VLM_EINPUT, "a picture stands in the prompt twice");
        }
    }

    w->picture[w->n_pictures] = p;
    w->time[w->n_pictures] = p->fps > 0 ? (uint32_t) (p->first * w->t->per_second / p->fps) : 0;
    w->picture_at[w->n_pictures++] = (uint32_t) w->ids.n;

    for (i = 0; i < p->n_cells; i++) {
        if (vlm_ids_add(&w->ids, token, w->err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The row of its picture's features for each row of a picture, VLM_NONE for the others. */
static void
set_source(vlm_prompt_t *p)
{
    uint32_t  i, k;

    for (i = 0; i < p->n; i++) {
        p->source[i] = VLM_NONE;
    }

    for (k = 0; k < p->n_pictures; k++) {
        for (i = 0; i < p->picture[k]->n_cells; i++) {
            p->source[p->picture_at[k] + i] = p->picture[k]->cell[i];
        }
    }
}


static vlm_prompt_t *
finish(vlm_writer_t *w)
{
    uint32_t       i;
    vlm_prompt_t  *p;

    p = NULL;

    if (flush_text(w) != 0) {
        goto failed;
    }

    if (w->ids.n == 0) {
        (void) vlm_fail(w->err, VLM_EINPUT, "the prompt is empty");
        goto failed;
    }

    if (w->ids.n > w->t->limit) {
        (void) vlm_fail(w->err, VLM_ELIMIT,
                        "This model's maximum context length is %u tokens. The prompt has %zu, "
                        "and an answer needs one.", w->t->limit + 1, w->ids.n);
        goto failed;
    }

    p = calloc(1, sizeof(*p));
    if (p == NULL) {
        goto no_memory;
    }

    p->n = (uint32_t) w->ids.n;
    p->n_pictures = w->n_pictures;
    p->source = malloc(p->n * sizeof(*p->source));
    p->pos = malloc(p->n * 3 * sizeof(*p->pos));
    p->picture = malloc((p->n_pictures + 1) * sizeof(*p->picture));
    p->picture_at = malloc((p->n_pictures + 1) * sizeof(*p->picture_at));
    p->time = malloc((p->n_pictures + 1) * sizeof(*p->time));

    if (p->source == NULL || p->pos == NULL || p->picture == NULL || p->picture_at == NULL
        || p->time == NULL)
    {
        goto no_memory;
    }

    memcpy(p->picture, w->picture, p->n_pictures * sizeof(*p->picture));
    memcpy(p->picture_at, w->picture_at, p->n_pictures * sizeof(*p->picture_at));
    memcpy(p->time, w->time, p->n_pictures * sizeof(*p->time));

    for (i = 0; i < p->n_pictures; i++) {
        p->picture[i]->next = NULL;    /* each is the prompt's own now */
    }

    p->token = w->ids.ids;
    free(w->text);
    set_source(p);
    w->t->family->positions(p, w->t->merge);

    return p;

no_memory:

    (void) vlm_fail(w->err, VLM_EMEMORY, "no memory for a prompt of %zu tokens", w->ids.n);

failed:

    free(w->text);
    free(w->ids.ids);

    if (p != NULL) {
        p->n_pictures = 0;             /* the caller keeps the pictures */
        vlm_prompt_free(p);
    }

    return NULL;
}


uint32_t
vlm_prompt_tokens(const vlm_prompt_t *p)
{
    return p->n;
}


const uint32_t *
vlm_prompt_ids(const vlm_prompt_t *p)
{
    return p->token;
}


void
vlm_prompt_salt(vlm_prompt_t *p, const void *salt, size_t bytes)
{
    vlm_salt_hash(salt, bytes, p->salt);
}


void
vlm_salt_hash(const void *salt, size_t bytes, uint8_t hash[32])
{
    if (bytes == 0) {
        memset(hash, 0, 32);
    } else {
        vlm_sha256(salt, bytes, hash);
    }
}


void
vlm_prompt_free(vlm_prompt_t *p)
{
    uint32_t  i;

    if (p == NULL) {
        return;
    }

    for (i = 0; i < p->n_pictures; i++) {
        vlm_picture_free(p->picture[i]);
    }

    if (p->adapter != NULL) {
        p->leave(p->adapter);
    }

    free(p->token);
    free(p->source);
    free(p->pos);
    free(p->picture);
    free(p->picture_at);
    free(p->time);
    free(p);
}
