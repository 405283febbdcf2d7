/* The history of a session: see history.h. */

#include "robobrain/history.h"

#include <stdio.h>
#include <stdlib.h>


char *
vlm_history_text(const vlm_store_entry_t *entries, size_t n, vlm_store_text_t question,
                 size_t *len)
{
    int          bad;
    char        *text;
    FILE        *f;
    size_t       i;
    const char  *who;

    f = open_memstream(&text, len);
    if (f == NULL) {
        return NULL;
    }

    for (i = 0; i < n; i++) {
        who = entries[i].role == VLM_STORE_ASSISTANT ? "Assistant"
              : entries[i].image.data ? "User (with image)" : "User";

        (void) fprintf(f, "%s%s: ", i ? "" : "[Previous conversation context]\n", who);

        if (entries[i].content.len) {
            (void) fwrite(entries[i].content.data, entries[i].content.len, 1, f);
        }

        (void) fputs(i + 1 < n ? "\n" : "\n[Current query]\n", f);
    }

    (void) fwrite(question.data, question.len, 1, f);

    bad = ferror(f);

    if (fclose(f) != 0 || bad) {
        free(text);
        return NULL;
    }

    return text;
}


void
vlm_history_put(vlm_json_out_t *w, const vlm_store_entry_t *e)
{
    int  user;

    user = e->role == VLM_STORE_USER;

    vlm_json_open(w, '{');

    vlm_json_add_text(w, "content", e->content.data, e->content.len);
    vlm_json_add_text(w, "image_path", e->image.data, e->image.len);

    vlm_json_add_open(w, "metadata", '{');

    if (!user) {

        if (e->output.data) {
            vlm_json_add_format(w, "output_image", "result/%.*s", (int) e->output.len,
                                e->output.data);
        } else {
            vlm_json_add_string(w, "output_image", NULL);
        }

        vlm_json_add_text(w, "task", e->task.data, e->task.len);
        vlm_json_add_text(w, "thinking", e->thinking.data, e->thinking.len);
    }

    vlm_json_shut(w, '}');

    vlm_json_add_string(w, "role", user ? "user" : "assistant");
    vlm_json_add_text(w, "task", user ? e->task.data : NULL, e->task.len);
    vlm_json_add_string(w, "timestamp", e->time);

    vlm_json_shut(w, '}');
}
