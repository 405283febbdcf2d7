/*
 * Frames of a hostile PDF reader, one after the other: what is accepted keeps the rules that the
 * rest of the server relies on.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "document/frame.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check_page(const vlm_frame_t *frame)
{
    uint32_t               i;
    const vlm_pdf_word_t  *w;

    for (i = 0; i < frame->page.words; i++) {
        w = &frame->words[i];

        if ((uint64_t) w->first + w->bytes > frame->bytes || w->bytes == 0
            || vlm_utf8_whole(frame->text + w->first, w->bytes) != w->bytes
            || !(w->x0 >= 0 && w->x0 <= w->x1 && w->x1 <= frame->page.width
                 && w->y0 >= 0 && w->y0 <= w->y1 && w->y1 <= frame->page.height))
        {
            abort();
        }
    }
}


static void
check(const vlm_frame_t *frame)
{
    if (frame->kind != VLM_FRAME_PICTURE
        && vlm_utf8_whole(frame->text, frame->bytes) != frame->bytes)
    {
        abort();
    }

    if (frame->kind == VLM_FRAME_PAGE) {
        check_page(frame);
    }
}


/* The first byte chooses whether page 1's picture was asked for. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    void          *body;
    uint32_t       kind, n;
    vlm_err_t      err = { 0 };
    vlm_frame_t    frame;
    vlm_frames_t   frames = { .max_pages = 3, .max_characters = 3000 };

    if (bytes < 1) {
        return 0;
    }

    frames.picture = data[0] & 1;
    data++;
    bytes--;

    while (bytes >= VLM_FRAME_HEAD && vlm_frame_head(data, &kind, &n, &err) == 0) {
        data += VLM_FRAME_HEAD;
        bytes -= VLM_FRAME_HEAD;

        if (n > bytes) {
            break;
        }

        body = malloc(n + (n == 0));

        if (body == NULL) {
            break;
        }

        memcpy(body, data, n);

        if (vlm_frame_read(&frames, kind, body, n, &frame, &err) == 0) {
            check(&frame);
            n += frames.ended ? bytes - n : 0;
        } else {
            n = bytes;
        }

        free(body);
        data += n;
        bytes -= n;
    }

    return 0;
}
