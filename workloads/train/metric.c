/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "train/metric.h"

#include <math.h>

/* Rows of METRIC_MIOU's counts, each n_classes long; indices of the others'. */
enum { MIOU_BOTH, MIOU_LABEL, MIOU_ANSWER, MIOU_ROWS };
enum { SHARE_RIGHT, SHARE_ALL, SHARE_COUNTS };
/* Counted from the end, for all kinds. */
enum { LAST_SAMPLES = 1, LAST_UNANSWERED, LAST_COUNTS = LAST_UNANSWERED };

static enum metric_kind kind_of(const struct model *model)
{
    if (model->kind == MODEL_TOKENS) {
        return METRIC_MASKED_LM;
    }
    return model->ignore_label == LOSS_IGNORE_NONE ? METRIC_TOP1 : METRIC_MIOU;
}

void metric_init(struct metric *metric, const struct model *model)
{
    *metric = (struct metric){
        .kind = kind_of(model), .n_classes = model->n_classes, .ignored = model->ignore_label};
    bool is_share = metric->kind != METRIC_MIOU;
    metric->n_counts = LAST_COUNTS + (is_share ? SHARE_COUNTS : MIOU_ROWS * model->n_classes);
    metric->counts = xcalloc((size_t)metric->n_counts, sizeof(*metric->counts));
}

void metric_release(struct metric *metric)
{
    free(metric->counts);
    *metric = (struct metric){0};
}

void metric_clear(struct metric *metric)
{
    memset(metric->counts, 0, (size_t)metric->n_counts * sizeof(*metric->counts));
}

const char *metric_name(enum metric_kind kind)
{
    switch (kind) {
    case METRIC_TOP1:
        return "top1";
    case METRIC_MIOU:
        return "miou";
    case METRIC_MASKED_LM:
        break;
    }
    return "masked_lm_accuracy";
}

static double logit_at(const struct metric_batch *batch, int64_t idx)
{
    return batch->dtype == DT_F64 ? ((const double *)batch->logits)[idx]
                                  : (double)((const float *)batch->logits)[idx];
}

/* The class with the largest of the n_classes logits that begin at `first`, `stride` apart; -1 where one is not finite. */
static int64_t answer(const struct metric_batch *batch, int64_t first, int64_t stride,
                      int64_t n_classes)
{
    int64_t best = 0;
    double largest = -INFINITY;
    for (int64_t c = 0; c < n_classes; c++) {
        double logit = logit_at(batch, first + c * stride);
        if (!isfinite(logit)) {
            return -1;
        }
        if (logit > largest) {
            largest = logit;
            best = c;
        }
    }
    return best;
}

/* found is -1 for a label without an answer: it counts as wrong. */
static void count_one(struct metric *metric, int64_t label, int64_t found)
{
    double *counts = metric->counts;
    double right = label == found ? 1.0 : 0.0;
    counts[metric->n_counts - LAST_UNANSWERED] += found < 0 ? 1.0 : 0.0;
    if (metric->kind != METRIC_MIOU) {
        counts[SHARE_RIGHT] += right;
        counts[SHARE_ALL] += 1.0;
        return;
    }
    counts[MIOU_BOTH * metric->n_classes + label] += right;
    counts[MIOU_LABEL * metric->n_classes + label] += 1.0;
    if (found >= 0) {
        counts[MIOU_ANSWER * metric->n_classes + found] += 1.0;
    }
}

int metric_add(struct metric *metric, const struct metric_batch *batch, struct err *err)
{
    ASSERT(batch->dtype == DT_F32 || batch->dtype == DT_F64);
    for (int64_t i = 0; i < batch->n * batch->plane; i++) {
        int64_t label = batch->labels[i];
        if (label == metric->ignored) {
            continue;
        }
        if (label < 0 || label >= metric->n_classes) {
            return err_set(err, ERR_INTEGRITY,
                           "label %" PRId64 " of an evaluation's batch is %" PRId64
                           ", expected 0 to %" PRId64,
                           i, label, metric->n_classes - 1);
        }
        int64_t first = i / batch->plane * metric->n_classes * batch->plane + i % batch->plane;
        count_one(metric, label, answer(batch, first, batch->plane, metric->n_classes));
    }
    metric->counts[metric->n_counts - LAST_SAMPLES] += (double)batch->n_samples;
    return 0;
}

int64_t metric_n_samples(const struct metric *metric)
{
    return (int64_t)metric->counts[metric->n_counts - LAST_SAMPLES];
}

int64_t metric_n_unanswered(const struct metric *metric)
{
    return (int64_t)metric->counts[metric->n_counts - LAST_UNANSWERED];
}

int64_t metric_n_counted(const struct metric *metric)
{
    if (metric->kind != METRIC_MIOU) {
        return (int64_t)metric->counts[SHARE_ALL];
    }
    double sum = 0.0;
    for (int64_t c = 0; c < metric->n_classes; c++) {
        sum += metric->counts[MIOU_LABEL * metric->n_classes + c];
    }
    return (int64_t)sum;
}

static double mean_iou(const struct metric *metric)
{
    const double *both = metric->counts + MIOU_BOTH * metric->n_classes;
    const double *label = metric->counts + MIOU_LABEL * metric->n_classes;
    const double *found = metric->counts + MIOU_ANSWER * metric->n_classes;
    double sum = 0.0;
    int64_t n_there = 0;
    for (int64_t c = 0; c < metric->n_classes; c++) {
        double either = label[c] + found[c] - both[c];
        if (either > 0.0) {
            sum += both[c] / either;
            n_there++;
        }
    }
    return sum / (double)n_there;
}

int metric_value(const struct metric *metric, double *ret_value, struct err *err)
{
    if (metric_n_counted(metric) == 0) {
        return err_set(err, ERR_WORKLOAD, "an evaluation found no label that counts");
    }
    *ret_value = metric->kind == METRIC_MIOU
                     ? mean_iou(metric)
                     : metric->counts[SHARE_RIGHT] / metric->counts[SHARE_ALL];
    return 0;
}
