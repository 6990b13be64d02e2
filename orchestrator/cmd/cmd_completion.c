/* SPDX-License-Identifier: Apache-2.0 */
/* Shell completion: a shell's script asks `reperf completion complete -- WORD...` what the last word may be. What a command
   takes is read from the names in its synopsis ("REPORT...") and of its options' values ("DIR"). */
#include "base/base.h"
#include "base/embed.h"
#include "base/strbuf.h"
#include "cmd/cmd.h"
#include "evidence/rundir.h"

#define ASKED "complete"

/* A name in a synopsis, and what is offered for it: the ids of a kind of `reperf list`, or the shell's files or folders. */
static const struct offer {
    const char *name;
    const char *kinds[3];
} NAMES[] = {
    {"REPORT", {"reports"}},
    {"CASE", {"cases"}},
    {"GLOB", {"cases"}},
    {"CELL", {"cases"}},
    {"FORMAT", {"formats"}},
    {"RULE", {"rules"}},
    {"RUN", {"runs"}},
    {"CODE", {"findings"}},
    {"DIR", {"<dirs>"}},
    {"FOLDER", {"<dirs>"}},
    {"FILE", {"<files>"}},
    {"LOG", {"<files>"}},
    {"CSV", {"<files>"}},
    {"PATH", {"<files>"}},
    {"ARCHIVE", {"<files>"}},
    {"KEY", {"<files>"}},
    {"PUB", {"<files>"}},
    {"IMAGE", {"images"}},
    {"INVENTORY", {"inventories"}},
    {"NAME", {"datasets", "images", "reports"}},
};

/* An answer is a word a line, behind a tab what it means; <files> and <dirs> are the shell's own to offer. */
EMBED(completion_bash, "orchestrator/cmd/completion.bash");
EMBED(completion_fish, "orchestrator/cmd/completion.fish");

/* zsh runs bash's completion functions, with its own arrays made to look like bash's. */
static const char ZSH_HEAD[] = "#compdef reperf\nautoload -U +X compinit && compinit -u\n"
                               "autoload -U +X bashcompinit && bashcompinit\n";

/* ---- what a word may be ---- */

static int add_ids(const struct cmd_ctx *ctx, const char *kind, struct err *err)
{
    char ids[] = "--ids";
    char *argv[] = {(char *)(uintptr_t)kind, ids, NULL}; /* opt_parse does not write to them */
    return cmd_run(&CMD_LIST, ctx, 2, argv, err);
}

/* The names that runs were given, which every command takes in place of their ids. */
static int add_names(const struct cmd_ctx *ctx, struct strbuf *out, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names ids;
    if (rundir_list(&arena, ctx->state, &ids, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ids.n; idx++) {
        const char *name = rundir_name_of(&arena, ctx->state, str_of(ids.items[idx]));
        if (name) {
            strbuf_printf(out, "%s\n", name);
        }
    }
    return 0;
}

static bool is_name_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || is_digit(c) || c == '_' || c == '-';
}

/* "[reports|cases] [REPORT]" gives "reports", "cases" and the reports' ids. */
static int add_offers(const struct cmd_ctx *ctx, const char *synopsis, struct strbuf *out,
                      struct err *err)
{
    for (const char *at = synopsis; *at;) {
        size_t len = 0;
        while (is_name_char(at[len])) {
            len++;
        }
        if (len && at[0] >= 'a' && at[0] <= 'z') {
            strbuf_printf(out, "%.*s\n", (int)len, at);
        }
        for (size_t idx = 0; len && idx < ARRAY_LEN(NAMES); idx++) {
            const struct offer *offer = &NAMES[idx];
            if (!str_eq_z((struct str){at, len}, offer->name)) {
                continue;
            }
            for (size_t kind = 0; kind < ARRAY_LEN(offer->kinds) && offer->kinds[kind]; kind++) {
                if (offer->kinds[kind][0] == '<') {
                    strbuf_printf(out, "%s\n", offer->kinds[kind]);
                } else if (add_ids(ctx, offer->kinds[kind], err) < 0 ||
                           (strcmp(offer->name, "RUN") == 0 && add_names(ctx, out, err) < 0)) {
                    return -1;
                }
            }
        }
        at += len ? len : 1;
    }
    return 0;
}

/* Before its verb is typed, a command takes the options of all. */
static void add_options(struct strbuf *out, const struct cmd *c)
{
    const struct cmd *const *verbs = cmd_verbs(c);
    for (const struct opt *o = c->opts; o->name; o++) {
        strbuf_printf(out, "--%s\t%s\n", o->name, o->help);
    }
    for (; verbs && *verbs; verbs++) {
        add_options(out, *verbs);
    }
}

/* The option of this spelling whose value is to come, or NULL. */
static const struct opt *option_of(const struct cmd *c, const char *word)
{
    for (const struct opt *o = c->opts; word[0] == '-' && o->name; o++) {
        bool is_long = word[1] == '-' && strcmp(word + 2, o->name) == 0;
        bool is_short = o->letter && word[1] == o->letter && !word[2];
        if (o->kind != OPT_FLAG && (is_long || is_short)) {
            return o;
        }
    }
    return NULL;
}

static const struct cmd *command_of(const char *const *words, size_t n)
{
    const struct cmd_row *row = cmd_find(words[0]);
    const struct cmd *c = row ? row->cmd : NULL;
    for (const struct cmd *const *verb = c ? cmd_verbs(c) : NULL; verb && *verb && n > 2; verb++) {
        if (strcmp((*verb)->name, words[1]) == 0) {
            return *verb;
        }
    }
    return c;
}

/* words: what is typed behind the program's name; the last is being typed. bash parts "--name=VALUE" into three. */
static int answer(const struct cmd_ctx *ctx, const char *const *words, size_t n, struct strbuf *out,
                  struct err *err)
{
    const struct cmd *c = n ? command_of(words, n) : NULL;
    const char *last = n ? words[n - 1] : "";
    bool is_equals = n > 1 && strcmp(last, "=") == 0;
    size_t before = is_equals ? n - 2 : n > 3 && strcmp(words[n - 2], "=") == 0 ? n - 3 : n - 2;
    const struct opt *option = c && n > 2 ? option_of(c, words[before]) : NULL;
    if (n < 2 || (n == 2 && strcmp(words[0], "help") == 0)) {
        const struct cmd_row *row;
        for (size_t idx = 0; (row = cmd_at(idx)); idx++) {
            if (row->group) {
                strbuf_printf(out, "%s\t%s\n", row->cmd->name, row->cmd->summary);
            }
        }
        strbuf_add_z(out, "--help\tthis text\n--version\tsay the version\n");
        return 0;
    }
    if (!c) {
        return 0;
    }
    if (option) {
        return add_offers(ctx, option->value, out, err);
    }
    if (last[0] == '-') {
        add_options(out, c);
        strbuf_add_z(out, "--help\tthis text\n");
        return 0;
    }
    for (const struct cmd *const *verb = cmd_verbs(c); verb && *verb; verb++) {
        strbuf_printf(out, "%s\t%s\n", (*verb)->name, (*verb)->summary);
    }
    return cmd_verbs(c) ? 0 : add_offers(ctx, c->operands, out, err);
}

static const struct opt OPTS[] = {OPT_END};

static int run_completion(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    static const struct {
        const char *shell;
        const char *head, *script;
    } SHELLS[] = {{"bash", "", completion_bash_begin},
                  {"fish", "", completion_fish_begin},
                  {"zsh", ZSH_HEAD, completion_bash_begin}};
    const struct opt_list *words = &call->operands;
    if (words->n && call->n_before == 1 && strcmp(words->items[0], ASKED) == 0) {
        return answer(ctx, words->items + 1, words->n - 1, call->out, err);
    }
    if (words->n != 1) {
        return err_set(err, ERR_USAGE, "completion: expected one shell: bash, fish or zsh");
    }
    const typeof(SHELLS[0]) *of =
        Z_NAMED(SHELLS, ARRAY_LEN(SHELLS), shell, str_of(words->items[0]));
    if (!of) {
        return err_set(err, ERR_USAGE, "completion: expected bash, fish or zsh, found \"%.40s\"",
                       words->items[0]);
    }
    strbuf_printf(call->out, "%s%s", of->head, of->script);
    return 0;
}

const struct cmd CMD_COMPLETION = CMD("completion", "bash|fish|zsh", "a shell's completion script",
                                      OPTS, run_completion, .args_size = 0);
