/* SPDX-License-Identifier: Apache-2.0 */
/* Clones and checkouts in a stack's printed commands: what moves, what is never pinned, what is typed in the wrong folder. */
#include "base/base.h"

#include "lint/lint_parts.h"

enum git_kind { GIT_CLONE, GIT_PIN, GIT_MOVE };

struct git_step {
    enum git_kind kind;
    struct str folder;   /* a clone's own; else where it is typed; NULL: unknown */
    struct str clone_at; /* of a clone: where it is typed */
    struct str text;     /* of GIT_MOVE: the message; of GIT_CLONE: the URL */
    bool is_commit, has_ref,
        stays; /* stays: in the folder of an earlier clone, not in the one that it made */
    struct lint_command c;
};

struct git_walk {
    struct lint_command c; /* where it has come to */
    struct {
        struct git_step *items;
        size_t n, n_max;
    } steps;
    struct str folder; /* where commands are typed; NULL: unknown */
};

/* ---- folders ---- */

/* NULL if either is unknown. */
static struct str folder_join(struct arena *arena, struct str base, struct str more)
{
    bool is_known = base.ptr && more.ptr && !is_unknown(more) && !str_eq_z(more, "-") &&
                    !str_starts(more, STR_LIT("~"));
    return is_known ? path_resolve(arena, base, more) : STR_EMPTY;
}

static bool is_inside(struct str folder, struct str outer)
{
    return folder.ptr && outer.ptr && str_starts(folder, outer) &&
           (folder.len == outer.len || folder.ptr[outer.len] == '/');
}

static void follow_cd(struct git_walk *w, const struct shell_run *run)
{
    size_t at = 1;
    while (at < run->n && run->words[at].text.len > 1 && run->words[at].text.ptr[0] == '-') {
        at++;
    }
    w->folder =
        at < run->n ? folder_join(w->c.lint->arena, w->folder, run->words[at].text) : STR_EMPTY;
}

/* ---- verbs ---- */

static bool takes_value(struct str option)
{
    static const char OPTIONS[] =
        "-b --branch --depth -o --origin -c -u --reference --config -j -m -s --upload-pack -B";
    return is_word_of(option, OPTIONS);
}

/* The `nth` operand from words[at] on; NULL if there are fewer. */
static struct str operand(const struct shell_run *run, size_t at, size_t nth)
{
    for (; at < run->n; at++) {
        struct str word = run->words[at].text;
        if (word.len > 1 && word.ptr[0] == '-') {
            at += takes_value(word);
        } else if (nth-- == 0) {
            return word;
        }
    }
    return STR_EMPTY;
}

static struct git_step *add_step(struct git_walk *w, enum git_kind kind, struct str folder)
{
    struct git_step step = {.kind = kind, .folder = folder, .c = w->c};
    for (size_t idx = 0; kind != GIT_CLONE && idx < w->steps.n; idx++) {
        const struct git_step *clone = &w->steps.items[idx];
        step.stays =
            step.stays || (clone->kind == GIT_CLONE && clone->c.command == w->c.command &&
                           folder.ptr && clone->clone_at.ptr && str_eq(folder, clone->clone_at));
    }
    for (size_t idx = 0; idx < w->steps.n; idx++) {
        const struct git_step *clone = &w->steps.items[idx];
        if (clone->kind == GIT_CLONE && is_inside(folder, clone->folder) && folder.len) {
            step.stays = false;
        }
    }
    VEC_PUSH(&w->steps, step);
    return &w->steps.items[w->steps.n - 1];
}

static struct str without_git(struct str name)
{
    return str_ends(name, STR_LIT(".git")) ? str_sub(name, 0, name.len - 4) : name;
}

static void read_clone(struct git_walk *w, const struct shell_run *run, size_t at,
                       struct str folder)
{
    struct shell_word branch = {.text = STR_EMPTY};
    struct str url = str_rtrim(operand(run, at, 0), 1, "/");
    struct str name = operand(run, at, 1);
    size_t from = at;
    if (!url.ptr) {
        return;
    }
    name = name.ptr ? name : without_git(path_base(url));
    if (!shell_run_option(run, "--branch", &from, &branch)) {
        from = at;
        (void)(shell_run_option(run, "-b", &from, &branch));
    }
    struct git_step *step = add_step(w, GIT_CLONE, folder_join(w->c.lint->arena, folder, name));
    step->clone_at = folder;
    step->text = url;
    step->has_ref = branch.text.ptr != NULL;
    step->stays = false;
    if (!url_can_be_cloned(w->c.lint, url)) {
        step->has_ref = true;
        lint_add(w->c.lint, "url-not-cloneable", w->c.at, "git cannot clone %.*s", STR_ARG(url));
    }
    if (branch.text.ptr && !is_commit(branch.text) && !is_unknown(branch.text)) {
        folder = step->folder;
        step = add_step(w, GIT_MOVE, folder);
        step->stays = false;
        step->text =
            str_printf(w->c.lint->arena, "git clone uses branch or tag %.*s", STR_ARG(branch.text));
    }
}

static bool is_file_name(struct str ref)
{
    return ends_with_any(ref, ".py .sh .txt .yml .yaml .cfg .md .json") || str_eq_z(ref, ".");
}

/* checkout, switch and reset: a commit pins, another name moves. */
static void read_checkout(struct git_walk *w, const struct shell_run *run, size_t at,
                          struct str folder, struct str verb)
{
    struct str ref = operand(run, at, 0);
    bool is_new = shell_run_flag(run, "-b") || shell_run_flag(run, "-B") ||
                  (str_eq_z(verb, "switch") && shell_run_flag(run, "-c"));
    struct git_step *step;
    if (!ref.ptr || str_starts(ref, STR_LIT("HEAD")) || str_starts(ref, STR_LIT("FETCH_HEAD")) ||
        is_file_name(ref) || shell_run_flag(run, "--")) {
        return;
    }
    if (is_commit(ref) || is_unknown(ref) || is_new || is_release(w->c.lint, ref)) {
        step = add_step(w, GIT_PIN, folder);
        step->is_commit = is_commit(ref);
        return;
    }
    step = add_step(w, GIT_MOVE, folder);
    step->text = str_printf(w->c.lint->arena, "git %.*s uses branch or tag %.*s", STR_ARG(verb),
                            STR_ARG(ref));
}

static void read_moving(struct git_walk *w, struct str folder, struct str verb)
{
    struct git_step *step = add_step(w, GIT_MOVE, folder);
    step->text =
        str_eq_z(verb, "pull")
            ? STR_LIT("git pull fetches whatever the branch holds that day")
            : str_printf(w->c.lint->arena, "git %.*s fetches whatever the branch holds that day",
                         STR_ARG(verb));
}

static void read_git(struct git_walk *w, const struct shell_run *run)
{
    struct str folder = w->folder;
    size_t at = 1;
    while (at < run->n && run->words[at].text.len && run->words[at].text.ptr[0] == '-') {
        bool is_folder = str_eq_z(run->words[at].text, "-C");
        if (is_folder && at + 1 < run->n) {
            folder = folder_join(w->c.lint->arena, folder, run->words[at + 1].text);
        }
        at += is_folder || str_eq_z(run->words[at].text, "-c") ? 2 : 1;
    }
    struct str verb = at < run->n ? run->words[at++].text : STR_EMPTY;
    struct str ref = operand(run, at, 0);
    if (str_eq_z(verb, "clone")) {
        read_clone(w, run, at, folder);
    } else if (str_eq_z(verb, "checkout") || str_eq_z(verb, "switch") || str_eq_z(verb, "reset")) {
        read_checkout(w, run, at, folder, verb);
    } else if (str_eq_z(verb, "pull") ||
               (str_eq_z(verb, "submodule") && shell_run_flag(run, "--remote")) ||
               ((str_eq_z(verb, "merge") || str_eq_z(verb, "rebase")) && ref.ptr &&
                !is_commit(ref))) {
        read_moving(w, folder, verb);
    }
}

/* `git clone X && checkout Y`: there is no such command as checkout. */
static void read_bare_checkout(struct git_walk *w, const struct shell_run *run)
{
    struct git_step *step = add_step(w, GIT_MOVE, STR_EMPTY);
    step->text =
        str_printf(w->c.lint->arena,
                   "checkout %.*s is not a command, so the clone stays on its default branch",
                   STR_ARG(run->n > 1 ? run->words[1].text : STR_EMPTY));
    for (size_t idx = 0; idx + 1 < w->steps.n; idx++) {
        w->steps.items[idx].has_ref = true;
    }
}

/* ---- judgement ---- */

/* Whether a commit is checked out later in the same folder, or in an unknown one. */
static bool is_pinned_later(const struct git_walk *w, size_t from)
{
    const struct git_step *step = &w->steps.items[from];
    for (size_t idx = from + 1; idx < w->steps.n; idx++) {
        const struct git_step *pin = &w->steps.items[idx];
        bool may_be_there = !pin->folder.ptr || !step->folder.ptr ||
                            is_inside(pin->folder, step->folder) ||
                            (pin->c.command != step->c.command && pin->folder.len == 0);
        if (pin->kind == GIT_PIN && !pin->stays && may_be_there) {
            return true;
        }
    }
    return false;
}

static bool has_later_ref(const struct git_walk *w, size_t from)
{
    const struct git_step *clone = &w->steps.items[from];
    for (size_t idx = from + 1; idx < w->steps.n; idx++) {
        const struct git_step *step = &w->steps.items[idx];
        if (step->kind != GIT_CLONE &&
            (!step->folder.ptr || !clone->folder.ptr || is_inside(step->folder, clone->folder))) {
            return true;
        }
    }
    return false;
}

static void judge_step(const struct git_walk *w, size_t idx)
{
    const struct git_step *step = &w->steps.items[idx];
    bool is_pinned = is_pinned_later(w, idx);
    if (step->stays) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at,
                 "a checkout is typed where git clone was, not in the folder that it made: the "
                 "clone stays on its default branch");
    } else if (step->kind == GIT_MOVE && !is_pinned) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at, "%.*s", STR_ARG(step->text));
    } else if (step->kind == GIT_CLONE && !step->has_ref && !is_pinned && !has_later_ref(w, idx)) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at,
                 "git clone of %.*s is followed by no checkout of a commit", STR_ARG(step->text));
    }
}

void lint_git(struct lint *lint, const struct stack *s)
{
    struct git_walk w = {.c = {.lint = lint}};
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        w.folder = c.command == w.c.command ? w.folder : STR_LIT("");
        w.c = c;
        if (shell_is(c.run, "cd") || shell_is(c.run, "pushd")) {
            follow_cd(&w, c.run);
        } else if (shell_is(c.run, "popd")) {
            w.folder = STR_EMPTY;
        } else if (shell_is(c.run, "git")) {
            read_git(&w, c.run);
        } else if (shell_is(c.run, "checkout")) {
            read_bare_checkout(&w, c.run);
        }
    }
    for (size_t idx = 0; idx < w.steps.n; idx++) {
        judge_step(&w, idx);
    }
    VEC_RELEASE(&w.steps);
}
