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

/* Whether a printed command of the stack pulls, builds with -t or tags this image, or loads some. */
static bool is_made(struct lint *lint, const struct stack *s, struct str image)
{
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        size_t verb = shell_engine_verb(c.run);
        bool makes = verb < c.run->n &&
                     is_word_of(c.run->words[verb].text, "pull build tag load import commit");
        for (size_t at = verb; makes && at < c.run->n; at++) {
            struct str word = c.run->words[at].text;
            word = str_starts(word, STR_LIT("--tag=")) ? str_sub(word, 6, SIZE_MAX) : word;
            if (str_eq_z(word, "load") || same_image(lint, word, image)) {
                return true;
            }
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

/* ---- LD_LIBRARY_PATH: a value that does not keep the old one ---- */

#define PATH_VALUE "LD_LIBRARY_PATH=(?![^ ]*LD_LIBRARY_PATH)([^ ]*) "
static const struct lint_row PATHS[] = {
    {"library-path-overwritten", NULL, " (?:-e|--env)[ =]?" PATH_VALUE, "-e LD_LIBRARY_PATH=$1"},
    {"library-path-overwritten", NULL, " -x " PATH_VALUE, "-x LD_LIBRARY_PATH=$1"},
    {"library-path-overwritten", NULL, "^(?:[^ =]+=[^ ]* )*" PATH_VALUE, "LD_LIBRARY_PATH=$1"},
    {"library-path-overwritten", "unset", " LD_LIBRARY_PATH ", "unset LD_LIBRARY_PATH"},
};

/* ---- names of other models ---- */

/* A word of a well-known model family in it: it is about that model. */
static void lint_name(const struct lint_command *c, const char *what, struct str name)
{
    static const char FAMILIES[] =
        "(?i)(transformer|bert|resnet|mobilenet|yolo|hrnet|deeplab|gpt|wavenet|tacotron|ernie|vgg|"
        "gnmt|dlrm|efficientnet|densenet|mask_?rcnn|inception)";
    struct str family = lint_part(c->lint, FAMILIES, name);
    for (const struct report_case *own = NULL; (own = stack_next_case(c->lint, c->stack, own));) {
        struct str of = lint_part(c->lint, FAMILIES, own->model);
        if (of.len && of.len == family.len && strncasecmp(of.ptr, family.ptr, of.len) == 0) {
            return;
        }
    }
    if (family.ptr) {
        lint_add(c->lint, "copied-from-other-model", c->at,
                 "%s \"%.*s\" is of another model than %.*s", what, STR_ARG(name),
                 STR_ARG(c->lint->report->cases[0].model));
    }
}

static void lint_names(const struct lint_command *c)
{
    static const struct {
        const char *pattern, *what;
    } NAMES[] = {{" --name[ =]" WORD " ", "container name"},
                 {" (?:--hostname|-h)[ =]" WORD " ", "host name"},
                 {" (?:--workdir|-w)[ =]" WORD " ", "folder"},
                 {" (?:--volume|-v)[ =][^ :]*:([^ :]+)", "folder"}};
    for (size_t idx = 0; idx < ARRAY_LEN(NAMES); idx++) {
        struct str value, rest = c->line;
        while ((value = lint_part(c->lint, NAMES[idx].pattern, rest)).ptr) {
            lint_name(c, NAMES[idx].what, value);
            rest = str_sub(rest, (size_t)(value.ptr - rest.ptr) + value.len, SIZE_MAX);
        }
    }
}

void lint_containers(const struct lint_command *c)
{
    const struct shell_run *run = c->run;
    if (shell_engine_does(run, "run") || shell_engine_does(run, "create")) {
        lint_image(c, run);
        lint_names(c);
    }
    if (shell_engine_does(run, "build")) {
        lint_name(c, "image name", lint_part(c->lint, " (?:-t|--tag)[ =]" WORD " ", c->line));
    }
    if (run->n > 1 && shell_is(run, "cd pushd")) {
        lint_name(c, "folder", run->words[run->n - 1].text);
    }
    lint_by_rows(c, PATHS, ARRAY_LEN(PATHS));
}

bool lint_container_of(struct lint *lint, const struct stack *s, struct lint_container *ret)
{
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        if (shell_engine_does(c.run, "run") && image_of(c.run).ptr) {
            *ret = (struct lint_container){
                .at = c.at,
                .shm = lint_part(lint, " --shm-size[ =]" WORD " ", c.line),
                .is_host_ipc = lint_has(lint, " --ipc[ =](?!private )|/dev/shm", c.line)};
            return true;
        }
    }
    return false;
}
