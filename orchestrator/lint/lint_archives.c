/* SPDX-License-Identifier: Apache-2.0 */
/* Archives: downloads and their names, checks, unpacking and moves, in the order of a stack's printed commands. */
#include "base/base.h"

#include "lint/lint_parts.h"

typedef VEC(struct lint_command) steps_vec; /* the runs of a stack's commands, in order */

#define ARCHIVE "([^ =]+\\.(?:tar\\.(?:gz|bz2|xz|zst)|t(?:gz|bz2|xz)|zip|tar))"

bool is_checksum(const struct lint_command *c)
{
    return shell_is(c->run, "md5sum sha1sum sha256sum sha512sum shasum b2sum md5") ||
           (shell_is(c->run, "openssl") && lint_has(c->lint, " (?:dgst|md5|sha\\d+) ", c->line)) ||
           (shell_is(c->run, "aria2c") && lint_has(c->lint, " --checksum[ =]", c->line));
}

static bool is_archive(struct str name)
{
    return ends_with_any(str_sub(name, 0, str_cspan(name, 0, "?")), ARCHIVE_SUFFIXES) > 0;
}

/* ---- unpacking ---- */

/* A letter of tar's first word or of any with one dash, or a long option; then the first word, for the message, and the
   archive. */
#define TAR(letter, option)                                                                        \
    "(?=(?:.* )?-[a-zA-Z]*" letter "|[a-zA-Z]*" letter "|.*--" option "[ =])"
#define EXTRACTED(letter, option) "tar " TAR("x", "extract") TAR(letter, option) WORD " (?:.*[ =])?"
static const struct lint_row FILTERS[] = {
    {"tar-wrong-filter", "tar", EXTRACTED("[zjJ]", "(?:gzip|bzip2|xz)") "([^ =]+\\.tar) ",
     "tar $1 of $2: by its name it is not compressed"},
    {"tar-wrong-filter", "tar", EXTRACTED("z", "gzip") "([^ =]+\\.(?:tar\\.|t)(?:bz2|xz|zst)) ",
     "tar $1 expects gzip of $2"},
    {"tar-wrong-filter", "tar", EXTRACTED("j", "bzip2") "([^ =]+\\.(?:tar\\.|t)(?:gz|xz|zst)) ",
     "tar $1 expects bzip2 of $2"},
    {"tar-wrong-filter", "tar", EXTRACTED("J", "xz") "([^ =]+\\.(?:tar\\.|t)(?:gz|bz2|zst)) ",
     "tar $1 expects xz of $2"},
};

/* NULL: it unpacks none that is known. */
static struct str unpacked(const struct lint_command *c)
{
    bool unpacks =
        shell_is(c->run, "unzip") ||
        (shell_is(c->run, "tar") && lint_has(c->lint, "tar " TAR("x", "extract"), c->line));
    struct str file = unpacks ? lint_part(c->lint, "[ =]" ARCHIVE " ", c->line) : STR_EMPTY;
    return is_unknown(file) ? STR_EMPTY : file;
}

/* ---- checking ---- */

/* Whether a checksum step is about the file: it names the file, or reads a list, which need not name it. */
static bool checks_file(const struct lint_command *c, struct str file)
{
    bool names_other = false;
    for (size_t at = 1; at < c->run->n + c->run->n_files; at++) {
        const struct shell_word *word =
            at < c->run->n ? &c->run->words[at] : &c->run->files[at - c->run->n];
        if (str_eq(path_base(word->text), path_base(file))) {
            return true;
        }
        names_other = names_other || is_archive(word->text);
    }
    return !names_other && lint_has(c->lint, " (?:-s?c|--check) ", c->line);
}

static void lint_check(const steps_vec *steps, size_t unpack_idx, struct str file)
{
    for (size_t idx = 0; idx < steps->n; idx++) {
        const struct lint_command *step = &steps->items[idx];
        if (!is_checksum(step) || !checks_file(step, file)) {
            continue;
        }
        if (idx > unpack_idx) {
            lint_add(step->lint, "checksum-after-use", step->at,
                     "%.*s is unpacked first and checked afterwards", STR_ARG(file));
        }
        return;
    }
}

/* ---- moving ---- */

static bool is_mover(const struct shell_run *run)
{
    return shell_is(run, "mv cp ln rsync scp");
}

/* Whether the run moves something of this name: an operand other than the last, or any if -t names the target. */
static bool moves(const struct shell_run *run, struct str name)
{
    size_t end = run->n - !shell_run_flag(run, "-t");
    for (size_t at = 1; at < end; at++) {
        if (str_eq(path_base(str_rtrim(run->words[at].text, 1, "/")), name) &&
            !str_eq_z(run->words[at - 1].text, "-t")) {
            return true;
        }
    }
    return false;
}

static void lint_moving(const steps_vec *steps, size_t unpack_idx, struct str file)
{
    const struct lint_command *mover = NULL;
    struct str folder = path_base(file);
    folder.len -= ends_with_any(folder, ARCHIVE_SUFFIXES);
    for (size_t idx = unpack_idx + 1; idx < steps->n; idx++) {
        const struct lint_command *step = &steps->items[idx];
        if (is_mover(step->run) && moves(step->run, folder)) {
            return;
        }
        mover = !mover && is_mover(step->run) && moves(step->run, path_base(file)) ? step : mover;
    }
    if (mover) {
        lint_add(mover->lint, "archive-not-folder", mover->at,
                 "%.*s is unpacked, and then the archive itself is moved", STR_ARG(file));
    }
}

/* ---- names of downloads ---- */

static struct str url_of(struct lint *lint, struct str line)
{
    return lint_part(lint, ".*(?<![^ ])([^ =]*://[^ ]*) ", line);
}

/* Notes the name under which a download is saved, or something renamed, as an archive. False: there may be one with an unknown
   name. */
static bool note_saved(const struct lint_command *c, struct names *saved)
{
    static const char NAMED[] =
        "(?: -[oO] ?| --output-document[ =]| --output[ =]| --out[ =]|> )" WORD;
    const struct shell_run *run = c->run;
    if (is_mover(run) && run->n > 2 && is_archive(run->words[run->n - 1].text)) {
        VEC_PUSH(saved, path_base(run->words[run->n - 1].text));
    }
    if (!shell_is(run, "wget curl aria2c")) {
        return !shell_is(run, "gdown kaggle gsutil aws axel bypy rclone");
    }
    struct str url = url_of(c->lint, c->line);
    struct str name = lint_part(c->lint, NAMED, c->line);
    if (!name.ptr) {
        /* wget keeps the query, curl does not */
        name = shell_is(run, "curl") ? str_sub(url, 0, str_cspan(url, 0, "?")) : url;
    }
    name = path_base(name);
    if (name.len && !str_eq_z(name, "-") && (is_archive(name) || is_archive(path_base(url)))) {
        VEC_PUSH(saved, name);
    }
    return name.len && !is_unknown(name) && !shell_run_flag(run, "--content-disposition");
}

/* The archive that a working command downloads although the printed one has no download; NULL if none does. */
static struct str working_download(const struct lint_command *c)
{
    const struct shell_script *works = working_script(c->lint, c->stack, c->command);
    for (size_t run = 0; run < works->n; run++) {
        for (size_t at = 1; at < works->runs[run].n; at++) {
            struct str word = works->runs[run].words[at].text;
            if (str_find(word, STR_LIT("://")) > 0 && is_archive(word)) {
                return path_base(word);
            }
        }
    }
    return STR_EMPTY;
}

static void lint_name(const struct lint_command *c, const struct names *saved, struct str file)
{
    struct str got = saved->n ? saved->items[0] : working_download(c);
    /* data.tar may be what gunzip made of data.tar.gz. */
    if (got.ptr && !str_eq(got, path_base(file)) &&
        !str_is_in(path_base(file), saved->items, saved->n) &&
        !str_is_in(str_printf(c->lint->arena, "%.*s.gz", STR_ARG(path_base(file))), saved->items,
                   saved->n)) {
        lint_add(c->lint, "archive-name-mismatch", c->at,
                 "%.*s is unpacked, but the download is saved as %.*s", STR_ARG(file),
                 STR_ARG(got));
    }
}

/* ---- the whole ---- */

void lint_archives(struct lint *lint, const struct stack *s)
{
    steps_vec steps = {.n = 0};
    struct names saved = {.n = 0};
    bool are_known = true;
    for (struct lint_command c = lint_walk(lint, s); lint_next_run(&c);) {
        VEC_PUSH(&steps, c);
        are_known = note_saved(&c, &saved) && are_known;
    }
    for (size_t idx = 0; idx < steps.n; idx++) {
        struct str file = unpacked(&steps.items[idx]);
        lint_by_rows(&steps.items[idx], FILTERS, ARRAY_LEN(FILTERS));
        if (!file.ptr) {
            continue;
        }
        lint_check(&steps, idx, file);
        lint_moving(&steps, idx, file);
        if (are_known) {
            lint_name(&steps.items[idx], &saved, file);
        }
    }
    VEC_RELEASE(&steps);
    VEC_RELEASE(&saved);
}
