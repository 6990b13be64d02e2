/* SPDX-License-Identifier: Apache-2.0 */
/* Step series, on a page. */
#pragma once

#include "judge/audit.h"
#include "view/page.h"

void add_series(struct page *page, const struct report_audit *audit);
/* The heading, and what shade and line mean. whose: "Each log's". */
void series_begin(struct page *page, const char *whose);
struct spark_of {
    const struct rule *rule; /* or NULL */
    struct rule_case rule_case;
    const struct measurement *m;
    struct str name;
    struct str note;
};
/* Nothing where the log has no curve. */
void add_spark_figure(struct page *page, const struct spark_of *of);
