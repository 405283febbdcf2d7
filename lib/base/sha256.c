/* SHA-256 as FIPS 180-4 writes it down; one block of 64 bytes at a time. */

#include "base/sha256.h"

#include <string.h>

#define ROTATE(x, n)  (((x) >> (n)) | ((x) << (32 - (n))))


/* First 32 bits of the fractions of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t  K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};


static uint32_t
read_u32(const uint8_t *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16 | (uint32_t) p[2] << 8 | p[3];
}


static void
write_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t) (v >> 24);
    p[1] = (uint8_t) (v >> 16);
    p[2] = (uint8_t) (v >> 8);
    p[3] = (uint8_t) v;
}


/* The message schedule of one block (section 6.2.2, step 1). */
static void
schedule(uint32_t w[64], const uint8_t *block)
{
    int       t;
    uint32_t  s0, s1;

    for (t = 0; t < 16; t++) {
        w[t] = read_u32(block + 4 * t);
    }

    for (t = 16; t < 64; t++) {
        s0 = ROTATE(w[t - 15], 7) ^ ROTATE(w[t - 15], 18) ^ (w[t - 15] >> 3);
        s1 = ROTATE(w[t - 2], 17) ^ ROTATE(w[t - 2], 19) ^ (w[t - 2] >> 10);
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}


static void
add_block(uint32_t state[8], const uint8_t *block)
{
    int       t;
    uint32_t  a, b, c, d, e, f, g, h, t1, t2, w[64];

    schedule(w, block);

    a = state[0];
    b = state[1];
    c = state[2];
    d = state[3];
    e = state[4];
    f = state[5];
    g = state[6];
    h = state[7];

    for (t = 0; t < 64; t++) {
        t1 = h + (ROTATE(e, 6) ^ ROTATE(e, 11) ^ ROTATE(e, 25)) + ((e & f) ^ (~e & g)) + K[t]
             + w[t];
        t2 = (ROTATE(a, 2) ^ ROTATE(a, 13) ^ ROTATE(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }

    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}


void
vlm_sha256_start(vlm_sha256_t *s)
{
    static const uint32_t  first[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab,
        0x5be0cd19
    };

    memset(s, 0, sizeof(*s));
    memcpy(s->state, first, sizeof(first));
}


void
vlm_sha256_add(vlm_sha256_t *s, const void *data, size_t bytes)
{
    size_t          held, n;
    const uint8_t  *p;

    if (bytes == 0) {
        return;
    }

    p = data;
    held = (size_t) (s->bytes % 64);
    s->bytes += bytes;

    if (held != 0) {
        n = bytes < 64 - held ? bytes : 64 - held;
        memcpy(s->block + held, p, n);
        p += n;
        bytes -= n;

        if (held + n < 64) {
            return;
        }

        add_block(s->state, s->block);
    }

    for ( /* void */ ; bytes >= 64; p += 64, bytes -= 64) {
        add_block(s->state, p);
    }

    memcpy(s->block, p, bytes);
}


void
vlm_sha256_end(vlm_sha256_t *s, uint8_t out[32])
{
    int       i;
    size_t    held;
    uint64_t  bits;

    bits = s->bytes * 8;
    held = (size_t) (s->bytes % 64);

    s->block[held++] = 0x80;

    if (held > 56) {
        memset(s->block + held, 0, 64 - held);
        add_block(s->state, s->block);
        held = 0;
    }

    memset(s->block + held, 0, 56 - held);
    write_u32(s->block + 56, (uint32_t) (bits >> 32));
    write_u32(s->block + 60, (uint32_t) bits);
    add_block(s->state, s->block);

    for (i = 0; i < 8; i++) {
        write_u32(out + 4 * i, s->state[i]);
    }
}


void
vlm_sha256(const void *data, size_t bytes, uint8_t out[32])
{
    vlm_sha256_t  s;

    vlm_sha256_start(&s);
    vlm_sha256_add(&s, data, bytes);
    vlm_sha256_end(&s, out);
}
