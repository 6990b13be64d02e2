/* SPDX-License-Identifier: Apache-2.0 */
/* Leases on a node: taken, kept, checked against others, taken over when their run is dead. */
#include "unit.h"

#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "fleet/lease.h"
#include "remote_here.h"

static struct arena texts; /* of holders; freed at the end */
static size_t n_named;     /* holders that said whose they are */

static const char *ask(struct remote *remote, const char *run, enum lease_mode mode)
{
    struct lease_op op = {0};
    struct str holder = STR_EMPTY;
    DONE(lease_step(&op, remote, run, mode, &holder, ERR));
    char *text = str_z(&texts, holder.ptr ? holder : STR_LIT(""));
    char *of = strstr(text, " of ");
    if (of) { /* holders that took it through lease_step gave their name */
        char host[256] = "";
        assert_int_equal(gethostname(host, sizeof(host) - 1), 0);
        assert_string_equal(of, arena_printf(&texts, " of tester@%s", host));
        *of = '\0';
        n_named++;
    }
    lease_op_release(&op);
    return text;
}

static void write_holder(const char *folder, const char *text)
{
    PASSES(fs_write_atomic(arena_printf(&texts, "%s/lease", folder), str_of(text), ERR));
}

TEST_IN_SCRATCH(a_lease_is_held_against_others_until_dropped)
{
    REMOTE_BELOW(*state);
    assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
    assert_string_equal(ask(remote, "run-b", LEASE_TAKE), "run-a");
    assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
    assert_string_equal(ask(remote, "run-b", LEASE_DROP), ""); /* not its own: stays */
    n_named = 0;
    assert_string_equal(ask(remote, "run-b", LEASE_TAKE), "run-a");
    assert_int_equal(n_named, 1);
    assert_string_equal(ask(remote, "run-a", LEASE_DROP), "");
    assert_string_equal(ask(remote, "run-b", LEASE_TAKE), "");
}

/* A copy of the program that any user may run, wherever the checkout is (below /root, say). To be unlinked. */
static void copy_program(const char *program, char *path)
{
    struct stat stat;
    int from = open(program, O_RDONLY | O_CLOEXEC);
    int to = mkostemp(path, O_CLOEXEC);
    assert_true(from >= 0 && to >= 0);
    assert_int_equal(fstat(from, &stat), 0);
    assert_int_equal(sendfile(to, from, NULL, (size_t)stat.st_size), stat.st_size);
    assert_int_equal(fchmod(to, 0755), 0);
    assert_int_equal(close(from), 0);
    assert_int_equal(close(to), 0);
}

/* Root may remove what has no write bit, so nobody asks. */
TEST_IN_SCRATCH(a_lease_that_cannot_be_removed_is_an_error)
{
    REMOTE_BELOW(*state);
    struct lease_op op = {0};
    struct str holder = STR_EMPTY;
    enum step step;
    bool is_root = geteuid() == 0;
    char node[] = "/tmp/reperf-node.XXXXXX";
    const char *built = str_z(&texts, str_of(getenv("REPERF_NODE")));
    copy_program(built, node);
    assert_int_equal(setenv("REPERF_NODE", node, 1), 0);
    assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
    remote_free(remote);
    assert_int_equal(chmod(scratch_folder, 0755), 0);
    assert_int_equal(chmod(*state, 0555), 0);
    assert_int_equal(is_root ? seteuid(65534) : 0, 0);
    remote = remote_local_new(&loop, *state);
    while ((step = lease_step(&op, remote, "run-a", LEASE_DROP, &holder, ERR)) == STEP_AGAIN) {
        PASSES(loop_once(&loop, TICK_NS, ERR));
    }
    assert_int_equal(is_root ? seteuid(0) : 0, 0);
    assert_int_equal(setenv("REPERF_NODE", built, 1), 0);
    assert_int_equal(unlink(node), 0);
    assert_int_equal(chmod(*state, 0755), 0);
    assert_int_equal(step, STEP_FAIL);
    assert_int_equal(ERR->code, ERR_DISK);
    SAYS("lease cannot be written");
    lease_op_release(&op);
}

/* It is not taken for a lease that is free or ours. */
TEST_IN_SCRATCH(a_folder_in_a_leases_place_is_an_error)
{
    REMOTE_BELOW(*state);
    struct lease_op op = {0};
    struct str holder = STR_EMPTY;
    PASSES(fs_mkdir_p(fs_join(&texts, *state, "lease"), ERR));
    ENDS(lease_step(&op, remote, "run-a", LEASE_TAKE, &holder, ERR), ERR_DISK);
    SAYS("the lease cannot be written");
    SAYS("lease: Is a directory");
    lease_op_release(&op);
}

static void read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    assert_true(file && fgets(line, size, file));
    fclose(file);
}

/* As a job's wrapper writes it: number, start time, boot. */
static void write_pid(const char *job, int64_t start_offset, const char *boot)
{
    char line[4096];
    struct str word = STR_EMPTY;
    char here[64];
    read_line("/proc/self/stat", line, sizeof(line));
    read_line("/proc/sys/kernel/random/boot_id", here, sizeof(here));
    struct str stat = str_of(strrchr(line, ')') + 2);
    for (int field = 3; field <= 22; field++) {
        assert_true(str_next(&stat, ' ', &word));
    }
    const char *text =
        arena_printf(&texts, "%d %lld %s\n", (int)getpid(),
                     strtoll(str_z(&texts, word), NULL, 10) + (long long)start_offset,
                     boot ? boot : str_z(&texts, str_trim(str_of(here))));
    PASSES(fs_write_atomic(fs_join(&texts, job, "pid"), str_of(text), ERR));
}

static void take_over(const char *work)
{
    REMOTE_BELOW(work);
    const char *job = arena_printf(&texts, "%s/jobs/run-a/case/attempt-1", work);
    const char *dead = arena_printf(&texts, "%s/jobs/run-a/case/attempt-0", work);
    PASSES(fs_mkdir_p(work, ERR));
    assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
    write_holder(work, "run-a 1000\n"); /* 1970 */
    PASSES(fs_mkdir_p(dead, ERR));
    write_pid(dead, 1, NULL);
    PASSES(fs_mkdir_p(job, ERR));
    write_pid(job, 0, NULL);
    if (strcmp(ask(remote, "run-b", LEASE_TAKE), "run-a") != 0) {
        fail_msg("%s: stolen while a job lives", work);
    }
    PASSES(fs_write_atomic(fs_join(&texts, job, "status"), STR_LIT("exit 0\n"), ERR));
    assert_string_equal(ask(remote, "run-b", LEASE_TAKE), "");
    assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "run-b");
}

TEST_IN_SCRATCH(a_lease_of_the_dead_is_taken_over_unless_a_job_lives)
{
    static const char *const NAMES[] = {"work",      "work folder", " two  blanks ", "a\ttab",
                                        "new\nline", "[a-z]*?",     "quo\"te's $x"};
    for (EACH(row, NAMES)) {
        take_over(fs_join(&texts, *state, *row));
    }
}

/* A clock that is set by hours, either way, makes no lease old and none young: its age is counted by the uptime of the boot it was
   written in, and by the clock where that is another. */
TEST_IN_SCRATCH(a_lease_ages_by_the_uptime)
{
    static const struct {
        int64_t wall_ago_s, uptime_ago_s;
        const char *boot; /* NULL: this one */
        bool is_held;
    } ROWS[] = {{7200, 5, NULL, true},     {-7200, 5, NULL, true},   {5, 7200, NULL, false},
                {-7200, 121, NULL, false}, {5, 7200, "other", true}, {7200, 5, "other", false}};
    REMOTE_BELOW(*state);
    char boot[64] = "";
    read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
    for (EACH(row, ROWS)) {
        assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
        write_holder(*state, arena_printf(&texts, "run-a %lld %lld %s\n",
                                          (long long)time(NULL) - row->wall_ago_s,
                                          (long long)clock_boot_ns() / NS_PER_S - row->uptime_ago_s,
                                          row->boot ? row->boot : boot));
        assert_string_equal(ask(remote, "run-b", LEASE_TAKE), row->is_held ? "run-a" : "");
        ask(remote, row->is_held ? "run-a" : "run-b", LEASE_DROP);
    }
}

/* After a reboot, or much later, its number belongs to another process. */
TEST_IN_SCRATCH(a_process_with_the_number_of_a_job_is_not_the_job)
{
    static const struct {
        int64_t start_offset;
        const char *boot;
    } ROWS[] = {{0, "another-boot"}, {-1, NULL}};
    for (EACH(row, ROWS)) {
        REMOTE_BELOW(*state);
        const char *job = arena_printf(&texts, "%s/jobs/run-a/case", (const char *)*state);
        assert_string_equal(ask(remote, "run-a", LEASE_TAKE), "");
        write_holder(*state, "run-a 1000\n");
        PASSES(fs_mkdir_p(job, ERR));
        write_pid(job, row->start_offset, row->boot);
        assert_string_equal(ask(remote, "run-b", LEASE_TAKE), "");
        assert_string_equal(ask(remote, "run-b", LEASE_DROP), "");
    }
}

static int start(void **state)
{
    return setenv("LOGNAME", "tester", 1) < 0 ? -1 : node_group_start(state);
}

UNIT_MAIN(start, scratch_group_end)
