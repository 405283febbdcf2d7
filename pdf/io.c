/* Frames, written whole. */

#include "pdf.h"

#include <errno.h>
#include <unistd.h>


int
pdf_write(int fd, const void *data, size_t bytes)
{
    ssize_t      n;
    const char  *p = data;

    while (bytes > 0) {
        n = write(fd, p, bytes);

        if (n < 0 && errno != EINTR) {
            return -1;
        }

        p += n > 0 ? n : 0;
        bytes -= n > 0 ? (size_t) n : 0;
    }

    return 0;
}


int
pdf_write_head(int fd, vlm_frame_kind_t kind, size_t bytes)
{
    char  head[VLM_FRAME_HEAD];

    if (bytes > VLM_FRAME_MAX) {
        return -1;
    }

    vlm_frame_write_head(head, kind, (uint32_t) bytes);

    return pdf_write(fd, head, sizeof(head));
}


int
pdf_write_frame(int fd, vlm_frame_kind_t kind, const void *body, size_t bytes)
{
    return pdf_write_head(fd, kind, bytes) || pdf_write(fd, body, bytes) ? -1 : 0;
}
