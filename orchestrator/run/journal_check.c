/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/journal_check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/temp.h"
#include "codec/digest.h"
#include "codec/tarball.h"
#include "evidence/rundir.h"
#include "evidence/seal.h"
#include "run/journal.h"

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
        const struct rundir_file *kind = rundir_file(file->name);
        if (file->sha256.len && !(kind && kind->is_again) &&
            check_file(arena, folder, file->name, file->sha256, err) < 0) {
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
        if (file->sha256.len) {
            (void)map_add(ret_files, file->name, &file->sha256);
        }
    }
    for (size_t idx = 0; idx < frozen->n_locked; idx++) {
        struct str *sha256 = arena_new(arena, struct str);
        *sha256 = frozen->locked[idx].sha256;
        (void)map_add(ret_files, frozen->locked[idx].name, sha256);
    }
}

/* A copy of a file, half written; a log of a lost attempt; what an attempt that was set aside left, and the one that counts has
   not. */
static bool is_left(const struct map *files, struct str name)
{
    const struct journal_file *file = map_get(files, name);
    struct str half_of = temp_of(name);
    return file ? !file->sha256.len
                : (half_of.ptr && map_get(files, half_of)) ||
                      rundir_file(name) == &RUNDIR_FILES[RUNDIR_LOST];
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
            return err_errno(err, "remove", path);
        }
    }
    for (size_t idx = folders.n; idx > 0; idx--) {
        (void)rmdir(fs_join(arena, folder, folders.items[idx - 1])); /* those with a file stay */
    }
    return 0;
}

/* Each file is as it was written, and there is no other but what sealing adds, or half of it, which the next seal removes. */
static int check_all_files(struct arena *arena, const char *folder, const struct frozen *frozen,
                           const struct journal_records *records, struct err *err)
{
    CLEANUP(map) struct map files = {0};
    struct fs_names names;
    journal_expected(frozen, records, arena, &files);
    for (size_t idx = 0; idx < files.n; idx++) {
        const struct str *sha256 = files.entries[idx].value;
        if (check_file(arena, folder, files.entries[idx].key, *sha256, err) < 0) {
            return -1;
        }
    }
    if (fs_walk(arena, folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str name = str_of(names.items[idx]);
        if (!map_get(&files, name) && !seal_makes(name) && !seal_makes(temp_of(name))) {
            return err_set(err, ERR_INTEGRITY, "%s/%s: added: the run's journal has no such file",
                           folder, names.items[idx]);
        }
    }
    return 0;
}

/* ---- what the records say ---- */

struct attempts { /* of one repeat */
    int64_t last;
    const struct journal_record *finished, *parsed; /* of the last, or NULL */
};

struct checked_journal {
    const struct derived *derived;
    struct attempts *attempts;            /* as result_repeat_at */
    const struct journal_record **judged; /* by cell */
    const struct journal_record *result;
};

/* Today's rules may judge otherwise than those of the run, of whose result the journal has the digest. */
static bool is_verdict(const struct checked_journal *c, struct str verdict, const char *derived)
{
    return str_eq_z(verdict, derived) || c->derived->discrepancies.n_values > 0;
}

static const char *note_attempt(struct attempts *attempts, const struct journal_record *record)
{
    if (record->state == J_PARSED) {
        attempts->parsed = record;
        return NULL;
    }
    if (record->state == J_SET_ASIDE) {
        attempts->finished = attempts->parsed = NULL;
        return NULL;
    }
    if (attempts->finished) {
        return "an attempt after the one that counts";
    }
    if (record->attempt != attempts->last + (record->state == J_STARTED)) {
        return "an attempt that does not follow the one before";
    }
    attempts->last = record->attempt;
    attempts->finished = record->state == J_FINISHED ? record : NULL;
    return NULL;
}

/* What the evidence does not hold to; NULL: nothing. */
static const char *note_record(struct checked_journal *c, const struct journal_record *record)
{
    const struct run_result *result = &c->derived->result;
    const struct cell_result *cell = result->cells;
    while (cell < result->cells + result->n_cells && !str_eq(cell->of_case->id, record->case_id)) {
        cell++;
    }
    bool is_case = cell < result->cells + result->n_cells;
    if (record->repeat > 0) {
        return !is_case || (size_t)record->repeat > cell->n_repeats
                   ? "a repeat that is not in the plan"
                   : note_attempt(&c->attempts[result_repeat_at(&c->derived->frozen.plan,
                                                                cell->step, record->repeat)],
                                  record);
    }
    c->result = record->state == J_RESULT ? record : c->result;
    if (record->state == J_JUDGED && is_case) {
        c->judged[cell - result->cells] = record;
    }
    return record->state == J_PLANNED && !str_eq(record->note, c->derived->frozen.report_sha256)
               ? "another report"
           : record->state == J_JUDGED && !is_case ? "another case"
                                                   : NULL;
}

/* Its attempt that counts ended as the journal has it. */
static const char *check_repeat(const struct checked_journal *c, const struct attempts *attempts,
                                const struct repeat_result *repeat)
{
    const struct journal_record *end = attempts->finished;
    const struct outcome_record *outcome = &repeat->outcome;
    if (!end) {
        return "a repeat without an end";
    }
    if (end->attempt != outcome->attempt || end->exit_status != outcome->exit_status ||
        !str_eq_z(end->outcome, OUTCOME_NAMES[outcome->outcome]) ||
        !str_eq(end->log_sha256, outcome->log_sha256) || end->log_bytes != outcome->log_bytes) {
        return "another attempt, end, exit status or log";
    }
    return !attempts->parsed ||
                   is_verdict(c, attempts->parsed->verdict, PARSE_VERDICT_NAMES[repeat->parse])
               ? NULL
               : "another verdict on a log";
}

static int check_records(struct arena *arena, const char *folder, const struct derived *derived,
                         const struct journal_records *records, struct err *err)
{
    struct checked_journal c = {
        .derived = derived,
        .judged = arena_array(arena, const struct journal_record *, derived->result.n_cells + 1),
        .attempts =
            arena_array(arena, struct attempts, result_n_repeats(&derived->frozen.plan) + 1)};
    const char *why = records->n && records->items[0].state == J_PLANNED ? NULL : "no plan";
    struct str hex;
    for (size_t idx = 0; idx < records->n && !why; idx++) {
        why = note_record(&c, &records->items[idx]);
    }
    for (size_t cell = 0; cell < derived->result.n_cells; cell++) {
        const struct cell_result *at = &derived->result.cells[cell];
        const struct journal_record *judged = c.judged[cell];
        if (!why && !(judged && is_verdict(&c, judged->verdict, RUN_VERDICT_NAMES[at->verdict]))) {
            why = "another verdict";
        }
        for (size_t idx = 0; idx < at->n_repeats && !why; idx++) {
            size_t repeat = result_repeat_at(&derived->frozen.plan, at->step, (int64_t)idx + 1);
            why = check_repeat(&c, &c.attempts[repeat], &at->repeats[idx]);
        }
    }
    if (digest_file_hex(arena, fs_join(arena, folder, RUNDIR_FILES[RUNDIR_RESULT].name), &hex,
                        err) < 0) {
        return -1;
    }
    if (!why && (!c.result || !str_eq(c.result->note, hex))) {
        why = "no record of this result.json";
    }
    return why ? err_set(err, ERR_INTEGRITY,
                         "%s: its journal has %s, which the evidence does not hold to", folder, why)
               : 0;
}

/* ---- the run that a path is of ---- */

/* PATH or the folder it lies in is named by a run, or it is "evidence" next to a journal; then the id is empty. */
static bool find_run(struct arena *arena, const char *path, struct rundir *ret_dir)
{
    CLEANUP(free) char *whole = realpath(path, NULL);
    char *slash = whole ? strrchr(whole, '/') : NULL;
    bool is_evidence = slash && strcmp(slash, "/evidence") == 0;
    if (slash && !run_id_is_valid(str_of(slash + 1))) {
        *slash = '\0';
        slash = strrchr(whole, '/');
    }
    if (!slash) {
        return false;
    }
    struct str id = run_id_is_valid(str_of(slash + 1)) ? str_of(slash + 1) : STR_LIT("");
    rundir_in(arena, arena_printf(arena, "%s", whole), id, ret_dir);
    return id.len || (is_evidence && fs_exists(ret_dir->journal));
}

/* The run that a path names, links or not: its last part, or the one before; else empty. */
static struct str called_by(const char *path)
{
    struct str rest = str_of(path);
    for (int part = 0; part < 2; part++) {
        rest = str_rtrim(rest, 0, "/");
        struct str folder = str_rcut(rest, 0, "/"), name = str_sub(rest, folder.len, rest.len);
        if (run_id_is_valid(name)) {
            return name;
        }
        rest = folder;
    }
    return STR_EMPTY;
}

/* The archive in a run's folder must be the one that was sealed there last; one that is not yet recorded is of a run that is
   not over. */
static int check_archive(const struct rundir *dir, const struct journal_records *records,
                         struct err *err)
{
    struct str sealed = STR_EMPTY;
    uint8_t sha256[SHA256_BYTES];
    for (size_t idx = 0; idx < records->n; idx++) {
        sealed = records->items[idx].state == J_SEALED ? records->items[idx].note : sealed;
    }
    if (!sealed.ptr || !fs_exists(dir->archive)) {
        return 0;
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

int run_check(const char *path, const struct run_claim *claim, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct journal_records records = {0};
    struct str id = called_by(path);
    struct rundir dir;
    if (id.len && !str_eq(id, claim->run_id)) { /* a link to a run does not make a second run */
        return err_set(err, ERR_INTEGRITY, "%s: is run %.*s", path, STR_ARG(claim->run_id));
    }
    if (!find_run(&arena, path, &dir)) {
        return 0;
    }
    if (dir.id.len && !str_eq(dir.id, claim->run_id)) {
        return err_set(err, ERR_INTEGRITY, "%s: lies in the folder of run %.*s, and is run %.*s",
                       path, STR_ARG(dir.id), STR_ARG(claim->run_id));
    }
    if (journal_read(&arena, dir.journal, &records, err) < 0) {
        return -1;
    }
    if (claim->derived) {
        return check_records(&arena, path, claim->derived, &records, err) < 0
                   ? -1
                   : check_all_files(&arena, path, &claim->derived->frozen, &records, err);
    }
    bool is_signed_here = !claim->journal.ptr;
    for (size_t idx = 0; idx < records.n && !is_signed_here; idx++) {
        is_signed_here = str_eq(records.items[idx].check, claim->journal);
    }
    if (!is_signed_here) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: not the journal of what was sealed: its last result has check %.*s, "
                       "the statement names %.*s",
                       dir.journal, STR_ARG(records.result), STR_ARG(claim->journal));
    }
    return check_archive(&dir, &records, err);
}

int run_derive(struct arena *arena, const char *folder, struct derived *ret_derived,
               struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (derive_folder(arena, folder, &derived, err) < 0 ||
        run_check(folder, &(struct run_claim){.run_id = derived.frozen.run_id, .derived = &derived},
                  err) < 0) {
        return -1;
    }
    *ret_derived = derived;
    derived = (struct derived){0};
    return 0;
}

int run_check_folder(const char *folder, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(derived) struct derived derived = {0};
    struct rundir dir;
    if (!fs_is_dir(folder) || !find_run(&arena, folder, &dir)) {
        return 0;
    }
    return fs_exists(fs_join(&arena, folder, RUNDIR_FILES[RUNDIR_RESULT].name))
               ? run_derive(&arena, folder, &derived, err)
               : err_set(err, ERR_INTEGRITY,
                         "%s: no result.json; the run is not over (reperf status says how far it "
                         "is)",
                         folder);
}

/* ---- sealing ---- */

int run_note_sealed(const char *archive, const char *sha256, bool is_signed, struct clock_src clock,
                    struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
    CLEANUP(fd) int lock = -1;
    CLEANUP(free) char *whole = realpath(archive, NULL);
    struct journal_records records = {0};
    struct rundir dir;
    const struct journal_record record = {.state = J_SEALED,
                                          .verdict = str_of(is_signed ? "signed" : "unsigned"),
                                          .note = str_of(sha256)};
    if (!whole || !find_run(&arena, whole, &dir) || strcmp(whole, dir.archive) != 0 ||
        !fs_exists(dir.journal)) {
        return 0;
    }
    return rundir_lock(&dir, &lock, err) < 0 ||
                   journal_open(&journal, &arena, dir.journal, clock, &records, err) < 0 ||
                   journal_append(&journal, &record, err) < 0
               ? -1
               : 0;
}

int run_journal_result(struct arena *arena, const char *folder, struct str *ret_result,
                       struct err *err)
{
    struct journal_records records = {0};
    struct rundir dir;
    if (find_run(arena, folder, &dir) && journal_read(arena, dir.journal, &records, err) < 0) {
        return -1;
    }
    *ret_result = records.result;
    return 0;
}
