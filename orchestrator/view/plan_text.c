/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/table.h"
#include "report/source.h"
#include "view/plan_out.h"

#define LONG_RUN_S 86400

struct todo { /* of several cases, once */
    const struct step_need *need;
    size_t n_cases;
};

struct plan_text {
    struct arena *arena;
    const struct plan *plan;
    struct strbuf *out;
    struct todo *todos; /* in the order in which the cases need them */
    size_t n_todos;
};

/* "36 h 31 min", "12 min", "45 s". In the arena. */
static const char *duration_in_words(struct arena *arena, int64_t seconds)
{
    int64_t minutes = (seconds + 30) / 60;
    return seconds < 100  ? arena_printf(arena, "%lld s", (long long)seconds)
           : minutes < 60 ? arena_printf(arena, "%lld min", (long long)minutes)
                          : arena_printf(arena, "%lld h %lld min", (long long)minutes / 60,
                                         (long long)minutes % 60);
}

/* ---- what to do first ---- */

static bool is_same_need(const struct step_need *a, const struct step_need *b)
{
    return a->command.ptr && b->command.ptr ? str_eq(a->command, b->command)
                                            : str_eq(a->what, b->what);
}

/* Its number, from 1. */
static size_t number_of(const struct plan_text *t, const struct step_need *need)
{
    size_t idx = 0;
    while (idx < t->n_todos && !is_same_need(t->todos[idx].need, need)) {
        idx++;
    }
    return idx + 1;
}

static void find_todos(struct plan_text *t)
{
    size_t n_max = 0;
    for (size_t idx = 0; idx < t->plan->n_steps; idx++) {
        n_max += t->plan->steps[idx].n_needs;
    }
    t->todos = arena_array(t->arena, struct todo, n_max + 1);
    for (size_t idx = 0; idx < t->plan->n_steps; idx++) {
        const struct plan_step *step = &t->plan->steps[idx];
        for (size_t at = 0; at < step->n_needs; at++) {
            size_t number = number_of(t, &step->needs[at]);
            struct todo *todo = &t->todos[number - 1];
            todo->need = &step->needs[at];
            todo->n_cases++;
            t->n_todos = number > t->n_todos ? number : t->n_todos;
        }
    }
}

static const char *cases_in_words(struct arena *arena, size_t n)
{
    return arena_printf(arena, "%zu case%s", n, n == 1 ? "" : "s");
}

/* -1: not all of it is stated, but as much as `least`. */
static void print_bytes(struct strbuf *out, int64_t bytes, int64_t least)
{
    if (bytes < 0 && !least) {
        strbuf_add_z(out, "size not stated");
        return;
    }
    strbuf_add_z(out, bytes < 0 ? "at least " : "");
    bytes = bytes < 0 ? least : bytes;
    strbuf_printf(out, bytes < 1000000000 ? "%.1f MB" : "%.1f GB",
                  (double)bytes / (bytes < 1000000000 ? 1e6 : 1e9));
}

/* What a need is about, as far as its command does not say it already. */
static struct str without_command(const struct step_need *need)
{
    struct str name = need->what;
    struct str kind = STR_EMPTY;
    int64_t at = str_find(need->what, need->command);
    if (at > 2 && str_ends(need->what, STR_LIT(" makes it"))) {
        return str_sub(need->what, 0, (size_t)at - STR_LIT(": ").len);
    }
    return str_next(&name, ' ', &kind) && name.len && str_ends(need->command, name) ? kind
                                                                                    : need->what;
}

static void print_todo(const struct plan_text *t, size_t idx)
{
    const struct todo *todo = &t->todos[idx];
    const struct step_need *need = todo->need;
    const struct plan_need *stored = need->stored && need->stored->name.ptr ? need->stored : NULL;
    const char *cases = cases_in_words(t->arena, todo->n_cases);
    if (!need->command.ptr) {
        strbuf_printf(t->out, "%4zu  %s (exit status %d): %.*s; %s\n", idx + 1,
                      err_code_name(need->cause), err_exit_status(need->cause), STR_ARG(need->what),
                      cases);
        return;
    }
    strbuf_printf(t->out, "%4zu  $ %.*s\n      %.*s; %s", idx + 1, STR_ARG(need->command),
                  STR_ARG(without_command(need)), cases);
    if (stored && !need->is_lock && stored->download_bytes != 0) {
        strbuf_add_z(t->out, "; to fetch: ");
        print_bytes(t->out, stored->download_bytes, stored->least_download_bytes);
    }
    if (stored && !need->is_lock && (stored->disk_bytes >= 0 || stored->least_disk_bytes)) {
        strbuf_add_z(t->out, stored->disk_bytes < 0 ? "; disk: " : "; disk, about: ");
        print_bytes(t->out, stored->disk_bytes, stored->least_disk_bytes);
    }
    strbuf_add_char(t->out, '\n');
}

static void print_todos(const struct plan_text *t)
{
    bool has_lock = false;
    if (t->n_todos) {
        strbuf_add_z(t->out, "first, once each and in this order\n");
    }
    for (size_t idx = 0; idx < t->n_todos; idx++) {
        print_todo(t, idx);
        has_lock = has_lock || t->todos[idx].need->is_lock;
    }
    if (has_lock) {
        strbuf_add_z(t->out, "      then plan again: what was locked may have to be fetched\n");
    }
}

/* ---- time ---- */

static void print_time(const struct plan_text *t)
{
    const struct plan *plan = t->plan;
    int64_t all_s = 0;
    size_t n_unknown = 0;
    size_t n_long = 0;
    if (plan_claims_none(plan)) {
        return;
    }
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        all_s += plan->steps[idx].estimate_s;
        n_unknown += plan->steps[idx].estimate_s == 0;
        n_long += plan->steps[idx].estimate_s > LONG_RUN_S;
    }
    if (all_s) {
        strbuf_printf(
            t->out,
            "time     %s for one repeat of each case, %s for %lld, at the published rates\n",
            duration_in_words(t->arena, all_s), duration_in_words(t->arena, all_s * plan->repeats),
            (long long)plan->repeats);
    }
    if (n_unknown) {
        strbuf_printf(t->out, "         %s: no rate is known\n",
                      cases_in_words(t->arena, n_unknown));
    }
    if (n_long) {
        strbuf_printf(t->out, "warning  a repeat of %s takes more than a day\n",
                      cases_in_words(t->arena, n_long));
    }
}

/* ---- cases ---- */

static struct str state_of(const struct plan_text *t, const struct plan_step *step)
{
    const char *list = "";
    for (size_t idx = 0; idx < step->n_needs; idx++) {
        list = arena_printf(t->arena, "%s%s%zu", list, idx ? ", " : "needs ",
                            number_of(t, &step->needs[idx]));
    }
    return str_of(step->cause == ERR_NONE ? "ready" : list);
}

static void print_cases(const struct plan_text *t)
{
    bool has_time = !plan_claims_none(t->plan);
    CLEANUP(table)
    struct table table = table_of(has_time ? "case|state|where|>a repeat" : "case|state|where");
    for (size_t idx = 0; idx < t->plan->n_steps; idx++) {
        const struct plan_step *step = &t->plan->steps[idx];
        TABLE_ADD(&table, step->case_id, state_of(t, step), step->node);
        if (has_time) {
            table_add(&table, step->estimate_s
                                  ? str_of(duration_in_words(t->arena, step->estimate_s))
                                  : STR_LIT("not known"));
        }
    }
    strbuf_add_char(t->out, '\n');
    table_render(&table, t->out);
    strbuf_add_char(t->out, '\n');
}

/* ---- details ---- */

/* Details that need no mention on one machine. */
static void print_place(struct strbuf *out, const struct plan *plan, const struct plan_step *step)
{
    if (step->n_ranks > 1 || plan_step_nodes(step) > 1) {
        strbuf_printf(out, "           %lld ranks, %lld a node, started by %s\n",
                      (long long)step->n_ranks, (long long)(step->n_ranks / plan_step_nodes(step)),
                      step->is_per_node                ? "the command, once a node"
                      : plan->launcher == LAUNCHER_SSH ? "us, one job a node"
                                                       : LAUNCHER_KIND_NAMES[plan->launcher]);
    }
    for (size_t idx = 0; idx < step->n_mounts; idx++) {
        const struct plan_mount *mount = &step->mounts[idx];
        strbuf_printf(out, "           %s %.*s at %.*s\n", RECIPE_MOUNT_KIND_NAMES[mount->kind],
                      STR_ARG(mount->name), STR_ARG(mount->inside));
        if (mount->part.tree.ptr) {
            strbuf_printf(out, "             only %.*s: %lld files, %lld are left out\n",
                          STR_ARG(str_sub(mount->version, SOURCE_COMMIT_HEX + 1, SIZE_MAX)),
                          (long long)mount->part.n_files, (long long)mount->part.n_left_out);
        }
    }
    if (step->image.ptr) {
        strbuf_printf(out, "           in %s, image %.*s@%.*s\n", runtime_kind_label(plan->runtime),
                      STR_ARG(step->image_name), STR_ARG(step->image_digest));
    }
}

static void print_step(struct strbuf *out, const struct plan *plan, const struct plan_step *step)
{
    strbuf_printf(out, "  %.*s x%lld: %.*s\n", STR_ARG(step->case_id), (long long)plan->repeats,
                  STR_ARG(step->recipe.ptr ? step->recipe : STR_LIT("as in the report")));
    print_place(out, plan, step);
    strbuf_printf(out, "           on %.*s:", STR_ARG(step->node));
    plan_step_command(step, out);
    strbuf_add_char(out, '\n');
    if (step->memory_bytes) {
        strbuf_printf(out, "           about %.0f MB of memory, %.0f kB of log a repeat\n",
                      (double)step->memory_bytes / 1e6, (double)step->log_bytes / 1e3);
    }
    strbuf_printf(out, "           deadline %lld s a repeat\n",
                  (long long)plan_step_deadline_s(plan, step));
}

static void print_details(struct strbuf *out, const struct plan *plan)
{
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        print_step(out, plan, &plan->steps[idx]);
    }
    for (size_t idx = 0; idx < plan->n_pins; idx++) {
        strbuf_printf(out, "not pinned by its authors: %.*s: %.*s\n",
                      STR_ARG(plan->pins[idx].stack), STR_ARG(plan->pins[idx].what));
    }
}

/* ---- the whole ---- */

void plan_out_todos(const struct plan *plan, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct plan_text t = {.arena = &arena, .plan = plan, .out = out};
    find_todos(&t);
    print_todos(&t);
}

void plan_out_time(const struct plan *plan, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct plan_text t = {.arena = &arena, .plan = plan, .out = out};
    print_time(&t);
}

void plan_out_text(const struct plan *plan, bool with_details, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct plan_text t = {.arena = &arena, .plan = plan, .out = out};
    find_todos(&t);
    strbuf_printf(out, "%.*s on %.*s, profile %s%s: %zu of %zu case%s can be run here\n",
                  STR_ARG(plan->report), STR_ARG(plan->inventory), PROFILE_NAMES[plan->profile],
                  plan->is_rehearsal ? ", a rehearsal" : "", plan_runnable(plan), plan->n_steps,
                  plural_s(plan->n_steps));
    for (size_t idx = 0; idx < plan->n_overrides; idx++) {
        const struct json_override *set = &plan->overrides[idx];
        strbuf_printf(out, "set      %.*s: %.*s, in the report %.*s\n", STR_ARG(set->path),
                      STR_ARG(set->value), STR_ARG(set->was.ptr ? set->was : STR_LIT("absent")));
    }
    if (plan->data.folder.ptr) {
        strbuf_printf(out, "data     %s, split %.*s, %lld samples, in %.*s\n",
                      plan_data_name(&arena, &plan->data), STR_ARG(plan->data.split),
                      (long long)plan->data.n_samples, STR_ARG(plan->data.folder));
    }
    print_todos(&t);
    print_cases(&t);
    print_time(&t);
    strbuf_printf(out, "disk     %.1f MB of logs and archive for %lld repeat%s of each\n",
                  (double)plan_disk_bytes(plan) / 1e6, (long long)plan->repeats,
                  plural_s((size_t)plan->repeats));
    if (with_details) {
        print_details(out, plan);
    } else if (plan->n_pins) {
        strbuf_printf(out, "%zu pin%s not stated by the authors; -v shows them, and each command\n",
                      plan->n_pins, plan->n_pins == 1 ? " is" : "s are");
    }
}
