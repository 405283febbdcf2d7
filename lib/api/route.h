/* Paths of requests, matched with those of a table of routes. */

#ifndef VLM_ROUTE_H
#define VLM_ROUTE_H

#include <stddef.h>

/*
 * Does a path match?  In the pattern "*" stands for one component of it, and "**" at the end for
 * all that follows, slashes, too; neither is empty.
 *
 *   piece     set to what the stars stand for, from the first to the last: "abc/pages/1" in
 *             "/api/documents/abc/pages/1"; empty of a pattern without stars; also set with 0
 *   returns   1 or 0
 */
int vlm_route_match(const char *pattern, const char *path, size_t bytes, const char **piece,
                    size_t *piece_bytes);

#endif
