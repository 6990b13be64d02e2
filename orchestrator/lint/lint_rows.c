/* SPDX-License-Identifier: Apache-2.0 */
/* What a report's tables compare: rows of several frameworks, and one framework over several GPU counts. */
#include "base/base.h"

#include "judge/claim.h"
#include "lint/lint_parts.h"

#define LIST_BYTES 400

static bool both_state(const struct report_case *a, const struct report_case *b, const char *name,
                       struct str *ret_a, struct str *ret_b)
{
    return case_condition(a, name, ret_a) && ret_a->ptr && case_condition(b, name, ret_b) &&
           ret_b->ptr;
}

/* Rows that a table compares: the same model, precision and machine size under two frameworks. */
static bool are_compared(const struct report_case *a, const struct report_case *b)
{
    return a->gpus == b->gpus && a->nodes == b->nodes && a->stack != b->stack && a->n_cells &&
           b->n_cells && str_eq(a->model, b->model) && str_eq(a->precision, b->precision) &&
           str_eq(a->variant, b->variant);
}

/* They differ if one steps after every batch and the other after several. Different numbers above one may give the same
   global batch. */
static bool accumulate_alike(struct str a, struct str b)
{
    return str_eq_z(a, "1") == str_eq_z(b, "1");
}

static const char *pair_of(struct lint *lint, const struct report_case *a,
                           const struct report_case *b)
{
    return arena_printf(lint->arena, "%s: %s and %s", str_z(lint->arena, a->model),
                        a->stack->label.ptr, b->stack->label.ptr);
}

static void lint_network(struct lint *lint, const struct report_case *a,
                         const struct report_case *b)
{
    static const char *const NAMES[] = {"parameters", "macs_per_sample"};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        struct str x = STR_EMPTY;
        struct str y = STR_EMPTY;
        double times = both_state(a, b, NAMES[idx], &x, &y) ? claim_network_times(x, y) : 1;
        if (times < 1 || times > 1) {
            lint_add(lint, "network-differs", in_stack(NULL, ".cases"),
                     "%s have %s and %s %s: %.2f times as many", pair_of(lint, a, b), x.ptr, y.ptr,
                     idx ? "multiply-adds per sample" : "parameters", times);
        }
    }
}

/* The first word, ignoring case: "momentum 0.9" and "Momentum" are the same. */
static bool same_first_word(struct str a, struct str b)
{
    int64_t x = str_find(a, STR_LIT(" "));
    int64_t y = str_find(b, STR_LIT(" "));
    a = x > 0 ? str_sub(a, 0, (size_t)x) : a;
    b = y > 0 ? str_sub(b, 0, (size_t)y) : b;
    return a.len == b.len && strncasecmp(a.ptr, b.ptr, a.len) == 0;
}

static void lint_texts(struct lint *lint, const struct report_case *a, const struct report_case *b)
{
    struct row {
        const char *name, *id, *what;
        bool (*are_alike)(struct str a, struct str b);
    };
    static const struct row ROWS[] = {
        {"optimizer", "optimizer-differs", "step with", same_first_word},
        {"grad_accumulation", "accumulation-differs", "accumulate batches:", accumulate_alike},
        {"dataset", "dataset-differs", "read", str_eq},
        {"dataset_images", "dataset-differs", "read different numbers of images:", str_eq},
        {"dataset_repeats", "dataset-differs", "repeat their images:", str_eq},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        const struct row *row = &ROWS[idx];
        struct str x = STR_EMPTY;
        struct str y = STR_EMPTY;
        if (both_state(a, b, row->name, &x, &y) && !row->are_alike(x, y)) {
            lint_add(lint, row->id, in_stack(NULL, ".cases"), "%s %s %s and %s",
                     pair_of(lint, a, b), row->what, x.ptr, y.ptr);
        }
    }
}

static bool has_rate(const struct report_case *c)
{
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (c->cells[idx].metric == METRIC_THROUGHPUT ||
            c->cells[idx].metric == METRIC_RUN_THROUGHPUT) {
            return true;
        }
    }
    return false;
}

/* One stack, model and precision column over its cases: rates that form a series. A list of results does not. */
static bool same_column(const struct report_case *a, const struct report_case *b)
{
    return a->stack == b->stack && str_eq(a->model, b->model) &&
           str_eq(a->precision, b->precision) && has_rate(a) && has_rate(b);
}

static void lint_mode(struct lint *lint, const struct report_case *a, const struct report_case *b)
{
    struct str x = STR_EMPTY;
    struct str y = STR_EMPTY;
    if (both_state(a, b, "precision_mode", &x, &y) && !str_eq(x, y)) {
        lint_add(lint, "precision-mode-mixed", in_stack(NULL, ".cases"),
                 "%s, %s, column %s: %s on %" PRId64 " GPUs and %s on %" PRId64,
                 str_z(lint->arena, a->model), a->stack->label.ptr,
                 str_z(lint->arena, a->precision), x.ptr, a->gpus, y.ptr, b->gpus);
    }
}

/* Appends "name x / y" for each of the names (ended by NULL) that differ. */
static void list_differences(const struct report_case *a, const struct report_case *b,
                             const char *const *names, struct strbuf *out)
{
    for (; *names; names++) {
        struct str x = STR_EMPTY;
        struct str y = STR_EMPTY;
        if (both_state(a, b, *names, &x, &y) && !str_eq(x, y)) {
            strbuf_printf(out, "%s%s %s / %s", out->len ? ", " : "", *names, x.ptr, y.ptr);
        }
    }
}

static void lint_scaling(struct lint *lint, const struct report_case *a,
                         const struct report_case *b)
{
    static const char *const HARDWARE[] = {"gpu", "gpu_memory_gb", "cpu", "cpu_cores", "memory_gb",
                                           "os",  "driver",        NULL};
    static const char *const SOFTWARE[] = {
        "cuda", "cudnn", "framework_version", "library_version", "code_version", "log_date", NULL};
    CLEANUP(strbuf) struct strbuf list = STRBUF(LIST_BYTES);
    if (a->gpus == b->gpus) {
        return;
    }
    list_differences(a, b, HARDWARE, &list);
    if (list.len) {
        lint_add(lint, "scaling-mixes-hardware", in_stack(NULL, ".cases"),
                 "%s, %s: %" PRId64 " and %" PRId64 " node(s) ran on different machines: %s",
                 str_z(lint->arena, a->model), a->stack->label.ptr, a->nodes, b->nodes, list.ptr);
    }
    strbuf_clear(&list);
    list_differences(a, b, SOFTWARE, &list);
    if (list.len) {
        lint_add(lint, "software-differs", in_stack(NULL, ".cases"),
                 "%s, %s: %" PRId64 " and %" PRId64 " GPUs: %s", str_z(lint->arena, a->model),
                 a->stack->label.ptr, a->gpus, b->gpus, list.ptr);
    }
}

/* The first case of the column: if any two cases differ, one of them differs from it. */
static const struct report_case *first_of_column(const struct report *report,
                                                 const struct report_case *c)
{
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        if (same_column(&report->cases[idx], c)) {
            return &report->cases[idx];
        }
    }
    return c;
}

void lint_rows(struct lint *lint)
{
    const struct report *report = lint->report;
    for (size_t i = 0; i < report->n_cases; i++) {
        const struct report_case *a = &report->cases[i];
        const struct report_case *first = first_of_column(report, a);
        if (a->n_cells && first != a) {
            lint_mode(lint, first, a);
            lint_scaling(lint, first, a);
        }
        for (size_t j = i + 1; j < report->n_cases; j++) {
            if (are_compared(a, &report->cases[j])) {
                lint_network(lint, a, &report->cases[j]);
                lint_texts(lint, a, &report->cases[j]);
            }
        }
    }
}
