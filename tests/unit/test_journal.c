/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fs.h"
#include "run/journal.h"
#include "scratch.h"

/* The C library's, which fail on request: countdown to the call that fails, 0: none. */
static int fsync_fails_at;
static int ftruncate_fails_at;

static bool fails_now(int *countdown)
{
    errno = EIO;
    return *countdown > 0 && --*countdown == 0;
}

int fsync(int fd)
{
    return fails_now(&fsync_fails_at) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t len)
{
    return fails_now(&ftruncate_fails_at) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

static const char *path_of(struct arena *arena, void **state)
{
    return fs_join(arena, *state, "journal.jsonl");
}

static void write_three(struct arena *arena, const char *path)
{
    CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
    struct journal_records records = {0};
    struct journal_record list[] = {
        {.state = J_PLANNED, .note = STR_LIT("a \"note\"\n")},
        {.state = J_STARTED, .case_id = STR_LIT("m/f/fp32/n1g1/bs1"), .repeat = 1, .attempt = 1},
        {.state = J_FINISHED,
         .case_id = STR_LIT("m/f/fp32/n1g1/bs1"),
         .repeat = 1,
         .attempt = 1,
         .exit_status = 137,
         .log_bytes = 12},
    };
    PASSES(journal_open(&journal, arena, path, clock_system(), &records, ERR));
    assert_int_equal(records.n, 0);
    for (EACH(row, list)) {
        PASSES(journal_append(&journal, row, ERR));
    }
}

/* Truncated anywhere: the rest is a beginning of what was written, and more can be appended after it. */
TEST_IN_SCRATCH(every_cut_leaves_whole_records)
{
    struct str text;
    size_t n_before = 0;
    struct journal_records whole = {0};
    const char *path = path_of(ARENA, state);
    PASSES(journal_read(ARENA, path, &whole, ERR)); /* none yet */
    assert_int_equal(whole.n, 0);
    write_three(ARENA, path);
    PASSES(journal_read(ARENA, path, &whole, ERR));
    assert_true(str_eq_z(whole.items[0].note, "a \"note\"\n"));
    assert_int_equal(whole.items[2].exit_status, 137);
    assert_null(whole.items[0].case_id.ptr);
    PASSES(fs_read(ARENA, path, 1 << 20, &text, ERR));
    for (size_t len = 0; len <= text.len; len++) {
        CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
        struct journal_records records = {0};
        size_t n_lines = 0;
        for (size_t idx = 0; idx < len; idx++) {
            n_lines += text.ptr[idx] == '\n';
        }
        PASSES(fs_write_atomic(path, str_sub(text, 0, len), ERR));
        PASSES(journal_open(&journal, ARENA, path, clock_system(), &records, ERR));
        assert_int_equal(records.n, n_lines);
        assert_true(records.n >= n_before);
        n_before = records.n;
        if (len % 37 == 0) {
            const struct journal_record more = {.state = J_RESUMED};
            PASSES(journal_append(&journal, &more, ERR));
            PASSES(journal_read(ARENA, path, &records, ERR));
            assert_int_equal(records.n, n_lines + 1);
            assert_int_equal(records.items[n_lines].state, J_RESUMED);
        }
    }
}

TEST_IN_SCRATCH(every_flipped_bit_of_a_record_is_seen)
{
    struct str text;
    const char *path = path_of(ARENA, state);
    write_three(ARENA, path);
    PASSES(fs_read(ARENA, path, 1 << 20, &text, ERR));
    char *changed = arena_strndup(ARENA, text.ptr, text.len);
    /* Except for the last line end: without it, the record is truncated. */
    for (size_t idx = 0; idx + 1 < text.len; idx++) {
        struct journal_records records = {0};
        struct err found = {0};
        changed[idx] = (char)(changed[idx] ^ 1);
        PASSES(fs_write_atomic(path, (struct str){changed, text.len}, ERR));
        assert_int_equal(journal_read(ARENA, path, &records, &found), -1);
        assert_int_equal(found.code, ERR_INTEGRITY);
        changed[idx] = text.ptr[idx];
    }
}

#define TEXT(literal) literal, sizeof(literal) - 1

/* Only what a crash can leave behind the last record is dropped from a journal. */
TEST_IN_SCRATCH(what_was_never_a_record_is_damage)
{
    static const struct {
        const char *text;
        size_t len;
        bool is_torn;
    } ENDS[] = {
        {TEXT("garbage\n"), false},
        {TEXT("garbage"), false},
        {TEXT("{}\n"), false},
        {TEXT("\n"), false},
        {TEXT("{\"seq\":9,\"time\":\"2026"), false},
        {TEXT("{\"seq\":4,\"time\":\"2026-11-21\"}\n"), false},
        {TEXT("{\"seq\":4,\"ti"), true},
        {TEXT("{"), true},
        {TEXT("\0\0\0\0"), true},
        {TEXT("{\"seq\":4,\0\0\0\n"), true},
        {TEXT("x\0\0\0"), false},
    };
    const char *path = path_of(ARENA, state);
    struct str whole;
    write_three(ARENA, path);
    PASSES(fs_read(ARENA, path, 1 << 20, &whole, ERR));
    for (EACH(row, ENDS)) {
        struct journal_records records = {0};
        struct err found = {0};
        CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 20);
        strbuf_add_str(&text, whole);
        strbuf_add(&text, row->text, row->len);
        PASSES(fs_write_atomic(path, strbuf_str(&text), ERR));
        assert_int_equal(journal_read(ARENA, path, &records, &found), row->is_torn ? 0 : -1);
        assert_int_equal(found.code, row->is_torn ? ERR_NONE : ERR_INTEGRITY);
        assert_int_equal(records.n, row->is_torn ? 3 : 0);
    }
    PASSES(fs_write_atomic(path, STR_LIT("garbage\n"), ERR));
    struct journal_records records = {0};
    FAILS(journal_read(ARENA, path, &records, ERR), ERR_INTEGRITY);
}

static const struct journal_record STARTED = {
    .state = J_STARTED, .case_id = {"m/f", 3}, .repeat = 1, .attempt = 1};
static const struct journal_record INTERRUPTED = {.state = J_INTERRUPTED};
static const struct journal_record RESUMED = {.state = J_RESUMED};

/* The journal is what `states` say, reopens, and takes one more. */
static void assert_goes_on(struct arena *arena, const char *path, const enum journal_state *states,
                           size_t n)
{
    CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
    struct journal_records records = {0};
    PASSES(journal_open(&journal, arena, path, clock_system(), &records, ERR));
    assert_int_equal(records.n, n);
    for (size_t idx = 0; idx < n; idx++) {
        assert_int_equal(records.items[idx].state, states[idx]);
    }
    PASSES(journal_append(&journal, &RESUMED, ERR));
    PASSES(journal_read(arena, path, &records, ERR));
    assert_int_equal(records.n, n + 1);
    assert_int_equal(records.torn_bytes, 0);
}

/* Half a record is written before the disk is full. */
static int append_torn(struct journal *journal, struct err *err)
{
    struct rlimit old;
    struct rlimit full;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    full = old;
    full.rlim_cur = (rlim_t)lseek(journal->fd, 0, SEEK_END) + 50;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &full), 0);
    int rc = journal_append(journal, &STARTED, err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    return rc;
}

/* A record whose sync fails, or that is torn, is removed: the next one follows the last synced one. */
TEST_IN_SCRATCH(a_record_that_fails_is_taken_back)
{
    static const enum journal_state LEFT[] = {J_PLANNED, J_STARTED, J_FINISHED, J_INTERRUPTED};
    const char *path = path_of(ARENA, state);
    for (int is_torn = 0; is_torn < 2; is_torn++) {
        CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
        struct journal_records records = {0};
        (void)unlink(path);
        write_three(ARENA, path);
        PASSES(journal_open(&journal, ARENA, path, clock_system(), &records, ERR));
        fsync_fails_at = !is_torn;
        FAILS(is_torn ? append_torn(&journal, ERR) : journal_append(&journal, &STARTED, ERR),
              is_torn ? ERR_ANY : ERR_IO);
        SAYS("journal.jsonl");
        PASSES(journal_append(&journal, &INTERRUPTED, ERR));
        journal_release(&journal);
        assert_goes_on(ARENA, path, LEFT, ARRAY_LEN(LEFT));
    }
}

/* What cannot be removed stays the last: the handle appends nothing any more, and the next opener continues. */
TEST_IN_SCRATCH(nothing_follows_a_record_that_cannot_be_taken_back)
{
    static const enum journal_state LEFT[] = {J_PLANNED, J_STARTED, J_FINISHED, J_STARTED};
    static const size_t N_LEFT[] = {4, 3, 3}; /* whole though not synced; torn; taken back */
    const char *path = path_of(ARENA, state);
    for (size_t way = 0; way < ARRAY_LEN(N_LEFT); way++) {
        CLEANUP(journal) struct journal journal = JOURNAL_EMPTY;
        struct journal_records records = {0};
        (void)unlink(path);
        write_three(ARENA, path);
        PASSES(journal_open(&journal, ARENA, path, clock_system(), &records, ERR));
        fsync_fails_at = way == 1 ? 0 : 1;
        ftruncate_fails_at = way == 2 ? 0 : 1;
        FAILS(way == 0 ? journal_append(&journal, &STARTED, ERR) : append_torn(&journal, ERR),
              ERR_ANY);
        assert_int_equal(fsync_fails_at, 0);
        assert_int_equal(ftruncate_fails_at, 0);
        FAILS(journal_append(&journal, &INTERRUPTED, ERR), ERR_IO);
        journal_release(&journal);
        assert_goes_on(ARENA, path, LEFT, N_LEFT[way]);
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
