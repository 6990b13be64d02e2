/* SPDX-License-Identifier: Apache-2.0 */
/* Clones and checkouts in a stack's printed commands: what moves, what is never pinned, what is typed in the wrong folder. */
#include "base/base.h"

#include "lint/lint_parts.h"

enum git_kind { GIT_CLONE, GIT_PIN, GIT_MOVE };

struct git_step {
    struct str clone; /* the folder's name of the clone that it is about; NULL: unknown */
    struct str text;  /* of GIT_MOVE: the message; of GIT_CLONE: the URL */
    enum git_kind kind;
    bool has_ref;
    bool stays; /* in the folder in which an earlier clone was typed, not in the one that it made */
    struct lint_command c;
};

struct git_walk {
    struct lint_command c; /* where it has come to */
    VEC(struct git_step) steps;
    struct str clone;          /* into which the last cd led; NULL: none that is known */
    bool has_left, has_cloned; /* this command's first folder; in it */
};

/* Options and the verb; options with a value, then those without. */
#define GIT "(?:^| )git (?:-[cC] [^ ]+ |-[^ ]+ )*"
#define OPTIONS                                                                                    \
    "(?:(?:-[bBocujms]|--branch|--depth|--origin|--reference|--config|--upload-pack) [^ ]+ |-[^ "  \
    "]* )*+"

/* The clone that the path lies in, by its name. */
static struct str clone_of(const struct git_walk *w, struct str path)
{
    for (struct str part; str_next(&path, '/', &part);) {
        for (size_t idx = 0; idx < w->steps.n; idx++) {
            const struct git_step *step = &w->steps.items[idx];
            if (step->kind == GIT_CLONE && str_eq(step->clone, part)) {
                return part;
            }
        }
    }
    return STR_EMPTY;
}

static struct git_step *add_step(struct git_walk *w, enum git_kind kind, struct str clone,
                                 struct str text)
{
    VEC_PUSH(&w->steps, (struct git_step){.kind = kind, .clone = clone, .text = text, .c = w->c});
    return &w->steps.items[w->steps.n - 1];
}

static void read_clone(struct git_walk *w, struct str url, struct str name)
{
    struct lint *lint = w->c.lint;
    struct str branch = lint_part(lint, " (?:-b ?|--branch[ =])" WORD " ", w->c.line);
    bool can_be = url_can_be_cloned(lint, url);
    if (!name.ptr) {
        name = path_base(str_rtrim(url, 1, "/"));
        name.len -= ends_with_any(name, ".git");
    }
    add_step(w, GIT_CLONE, name, url)->has_ref = branch.ptr || !can_be;
    w->has_cloned = true;
    if (!can_be) {
        lint_add(lint, "url-not-cloneable", w->c.at, "git cannot clone %.*s", STR_ARG(url));
    }
    if (branch.ptr && !lint_has(lint, "^" COMMIT "\\z|[$`]", branch)) {
        add_step(w, GIT_MOVE, name,
                 str_printf(lint->arena, "git clone uses branch or tag %.*s", STR_ARG(branch)));
    }
}

/* checkout, switch and reset to a commit or release pin, and to another name move; others move. */
static void read_git(struct git_walk *w)
{
    static const char CLONE[] = GIT "clone " OPTIONS WORD " (?:" OPTIONS "([^ <>-][^ ]*) )?";
    static const char CHECKOUT[] =
        GIT "(checkout|switch|reset) (?!.* -- )" OPTIONS
            "(?!(?:FETCH_)?HEAD|[^ ]*\\.(?:py|sh|txt|ya?ml|cfg|md|json) |\\. )([^ <>-][^ ]*) ";
    static const char MOVING[] =
        GIT "(pull|submodule(?= .*--remote)|(?:merge|rebase)(?= " OPTIONS "(?!" COMMIT " )[^ -])) ";
    struct lint *lint = w->c.lint;
    struct str g[3];
    struct str of = lint_part(lint, "(?:^| )git .*?-C " WORD " ", w->c.line);
    struct str clone = of.ptr ? clone_of(w, of) : w->clone;
    bool stays = w->has_cloned && !w->has_left && !of.ptr;
    if (patterns_find(&lint->patterns, CLONE, w->c.line, g, ARRAY_LEN(g))) {
        read_clone(w, g[1], g[2]);
    } else if (patterns_find(&lint->patterns, CHECKOUT, w->c.line, g, ARRAY_LEN(g))) {
        bool is_pin = lint_has(lint, "^(?:" COMMIT "\\z|[vV]?\\d+\\.[^/]*\\z)|[$`]", g[2]);
        add_step(w, is_pin ? GIT_PIN : GIT_MOVE, clone,
                 str_printf(lint->arena, "git %.*s uses branch or tag %.*s", STR_ARG(g[1]),
                            STR_ARG(g[2])))
            ->stays = stays;
    } else if (patterns_find(&lint->patterns, MOVING, w->c.line, g, 2)) {
        add_step(w, GIT_MOVE, clone,
                 str_printf(lint->arena, "git %.*s fetches whatever the branch holds that day",
                            STR_ARG(g[1])));
    }
}

/* `git clone X && checkout Y`: there is no such command as checkout. */
static void read_bare_checkout(struct git_walk *w)
{
    struct str ref = w->c.run->n > 1 ? w->c.run->words[1].text : STR_EMPTY;
    for (size_t idx = 0; idx < w->steps.n; idx++) {
        w->steps.items[idx].has_ref = true;
    }
    add_step(w, GIT_MOVE, STR_EMPTY,
             str_printf(w->c.lint->arena,
                        "checkout %.*s is not a command, so the clone stays on its default branch",
                        STR_ARG(ref)));
}

/* Whether a later step of the kind is, or may be, about the same clone. */
static bool has_later(const struct git_walk *w, size_t from, enum git_kind kind)
{
    const struct git_step *step = &w->steps.items[from];
    for (size_t idx = from + 1; idx < w->steps.n; idx++) {
        const struct git_step *later = &w->steps.items[idx];
        if (later->kind == kind && !(kind == GIT_PIN && later->stays) &&
            (!later->clone.ptr || !step->clone.ptr || str_eq(later->clone, step->clone))) {
            return true;
        }
    }
    return false;
}

static void judge_step(const struct git_walk *w, size_t idx)
{
    const struct git_step *step = &w->steps.items[idx];
    bool is_pinned = has_later(w, idx, GIT_PIN);
    if (step->stays) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at,
                 "a checkout is typed where git clone was, not in the folder that it made: the "
                 "clone stays on its default branch");
    } else if (step->kind == GIT_MOVE && !is_pinned) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at, "%.*s", STR_ARG(step->text));
    } else if (step->kind == GIT_CLONE && !step->has_ref && !is_pinned &&
               !has_later(w, idx, GIT_MOVE)) {
        lint_add(w->c.lint, "git-pull-moving", step->c.at,
                 "git clone of %.*s is followed by no checkout of a commit", STR_ARG(step->text));
    }
}

void lint_git(struct lint *lint, const struct stack *s)
{
    struct git_walk w = {.c = {.lint = lint}};
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        if (c.command != w.c.command) {
            w.clone = STR_EMPTY;
            w.has_left = w.has_cloned = false;
        }
        w.c = c;
        if (shell_is(c.run, "cd pushd popd")) {
            w.clone = clone_of(&w, c.run->words[c.run->n - 1].text);
            w.has_left = true;
        } else if (shell_is(c.run, "git")) {
            read_git(&w);
        } else if (shell_is(c.run, "checkout")) {
            read_bare_checkout(&w);
        }
    }
    for (size_t idx = 0; idx < w.steps.n; idx++) {
        judge_step(&w, idx);
    }
    VEC_RELEASE(&w.steps);
}
