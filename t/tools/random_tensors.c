/*
 * Makes the numbers of a family's tensors, and writes the .safetensors files.
 */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "random.h"

#define GOLDEN  UINT64_C(0x9E3779B97F4A7C15)
#define PIECE   (1u << 18)             /* elements made and written at once */


/* ---- numbers ------------------------------------------------------------------------------ */

static uint64_t
mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);

    return z ^ (z >> 31);
}


static uint64_t
fnv1a64(const char *s)
{
    uint64_t  h;

    for (h = UINT64_C(0xCBF29CE484222325); *s != '\0'; s++) {
        h = (h ^ (uint8_t) *s) * UINT64_C(0x100000001B3);
    }

    return h;
}


/* Returns the index that element i has in the tensor without mutation. */
static uint64_t
origin(const tensor_t *t, uint64_t i)
{
    uint64_t  columns, row;

    if (t->n_swap == 0) {
        return i;
    }

    columns = t->n / t->dims[0];
    row = i / columns;

    if (row >= t->swap_a && row < t->swap_a + t->n_swap) {
        return i + (t->swap_b - t->swap_a) * columns;
    }

    if (row >= t->swap_b && row < t->swap_b + t->n_swap) {
        return i - (t->swap_b - t->swap_a) * columns;
    }

    return i;
}


static void
make_values(const job_t *job, const tensor_t *t, uint64_t first, uint64_t n, float *out)
{
    float     u;
    uint64_t  key, i, h;

    key = mix64(fnv1a64(t->source) + job->opt.seed * GOLDEN);

    for (i = 0; i < n; i++) {
        h = mix64(key + (origin(t, first + i) + 1) * GOLDEN);
        u = (float) ((int32_t) (h >> 40) - (1 << 23)) / (float) (1 << 23);

        if (t->is_fixed) {
            out[i] = t->fixed;
        } else if (t->kind != GAIN) {
            out[i] = u * t->scale;
        } else if (job->opt.trivial) {
            out[i] = 1.0f;
        } else {
            out[i] = (1.0f + u * 0.5f) * ((h & 7) == 0 ? -t->scale : t->scale);
        }
    }
}


/* Converts f32 to the file's type, rounding halves to even, also in place.  Returns bytes. */
static size_t
to_type(vlm_type_t type, const float *in, uint64_t n, void *out)
{
    uint32_t   bits;
    uint64_t   i;
    uint16_t  *half;
    _Float16   f;

    if (type == VLM_F32) {
        memmove(out, in, n * sizeof(float));
        return n * sizeof(float);
    }

    half = out;

    for (i = 0; i < n; i++) {
        if (type == VLM_F16) {
            f = (_Float16) in[i];
            memcpy(&half[i], &f, sizeof(f));
        } else {
            memcpy(&bits, &in[i], sizeof(bits));
            half[i] = (uint16_t) ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
        }
    }

    return n * sizeof(uint16_t);
}


static uint64_t
type_bytes(vlm_type_t type)
{
    return type == VLM_F32 ? 4 : 2;
}


/* ---- the list of tensors ------------------------------------------------------------------ */

tensor_t *
random_add(job_t *job, kind_t kind, double scale, const char *prefix, const char *name,
           uint64_t n, uint64_t k)
{
    tensor_t  *t;

    t = &job->tensors[job->n_tensors++];
    memset(t, 0, sizeof(*t));

    snprintf(t->name, sizeof(t->name), "%s%s", prefix, name);
    memcpy(t->source, t->name, sizeof(t->source));
    t->kind = kind;
    t->scale = (float) (kind == MATRIX ? scale * sqrt(3.0 / (double) k) : scale);
    t->n_dims = k == 0 ? 1 : 2;
    t->dims[0] = n;
    t->dims[1] = k;
    t->n = k == 0 ? n : n * k;

    return t;
}


/* Shards have about equal sizes; a tensor larger than that reduces their number. */
static void
place(job_t *job)
{
    uint32_t   i, shard, last;
    uint64_t   at, bytes;
    tensor_t  *t;

    job->bytes = 0;

    for (i = 0; i < job->n_tensors; i++) {
        job->bytes += job->tensors[i].n * type_bytes(job->opt.type);
    }

    job->n_shards = 0;
    last = UINT32_MAX;
    bytes = 0;
    at = 0;

    for (i = 0; i < job->n_tensors; i++) {
        t = &job->tensors[i];
        shard = (uint32_t) ((double) at / (double) job->bytes * job->opt.shards);

        if (shard != last) {
            last = shard;
            job->n_shards++;
            bytes = 0;
        }

        t->shard = job->n_shards - 1;
        t->offset = bytes;
        bytes += t->n * type_bytes(job->opt.type);
        at += t->n * type_bytes(job->opt.type);
    }
}


void
random_add_linear(job_t *job, double scale, double bias, const char *prefix, const char *name,
                  uint64_t n, uint64_t k)
{
    char  full[64];

    snprintf(full, sizeof(full), "%s.weight", name);
    random_add(job, MATRIX, scale, prefix, full, n, k);
    snprintf(full, sizeof(full), "%s.bias", name);
    random_add(job, PLAIN, bias, prefix, full, n, 0);
}


void
random_add_norm(job_t *job, const char *prefix, const char *name, uint64_t n)
{
    char  full[64];

    snprintf(full, sizeof(full), "%s.weight", name);
    random_add(job, GAIN, 1, prefix, full, n, 0);
    snprintf(full, sizeof(full), "%s.bias", name);
    random_add(job, PLAIN, 0.5, prefix, full, n, 0);
}


/* ---- mutations ---------------------------------------------------------------------------- */

tensor_t *
random_find(job_t *job, const char *fmt, uint64_t i)
{
    char      name[96];
    uint32_t  k;

    snprintf(name, sizeof(name), fmt, i);

    for (k = 0; k < job->n_tensors; k++) {
        if (strcmp(job->tensors[k].name, name) == 0) {
            return &job->tensors[k];
        }
    }

    return NULL;
}


void
random_fix(tensor_t *t, float value)
{
    t->is_fixed = 1;
    t->fixed = value;
}


/* Two tensors of one size change places. */
void
random_swap(tensor_t *a, tensor_t *b)
{
    float  scale;

    memcpy(a->source, b->name, sizeof(b->name));
    memcpy(b->source, a->name, sizeof(a->name));
    scale = a->scale;
    a->scale = b->scale;
    b->scale = scale;
}


/* Exchanges the first and the last of n heads; the rows of the first begin at first. */
void
random_swap_heads(tensor_t *t, uint64_t first, uint64_t head_dim, uint64_t n)
{
    if (n > 1) {
        t->swap_a = first;
        t->swap_b = first + (n - 1) * head_dim;
        t->n_swap = head_dim;
    }
}


int
random_list_tensors(job_t *job, vlm_err_t *err)
{
    job->tensors = calloc(MAX_TENSORS, sizeof(tensor_t));
    if (job->tensors == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u tensors", MAX_TENSORS);
    }

    job->family->list(job);
    place(job);

    if (job->opt.mutate != NULL && job->family->mutate(job, job->opt.mutate) != 0) {
        return vlm_fail(err, VLM_EINPUT, "no mutation is called \"%s\"", job->opt.mutate);
    }

    return 0;
}


/* ---- tensors to files --------------------------------------------------------------------- */

static void
shard_name(const job_t *job, uint32_t shard, char *buf, size_t bytes)
{
    if (job->n_shards == 1) {
        snprintf(buf, bytes, "model.safetensors");
    } else {
        snprintf(buf, bytes, "model-%05u-of-%05u.safetensors", shard + 1, job->n_shards);
    }
}


static void
file_name(const job_t *job, const tensor_t *t, char *buf, size_t bytes)
{
    if (job->family == &random_bloom) {
        snprintf(buf, bytes, "%s%s", job->opt.new_names && strncmp(t->name, "lm_head.", 8) != 0
                                     ? "transformer." : "", t->name);
    } else if (job->opt.new_names && strncmp(t->name, "visual.", 7) == 0) {
        snprintf(buf, bytes, "model.%s", t->name);
    } else if (job->opt.new_names && strncmp(t->name, "model.", 6) == 0) {
        snprintf(buf, bytes, "model.language_model.%s", t->name + 6);
    } else {
        snprintf(buf, bytes, "%s", t->name);
    }
}


/* Makes the text of the header, padded with spaces to a multiple of 8. */
static char *
make_header(const job_t *job, uint32_t shard, size_t *bytes)
{
    int              n, k;
    char            *text, name[128];
    FILE            *f;
    uint32_t         i, d;
    const tensor_t  *t;

    text = NULL;
    f = open_memstream(&text, bytes);
    if (f == NULL) {
        return NULL;
    }

    n = fprintf(f, "{\"__metadata__\":{\"format\":\"pt\"}");

    for (i = 0; i < job->n_tensors; i++) {
        t = &job->tensors[i];
        if (t->shard != shard) {
            continue;
        }

        file_name(job, t, name, sizeof(name));
        n += fprintf(f, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name,
                     job->opt.type == VLM_F32 ? "F32" : job->opt.type == VLM_F16 ? "F16" : "BF16");
        for (d = 0; d < t->n_dims; d++) {
            n += fprintf(f, "%s%" PRIu64, d == 0 ? "" : ",", t->dims[d]);
        }
        n += fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->offset,
                     t->offset + t->n * type_bytes(job->opt.type));
    }

    n += fprintf(f, "}");
    k = (8 - n % 8) % 8;
    fprintf(f, "%*s", k, "");

    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }

    return text;
}


/* Writes the tensors of a shard, or a hole of their size. */
static void
write_values(const job_t *job, uint32_t shard, float *piece, FILE *f)
{
    long             start;
    uint32_t         i;
    uint64_t         at, n, end;
    const tensor_t  *t;

    end = 0;
    start = ftell(f);

    for (i = 0; i < job->n_tensors && !ferror(f); i++) {
        t = &job->tensors[i];

        if (t->shard == shard) {
            end = t->offset + t->n * type_bytes(job->opt.type);
        }

        for (at = 0; !job->opt.sparse && t->shard == shard && at < t->n && !ferror(f); at += n) {
            n = t->n - at < PIECE ? t->n - at : PIECE;
            make_values(job, t, at, n, piece);
            fwrite(piece, 1, to_type(job->opt.type, piece, n, piece), f);
        }
    }

    if (job->opt.sparse && end > 0) {
        fseek(f, start + (long) end - 1, SEEK_SET);
        fputc(0, f);
    }
}


static int
write_shard(const job_t *job, uint32_t shard, float *piece, vlm_err_t *err)
{
    FILE      *f;
    char      *header, name[64];
    size_t     bytes;
    uint8_t    length[8];
    uint32_t   i;

    header = make_header(job, shard, &bytes);
    if (header == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a header");
    }

    shard_name(job, shard, name, sizeof(name));
    f = random_create(job, name, err);
    if (f == NULL) {
        free(header);
        return -1;
    }

    for (i = 0; i < 8; i++) {
        length[i] = (uint8_t) ((uint64_t) bytes >> (8 * i));
    }

    fwrite(length, 1, 8, f);
    fwrite(header, 1, bytes, f);
    free(header);

    write_values(job, shard, piece, f);

    return random_finish(job, f, name, err);
}


static int
write_index(const job_t *job, vlm_err_t *err)
{
    FILE      *f;
    char       name[128], shard[64];
    uint32_t   i;

    f = random_create(job, "model.safetensors.index.json", err);
    if (f == NULL) {
        return -1;
    }

    fprintf(f, "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n"
            "  \"weight_map\": {", job->bytes);

    for (i = 0; i < job->n_tensors; i++) {
        file_name(job, &job->tensors[i], name, sizeof(name));
        shard_name(job, job->tensors[i].shard, shard, sizeof(shard));
        fprintf(f, "%s\n    \"%s\": \"%s\"", i == 0 ? "" : ",", name, shard);
    }

    fputs("\n  }\n}\n", f);

    return random_finish(job, f, "model.safetensors.index.json", err);
}


int
random_write_tensors(const job_t *job, vlm_err_t *err)
{
    int        rc;
    float     *piece;
    uint32_t   i;

    piece = malloc(PIECE * sizeof(float));
    if (piece == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u numbers", PIECE);
    }

    rc = 0;
    for (i = 0; rc == 0 && i < job->n_shards; i++) {
        rc = write_shard(job, i, piece, err);
    }

    free(piece);

    return (rc == 0 && job->n_shards > 1) ? write_index(job, err) : rc;
}
