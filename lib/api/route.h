/* Paths of requests, matched with those of a table of routes. */

#ifndef VLM_ROUTE_H
#define VLM_ROUTE_H

#include <stddef.h>

/*
 * Tells whether a path matches.  In the pattern "*" stands for one component of the path, and "**"
 * at the end for all that follows, slashes, too; neither stands for nothing.
 *
 *   piece     set to the part of the path from the first star to the last: "abc/pages/1" in
 *             "/api/documents/abc/pages/1"; empty if the pattern has no stars; set with 0, too
 *   returns   1, or 0 for a path that does not match
 */
int vlm_route_match(const char *pattern, const char *path, size_t bytes, const char **piece,
                    size_t *piece_bytes);

#endif
