/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/journal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/publish.h"
#include "codec/digest.h"
#include "codec/json_table.h"

#define RECORD_MAX  (1u << 20)
#define CHECK_BYTES ((JOURNAL_CHECK_SIZE - 1) / 2)

static const char *const STATE_NAMES[J_STATE_COUNT] = {
    [J_PLANNED] = "planned",     [J_STARTED] = "started",     [J_LOST] = "lost",
    [J_FINISHED] = "finished",   [J_PARSED] = "parsed",       [J_JUDGED] = "judged",
    [J_RESULT] = "result",       [J_SEALED] = "sealed",       [J_INTERRUPTED] = "interrupted",
    [J_RESUMED] = "resumed",     [J_CANCELLED] = "cancelled", [J_FILES] = "files",
    [J_SET_ASIDE] = "set_aside",
};

/* ---- one record ---- */

#define COUNT JSON_REQUIRED, .min = -1, .max = 1LL << 53
#define TEXT  JSON_REQUIRED | JSON_NULLABLE
static const struct json_field ROWS[] = {
    ROW("seq", struct journal_record, seq, COUNT),
    ROW("time", struct journal_record, time, TEXT),
    ROW_WORD("state", struct journal_record, state, STATE_NAMES, JSON_REQUIRED),
    ROW("case", struct journal_record, case_id, TEXT),
    ROW("repeat", struct journal_record, repeat, COUNT),
    ROW("attempt", struct journal_record, attempt, COUNT),
    ROW("outcome", struct journal_record, outcome, TEXT),
    ROW("exit_status", struct journal_record, exit_status, COUNT),
    ROW("log_sha256", struct journal_record, log_sha256, TEXT),
    ROW("log_bytes", struct journal_record, log_bytes, COUNT),
    ROW("verdict", struct journal_record, verdict, TEXT),
    ROW("note", struct journal_record, note, TEXT),
    ROW_PAIRS("files", struct journal_record, files, n_files, JSON_OMIT, .max = JOURNAL_FILES_MAX),
    ROW_ANY("check", JSON_REQUIRED), /* last: it is of the bytes before it */
};

/* Everything but the check and the closing brace. */
static void encode_body(const struct journal_record *record, struct strbuf *buf)
{
    struct json_out out;
    jw_begin(&out, buf, true);
    jw_object(&out, NULL);
    json_encode(&out, ROWS, ARRAY_LEN(ROWS) - 1, record);
}

static void check_of(const char *last_check, struct str body, char ret_check[JOURNAL_CHECK_SIZE])
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    digest_start(&digest, DIGEST_SHA256);
    digest_update(&digest, last_check, strlen(last_check));
    digest_update(&digest, body.ptr, body.len);
    hex_encode(digest_finish(&digest).sha256, CHECK_BYTES, ret_check);
}

static int decode_record(struct arena *arena, struct str line, const char *path,
                         struct journal_record *ret_record, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct journal_record record = {0};
    if (json_parse(line, path, &doc, err) < 0 ||
        json_decode(&doc.root, arena, ROWS, ARRAY_LEN(ROWS), &record, err) < 0) {
        return -1;
    }
    *ret_record = record;
    return 0;
}

/* ---- reading ---- */

/* Whether the line is whole: its check is that of its body after the record before. Takes the check. */
static bool line_holds(struct str line, char *last_check)
{
    static const char MARK[] = ",\"check\":\"";
    const size_t tail = sizeof(MARK) - 1 + JOURNAL_CHECK_SIZE - 1 + 2; /* "} at the end */
    char check[JOURNAL_CHECK_SIZE];
    struct str body = str_sub(line, 0, line.len > tail ? line.len - tail : 0);
    if (!body.len || memcmp(body.ptr + body.len, MARK, sizeof(MARK) - 1) != 0 ||
        memcmp(line.ptr + line.len - 2, "\"}", 2) != 0) {
        return false;
    }
    check_of(last_check, body, check);
    if (memcmp(line.ptr + line.len - 2 - (JOURNAL_CHECK_SIZE - 1), check, JOURNAL_CHECK_SIZE - 1) !=
        0) {
        return false;
    }
    memcpy(last_check, check, JOURNAL_CHECK_SIZE);
    return true;
}

/* What a crash leaves of the last record: its beginning, or blocks of it that never got to the disk and read as zeros. Anything
   else that is invalid was never written here. */
static bool is_torn(struct str line, bool has_end, int64_t seq)
{
    char begin[64];
    struct str head = line;
    bool has_zeros = memchr(line.ptr, '\0', line.len) != NULL;
    snprintf(begin, sizeof(begin), "{\"seq\":%lld,\"time\":\"", (long long)seq);
    struct str wanted = str_of(begin);
    if (has_zeros) {
        head.len = (size_t)((const char *)memchr(line.ptr, '\0', line.len) - line.ptr);
    }
    wanted = str_sub(wanted, 0, head.len);
    return line.len < RECORD_MAX && (has_zeros || !has_end) && str_starts(head, wanted);
}

/* Where a journal is being read. */
struct journal_line {
    const char *path;
    struct str rest;
    int64_t seq; /* of the record that begins rest */
};

/* *ret_line_bytes 0: the last one was cut short, as if it had not been written. */
static int read_record(struct arena *arena, const struct journal_line *at, char *last_check,
                       struct journal_record *ret_record, size_t *ret_line_bytes, struct err *err)
{
    const char *path = at->path;
    struct str rest = at->rest;
    int64_t seq = at->seq;
    const char *end = memchr(rest.ptr, '\n', rest.len);
    struct str line = {rest.ptr, end ? (size_t)(end - rest.ptr) : rest.len};
    *ret_line_bytes = 0;
    if (!end || !line_holds(line, last_check)) {
        bool is_last = !end || line.len + 1 == rest.len;
        return is_last && is_torn(line, end != NULL, seq)
                   ? 0
                   : err_set(err, ERR_INTEGRITY, "%s:%lld: damaged: no record that this run wrote",
                             path, (long long)seq);
    }
    if (decode_record(arena, line, path, ret_record, err) < 0) {
        return -1;
    }
    if (ret_record->seq != seq || seq > JOURNAL_RECORDS_MAX) {
        return err_set(err, ERR_INTEGRITY, "%s:%lld: expected record %lld, found %lld", path,
                       (long long)seq, (long long)seq, (long long)ret_record->seq);
    }
    *ret_line_bytes = line.len + 1;
    return 0;
}

/* ret_whole_bytes: length of the part that holds. */
static int read_records(struct arena *arena, const char *path, struct journal_records *ret_records,
                        char *last_check, uint64_t *ret_whole_bytes, struct err *err)
{
    VEC(struct journal_record) list = {0};
    struct str text = STR_EMPTY;
    size_t at = 0;
    size_t line_bytes = 1;
    int rc = 0;
    last_check[0] = '\0';
    if (fs_exists(path) && fs_read(arena, path, JOURNAL_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    while (rc == 0 && line_bytes > 0 && at < text.len) {
        struct journal_record record = {0};
        const struct journal_line line = {path, str_sub(text, at, text.len), (int64_t)list.n + 1};
        rc = read_record(arena, &line, last_check, &record, &line_bytes, err);
        if (rc == 0 && line_bytes > 0) {
            if (record.state == J_RESULT) {
                record.check = ret_records->result = str_dup(arena, str_of(last_check));
            }
            VEC_PUSH(&list, record);
            at += line_bytes;
        }
    }
    if (rc == 0) {
        ret_records->n = list.n;
        ret_records->items = arena_array(arena, struct journal_record, list.n + 1);
        if (list.n) {
            memcpy(ret_records->items, list.items, list.n * sizeof(*list.items));
        }
        ret_records->torn_bytes = text.len - at;
        *ret_whole_bytes = at;
    }
    VEC_RELEASE(&list);
    return rc;
}

int journal_read(struct arena *arena, const char *path, struct journal_records *ret_records,
                 struct err *err)
{
    char last_check[JOURNAL_CHECK_SIZE];
    uint64_t whole_bytes = 0;
    return read_records(arena, path, ret_records, last_check, &whole_bytes, err);
}

void journal_files(const struct journal_records *records, struct map *ret_files)
{
    for (size_t idx = records->n; idx-- > 0;) {
        const struct journal_record *record = &records->items[idx];
        for (size_t at = 0; at < record->n_files; at++) {
            (void)map_add(ret_files, record->files[at].name, &record->files[at]);
        }
    }
}

int journal_open(struct journal *journal, struct arena *arena, const char *path,
                 struct clock_src clock, struct journal_records *ret_records, struct err *err)
{
    struct journal opened = JOURNAL_EMPTY;
    const char *crash = getenv("REPERF_CRASH_AFTER");
    opened.path = path;
    opened.clock = clock;
    if (crash && crash[0] &&
        str_to_i64(str_of(crash), 0, INT64_MAX, &opened.crash_after, err) < 0) {
        return err_wrap(err, "REPERF_CRASH_AFTER");
    }
    if (read_records(arena, path, ret_records, opened.check, &opened.end_bytes, err) < 0) {
        return -1;
    }
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    /* What later records build upon must be on the disk, even if a killed process left it only in memory. */
    if (fd < 0 || (ret_records->torn_bytes && ftruncate(fd, (off_t)opened.end_bytes) < 0)) {
        return err_errno(err, "open", path);
    }
    if (publish_data(fd, path, err) < 0 || publish_parent(path, err) < 0) {
        return -1;
    }
    opened.seq = (int64_t)ret_records->n;
    opened.fd = take_fd(&fd);
    *journal = opened;
    return 0;
}

/* ---- writing ---- */

/* After a write or sync that failed: it is unknown which bytes are on the disk, so the file is cut back to the last successful
   sync, or nothing is appended any more. A reader drops a torn last record; no other may follow one. */
static void cut_back(struct journal *journal)
{
    if (ftruncate(journal->fd, (off_t)journal->end_bytes) < 0 ||
        publish_data(journal->fd, journal->path, ERR_IGNORED) < 0) {
        log_line(LOG_DEBUG, "%s: cannot be cut back to %llu bytes", journal->path,
                 (unsigned long long)journal->end_bytes);
        fd_close(&journal->fd);
    }
}

int journal_append(struct journal *journal, const struct journal_record *record, struct err *err)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(RECORD_MAX);
    struct journal_record full = *record;
    char check[JOURNAL_CHECK_SIZE];
    char time[RFC3339_MAX];
    if (journal->fd < 0) {
        return err_set(err, ERR_IO, "%s: nothing is appended after a write that failed",
                       journal->path);
    }
    clock_rfc3339(journal->clock.wall_ns(journal->clock.ctx), time);
    full.seq = journal->seq + 1;
    full.time = str_of(time);
    encode_body(&full, &buf);
    check_of(journal->check, strbuf_str(&buf), check);
    strbuf_printf(&buf, ",\"check\":\"%s\"}\n", check);
    if (buf.is_full) {
        return err_set(err, ERR_INTERNAL, "%s: a record of more than %d bytes", journal->path,
                       RECORD_MAX);
    }
    if (fs_write_all(journal->fd, buf.ptr, buf.len, journal->path, err) < 0 ||
        publish_data(journal->fd, journal->path, err) < 0) {
        cut_back(journal);
        return -1;
    }
    journal->seq = full.seq;
    journal->end_bytes += buf.len;
    memcpy(journal->check, check, sizeof(check));
    if (journal->crash_after && full.seq == journal->crash_after) {
        (void)raise(SIGKILL);
    }
    return 0;
}

void journal_release(struct journal *journal)
{
    fd_close(&journal->fd);
    *journal = JOURNAL_EMPTY;
}
