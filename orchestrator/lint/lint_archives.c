/* SPDX-License-Identifier: Apache-2.0 */
/* Archives: downloads and their names, checks, unpacking and moves, in the order of a stack's printed commands. */
#include "base/base.h"

#include "lint/lint_parts.h"

struct step { /* one run that has to do with archives */
    const struct shell_run *run;
    const struct shell_run *before; /* what is piped into it, or NULL */
    const char *place;
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

static const char *const CHECKERS[] = {
    "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum",
    "b2sum",  "cksum",   "md5",       "xxhsum",    "rhash",     "hashdeep",  NULL};

bool is_checksum(const struct shell_run *run)
{
    static const char *const OPENSSL[] = {"dgst", "md5", "sha1", "sha256", "sha512", NULL};
    static const char *const OPTIONS[] = {"--checksum", "--md5", "--sha256", "--sha1"};
    size_t at = 1;
    struct shell_word value;
    if (shell_is_any(run, CHECKERS)) {
        return true;
    }
    if (shell_is(run, "openssl") && run->n > 1) {
        return ends_in_any(run->words[1].text, OPENSSL);
    }
    for (size_t idx = 0; run->n && !option_is_training(run) && idx < ARRAY_LEN(OPTIONS); idx++) {
        if (shell_run_option(run, OPTIONS[idx], &at, &value)) {
            return true;
        }
    }
    return shell_is(run, "aria2c") && shell_run_option(run, "--checksum", &at, &value);
}

static bool is_archive(struct str name)
{
    int64_t query = str_find(name, STR_LIT("?"));
    return ends_in_any(query > 0 ? str_sub(name, 0, (size_t)query) : name, ARCHIVE_SUFFIXES);
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

static struct str filter_of_letter(char c)
{
    return c == 'z'   ? STR_LIT("gzip")
           : c == 'j' ? STR_LIT("bzip2")
           : c == 'J' ? STR_LIT("xz")
                      : STR_EMPTY;
}

static struct str filter_of_program(struct str program)
{
    struct str base = path_base(program);
    return str_starts(base, STR_LIT("pigz")) || str_starts(base, STR_LIT("gzip")) ||
                   str_starts(base, STR_LIT("gunzip"))
               ? STR_LIT("gzip")
           : str_starts(base, STR_LIT("pbzip2")) || str_starts(base, STR_LIT("bzip2")) ||
                   str_starts(base, STR_LIT("lbzip2"))
               ? STR_LIT("bzip2")
           : str_starts(base, STR_LIT("xz")) || str_starts(base, STR_LIT("pixz")) ? STR_LIT("xz")
                                                                                  : STR_EMPTY;
}

struct tar_words {
    bool reads; /* x or t */
    struct str file, filter;
};

/* A bundle of letters: those that take a value take the rest of a -bundle, or the words after an old-style one ("xzf
   FILE"). */
static void read_tar_letters(const struct shell_run *run, size_t *at, struct tar_words *tar)
{
    struct str word = run->words[(*at)++].text;
    bool is_dashed = word.ptr[0] == '-';
    for (size_t idx = is_dashed; idx < word.len; idx++) {
        char c = word.ptr[idx];
        struct str filter = filter_of_letter(c);
        struct str value = STR_EMPTY;
        tar->reads = tar->reads || c == 'x' || c == 't';
        tar->filter = filter.ptr ? filter : tar->filter;
        if (!strchr("fCbTXIgKNHVL", c)) {
            continue;
        }
        if (is_dashed && idx + 1 < word.len) {
            value = str_sub(word, idx + 1, SIZE_MAX);
            idx = word.len;
        } else if (*at < run->n) {
            value = run->words[(*at)++].text;
        }
        if (c == 'f') {
            tar->file = value;
        } else if (c == 'I') {
            tar->filter = filter_of_program(value);
        }
    }
}

static void read_tar_long(const struct shell_run *run, size_t *at, struct tar_words *tar)
{
    struct str rest = run->words[(*at)++].text;
    struct str name;
    bool takes_next;
    (void)str_next(&rest, '=', &name);
    takes_next = !rest.ptr && *at < run->n;
    if (str_eq_z(name, "--extract") || str_eq_z(name, "--get") || str_eq_z(name, "--list")) {
        tar->reads = true;
    } else if (str_eq_z(name, "--gzip") || str_eq_z(name, "--gunzip") ||
               str_eq_z(name, "--ungzip")) {
        tar->filter = STR_LIT("gzip");
    } else if (str_eq_z(name, "--bzip2") || str_eq_z(name, "--xz")) {
        tar->filter = str_sub(name, 2, SIZE_MAX);
    } else if (str_eq_z(name, "--file") || str_eq_z(name, "--use-compress-program") ||
               str_eq_z(name, "--directory")) {
        rest = takes_next ? run->words[(*at)++].text : rest;
        if (name.ptr[2] == 'f') {
            tar->file = rest;
        } else if (name.ptr[2] == 'u') {
            tar->filter = filter_of_program(rest);
        }
    }
}

/* The archive that is piped or redirected into the step, or NULL. */
static struct str piped_file(const struct step *step)
{
    for (size_t idx = 0; idx < step->run->n_files; idx++) {
        if (step->run->files[idx].role == SHELL_FROM) {
            return step->run->files[idx].text;
        }
    }
    for (size_t idx = 1; step->before && idx < step->before->n; idx++) {
        if (is_archive(step->before->words[idx].text)) {
            return path_base(step->before->words[idx].text);
        }
    }
    return STR_EMPTY;
}

static struct unpacking tar_unpacking(const struct step *step)
{
    const struct shell_run *run = step->run;
    struct tar_words tar = {.reads = false};
    struct unpacking u = {.flags = run->n > 1 ? run->words[1].text : STR_EMPTY};
    for (size_t at = 1; at < run->n;) {
        struct str word = run->words[at].text;
        if (str_starts(word, STR_LIT("--"))) {
            read_tar_long(run, &at, &tar);
        } else if (word.len > 1 && (word.ptr[0] == '-' || at == 1)) {
            read_tar_letters(run, &at, &tar);
        } else {
            at++;
        }
    }
    if (!tar.file.ptr || str_eq_z(tar.file, "-")) {
        tar.file = piped_file(step);
    }
    if (tar.reads) {
        u.file = tar.file;
        u.filter = tar.filter;
    }
    return u;
}

static struct unpacking unpacking_of(const struct step *step)
{
    static const char *const ZIPS[] = {"unzip", "gunzip", "gzip", "zcat", "pigz", "unpigz", NULL};
    static const char *const TARS[] = {"tar", "gtar", "bsdtar", NULL};
    const struct shell_run *run = step->run;
    struct unpacking u = {.flags = STR_EMPTY};
    struct str letter;
    if (shell_is_any(run, TARS)) {
        return tar_unpacking(step);
    }
    if (!shell_is_any(run, ZIPS) ||
        ((shell_is(run, "gzip") || shell_is(run, "pigz")) && !shell_run_letter(run, 'd', &letter) &&
         !shell_run_flag(run, "--decompress"))) {
        return u;
    }
    u.filter = shell_is(run, "unzip") ? STR_LIT("zip") : STR_LIT("gzip");
    for (size_t at = 1; at < run->n && !u.file.ptr; at++) {
        u.file = is_archive(run->words[at].text) ? run->words[at].text : u.file;
    }
    return u;
}

static void lint_filter(struct lint *lint, const struct stack *s, const struct step *step)
{
    struct unpacking u = unpacking_of(step);
    struct str wanted = u.file.ptr && !is_unknown(u.file) ? filter_of_name(u.file) : STR_EMPTY;
    struct str program = shell_program(step->run);
    if (!u.filter.ptr || !wanted.ptr || str_eq(u.filter, wanted)) {
        return;
    }
    if (str_eq_z(wanted, "none")) {
        lint_add(lint, "tar-wrong-filter", s, step->place,
                 "%.*s %.*s of %.*s: by its name it is not compressed", STR_ARG(program),
                 STR_ARG(u.flags), STR_ARG(u.file));
    } else {
        lint_add(lint, "tar-wrong-filter", s, step->place,
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
    for (size_t at = 1; at < step->run->n; at++) {
        struct str word = step->run->words[at].text;
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
           (shell_run_flag(step->run, "-c") || shell_run_flag(step->run, "--check") ||
            shell_run_flag(step->run, "-sc"));
}

static void lint_check(struct lint *lint, const struct stack *s, const struct steps *steps,
                       size_t unpack_idx, struct str file)
{
    bool is_checked = false;
    for (size_t idx = 0; idx < steps->n && !is_checked; idx++) {
        const struct step *step = &steps->items[idx];
        if (!is_checksum(step->run) || !checks_file(step, file)) {
            continue;
        }
        if (idx > unpack_idx) {
            lint_add(lint, "checksum-after-use", s, step->place,
                     "%.*s is unpacked first and checked afterwards", STR_ARG(file));
        }
        is_checked = true;
    }
}

/* ---- moving ---- */

static struct str without_suffix(struct str file)
{
    for (const char *const *suffix = ARCHIVE_SUFFIXES; *suffix; suffix++) {
        if (str_ends(file, str_of(*suffix))) {
            file = str_sub(file, 0, file.len - strlen(*suffix));
        }
    }
    return file;
}

static bool is_mover(const struct shell_run *run)
{
    static const char *const MOVERS[] = {"mv", "cp", "ln", "rsync", "scp", NULL};
    return shell_is_any(run, MOVERS);
}

/* Whether the run moves something of this name: an operand other than the last, or any operand if -t gives the
   target. */
static bool moves(const struct shell_run *run, struct str name)
{
    struct str target = STR_EMPTY;
    size_t end = run->n - !shell_run_letter(run, 't', &target);
    for (size_t at = 1; at < end; at++) {
        struct str word = run->words[at].text;
        if (target.ptr && word.ptr + word.len == target.ptr + target.len) {
            continue;
        }
        while (word.len > 1 && word.ptr[word.len - 1] == '/') {
            word.len--;
        }
        if (str_eq(path_base(word), name)) {
            return true;
        }
    }
    return false;
}

static void lint_moving(struct lint *lint, const struct stack *s, const struct steps *steps,
                        size_t unpack_idx, struct str file)
{
    const char *place = NULL;
    struct str folder = without_suffix(path_base(file));
    for (size_t idx = unpack_idx + 1; idx < steps->n; idx++) {
        const struct shell_run *run = steps->items[idx].run;
        if (!is_mover(run)) {
            continue;
        }
        if (moves(run, folder)) {
            return;
        }
        place = !place && moves(run, path_base(file)) ? steps->items[idx].place : place;
    }
    if (place) {
        lint_add(lint, "archive-not-folder", s, place,
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
    static const char *const OTHERS[] = {"gdown", "kaggle", "gsutil",  "aws",
                                         "axel",  "bcecmd", "ossutil", "huggingface-cli",
                                         "bypy",  "megadl", "rclone",  NULL};
    bool is_wget = shell_is(run, "wget") || shell_is(run, "aria2c");
    struct str url = url_of(run);
    struct str name = STR_EMPTY;
    struct shell_word value = {.text = STR_EMPTY};
    size_t at = 1;
    *ret_is_unknown = shell_is_any(run, OTHERS);
    if (!is_wget && !shell_is(run, "curl")) {
        return STR_EMPTY;
    }
    if (shell_run_letter(run, shell_is(run, "wget") ? 'O' : 'o', &name) ||
        shell_run_option(run, "--output-document", &at, &value) ||
        shell_run_option(run, "--output", &at, &value) ||
        shell_run_option(run, "--out", &at, &value)) {
        return path_base(name.ptr ? name : value.text);
    }
    for (size_t idx = 0; idx < run->n_files; idx++) {
        name = run->files[idx].role == SHELL_TO ? run->files[idx].text : name;
    }
    if (!is_wget && !shell_run_letter(run, 'O', &value.text) &&
        !shell_run_flag(run, "--remote-name")) {
        return name.ptr ? path_base(name) : STR_EMPTY;
    }
    *ret_is_unknown = !url.ptr || is_unknown(path_base(url)) ||
                      shell_run_flag(run, "--content-disposition") ||
                      shell_run_letter(run, 'J', &value.text);
    name = path_base(url);
    if (!is_wget && str_find(name, STR_LIT("?")) > 0) { /* wget keeps the query, curl does not */
        name = str_sub(name, 0, (size_t)str_find(name, STR_LIT("?")));
    }
    return name;
}

/* Collects what `gunzip data.tar.gz` and the like leave in place of the archive. */
static void collect_unpacked(const struct shell_run *run, struct names *saved)
{
    static const char *const UNPACKERS[] = {"gunzip", "unpigz", "bunzip2", "unxz",
                                            "unzstd", "unlzma", NULL};
    static const char *const PACKERS[] = {"gzip", "pigz", "bzip2", "xz", "zstd", NULL};
    struct str value;
    bool unpacks = shell_is_any(run, UNPACKERS) ||
                   (shell_is_any(run, PACKERS) && shell_run_letter(run, 'd', &value));
    for (size_t at = 1; unpacks && at < run->n; at++) {
        struct str name = path_base(run->words[at].text);
        const char *dot = name.len ? memrchr(name.ptr, '.', name.len) : NULL;
        if (is_archive(name) && dot) {
            VEC_PUSH(saved, str_sub(name, 0, (size_t)(dot - name.ptr)));
        }
    }
}

/* Collects archives that the stack's printed commands download or rename. True if there may be one with an unknown
   name. */
static bool collect_saved(const struct steps *steps, struct names *saved)
{
    bool may_be_other = false;
    for (size_t idx = 0; idx < steps->n; idx++) {
        const struct shell_run *run = steps->items[idx].run;
        bool is_unknown_name = false;
        struct str name = saved_name(run, &is_unknown_name);
        struct str url = url_of(run);
        may_be_other = may_be_other || is_unknown_name;
        if (name.ptr && name.len && !str_eq_z(name, "-") &&
            (is_archive(name) || is_archive(path_base(url)))) {
            VEC_PUSH(saved, name);
        }
        collect_unpacked(run, saved);
        if (is_mover(run) && run->n > 2 && is_archive(run->words[run->n - 1].text)) {
            VEC_PUSH(saved, path_base(run->words[run->n - 1].text));
        }
    }
    return may_be_other;
}

/* The archive that a working command downloads although the printed one has no download; NULL if none does. */
static struct str working_download(struct lint *lint, const struct stack *s,
                                   const struct step *step)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        struct lint_command c = lint_command_at(lint, s, idx);
        const struct shell_script *works = working_script(lint, s, c.command);
        for (size_t run = 0; strcmp(c.place, step->place) == 0 && run < works->n; run++) {
            struct str url = url_of(&works->runs[run]);
            if (is_archive(url)) {
                return path_base(url);
            }
        }
    }
    return STR_EMPTY;
}

static void lint_name(struct lint *lint, const struct stack *s, const struct step *step,
                      const struct names *saved, struct str file)
{
    struct str got = saved->n ? saved->items[0] : working_download(lint, s, step);
    if (got.ptr && !str_eq(got, path_base(file)) && !has_name(saved, path_base(file))) {
        lint_add(lint, "archive-name-mismatch", s, step->place,
                 "%.*s is unpacked, but the download is saved as %.*s", STR_ARG(file),
                 STR_ARG(got));
    }
}

/* ---- the whole ---- */

static void collect_steps(struct lint *lint, const struct stack *s, struct steps *steps)
{
    for (size_t idx = 0; idx < s->n_commands; idx++) {
        struct lint_command c = lint_command_at(lint, s, idx);
        for (size_t at = 0; !is_list_log(c.command) && at < c.script->n; at++) {
            const struct shell_run *run = &c.script->runs[at];
            const struct shell_run *before =
                at && run->before == '|' ? &c.script->runs[at - 1] : NULL;
            if (run->n) {
                VEC_PUSH(steps, (struct step){run, before, c.place});
            }
        }
    }
}

void lint_archives(struct lint *lint, const struct stack *s)
{
    struct steps steps = {.n = 0};
    struct names saved = {.n = 0};
    bool may_be_other;
    collect_steps(lint, s, &steps);
    may_be_other = collect_saved(&steps, &saved);
    for (size_t idx = 0; idx < steps.n; idx++) {
        struct unpacking u = unpacking_of(&steps.items[idx]);
        bool is_piped = steps.items[idx].before != NULL;
        lint_filter(lint, s, &steps.items[idx]);
        if (!u.file.ptr || is_unknown(u.file) || !is_archive(u.file)) {
            continue;
        }
        lint_check(lint, s, &steps, idx, u.file);
        lint_moving(lint, s, &steps, idx, u.file);
        if (!may_be_other && !is_piped) {
            lint_name(lint, s, &steps.items[idx], &saved, u.file);
        }
    }
    VEC_RELEASE(&steps);
    VEC_RELEASE(&saved);
}
