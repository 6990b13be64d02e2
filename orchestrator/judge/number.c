/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/number.h"

const struct rule *number_rule(const struct format *format, const struct series *series,
                               const struct rule_case *of)
{
    const struct rule *rule = format_rule_of(format, series->name);
    /* The default of moments asks for the batch; without one they give seconds a step. */
    return rule && rule->statistic == STAT_TIMESTAMPS && of->batch_per_gpu == 0 ? NULL : rule;
}

bool number_has_rows(const struct series *series)
{
    for (size_t idx = 1; idx < series->n; idx++) {
        if (series->samples[idx].gpus != series->samples[0].gpus) {
            return true;
        }
    }
    return false;
}

static int by_engine(const struct measurement *m, const struct series *series,
                     const struct rule_case *of, struct made_number *number, struct err *err)
{
    const struct rule row = {.id = STR_LIT("row"), .series = series->name, .match_gpus = true};
    if (number_has_rows(series)) {
        return rule_apply(&row, m, of, &number->made, err);
    }
    number->figure = engine_figure(series);
    number->made =
        (struct rule_value){.value = number->figure.value, .n_used = number->figure.n_used};
    return number->figure.has_value
               ? 0
               : err_set(err, ERR_PARSE, "no number follows from series %.*s without a rule",
                         STR_ARG(series->name));
}

int number_make(const struct measurement *m, const struct series *series, const struct rule *rule,
                const struct rule_case *of, struct made_number *ret, struct err *err)
{
    struct made_number number = {.unit = rule ? rule_unit(rule, series->unit)
                                         : series->quantity == QTY_CLOCK ? STR_LIT("s")
                                                                         : series->unit};
    if ((rule ? rule_apply(rule, m, of, &number.made, err)
              : by_engine(m, series, of, &number, err)) < 0) {
        return -1;
    }
    *ret = number;
    return 0;
}

int number_of_log(const struct format *format, const struct measurement *m, const struct rule *rule,
                  struct rule_case *of, struct made_number *ret, struct err *err)
{
    const struct series *series =
        rule ? measurement_series(m, rule->series) : measurement_primary(m);
    if (!series) {
        return err_set(err, ERR_PARSE, "the log has no series of the rule");
    }
    if (!rule) {
        const struct log_counts counts = identity_counts(format, m, NULL);
        of->gpus = counts.gpus > 0 ? counts.gpus : of->gpus;
        of->nodes = counts.nodes > 0 ? counts.nodes : of->nodes;
        of->batch_per_gpu = counts.batch_per_gpu;
        rule = number_rule(format, series, of);
    }
    return number_make(m, series, rule, of, ret, err);
}
