/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/journal_check.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/tarball.h"
#include "evidence/evidence.h"
#include "evidence/rundir.h"
#include "evidence/seal.h"
#include "run/journal.h"
#include "sys/tree.h"

struct attempts { /* of one repeat, by the journal */
    int64_t last;
    bool is_finished;
};

struct checked_record {
    struct arena *arena;
    const char *path; /* the journal's */
    const char *folder;
    const struct derived *derived;
    struct attempts **attempts; /* by cell, then by repeat */
    size_t n_judged;
    struct str result; /* hex; the last that was written down */
};

static int wrong(const struct checked_record *c, const struct journal_record *record,
                 const char *what, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "%s:%lld: %s, which the evidence does not hold to", c->path,
                   (long long)record->seq, what);
}

/* Today's rules judge it otherwise than those of the run did, of whose result the journal has the digest. */
static bool is_judged_anew(const struct checked_record *c)
{
    return c->derived->discrepancies.n_values > 0;
}

static const struct cell_result *cell_of(const struct checked_record *c,
                                         const struct journal_record *record, size_t *ret_idx)
{
    for (size_t idx = 0; idx < c->derived->result.n_cells; idx++) {
        if (str_eq(c->derived->result.cells[idx].of_case->id, record->case_id)) {
            *ret_idx = idx;
            return &c->derived->result.cells[idx];
        }
    }
    return NULL;
}

static int check_finished(const struct checked_record *c, const struct journal_record *record,
                          const struct repeat_result *repeat, struct attempts *attempts,
                          struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    if (attempts->is_finished || record->attempt != attempts->last) {
        return wrong(c, record, "an attempt that was not the one under way", err);
    }
    attempts->is_finished = true;
    if (record->attempt != outcome->attempt || record->exit_status != outcome->exit_status ||
        !str_eq_z(record->outcome, outcome_name(outcome->outcome))) {
        return wrong(c, record, "another attempt, end or exit status", err);
    }
    if (!str_eq(record->log_sha256, outcome->log_sha256) ||
        record->log_bytes != outcome->log_bytes) {
        return wrong(c, record, "a log of another SHA-256", err);
    }
    return 0;
}

static int check_of_repeat(struct checked_record *c, const struct journal_record *record,
                           struct err *err)
{
    size_t cell_idx = 0;
    const struct cell_result *cell = cell_of(c, record, &cell_idx);
    struct attempts *attempts;
    if (!cell || record->repeat < 1 || (size_t)record->repeat > cell->n_repeats) {
        return wrong(c, record, "a repeat that is not in the plan", err);
    }
    attempts = &c->attempts[cell_idx][record->repeat - 1];
    if (record->state == J_FINISHED) {
        return check_finished(c, record, &cell->repeats[record->repeat - 1], attempts, err);
    }
    if (record->state == J_PARSED) {
        const char *parsed = parse_verdict_name(cell->repeats[record->repeat - 1].parse);
        return str_eq_z(record->verdict, parsed) || is_judged_anew(c)
                   ? 0
                   : wrong(c, record, "another verdict on the log", err);
    }
    if (record->state == J_STARTED &&
        (attempts->is_finished || record->attempt != attempts->last + 1)) {
        return wrong(c, record, "an attempt that does not follow the one before", err);
    }
    attempts->last = record->attempt;
    return 0;
}

static int check_record(struct checked_record *c, const struct journal_record *record,
                        struct err *err)
{
    size_t idx = 0;
    const struct cell_result *cell;
    if (record->repeat > 0) {
        return check_of_repeat(c, record, err);
    }
    if (record->state == J_PLANNED && !str_eq(record->note, c->derived->frozen.report_sha256)) {
        return wrong(c, record, "another report", err);
    }
    if (record->state == J_RESULT) {
        c->result = record->note;
    }
    if (record->state != J_JUDGED) {
        return 0;
    }
    cell = cell_of(c, record, &idx);
    c->n_judged++;
    return cell && (str_eq_z(record->verdict, run_verdict_name(cell->verdict)) || is_judged_anew(c))
               ? 0
               : wrong(c, record, "another verdict", err);
}

/* ---- files ---- */

static int check_file(struct arena *arena, const char *folder, struct str name, struct str sha256,
                      struct err *err)
{
    const char *path = fs_join(arena, folder, str_z(arena, name));
    struct str hex;
    if (digest_file_hex(arena, path, &hex, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    return str_eq(hex, sha256)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: changed since the run wrote it: SHA-256 was %.*s (journal), is %.*s",
                         path, STR_ARG(sha256), STR_ARG(hex));
}

int journal_check_files(struct arena *arena, const char *folder, const struct map *files,
                        struct err *err)
{
    for (size_t idx = 0; idx < files->n; idx++) {
        const struct journal_file *file = files->entries[idx].value;
        bool is_again = str_starts(file->name, STR_LIT("logs/commands/")) ||
                        str_starts(file->name, STR_LIT("series/")) ||
                        str_eq_z(file->name, EVIDENCE_RESULT);
        if (!is_again && check_file(arena, folder, file->name, file->sha256, err) < 0) {
            return -1;
        }
    }
    return 0;
}

void journal_expected(const struct frozen *frozen, const struct journal_records *records,
                      struct arena *arena, struct map *ret_files)
{
    CLEANUP(map) struct map files = {0};
    journal_files(records, &files);
    for (size_t idx = 0; idx < files.n; idx++) {
        struct journal_file *file = files.entries[idx].value;
        (void)map_add(ret_files, file->name, &file->sha256);
    }
    for (size_t idx = 0; idx < frozen->n_locked; idx++) {
        struct str *sha256 = arena_new(arena, struct str);
        *sha256 = frozen->locked[idx].sha256;
        (void)map_add(ret_files, frozen->locked[idx].name, sha256);
    }
}

/* fs_write_atomic writes NAME.XXXXXX first. */
static bool is_left(const struct map *files, struct str name)
{
    size_t len = name.len > 7 ? name.len - 7 : 0;
    bool is_copy = len && name.ptr[len] == '.' && map_get(files, str_sub(name, 0, len));
    return !map_get(files, name) && (is_copy || str_starts(name, STR_LIT("logs/lost/")));
}

int run_tidy(struct arena *arena, const char *folder, const struct map *files, struct err *err)
{
    struct fs_names names, folders, others;
    if (fs_walk_all(arena, folder, &names, &folders, &others, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        const char *path = fs_join(arena, folder, names.items[idx]);
        if (is_left(files, str_of(names.items[idx])) && unlink(path) < 0) {
            return err_set(err, err_code_of_errno(errno), "remove %s: %s", path,
                           err_errno_text(errno));
        }
    }
    for (size_t idx = folders.n; idx > 0; idx--) {
        (void)rmdir(fs_join(arena, folder, folders.items[idx - 1])); /* those with a file stay */
    }
    return 0;
}

/* Each file is as it was written, and there is no other but what sealing adds. */
static int check_all_files(const struct checked_record *c, const struct journal_records *records,
                           struct err *err)
{
    CLEANUP(map) struct map files = {0};
    struct fs_names names;
    bool is_half; /* what a seal that was killed left: the next one removes it */
    journal_expected(&c->derived->frozen, records, c->arena, &files);
    for (size_t idx = 0; idx < files.n; idx++) {
        const struct str *sha256 = files.entries[idx].value;
        if (check_file(c->arena, c->folder, files.entries[idx].key, *sha256, err) < 0) {
            return -1;
        }
    }
    if (fs_walk(c->arena, c->folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str name = str_of(names.items[idx]);
        if (!map_get(&files, name) && !seal_makes(name, &is_half)) {
            return err_set(err, ERR_INTEGRITY, "%s: added: %s has no such file", names.items[idx],
                           c->path);
        }
    }
    return 0;
}

/* ---- the whole ---- */

/* Each repeat ended, each case was judged, and result.json is the one that was written. */
static int check_end(const struct checked_record *c, struct err *err)
{
    struct str hex;
    for (size_t cell = 0; cell < c->derived->result.n_cells; cell++) {
        for (size_t idx = 0; idx < c->derived->result.cells[cell].n_repeats; idx++) {
            if (!c->attempts[cell][idx].is_finished) {
                return err_set(err, ERR_INTEGRITY,
                               "%s: has no end of %.*s repeat %zu, which the evidence has", c->path,
                               STR_ARG(c->derived->result.cells[cell].of_case->id), idx + 1);
            }
        }
    }
    if (digest_file_hex(c->arena, fs_join(c->arena, c->folder, EVIDENCE_RESULT), &hex, err) < 0) {
        return -1;
    }
    if (c->n_judged < c->derived->result.n_cells || !str_eq(c->result, hex)) {
        return err_set(err, ERR_INTEGRITY, "%s: no record of this result.json, SHA-256 %.*s",
                       c->path, STR_ARG(hex));
    }
    return 0;
}

static int check_journal(struct checked_record *c, struct err *err)
{
    const struct run_result *result = &c->derived->result;
    struct journal_records records = {0};
    if (journal_read(c->arena, c->path, &records, err) < 0) {
        return -1;
    }
    c->attempts = arena_array(c->arena, struct attempts *, result->n_cells + 1);
    for (size_t idx = 0; idx < result->n_cells; idx++) {
        c->attempts[idx] = arena_array(c->arena, struct attempts, result->cells[idx].n_repeats + 1);
    }
    if (records.n == 0 || records.items[0].state != J_PLANNED) {
        return err_set(err, ERR_INTEGRITY, "%s: expected it to begin with the plan", c->path);
    }
    for (size_t idx = 0; idx < records.n; idx++) {
        if (check_record(c, &records.items[idx], err) < 0) {
            return -1;
        }
    }
    return check_end(c, err) < 0 ? -1 : check_all_files(c, &records, err);
}

/* False where folder is not the evidence of a run's folder. ret_id: of the run whose folder it is, by its name; else empty. */
static bool find_journal(struct arena *arena, const char *folder, const char **ret_path,
                         struct str *ret_id)
{
    CLEANUP(free) char *whole = realpath(folder, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (!slash || strcmp(slash, "/evidence") != 0) {
        return false;
    }
    *slash = '\0';
    *ret_path = fs_join(arena, whole, "journal.jsonl");
    slash = strrchr(whole, '/');
    *ret_id = str_dup(arena, str_of(slash ? slash + 1 : ""));
    ret_id->len = run_id_is_valid(*ret_id) ? ret_id->len : 0;
    return ret_id->len || fs_exists(*ret_path);
}

/* The run that a path names, links or not: its last part, or the one before; else empty. */
static struct str called_by(const char *path)
{
    struct str rest = str_of(path);
    for (int part = 0; part < 2; part++) {
        size_t from;
        while (rest.len && rest.ptr[rest.len - 1] == '/') {
            rest.len--;
        }
        from = rest.len;
        while (from > 0 && rest.ptr[from - 1] != '/') {
            from--;
        }
        if (run_id_is_valid(str_sub(rest, from, rest.len - from))) {
            return str_sub(rest, from, rest.len - from);
        }
        rest.len = from;
    }
    return STR_EMPTY;
}

/* A link from one run's folder to another's does not make a second run. */
static int check_called(const char *path, struct str run_id, struct err *err)
{
    struct str id = called_by(path);
    return !id.len || str_eq(id, run_id)
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s: is run %.*s", path, STR_ARG(run_id));
}

int journal_check(struct arena *arena, const char *folder, const struct derived *derived,
                  struct err *err)
{
    struct checked_record c = {.arena = arena, .folder = folder, .derived = derived};
    struct str id;
    if (check_called(folder, derived->frozen.run_id, err) < 0) {
        return -1;
    }
    if (!find_journal(arena, folder, &c.path, &id)) {
        return 0;
    }
    if (id.len && !str_eq(id, derived->frozen.run_id)) {
        return err_set(err, ERR_INTEGRITY, "%s: the evidence is run %.*s", folder,
                       STR_ARG(derived->frozen.run_id));
    }
    return check_journal(&c, err);
}

int run_check_folder(const char *folder, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(derived) struct derived derived = {0};
    const char *path;
    struct str id;
    return find_journal(&arena, folder, &path, &id) ? run_derive(&arena, folder, &derived, err) : 0;
}

/* The run's folder and its name, if path is that folder or lies in it; false: in no run's folder. */
static bool find_place(struct arena *arena, const char *path, const char **ret_folder,
                       struct str *ret_id)
{
    CLEANUP(free) char *whole = realpath(path, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    if (slash && !run_id_is_valid(str_of(slash + 1))) {
        *slash = '\0';
        slash = strrchr(whole, '/');
    }
    if (!slash || !run_id_is_valid(str_of(slash + 1))) {
        return false;
    }
    *ret_folder = arena_printf(arena, "%s", whole);
    *ret_id = str_dup(arena, str_of(slash + 1));
    return true;
}

/* The archive in a run's folder must be the one that was sealed there last. */
static int check_archive(struct arena *arena, const struct rundir *dir, struct err *err)
{
    struct journal_records records = {0};
    struct str sealed = STR_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    if (!fs_exists(dir->archive)) {
        return 0;
    }
    if (journal_read(arena, dir->journal, &records, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < records.n; idx++) {
        sealed = records.items[idx].state == J_SEALED ? records.items[idx].note : sealed;
    }
    if (!sealed.ptr) {
        return 0; /* written, but not yet recorded: the run is not over */
    }
    if (tarball_container(dir->archive, sha256, err) < 0) {
        return -1;
    }
    return str_eq_z(sealed, sha256_hex_of(sha256).text)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: not the archive that was sealed, by %s; reperf "
                         "seal --force makes it again",
                         dir->archive, dir->journal);
}

int run_check_place(const char *path, struct str run_id, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *folder;
    struct rundir dir;
    struct str id;
    if (check_called(path, run_id, err) < 0) {
        return -1;
    }
    if (!find_place(&arena, path, &folder, &id)) {
        return 0;
    }
    if (!str_eq(id, run_id)) {
        return err_set(err, ERR_INTEGRITY, "lies in the folder of run %.*s, and is run %.*s",
                       STR_ARG(id), STR_ARG(run_id));
    }
    rundir_in(&arena, folder, id, &dir);
    return check_archive(&arena, &dir, err);
}

/* False: archive is not what the run's own folder keeps. */
static bool is_own_archive(struct arena *arena, const char *archive, struct rundir *ret_dir)
{
    CLEANUP(free) char *whole = realpath(archive, NULL);
    const char *folder;
    struct str id;
    if (!whole || !find_place(arena, whole, &folder, &id)) {
        return false;
    }
    rundir_in(arena, folder, id, ret_dir);
    return strcmp(whole, ret_dir->archive) == 0 && fs_exists(ret_dir->journal);
}

int run_note_sealed(const char *archive, const char *sha256, bool is_signed, struct clock_src clock,
                    struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
    CLEANUP(fd) int lock = -1;
    struct journal_records records = {0};
    struct rundir dir;
    const struct journal_record record = {.state = J_SEALED,
                                          .verdict = str_of(is_signed ? "signed" : "unsigned"),
                                          .note = str_of(sha256)};
    if (!is_own_archive(&arena, archive, &dir)) {
        return 0;
    }
    return rundir_lock(&dir, &lock, err) < 0 ||
                   journal_open(&journal, &arena, dir.journal, clock, &records, err) < 0 ||
                   journal_append(&journal, &record, err) < 0
               ? -1
               : 0;
}

int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
               struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (derive_folder(arena, folder, &derived, err) < 0 ||
        journal_check(arena, folder, &derived, err) < 0) {
        return -1;
    }
    *ret_derived = derived;
    derived = (struct derived){0};
    return 0;
}

int run_journal_result(struct arena *arena, const char *folder, struct str *ret_result,
                       struct err *err)
{
    struct journal_records records = {0};
    const char *path;
    struct str id;
    if (find_journal(arena, folder, &path, &id) && journal_read(arena, path, &records, err) < 0) {
        return -1;
    }
    *ret_result = records.result;
    return 0;
}

int run_check_signed(const char *path, struct str in_statement, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct journal_records records = {0};
    const char *journal, *folder;
    struct rundir dir;
    struct str id;
    if (find_place(&arena, path, &folder, &id)) {
        rundir_in(&arena, folder, id, &dir);
        journal = dir.journal;
    } else if (!find_journal(&arena, path, &journal, &id)) {
        return 0;
    }
    if (!in_statement.ptr) { /* sealed before the journal was signed */
        return 0;
    }
    if (journal_read(&arena, journal, &records, err) < 0) {
        return -1;
    }
    return str_eq(records.result, in_statement)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: not the journal of what was sealed: its last result has check %.*s, "
                         "the statement names %.*s",
                         journal, STR_ARG(records.result), STR_ARG(in_statement));
}
