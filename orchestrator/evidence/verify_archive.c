/* SPDX-License-Identifier: Apache-2.0 */
/* Checks an archive in one pass over its bytes, then what its members say, then what follows from them.

     bytes --> tar members --> SHA256SUMS, crate, statements --> signatures --> derivation --> signer

   Each arrow is a stage that only begins when the one before it holds, so that the first thing that is wrong is what is named.

   (1) Every byte counts: the closing covers the container, each member is hashed as it passes, and nothing may follow or be
       left out.
   (2) No text is believed. What an archive says about itself (sums, crate, statements) is made again from its files and compared.
   (3) Bytes come before signatures: an archive that was changed is refused for that, whatever key is given.
   (4) Numbers are derived from the raw logs as today's program judges, whatever made the archive. A difference is no failure
       here: the caller is told which there are, of values and of words.
   (5) The signer comes last and is the only one that can be waived (--unsigned): it says who vouches, not what is true.
   A folder goes the same way without the container. */
#include "base/base.h"

#include "evidence/verify_archive.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/progress.h"
#include "base/stop.h"
#include "base/temp.h"
#include "codec/tarball.h"

/* The members that are read in addition to being hashed. */
enum kept { KEPT_RESULT, KEPT_CRATE, KEPT_SUMS, KEPT_PROVENANCE, KEPT_STATEMENT, KEPT_COUNT };

static const struct {
    const char *name;
    size_t max_bytes;
} KEPT[KEPT_COUNT] = {
    [KEPT_RESULT] = {EVIDENCE_RESULT, JSON_TEXT_MAX},
    [KEPT_CRATE] = {EVIDENCE_CRATE, JSON_TEXT_MAX},
    [KEPT_SUMS] = {USTAR_SUMS, EVIDENCE_SUMS_MAX},
    [KEPT_PROVENANCE] = {USTAR_PROVENANCE, JSON_TEXT_MAX},
    [KEPT_STATEMENT] = {USTAR_STATEMENT, JSON_TEXT_MAX},
};

struct checking {
    const struct verify_opts *opts;
    struct arena *arena;
    struct verify_info *info;
    struct digest digest;
    struct evidence_files files; /* on the heap */
    struct strbuf kept[KEPT_COUNT];
    bool is_kept[KEPT_COUNT];
    struct strbuf *keep; /* of the member being read, or NULL */
    struct ustar_names names;
    const char *folder;             /* that gets an archive's files; NULL: none */
    struct tarball_closing closing; /* archives */
    struct progress progress;
};

/* --- members ---------------------------------------------------------------------------------- */

static int begin_member(struct checking *c, struct str name, uint64_t size_bytes, struct err *err)
{
    struct evidence_file file = {.name = str_dup(c->arena, name), .size_bytes = size_bytes};
    const typeof(KEPT[0]) *kept = Z_NAMED(KEPT, KEPT_COUNT, name, name);
    c->keep = NULL;
    if (stop_is_asked()) {
        return err_set(err, ERR_INTERRUPTED, "interrupted");
    }
    if (ustar_names_add(&c->names, name, size_bytes, err) < 0) {
        return err_wrap(err, "%s", c->opts->path);
    }
    if (kept && size_bytes > kept->max_bytes) {
        return err_set(err, ERR_INTEGRITY, "%s: %" PRIu64 " bytes, expected at most %zu",
                       kept->name, size_bytes, kept->max_bytes);
    }
    if (kept) {
        c->keep = &c->kept[kept - KEPT];
        c->is_kept[kept - KEPT] = true;
    }
    VEC_PUSH(&c->files, file);
    digest_start(&c->digest, DIGEST_SHA256);
    return 0;
}

static void take_data(struct checking *c, const void *ptr, size_t len)
{
    if (c->keep) {
        strbuf_add(c->keep, ptr, len);
    }
    digest_update(&c->digest, ptr, len);
}

static void end_member(struct checking *c, const uint8_t *sha256)
{
    struct evidence_file *file = &c->files.items[c->files.n - 1];
    memcpy(file->sha256, sha256, SHA256_BYTES);
    c->info->n_files++;
    c->info->file_bytes += file->size_bytes;
}

/* --- an archive ------------------------------------------------------------------------------- */

/* The folder is new and ours, names are checked and unique: O_EXCL makes sure once more. */
static int create(const char *path, int *ret_fd, struct err *err)
{
    if (fs_scratch_above(path, err) < 0) {
        return -1;
    }
    *ret_fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    return *ret_fd < 0 ? err_errno(err, "create", path) : 0;
}

static int read_member(struct checking *c, struct unpack *unpack, const struct unpack_entry *member,
                       struct err *err)
{
    CLEANUP(fd) int fd = -1;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = c->folder ? fs_join(&arena, c->folder, str_z(&arena, member->path)) : NULL;
    const void *ptr;
    size_t len = 1;
    if (begin_member(c, member->path, member->size_bytes, err) < 0 ||
        (path && create(path, &fd, err) < 0)) {
        return -1;
    }
    while (len > 0) {
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (unpack_data(unpack, &ptr, &len, err) < 0 ||
            (path && fs_write_all(fd, ptr, len, path, err) < 0)) {
            return -1;
        }
        take_data(c, ptr, len);
    }
    end_member(c, digest_finish(&c->digest).sha256);
    /* Network file systems report a full disk here. */
    return path && close(take_fd(&fd)) < 0 ? err_errno(err, "close", path) : 0;
}

static int read_members(struct checking *c, struct tarball_source *source, struct err *err)
{
    struct unpack_entry member;
    bool has = true;
    while (has) {
        if (tarball_next(source, &member, &has, err) < 0 ||
            (has && read_member(c, source->unpack, &member, err) < 0)) {
            return -1;
        }
        if (c->opts->wants_progress) {
            progress_set(&c->progress, source->read_bytes);
        }
    }
    return 0;
}

static int read_archive(struct checking *c, struct err *err)
{
    CLEANUP(tarball_source) struct tarball_source source = TARBALL_SOURCE_EMPTY;
    if (tarball_open(c->opts->path, &source, err) < 0) {
        return -1;
    }
    c->closing = source.closing;
    if (c->opts->wants_progress) {
        progress_start(&c->progress, c->opts->clock, "verify", "bytes", source.container_bytes);
    }
    int result = read_members(c, &source, err);
    if (c->opts->wants_progress) {
        progress_end(&c->progress);
    }
    return result;
}

/* --- a folder --------------------------------------------------------------------------------- */

static int by_order(const void *a, const void *b)
{
    return ustar_order(str_of(*(char *const *)a), str_of(*(char *const *)b));
}

static int read_file(struct checking *c, const char *name, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = fs_join(c->arena, c->opts->path, name);
    struct digest_value value;
    struct str text;
    struct stat info;
    if (lstat(path, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected a regular file", path);
    }
    if (begin_member(c, str_of(name), (uint64_t)info.st_size, err) < 0) {
        return -1;
    }
    if (c->keep) {
        if (fs_read(&arena, path, c->keep->cap_bytes, &text, err) < 0) {
            return -1;
        }
        take_data(c, text.ptr, text.len);
        value = digest_finish(&c->digest);
    } else if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    end_member(c, value.sha256);
    return 0;
}

static int read_folder(struct checking *c, struct err *err)
{
    struct fs_names names;
    int result = 0;
    if (fs_walk(c->arena, c->opts->path, &names, err) < 0) {
        return -1;
    }
    VEC_SORT(&names, by_order);
    for (size_t idx = 0; result == 0 && idx < names.n; idx++) {
        result = read_file(c, names.items[idx], err);
    }
    return result;
}

/* --- what the members say ----------------------------------------------------------------------- */

static int read_envelopes(struct checking *c, struct evidence_facts *facts,
                          struct evidence_envelope envelopes[2], struct err *err)
{
    const enum evidence_kind kinds[2] = {EVIDENCE_TEST_RESULT, EVIDENCE_PROVENANCE};
    const enum kept places[2] = {KEPT_STATEMENT, KEPT_PROVENANCE};
    for (size_t idx = 0; idx < 2; idx++) {
        struct str text = strbuf_str(&c->kept[places[idx]]);
        if (evidence_envelope_read(c->arena, text, KEPT[places[idx]].name, &envelopes[idx], err) <
                0 ||
            evidence_statement_check(c->arena, envelopes[idx].payload, kinds[idx], facts, &c->files,
                                     err) < 0) {
            return -1;
        }
    }
    if (envelopes[0].is_signed != envelopes[1].is_signed ||
        (!c->info->is_folder && envelopes[0].is_signed != c->closing.is_signed) ||
        strcmp(envelopes[0].key_id, envelopes[1].key_id) != 0) {
        return err_set(err, ERR_INTEGRITY, "one part is signed, another is not, or by another key");
    }
    return 0;
}

static int check_envelopes(const struct evidence_envelope envelopes[2], const struct sign_key *key,
                           struct err *err)
{
    for (size_t idx = 0; idx < 2; idx++) {
        if (evidence_envelope_check(&envelopes[idx], key, err) < 0) {
            return err_wrap(err, "%s", idx == 0 ? USTAR_STATEMENT : USTAR_PROVENANCE);
        }
    }
    return 0;
}

/* (3) */
static int check_signatures(struct checking *c, const struct evidence_envelope envelopes[2],
                            struct err *err)
{
    CLEANUP(sign_key) struct sign_key named = SIGN_KEY_EMPTY;
    const struct sign_key *key = c->opts->key;
    if (!envelopes[0].is_signed) {
        return key ? err_set(err, ERR_AUTH, "not signed, expected a signature by key %.16s",
                             key->id)
                   : 0;
    }
    memcpy(c->info->key_id, envelopes[0].key_id, SIGN_KEY_ID_SIZE);
    c->info->signer = VERIFY_SIGNER_UNVERIFIED;
    if (!c->info->is_folder) {
        if (sign_from_raw(c->closing.public_raw, &named, err) < 0 ||
            check_envelopes(envelopes, &named, err) < 0) {
            err->code = ERR_INTEGRITY;
            return -1;
        }
        memcpy(c->info->key_id, named.id, SIGN_KEY_ID_SIZE);
    }
    if (!key) {
        return 0;
    }
    if (strcmp(c->info->key_id, key->id) != 0) {
        return err_set(err, ERR_AUTH, "signed by key %.16s, expected key %.16s", c->info->key_id,
                       key->id);
    }
    if (check_envelopes(envelopes, key, err) < 0) {
        return -1;
    }
    c->info->signer = VERIFY_SIGNER_VERIFIED;
    return 0;
}

/* (2) */
static int check_members(struct checking *c, struct err *err)
{
    struct evidence_envelope envelopes[2];
    struct evidence_facts facts;
    for (size_t idx = 0; idx < KEPT_COUNT; idx++) {
        if (!c->is_kept[idx]) {
            return err_set(err, ERR_INTEGRITY,
                           "%s is missing: this is not the whole evidence of a finished run",
                           KEPT[idx].name);
        }
        ASSERT(!c->kept[idx].is_full);
    }
    if (evidence_sums_check(strbuf_str(&c->kept[KEPT_SUMS]), &c->files, err) < 0) {
        return -1;
    }
    if (evidence_facts(c->arena, strbuf_str(&c->kept[KEPT_RESULT]), EVIDENCE_RESULT, &facts, err) <
        0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    c->info->run_id = facts.run_id;
    c->info->outcome = facts.outcome;
    c->info->counts = facts.counts;
    if (evidence_crate_check(c->arena, strbuf_str(&c->kept[KEPT_CRATE]), &facts, &c->files, err) <
            0 ||
        read_envelopes(c, &facts, envelopes, err) < 0) {
        return -1;
    }
    c->info->journal = facts.journal;
    return check_signatures(c, envelopes, err);
}

/* (4) */
static int check_derived(struct checking *c, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (c->opts->is_bytes_only) {
        return 0;
    }
    if (derive_folder(c->arena, c->info->is_folder ? c->opts->path : c->folder, &derived, err) <
        0) {
        return -1;
    }
    c->info->is_derived = true;
    c->info->n_logs = derived.n_logs;
    c->info->version = derived.frozen.version;
    c->info->discrepancies = derived.discrepancies;
    return 0;
}

/* (5) */
static int check_signer_is_known(const struct checking *c, struct err *err)
{
    c->info->lacks_signer = c->info->signer != VERIFY_SIGNER_VERIFIED && !c->opts->allows_unsigned;
    if (c->info->lacks_signer) {
        return err_set(err, ERR_AUTH,
                       "signer unverified: %s; --key PUB checks who signed it, --unsigned does "
                       "without",
                       c->info->signer == VERIFY_SIGNER_NONE ? "not signed" : "no key was given");
    }
    return 0;
}

static int check(struct checking *c, struct err *err)
{
    if ((c->info->is_folder ? read_folder(c, err) : read_archive(c, err)) < 0) {
        return -1;
    }
    return check_members(c, err) < 0 || check_derived(c, err) < 0 ||
                   check_signer_is_known(c, err) < 0
               ? err_wrap(err, "%s", c->opts->path)
               : 0;
}

static int check_and_unpack(struct checking *c, const char *folder, struct err *err)
{
    ASSERT(!c->info->is_folder);
    if (mkdir(folder, 0755) < 0) {
        return err_set(err, errno == EEXIST ? ERR_USAGE : err_code_of_errno(errno), "mkdir %s: %s",
                       folder, err_errno_text(errno));
    }
    c->folder = folder;
    int result = check(c, err);
    if (result < 0) {
        fs_drop_tree(folder);
    }
    return result;
}

/* If nobody wants the files, they are unpacked to a temporary folder. */
static int check_aside(struct checking *c, struct err *err)
{
    CLEANUP(temp) struct temp *scratch = NULL;
    return temp_scratch(&scratch, err) < 0
               ? -1
               : check_and_unpack(c, fs_join(c->arena, scratch->path, "run"), err);
}

int verify_archive(struct arena *arena, const struct verify_opts *opts,
                   struct verify_info *ret_info, struct err *err)
{
    struct checking c = {.opts = opts, .arena = arena, .info = ret_info};
    *ret_info = (struct verify_info){.is_folder = fs_is_dir(opts->path)};
    for (size_t idx = 0; idx < KEPT_COUNT; idx++) {
        strbuf_init(&c.kept[idx], KEPT[idx].max_bytes + 1);
    }
    int result = opts->unpack_to ? check_and_unpack(&c, opts->unpack_to, err)
                 : opts->is_bytes_only || ret_info->is_folder ? check(&c, err)
                                                              : check_aside(&c, err);
    for (size_t idx = 0; idx < KEPT_COUNT; idx++) {
        strbuf_release(&c.kept[idx]);
    }
    digest_release(&c.digest);
    ustar_names_release(&c.names);
    VEC_RELEASE(&c.files);
    return result;
}
