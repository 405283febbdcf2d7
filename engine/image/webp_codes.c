/*
 * The beginning of a VP8L bitstream, up to the number of its groups of Huffman codes.
 *
 * libwebp allocates tables of 12 to 20 kB for each group, up to 65,536 of them, and a group takes
 * 20 bits of a file.  The number of groups is the largest pixel of an image that lies behind those
 * of the transforms; so these small images are read, and no pixel is kept.
 */

#include "image/webp_codes.h"

#include <inttypes.h>
#include <string.h>

#include "base/size.h"

#define MAX_LENGTH   15                /* bits of a code */
#define GREEN        (256 + 24)        /* symbols: values, then lengths of copies, then a cache's */
#define MAX_CACHE    11                /* bits */
#define MAX_SYMBOLS  (GREEN + (1 << MAX_CACHE))
#define DISTANCES    40
#define TABLE_BYTES  (4 * (630 * 3 + 410 + 654))   /* libwebp's for a group without a cache */
#define GROUP_BYTES  600               /* its other memory for a group */
#define MAX_GROUPS   (64u << 20)       /* bytes of all groups: libwebp writes at most 2,600 of them,
                                          which take 52 MiB with the largest cache */

typedef struct {
    const uint8_t  *p;
    uint64_t        at, end;           /* bits */
    int             cut;               /* 1: more were wanted than there are */
} bits_t;

typedef struct {
    uint16_t  count[MAX_LENGTH + 1];   /* of codes by their length */
    uint16_t  symbol[MAX_SYMBOLS];     /* by length, then by value */
    int       single;                  /* the only symbol, of no bits; or -1 */
} code_t;


static uint32_t
get(bits_t *b, uint32_t n)
{
    uint32_t  i, v;

    if (n > b->end - b->at) {
        b->cut = 1;
        return 0;
    }

    for (i = 0, v = 0; i < n; i++, b->at++) {
        v |= (uint32_t) (b->p[b->at / 8] >> (b->at % 8) & 1) << i;
    }

    return v;
}


/* Canonical codes of these lengths.  0, or -1: there are too few or too many for their lengths. */
static int
make_code(code_t *c, const uint8_t *length, uint32_t n)
{
    int       left;
    uint16_t  at[MAX_LENGTH + 2];
    uint32_t  i, used;

    memset(c->count, 0, sizeof(c->count));
    c->single = -1;

    for (i = 0, used = 0; i < n; i++) {
        c->count[length[i]]++;

        if (length[i] != 0) {
            c->single = (int) i;
            used++;
        }
    }

    if (used == 1) {
        return 0;
    }

    c->single = -1;
    c->count[0] = 0;
    at[1] = 0;

    for (i = 1, left = 1; i <= MAX_LENGTH; i++) {
        left = left * 2 - c->count[i];
        at[i + 1] = (uint16_t) (at[i] + c->count[i]);

        if (left < 0) {
            return -1;
        }
    }

    for (i = 0; i < n; i++) {
        if (length[i] != 0) {
            c->symbol[at[length[i]]++] = (uint16_t) i;
        }
    }

    return left == 0 ? 0 : -1;
}


static uint32_t
next_symbol(bits_t *b, const code_t *c)
{
    uint32_t  length, code, first, index;

    if (c->single >= 0) {
        return (uint32_t) c->single;
    }

    for (length = 1, code = first = index = 0; length <= MAX_LENGTH && !b->cut; length++) {
        code |= get(b, 1);

        if (code < first + c->count[length]) {
            return c->symbol[index + code - first];
        }

        index += c->count[length];
        first = (first + c->count[length]) << 1;
        code <<= 1;
    }

    b->cut = 1;

    return 0;
}


/* Lengths that are coded themselves: 0 to 15; 16 repeats one, 17 and 18 are zeros. */
static int
read_lengths(bits_t *b, uint8_t *length, uint32_t n)
{
    code_t    c;
    uint8_t   of[19], value, last;
    uint32_t  i, k, more, symbols, symbol;

    static const uint8_t  order[19] = {
        17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    };
    static const uint8_t  extra[3] = { 2, 3, 7 }, least[3] = { 3, 3, 11 };

    memset(of, 0, sizeof(of));
    k = get(b, 4) + 4;

    for (i = 0; i < k; i++) {
        of[order[i]] = (uint8_t) get(b, 3);
    }

    if (make_code(&c, of, 19) != 0) {
        return -1;
    }

    symbols = get(b, 1) ? 2 + get(b, 2 + 2 * get(b, 3)) : n;
    last = 8;

    for (i = 0; i < n && symbols > 0 && !b->cut; symbols--) {
        symbol = next_symbol(b, &c);
        more = 1;
        value = (uint8_t) symbol;

        if (symbol >= 16) {
            more = least[symbol - 16] + get(b, extra[symbol - 16]);
            value = symbol == 16 ? last : 0;

        } else if (symbol != 0) {
            last = value;
        }

        if (more > n - i) {
            return -1;
        }

        memset(length + i, value, more);
        i += more;
    }

    return 0;
}


/* The code of an alphabet of n symbols. */
static int
read_code(bits_t *b, code_t *c, uint32_t n)
{
    int       two;
    uint8_t   length[MAX_SYMBOLS];

    memset(length, 0, n < 256 ? 256 : n);

    if (get(b, 1)) {
        two = (int) get(b, 1);
        length[get(b, get(b, 1) ? 8 : 1)] = 1;

        if (two) {
            length[get(b, 8)] = 1;
        }

    } else if (read_lengths(b, length, n) != 0) {
        return -1;
    }

    return b->cut ? -1 : make_code(c, length, n);
}


/* A length or distance of a copy, by its prefix. */
static uint32_t
read_far(bits_t *b, uint32_t prefix)
{
    uint32_t  extra;

    if (prefix < 4) {
        return prefix + 1;
    }

    extra = (prefix - 2) >> 1;

    return ((2 + (prefix & 1)) << extra) + get(b, extra) + 1;
}


/* An image of n pixels within the stream; *most: the largest of red and green together. */
static int
read_image(bits_t *b, uint64_t n, uint32_t *most)
{
    code_t    code[5];
    uint32_t  i, cache, green, value;
    uint64_t  done;

    cache = get(b, 1) ? get(b, 4) : 0;

    if (cache > MAX_CACHE) {
        return -1;
    }

    for (i = 0; i < 5; i++) {
        if (read_code(b, &code[i], i == 0 ? GREEN + (cache == 0 ? 0 : 1u << cache)
                                          : i == 4 ? DISTANCES : 256) != 0)
        {
            return -1;
        }
    }

    *most = 0;

    for (done = 0; done < n && !b->cut; /* void */ ) {
        green = next_symbol(b, &code[0]);

        if (green >= 256 && green < GREEN) {
            done += read_far(b, green - 256);
            (void) read_far(b, next_symbol(b, &code[4]));
            continue;
        }

        done++;

        if (green < 256) {             /* else it was there before */
            value = next_symbol(b, &code[1]) << 8 | green;
            *most = value > *most ? value : *most;
            (void) next_symbol(b, &code[2]);
            (void) next_symbol(b, &code[3]);
        }
    }

    return b->cut ? -1 : 0;
}


static uint64_t
tiles(uint32_t width, uint32_t height, uint32_t bits)
{
    return (((uint64_t) width + (1u << bits) - 1) >> bits)
           * (((uint64_t) height + (1u << bits) - 1) >> bits);
}


/* The transforms, each at most once; *width shrinks where pixels are packed. */
static int
read_transforms(bits_t *b, uint32_t *width, uint32_t height, uint64_t *memory)
{
    uint32_t  seen, kind, n, bits, most;

    for (seen = 0; get(b, 1); seen |= 1u << kind) {
        kind = get(b, 2);

        if ((seen & 1u << kind) != 0) {
            return -1;
        }

        if (kind < 2) {                /* predictors, colours: a pixel for each tile */
            bits = get(b, 3) + 2;
            *memory += 4 * tiles(*width, height, bits);

            if (read_image(b, tiles(*width, height, bits), &most) != 0) {
                return -1;
            }

        } else if (kind == 3) {        /* a palette */
            n = get(b, 8) + 1;

            if (read_image(b, n, &most) != 0) {
                return -1;
            }

            bits = n > 16 ? 0 : n > 4 ? 1 : n > 2 ? 2 : 3;
            *width = (*width + (1u << bits) - 1) >> bits;
        }
    }

    return b->cut ? -1 : 0;
}


/* *n groups of codes take *groups bytes, *memory has those of the transforms. */
static int
count(bits_t *b, uint32_t width, uint32_t height, uint64_t *memory, uint32_t *n, uint64_t *groups)
{
    uint32_t  cache, bits, most;
    uint64_t  table;

    most = 0;

    if (read_transforms(b, &width, height, memory) != 0) {
        return -1;
    }

    cache = get(b, 1) ? get(b, 4) : 0;

    if (cache > MAX_CACHE) {
        return -1;
    }

    if (get(b, 1)) {
        bits = get(b, 3) + 2;
        *memory += 4 * tiles(width, height, bits);

        if (read_image(b, tiles(width, height, bits), &most) != 0) {
            return -1;
        }
    }

    table = TABLE_BYTES + (cache == 0 ? 0 : 4u << cache);
    *n = most + 1;
    *groups = *n * (table + GROUP_BYTES);

    return b->cut ? -1 : 0;
}


int
vlm_webp_codes(const uint8_t *p, size_t bytes, uint32_t width, uint32_t height, uint64_t *memory,
               vlm_err_t *err)
{
    bits_t    b;
    uint32_t  n;
    uint64_t  groups;

    b.p = p;
    b.at = 0;
    b.end = (uint64_t) bytes * 8;
    b.cut = 0;
    *memory = 0;

    if (count(&b, width, height, memory, &n, &groups) != 0) {
        return vlm_fail(err, VLM_EINPUT, "WebP: its Huffman codes are damaged or cut off");
    }

    if (groups > MAX_GROUPS) {
        return vlm_fail(err, VLM_ELIMIT, "WebP of %ux%u pixels has %u groups of Huffman codes, "
                        "which take %" PRIu64 " MiB to decode, at most %u are given", width, height,
                        n, vlm_mib(groups), MAX_GROUPS >> 20);
    }

    *memory += groups;

    return 0;
}
