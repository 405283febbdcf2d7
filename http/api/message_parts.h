
/*
 * The list of a request's messages, for the files that make it: messages.c,
 * message_pictures.c and message_prompt.c.
 */


#ifndef _NGX_HTTP_VLM_MESSAGE_PARTS_H_INCLUDED_
#define _NGX_HTTP_VLM_MESSAGE_PARTS_H_INCLUDED_


#include "messages.h"


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
};


/* messages.c: a further part of the last message: a picture, as long as it has
   no text; NULL: the request has failed */

ngx_http_vlm_messages_part_t *ngx_http_vlm_messages_part(
    ngx_http_vlm_messages_t *m);

/* message_pictures.c: decodes the pictures that were not decoded yet */

ngx_int_t ngx_http_vlm_messages_read(ngx_http_vlm_messages_t *m);


#endif /* _NGX_HTTP_VLM_MESSAGE_PARTS_H_INCLUDED_ */
