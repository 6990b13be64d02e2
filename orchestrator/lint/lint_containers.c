/* SPDX-License-Identifier: Apache-2.0 */
/* Printed container commands: which image, which names, and what they hide of the image. */
#include "base/base.h"

#include "lint/lint_parts.h"
#include "report/container.h"

/* ---- images ---- */

/* With a digest, an image is the same whatever its tag; else without docker.io/ and :latest. */
static bool same_image(struct lint *lint, struct str a, struct str b)
{
    static const char DIGEST[] = ".@sha256:";
    bool by_digest = lint_has(lint, DIGEST, a) || lint_has(lint, DIGEST, b);
    const char *name = by_digest ? "^(?:docker\\.io/)?(?:library/)?([^@]+?)(?::[^/:@]*)?(?:@.*)?\\z"
                                 : "^(?:docker\\.io/)?(?:library/)?([^@]+?)(?::latest)?(?:@.*)?\\z";
    struct str x[2], y[2];
    return patterns_find(&lint->patterns, name, a, x, 2) &&
           patterns_find(&lint->patterns, name, b, y, 2) && str_eq(x[1], y[1]);
}

static bool makes(struct lint *lint, const struct shell_run *run, struct str image)
{
    size_t verb = shell_engine_verb(run);
    bool is_made =
        verb < run->n && is_word_of(run->words[verb].text, "pull build tag load import commit");
    if (is_made && shell_engine_does(run, "load")) {
        return true;
    }
    for (size_t at = 2; is_made && at < run->n; at++) {
        struct str word = run->words[at].text;
        int64_t equals = str_find(word, STR_LIT("="));
        if (same_image(lint, word, image) ||
            (equals > 0 && same_image(lint, str_sub(word, (size_t)equals + 1, SIZE_MAX), image))) {
            return true;
        }
    }
    return false;
}

/* Whether a printed command of the stack pulls, builds with -t or tags this image. */
static bool is_made(struct lint *lint, const struct stack *s, struct str image)
{
    struct lint_command c = lint_walk(lint, s);
    while (lint_next_run(&c)) {
        if (makes(lint, c.run, image)) {
            return true;
        }
    }
    return false;
}

static struct str image_of(const struct shell_run *run)
{
    size_t at = container_image_at(run->words, run->n);
    return at < run->n ? run->words[at].text : STR_EMPTY;
}

static void lint_image(const struct lint_command *c, const struct shell_run *run)
{
    struct str image = image_of(run);
    if (!image.ptr || is_unknown(image) ||
        (c->stack->image_tag.ptr && same_image(c->lint, image, c->stack->image_tag)) ||
        is_made(c->lint, c->stack, image)) {
        return;
    }
    lint_add(c->lint, "image-name-mismatch", c->at,
             "image \"%.*s\" is run, but no printed command pulls, builds or tags it",
             STR_ARG(image));
}

/* ---- LD_LIBRARY_PATH ---- */

/* Whether NAME=VALUE as written keeps the old path: by $LD_LIBRARY_PATH, or by a variable that holds it. */
static bool keeps_path(const struct shell_word *word, struct str value)
{
    struct shell_cursor cursor = {0};
    struct str name;
    bool has_default;
    bool has_use = false;
    while (shell_next_use(word->raw, &cursor, &name, &has_default)) {
        if (str_eq_z(name, "LD_LIBRARY_PATH")) {
            return true;
        }
        has_use = true;
    }
    return has_use && str_find(value, STR_LIT("LD_LIBRARY_PATH")) >= 0;
}

static void lint_path_word(const struct lint_command *c, const char *option,
                           const struct shell_word *word)
{
    struct str name;
    struct str value;
    int64_t at = str_find(word->text, STR_LIT("LD_LIBRARY_PATH="));
    if (at < 0 || !shell_assignment(str_sub(word->text, (size_t)at, SIZE_MAX), &name, &value) ||
        keeps_path(word, value)) {
        return;
    }
    lint_add(c->lint, "library-path-overwritten", c->at, "%sLD_LIBRARY_PATH=%.*s", option,
             STR_ARG(value));
}

static void lint_library_path(const struct lint_command *c, const struct shell_run *run)
{
    for (size_t at = 1; at < run->n_own; at++) {
        struct str before = run->words[at - 1].text;
        struct str word = run->words[at].text;
        bool is_env = str_eq_z(before, "-e") || str_eq_z(before, "--env") ||
                      str_eq_z(before, "-x") || str_starts(word, STR_LIT("--env=")) ||
                      str_starts(word, STR_LIT("-eLD_"));
        if (is_env) {
            lint_path_word(c, str_eq_z(before, "-x") ? "-x " : "-e ", &run->words[at]);
        }
    }
    for (size_t idx = 0; idx < run->n_sets; idx++) {
        if (str_starts(run->sets[idx].text, STR_LIT("LD_LIBRARY_PATH="))) {
            lint_path_word(c, "", &run->sets[idx]);
        }
    }
    if (shell_is(run, "unset") && shell_run_flag(run, "LD_LIBRARY_PATH")) {
        lint_add(c->lint, "library-path-overwritten", c->at, "unset LD_LIBRARY_PATH");
    }
}

/* ---- names of other models ---- */

/* Words of well-known model families; a name that holds one is about that model. */
static const char FAMILIES[] =
    "transformer bert resnet mobilenet yolo hrnet deeplab gpt wavenet tacotron ernie vgg gnmt dlrm "
    "efficientnet densenet mask_rcnn maskrcnn inception";

static void lint_name(const struct lint_command *c, const char *what, struct str name)
{
    struct str rest = str_of(name.ptr ? FAMILIES : "");
    for (struct str word; str_next(&rest, ' ', &word);) {
        const char *family = str_z(c->lint->arena, word);
        const struct report_case *own = NULL;
        while ((own = stack_next_case(c->lint, c->stack, own)) && !holds_text(own->model, family)) {
        }
        if (!own && holds_text(name, family)) {
            lint_add(c->lint, "copied-from-other-model", c->at,
                     "%s \"%.*s\" is of another model than %.*s", what, STR_ARG(name),
                     STR_ARG(c->lint->report->cases[0].model));
        }
    }
}

/* HOST:INSIDE[:ro]: the folder inside. */
static struct str inside_of(struct str mount)
{
    struct str host;
    struct str inside = STR_EMPTY;
    (void)str_next(&mount, ':', &host);
    (void)str_next(&mount, ':', &inside);
    return inside;
}

static void lint_names(const struct lint_command *c, const struct shell_run *run)
{
    static const struct {
        const char *option, *what;
    } NAMES[] = {{"--name", "container name"}, {"--hostname", "host name"},
                 {"-h", "host name"},          {"-w", "folder"},
                 {"--workdir", "folder"},      {"-v", "folder"},
                 {"--volume", "folder"}};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        struct shell_word value;
        for (size_t at = 1; shell_run_option(run, NAMES[idx].option, &at, &value);) {
            bool is_mount = NAMES[idx].option[1] == 'v' || NAMES[idx].option[2] == 'v';
            lint_name(c, NAMES[idx].what, is_mount ? inside_of(value.text) : value.text);
        }
    }
}

void lint_containers(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    struct shell_word value;
    if (shell_engine_does(run, "run") || shell_engine_does(run, "create")) {
        lint_image(c, run);
        lint_names(c, run);
    }
    for (size_t at = 1;
         shell_engine_does(run, "build") && (shell_run_option(run, "-t", &at, &value) ||
                                             shell_run_option(run, "--tag", &at, &value));) {
        lint_name(c, "image name", value.text);
    }
    if (run->n > 1 && (shell_is(run, "cd") || shell_is(run, "pushd"))) {
        lint_name(c, "folder", run->words[run->n - 1].text);
    }
    lint_library_path(c, run);
}

bool lint_container_of(struct lint *lint, const struct stack *s, struct lint_container *ret)
{
    struct lint_command c = lint_walk(lint, s);
    while (lint_next_run(&c)) {
        const struct shell_run *run = c.run;
        struct lint_container of = {.at = c.at};
        struct shell_word value = {.text = STR_EMPTY};
        size_t from = 1;
        if (!shell_engine_does(run, "run") || !image_of(run).ptr) {
            continue;
        }
        of.shm = shell_run_option(run, "--shm-size", &from, &value) ? value.text : STR_EMPTY;
        from = 1;
        of.is_host_ipc =
            shell_run_option(run, "--ipc", &from, &value) && !str_eq_z(value.text, "private");
        for (size_t word = 1; word < run->n; word++) {
            of.is_host_ipc =
                of.is_host_ipc || str_find(run->words[word].text, STR_LIT("/dev/shm")) >= 0;
        }
        *ret = of;
        return true;
    }
    return false;
}
