/* SPDX-License-Identifier: Apache-2.0 */
/* The monitor's log: what taints a repeat and what does not; and the sampler itself. */
#include "unit.h"

#include <poll.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "fleet/monitor.h"
#include "remote_here.h"

#define HEAD                                                                                       \
    "h index, pci.bus_id, clocks.sm [MHz], clocks.max.sm [MHz], power.draw [W], temperature.gpu, " \
    "utilization.gpu [%], ecc.errors.uncorrected.volatile.total, "                                 \
    "ecc.errors.corrected.volatile.total, clocks_throttle_reasons.active\n"

#define SOUND "1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 3, 0x0"

static struct monitor_report judged(struct arena *arena, const char *text)
{
    struct monitor_report report;
    PASSES(monitor_judge(arena, str_of(text), &report, ERR));
    return report;
}

static void is_refused(const char *text, const char *why)
{
    struct monitor_report report;
    FAILS_WITH(monitor_judge(ARENA, str_of(text), &report, ERR), ERR_PARSE, why);
}

/* n samples of one GPU; the last ones are as `row` says. */
static char *log_of(struct arena *arena, const char *row, const char *others)
{
    return arena_printf(
        arena,
        "reperf-monitor 1 begin 2\n%st 100.00 1.0\nc cpu  100 0 50 1000 0 0 0 0 0 0\n"
        "n eth0 1000 10 0 0 1000 10 0 0\n"
        "g 0, 00000000:1A:00.0, 1530 MHz, 1530 MHz, 250.00 W, 60, 98 %%, 0, 3, 0x0000000000000000\n"
        "p 00000000:1A:00.0, 4711\n"
        "t 102.00 1.0\nc cpu  300 0 50 1000 0 0 0 1 0 0\n%s"
        "g 0, 00000000:1A:00.0, %s\nt 104.00 1.0\ng 0, 00000000:1A:00.0, %s\n"
        "reperf-monitor 1 end job ended\n",
        HEAD, others, row, row);
}

TEST(a_clean_run)
{
    struct monitor_report report = judged(
        ARENA, log_of(ARENA, "1500 MHz, 1530 MHz, 280.00 W, 65, 99 %, 0, 3, 0x0000000000000004",
                      "n eth0 900000 9000 0 5 900000 9000 0 0\nl 1.0 1.0 1.0 2/300 99\nm 1000\n"
                      "f 2600000\n"));
    assert_int_equal(report.n_taints, 0);
    assert_int_equal(report.n_samples, 3);
    assert_true(report.is_whole);
    assert_int_equal(report.n_gpus, 1);
    assert_int_equal(report.gpus[0].n_busy, 3);
    assert_true(report.gpus[0].clock_median_mhz == 1500);
    assert_true(report.gpus[0].temperature_max_c == 65);
}

TEST(taints)
{
    static const struct {
        const char *row, *others, *id, *says;
    } ROWS[] = {
        {"1500 MHz, 1530 MHz, 250.00 W, 91, 99 %, 0, 3, 0x0000000000000040", "", "gpu-thermal",
         "2 of 3 samples at work, up to 91"},
        {"1500 MHz, 1530 MHz, 250.00 W, 91, 99 %, 0, 3, 0x0000000000000020", "", "gpu-thermal",
         "heat"},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 3, 0x0000000000000008", "", "gpu-thermal",
         "heat"},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 3, 0x0000000000000088", "", "gpu-power",
         "power supply"},
        {"1200 MHz, 1530 MHz, 300.00 W, 60, 99 %, 0, 3, 0x0000000000000004", "", "gpu-clock",
         "1200 of 1530 MHz (median; 2 of 3 samples at its power cap)"},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 1, 3, 0x0", "", "gpu-ecc", "1 uncorrected"},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 5, 0x0", "", "gpu-ecc", "2 corrected"},
        {SOUND, "p 00000000:1A:00.0, 4711\np 00000000:1A:00.0, 9999\n", "gpu-shared",
         "2 processes on it, and one of them is the rank"},
        {SOUND, "n eth0 2000 20 3 0 2000 20 4 0\n", "nic-errors", "eth0: 7 errors"},
        {SOUND, "n eth0 2000 10010 0 200 2000 10 0 0\n", "nic-drops", "200 of 10000 packets"},
        {SOUND, "i mlx5_0.1 0 0 0 0\ni mlx5_0.1 2 0 1 0\n", "infiniband", "mlx5_0.1: 3 errors"},
        {SOUND, "c cpu  300 0 50 1000 0 0 0 50 0 0\n", "cpu-steal", "20.0 %"},
        {SOUND,
         "t 103.00 1.0 1700000000.250\nt 103.10 1.0 1699992800.250\nt 103.20 1.0 1700000000.000\n",
         "clock-set", "its clock was set, by 7200 s between"},
        {SOUND, "t 103.00 1.0 1700000000.250\nt 103.10 1.0\nt 103.20 1.0 1700003600.250\n",
         "clock-set", "by 3600 s"},
    };
    for (EACH(row, ROWS)) {
        struct monitor_report report = judged(ARENA, log_of(ARENA, row->row, row->others));
        assert_int_equal(report.n_taints, 1);
        assert_string_equal(report.taints[0].id, row->id);
        if (str_find(report.taints[0].text, str_of(row->says)) < 0) {
            fail_msg("\"%.*s\"", STR_ARG(report.taints[0].text));
        }
    }
}

/* As many interfaces as are read, each with all that is wrong with one. */
TEST(every_interface_may_taint)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 20);
    strbuf_add_z(&text, "reperf-monitor 1 begin 2\n");
    for (int round = 0; round < 2; round++) {
        strbuf_printf(&text, "t 10%d.00 1.0\nc cpu  %d 0 50 1000 0 0 0 %d 0 0\n", round,
                      100 + 900 * round, 900 * round);
        for (int port = 0; port < MONITOR_PORTS_MAX; port++) {
            strbuf_printf(&text, "n e%d %d %d %d %d 0 0 0 0\n", port, 9000 * round, 9000 * round,
                          90 * round, 9000 * round);
        }
    }
    strbuf_add_z(&text, "reperf-monitor 1 end job ended\n");
    struct monitor_report report = judged(ARENA, text.ptr);
    assert_int_equal(report.n_taints, 2 * MONITOR_PORTS_MAX + 1);
    assert_string_equal(report.taints[report.n_taints - 1].id, "cpu-steal");
}

/* At rest a GPU's clock is low and it says why; counters that went back were reset. */
TEST(no_taints)
{
    static const char *const ROWS[][2] = {
        {"135 MHz, 1530 MHz, 40.00 W, 40, 0 %, 0, 3, 0x0000000000000001", ""},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 3, 0x000000000000004g", ""},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 3, 0x000000000000000F00", ""},
        {"[N/A], 1530 MHz, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]", ""},
        {"1500 MHz, 1530 MHz, 250.00 W, 60, 99 %, 0, 0, 0x0", "n eth0 10 1 0 0 10 1 0 0\n"},
        {SOUND, "n eth0 2000 10010 0 99 2000 10 0 0\n"},
        {SOUND, /* a leap second */
         "t 103.00 1.0 1700000000.250\nt 103.10 1.0 1700000001.250\n"},
    };
    for (EACH(row, ROWS)) {
        assert_int_equal(judged(ARENA, log_of(ARENA, (*row)[0], (*row)[1])).n_taints, 0);
    }
}

TEST(logs_that_are_cut_or_none)
{
    struct monitor_report report =
        judged(ARENA, "reperf-monitor 1 begin 2\n? gpu Failed to initialize NVML\nt 1.0 1\nt 3.");
    assert_false(report.is_whole);
    assert_int_equal(report.n_samples, 1);
    is_refused("", "begin");
    is_refused("hello\n", "begin");
    is_refused("reperf-monitor 1 begin 2\nx 1\nt 1\n", "line 2: no such reading");
    is_refused("reperf-monitor 1 begin 2\nt\nt 1\n", "line 2");
    is_refused("reperf-monitor 1 begin 2\nt soon\nt 1\n", "line 2");
    is_refused("reperf-monitor 1 begin 2\nt 1\ng 0, 1\n", "line 3: a GPU before the head");
    is_refused("reperf-monitor 1 begin 2\nh index, clocks.sm [MHz]\ng 0, 7\n", "line 3");
    is_refused("reperf-monitor 1 begin 2\nh index\ng x\n", "line 3");
    is_refused("reperf-monitor 1 begin 2\nn eth0 1 2 3\nt 1\n", "line 2");
    is_refused("reperf-monitor 1 begin 2\nc cpu  1 2\nt 1\n", "line 2");
    is_refused("reperf-monitor 1 begin 2\nn eth0 1 2 3 4 5 6 7 -8\nt 1\n", "line 2");
    is_refused("reperf-monitor 1 begin 2\np 00000000:1A:00.0\nt 1\n",
               "expected a GPU's bus id and a process");
    is_refused("reperf-monitor 1 begin 2\nh index\ng 64\n", "line 3: a GPU without an index");
}

/* One more interface than there may be is an error that names it, not memory. */
TEST(more_than_a_node_has_is_refused)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1 << 16);
    strbuf_add_z(&text, "reperf-monitor 1 begin 2\n");
    for (int idx = 0; idx <= MONITOR_PORTS_MAX; idx++) {
        strbuf_printf(&text, "n e%d 0 0 0 0 0 0 0 0\n", idx);
    }
    is_refused(text.ptr, "line 258: too many interfaces");
}

static void run_to_its_end(struct remote *remote, const struct remote_job *job)
{
    struct job_report report = {.state = JOB_RUNNING};
    DONE(remote->ops->start(remote, job, ERR));
    while (report.state == JOB_RUNNING) {
        DONE(remote->ops->poll(remote, job->id, &report, ERR));
    }
    assert_int_equal(report.state, JOB_ENDED);
}

/* reperf-node's own, during a job of some seconds, with an nvidia-smi found by PATH. */
TEST(the_sampler)
{
    static const char RUN[] = "until grep -q '^g 1' \"$1\"; do sleep 0.1; done; sleep 0.2";
    const char *work = scratch_path("work"), *bin = scratch_path("bin");
    const char *log = arena_printf(ARENA, "%s/jobs/job/monitor/log", work);
    const char *const argv[] = {"/bin/sh", "-c", RUN, "run", log, NULL};
    const struct remote_job job = {.id = "job", .argv = argv, .is_watched = true};
    struct str text, smi;
    PASSES(fs_mkdir_p(bin, ERR));
    PASSES(fs_read(ARENA, "tests/integration/fake_nvidia_smi.sh", 1u << 20, &smi, ERR));
    scratch_write(fs_join(ARENA, bin, "nvidia-smi"), smi);
    assert_int_equal(chmod(fs_join(ARENA, bin, "nvidia-smi"), 0755), 0);
    assert_int_equal(setenv("PATH", arena_printf(ARENA, "%s:%s", bin, getenv("PATH")), 1), 0);
    REMOTE_BELOW(work);
    run_to_its_end(remote, &job);
    /* It looks once a second whether the job is over. */
    for (int tries = 0; tries < 6000; tries++) {
        PASSES(fs_read(ARENA, log, 1u << 20, &text, ERR));
        if (str_find(text, STR_LIT(" end ")) >= 0) {
            break;
        }
        (void)poll(NULL, 0, 100);
    }
    struct monitor_report report = judged(ARENA, text.ptr);
    assert_true(report.is_whole);
    assert_true(report.n_samples >= 2);
    assert_int_equal(report.n_gpus, 2);
    assert_int_equal(report.gpus[1].n_busy, report.n_samples - 1); /* the last is the time alone */
    assert_true(report.gpus[1].clock_median_mhz == 1530 && report.gpus[1].clock_max_mhz == 1530);
    for (size_t idx = 0; idx < report.n_taints; idx++) { /* this machine's own may be tainted */
        assert_true(strncmp(report.taints[idx].id, "gpu-", 4) != 0);
    }
}

UNIT_MAIN(node_group_start, scratch_group_end)
