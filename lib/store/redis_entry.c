
/*
 * An entry of a turn as bytes: what Redis keeps of it, and the reading of what Redis has, which may
 * be anything.
 *
 *     number   1 byte, put in front by the script that stores the entry: 0 for a question
 *     version  1 byte: 1
 *     role     1 byte
 *     us, body 8 bytes each, the least first
 *     content, image, task, thinking, output, key: 4 bytes of length, 0xffffffff: null; the bytes
 */


#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/calls.h"
#include "store/disk.h"
#include "store/redis.h"


#define VERSION         1
#define HEAD            (1 + 1 + 8 + 8)
#define TEXTS           6
#define NONE            0xffffffffu


typedef vlm_store_text_t   text_t;
typedef vlm_store_entry_t  entry_t;


static const size_t  most[TEXTS] = {
    VLM_STORE_TEXT, VLM_STORE_NAME, VLM_STORE_NAME, VLM_STORE_TEXT, VLM_STORE_NAME, VLM_STORE_KEY
};


/* in the order of the bytes */

static void
texts_of(entry_t *e, text_t *t[TEXTS])
{
    t[0] = &e->content;
    t[1] = &e->image;
    t[2] = &e->task;
    t[3] = &e->thinking;
    t[4] = &e->output;
    t[5] = &e->key;
}


static unsigned char *
put(unsigned char *p, uint64_t n, size_t bytes)
{
    size_t  i;

    for (i = 0; i < bytes; i++) {
        *p++ = (unsigned char) (n >> (8 * i));
    }

    return p;
}


static uint64_t
get(const unsigned char *p, size_t bytes)
{
    size_t    i;
    uint64_t  n;

    for (n = 0, i = 0; i < bytes; i++) {
        n |= (uint64_t) p[i] << (8 * i);
    }

    return n;
}


text_t
vlm_redis_entry_write(const entry_t *e)
{
    size_t          i;
    text_t         *t[TEXTS], bytes;
    entry_t         copy;
    unsigned char  *p;

    copy = *e;
    texts_of(&copy, t);

    for (bytes.len = HEAD, i = 0; i < TEXTS; i++) {
        bytes.len += 4 + (t[i]->data != NULL ? t[i]->len : 0);
    }

    p = malloc(bytes.len);
    bytes.data = (char *) p;

    if (p == NULL) {
        return bytes;
    }

    p = put(p, VERSION, 1);
    p = put(p, (uint64_t) e->role, 1);
    p = put(p, (uint64_t) e->us, 8);
    p = put(p, (uint64_t) e->body, 8);

    for (i = 0; i < TEXTS; i++) {
        p = put(p, t[i]->data != NULL ? t[i]->len : NONE, 4);

        if (t[i]->data != NULL && t[i]->len > 0) {
            memcpy(p, t[i]->data, t[i]->len);
            p += t[i]->len;
        }
    }

    return bytes;
}


int
vlm_redis_entry_read(text_t bytes, entry_t *e)
{
    size_t                i, left;
    text_t               *t[TEXTS], src;
    uint64_t              len;
    const unsigned char  *p;

    memset(e, 0, sizeof(entry_t));

    if (bytes.data == NULL || bytes.len < 1 + HEAD) {
        return -1;
    }

    p = (const unsigned char *) bytes.data;

    if (p[0] > VLM_STORE_ENTRIES || p[1] != VERSION || p[2] > VLM_STORE_ASSISTANT) {
        return -1;
    }

    e->number = p[0];
    e->role = p[2];
    e->us = (int64_t) get(p + 3, 8);
    e->body = (int64_t) get(p + 11, 8);

    p += 1 + HEAD;
    left = bytes.len - 1 - HEAD;

    texts_of(e, t);

    for (i = 0; i < TEXTS; i++) {

        if (left < 4) {
            return -1;
        }

        len = get(p, 4);
        p += 4;
        left -= 4;

        if (len == NONE) {
            continue;
        }

        if (len > most[i] || len > left) {
            return -1;
        }

        src.data = (const char *) p;
        src.len = (size_t) len;

        /* a key is a header's value, of any bytes */

        if ((t[i] != &e->key && vlm_utf8_whole(src.data, src.len) != src.len)
            || vlm_store_copy(t[i], src) != 0)
        {
            return -1;
        }

        p += len;
        left -= (size_t) len;
    }

    if (left != 0 || e->content.data == NULL
        || (e->image.data != NULL && !vlm_disk_plain(e->image.data, e->image.len))
        || (e->output.data != NULL && !vlm_disk_plain(e->output.data, e->output.len))
        || (e->key.data != NULL && memchr(e->key.data, '\0', e->key.len) != NULL))
    {
        return -1;
    }

    return 0;
}
