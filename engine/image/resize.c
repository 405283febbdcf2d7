/*
 * smart_resize and Pillow's bicubic.
 *
 * Pillow's resampling of 8-bit channels (libImaging/Resample.c) is two passes of weighted sums,
 * horizontal first, with 8-bit pixels between them.  The weights are computed in double precision
 * and used as integers of 22 fraction bits, so a result has one right value and the order of the
 * sums does not matter; this file therefore sums many rows or columns at a time.
 */

#include "image/resize.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define FRACTION  (32 - 8 - 2)         /* bits of a weight; sums of 8-bit pixels fit an int32 */
#define SUPPORT   2.0                  /* bicubic reaches two pixels to either side */
#define ROWS      16                   /* rows that the horizontal pass takes at a time */

typedef struct {                       /* one axis */
    uint32_t   n;                      /* outputs */
    uint32_t   size;                   /* room for weights of an output */
    uint32_t  *first, *count;          /* [n] inputs that an output is made of */
    int32_t   *weight;                 /* [n][size] */
} axis_t;


int
vlm_aspect_check(uint32_t width, uint32_t height, vlm_err_t *err)
{
    uint32_t  low, high;

    low = width < height ? width : height;
    high = width < height ? height : width;

    if (low == 0 || high > vlm_mul(low, VLM_MAX_ASPECT)) {
        return vlm_fail(err, VLM_ELIMIT, "picture of %ux%u pixels, one side may be at most %u "
                        "times the other", width, height, VLM_MAX_ASPECT);
    }

    return 0;
}


/* A side as a multiple of factor, at least one.  rint() rounds half to even, as in Python. */
static uint32_t
multiple(double cells, uint32_t factor)
{
    return cells < 1.0 ? factor : (uint32_t) cells * factor;
}


/*
 * smart_resize of n frames.  The bounds are of `counted` of them, which is n rounded, but sides
 * that are too long or too short are corrected by n, as in the family's formula.
 */
static int
resize(double n, uint32_t counted, uint32_t width, uint32_t height, uint32_t factor,
       uint64_t min_pixels, uint64_t max_pixels, uint32_t *out_width, uint32_t *out_height,
       vlm_err_t *err)
{
    double    beta, area;
    uint32_t  w, h;

    if (vlm_aspect_check(width, height, err) != 0) {
        return -1;
    }

    if (max_pixels < vlm_mul(counted, vlm_mul(factor, factor))) {
        return vlm_fail(err, VLM_ELIMIT, "max_pixels %" PRIu64 ", one cell of the model has %ux%u",
                        max_pixels / counted, factor, factor);
    }

    area = n * width * height;
    w = multiple(rint((double) width / factor), factor);
    h = multiple(rint((double) height / factor), factor);

    if (vlm_mul(counted, vlm_mul(w, h)) > max_pixels) {
        beta = sqrt(area / (double) max_pixels);
        w = multiple(floor(width / beta / factor), factor);
        h = multiple(floor(height / beta / factor), factor);

    } else if (vlm_mul(counted, vlm_mul(w, h)) < min_pixels) {
        beta = sqrt((double) min_pixels / area);
        w = multiple(ceil(width * beta / factor), factor);
        h = multiple(ceil(height * beta / factor), factor);
    }

    /* A sliver one cell wide, or min near max. */

    while (vlm_mul(n < counted ? (uint64_t) n : counted, vlm_mul(w, h)) > max_pixels) {
        if (w > h) {
            w -= factor;
        } else {
            h -= factor;
        }
    }

    *out_width = w;
    *out_height = h;

    return 0;
}


int
vlm_smart_resize(uint32_t width, uint32_t height, uint32_t factor, uint64_t min_pixels,
                 uint64_t max_pixels, uint32_t *out_width, uint32_t *out_height, vlm_err_t *err)
{
    return resize(1, 1, width, height, factor, min_pixels, max_pixels, out_width, out_height, err);
}


int
vlm_video_resize(uint32_t n, uint32_t temporal, int whole, const vlm_pixels_t *video,
                 const vlm_pixels_t *frame, uint32_t width, uint32_t height, uint32_t factor,
                 uint32_t *out_width, uint32_t *out_height, vlm_err_t *err)
{
    uint32_t  counted;
    uint64_t  pixels, most;

    if (!whole) {
        n = counted = 1;
    } else {
        n = n > temporal ? n : temporal;
        counted = (uint32_t) rint((double) n / temporal) * temporal;
    }

    most = vlm_mul(counted, vlm_mul(factor, factor));          /* of a cell a frame */
    most = most > video->max ? most : video->max;

    if (resize(n, counted, width, height, factor, video->min, most, out_width, out_height, err)
        != 0)
    {
        return -1;
    }

    pixels = vlm_mul(*out_width, *out_height);

    if (pixels >= frame->min && pixels <= frame->max) {
        return 0;
    }

    return vlm_smart_resize(width, height, factor, frame->min, frame->max, out_width, out_height,
                            err);
}


/* Keys' cubic with a = -1/2, written in Pillow's order of operations. */
static double
bicubic(double x)
{
    const double  a = -0.5;

    x = fabs(x);

    if (x < 1.0) {
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    }

    if (x < 2.0) {
        return (((x - 5) * x + 8) * x - 4) * a;
    }

    return 0.0;
}


/* The weights of one output, exact[] being room for them before they are rounded. */
static void
weigh(axis_t *a, uint32_t i, uint32_t n_in, double scale, double *exact)
{
    int       low, high, k;
    double    center, stretch, support, sum, w;
    int32_t  *weight;

    stretch = scale < 1.0 ? 1.0 : scale;
    support = SUPPORT * stretch;
    center = (i + 0.5) * scale;

    low = (int) (center - support + 0.5);
    low = low < 0 ? 0 : low;
    high = (int) (center + support + 0.5);
    high = high > (int) n_in ? (int) n_in : high;

    sum = 0.0;

    for (k = 0; k < high - low; k++) {
        exact[k] = bicubic((k + low - center + 0.5) * (1.0 / stretch));
        sum += exact[k];
    }

    weight = a->weight + (size_t) i * a->size;

    for (k = 0; k < high - low; k++) {
        w = (sum != 0.0 ? exact[k] / sum : exact[k]) * (1 << FRACTION);
        weight[k] = (int32_t) (w < 0 ? w - 0.5 : w + 0.5);
    }

    a->first[i] = (uint32_t) low;
    a->count[i] = (uint32_t) (high - low);
}


static void
axis_free(axis_t *a)
{
    free(a->first);
    free(a->count);
    free(a->weight);
}


/*
 * The weights for n_out pixels from n_in; -1 without memory.  axis_free() frees them in either
 * case.
 */
static int
axis_make(axis_t *a, uint32_t n_in, uint32_t n_out)
{
    double   scale, *exact;
    uint32_t  i;

    scale = (double) n_in / n_out;

    a->n = n_out;
    a->size = (uint32_t) ceil(SUPPORT * (scale < 1.0 ? 1.0 : scale)) * 2 + 1;
    a->first = calloc(n_out, sizeof(*a->first));
    a->count = calloc(n_out, sizeof(*a->count));
    a->weight = calloc((size_t) n_out * a->size, sizeof(*a->weight));
    exact = calloc(a->size, sizeof(*exact));

    if (a->first == NULL || a->count == NULL || a->weight == NULL || exact == NULL) {
        free(exact);
        return -1;
    }

    for (i = 0; i < n_out; i++) {
        weigh(a, i, n_in, scale, exact);
    }

    free(exact);

    return 0;
}


static uint8_t
clip(int32_t sum)
{
    sum >>= FRACTION;

    return (uint8_t) (sum < 0 ? 0 : sum > 255 ? 255 : sum);
}


/* ROWS rows of n bytes each, bytes of a column side by side: [n][ROWS].  Missing rows repeat. */
static void
gather(uint8_t *columns, const uint8_t *in, size_t n, uint32_t n_rows)
{
    size_t          x;
    uint32_t        r;
    const uint8_t  *row;

    for (r = 0; r < ROWS; r++) {
        row = in + (r < n_rows ? r : n_rows - 1) * n;

        for (x = 0; x < n; x++) {
            columns[x * ROWS + r] = row[x];
        }
    }
}


/* One output pixel of ROWS rows: sum [3][ROWS] of the pixels from columns on. */
static void
sum_columns(int32_t *restrict sum, const uint8_t *restrict columns, const int32_t *weight,
            uint32_t count)
{
    uint32_t  k, i;

    for (i = 0; i < 3 * ROWS; i++) {
        sum[i] = 1 << (FRACTION - 1);
    }

    for (k = 0; k < count; k++, columns += 3 * ROWS) {
        for (i = 0; i < 3 * ROWS; i++) {
            sum[i] += columns[i] * weight[k];
        }
    }
}


/* out u8 [n_rows][a->n][3] from in u8 [n_rows][width][3]; columns has room for [width][3][ROWS]. */
static void
pass_horizontal(uint8_t *out, const uint8_t *in, uint32_t n_rows, uint32_t width, const axis_t *a,
                uint8_t *columns)
{
    int32_t   sum[3 * ROWS];
    size_t    row;
    uint32_t  y, x, r, c, n;

    row = (size_t) a->n * 3;

    for (y = 0; y < n_rows; y += ROWS) {
        n = n_rows - y < ROWS ? n_rows - y : ROWS;
        gather(columns, in + (size_t) y * width * 3, (size_t) width * 3, n);

        for (x = 0; x < a->n; x++) {
            sum_columns(sum, columns + (size_t) a->first[x] * 3 * ROWS,
                        a->weight + (size_t) x * a->size, a->count[x]);

            for (r = 0; r < n; r++) {
                for (c = 0; c < 3; c++) {
                    out[(y + r) * row + x * 3 + c] = clip(sum[c * ROWS + r]);
                }
            }
        }
    }
}


/* out u8 [a->n][n] from rows of n bytes; in is the row numbered first.  sum has room for [n]. */
static void
pass_vertical(uint8_t *restrict out, const uint8_t *restrict in, uint32_t first, size_t n,
              const axis_t *a, int32_t *restrict sum)
{
    size_t          x;
    int32_t         weight;
    uint32_t        y, k;
    const uint8_t  *row;

    for (y = 0; y < a->n; y++, out += n) {
        for (x = 0; x < n; x++) {
            sum[x] = 1 << (FRACTION - 1);
        }

        row = in + (size_t) (a->first[y] - first) * n;

        for (k = 0; k < a->count[y]; k++, row += n) {
            weight = a->weight[(size_t) y * a->size + k];

            for (x = 0; x < n; x++) {
                sum[x] += row[x] * weight;
            }
        }

        for (x = 0; x < n; x++) {
            out[x] = clip(sum[x]);
        }
    }
}


/* The rows that the vertical pass will read, resized to their width. */
static uint8_t *
narrow(const uint8_t *rgb, uint32_t width, uint32_t n_rows, const axis_t *a)
{
    uint8_t  *out, *columns;

    out = malloc((size_t) a->n * n_rows * 3);
    columns = malloc((size_t) width * 3 * ROWS);

    if (out == NULL || columns == NULL) {
        free(columns);
        free(out);
        return NULL;
    }

    pass_horizontal(out, rgb, n_rows, width, a, columns);
    free(columns);

    return out;
}


uint8_t *
vlm_resize(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t out_width,
           uint32_t out_height, vlm_err_t *err)
{
    axis_t          across, down;
    int32_t        *sum;
    uint8_t        *out, *between;
    uint32_t        first, last;
    const uint8_t  *in;

    memset(&across, 0, sizeof(across));
    memset(&down, 0, sizeof(down));
    between = NULL;
    sum = malloc((size_t) out_width * 3 * sizeof(*sum));
    out = malloc((size_t) out_width * out_height * 3);

    if (sum == NULL || out == NULL || axis_make(&across, width, out_width) != 0
        || axis_make(&down, height, out_height) != 0)
    {
        goto failed;
    }

    /* A pass that would change nothing is left out, as in Pillow. */
    first = out_height == height ? 0 : down.first[0];
    last = out_height == height ? height : down.first[out_height - 1] + down.count[out_height - 1];
    in = rgb + (size_t) first * width * 3;

    if (out_width != width) {
        between = narrow(in, width, last - first, &across);

        if (between == NULL) {
            goto failed;
        }

        in = between;
    }

    if (out_height != height) {
        pass_vertical(out, in, first, (size_t) out_width * 3, &down, sum);
    } else {
        memcpy(out, in, (size_t) out_width * out_height * 3);
    }

    goto done;

failed:

    (void) vlm_fail(err, VLM_EMEMORY, "no memory to resize a picture from %ux%u to %ux%u", width,
                    height, out_width, out_height);
    free(out);
    out = NULL;

done:

    free(between);
    free(sum);
    axis_free(&down);
    axis_free(&across);

    return out;
}
