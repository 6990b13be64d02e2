/* SPDX-License-Identifier: Apache-2.0 */
/* What agreement alone found, as a table for people. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/fs.h"
#include "base/table.h"

#include <math.h>

#include <unistd.h>

static void add_row(struct table *table, const struct bench *bench,
                    const struct bench_program *program)
{
    const struct agreement *a = &program->agreement;
    const char *state = program->is_ours ? "" : rival_state_name(program->rival.state);
    table_add(table, str_of(program->rival.name));
    if (program->has_agreement) {
        TABLE_ADD(
            table, table_text(table, "%.9g", a->loss),
            table_text(table, "%.2g", a->loss_difference), table_text(table, "%.9g", a->norm),
            table_text(table, "%.2g", a->norm_difference), table_text(table, "%.2g", a->distance),
            table_text(table, isnan(a->logits_difference) ? "-" : "%.2g", a->logits_difference),
            table_text(table, isnan(a->statistics_difference) ? "-" : "%.2g",
                       a->statistics_difference),
            str_of(a->holds ? "agrees" : "differs"));
    } else {
        table_addf(table, program->is_ours ? "%.9g" : "-", bench->our_loss);
        for (int i = 0; i < 6; i++) {
            table_add(table, str_of("-"));
        }
        table_addf(table, "%s%s%s", state, program->rival.why[0] ? ": " : "", program->rival.why);
    }
}

int bench_print_agreement(const struct bench *bench, struct err *err)
{
    const struct agree_limits limits = agree_limits_of(bench->opts->precision, bench->opts->device);
    CLEANUP(strbuf) struct strbuf text;
    CLEANUP(table) struct table table;
    strbuf_init(&text, 1 << 20);
    table = table_of(
        "program|>loss|>off by|>gradient norm|>off by|>distance|>logits off by|>statistics|");
    for (int i = 0; i < bench->n_programs; i++) {
        add_row(&table, bench, &bench->programs[i]);
    }
    strbuf_printf(&text,
                  "%s, %s, batch %" PRId64
                  ", %s; allowed: loss %g, gradient norm %g, logits %g, statistics %g\n",
                  bench->opts->model->name, bench->opts->precision, bench->opts->batch,
                  bench->opts->device, limits.loss, limits.gradient_norm, limits.logits,
                  limits.statistics);
    table_render(&table, &text);
    strbuf_printf(&text, "%s\n", bench->folder);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "standard output", err);
}
