/* The frames of a video in a message: see frames.h. */

#include "api/frames.h"

#include <string.h>
#include <strings.h>

#include "base/base64.h"


static vlm_frames_e
read_list(const vlm_json_t *list, vlm_frame_text_t *frames, size_t most, size_t *n)
{
    const char        *url;
    const vlm_json_t  *one;

    for (one = vlm_json_first(list); one != NULL; one = vlm_json_next(one)) {
        url = vlm_json_text(one);

        if (url == NULL || strncasecmp(url, "data:", 5) != 0) {
            ++*n;
            return VLM_FRAMES_WRONG;
        }

        if (*n < most) {
            frames[*n].text = url;
            frames[*n].bytes = strlen(url);
        }

        ++*n;
    }

    return VLM_FRAMES_READ;
}


static vlm_frames_e
read_url(const char *url, vlm_frame_text_t *frames, size_t most, size_t *n)
{
    size_t       left, bytes;
    const char  *p, *comma;

    p = strncasecmp(url, "data:video/jpeg;", 16) == 0
        ? vlm_base64_url(url, strlen(url), &left) : NULL;

    if (p == NULL) {
        return VLM_FRAMES_NO_DATA;
    }

    do {
        comma = memchr(p, ',', left);
        bytes = comma != NULL ? (size_t) (comma - p) : left;

        if (*n < most) {
            frames[*n].text = p;
            frames[*n].bytes = bytes;
        }

        ++*n;

        p += bytes + (comma != NULL);
        left -= bytes + (comma != NULL);

    } while (comma != NULL);

    return VLM_FRAMES_READ;
}


vlm_frames_e
vlm_frames_read(const vlm_json_t *video, vlm_frame_text_t *frames, size_t most, size_t *n)
{
    const char  *url;

    *n = 0;

    if (vlm_json_is_array(video)) {
        return read_list(video, frames, most, n);
    }

    url = vlm_json_text(vlm_json_is_object(video) ? vlm_json_get(video, "url") : video);

    return url != NULL ? read_url(url, frames, most, n) : VLM_FRAMES_MISSING;
}
