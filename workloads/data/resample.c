/* SPDX-License-Identifier: Apache-2.0 */
/* Letters: T source pixels that one output pixel is made from, W columns of the output that are not padding. */
#include "base/base.h"

#include "data/resample.h"

#include "base/arena.h"

#include <math.h>

static void *grown(void *ptr, size_t *room, size_t needed, size_t elem_size)
{
    if (needed <= *room) {
        return ptr;
    }
    *room = needed;
    return xrealloc(ptr, needed * elem_size);
}

void resample_release(struct resample *scratch)
{
    free(scratch->x.start);
    free(scratch->x.weight);
    free(scratch->y.start);
    free(scratch->y.weight);
    free(scratch->rows);
    free(scratch->wide);
    free(scratch->column);
    *scratch = (struct resample){0};
}

/* ---- weights ---- */

struct axis_job {
    int64_t src_at, src_len; /* the stretch of the image */
    int64_t res_len, off, out_len;
    bool is_flipped, is_antialiased;
};

static struct axis_job job_x(const struct resample_job *job)
{
    const struct augment_plan *plan = job->plan;
    return (struct axis_job){.src_at = plan->src_x,
                             .src_len = plan->src_w,
                             .res_len = plan->res_w,
                             .off = plan->off_x,
                             .out_len = job->out.width,
                             .is_flipped = plan->is_flipped,
                             .is_antialiased = plan->is_antialiased};
}

static struct axis_job job_y(const struct resample_job *job)
{
    const struct augment_plan *plan = job->plan;
    return (struct axis_job){.src_at = plan->src_y,
                             .src_len = plan->src_h,
                             .res_len = plan->res_h,
                             .off = plan->off_y,
                             .out_len = job->out.height,
                             .is_antialiased = plan->is_antialiased};
}

/* Output positions that are not padding. */
static void covered(const struct axis_job *job, int64_t *ret_first, int64_t *ret_last)
{
    int64_t first = job->off < 0 ? -job->off : 0;
    int64_t last = job->res_len - job->off;
    first = first < job->out_len ? first : job->out_len;
    last = last < job->out_len ? last : job->out_len;
    last = last > first ? last : first;
    *ret_first = job->is_flipped ? job->out_len - last : first;
    *ret_last = job->is_flipped ? job->out_len - first : last;
}

static int64_t resized_at(const struct axis_job *job, int64_t out)
{
    return (job->is_flipped ? job->out_len - 1 - out : out) + job->off;
}

/* A triangle around the output pixel's centre in the source, cut off at its ends and scaled to sum 1. Source of the form: Pillow 9,
   src/libImaging/Resample.c, precompute_coeffs; offset of half a pixel, as everywhere except with align_corners. */
static void weigh(const struct axis_job *job, const struct resample_axis *axis, int64_t idx,
                  double spread)
{
    double scale = (double)job->src_len / (double)job->res_len;
    double centre = scale * ((double)resized_at(job, axis->first + idx) + 0.5);
    int64_t start = (int64_t)floor(centre - spread + 0.5);
    int64_t start_max = job->src_len - axis->n_taps;
    float *weight = axis->weight + idx * axis->n_taps;
    double sum = 0.0;
    start = start < 0 ? 0 : start > start_max ? start_max : start;
    axis->start[idx] = job->src_at + start;
    for (int64_t t = 0; t < axis->n_taps; t++) {
        double distance = fabs((double)(start + t) + 0.5 - centre) / spread;
        sum += distance < 1.0 ? 1.0 - distance : 0.0;
    }
    for (int64_t t = 0; t < axis->n_taps; t++) {
        double distance = fabs((double)(start + t) + 0.5 - centre) / spread;
        weight[t] = (float)(distance < 1.0 ? (1.0 - distance) / sum : 0.0);
    }
}

static void axis_prepare(struct resample_axis *axis, const struct axis_job *job)
{
    double scale = (double)job->src_len / (double)job->res_len;
    double spread = job->is_antialiased && scale > 1.0 ? scale : 1.0;
    int64_t n_taps = (int64_t)ceil(2.0 * spread);
    covered(job, &axis->first, &axis->last);
    axis->n_taps = n_taps < job->src_len ? n_taps : job->src_len;
    size_t n = (size_t)(axis->last - axis->first);
    axis->start = grown(axis->start, &axis->room_start, n, sizeof(*axis->start));
    axis->weight =
        grown(axis->weight, &axis->room_weight, n * (size_t)axis->n_taps, sizeof(*axis->weight));
    for (int64_t i = 0; i < (int64_t)n; i++) {
        weigh(job, axis, i, spread);
    }
}

/* ---- pixels ---- */

/* A pixel and the first channel of the next, wherever it lies. */
typedef float float4 __attribute__((vector_size(16), aligned(4), may_alias));

/* Source pixels (columns from src_at, 3) as floats -> (3, W); reads one float past the last pixel. n_taps is a constant in
   the usual cases. */
static inline __attribute__((always_inline)) void resize_row(const struct resample_axis *axis,
                                                             int64_t n_taps, int64_t src_at,
                                                             const float *restrict pixels,
                                                             float *restrict row)
{
    int64_t width = axis->last - axis->first;
    for (int64_t x = 0; x < width; x++) {
        const float *from = pixels + (axis->start[x] - src_at) * 3;
        const float *weight = axis->weight + x * n_taps;
        float4 sum = {0};
        for (int64_t t = 0; t < n_taps; t++) {
            sum += weight[t] * *(const float4 *)(const void *)(from + 3 * t);
        }
        row[x] = sum[0];
        row[width + x] = sum[1];
        row[2 * width + x] = sum[2];
    }
}

/* One row of the image, as far as needed. */
static void row_in_x(struct resample *scratch, const struct axis_job *job, const uint8_t *pixels,
                     float *row)
{
    const struct resample_axis *axis = &scratch->x;
    float *wide = scratch->wide;
    for (int64_t i = 0; i < job->src_len * 3; i++) {
        wide[i] = (float)pixels[job->src_at * 3 + i];
    }
    if (axis->n_taps == 2) {
        resize_row(axis, 2, job->src_at, wide, row);
    } else if (axis->n_taps == 3) {
        resize_row(axis, 3, job->src_at, wide, row);
    } else {
        resize_row(axis, axis->n_taps, job->src_at, wide, row);
    }
}

/* One channel of one output row: bias + factor * sum of weight * row. */
static void column_sum(const struct resample *scratch, int64_t idx, int64_t channel,
                       const float scale_bias[2], float *restrict out)
{
    const struct resample_axis *y = &scratch->y;
    int64_t width = scratch->x.last - scratch->x.first;
    for (int64_t t = 0; t < y->n_taps; t++) {
        int64_t slot = (y->start[idx] + t) % y->n_taps;
        const float *restrict row = scratch->rows + (slot * 3 + channel) * width;
        float weight = y->weight[idx * y->n_taps + t] * scale_bias[0];
        if (t == 0) {
            for (int64_t x = 0; x < width; x++) {
                out[x] = scale_bias[1] + weight * row[x];
            }
        } else {
            for (int64_t x = 0; x < width; x++) {
                out[x] += weight * row[x];
            }
        }
    }
}

static void clear_padding(const struct resample *scratch, const struct resample_job *job,
                          float *out)
{
    const struct resample_axis *x = &scratch->x;
    const struct resample_axis *y = &scratch->y;
    int64_t width = job->out.width;
    for (int64_t row = 0; row < 3 * job->out.height; row++) {
        int64_t at = row % job->out.height;
        bool is_inside = at >= y->first && at < y->last;
        size_t left = (size_t)(is_inside ? x->first : width);
        size_t right = (size_t)(is_inside ? width - x->last : 0);
        memset(out + row * width, 0, left * sizeof(*out));
        memset(out + row * width + width - (int64_t)right, 0, right * sizeof(*out));
    }
}

/* The last n_taps source rows, resized in x, are kept: row r in slot r % n_taps. Output rows ask for source rows that only grow. */
void resample_pixels(struct resample *scratch, const struct resample_job *job,
                     const uint8_t *pixels, float *out)
{
    struct axis_job in_x = job_x(job);
    struct axis_job in_y = job_y(job);
    struct resample_axis *x = &scratch->x;
    struct resample_axis *y = &scratch->y;
    axis_prepare(x, &in_x);
    axis_prepare(y, &in_y);
    int64_t width = x->last - x->first;
    int64_t plane = job->out.height * job->out.width;
    int64_t next_row = 0;
    scratch->rows = grown(scratch->rows, &scratch->room_rows, (size_t)(y->n_taps * 3 * width),
                          sizeof(*scratch->rows));
    scratch->wide = grown(scratch->wide, &scratch->room_wide, (size_t)in_x.src_len * 3 + 1,
                          sizeof(*scratch->wide));
    scratch->wide[in_x.src_len * 3] = 0.0F; /* read past the last pixel */
    clear_padding(scratch, job, out);
    for (int64_t i = 0; i < y->last - y->first && width > 0; i++) {
        int64_t start = y->start[i];
        for (next_row = next_row > start ? next_row : start; next_row < start + y->n_taps;
             next_row++) {
            row_in_x(scratch, &in_x, pixels + next_row * job->image.width * 3,
                     scratch->rows + next_row % y->n_taps * 3 * width);
        }
        for (int64_t c = 0; c < 3; c++) {
            const float scale_bias[2] = {(float)(1.0 / (255.0 * job->std[c])),
                                         (float)(-job->mean[c] / job->std[c])};
            column_sum(scratch, i, c, scale_bias,
                       out + c * plane + (y->first + i) * job->out.width + x->first);
        }
    }
}

/* ---- label maps ---- */

static int64_t nearest(const struct axis_job *job, int64_t out)
{
    return job->src_at + resized_at(job, out) * job->src_len / job->res_len;
}

void resample_labels(struct resample *scratch, const struct resample_job *job,
                     const uint8_t *labels, int64_t ignored, int64_t *out)
{
    struct axis_job in_x = job_x(job);
    struct axis_job in_y = job_y(job);
    int64_t x_first;
    int64_t x_last;
    int64_t y_first;
    int64_t y_last;
    covered(&in_x, &x_first, &x_last);
    covered(&in_y, &y_first, &y_last);
    scratch->column = grown(scratch->column, &scratch->room_column, (size_t)job->out.width,
                            sizeof(*scratch->column));
    for (int64_t x = x_first; x < x_last; x++) {
        scratch->column[x] = nearest(&in_x, x);
    }
    for (int64_t y = 0; y < job->out.height; y++) {
        bool is_inside = y >= y_first && y < y_last;
        const uint8_t *from = labels + (is_inside ? nearest(&in_y, y) * job->image.width : 0);
        for (int64_t x = 0; x < job->out.width; x++) {
            bool has_label = is_inside && x >= x_first && x < x_last;
            out[y * job->out.width + x] = has_label ? from[scratch->column[x]] : ignored;
        }
    }
}
