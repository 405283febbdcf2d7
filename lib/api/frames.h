/* The frames of a video in a message: pictures within the request, as base64. */

#ifndef VLM_FRAMES_H
#define VLM_FRAMES_H

#include "base/json.h"

typedef enum {
    VLM_FRAMES_READ,
    VLM_FRAMES_MISSING,                /* there is no text where a URL should be */
    VLM_FRAMES_NO_DATA,                /* the URL is no data URL of frames */
    VLM_FRAMES_WRONG                   /* frame *n of an array, from 1 on, is no data URL */
} vlm_frames_e;

typedef struct {
    const char  *text;                 /* base64 or a data URL, in the document */
    size_t       bytes;
} vlm_frame_text_t;

/*
 *   video    "data:video/jpeg;base64,FRAME,FRAME,...", an object with it as "url", or an array of
 *            data URLs
 *   frames   [most]; frames beyond are only counted
 */
vlm_frames_e vlm_frames_read(const vlm_json_t *video, vlm_frame_text_t *frames, size_t most,
                             size_t *n);

#endif
