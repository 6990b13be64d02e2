/* SPDX-License-Identifier: Apache-2.0 */
/* Printed launches against the cases that they are for: nodes, devices, images, batch, repeats, log names. */
#include "base/base.h"

#include <strings.h>

#include "judge/lint_parts.h"

#define LIST_BYTES    400
#define GPUS_NAME_MAX 4096

static bool to_count(struct str text, int64_t max, int64_t *ret)
{
    struct err err = {0};
    return text.ptr && str_to_i64(text, 0, max, ret, &err) == 0;
}

/* NAME=N in this command, a plain number. */
static bool assigned_number(const struct shell_words *words, struct str name, int64_t *ret)
{
    struct str key;
    struct str value;
    for (size_t idx = 0; idx < words->n; idx++) {
        if (shell_assignment(words->items[idx].text, &key, &value) && str_eq(key, name) &&
            to_count(value, INT32_MAX, ret)) {
            return true;
        }
    }
    return false;
}

static void lint_nodes(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct str text = STR_EMPTY;
    int64_t nnodes = 0;
    int64_t stated = 0;
    if (!shell_option(&c->words, "--nnodes", &text) || !to_count(text, INT32_MAX, &nnodes)) {
        return;
    }
    if (assigned_number(&c->words, STR_LIT("NUM_NODES"), &stated) && stated != nnodes) {
        lint_add(lint, "nodes-differ", c->stack, place,
                 "--nnodes is %" PRId64 " and NUM_NODES is %" PRId64, nnodes, stated);
    } else if (c->command->nodes > 0 && nnodes != c->command->nodes) {
        lint_add(lint, "nodes-differ", c->stack, place,
                 "--nnodes is %" PRId64 " for cases of %" PRId64 " nodes", nnodes,
                 c->command->nodes);
    }
}

/* "0,1,2" and not "1" or "7" or "0,2". */
static void lint_devices(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct str name;
    struct str value;
    struct str part;
    for (size_t idx = 0; idx < c->words.n; idx++) {
        int64_t wanted = 0;
        int64_t device = 0;
        struct str rest;
        if (!shell_assignment(c->words.items[idx].text, &name, &value) ||
            !str_eq_z(name, "CUDA_VISIBLE_DEVICES")) {
            continue;
        }
        rest = value;
        while (str_next(&rest, ',', &part) && to_count(part, GPUS_NAME_MAX, &device)) {
            if (device != wanted++) {
                lint_add(lint, "device-hard-coded", c->stack, place, "CUDA_VISIBLE_DEVICES=%.*s",
                         STR_ARG(value));
                break;
            }
        }
    }
}

static size_t count_family(const struct shell_words *words, struct str stem)
{
    struct str name;
    struct str value;
    size_t n = 0;
    for (size_t idx = 0; idx < words->n; idx++) {
        n += shell_assignment(words->items[idx].text, &name, &value) && name.len == stem.len + 1 &&
             str_starts(name, stem) && name.ptr[stem.len] >= '0' && name.ptr[stem.len] <= '9';
    }
    return n;
}

/* Typed on every node, and X=$NODE1 where NODE1, NODE2, ... are set. */
static void lint_node_variables(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct str name;
    struct str value;
    if (c->command->nodes < 2 || !str_eq_z(c->command->per, "node")) {
        return;
    }
    for (size_t idx = 0; idx < c->words.n; idx++) {
        if (!shell_assignment(c->words.items[idx].text, &name, &value) || value.len < 3 ||
            value.ptr[0] != '$' || !is_identifier(str_sub(value, 1, SIZE_MAX))) {
            continue;
        }
        if (value.ptr[value.len - 1] == '1' &&
            count_family(&c->words, str_sub(value, 1, value.len - 2)) > 1) {
            lint_add(lint, "node-hard-coded", c->stack, place, "%.*s=%.*s on every node",
                     STR_ARG(name), STR_ARG(value));
        }
    }
}

/* Where an image stands in `docker run OPTIONS IMAGE ...`: options without = take the next word, but for these. */
static bool is_bare_flag(struct str word)
{
    static const char *const FLAGS[] = {
        "-it",           "-i",       "-t", "-d", "-ti", "--rm", "--privileged", "--init", "--tty",
        "--interactive", "--detach", NULL};
    for (const char *const *flag = FLAGS; *flag; flag++) {
        if (str_eq_z(word, *flag)) {
            return true;
        }
    }
    return str_find(word, STR_LIT("=")) > 0;
}

static bool is_docker(struct str word)
{
    return str_eq_z(word, "docker") || str_eq_z(word, "nvidia-docker") || str_eq_z(word, "podman");
}

static struct str image_of_run(const struct shell_words *words, size_t idx)
{
    for (size_t at = idx + 2; at < words->n && !words->items[at].starts; at++) {
        struct str word = words->items[at].text;
        if (word.len == 0 || word.ptr[0] != '-') {
            return word;
        }
        at += !is_bare_flag(word);
    }
    return STR_EMPTY;
}

static bool same_image(struct str a, struct str b)
{
    struct str latest = STR_LIT(":latest");
    a = str_ends(a, latest) ? str_sub(a, 0, a.len - latest.len) : a;
    b = str_ends(b, latest) ? str_sub(b, 0, b.len - latest.len) : b;
    return str_eq(a, b);
}

/* Does any printed command of the stack pull, build -t or tag this image? */
static bool is_made(struct lint *lint, const struct stack *s, struct str image)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct shell_words *words = printed_words(lint, s, &s->commands[idx]);
        for (size_t at = 0; at + 1 < words->n; at++) {
            struct str verb = words->items[at + 1].text;
            if (!words->items[at].starts || !is_docker(words->items[at].text) ||
                str_eq_z(verb, "run")) {
                continue;
            }
            for (size_t arg = at + 2; arg < words->n && !words->items[arg].starts; arg++) {
                if (same_image(words->items[arg].text, image)) {
                    return true;
                }
            }
        }
    }
    return false;
}

static void lint_run_image(struct lint *lint, const struct lint_command *c, const char *place,
                           size_t idx)
{
    struct str image = image_of_run(&c->words, idx);
    if (!image.ptr || str_find(image, STR_LIT("$")) >= 0 ||
        (c->stack->image_tag.ptr && same_image(image, c->stack->image_tag)) ||
        is_made(lint, c->stack, image)) {
        return;
    }
    lint_add(lint, "image-name-mismatch", c->stack, place,
             "image \"%.*s\" is run, and no printed command pulls, builds or tags it",
             STR_ARG(image));
}

/* -e LD_LIBRARY_PATH=X without the path that was there. */
static void lint_library_path(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct str name;
    struct str value;
    for (size_t idx = 1; idx < c->words.n; idx++) {
        if (shell_assignment(c->words.items[idx].text, &name, &value) &&
            str_eq_z(name, "LD_LIBRARY_PATH") && str_eq_z(c->words.items[idx - 1].text, "-e") &&
            str_find(value, STR_LIT("$LD_LIBRARY_PATH")) < 0) {
            lint_add(lint, "library-path-overwritten", c->stack, place, "-e LD_LIBRARY_PATH=%.*s",
                     STR_ARG(value));
        }
    }
}

/* Words of well-known model families; a name that holds one is about that model. */
static const char *const FAMILIES[] = {"transformer", "bert",    "resnet", "mobilenet", "yolo",
                                       "hrnet",       "deeplab", "gpt",    "wavenet",   "tacotron",
                                       "ernie",       "vgg",     NULL};

static bool holds_word(struct str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t at = 0; at + len <= text.len; at++) {
        if (strncasecmp(text.ptr + at, word, len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_own_family(const struct lint *lint, const struct stack *s, const char *family)
{
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        if (lint->report->cases[idx].stack == s &&
            holds_word(lint->report->cases[idx].model, family)) {
            return true;
        }
    }
    return false;
}

static void lint_name(struct lint *lint, const struct lint_command *c, const char *place,
                      const char *what, struct str name)
{
    for (const char *const *family = FAMILIES; *family; family++) {
        if (holds_word(name, *family) && !is_own_family(lint, c->stack, *family)) {
            lint_add(lint, "copied-from-other-model", c->stack, place,
                     "%s \"%.*s\" is of another model than %.*s", what, STR_ARG(name),
                     STR_ARG(lint->report->cases[0].model));
        }
    }
}

static void lint_container(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct str name = STR_EMPTY;
    if (shell_option(&c->words, "--name", &name)) {
        lint_name(lint, c, place, "container name", name);
    }
    for (size_t idx = 0; idx + 1 < c->words.n; idx++) {
        const struct shell_word *word = &c->words.items[idx];
        if (word->starts && is_docker(word->text) &&
            str_eq_z(c->words.items[idx + 1].text, "run")) {
            lint_run_image(lint, c, place, idx);
        }
        if (word->starts && str_eq_z(word->text, "cd")) {
            lint_name(lint, c, place, "folder", c->words.items[idx + 1].text);
        }
    }
    lint_library_path(lint, c, place);
}

/* "_c8." , "_8gpu", "gpu8", "8gpus" in a configuration's name: the number, or 0. */
static int64_t scale_in_name(struct str name)
{
    for (size_t at = 0; at < name.len; at++) {
        size_t end = at;
        int64_t n = 0;
        bool is_number = name.ptr[at] >= '0' && name.ptr[at] <= '9' &&
                         (at == 0 || name.ptr[at - 1] < '0' || name.ptr[at - 1] > '9');
        while (is_number && end < name.len && name.ptr[end] >= '0' && name.ptr[end] <= '9') {
            end++;
        }
        if (!is_number || !to_count(str_sub(name, at, end - at), GPUS_NAME_MAX, &n)) {
            continue;
        }
        bool is_c = at >= 2 && name.ptr[at - 1] == 'c' && name.ptr[at - 2] == '_' &&
                    (end == name.len || name.ptr[end] == '.' || name.ptr[end] == '_');
        bool has_gpu = str_starts(str_sub(name, end, SIZE_MAX), STR_LIT("gpu")) ||
                       (at >= 3 && memcmp(name.ptr + at - 3, "gpu", 3) == 0);
        if (is_c || has_gpu) {
            return n;
        }
    }
    return 0;
}

static void lint_config(struct lint *lint, const struct lint_command *c, const char *place)
{
    static const char *const CONFIGS[] = {".py", ".yaml", ".yml", ".json", NULL};
    for (size_t idx = 0; c->command->gpus > 0 && idx < c->words.n; idx++) {
        struct str name = path_base(c->words.items[idx].text);
        int64_t scale = ends_in_any(name, CONFIGS) ? scale_in_name(name) : 0;
        if (scale > 0 && scale != c->command->gpus) {
            lint_add(lint, "config-of-other-scale", c->stack, place,
                     "%.*s is used on %" PRId64 " GPUs", STR_ARG(name), c->command->gpus);
        }
    }
}

/* How many times `i=FIRST; while [ $i -le LAST ]` or {FIRST..LAST} goes round; 0 where there is no such loop. */
static int64_t loop_count(const struct shell_words *words)
{
    int64_t first = 0;
    int64_t last = 0;
    for (size_t idx = 1; idx + 1 < words->n; idx++) {
        struct str word = words->items[idx].text;
        struct str before = words->items[idx - 1].text;
        int64_t dots = str_find(word, STR_LIT(".."));
        if (str_eq_z(word, "-le") && str_starts(before, STR_LIT("$")) &&
            assigned_number(words, str_sub(before, 1, SIZE_MAX), &first) &&
            to_count(words->items[idx + 1].text, INT32_MAX, &last)) {
            return last - first + 1;
        }
        if (dots > 1 && word.ptr[0] == '{' && word.ptr[word.len - 1] == '}' &&
            to_count(str_sub(word, 1, (size_t)dots - 1), INT32_MAX, &first) &&
            to_count(str_sub(word, (size_t)dots + 2, word.len - (size_t)dots - 3), INT32_MAX,
                     &last)) {
            return last - first + 1;
        }
    }
    return 0;
}

static void lint_repeats(struct lint *lint, const struct lint_command *c, const char *place)
{
    int64_t n = loop_count(&c->words);
    for (size_t idx = 0; n > 0 && idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        struct str stated = STR_EMPTY;
        int64_t repeats = 0;
        if (of->stack == c->stack && command_is_for(c->command, of) &&
            case_condition(of, "repeats", &stated) && to_count(stated, INT32_MAX, &repeats) &&
            repeats != n) {
            lint_add(lint, "repeats-differ", c->stack, place,
                     "the loop runs %" PRId64 " times, and %" PRId64 " repeats are stated", n,
                     repeats);
        }
    }
}

/* A batch option is right when it is the batch of a GPU, a node or the job of some case that the command is for. */
static void lint_batch(struct lint *lint, const struct lint_command *c, const char *place)
{
    static const char *const FLAGS[] = {"--batch_size", "--batch-size", "--samples_per_gpu", "-b",
                                        NULL};
    struct str text = STR_EMPTY;
    int64_t batch = 0;
    size_t n_cases = 0;
    bool fits = false;
    for (const char *const *flag = FLAGS; *flag && !text.ptr; flag++) {
        shell_option(&c->words, *flag, &text);
    }
    if (!to_count(text, INT32_MAX, &batch)) {
        return;
    }
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        if (of->stack == c->stack && command_is_for(c->command, of)) {
            n_cases++;
            fits = fits || batch == of->batch_per_gpu ||
                   batch == of->batch_per_gpu * of->gpus_per_node ||
                   batch == of->batch_per_gpu * of->gpus;
        }
    }
    if (n_cases && !fits) {
        lint_add(lint, "batch-differs", c->stack, place,
                 "the command's batch is %" PRId64 ", and no row that it is for has that", batch);
    }
}

struct flag_row { /* an option of launch commands and the condition that states the same */
    const char *flag, *condition;
};
static const struct flag_row FLAG_ROWS[] = {
    {"--max_iters", "iterations"},
    {"--max_iter", "iterations"},
    {"--iters", "iterations"},
    {"--max_steps", "iterations"},
    {"--num_iter", "iterations"},
    {"--log_iters", "log_interval"},
    {"--logging_steps", "log_interval"},
    {"--print_step", "log_interval"},
    {"--num_workers", "workers"},
    {"--seed", "seed"},
    {"--total_images", "dataset_images"},
};

/* The number behind $name where it is NAME=N or NAME=${1:-N}; a plain number is itself. */
static bool resolve(const struct shell_words *words, struct str text, int64_t *ret)
{
    struct str key;
    struct str value;
    if (!str_starts(text, STR_LIT("$"))) {
        return to_count(text, INT64_MAX, ret);
    }
    text = str_sub(text, 1, SIZE_MAX);
    for (size_t idx = 0; idx < words->n; idx++) {
        if (shell_assignment(words->items[idx].text, &key, &value) && str_eq(key, text)) {
            int64_t at = str_find(value, STR_LIT(":-"));
            if (at > 0 && value.ptr[value.len - 1] == '}') {
                value = str_sub(value, (size_t)at + 2, value.len - (size_t)at - 3);
            }
            return to_count(value, INT64_MAX, ret);
        }
    }
    return false;
}

static void lint_flag(struct lint *lint, const struct lint_command *c, const char *place,
                      const struct flag_row *row)
{
    struct str text = STR_EMPTY;
    int64_t value = 0;
    if (!shell_option(&c->words, row->flag, &text) || !resolve(&c->words, text, &value)) {
        return;
    }
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *of = &lint->report->cases[idx];
        struct str stated = STR_EMPTY;
        int64_t number = 0;
        if (of->stack == c->stack && command_is_for(c->command, of) &&
            case_condition(of, row->condition, &stated) && to_count(stated, INT64_MAX, &number) &&
            number != value) {
            lint_add(lint, "condition-contradicts-command", c->stack, place,
                     "%s is %" PRId64 " in the command, and %s is stated as %" PRId64, row->flag,
                     value, row->condition, number);
        }
    }
}

static bool printed_mentions(const struct stack *s, const char *skip_purpose, struct str text)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct command *command = &s->commands[idx];
        if (command->printed.ptr && !str_eq_z(command->purpose, skip_purpose) &&
            str_find(command->printed, text) >= 0) {
            return true;
        }
    }
    return false;
}

static bool is_case_log(const struct lint *lint, const struct stack *s, struct str name)
{
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *c = &lint->report->cases[idx];
        for (size_t log = 0; c->stack == s && log < c->n_logs; log++) {
            if (str_eq(path_base(c->logs[log]), name)) {
                return true;
            }
        }
    }
    return false;
}

static bool says_half(struct str text)
{
    return holds_word(text, "fp16") || holds_word(text, "amp");
}

/* [label](path): the label says one precision and the path the other. */
static void lint_link(struct lint *lint, const struct lint_command *c, const char *place,
                      struct str line)
{
    int64_t joint = str_find(line, STR_LIT("]("));
    struct str label = joint > 0 ? str_sub(line, 0, (size_t)joint) : STR_EMPTY;
    struct str path = joint > 0 ? str_sub(line, (size_t)joint + 2, SIZE_MAX) : STR_EMPTY;
    if (joint > 0 && ((holds_word(label, "fp32") && !says_half(label) && says_half(path) &&
                       !holds_word(path, "fp32")) ||
                      (says_half(label) && !holds_word(label, "fp32") && holds_word(path, "fp32") &&
                       !says_half(path)))) {
        lint_add(lint, "log-links-swapped", c->stack, place, "the link \"%.*s\"",
                 STR_ARG(str_trim(line)));
    }
}

static void lint_log_list(struct lint *lint, const struct lint_command *c, const char *place)
{
    static const char *const LOGS[] = {".txt", ".log", NULL};
    struct str rest = c->command->printed;
    struct str line;
    while (str_next(&rest, '\n', &line)) {
        lint_link(lint, c, place, line);
    }
    for (size_t idx = 0; idx < c->words.n; idx++) {
        struct str name = path_base(c->words.items[idx].text);
        if (ends_in_any(name, LOGS) && !printed_mentions(c->stack, "log", name) &&
            !is_case_log(lint, c->stack, name)) {
            lint_add(lint, "log-name-unknown", c->stack, place,
                     "log %.*s is listed, and no printed command writes it", STR_ARG(name));
        }
    }
}

static void lint_run(struct lint *lint, const struct lint_command *c, const char *place)
{
    lint_nodes(lint, c, place);
    lint_devices(lint, c, place);
    lint_node_variables(lint, c, place);
    lint_config(lint, c, place);
    lint_repeats(lint, c, place);
    lint_batch(lint, c, place);
    for (size_t row = 0; row < ARRAY_LEN(FLAG_ROWS); row++) {
        lint_flag(lint, c, place, &FLAG_ROWS[row]);
    }
    if (str_eq_z(c->command->purpose, "run") && c->command->nodes > 1 &&
        str_eq_z(c->command->per, "node")) {
        lint_add(lint, "command-typed-on-nodes", c->stack, place,
                 "the command for %" PRId64 " nodes is typed on each of them", c->command->nodes);
    }
}

static bool is_printed_for(const struct stack *s, const struct report_case *c)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct command *command = &s->commands[idx];
        if (command->printed.ptr && str_eq_z(command->purpose, "run") &&
            command_is_for(command, c)) {
            return true;
        }
    }
    return false;
}

static void lint_not_printed(struct lint *lint, const struct stack *s)
{
    CLEANUP(strbuf) struct strbuf list;
    size_t n = 0;
    strbuf_init(&list, LIST_BYTES);
    for (size_t idx = 0; idx < lint->report->n_cases; idx++) {
        const struct report_case *c = &lint->report->cases[idx];
        if (c->stack == s && c->n_cells && !is_printed_for(s, c)) {
            strbuf_printf(&list, "%s%s", n ? ", " : "", c->id.ptr);
            n++;
        }
    }
    if (n) {
        lint_add(lint, "command-not-printed", s, ".commands",
                 "no launch is printed for %zu cases: %s%s", n, list.ptr,
                 list.is_full ? ", ..." : "");
    }
}

static void lint_stack(struct lint *lint, const struct stack *s)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        struct lint_command c = {s, &s->commands[idx], stack_index(lint->report, s), idx, {0}};
        const char *place = arena_printf(lint->arena, ".commands[%zu].printed", idx);
        if (!c.command->printed.ptr) {
            continue;
        }
        c.words = *printed_words(lint, s, c.command);
        if (str_eq_z(c.command->purpose, "log")) {
            lint_log_list(lint, &c, place);
        } else {
            lint_run(lint, &c, place);
            lint_container(lint, &c, place);
        }
    }
    lint_not_printed(lint, s);
}

void lint_launches(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        if (stack_has_cells(lint->report, &lint->report->stacks[idx])) {
            lint_stack(lint, &lint->report->stacks[idx]);
        }
    }
}
