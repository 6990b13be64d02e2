/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "bench/agree.h"

#include <math.h>

#define GRADIENT STR_LIT("grad.")

/* A network that differs (a missing loss, another stride, another kind of batch norm) is off by far more than a hundredth in one of
   the two. FP32: sums of some 10^3 terms in other orders, 10^3 times 2^-24, and the effect on the norm of a ReLU that rounding
   flips. Half precision: 2^-11 a rounding, some 10 of which do not average out in the loss. */
struct agree_limits agree_limits_of(const char *precision, const char *device)
{
    if (strcmp(precision, "amp") == 0) {
        return (struct agree_limits){5e-3, 5e-2, 5e-2, 1e-2};
    }
    /* A CPU's sums are all in FP32; a GPU's libraries may take other algorithms. */
    return (struct agree_limits){strcmp(device, "cpu") == 0 ? 1e-5 : 1e-4, 1e-2, 1e-3, 1e-3};
}

static double element(const struct st_tensor *tensor, int64_t i)
{
    double wide = 0.0;
    float narrow = 0.0F;
    if (tensor->dtype == DT_F64) {
        memcpy(&wide, (const char *)tensor->data + i * (int64_t)sizeof(wide), sizeof(wide));
        return wide;
    }
    memcpy(&narrow, (const char *)tensor->data + i * (int64_t)sizeof(narrow), sizeof(narrow));
    return (double)narrow;
}

int agree_loss(const struct st_file *file, double *ret_loss, struct err *err)
{
    const struct st_tensor *loss = st_find(file, "loss");
    if (!loss || loss->dtype == DT_I64 || shape_count(&loss->shape) != 1) {
        return err_set(err, ERR_PARSE, "there is no loss");
    }
    *ret_loss = element(loss, 0);
    return 0;
}

static bool is_gradient(const struct st_tensor *tensor)
{
    return str_starts(str_of(tensor->name), GRADIENT);
}

static int count_gradients(const struct st_file *file)
{
    int n = 0;
    for (int i = 0; i < file->n_tensors; i++) {
        n += is_gradient(&file->tensors[i]);
    }
    return n;
}

struct sums {
    double ours, theirs, difference; /* squares */
    int64_t n;
};

static int add_tensor(struct sums *sums, const struct st_tensor *ours,
                      const struct st_tensor *theirs, struct err *err)
{
    if (!theirs || theirs->dtype == DT_I64 || !shape_eq(&ours->shape, &theirs->shape)) {
        return err_set(err, ERR_PARSE, "tensor %s is %s", ours->name,
                       theirs ? "of another shape or type" : "missing");
    }
    int64_t count = shape_count(&ours->shape);
    for (int64_t i = 0; i < count; i++) {
        double a = element(ours, i);
        double b = element(theirs, i);
        sums->ours += a * a;
        sums->theirs += b * b;
        sums->difference += (a - b) * (a - b);
    }
    sums->n += count;
    return 0;
}

static double relative(double difference, double of)
{
    return of != 0.0 ? fabs(difference / of) : difference == 0.0 ? 0.0 : (double)INFINITY;
}

/* A program without logits is judged by loss and gradient alone. */
static int compare_logits(const struct st_file *ours, const struct st_file *theirs,
                          double *ret_difference, struct err *err)
{
    const struct st_tensor *mine = st_find(ours, "logits");
    const struct st_tensor *other = st_find(theirs, "logits");
    double largest = 0.0;
    double difference = 0.0;
    *ret_difference = (double)NAN;
    if (!other || !mine) {
        return 0;
    }
    if (other->dtype == DT_I64 || !shape_eq(&mine->shape, &other->shape)) {
        return err_set(err, ERR_PARSE, "tensor logits is of another shape or type");
    }
    for (int64_t i = 0; i < shape_count(&mine->shape); i++) {
        double apart = fabs(element(mine, i) - element(other, i));
        largest = fmax(largest, fabs(element(mine, i)));
        /* Keeps NaN, which fmax would drop. */
        difference = apart > difference || isnan(apart) ? apart : difference;
        if (isnan(difference)) {
            break;
        }
    }
    *ret_difference = isnan(difference) ? (double)INFINITY : relative(difference, largest);
    return 0;
}

static const struct {
    const char *mean, *variance;
} STATISTICS[] = {{"running_mean", "running_var"}, {"._mean", "._variance"}};

static bool is_statistic(const struct st_tensor *tensor)
{
    for (size_t i = 0; i < ARRAY_LEN(STATISTICS); i++) {
        if (str_ends(str_of(tensor->name), str_of(STATISTICS[i].mean)) ||
            str_ends(str_of(tensor->name), str_of(STATISTICS[i].variance))) {
            return true;
        }
    }
    return false;
}

/* A mean that is zero but for rounding, as that of what a batch norm of mean 0 gives, says nothing relative to itself: it is held against at
   least this share of its channels' deviation. */
#define MEAN_LEAST 0.01

static double least_of_mean(const struct st_file *ours, const struct st_tensor *mean)
{
    struct str name = str_of(mean->name);
    double sum = 0.0;
    for (size_t i = 0; i < ARRAY_LEN(STATISTICS); i++) {
        char variance[512];
        const struct st_tensor *found;
        if (!str_ends(name, str_of(STATISTICS[i].mean))) {
            continue;
        }
        snprintf(variance, sizeof(variance), "%.*s%s", (int)(name.len - strlen(STATISTICS[i].mean)),
                 name.ptr, STATISTICS[i].variance);
        found = st_find(ours, variance);
        for (int64_t at = 0; found && at < shape_count(&found->shape); at++) {
            sum += element(found, at);
        }
    }
    return MEAN_LEAST * sqrt(sum);
}

/* Both have them after one batch. A batch norm of few values shows whether the variance was divided by n or by n - 1. */
static int compare_statistics(const struct st_file *ours, const struct st_file *theirs,
                              double *ret_difference, struct err *err)
{
    *ret_difference = (double)NAN;
    for (int i = 0; i < theirs->n_tensors; i++) {
        const struct st_tensor *tensor = &theirs->tensors[i];
        const struct st_tensor *mine = st_find(ours, tensor->name);
        struct sums sums = {0};
        if (!is_statistic(tensor)) {
            continue;
        }
        if (!mine) {
            return err_set(err, ERR_PARSE, "tensor %s is missing in ours", tensor->name);
        }
        if (add_tensor(&sums, mine, tensor, err) < 0) {
            return -1;
        }
        double apart =
            relative(sqrt(sums.difference), fmax(sqrt(sums.ours), least_of_mean(ours, mine)));
        bool is_worse = isnan(*ret_difference) || apart > *ret_difference;
        *ret_difference = isnan(apart) ? (double)INFINITY : is_worse ? apart : *ret_difference;
    }
    return 0;
}

int agree(const struct st_file *ours, const struct st_file *theirs,
          const struct agree_limits *limits, struct agreement *ret, struct err *err)
{
    struct agreement found = {0};
    struct sums sums = {0};
    if (agree_loss(ours, &found.our_loss, err) < 0 || agree_loss(theirs, &found.loss, err) < 0) {
        return -1;
    }
    if (count_gradients(ours) == 0 || count_gradients(ours) != count_gradients(theirs)) {
        return err_set(err, ERR_PARSE, "%d gradients, expected %d", count_gradients(theirs),
                       count_gradients(ours));
    }
    for (int i = 0; i < ours->n_tensors; i++) {
        const struct st_tensor *tensor = &ours->tensors[i];
        if (is_gradient(tensor) &&
            add_tensor(&sums, tensor, st_find(theirs, tensor->name), err) < 0) {
            return -1;
        }
    }
    found.our_norm = sqrt(sums.ours);
    found.norm = sqrt(sums.theirs);
    found.n_elements = sums.n;
    found.loss_difference = relative(found.loss - found.our_loss, found.our_loss);
    found.norm_difference = relative(found.norm - found.our_norm, found.our_norm);
    found.distance = relative(sqrt(sums.difference), found.our_norm);
    /* NaN is no agreement. */
    if (compare_logits(ours, theirs, &found.logits_difference, err) < 0 ||
        compare_statistics(ours, theirs, &found.statistics_difference, err) < 0) {
        return -1;
    }
    bool has_logits = !isnan(found.logits_difference);
    bool has_statistics = !isnan(found.statistics_difference);
    found.holds = found.loss_difference <= limits->loss &&
                  found.norm_difference <= limits->gradient_norm &&
                  (!has_logits || found.logits_difference <= limits->logits) &&
                  (!has_statistics || found.statistics_difference <= limits->statistics);
    *ret = found;
    return 0;
}
