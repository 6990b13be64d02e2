/* SPDX-License-Identifier: Apache-2.0 */
/* Archives: downloads and their names, checks, unpacking and moves, in the order of a stack's printed commands. */
#include "base/base.h"

#include "lint/lint_parts.h"

struct step { /* one run that has to do with archives */
    struct lint_command c;
    const struct shell_run *before; /* what is piped into it, or NULL */
};

struct steps {
    struct step *items;
    size_t n, n_max;
};

struct unpacking {
    struct str file;   /* as written; NULL: none */
    struct str flags;  /* as written, for messages */
    struct str filter; /* "gzip", "bzip2", "xz", "zip"; NULL: left to the program */
};

bool is_checksum(const struct shell_run *run)
{
    static const char CHECKERS[] = "md5sum sha1sum sha256sum sha512sum shasum b2sum md5";
    struct shell_word value;
    size_t at = 1;
    return shell_is_any(run, CHECKERS) ||
           (shell_is(run, "openssl") && run->n > 1 &&
            is_word_of(run->words[1].text, "dgst md5 sha1 sha256 sha512")) ||
           (shell_is(run, "aria2c") && shell_run_option(run, "--checksum", &at, &value));
}

static bool is_archive(struct str name)
{
    int64_t query = str_find(name, STR_LIT("?"));
    return ends_with_any(query > 0 ? str_sub(name, 0, (size_t)query) : name, ARCHIVE_SUFFIXES);
}

/* ---- unpacking ---- */

static struct str filter_of_name(struct str file)
{
    static const struct {
        const char *suffix, *filter;
    } ROWS[] = {{".tar", "none"},     {".tar.gz", "gzip"}, {".tgz", "gzip"},  {".tar.bz2", "bzip2"},
                {".tbz2", "bzip2"},   {".tbz", "bzip2"},   {".tar.xz", "xz"}, {".txz", "xz"},
                {".tar.zst", "zstd"}, {".zip", "zip"},     {".gz", "gzip"}};
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        if (str_ends(file, str_of(ROWS[idx].suffix))) {
            return str_of(ROWS[idx].filter);
        }
    }
    return STR_EMPTY;
}

/* What tells tar, and the like, how an archive is packed. */
static const struct {
    const char *program, *option, *filter; /* a letter is looked for in the bundle of letters */
} FILTERS[] = {
    {"tar", "z", "gzip"},        {"tar", "--gzip", "gzip"}, {"tar", "j", "bzip2"},
    {"tar", "--bzip2", "bzip2"}, {"tar", "J", "xz"},        {"tar", "--xz", "xz"},
    {"unzip", NULL, "zip"},      {"gunzip", NULL, "gzip"},
};

/* `-xzvf`, or the old `xzvf` where it is the first word. */
static bool has_letter(const struct shell_run *run, const char *letter)
{
    for (size_t at = 1; at < run->n; at++) {
        struct str word = run->words[at].text;
        bool is_bundle = word.len > 1 && (word.ptr[0] == '-' ? word.ptr[1] != '-' : at == 1);
        if (is_bundle && memchr(word.ptr, *letter, word.len)) {
            return true;
        }
    }
    return false;
}

/* The archive that is piped or redirected into the step, or NULL. */
static struct str piped_file(const struct step *step)
{
    for (size_t idx = 0; idx < step->c.run->n_files; idx++) {
        if (step->c.run->files[idx].role == SHELL_FROM) {
            return step->c.run->files[idx].text;
        }
    }
    for (size_t idx = 1; step->before && idx < step->before->n; idx++) {
        if (is_archive(step->before->words[idx].text)) {
            return path_base(step->before->words[idx].text);
        }
    }
    return STR_EMPTY;
}

static struct unpacking unpacking_of(const struct step *step)
{
    const struct shell_run *run = step->c.run;
    struct unpacking u = {.flags = run->n > 1 ? run->words[1].text : STR_EMPTY};
    bool is_tar = shell_is(run, "tar");
    bool unpacks = is_tar ? has_letter(run, "x") || shell_run_flag(run, "--extract")
                          : shell_is(run, "unzip") || shell_is(run, "gunzip");
    for (size_t idx = 0; unpacks && idx < ARRAY_LEN(FILTERS); idx++) {
        const char *option = FILTERS[idx].option;
        if (shell_is(run, FILTERS[idx].program) &&
            (!option || (option[1] ? shell_run_flag(run, option) : has_letter(run, option)))) {
            u.filter = str_of(FILTERS[idx].filter);
        }
    }
    for (size_t at = 1; unpacks && at < run->n && !u.file.ptr; at++) {
        struct str word = run->words[at].text;
        word = str_starts(word, STR_LIT("--file=")) ? str_sub(word, 7, SIZE_MAX) : word;
        u.file = is_archive(word) ? word : u.file;
    }
    u.file = unpacks && !u.file.ptr ? piped_file(step) : u.file;
    return u;
}

static void lint_filter(const struct step *step)
{
    struct unpacking u = unpacking_of(step);
    struct str wanted = u.file.ptr && !is_unknown(u.file) ? filter_of_name(u.file) : STR_EMPTY;
    struct str program = shell_program(step->c.run);
    if (!u.filter.ptr || !wanted.ptr || str_eq(u.filter, wanted)) {
        return;
    }
    if (str_eq_z(wanted, "none")) {
        lint_add(step->c.lint, "tar-wrong-filter", step->c.at,
                 "%.*s %.*s of %.*s: by its name it is not compressed", STR_ARG(program),
                 STR_ARG(u.flags), STR_ARG(u.file));
    } else {
        lint_add(step->c.lint, "tar-wrong-filter", step->c.at,
                 "%.*s %.*s expects %.*s of %.*s: by its name it is %.*s", STR_ARG(program),
                 STR_ARG(u.flags), STR_ARG(u.filter), STR_ARG(u.file), STR_ARG(wanted));
    }
}

/* ---- checking ---- */

/* Whether a checksum step is about the file: it names the file, or reads a list or a pipe, which need not name it. */
static bool checks_file(const struct step *step, struct str file)
{
    bool names_other = false;
    struct str piped = piped_file(step);
    if (piped.ptr && str_eq(path_base(piped), path_base(file))) {
        return true;
    }
    for (size_t at = 1; at < step->c.run->n; at++) {
        struct str word = step->c.run->words[at].text;
        if (str_eq(path_base(word), path_base(file))) {
            return true;
        }
        names_other = names_other || is_archive(word);
    }
    if (step->before) {
        for (size_t at = 1; at < step->before->n; at++) {
            if (str_find(step->before->words[at].text, path_base(file)) >= 0) {
                return true;
            }
        }
    }
    return !names_other && (!piped.ptr || !is_archive(piped)) &&
           (shell_run_flag(step->c.run, "-c") || shell_run_flag(step->c.run, "--check") ||
            shell_run_flag(step->c.run, "-sc"));
}

static void lint_check(const struct steps *steps, size_t unpack_idx, struct str file)
{
    bool is_checked = false;
    for (size_t idx = 0; idx < steps->n && !is_checked; idx++) {
        const struct step *step = &steps->items[idx];
        if (!is_checksum(step->c.run) || !checks_file(step, file)) {
            continue;
        }
        if (idx > unpack_idx) {
            lint_add(step->c.lint, "checksum-after-use", step->c.at,
                     "%.*s is unpacked first and checked afterwards", STR_ARG(file));
        }
        is_checked = true;
    }
}

/* ---- moving ---- */

static bool is_mover(const struct shell_run *run)
{
    return shell_is_any(run, "mv cp ln rsync scp");
}

/* Whether the run moves something of this name: an operand other than the last, or any if -t names the target. */
static bool moves(const struct shell_run *run, struct str name)
{
    size_t end = run->n - !shell_run_flag(run, "-t");
    for (size_t at = 1; at < end; at++) {
        struct str word = run->words[at].text;
        word = str_rtrim(word, 1, "/");
        if (str_eq(path_base(word), name) && !str_eq_z(run->words[at - 1].text, "-t")) {
            return true;
        }
    }
    return false;
}

static void lint_moving(const struct steps *steps, size_t unpack_idx, struct str file)
{
    const struct step *mover = NULL;
    struct str folder = path_base(file);
    folder.len -= ends_with_any(folder, ARCHIVE_SUFFIXES);
    for (size_t idx = unpack_idx + 1; idx < steps->n; idx++) {
        const struct shell_run *run = steps->items[idx].c.run;
        if (!is_mover(run)) {
            continue;
        }
        if (moves(run, folder)) {
            return;
        }
        mover = !mover && moves(run, path_base(file)) ? &steps->items[idx] : mover;
    }
    if (mover) {
        lint_add(mover->c.lint, "archive-not-folder", mover->c.at,
                 "%.*s is unpacked, and then the archive itself is moved", STR_ARG(file));
    }
}

/* ---- names of downloads ---- */

static struct str url_of(const struct shell_run *run)
{
    struct str url = STR_EMPTY;
    for (size_t at = 1; at < run->n; at++) {
        struct str word = run->words[at].text;
        url = str_find(word, STR_LIT("://")) > 0 ? word : url;
    }
    return url;
}

/* The name under which a download is saved; NULL: none, or the text does not tell, which sets *ret_is_unknown. */
static struct str saved_name(const struct shell_run *run, bool *ret_is_unknown)
{
    static const struct {
        const char *program, *option;
    } NAMED[] = {{"wget", "-O"},   {"wget", "--output-document"},
                 {"curl", "-o"},   {"curl", "--output"},
                 {"aria2c", "-o"}, {"aria2c", "--out"}};
    struct str url = url_of(run);
    struct str name = STR_EMPTY;
    bool is_curl = shell_is(run, "curl");
    *ret_is_unknown = shell_is_any(run, "gdown kaggle gsutil aws axel bypy rclone");
    if (!is_curl && !shell_is(run, "wget") && !shell_is(run, "aria2c")) {
        return STR_EMPTY;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(NAMED); idx++) {
        struct shell_word value;
        size_t at = 1;
        if (shell_is(run, NAMED[idx].program) &&
            shell_run_option(run, NAMED[idx].option, &at, &value)) {
            return path_base(value.text);
        }
    }
    for (size_t idx = 0; idx < run->n_files; idx++) {
        name = run->files[idx].role == SHELL_TO ? run->files[idx].text : name;
    }
    if (is_curl && !has_letter(run, "O") && !shell_run_flag(run, "--remote-name")) {
        return name.ptr ? path_base(name) : STR_EMPTY;
    }
    name = path_base(url);
    *ret_is_unknown = !url.ptr || is_unknown(name) || shell_run_flag(run, "--content-disposition");
    if (is_curl && str_find(name, STR_LIT("?")) > 0) { /* wget keeps the query, curl does not */
        name = str_sub(name, 0, (size_t)str_find(name, STR_LIT("?")));
    }
    return name;
}

/* Collects archives that the stack's printed commands download or rename. True if there may be one with an unknown
   name. */
static bool collect_saved(const struct steps *steps, struct names *saved)
{
    bool may_be_other = false;
    for (size_t idx = 0; idx < steps->n; idx++) {
        const struct shell_run *run = steps->items[idx].c.run;
        bool is_unknown_name = false;
        struct str name = saved_name(run, &is_unknown_name);
        struct str url = url_of(run);
        may_be_other = may_be_other || is_unknown_name;
        if (name.ptr && name.len && !str_eq_z(name, "-") &&
            (is_archive(name) || is_archive(path_base(url)))) {
            VEC_PUSH(saved, name);
        }
        if (is_mover(run) && run->n > 2 && is_archive(run->words[run->n - 1].text)) {
            VEC_PUSH(saved, path_base(run->words[run->n - 1].text));
        }
    }
    return may_be_other;
}

/* The archive that a working command downloads although the printed one has no download; NULL if none does. */
static struct str working_download(const struct lint_command *c)
{
    const struct shell_script *works = working_script(c->lint, c->stack, c->command);
    for (size_t run = 0; run < works->n; run++) {
        struct str url = url_of(&works->runs[run]);
        if (is_archive(url)) {
            return path_base(url);
        }
    }
    return STR_EMPTY;
}

static void lint_name(const struct step *step, const struct names *saved, struct str file)
{
    struct str got = saved->n ? saved->items[0] : working_download(&step->c);
    /* data.tar may be what gunzip made of data.tar.gz. */
    if (got.ptr && !str_eq(got, path_base(file)) && !has_name(saved, path_base(file)) &&
        !has_name(saved, str_printf(step->c.lint->arena, "%.*s.gz", STR_ARG(path_base(file))))) {
        lint_add(step->c.lint, "archive-name-mismatch", step->c.at,
                 "%.*s is unpacked, but the download is saved as %.*s", STR_ARG(file),
                 STR_ARG(got));
    }
}

/* ---- the whole ---- */

void lint_archives(struct lint *lint, const struct stack *s)
{
    struct steps steps = {.n = 0};
    struct names saved = {.n = 0};
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        bool is_piped = c.run > c.script->runs && c.run->before == '|';
        if (c.run->n) {
            VEC_PUSH(&steps, (struct step){c, is_piped ? c.run - 1 : NULL});
        }
    }
    bool may_be_other = collect_saved(&steps, &saved);
    for (size_t idx = 0; idx < steps.n; idx++) {
        struct unpacking u = unpacking_of(&steps.items[idx]);
        bool is_piped = steps.items[idx].before != NULL;
        lint_filter(&steps.items[idx]);
        if (!u.file.ptr || is_unknown(u.file) || !is_archive(u.file)) {
            continue;
        }
        lint_check(&steps, idx, u.file);
        lint_moving(&steps, idx, u.file);
        if (!may_be_other && !is_piped) {
            lint_name(&steps.items[idx], &saved, u.file);
        }
    }
    VEC_RELEASE(&steps);
    VEC_RELEASE(&saved);
}
