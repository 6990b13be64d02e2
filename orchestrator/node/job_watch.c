/* SPDX-License-Identifier: Apache-2.0 */
/* Records what the node does while a job runs: a sample every few seconds, less often the longer it lasts, read by
   fleet/monitor.h. A child of the job's wrapper, in its session; it ends by itself when the job has ended or is gone. */
#include "base/base.h"

#include "node/job.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "node/facts.h"
#include "node/tool.h"

#define INTERVAL_S  2
#define STRETCH_N   1000 /* samples after which the interval doubles: a day has about 5500 */
#define SAMPLES_MAX 20000
#define PROCESSES_N 5 /* samples between two looks at who is on the GPUs */
#define LOOK_MS     1000
#define SMI_LIMIT   (30 * NS_PER_S)
#define SET_WITHIN  (100 * NS_PER_MS) /* between two readings that count as one */
#define SET_TRIES   10
#define TEXT_MAX    (1u << 20)
#define SELF        "reperf-monitor 1"
#define NET_WORDS   13 /* in a line of /proc/net/dev, the name included */

struct job_watcher {
    const char *dir;
    struct strbuf out;
    struct strbuf query; /* nvidia-smi's; empty: it is not asked */
    const char *why;     /* it ends */
};

static volatile sig_atomic_t is_told;

static void note_told(int signal_no UNUSED)
{
    is_told = 1;
}

static void put(struct job_watcher *watch, char mark, const char *text)
{
    strbuf_printf(&watch->out, "%c %s\n", mark, text);
}

/* Ends the process if the log cannot be written. */
static void flush(struct job_watcher *watch)
{
    if (fs_write_all(STDOUT_FILENO, watch->out.ptr, watch->out.len, "the log", ERR_IGNORED) < 0) {
        _exit(1);
    }
    strbuf_clear(&watch->out);
}

static bool is_over(struct job_watcher *watch)
{
    struct job_look look;
    job_look(watch->dir, &look);
    watch->why = is_told                    ? "told to"
                 : !fs_is_dir(watch->dir)   ? "no job"
                 : look.state == JOB_ENDED  ? "job ended"
                 : look.state == JOB_LOST   ? "job lost"
                 : look.state == JOB_ABSENT ? "no job"
                                            : NULL;
    return watch->why;
}

/* ---- the GPUs ---- */

static int ask_smi(const char *form, const char *fields, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *const argv[] = {"nvidia-smi", arena_printf(&arena, "--format=%s", form),
                                arena_printf(&arena, "--query-gpu=%s", fields), NULL};
    return tool_run(argv, SMI_LIMIT, false, out);
}

/* Adds a field that this driver knows. */
static bool add_field(struct job_watcher *watch, const char *field)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf said = STRBUF(TEXT_MAX);
    if (ask_smi("csv,noheader", arena_printf(&arena, "index,%s", field), &said) != 0) {
        return false;
    }
    strbuf_printf(&watch->query, ",%s", field);
    return true;
}

static void say_no_gpus(struct job_watcher *watch)
{
    static const char *const ARGV[] = {"nvidia-smi", NULL};
    CLEANUP(strbuf) struct strbuf said = STRBUF(TEXT_MAX);
    (void)tool_run(ARGV, SMI_LIMIT, true, &said);
    struct str rest = strbuf_str(&said), line = STR_EMPTY;
    (void)str_next(&rest, '\n', &line);
    strbuf_printf(&watch->out, "? gpu %.*s\n", STR_ARG(line));
    strbuf_clear(&watch->query);
}

static void find_gpus(struct job_watcher *watch)
{
    static const char *const FIELDS[] = {"clocks.sm",
                                         "clocks.max.sm",
                                         "clocks.mem",
                                         "power.draw",
                                         "power.limit",
                                         "temperature.gpu",
                                         "utilization.gpu",
                                         "memory.used",
                                         "ecc.errors.uncorrected.volatile.total",
                                         "ecc.errors.corrected.volatile.total"};
    CLEANUP(strbuf) struct strbuf said = STRBUF(TEXT_MAX);
    if (!tool_is_there("nvidia-smi")) {
        if (fs_exists("/dev/nvidia0")) {
            put(watch, '?', "gpu no nvidia-smi");
        }
        return;
    }
    strbuf_add_z(&watch->query, "index,pci.bus_id");
    for (size_t idx = 0; idx < ARRAY_LEN(FIELDS); idx++) {
        (void)add_field(watch, FIELDS[idx]);
    }
    if (!add_field(watch, "clocks_event_reasons.active")) {
        (void)add_field(watch, "clocks_throttle_reasons.active");
    }
    if (ask_smi("csv", watch->query.ptr, &said) != 0) {
        say_no_gpus(watch);
        return;
    }
    struct str rest = strbuf_str(&said), head = STR_EMPTY;
    (void)str_next(&rest, '\n', &head);
    strbuf_printf(&watch->out, "h %.*s\n", STR_ARG(head));
}

static void put_lines(struct job_watcher *watch, char mark, const struct strbuf *said)
{
    struct str rest = strbuf_str(said), line;
    while (str_next(&rest, '\n', &line)) {
        bool is_process = line.len && line.ptr[0] >= '0' && line.ptr[0] <= '9' &&
                          str_find(line, STR_LIT(":")) > 0;
        if (line.len && (mark == 'g' || is_process)) {
            strbuf_printf(&watch->out, "%c %.*s\n", mark, STR_ARG(line));
        }
    }
}

static void sample_gpus(struct job_watcher *watch, size_t n)
{
    static const char *const APPS[] = {"nvidia-smi", "--format=csv,noheader",
                                       "--query-compute-apps=gpu_bus_id,pid", NULL};
    CLEANUP(strbuf) struct strbuf rows, apps;
    strbuf_init(&rows, TEXT_MAX);
    strbuf_init(&apps, TEXT_MAX);
    if (!watch->query.len) {
        return;
    }
    if (ask_smi("csv,noheader", watch->query.ptr, &rows) == TOOL_STUCK) {
        put(watch, '?', "gpu nvidia-smi does not end");
        strbuf_clear(&watch->query); /* each further call would hang, too */
        return;
    }
    put_lines(watch, 'g', &rows);
    if (n % PROCESSES_N == 0) {
        (void)tool_run(APPS, SMI_LIMIT, false, &apps);
        put_lines(watch, 'p', &apps);
    }
}

/* ---- the machine ---- */

static void put_first(struct job_watcher *watch, char mark, const char *path)
{
    char text[FACTS_TEXT];
    (void)facts_line(path, text);
    put(watch, mark, text);
}

/* The uptime; and when the machine began by its wall clock, which changes only when somebody sets that. It is left out where
   this process does not get to read both clocks at once. */
static void put_time(struct job_watcher *watch)
{
    const struct clock_src clock = clock_system();
    char text[FACTS_TEXT];
    (void)facts_line("/proc/uptime", text);
    strbuf_printf(&watch->out, "t %s", text);
    for (int tries = 0; tries < SET_TRIES; tries++) {
        const int64_t before_ns = clock_boot_ns(), wall_ns = clock.wall_ns(clock.ctx);
        if (clock_boot_ns() - before_ns < SET_WITHIN) {
            strbuf_printf(&watch->out, " %.3f", (double)(wall_ns - before_ns) / NS_PER_S);
            break;
        }
    }
    strbuf_add_char(&watch->out, '\n');
}

/* "IF: 16 counters": rx first, of which 4 are kept, then tx. There may be no blank between the name and the first
   number. */
static void put_interface(struct job_watcher *watch, struct str line)
{
    static const char *const OTHERS[] = {"veth", "docker", "br-"};
    int64_t colon = str_find(line, STR_LIT(":"));
    struct str words[NET_WORDS], word;
    size_t n = 1;
    if (colon < 0) {
        return;
    }
    words[0] = str_trim(str_sub(line, 0, (size_t)colon));
    for (size_t idx = 0; idx < ARRAY_LEN(OTHERS); idx++) {
        if (str_eq_z(words[0], "lo") || str_starts(words[0], str_of(OTHERS[idx]))) {
            return;
        }
    }
    struct str rest = str_sub(line, (size_t)colon + 1, line.len);
    while (n < NET_WORDS && str_next(&rest, ' ', &word)) {
        if (word.len) {
            words[n++] = word;
        }
    }
    if (n == NET_WORDS) {
        strbuf_printf(&watch->out, "n %.*s %.*s %.*s %.*s %.*s %.*s %.*s %.*s %.*s\n",
                      STR_ARG(words[0]), STR_ARG(words[1]), STR_ARG(words[2]), STR_ARG(words[3]),
                      STR_ARG(words[4]), STR_ARG(words[9]), STR_ARG(words[10]), STR_ARG(words[11]),
                      STR_ARG(words[12]));
    }
}

static void put_network(struct job_watcher *watch)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    CLEANUP(fd) int fd = open("/proc/net/dev", O_RDONLY | O_CLOEXEC);
    char chunk[16384];
    ssize_t len;
    struct str line;
    while (fd >= 0 && (len = read(fd, chunk, sizeof(chunk))) > 0) {
        strbuf_add(&text, chunk, (size_t)len);
    }
    struct str rest = strbuf_str(&text);
    while (str_next(&rest, '\n', &line)) {
        put_interface(watch, line);
    }
}

static void put_infiniband(struct job_watcher *watch)
{
    static const char IB[] = "/sys/class/infiniband";
    static const char *const COUNTERS[] = {"symbol_error", "link_error_recovery", "link_downed",
                                           "port_rcv_errors"};
    struct facts facts = {0};
    struct fs_names devices = facts_names(&facts, IB, "");
    for (size_t at = 0; at < devices.n; at++) {
        const char *folder = arena_printf(&facts.arena, "%s/%s/ports", IB, devices.items[at]);
        struct fs_names ports = facts_names(&facts, folder, "");
        for (size_t idx = 0; idx < ports.n; idx++) {
            strbuf_printf(&watch->out, "i %s.%s", devices.items[at], ports.items[idx]);
            for (size_t of = 0; of < ARRAY_LEN(COUNTERS); of++) {
                char text[FACTS_TEXT];
                (void)facts_line(arena_printf(&facts.arena, "%s/%s/counters/%s", folder,
                                              ports.items[idx], COUNTERS[of]),
                                 text);
                strbuf_printf(&watch->out, " %s", text);
            }
            strbuf_add_char(&watch->out, '\n');
        }
    }
    arena_release(&facts.arena);
}

static void sample(struct job_watcher *watch, size_t n)
{
    put_time(watch);
    put_first(watch, 'l', "/proc/loadavg");
    put_first(watch, 'c', "/proc/stat");
    put_network(watch);
    put_infiniband(watch);
    sample_gpus(watch, n);
    flush(watch);
}

static bool wait_s(struct job_watcher *watch, int64_t seconds)
{
    for (; seconds > 0 && !is_over(watch); seconds--) {
        (void)poll(NULL, 0, LOOK_MS);
    }
    return !is_over(watch);
}

NORETURN void job_watch(const char *dir)
{
    struct job_watcher watch = {.dir = dir};
    int64_t interval_s = INTERVAL_S;
    size_t n = 0;
    strbuf_init(&watch.out, (size_t)4 * TEXT_MAX);
    strbuf_init(&watch.query, FACTS_TEXT);
    (void)sigaction(SIGTERM, &(struct sigaction){.sa_handler = note_told}, NULL);
    strbuf_printf(&watch.out, SELF " begin %d\n", INTERVAL_S);
    find_gpus(&watch);
    flush(&watch);
    while (!is_over(&watch) && n < SAMPLES_MAX) {
        sample(&watch, n++);
        interval_s = n % STRETCH_N == 0 ? 2 * interval_s : interval_s;
        if (!wait_s(&watch, interval_s)) {
            break;
        }
    }
    put_time(&watch); /* a clock that was set since the last sample */
    strbuf_printf(&watch.out, SELF " end %s\n", watch.why ? watch.why : "enough samples");
    flush(&watch);
    _exit(0);
}
