/* SPDX-License-Identifier: Apache-2.0 */
/* A draft as the text of a report's manifest, and what audit says about it. */
#include "base/base.h"

#include "draft/draft.h"

#include "base/map.h"

#define WORDS_BYTES_MAX 200 /* of a heading or title that are kept */

static bool has_row(const struct draft_number *n)
{
    return n->state != DRAFT_UNPLACED && !n->is_repeated;
}

/* A heading as a line of text: without its marks, and cut between two characters. */
static struct str line_of(struct arena *arena, struct str text)
{
    text = str_trim(text);
    while (text.len && text.ptr[0] == '#') {
        text = str_sub(text, 1, SIZE_MAX);
    }
    while (str_ends(text, STR_LIT("#"))) {
        text.len--;
    }
    size_t len = text.len < WORDS_BYTES_MAX ? text.len : WORDS_BYTES_MAX;
    while (len < text.len && len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80) {
        len--;
    }
    text = str_trim(str_sub(text, 0, len));
    char *line = arena_strndup(arena, text.len ? text.ptr : "", text.len);
    text_plain_line(line, text.len);
    return (struct str){line, text.len};
}

/* Its heading; with its place, where another table has the same one, or there is none. */
static struct str table_name(struct arena *arena, const struct draft *draft,
                             const struct draft_number *of)
{
    struct str heading = line_of(arena, of->heading);
    bool is_only = heading.len > 0;
    for (size_t idx = 0; is_only && idx < draft->n; idx++) {
        const struct draft_number *n = &draft->items[idx];
        is_only = (n->line == of->line && str_eq(n->document, of->document)) ||
                  !str_eq(n->heading, of->heading);
    }
    return is_only ? heading
                   : str_printf(arena, "%.*s%s%.*s:%" PRId64, STR_ARG(heading),
                                heading.len ? ", " : "", STR_ARG(of->document), of->line);
}

static struct str title_of(struct arena *arena, const struct draft_source *source)
{
    struct str title = line_of(arena, source->first->title);
    struct str name = path_base(source->repository);
    name.len -= str_ends(name, STR_LIT(".git")) ? 4 : 0;
    return str_printf(arena, "%.*s%sdraft from %.*s of %.*s", STR_ARG(title), title.len ? ": " : "",
                      STR_ARG(source->first->document), STR_ARG(name));
}

static struct source_ref source_of(const struct draft_source *source, struct str path)
{
    return (struct source_ref){source->repository, source->commit, path, source->date};
}

static struct report_case case_of(struct arena *arena, const struct draft *draft,
                                  const struct draft_number *n)
{
    struct cell *cell = arena_new(arena, struct cell);
    struct condition *machine = arena_new(arena, struct condition);
    struct str *log = arena_new(arena, struct str);
    struct str rule = n->log ? n->rule->id : STR_EMPTY;
    *cell = (struct cell){.id = str_printf(arena, "%.*s#%.*s", STR_ARG(n->id), STR_ARG(n->metric)),
                          .metric_name = n->metric,
                          .printed = n->printed,
                          .unit = n->unit,
                          .table = table_name(arena, draft, n),
                          /* A case's own rule is the one for its throughput. */
                          .rule = str_eq_z(n->metric, "throughput") ? STR_EMPTY : rule};
    *machine = (struct condition){STR_LIT("machine"), n->attrs.machine};
    *log = n->log ? n->log->path : STR_EMPTY;
    return (struct report_case){
        .id = n->id,
        .stack_id = n->attrs.framework,
        .environment_id = n->grid,
        .group = str_printf(arena, "line-%" PRId64 "-%.*s", n->line, STR_ARG(n->attrs.framework)),
        .format = n->log ? n->log->format->id : STR_EMPTY,
        .rule = rule,
        .logs = log,
        .n_logs = n->log != NULL,
        .conditions = {machine, n->attrs.machine.ptr != NULL},
        .cells = cell,
        .n_cells = 1};
}

void draft_write(struct arena *arena, const struct draft *draft, const struct draft_source *source,
                 struct strbuf *out)
{
    CLEANUP(map) struct map grids = {0};
    CLEANUP(map) struct map frameworks = {0};
    struct report report = {.id = source->id,
                            .title = title_of(arena, source),
                            .rules_inferred = true,
                            .source = source_of(source, source->first->document),
                            .logs_source = source_of(source, source->id),
                            .series_sha256 = source->series_sha256,
                            .environments = arena_array(arena, struct environment, draft->n + 1),
                            .stacks = arena_array(arena, struct stack, draft->n + 1),
                            .cases = arena_array(arena, struct report_case, draft->n + 1)};
    for (size_t idx = 0; idx < draft->n; idx++) {
        const struct draft_number *n = &draft->items[idx];
        struct str framework = n->attrs.framework;
        int64_t nodes = n->attrs.nodes;
        if (!has_row(n)) {
            continue;
        }
        if (map_add(&grids, n->grid, &report)) {
            report.environments[report.n_environments++] =
                (struct environment){.id = n->grid,
                                     .title = n->grid,
                                     .nodes = nodes,
                                     .gpus_per_node = nodes ? n->attrs.gpus / nodes : 0,
                                     .source = source_of(source, n->document)};
        }
        if (map_add(&frameworks, framework, &report)) {
            report.stacks[report.n_stacks++] =
                (struct stack){.id = framework, .framework = framework, .label = framework};
        }
        report.cases[report.n_cases++] = case_of(arena, draft, n);
    }
    json_encode_document(out, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, &report);
    strbuf_add_z(out, "\n");
}

bool draft_has_rows(const struct draft *draft)
{
    for (size_t idx = 0; idx < draft->n; idx++) {
        if (has_row(&draft->items[idx])) {
            return true;
        }
    }
    return false;
}

void draft_take_audit(struct arena *arena, const struct report_audit *audit, struct draft *draft)
{
    size_t at = 0;
    for (size_t idx = 0; idx < draft->n; idx++) {
        struct draft_number *n = &draft->items[idx];
        if (!has_row(n)) {
            continue;
        }
        ASSERT(at < audit->n_cells);
        const struct cell_audit *a = &audit->cells[at++];
        ASSERT(str_eq(a->of_case->id, n->id));
        n->state = a->verdict == AUDIT_NO_LOG    ? DRAFT_NO_LOG
                   : a->verdict == AUDIT_DIFFERS ? DRAFT_DIFFERS
                                                 : DRAFT_FITS;
        n->is_of_another = a->proof == PROOF_CONTRADICTED;
        n->is_proposed = a->is_proposed;
        n->log_state = a->log_state;
        n->found = a->verdict == AUDIT_NO_LOG ? STR_LIT("nothing") : cell_number_words(arena, a);
    }
}
