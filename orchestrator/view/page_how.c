/* SPDX-License-Identifier: Apache-2.0 */
/* How a cell's number follows from its log: addresses of logs and commits, the samples, the window, the arithmetic. */
#include "base/base.h"

#include "view/page_parts.h"

#include <math.h>

#define SAMPLES_SHOWN 8

/* ---- addresses ---- */

/* Hosts whose addresses of a file at a commit are known. Source: their own "permanent link". */
static const struct {
    const char *start, *file, *commit;
} HOSTS[] = {
    {"https://github.com/", "/blob/", "/commit/"},
    {"https://gitlab.com/", "/-/blob/", "/-/commit/"},
};

static struct str repository_of(const struct source_ref *source, size_t *ret_host)
{
    struct str repository = source->repository;
    for (size_t idx = 0; repository.ptr && source->commit.ptr && idx < ARRAY_LEN(HOSTS); idx++) {
        if (str_starts(repository, str_of(HOSTS[idx].start))) {
            repository.len -= str_ends(repository, STR_LIT(".git")) ? 4 : 0;
            repository.len -= str_ends(repository, STR_LIT("/")) ? 1 : 0;
            *ret_host = idx;
            return repository;
        }
    }
    return STR_EMPTY;
}

static void add_path(struct strbuf *url, struct str path)
{
    for (size_t idx = 0; idx < path.len; idx++) {
        unsigned char c = (unsigned char)path.ptr[idx];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || (c && strchr("-._~/", c));
        strbuf_printf(url, is_plain ? "%c" : "%%%02X", c);
    }
}

struct str commit_url(struct page *page, const struct source_ref *source)
{
    size_t host = 0;
    struct str repository = repository_of(source, &host);
    return repository.len ? textf(&page->arena, "%.*s%s%.*s", STR_ARG(repository),
                                  HOSTS[host].commit, STR_ARG(source->commit))
                          : STR_EMPTY;
}

struct str file_url(struct page *page, const struct source_ref *source, struct str path)
{
    CLEANUP(strbuf) struct strbuf url = {0};
    size_t host = 0;
    struct str repository = repository_of(source, &host);
    if (repository.len == 0) {
        return STR_EMPTY;
    }
    strbuf_init(&url, 65536);
    strbuf_printf(&url, "%.*s%s%.*s/", STR_ARG(repository), HOSTS[host].file,
                  STR_ARG(source->commit));
    add_path(&url, path);
    return str_dup(&page->arena, strbuf_str(&url));
}

void add_link(struct page *page, struct str url, struct str text)
{
    if (url.len) {
        HTML(page->out, "<a href=\"{}\" rel=\"noreferrer\"><code>{}</code></a>", url, text);
    } else {
        HTML(page->out, "<code>{}</code>", text);
    }
}

void add_log_link(struct page *page, const struct report *report, struct str path)
{
    struct str folder = report->logs_source.path;
    struct str below = path;
    if (folder.len && str_starts(path, folder) && path.len > folder.len &&
        path.ptr[folder.len] == '/') {
        below = str_sub(path, folder.len + 1,
                        SIZE_MAX); /* the clone's folder is not in the repository */
    }
    add_link(page, file_url(page, &report->logs_source, below), below);
}

/* ---- samples and window ---- */

static void add_samples(struct page *page, const struct series *series, const bool *is_used)
{
    size_t n_used = 0;
    size_t n_shown = 0;
    for (size_t idx = 0; idx < series->n; idx++) {
        n_used += is_used[idx];
    }
    HTML(page->out,
         "<p>Window: {} of {} samples of <code>{}</code>: ", textf(&page->arena, "%zu", n_used),
         textf(&page->arena, "%zu", series->n), series->name);
    for (size_t idx = 0; idx < series->n && n_shown < SAMPLES_SHOWN; idx++) {
        if (is_used[idx]) {
            HTML(page->out, "{}{}", n_shown ? STR_LIT(", ") : STR_EMPTY,
                 textf(&page->arena, "%.6g", series->samples[idx].value));
            n_shown++;
        }
    }
    HTML(page->out, "{}{}", series->unit.len ? STR_LIT(" ") : STR_EMPTY, series->unit);
    if (n_used > n_shown) {
        HTML(page->out, ", and {} more (drawn under \xe2\x80\x9cStep series\xe2\x80\x9d)",
             textf(&page->arena, "%zu", n_used - n_shown));
    }
    strbuf_add_z(page->out, ".</p>\n");
}

static void add_window(struct page *page, const struct cell_audit *ca, const struct rule *rule,
                       size_t log)
{
    const struct measurement *m = ca->measurements[log];
    const struct series *series = m ? measurement_series(m, rule->series) : NULL;
    struct rule_case of = {.gpus = ca->of_case->gpus,
                           .nodes = ca->of_case->nodes,
                           .batch_per_gpu = ca->of_case->batch_per_gpu};
    struct err ignored = {0};
    bool *is_used;
    if (!series || series->n == 0) {
        return;
    }
    is_used = arena_array(&page->arena, bool, series->n);
    if (rule_window(rule, m, &of, is_used, &ignored) == 0) {
        add_samples(page, series, is_used);
    }
}

/* ---- arithmetic ---- */

/* What the statistic was multiplied with; NAN where the log's own counts may have been taken. */
static double factor_of(const struct cell_audit *ca, const struct rule *rule,
                        const char **ret_words)
{
    const struct report_case *c = ca->of_case;
    *ret_words = "";
    if (ca->proof == PROOF_CONTRADICTED || ca->n_logs != 1) {
        return (double)NAN;
    }
    switch (rule->scale) {
    case SCALE_NONE:
        return 1;
    case SCALE_GPUS:
        *ret_words = " GPUs";
        return (double)c->gpus;
    case SCALE_NODES:
        *ret_words = " nodes";
        return (double)c->nodes;
    case SCALE_GLOBAL_BATCH:
        *ret_words = " samples a step";
        return (double)(c->gpus * c->batch_per_gpu);
    case SCALE_GLOBAL_BATCH_OVER:
    case SCALE_FACT_OVER:
        break;
    }
    return (double)NAN;
}

static void add_arithmetic(struct page *page, const struct cell_audit *ca, const struct rule *rule)
{
    const char *words = "";
    double factor = factor_of(ca, rule, &words);
    HTML(page->out, "<p>{} of {} samples", str_of(statistic_name(rule->statistic)),
         textf(&page->arena, "%zu", ca->n_used));
    if (isfinite(factor) && factor > 1) {
        HTML(page->out, " = {}, \xc3\x97 {}{}",
             textf(&page->arena, "%.8g", ca->recomputed / factor),
             textf(&page->arena, "%.0f", factor), str_of(words));
    } else if (rule->scale == SCALE_GLOBAL_BATCH_OVER && ca->n_logs == 1 &&
               ca->proof != PROOF_CONTRADICTED) {
        double batch = (double)(ca->of_case->gpus * ca->of_case->batch_per_gpu);
        HTML(page->out, " = {}; {} samples a step over it",
             textf(&page->arena, "%.8g", batch / ca->recomputed),
             textf(&page->arena, "%.0f", batch));
    } else if (ca->n_logs > 1) {
        HTML(page->out, " of each of {} logs, and of those their combination",
             textf(&page->arena, "%zu", ca->n_logs));
    }
    HTML(page->out, " = <b>{}</b>; {} at {} decimal{}: {}. Published {}: {}.</p>\n",
         textf(&page->arena, "%.8g", ca->recomputed), ca->rounding,
         textf(&page->arena, "%d", ca->cell->decimals),
         ca->cell->decimals == 1 ? STR_EMPTY : STR_LIT("s"),
         number_text(page, rule_round(rule->rounding, ca->recomputed, ca->cell->decimals),
                     ca->cell->decimals),
         ca->cell->printed, percent_text(page, ca->rel_diff));
}

void add_how(struct page *page, const struct report *report, const struct cell_audit *ca)
{
    const struct rule *rule = rule_of(page, ca);
    if (ca->n_logs == 0) {
        return;
    }
    strbuf_add_z(page->out, "<details class=\"how\"><summary>log, samples, arithmetic</summary>\n");
    for (size_t log = 0; log < ca->n_logs; log++) {
        strbuf_add_z(page->out, "<p>");
        add_log_link(page, report, ca->logs[log].path);
        strbuf_add_z(page->out, "</p>\n");
        if (rule) {
            add_window(page, ca, rule, log);
        }
    }
    if (rule && isfinite(ca->recomputed)) {
        add_arithmetic(page, ca, rule);
    }
    strbuf_add_z(page->out, "</details>");
}
