/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "evidence/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/stop.h"
#include "base/temp.h"
#include "codec/tarball.h"
#include "evidence/derive.h"
#include "evidence/rundir.h"
#include "report/run_id.h"

#define SECRET_FILE_MAX 16384 /* a file of at most this size is looked at for a private key */

struct sealing {
    const struct seal_opts *opts;
    struct arena *arena;
    struct tarball_writer writer;
    struct digest digest;
    struct progress progress;
    void *buf;                   /* TARBALL_CHUNK_BYTES */
    struct evidence_files files; /* on the heap */
    struct evidence_facts facts;
    int64_t newest_s; /* mtime of the youngest file that is not ours */
    uint64_t file_bytes;
};

bool seal_makes(struct str name)
{
    const struct rundir_file *file = name.ptr ? rundir_file(name) : NULL;
    return file && file->by == RUNDIR_BY_SEAL;
}

static int add_name(struct sealing *s, const char *name, struct err *err)
{
    const char *path = fs_join(s->arena, s->opts->folder, name);
    struct evidence_file file = {.name = str_of(name)};
    struct stat info;
    bool is_half = seal_makes(temp_of(file.name));
    if (is_half || seal_makes(file.name)) {
        return !is_half || unlink(path) == 0 ? 0 : err_errno(err, "remove", path);
    }
    if (lstat(path, &info) < 0) {
        return err_errno(err, "stat", path);
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "%s: expected a regular file: an archive holds no other",
                       path);
    }
    file.size_bytes = (uint64_t)info.st_size;
    s->newest_s = info.st_mtime > s->newest_s ? info.st_mtime : s->newest_s;
    s->file_bytes += file.size_bytes;
    VEC_PUSH(&s->files, file);
    return 0;
}

static int by_order(const void *a, const void *b)
{
    return ustar_order(((const struct evidence_file *)a)->name,
                       ((const struct evidence_file *)b)->name);
}

/* All files, and that what must be there is there. */
static int list_files(struct sealing *s, struct err *err)
{
    struct fs_names names;
    bool has_manifest = false, has_result = false;
    if (fs_walk(s->arena, s->opts->folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str name = str_of(names.items[idx]);
        if (add_name(s, names.items[idx], err) < 0) {
            return -1;
        }
        has_manifest = has_manifest || str_starts(name, STR_LIT("manifest/"));
        has_result = has_result || str_eq_z(name, EVIDENCE_RESULT);
    }
    if (!has_manifest || !has_result) {
        return err_set(err, ERR_NOT_FOUND, "%s: no finished run: %s is missing", s->opts->folder,
                       has_result ? "manifest/" : EVIDENCE_RESULT);
    }
    return 0;
}

/* What is signed must follow from the logs. */
static int derive(struct sealing *s, struct err *err)
{
    CLEANUP(derived) struct derived derived = {0};
    if (s->opts->is_bytes_only) {
        return 0;
    }
    return derive_folder(s->arena, s->opts->folder, &derived, err) < 0 ||
                   discrepancies_refuse(&derived.discrepancies, err) < 0
               ? -1
               : 0;
}

static int read_facts(struct sealing *s, struct err *err)
{
    const char *path = fs_join(s->arena, s->opts->folder, EVIDENCE_RESULT);
    struct str text;
    if (fs_read(s->arena, path, JSON_TEXT_MAX, &text, err) < 0) {
        return -1;
    }
    if (evidence_facts(s->arena, text, path, &s->facts, err) < 0) {
        return -1;
    }
    s->facts.journal = s->opts->journal;
    return 0;
}

/* A file of ours into the folder, and among the files. */
static int put_file(struct sealing *s, const char *name, struct str text, struct err *err)
{
    const char *path = fs_join(s->arena, s->opts->folder, name);
    struct evidence_file file = {.name = str_of(name), .size_bytes = text.len};
    sha256_of(text, file.sha256);
    if (fs_write_atomic(path, text, err) < 0) {
        return -1;
    }
    VEC_PUSH(&s->files, file);
    return 0;
}

static int put_crate(struct sealing *s, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(JSON_TEXT_MAX);
    struct evidence_crate_marks marks = {STR_LIT(REPERF_VERSION), s->facts.finished_at};
    char newest[RFC3339_MAX];
    char begun[RFC3339_MAX] = "";
    if (!marks.time.ptr) {
        clock_rfc3339(s->newest_s * NS_PER_S, newest);
        if (run_id_is_valid(s->facts.run_id)) {
            run_id_time(s->facts.run_id, begun); /* files that were unpacked are older */
        }
        marks.time = str_of(strcmp(begun, newest) > 0 ? begun : newest);
    }
    evidence_crate(&buf, &s->facts, &s->files, &marks);
    if (buf.is_full) {
        return err_set(err, ERR_DISK, "%s: too many files for %s", s->opts->folder, EVIDENCE_CRATE);
    }
    if (put_file(s, EVIDENCE_CRATE, strbuf_str(&buf), err) < 0) {
        return -1;
    }
    qsort(s->files.items, s->files.n, sizeof(*s->files.items), by_order);
    return 0;
}

/* Evidence is shown to others: a key that was left in the folder by mistake must not be. */
static int refuse_secret(const struct evidence_file *file, const void *bytes, size_t len,
                         struct err *err)
{
    static const char MARK[] = "PRIVATE KEY-----";
    if (len <= SECRET_FILE_MAX && memmem(bytes, len, MARK, sizeof(MARK) - 1)) {
        return err_set(err, ERR_INTEGRITY, "%.*s holds a private key", STR_ARG(file->name));
    }
    return 0;
}

/* One pass: what is hashed is what is written. */
static int stream(struct sealing *s, const struct evidence_file *file, int fd, struct err *err)
{
    for (bool is_first = true;; is_first = false) {
        ssize_t got = read(fd, s->buf, TARBALL_CHUNK_BYTES);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set(err, err_code_of_errno(errno), "read %.*s: %s", STR_ARG(file->name),
                           err_errno_text(errno));
        }
        if (got == 0) {
            return 0;
        }
        if (stop_is_asked()) {
            return err_set(err, ERR_INTERRUPTED, "interrupted at %.*s", STR_ARG(file->name));
        }
        digest_update(&s->digest, s->buf, (size_t)got);
        if ((is_first && refuse_secret(file, s->buf, (size_t)got, err) < 0) ||
            tarball_data(&s->writer, s->buf, (size_t)got, err) < 0) {
            return -1;
        }
        if (s->opts->wants_progress) {
            progress_set(&s->progress, s->progress.done + (uint64_t)got);
        }
    }
}

static int check_expected(const struct sealing *s, const struct evidence_file *file,
                          struct err *err)
{
    const struct str *wanted = s->opts->files ? map_get(s->opts->files, file->name) : NULL;
    const struct hex found = sha256_hex_of(file->sha256);
    if (!s->opts->files || seal_makes(file->name)) {
        return 0;
    }
    if (!wanted) {
        return err_set(err, ERR_INTEGRITY, "%.*s: added: the run wrote no such file",
                       STR_ARG(file->name));
    }
    return str_eq_z(*wanted, found.text)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%.*s: changed since the run wrote it: SHA-256 was %.*s, is %s",
                         STR_ARG(file->name), STR_ARG(*wanted), found.text);
}

/* Each expected file is among those that were found. */
static int check_missing(const struct sealing *s, struct err *err)
{
    CLEANUP(map) struct map found = {0};
    for (size_t idx = 0; idx < s->files.n; idx++) {
        (void)map_add(&found, s->files.items[idx].name, &s->files.items[idx]);
    }
    for (size_t idx = 0; s->opts->files && idx < s->opts->files->n; idx++) {
        struct str name = s->opts->files->entries[idx].key;
        if (!map_get(&found, name)) {
            return err_set(err, ERR_INTEGRITY, "%.*s: missing, the run wrote it", STR_ARG(name));
        }
    }
    return 0;
}

static int seal_file(struct sealing *s, struct evidence_file *file, struct err *err)
{
    const char *path = fs_join(s->arena, s->opts->folder, file->name.ptr);
    CLEANUP(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    digest_start(&s->digest, DIGEST_SHA256);
    if (tarball_begin(&s->writer, file->name, file->size_bytes, err) < 0 ||
        stream(s, file, fd, err) < 0 || tarball_end(&s->writer, err) < 0) {
        return -1;
    }
    memcpy(file->sha256, digest_finish(&s->digest).sha256, SHA256_BYTES);
    return check_expected(s, file, err);
}

/* A closing member: into the folder, among the files, into the archive. */
static int seal_text(struct sealing *s, const char *name, struct str text, struct err *err)
{
    if (put_file(s, name, text, err) < 0 ||
        tarball_begin(&s->writer, str_of(name), text.len, err) < 0 ||
        tarball_data(&s->writer, text.ptr, text.len, err) < 0) {
        return -1;
    }
    return tarball_end(&s->writer, err);
}

static int seal_statement(struct sealing *s, enum evidence_kind kind, struct err *err)
{
    CLEANUP(strbuf) struct strbuf payload = STRBUF(JSON_TEXT_MAX);
    CLEANUP(strbuf) struct strbuf envelope = STRBUF(2 * (size_t)JSON_TEXT_MAX);
    evidence_statement(&payload, kind, &s->facts, &s->files, STR_LIT(REPERF_VERSION));
    if (payload.is_full) {
        return err_set(err, ERR_DISK, "%s: too many files or cells for a statement",
                       s->opts->folder);
    }
    if (evidence_envelope(&envelope, strbuf_str(&payload), s->opts->key, err) < 0) {
        return -1;
    }
    return seal_text(s, evidence_statement_name(kind), strbuf_str(&envelope), err);
}

static int seal_members(struct sealing *s, struct err *err)
{
    CLEANUP(strbuf) struct strbuf sums = STRBUF(EVIDENCE_SUMS_MAX);
    for (size_t idx = 0; idx < s->files.n; idx++) {
        if (seal_file(s, &s->files.items[idx], err) < 0) {
            return -1;
        }
    }
    evidence_sums(&sums, &s->files);
    ASSERT(!sums.is_full);
    if (seal_text(s, USTAR_SUMS, strbuf_str(&sums), err) < 0 ||
        seal_statement(s, EVIDENCE_PROVENANCE, err) < 0 ||
        seal_statement(s, EVIDENCE_TEST_RESULT, err) < 0) {
        return -1;
    }
    return tarball_finish(&s->writer, s->opts->key, err);
}

static void fill_info(const struct sealing *s, struct seal_info *info)
{
    info->run_id = s->facts.run_id;
    info->outcome = s->facts.outcome;
    info->n_files = s->files.n;
    info->file_bytes = s->writer.names.total_bytes;
    info->archive_bytes = s->writer.written_bytes + TARBALL_CLOSING_BYTES;
    hex_encode(s->writer.container_sha256, SHA256_BYTES, info->sha256);
}

static int write_archive(struct sealing *s, int fd, const char *partial, struct seal_info *ret_info,
                         struct err *err)
{
    if (tarball_writer_init(&s->writer, fd, partial, err) < 0) {
        return -1;
    }
    if (s->opts->wants_progress) {
        progress_start(&s->progress, s->opts->clock, "seal", "bytes", s->file_bytes);
    }
    int result = seal_members(s, err);
    if (s->opts->wants_progress) {
        progress_end(&s->progress);
    }
    if (result < 0) {
        return -1;
    }
    fill_info(s, ret_info);
    return 0;
}

/* The name ends in .partial until everything is on the disk; what a killed seal left is used again. */
static int open_partial(const char *partial, struct err *err)
{
    CLEANUP(fd) int fd = open(partial, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0) {
        return err_errno(err, "create", partial);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_USAGE, "%s: another seal is writing it", partial);
    }
    if (ftruncate(fd, 0) < 0) {
        return err_errno(err, "truncate", partial);
    }
    return take_fd(&fd);
}

static int publish(struct sealing *s, int fd, const char *partial, struct err *err)
{
    const char *archive = s->opts->archive;
    /* RENAME_NOREPLACE would be one step, but not every file system has it; two seals of one run are locked out above. */
    if (!s->opts->may_replace && fs_exists(archive)) {
        return err_set(err, ERR_USAGE, "%s exists already", archive);
    }
    return publish_file(fd, partial, archive, err);
}

/* The archive must not become part of itself. */
static int check_place(const struct seal_opts *opts, struct arena *arena, struct err *err)
{
    char *folder = realpath(opts->folder, NULL);
    const char *slash = strrchr(opts->archive, '/');
    char *where = realpath(
        slash ? arena_printf(arena, "%.*s", (int)(slash - opts->archive) + 1, opts->archive) : ".",
        NULL);
    bool is_inside = false;
    struct stat info;
    if (folder && where) {
        size_t len = strlen(folder);
        is_inside = strncmp(where, folder, len) == 0 && (where[len] == '/' || where[len] == '\0');
    }
    free(folder);
    free(where);
    if (is_inside) {
        return err_set(err, ERR_USAGE, "%s lies inside the folder to be sealed", opts->archive);
    }
    if (!fs_exists(opts->archive)) {
        return 0;
    }
    /* Renaming over a device or a folder would take it away. */
    if (lstat(opts->archive, &info) == 0 && !S_ISREG(info.st_mode)) {
        return err_set(err, ERR_USAGE, "%s is there and no regular file", opts->archive);
    }
    return opts->may_replace ? 0 : err_set(err, ERR_USAGE, "%s exists already", opts->archive);
}

static int seal_with(struct sealing *s, struct seal_info *ret_info, struct err *err)
{
    const char *partial = arena_printf(s->arena, "%s.partial", s->opts->archive);
    CLEANUP(fd) int fd = -1;
    if (check_place(s->opts, s->arena, err) < 0 || list_files(s, err) < 0 ||
        check_missing(s, err) < 0 || derive(s, err) < 0 || read_facts(s, err) < 0 ||
        put_crate(s, err) < 0) {
        return -1;
    }
    fd = open_partial(partial, err);
    if (fd < 0) {
        return -1;
    }
    if (write_archive(s, fd, partial, ret_info, err) < 0 || publish(s, fd, partial, err) < 0) {
        unlink(partial);
        return -1;
    }
    return 0;
}

int seal_folder(struct arena *arena, const struct seal_opts *opts, struct seal_info *ret_info,
                struct err *err)
{
    struct sealing s = {.opts = opts,
                        .arena = arena,
                        .writer = TARBALL_WRITER_EMPTY,
                        .buf = xmalloc(TARBALL_CHUNK_BYTES)};
    struct seal_info info = {0};
    int result = seal_with(&s, &info, err);
    tarball_writer_release(&s.writer);
    digest_release(&s.digest);
    VEC_RELEASE(&s.files);
    free(s.buf);
    if (result < 0) {
        return err_wrap(err, "seal %s", opts->folder);
    }
    *ret_info = info;
    return 0;
}
