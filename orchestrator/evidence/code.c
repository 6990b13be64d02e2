/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/code.h"

#include <sys/stat.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "evidence/rundir.h"
#include "sys/child.h"

#define GIT_DEADLINE_NS (60 * NS_PER_S)
#define GIT_OUTPUT_MAX  (64u << 20)
#define FILES_MAX       100000
#define NAMED_MAX       3
#define NAMED_BYTES_MAX 8192

static void put_is_changed(struct json_out *out, const char *key, const void *of)
{
    const struct code *code = of;
    if (code->commit.ptr) {
        jw_bool(out, key, code->is_changed);
    } else {
        jw_null(out, key);
    }
}

static const struct json_field FILE_ROWS[] = {
    ROW("name", struct code_file, name, JSON_REQUIRED),
    ROW("sha256", struct code_file, sha256, JSON_REQUIRED | JSON_NULLABLE, .form = &JSON_SHA256),
};
const struct json_field CODE_ROWS[] = {
    ROW("folder", struct code, folder, JSON_NULLABLE),
    ROW("commit", struct code, commit, JSON_REQUIRED | JSON_NULLABLE),
    ROW_OUT("is_changed_since_commit", JSON_BOOL, put_is_changed, JSON_NULLABLE),
    ROW_LIST("files", struct code, files, n_files, FILE_ROWS, 0, .max = FILES_MAX),
    ROW_LIST("changed", struct code, changed, n_changed, FILE_ROWS, 0, .max = FILES_MAX),
};
const size_t CODE_N = ARRAY_LEN(CODE_ROWS);

/* ---- git ---- */

/* Source: git(1), git-config(1). Whatever is configured, git compares each file by all that stat(2) says of it, with the commit
   of that id. The folder follows. */
#define GIT                                                                                        \
    "git", "--no-replace-objects", "-c", "core.fsmonitor=false", "-c", "core.trustctime=true",     \
        "-c", "core.checkStat=default", "-c", "core.safecrlf=false", "-C"
#define GIT_DIFF                                                                                   \
    "diff", "--no-ext-diff", "--ignore-submodules=none", "--no-relative", "--name-only", "-z"
#define GIT_FOLDER ARRAY_LEN(((const char *const[]){GIT}))

/* What git prints; ptr NULL where it fails, or is not there. */
static int ask_git(struct arena *arena, struct clock_src clock, const char *const *argv,
                   struct str *ret, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(GIT_OUTPUT_MAX);
    int status = -1;
    *ret = STR_EMPTY;
    if (child_capture(clock, argv, GIT_DEADLINE_NS, &buf, &status, ERR_IGNORED) < 0 ||
        status != 0) {
        return 0;
    }
    if (buf.is_full) {
        return err_set(err, ERR_USAGE, "%s: git names more files than %u bytes hold",
                       argv[GIT_FOLDER], GIT_OUTPUT_MAX);
    }
    *ret = buf.len ? str_dup(arena, strbuf_str(&buf)) : STR_LIT("");
    return 0;
}

struct git_names {
    struct str *items;
    size_t n;
    bool is_known; /* git could say */
};

static int ask_names(struct arena *arena, struct clock_src clock, const char *const *argv,
                     struct git_names *ret, struct err *err)
{
    struct str text;
    struct str name;
    size_t n = 0;
    if (ask_git(arena, clock, argv, &text, err) < 0) {
        return -1;
    }
    *ret = (struct git_names){.is_known = text.ptr != NULL};
    for (size_t idx = 0; idx < text.len; idx++) {
        n += text.ptr[idx] == '\0';
    }
    ret->items = arena_array(arena, struct str, n + 1);
    while (ret->n < n && str_next(&text, '\0', &name)) {
        ret->items[ret->n++] = name;
    }
    return 0;
}

static const char *path_of(struct arena *arena, const char *folder, struct str name)
{
    return name.len && name.ptr[0] == '/' ? str_z(arena, name)
                                          : fs_join(arena, folder, str_z(arena, name));
}

static bool is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Files that git has and that are not as in that commit, or at which git was told not to look (assume-unchanged, skip-worktree):
   relative to the folder. */
static int changed_since(struct arena *arena, struct clock_src clock, const char *folder,
                         struct str commit, struct git_names *ret, struct err *err)
{
    const char *hex = str_z(arena, commit);
    const char *const diff[] = {GIT, folder, GIT_DIFF, hex, "--", NULL};
    const char *const all[] = {GIT, folder, "ls-files", "-v", "-z", "--full-name", ":/", NULL};
    const char *const prefix[] = {GIT, folder, "rev-parse", "--show-prefix", NULL};
    const char *const above[] = {GIT, folder, "rev-parse", "--show-cdup", NULL};
    struct git_names tagged, names;
    struct str inside;
    struct str up;
    if (ask_names(arena, clock, diff, &names, err) < 0 ||
        ask_names(arena, clock, all, &tagged, err) < 0 ||
        ask_git(arena, clock, prefix, &inside, err) < 0 ||
        ask_git(arena, clock, above, &up, err) < 0) {
        return -1;
    }
    inside = str_trim(inside);
    up = str_trim(up);
    *ret = (struct git_names){.items = arena_array(arena, struct str, names.n + tagged.n + 1),
                              .is_known = names.is_known && tagged.is_known};
    for (size_t idx = 0; idx < names.n + tagged.n; idx++) {
        const bool is_tagged = idx >= names.n; /* "H NAME"; H: git looks at it */
        struct str name = is_tagged ? tagged.items[idx - names.n] : names.items[idx];
        const bool is_seen = is_tagged && str_starts(name, STR_LIT("H"));
        name = str_sub(name, is_tagged ? 2 : 0, name.len);
        name = str_starts(name, inside) ? str_sub(name, inside.len, name.len)
                                        : str_printf(arena, "%.*s%.*s", STR_ARG(up), STR_ARG(name));
        /* A sparse checkout lacks some. */
        if (!is_seen && (!is_tagged || is_regular(path_of(arena, folder, name)))) {
            ret->items[ret->n++] = name;
        }
    }
    return 0;
}

int code_untracked(struct arena *arena, struct clock_src clock, const char *folder,
                   struct str **ret_names, size_t *ret_n, struct err *err)
{
    const char *const argv[] = {GIT, folder, "ls-files", "--others", "-z", NULL};
    struct git_names names;
    if (ask_names(arena, clock, argv, &names, err) < 0) {
        return -1;
    }
    *ret_names = names.items;
    *ret_n = names.n;
    return 0;
}

/* ---- noting ---- */

/* ptr NULL: there is no such file. */
static int digest_there(struct arena *arena, const char *path, struct str *ret, struct err *err)
{
    *ret = STR_EMPTY;
    return is_regular(path) ? digest_file_hex(arena, path, ret, err) : 0;
}

/* `./train.py`, `FOLDER/train.py` and `--script=train.py` name the same file; ptr NULL: the word names none. */
static struct str name_of_word(struct arena *arena, const char *folder, const char *word)
{
    const char *equals = word[0] == '-' ? strchr(word, '=') : NULL;
    struct str name = str_of(equals ? equals + 1 : word);
    struct str below = str_of(fs_join(arena, folder, ""));
    name = str_starts(name, below) ? str_sub(name, below.len, name.len) : name;
    while (str_starts(name, STR_LIT("./"))) {
        name = str_sub(name, 2, name.len);
    }
    return name.len && is_regular(path_of(arena, folder, name)) ? name : STR_EMPTY;
}

static int note_words(struct arena *arena, const struct code_opts *opts, struct code *code,
                      struct err *err)
{
    code->files = arena_array(arena, struct code_file, opts->n_words + 1);
    for (size_t idx = 0; idx < opts->n_words; idx++) {
        struct code_file *file = &code->files[code->n_files];
        struct str name = name_of_word(arena, opts->folder, opts->words[idx]);
        if (!name.ptr || STR_NAMED(code->files, code->n_files, name, name)) {
            continue;
        }
        file->name = str_dup(arena, name);
        code->n_files++;
        if (digest_there(arena, path_of(arena, opts->folder, name), &file->sha256, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int note_changed(struct arena *arena, struct clock_src clock, const char *folder,
                        struct code *code, struct err *err)
{
    struct git_names names;
    if (changed_since(arena, clock, folder, code->commit, &names, err) < 0) {
        return -1;
    }
    if (!names.is_known || names.n > FILES_MAX) {
        return err_set(err, ERR_USAGE, "%s: git diff %.*s fails, or names more than %d files",
                       folder, STR_ARG(code->commit), FILES_MAX);
    }
    code->is_changed = names.n > 0;
    code->changed = arena_array(arena, struct code_file, names.n + 1);
    for (size_t idx = 0; idx < names.n; idx++) {
        struct code_file *file = &code->changed[code->n_changed];
        if (STR_NAMED(code->files, code->n_files, name, names.items[idx])) {
            continue;
        }
        file->name = names.items[idx];
        code->n_changed++;
        if (digest_there(arena, path_of(arena, folder, file->name), &file->sha256, err) < 0) {
            return -1;
        }
    }
    return 0;
}

int code_note(struct arena *arena, struct clock_src clock, const struct code_opts *opts,
              struct code *ret, struct err *err)
{
    const char *const head[] = {GIT,    opts->folder, "rev-parse", "--is-inside-work-tree",
                                "HEAD", NULL};
    const struct str inside = STR_LIT("true\n");
    struct str said;
    struct code code = {.folder = opts->n_words ? str_of(opts->folder) : STR_EMPTY};
    if (note_words(arena, opts, &code, err) < 0 || ask_git(arena, clock, head, &said, err) < 0) {
        return -1;
    }
    code.commit =
        str_starts(said, inside) ? str_trim(str_sub(said, inside.len, said.len)) : STR_EMPTY;
    if (code.commit.ptr && note_changed(arena, clock, opts->folder, &code, err) < 0) {
        return -1;
    }
    *ret = code;
    return 0;
}

int code_load(struct arena *arena, const char *evidence, struct code *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json at;
    *ret = (struct code){.folder = STR_EMPTY};
    if (json_read_file(fs_join(arena, evidence, RUNDIR_FILES[RUNDIR_LOCAL].name), &doc, err) < 0) {
        return -1;
    }
    return !json_find(&doc.root, "command", &at)
               ? 0
               : json_decode(&at, arena, CODE_ROWS, CODE_N, ret, err);
}

/* ---- checking ---- */

struct code_difference {
    struct arena *arena;
    const char *folder;
    bool is_copy;
    struct strbuf *names;
    size_t n;
};

static void differs(struct code_difference *d, struct str name, const char *how)
{
    if (d->n++ < NAMED_MAX) {
        strbuf_printf(d->names, "%s%.*s%s", d->n > 1 ? ", " : "", STR_ARG(name), how);
    }
}

/* What lies elsewhere is in no copy of the folder. */
static bool counts(const struct code_difference *d, struct str name)
{
    return !d->is_copy || !(str_starts(name, STR_LIT("/")) || str_starts(name, STR_LIT("../")));
}

static int check_files(struct code_difference *d, const struct code_file *files, size_t n,
                       bool may_lack, struct err *err)
{
    for (size_t idx = 0; idx < n; idx++) {
        struct str hex;
        if (digest_there(d->arena, path_of(d->arena, d->folder, files[idx].name), &hex, err) < 0) {
            return -1;
        }
        bool is_same = !files[idx].sha256.ptr == !hex.ptr && str_eq(files[idx].sha256, hex);
        if (counts(d, files[idx].name) && !is_same && (hex.ptr || !may_lack)) {
            differs(d, files[idx].name, hex.ptr ? "" : " (not there)");
        }
    }
    return 0;
}

/* What git has as changed now and had not then. */
static int check_git(struct code_difference *d, struct clock_src clock, const struct code *code,
                     struct err *err)
{
    struct git_names names;
    if (changed_since(d->arena, clock, d->folder, code->commit, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        if (counts(d, names.items[idx]) &&
            !STR_NAMED(code->files, code->n_files, name, names.items[idx]) &&
            !STR_NAMED(code->changed, code->n_changed, name, names.items[idx])) {
            differs(d, names.items[idx], "");
        }
    }
    if (!names.is_known && !d->is_copy) { /* a copy need not be git's */
        differs(d, str_printf(d->arena, "commit %.*s", STR_ARG(code->commit)),
                " (git does not know it any more)");
    }
    return 0;
}

int code_check(struct arena *arena, struct clock_src clock, const struct code *code,
               const char *copy, struct err *err)
{
    CLEANUP(strbuf) struct strbuf names = STRBUF(NAMED_BYTES_MAX);
    struct code_difference d = {
        .arena = arena, .folder = copy, .is_copy = copy != NULL, .names = &names};
    if (!code->folder.ptr) {
        return 0;
    }
    if (!copy) {
        d.folder = str_z(arena, code->folder);
    }
    int rc = check_files(&d, code->files, code->n_files, false, err) < 0 ||
                     check_files(&d, code->changed, code->n_changed, d.is_copy, err) < 0 ||
                     (code->commit.ptr && check_git(&d, clock, code, err) < 0)
                 ? -1
                 : 0;
    if (rc == 0 && d.n) {
        char more[32] = "";
        if (d.n > NAMED_MAX) {
            snprintf(more, sizeof(more), " and %zu more", d.n - NAMED_MAX);
        }
        return err_set(err, ERR_INTEGRITY, "%.*s%s: not what %s when the run was made",
                       (int)names.len, names.ptr, more, d.n > 1 ? "they were" : "it was");
    }
    return rc;
}
