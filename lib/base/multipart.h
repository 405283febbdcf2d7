
/*
 * multipart/form-data over one range of memory, part by part.
 *
 * Only names are copied, and nothing is allocated.  A body is untrusted: the number of parts, their
 * headers and their names are bounded, and a body without its closing boundary is refused, because
 * the file in it may be truncated.  Plain C without nginx's headers.
 */


#ifndef VLM_MULTIPART_H
#define VLM_MULTIPART_H


#include <stddef.h>
#include <stdint.h>


#define VLM_MULTIPART_BOUNDARY  70    /* bytes, by RFC 2046 */
#define VLM_MULTIPART_PARTS     64
#define VLM_MULTIPART_HEADERS   8192  /* bytes before a part's data */
#define VLM_MULTIPART_NAME      1024  /* bytes, each name, with zero */


typedef struct {
    const char               *pos;
    const char               *last;
    size_t                    n_parts;
    size_t                    len;         /* of delimiter */
    char                      delimiter[VLM_MULTIPART_BOUNDARY + 4];
                                           /* CR LF "--" boundary */
    const char               *error;       /* the sentence, after a failure */
} vlm_multipart_t;


typedef struct {
    char                      name[VLM_MULTIPART_NAME];
    size_t                    name_len;
    char                      filename[VLM_MULTIPART_NAME];
    size_t                    filename_len;
    int                       is_file;     /* a filename was given, maybe "" */
    const char               *data;        /* within the body */
    size_t                    bytes;
} vlm_multipart_part_t;


/*
 * 0; 1: the content type is not multipart/form-data; -1: it is, but has no
 * usable boundary, and mp->error says so.
 *
 *   type   the request's Content-Type header
 *   data   the whole body; kept by the caller while parts are used
 */

int vlm_multipart_init(vlm_multipart_t *mp,
    const char *type, size_t type_len, const void *data, size_t bytes);

/* 1 and a part; 0: no more parts; -1: mp->error has the reason */

int vlm_multipart_next(vlm_multipart_t *mp,
    vlm_multipart_part_t *part);


/* a form's file, and a text beside it; of equal names the first counts */

typedef struct {
    vlm_multipart_part_t      file;        /* data NULL: there is none */
    const char               *text;        /* within the body, or NULL */
    size_t                    text_bytes;
} vlm_multipart_form_t;

/*
 * Reads all parts, since a body that was cut is no upload.
 *
 *   file, text   the names of both; text NULL: none is looked for
 *   returns      0, also of a body that is no form, which has neither; or -1,
 *                and *error has the reason
 */

int vlm_multipart_form(vlm_multipart_form_t *form,
    const char *type, size_t type_len, const void *data, size_t bytes,
    const char *file, const char *text, const char **error);


#endif /* VLM_MULTIPART_H */
