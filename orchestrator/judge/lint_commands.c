/* SPDX-License-Identifier: Apache-2.0 */
/* Slips that can be seen in one printed command, or in the printed commands of one stack. */
#include "base/base.h"

#include "base/vec.h"
#include "judge/lint_parts.h"

#define DISTANCE_MAX   2
#define NAME_BYTES_MIN 5
#define COMMIT_DIGITS  40

struct names { /* a VEC */
    struct str *items;
    size_t n;
    size_t n_max;
};

static bool has_name(const struct names *names, struct str name)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        if (str_eq(names->items[idx], name)) {
            return true;
        }
    }
    return false;
}

static void collect_names(const struct lint_command *c, struct names *assigned, struct names *used)
{
    struct str name;
    struct str value;
    bool has_default;
    for (size_t idx = 0; idx < c->words.n; idx++) {
        if (shell_assignment(c->words.items[idx].text, &name, &value)) {
            VEC_PUSH(assigned, name);
        }
    }
    for (size_t at = 0; shell_next_use(c->command->printed, &at, &name, &has_default);) {
        VEC_PUSH(used, name);
    }
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* NODE1 and NODE2 are two names, not one misspelt. */
static bool same_but_digits(struct str a, struct str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t idx = 0; idx < a.len; idx++) {
        if (a.ptr[idx] != b.ptr[idx] && !(is_digit(a.ptr[idx]) && is_digit(b.ptr[idx]))) {
            return false;
        }
    }
    return true;
}

/* Set and never used, while another name at a small distance is used and never set. */
static void lint_misspelt(struct lint *lint, const struct lint_command *c, const char *place)
{
    struct names assigned = {.n = 0};
    struct names used = {.n = 0};
    collect_names(c, &assigned, &used);
    for (size_t u = 0; u < used.n; u++) {
        if (has_name(&assigned, used.items[u]) || used.items[u].len < NAME_BYTES_MIN) {
            continue;
        }
        for (size_t a = 0; a < assigned.n; a++) {
            struct str name = assigned.items[a];
            if (name.len >= NAME_BYTES_MIN && !has_name(&used, name) &&
                !same_but_digits(name, used.items[u]) &&
                edit_distance(name, used.items[u]) <= DISTANCE_MAX) {
                lint_add(lint, "variable-misspelt", c->stack, place,
                         "%.*s is set and $%.*s is used, which nothing sets", STR_ARG(name),
                         STR_ARG(used.items[u]));
            }
        }
    }
    VEC_RELEASE(&assigned);
    VEC_RELEASE(&used);
}

/* One part of a list such as $NODE1,$NODE2,NODE3: a name without its dollar, beside siblings that have one? */
static bool lacks_dollar(struct str part, struct str sibling)
{
    size_t stem = part.len;
    while (stem > 0 && is_digit(part.ptr[stem - 1])) {
        stem--;
    }
    return is_identifier(part) && stem > 0 && stem < part.len && sibling.len > stem &&
           memcmp(part.ptr, sibling.ptr, stem) == 0;
}

static void lint_list(struct lint *lint, const struct lint_command *c, const char *place,
                      struct str list)
{
    struct str rest = list;
    struct str part;
    struct str sibling = STR_EMPTY;
    for (int pass = 0; pass < 2; pass++) {
        rest = list;
        while (str_next(&rest, ',', &part)) {
            size_t at = 0;
            bool has_default;
            struct str name;
            if (pass == 0 && shell_next_use(part, &at, &name, &has_default)) {
                sibling = has_default ? sibling : name;
            } else if (pass == 1 && sibling.ptr && lacks_dollar(part, sibling)) {
                lint_add(lint, "variable-without-dollar", c->stack, place,
                         "%.*s stands for itself in a list beside $%.*s", STR_ARG(part),
                         STR_ARG(sibling));
            }
        }
    }
}

/* The last expansion of a value: "${5:-$A,$B}" is "$A,$B". */
static struct str default_of(struct str value)
{
    int64_t at = str_find(value, STR_LIT(":-"));
    if (!str_starts(value, STR_LIT("${")) || at < 0) {
        return value;
    }
    value = str_sub(value, (size_t)at + 2, SIZE_MAX);
    return value.len && value.ptr[value.len - 1] == '}' ? str_sub(value, 0, value.len - 1) : value;
}

/* NAME=${6:-OTHER} where OTHER is a variable that the report's commands set: the name where its value is meant. */
static void lint_default(struct lint *lint, const struct lint_command *c, const char *place,
                         struct str value, const struct names *assigned)
{
    struct str fallback = default_of(value);
    if (fallback.ptr != value.ptr && is_identifier(fallback) && has_name(assigned, fallback)) {
        lint_add(lint, "variable-without-dollar", c->stack, place,
                 "%.*s falls back to the name %.*s, not to what it holds", STR_ARG(value),
                 STR_ARG(fallback));
    }
}

static void lint_dollars(struct lint *lint, const struct lint_command *c, const char *place,
                         const struct names *assigned)
{
    struct str name;
    struct str value;
    for (size_t idx = 0; idx < c->words.n; idx++) {
        struct str word = c->words.items[idx].text;
        if (shell_assignment(word, &name, &value)) {
            word = default_of(value);
            lint_default(lint, c, place, value, assigned);
        }
        if (str_find(word, STR_LIT(",")) >= 0 && str_find(word, STR_LIT("$")) >= 0) {
            lint_list(lint, c, place, word);
        }
    }
}

/* The file that `tar` or `unzip` at words[idx] unpacks, or NULL; its flags beside it. */
static struct str unpacked_file(const struct shell_words *words, size_t idx, struct str *ret_flags)
{
    bool is_zip = str_eq_z(words->items[idx].text, "unzip");
    *ret_flags = STR_EMPTY;
    if (!words->items[idx].starts || (!is_zip && !str_eq_z(words->items[idx].text, "tar"))) {
        return STR_EMPTY;
    }
    for (size_t at = idx + 1; at < words->n && !words->items[at].starts; at++) {
        struct str word = words->items[at].text;
        if (!is_zip && at == idx + 1) {
            *ret_flags = word;
            if (str_find(word, STR_LIT("x")) < 0) {
                return STR_EMPTY;
            }
        } else if (ends_in_any(word, ARCHIVE_SUFFIXES)) {
            return word;
        }
    }
    return STR_EMPTY;
}

static bool is_download(const struct shell_words *words, size_t idx)
{
    return words->items[idx].starts &&
           (str_eq_z(words->items[idx].text, "wget") || str_eq_z(words->items[idx].text, "curl"));
}

/* The name under which wget or curl -O saves what it gets; NULL where another name is given. */
static struct str saved_name(const struct shell_words *words, size_t idx)
{
    struct str url = STR_EMPTY;
    for (size_t at = idx + 1; at < words->n && !words->items[at].starts; at++) {
        struct str word = words->items[at].text;
        if (str_eq_z(word, "-O") || str_eq_z(word, "-o") || str_eq_z(word, "--output-document")) {
            return STR_EMPTY;
        }
        url = str_find(word, STR_LIT("://")) > 0 ? word : url;
    }
    return url.ptr ? path_base(url) : STR_EMPTY;
}

static bool is_whole_commit(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if (!is_digit(s.ptr[idx]) && !(s.ptr[idx] >= 'a' && s.ptr[idx] <= 'f')) {
            return false;
        }
    }
    return s.len == COMMIT_DIGITS;
}

static void lint_download(struct lint *lint, const struct lint_command *c, const char *place,
                          struct str url)
{
    static const char RAW[] = "raw.githubusercontent.com/";
    int64_t at = str_find(url, str_of(RAW));
    struct str rest = at >= 0 ? str_sub(url, (size_t)at + sizeof(RAW) - 1, SIZE_MAX) : STR_EMPTY;
    struct str owner;
    struct str name;
    struct str ref;
    if (rest.ptr && str_next(&rest, '/', &owner) && str_next(&rest, '/', &name) &&
        str_next(&rest, '/', &ref) && !is_whole_commit(ref)) {
        lint_add(lint, "download-from-branch", c->stack, place,
                 "files of %.*s/%.*s are downloaded from branch %.*s", STR_ARG(owner),
                 STR_ARG(name), STR_ARG(ref));
    }
}

static void lint_git(struct lint *lint, const struct lint_command *c, const char *place, size_t idx)
{
    const struct shell_words *words = &c->words;
    struct str verb = idx + 1 < words->n ? words->items[idx + 1].text : STR_EMPTY;
    if (str_eq_z(verb, "pull")) {
        lint_add(lint, "git-pull-moving", c->stack, place,
                 "git pull takes whatever the branch holds that day");
    }
    for (size_t at = idx + 2; at < words->n && !words->items[at].starts; at++) {
        struct str word = words->items[at].text;
        if (str_eq_z(verb, "clone") && str_eq_z(word, "-b") && at + 1 < words->n) {
            lint_add(lint, "git-pull-moving", c->stack, place, "git clone takes branch or tag %.*s",
                     STR_ARG(words->items[at + 1].text));
        }
        if (str_eq_z(verb, "clone") &&
            (str_find(word, STR_LIT("/tree/")) > 0 || str_find(word, STR_LIT("/blob/")) > 0)) {
            lint_add(lint, "url-not-cloneable", c->stack, place, "git cannot clone %.*s",
                     STR_ARG(word));
        }
    }
}

static void lint_words(struct lint *lint, const struct lint_command *c, const char *place)
{
    for (size_t idx = 0; idx < c->words.n; idx++) {
        const struct shell_word *word = &c->words.items[idx];
        struct str flags;
        struct str file = unpacked_file(&c->words, idx, &flags);
        if (file.ptr && str_ends(file, STR_LIT(".tar")) && str_find(flags, STR_LIT("z")) >= 0) {
            lint_add(lint, "tar-wrong-filter", c->stack, place,
                     "tar %.*s of %.*s: by its name it is not compressed", STR_ARG(flags),
                     STR_ARG(file));
        }
        if (word->starts && str_eq_z(word->text, "git")) {
            lint_git(lint, c, place, idx);
        }
        if (str_find(word->text, STR_LIT("://")) > 0) {
            lint_download(lint, c, place, word->text);
        }
    }
}

static bool is_checksum(struct str word)
{
    return str_eq_z(word, "md5sum") || str_eq_z(word, "sha1sum") || str_eq_z(word, "sha256sum") ||
           str_eq_z(word, "sha512sum");
}

/* What happens to one archive in the order of the words: unpacked, moved, checked. */
static void lint_archive(struct lint *lint, const struct lint_command *c, const char *place,
                         size_t unpack_idx, struct str file)
{
    const struct shell_words *words = &c->words;
    for (size_t idx = unpack_idx + 1; idx < words->n; idx++) {
        struct str next = idx + 1 < words->n ? words->items[idx + 1].text : STR_EMPTY;
        if (!words->items[idx].starts || !str_eq(next, file)) {
            continue;
        }
        if (is_checksum(words->items[idx].text)) {
            lint_add(lint, "checksum-after-use", c->stack, place,
                     "%.*s is unpacked first and checked after", STR_ARG(file));
        }
        if (str_eq_z(words->items[idx].text, "mv")) {
            lint_add(lint, "archive-not-folder", c->stack, place,
                     "%.*s is unpacked, and then the archive itself is moved", STR_ARG(file));
        }
    }
}

/* The archive that a working command downloads where the printed one says nothing of a download; NULL where none does. */
static struct str working_download(struct lint *lint, const struct lint_command *c)
{
    const struct shell_words *words = working_words(lint, c->stack, c->command);
    for (size_t idx = 0; idx < words->n; idx++) {
        struct str word = words->items[idx].text;
        if (str_find(word, STR_LIT("://")) > 0 && ends_in_any(word, ARCHIVE_SUFFIXES)) {
            return path_base(word);
        }
    }
    return STR_EMPTY;
}

static void lint_archives(struct lint *lint, const struct lint_command *c, const char *place,
                          const struct names *saved)
{
    for (size_t idx = 0; idx < c->words.n; idx++) {
        struct str flags;
        struct str file = unpacked_file(&c->words, idx, &flags);
        if (!file.ptr) {
            continue;
        }
        lint_archive(lint, c, place, idx, file);
        struct str got = saved->n ? saved->items[0] : working_download(lint, c);
        if (got.ptr && !str_eq(got, path_base(file)) && !has_name(saved, path_base(file))) {
            lint_add(lint, "archive-name-mismatch", c->stack, place,
                     "%.*s is unpacked, and the download is saved as %.*s", STR_ARG(file),
                     STR_ARG(got));
        }
    }
}

/* Archives that the stack's printed commands download. */
static void collect_saved(struct lint *lint, const struct stack *s, struct names *saved)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct shell_words *words = printed_words(lint, s, &s->commands[idx]);
        for (size_t word = 0; word < words->n; word++) {
            struct str name = is_download(words, word) ? saved_name(words, word) : STR_EMPTY;
            if (name.ptr && ends_in_any(name, ARCHIVE_SUFFIXES)) {
                VEC_PUSH(saved, name);
            }
        }
    }
}

static void collect_assigned(struct lint *lint, const struct stack *s, struct names *assigned)
{
    struct str name;
    struct str value;
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        const struct shell_words *words = printed_words(lint, s, &s->commands[idx]);
        for (size_t word = 0; word < words->n; word++) {
            if (shell_assignment(words->items[word].text, &name, &value)) {
                VEC_PUSH(assigned, name);
            }
        }
    }
}

static void lint_stack(struct lint *lint, const struct stack *s)
{
    struct names saved = {.n = 0};
    struct names assigned = {.n = 0};
    size_t n_changed = 0;
    collect_saved(lint, s, &saved);
    collect_assigned(lint, s, &assigned);
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        struct lint_command c = {s, &s->commands[idx], stack_index(lint->report, s), idx, {0}};
        const char *place = arena_printf(lint->arena, ".commands[%zu].printed", idx);
        n_changed += c.command->printed.ptr && c.command->works.ptr;
        if (!c.command->printed.ptr) {
            continue;
        }
        c.words = *printed_words(lint, s, c.command);
        lint_misspelt(lint, &c, place);
        lint_dollars(lint, &c, place, &assigned);
        lint_words(lint, &c, place);
        lint_archives(lint, &c, place, &saved);
    }
    if (n_changed) {
        lint_add(lint, "command-changed", s, ".commands",
                 "%zu of %zu commands had to be changed to work", n_changed, s->n_commands);
    }
    VEC_RELEASE(&saved);
    VEC_RELEASE(&assigned);
}

void lint_commands(struct lint *lint)
{
    for (size_t idx = 0; idx < lint->report->n_stacks; idx++) {
        if (stack_has_cells(lint->report, &lint->report->stacks[idx])) {
            lint_stack(lint, &lint->report->stacks[idx]);
        }
    }
}
