
/*
 * An entry of a turn as a Redis has it, which may be any bytes: what is accepted is within the
 * bounds, can be a file's name where it will be one, and is written again as the same bytes.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "store/disk.h"
#include "store/redis.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
must(int holds)
{
    if (!holds) {
        abort();
    }
}


static void
check(const vlm_store_entry_t *e, const uint8_t *data, size_t bytes)
{
    vlm_store_text_t  again;

    must(e->number <= VLM_STORE_ENTRIES);
    must(e->role == VLM_STORE_USER || e->role == VLM_STORE_ASSISTANT);
    must(e->content.data != NULL && e->content.data[e->content.len] == '\0');
    must(e->content.len <= VLM_STORE_TEXT && e->thinking.len <= VLM_STORE_TEXT);
    must(vlm_utf8_whole(e->content.data, e->content.len) == e->content.len);
    must(e->task.len <= VLM_STORE_NAME && e->key.len <= VLM_STORE_KEY);
    must(e->image.data == NULL || vlm_disk_plain(e->image.data, e->image.len));
    must(e->output.data == NULL || vlm_disk_plain(e->output.data, e->output.len));
    must(e->key.data == NULL || strlen(e->key.data) == e->key.len);

    again = vlm_redis_entry_write(e);

    must(again.data == NULL
         || (again.len == bytes - 1 && memcmp(again.data, data + 1, bytes - 1) == 0));
    free((void *) again.data);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    vlm_store_text_t    text;
    vlm_store_entry_t  *e;
    vlm_store_loaded_t  loaded;

    memset(&loaded, 0, sizeof(loaded));

    e = calloc(1, sizeof(vlm_store_entry_t));
    if (e == NULL) {
        return 0;
    }

    loaded.entries = e;
    loaded.n = 1;

    text.data = (const char *) data;
    text.len = bytes;

    if (vlm_redis_entry_read(text, e) == 0) {
        check(e, data, bytes);
    }

    vlm_store_loaded_free(&loaded);

    return 0;
}
