/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/run_args.h"

#include <errno.h>
#include <unistd.h>

#include "evidence/environment.h"
#include "load/load.h"
#include "load/load_inventory.h"

#define REPORT_TEXT_MAX (64u << 10)
#define SLUG_MAX        40

/* A program's name in a case's id: small letters and digits, joined by dots and dashes. */
static const char *slug_of(struct arena *arena, const char *program)
{
    char *slug = arena_array(arena, char, SLUG_MAX + 1);
    size_t n = 0;
    for (const char *at = basename(program); *at && n < SLUG_MAX; at++) {
        char c = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            slug[n++] = c;
        } else if (n && slug[n - 1] != '-' && slug[n - 1] != '.') {
            slug[n++] = c == '.' ? '.' : '-';
        }
    }
    while (n && (slug[n - 1] == '-' || slug[n - 1] == '.')) {
        n--;
    }
    slug[n] = '\0';
    return n ? slug : "command";
}

/* `python3 -u train.py` is named after its script, which says more than the interpreter. */
static const char *named_by(struct arena *arena, const struct opt_list *words)
{
    static const char *const SCRIPTS[] = {".py", ".sh", ".jl", ".R", ".pl", ".lua", ".js"};
    for (size_t idx = 1; idx < words->n; idx++) {
        for (size_t at = 0; at < ARRAY_LEN(SCRIPTS); at++) {
            struct str word = str_of(words->items[idx]), ending = str_of(SCRIPTS[at]);
            if (str_ends(word, ending) && !strpbrk(words->items[idx], " \t\n")) {
                return str_z(arena, str_sub(word, 0, word.len - ending.len));
            }
        }
    }
    return words->items[0];
}

static const char *quoted(struct arena *arena, const char *folder, const struct opt_list *words)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(REPORT_TEXT_MAX);
    if (folder) {
        strbuf_add_z(&text, "cd ");
        shq_append(&text, str_of(folder));
        strbuf_add_z(&text, " && exec");
    }
    for (size_t idx = 0; idx < words->n; idx++) {
        strbuf_add_z(&text, folder || idx ? " " : "");
        shq_append(&text, str_of(words->items[idx]));
    }
    return str_z(arena, strbuf_str(&text));
}

struct command_case {
    const char *slug, *id, *image, *format;
    const char *typed, *works;
    int64_t gpus; /* of a node */
};

static void write_report(struct strbuf *text, const struct command_case *c, struct arena *arena)
{
    struct command command = {.purpose = STR_LIT("run"),
                              .per = STR_LIT("node"),
                              .printed = str_of(c->typed),
                              .works = str_of(c->works)};
    struct condition on_cpu = {STR_LIT("device"), STR_LIT("cpu")};
    struct recipe full = {.title = STR_LIT("the command, as it was typed"),
                          .image = str_of(c->image),
                          .conditions = {&on_cpu, c->gpus ? 0 : 1}};
    struct stack stack = {.id = STR_LIT(COMMAND_STACK),
                          .framework = STR_LIT(COMMAND_STACK),
                          .label = STR_LIT(COMMAND_STACK),
                          .image = str_of(c->image),
                          .commands = &command,
                          .n_commands = 1,
                          .full = {&full, 1}};
    struct report_case only = {.id = str_of(c->id),
                               .stack_id = STR_LIT(COMMAND_STACK),
                               .group = STR_LIT(COMMAND_STACK),
                               .format = str_of(c->format)};
    const struct report report = {.id = str_of(c->slug),
                                  .title = str_printf(arena, "%s: a command of one's own", c->slug),
                                  .is_unpublished = true,
                                  .stacks = &stack,
                                  .n_stacks = 1,
                                  .cases = &only,
                                  .n_cases = 1};
    json_encode_document(text, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, &report);
}

/* Once on each node that was named, with the GPUs that all of them have. */
static int make_id(struct arena *arena, const struct run_args *args, const char *root,
                   struct command_case *c, bool *ret_is_contained, struct err *err)
{
    struct inventory inventory;
    if (inventory_load(arena, root, args->opts.nodes ? args->opts.nodes : INVENTORY_LOCAL,
                       &inventory, err) < 0) {
        return -1;
    }
    c->gpus = inventory.is_local ? environment_gpus() : inventory.nodes[0].gpus;
    for (size_t idx = 0; !inventory.is_local && idx < inventory.n_nodes; idx++) {
        c->gpus = inventory.nodes[idx].gpus < c->gpus ? inventory.nodes[idx].gpus : c->gpus;
    }
    *ret_is_contained = inventory.runtime != RUNTIME_NONE;
    c->id = arena_printf(arena, "%s/command/unstated/n%zug%lld/bs0", c->slug,
                         args->opts.plan.asked.is_each_node ? (size_t)1 : inventory.n_nodes,
                         (long long)c->gpus);
    return 0;
}

/* --format FILE or NAME: the id by which the report names it. */
static int find_format(struct arena *arena, const struct run_args *args, const char *root,
                       struct command_case *c, struct run_command *command, struct err *err)
{
    CLEANUP(format_set) struct format_set formats = {0};
    if (!args->format) {
        return 0;
    }
    if (load_format_named(arena, root, args->format, &formats, err) < 0) {
        return -1;
    }
    command->format_path = load_is_format_file(args->format) ? args->format : NULL;
    c->format = str_z(arena, formats.items[0]->id);
    return 0;
}

int run_command_report(struct arena *arena, const struct run_args *args, const char *root,
                       const struct opt_list *words, struct run_command *ret, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(REPORT_TEXT_MAX);
    CLEANUP(free) char *folder = getcwd(NULL, 0);
    struct command_case c = {.slug = slug_of(arena, named_by(arena, words))};
    struct run_command command = {0};
    bool is_contained;
    if (!folder) {
        return err_set(err, err_code_of_errno(errno), "this folder: %s", err_errno_text(errno));
    }
    if (args->opts.plan.asked.is_rehearsal || args->opts.plan.asked.takes_turns ||
        args->opts.data || args->opts.plan.globs.n) {
        return err_set(err, ERR_USAGE,
                       "--rehearse, --columns, --data and --case are for a report, not for a "
                       "command");
    }
    if (make_id(arena, args, root, &c, &is_contained, err) < 0 ||
        find_format(arena, args, root, &c, &command, err) < 0) {
        return -1;
    }
    if (args->opts.images.n) {
        const char *equals = strchr(args->opts.images.items[0], '=');
        /* What is wrong with a word without it is said where the options become a plan's (run/run_prepare.c). */
        c.image = equals ? arena_strndup(arena, args->opts.images.items[0],
                                         (size_t)(equals - args->opts.images.items[0]))
                         : NULL;
    }
    c.typed = quoted(arena, NULL, words);
    c.works = quoted(arena, is_contained ? NULL : folder, words);
    command.code = (struct code_opts){.folder = arena_strndup(arena, folder, strlen(folder)),
                                      .words = words->items,
                                      .n_words = is_contained ? 0 : words->n};
    write_report(&text, &c, arena);
    if (text.is_full) {
        return err_set(err, ERR_USAGE, "run: the command has more than %u bytes", REPORT_TEXT_MAX);
    }
    command.report_text = str_dup(arena, strbuf_str(&text));
    *ret = command;
    return 0;
}
