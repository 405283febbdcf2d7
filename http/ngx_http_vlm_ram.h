
/*
 * How much memory this machine has for a process: its RAM, or less where a
 * control group says so.  Knows no nginx.
 */


#ifndef _NGX_HTTP_VLM_RAM_H_INCLUDED_
#define _NGX_HTTP_VLM_RAM_H_INCLUDED_


#include <stdint.h>


typedef struct {
    uint64_t                      bytes;       /* 0: the system does not say */
    int                           group;       /* a control group's limit */
} ngx_http_vlm_ram_t;


/*
 * root is where /proc and /sys are: "", or a directory of a test.  Reads some
 * small files of the kernel's; not for the event loop.
 */

void ngx_http_vlm_ram(const char *root, ngx_http_vlm_ram_t *ram);


#endif /* _NGX_HTTP_VLM_RAM_H_INCLUDED_ */
