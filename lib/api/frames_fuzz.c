/* Fuzz target: a video of any JSON, whose frames lie within its texts. */

#include <string.h>

#include "api/frames.h"

#define MOST  4

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t            i, n;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_json_t       *video;
    vlm_frames_e      rc;
    vlm_frame_text_t  frames[MOST];

    video = vlm_json_parse((const char *) data, bytes, &err);

    if (video == NULL) {
        return 0;
    }

    rc = vlm_frames_read(video, frames, MOST, &n);

    check(n <= bytes);
    check(rc == VLM_FRAMES_READ || n == 0 || (rc == VLM_FRAMES_WRONG && vlm_json_is_array(video)));

    for (i = 0; rc == VLM_FRAMES_READ && i < n && i < MOST; i++) {
        check(strnlen(frames[i].text, frames[i].bytes) == frames[i].bytes);
        check(vlm_json_is_array(video) || memchr(frames[i].text, ',', frames[i].bytes) == NULL);
    }

    vlm_json_free(video);

    return 0;
}
