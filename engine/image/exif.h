/* The one EXIF tag that changes how a picture looks: its orientation. */

#ifndef VLM_EXIF_H
#define VLM_EXIF_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns the orientation, 1 to 8, of a TIFF block ("II*\0..." or "MM\0*...", with or without the
 * "Exif\0\0" that JPEG puts before it).  Returns 1 if there is none or the block is damaged: a
 * picture shown unturned is more useful than an error.
 */
uint32_t vlm_exif_orientation(const uint8_t *data, size_t bytes);

#endif
