/*
 * The orientation tag of an EXIF block.  Only the first directory is read and no offset in it is
 * followed, so that no cycle of directories is possible.
 */

#include "image/exif.h"

#include <string.h>

#include "image/bytes.h"

#define ORIENTATION  0x0112            /* tag; a SHORT */
#define SHORT        3


static uint32_t
read_u16(const uint8_t *p, int big)
{
    return big ? vlm_u16be(p) : vlm_u16le(p);
}


uint32_t
vlm_exif_orientation(const uint8_t *data, size_t bytes)
{
    int             big;
    size_t          at, n;
    uint32_t        value;
    const uint8_t  *entry;

    if (bytes >= 6 && memcmp(data, "Exif\0\0", 6) == 0) {
        data += 6;
        bytes -= 6;
    }

    if (bytes < 10 || (memcmp(data, "II*\0", 4) != 0 && memcmp(data, "MM\0*", 4) != 0)) {
        return 1;
    }

    big = data[0] == 'M';
    at = big ? vlm_u32be(data + 4) : vlm_u32le(data + 4);

    if (at > bytes - 2) {
        return 1;
    }

    n = read_u16(data + at, big);
    at += 2;

    for ( /* void */ ; n != 0 && bytes - at >= 12; n--, at += 12) {
        entry = data + at;

        if (read_u16(entry, big) == ORIENTATION && read_u16(entry + 2, big) == SHORT) {
            value = read_u16(entry + 8, big);
            return value >= 1 && value <= 8 ? value : 1;
        }
    }

    return 1;
}
