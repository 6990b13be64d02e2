/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/claim.h"

#include <math.h>

#include "judge/stats.h"

#define SAME_NETWORK_REL_MAX 0.01

const char *const CLAIM_VERDICT_NAMES[5] = {NULL, "holds", "weaker", "reversed", "undecided"};

struct ratio ratio_of_turns(const double *values, const double *references, size_t n)
{
    struct ratio ratio = {(double)NAN, (double)NAN, (double)NAN, n, NULL};
    CLEANUP(free) double *logs = xcalloc(n + 1, sizeof(*logs));
    if (n < 2) {
        ratio.why = n ? "one repeat gives no interval" : "no repeat counts on both sides";
        return ratio;
    }
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(values[idx] > 0 && references[idx] > 0);
        logs[idx] = log(values[idx] / references[idx]);
    }
    double mean = stats_mean(logs, n);
    double half = stats_ci95(logs, n);
    ratio.low = exp(mean - half);
    ratio.high = exp(mean + half);
    if (ratio.low <= 1 && ratio.high >= 1) {
        ratio.why = "the repeats do not tell them apart";
    } else {
        ratio.value = exp(mean);
    }
    return ratio;
}

enum claim_verdict claim_judge(double published, const struct ratio *measured, double tolerance)
{
    bool is_slower = published < 1;
    /* What is said of the slower column is the same said of the faster. */
    double claimed = is_slower ? 1 / published : published;
    if (claimed <= 1 + tolerance) {
        return CLAIM_NONE;
    }
    if (!isfinite(measured->low) || !isfinite(measured->high)) {
        return CLAIM_UNDECIDED;
    }
    double low = is_slower ? 1 / measured->high : measured->low;
    double high = is_slower ? 1 / measured->low : measured->high;
    double least = claimed / (1 + tolerance);
    return low >= least               ? CLAIM_HOLDS
           : high < least && high < 1 ? CLAIM_REVERSED
           : high < least             ? CLAIM_WEAKER
                                      : CLAIM_UNDECIDED;
}

double claim_network_times(struct str count, struct str other)
{
    double a = 0;
    double b = 0;
    if (!count.ptr || !other.ptr || str_to_f64(count, &a, ERR_IGNORED) < 0 ||
        str_to_f64(other, &b, ERR_IGNORED) < 0 || !(a > 0)) {
        return 1;
    }
    return fabs(a / b - 1) > SAME_NETWORK_REL_MAX ? b / a : 1;
}

static struct str condition(const struct report_case *c, const char *name)
{
    struct str value = STR_EMPTY;
    return case_condition(c, name, &value) ? value : STR_EMPTY;
}

static const char *unlike_work(struct arena *arena, const struct report_case *of,
                               const struct report_case *reference)
{
    static const char *const COUNTS[] = {"parameters", "macs_per_sample"};
    struct str steps = condition(of, "grad_accumulation");
    struct str other = condition(reference, "grad_accumulation");
    if (of->batch_per_gpu != reference->batch_per_gpu) {
        return arena_printf(arena, "published with batch %" PRId64 " per GPU against %" PRId64,
                            of->batch_per_gpu, reference->batch_per_gpu);
    }
    if (steps.ptr && other.ptr && str_eq_z(steps, "1") != str_eq_z(other, "1")) {
        return arena_printf(arena,
                            "published with batches accumulated over %.*s steps against %.*s",
                            STR_ARG(steps), STR_ARG(other));
    }
    for (size_t idx = 0; idx < ARRAY_LEN(COUNTS); idx++) {
        double times =
            claim_network_times(condition(reference, COUNTS[idx]), condition(of, COUNTS[idx]));
        if (times < 1 || times > 1) {
            return arena_printf(arena, "published of two networks, one with %.2f times the %s",
                                fmax(times, 1 / times), idx ? "multiply-adds" : "parameters");
        }
    }
    return NULL;
}

const char *claim_objection(struct arena *arena, const struct report_case *of,
                            const struct report_case *reference, const struct cell_audit *audited,
                            const struct cell_audit *audited_reference)
{
    const struct cell_audit *both[] = {audited, audited_reference};
    for (size_t idx = 0; idx < ARRAY_LEN(both); idx++) {
        if (both[idx] && both[idx]->proof == PROOF_CONTRADICTED) {
            return arena_printf(arena, "the log of %.*s belongs to another row",
                                STR_ARG(both[idx]->of_case->id));
        }
    }
    return unlike_work(arena, of, reference);
}
