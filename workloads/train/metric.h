/* SPDX-License-Identifier: Apache-2.0 */
/* Quality of a network's answers, as counts: those of several batches and ranks are added before they are divided. The answer is the class
   of the largest logit, the first of equals. */
#pragma once

#include "core/tensor.h"
#include "models/model.h"

enum metric_kind {
    METRIC_TOP1, /* samples whose class is the answer, of all samples */
    /* Of each class: pixels where it is both label and answer, over those where it is either; the mean over classes that occur as
       either. Ignored pixels do not count. Source: mmsegmentation v0.11, mmseg/core/evaluation/metrics.py, mean_iou (PaddleSeg counts a
       class that never occurs as 0). */
    METRIC_MIOU,
    METRIC_MASKED_LM, /* words that are the answer, of the predictions that are used */
};

struct metric {
    enum metric_kind kind;
    int64_t n_classes;
    int64_t ignored; /* label that does not count; LOSS_IGNORE_NONE: none */
    /* Whole numbers, below 2^53. METRIC_MIOU: (3, n_classes) of both, label, answer; else right, all. Then labels without an
       answer, and samples. */
    double *counts; /* owned */
    int64_t n_counts;
};

/* logits (n, n_classes, plane) of f32 or f64 as the host has them, labels (n, plane). */
struct metric_batch {
    const void *logits;
    enum dtype dtype;
    const int64_t *labels;
    int64_t n, plane;
    int64_t n_samples; /* that these are */
};

void metric_init(struct metric *metric, const struct model *model);
void metric_release(struct metric *metric);
void metric_clear(struct metric *metric);

/* "top1", "miou", "masked_lm_accuracy" */
const char *metric_name(enum metric_kind kind);

/* A label that is not a class is an error. */
MUST_CHECK int metric_add(struct metric *metric, const struct metric_batch *batch, struct err *err);

/* Samples that were added; labels among theirs that count; of these, those without an answer, since a logit is not finite: they count as
   wrong. Running statistics that are still far off cause such logits early in a run. */
int64_t metric_n_samples(const struct metric *metric);
int64_t metric_n_counted(const struct metric *metric);
int64_t metric_n_unanswered(const struct metric *metric);

/* From 0 to 1; an error where no label counts. */
MUST_CHECK int metric_value(const struct metric *metric, double *ret_value, struct err *err);
