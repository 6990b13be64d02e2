/* SPDX-License-Identifier: Apache-2.0 */
/* Findings about what logs state about their own run: against the report's conditions, and against each other. */
#include "base/base.h"

#include <math.h>
#include <strings.h>

#include "judge/audit_parts.h"
#include "judge/identity.h"

#define NUMBER_REL_MAX    1e-9
#define COMMIT_DIGITS_MIN 6

static bool to_number(struct str text, double *ret)
{
    struct err err = {0};
    return str_to_f64(text, ret, &err) == 0;
}

/* "8.0" and "8.0.5" are one version, stated more or less exactly; "8.1" is another. Versions are compared part by
   part. */
static bool is_version_prefix(struct str a, struct str b)
{
    struct str part_a;
    struct str part_b;
    while (str_next(&a, '.', &part_a) && str_next(&b, '.', &part_b)) {
        if (!str_eq(part_a, part_b)) {
            return false;
        }
    }
    return true;
}

/* "0.30.0+a00a3b6" against a whole commit. */
static bool is_commit_of(struct str version, struct str commit)
{
    int64_t plus = str_find(version, STR_LIT("+"));
    struct str digits = plus >= 0 ? str_sub(version, (size_t)plus + 1, SIZE_MAX) : STR_EMPTY;
    return digits.len < COMMIT_DIGITS_MIN || str_starts(commit, digits);
}

/* The major version in ".el7." of a kernel's name, or 0. */
static char red_hat_major(struct str platform)
{
    int64_t at = str_find(platform, STR_LIT(".el"));
    if (at < 0 || (size_t)at + 3 >= platform.len) {
        return '\0';
    }
    return platform.ptr[at + 3];
}

/* "CentOS 6.3": '6'; 0 for other systems. */
static char centos_major(struct str os)
{
    int64_t at = str_find(os, STR_LIT("CentOS"));
    for (size_t idx = at >= 0 ? (size_t)at : os.len; idx < os.len; idx++) {
        if (os.ptr[idx] >= '0' && os.ptr[idx] <= '9') {
            return os.ptr[idx];
        }
    }
    return '\0';
}

static bool holds_text(struct str text, struct str part)
{
    for (size_t at = 0; at + part.len <= text.len; at++) {
        if (strncasecmp(text.ptr + at, part.ptr, part.len) == 0) {
            return true;
        }
    }
    return false;
}

static const char VERSIONS[] =
    "cuda cudnn nccl driver python_version framework_version library_version";
static const char NUMBERS[] = "iterations log_interval workers weight_decay loss_scale "
                              "sequence_length predictions_per_sequence dataset_images";

bool fact_contradicts(struct str name, struct str stated, struct str fact)
{
    double x = 0;
    double y = 0;
    if (is_word_of(name, VERSIONS)) {
        return !is_version_prefix(stated, fact) && !is_version_prefix(fact, stated);
    }
    if (is_word_of(name, NUMBERS)) {
        return to_number(stated, &x) && to_number(fact, &y) &&
               fabs(x - y) > NUMBER_REL_MAX * fmax(fabs(x), fabs(y));
    }
    if (str_eq_z(name, "code_version")) {
        return !is_commit_of(fact, stated);
    }
    if (str_eq_z(name, "os")) {
        char kernel = red_hat_major(fact);
        char centos = centos_major(stated);
        return kernel && centos && kernel != centos;
    }
    if (str_eq_z(name, "gpu")) {
        return !holds_text(stated, fact) && !holds_text(fact, stated);
    }
    return false;
}

/* Repeats of one case give the same finding: once is enough. */
static void add_once(struct audit *audit, const char *id, struct spot at, struct str message)
{
    if (!findings_say(audit->found, id, message, true)) {
        finding_add(audit->found, id, at, "%.*s", STR_ARG(message));
    }
}

/* The run of the log whose samples the cell's rule takes; < 0: any. */
static int32_t run_of(const struct cell_audit *a, size_t log)
{
    const struct measurement *m = cell_measurement(a, log);
    return a->by && m ? rule_run(a->by, m) : -1;
}

/* The batch of the row against the log's: rates belong to the batch that ran. */
static void find_batch(struct audit *audit, const struct cell_audit *a, size_t log,
                       const struct fact *fact)
{
    const struct report_case *c = a->of_case;
    bool is_gpu = str_eq_z(fact->name, "batch_per_gpu");
    double batch = 0;
    if ((cell_measurement(a, log)->n_runs > 1 && run_of(a, log) < 0) || !c->batch_per_gpu) {
        return; /* unknown which run stated it, or the row prints none */
    }
    double row = (double)c->batch_per_gpu * (is_gpu ? 1 : (double)c->gpus);
    double node = (double)c->batch_per_gpu * (double)c->gpus_per_node;
    struct str text = STR_EMPTY;
    double accumulated = 1;
    if (case_condition(c, "grad_accumulation", &text) && text.ptr &&
        !to_number(text, &accumulated)) {
        return;
    }
    if (!to_number(fact->value, &batch) || fabs(batch - row) < 0.5 ||
        fabs(batch - row * accumulated) < 0.5 || (!is_gpu && fabs(batch - node) < 0.5) ||
        (is_gpu && c->gpus > 1 && fabs(batch - node) < 0.5)) {
        return;
    }
    add_once(audit, "batch-differs", log_spot(audit, a, log, fact->line),
             str_printf(audit->arena, "%s: the row's %s is %.0f, but the log's is %.*s",
                        a->cell->id.ptr, is_gpu ? "batch per GPU" : "batch of all GPUs", row,
                        STR_ARG(fact->value)));
}

static void find_fact(struct audit *audit, const struct cell_audit *a, size_t log,
                      const struct fact *fact)
{
    struct str stated = STR_EMPTY;
    double repeats = 0;
    bool has_stated =
        case_condition(a->of_case, str_z(audit->arena, fact->name), &stated) && stated.ptr;
    if (str_eq_z(fact->name, "batch_per_gpu") || str_eq_z(fact->name, "global_batch")) {
        find_batch(audit, a, log, fact);
    } else if (str_eq_z(fact->name, "dataset_repeats") && !has_stated &&
               to_number(fact->value, &repeats) && repeats > 1) {
        finding_add(audit->found, "data-repeated", log_spot(audit, a, log, fact->line),
                    "%s: the list of images is repeated %.*s times", a->cell->id.ptr,
                    STR_ARG(fact->value));
    } else if (has_stated && fact_contradicts(fact->name, stated, fact->value)) {
        add_once(audit, "log-contradicts-condition", log_spot(audit, a, log, fact->line),
                 str_printf(audit->arena, "%s: %.*s is stated as %s, but the log says %.*s",
                            a->cell->id.ptr, STR_ARG(fact->name), stated.ptr,
                            STR_ARG(fact->value)));
    }
}

/* Several patterns may give one fact more or less exactly: the first with a name counts. */
static bool is_first_of_name(const struct measurement *m, size_t idx, int32_t run)
{
    for (size_t before = 0; before < idx; before++) {
        if (str_eq(m->facts[before].name, m->facts[idx].name) &&
            fact_is_of(&m->facts[before], run)) {
            return false;
        }
    }
    return fact_is_of(&m->facts[idx], run);
}

static const struct fact *fact_named(const struct cell_audit *a, const char *name)
{
    const struct measurement *m = cell_measurement(a, 0);
    int32_t run = m ? run_of(a, 0) : -1;
    return m ? measurement_fact(m, str_of(name), run) : NULL;
}

/* Logs of one framework and model that state different software: once for each name, with the first that differs. */
static void find_software(struct audit *audit, size_t first, const char *name)
{
    const struct report_audit *out = audit->out;
    const struct cell_audit *a = &out->cells[first];
    const struct fact *x = fact_named(a, name);
    for (size_t idx = 0; x && idx < out->n_cells; idx++) {
        const struct cell_audit *b = &out->cells[idx];
        const struct fact *y = fact_named(b, name);
        if (!y || a->of_case->stack != b->of_case->stack ||
            !str_eq(a->of_case->model, b->of_case->model)) {
            continue;
        }
        if (idx < first) {
            return; /* reported for the first of them */
        }
        if (!str_eq(x->value, y->value)) {
            add_once(audit, "software-differs", log_spot(audit, b, 0, y->line),
                     str_printf(audit->arena,
                                "%s, %s: %s is %.*s on %" PRId64 " GPUs and %.*s on %" PRId64,
                                a->of_case->stack->label.ptr, a->cell->table.ptr, name,
                                STR_ARG(x->value), a->of_case->gpus, STR_ARG(y->value),
                                b->of_case->gpus));
            return;
        }
    }
}

void audit_find_facts(struct audit *audit)
{
    static const char *const SOFTWARE[] = {"cuda", "cudnn", "framework_version", "library_version",
                                           "code_version"};
    for (size_t idx = 0; idx < audit->out->n_cells; idx++) {
        const struct cell_audit *a = &audit->out->cells[idx];
        if (a->cell->metric != METRIC_THROUGHPUT) {
            continue; /* the case's other cells stand on the same log */
        }
        for (size_t log = 0; log < a->n_logs; log++) {
            const struct measurement *m = cell_measurement(a, log);
            int32_t run = run_of(a, log);
            for (size_t fact = 0; m && fact < m->n_facts; fact++) {
                if (is_first_of_name(m, fact, run)) {
                    find_fact(audit, a, log, &m->facts[fact]);
                }
            }
        }
        for (size_t name = 0; name < ARRAY_LEN(SOFTWARE); name++) {
            find_software(audit, idx, SOFTWARE[name]);
        }
    }
}
