/* SPDX-License-Identifier: Apache-2.0 */
/* What starts the ranks of a node; each ends with the status that the job is to have, and prints nothing of its own but why.
   `reperf-node ranks FIRST COUNT GRACE_S PROGRAM ARG...`: several of them, until all have ended. Ranks are numbered from
   FIRST, or, where that is empty, from COUNT times REPERF_NODE_RANK. The first that fails is named in a line of the log, and
   takes the others down.
   `reperf-node task COUNT PROGRAM ARG...`: becomes the one rank that mpirun or srun has started, of COUNT on each node.
   `reperf-node node-task PROGRAM ARG...`: becomes the one process a node that these have started; words that end in
   REPERF_NODE_RANK=@ get its number, which a container cannot know otherwise.
   `reperf-node mpirun NETWORK SLOTS N ADDRESS... WORD...`: becomes mpirun on N nodes. */
#include "base/base.h"

#include "node/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/fs.h"
#include "node/job.h"

#define STATUS_USAGE 2
#define STATUS_PLACE 70
#define RANKS_MAX    1024
#define GRACE_S_MAX  3600
#define NODES_MAX    65536
#define NUMBER_SIZE  24
#define FILE_SIZE    32
/* After the first that failed: one that a signal ended is the cause, and those that lost it may have been seen before it. */
#define SETTLE_NS (200 * NS_PER_MS)

static int fail(const char *what, const char *why)
{
    dprintf(STDERR_FILENO, "reperf-node: %s: %s\n", what, why);
    return STATUS_PLACE;
}

static NORETURN void become(char **argv)
{
    execvp(argv[0], argv);
    int failed = errno;
    (void)fail(argv[0], err_errno_text(failed));
    _exit(failed == ENOENT ? 127 : 126);
}

static bool number_of(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    return str_to_i64(str_of(text), min, max, ret, ERR_IGNORED) == 0;
}

static void set_number(const char *name, int64_t number)
{
    char text[NUMBER_SIZE];
    (void)snprintf(text, sizeof(text), "%" PRId64, number);
    (void)setenv(name, text, 1);
}

/* Unless the step or the node says otherwise: a share of the processors that this may use. */
static void share_cpus(int64_t n_ranks)
{
    const char *said = getenv("OMP_NUM_THREADS");
    int64_t cpus = (int64_t)cpus_usable();
    if (!said || !said[0]) {
        set_number("OMP_NUM_THREADS", cpus / n_ranks > 0 ? cpus / n_ranks : 1);
    }
}

/* ---- several ranks ---- */

struct rank {
    pid_t pid;
    int64_t number;
    bool is_over;
};

struct ranks {
    struct rank *items;
    size_t n, n_left;
    int64_t grace_ns;
    bool is_stopping, is_killed;
    int64_t kill_ns; /* when those that are left are killed; of is_stopping */
    int status;      /* the first failure's; 0: none has failed */
    int64_t culprit; /* its number */
    bool is_settling,
        is_from_here; /* the others are still to be told; it was no stop from outside */
    int64_t settle_ns;
};

static void signal_all(const struct ranks *r, int signal_no)
{
    for (size_t idx = 0; idx < r->n; idx++) {
        if (!r->items[idx].is_over) {
            (void)kill(r->items[idx].pid, signal_no);
        }
    }
}

static void stop(struct ranks *r, int signal_no)
{
    if (!r->is_stopping) {
        r->is_stopping = true;
        r->kill_ns = clock_now_ns() + r->grace_ns;
    }
    signal_all(r, signal_no);
}

static void take_status(struct ranks *r, const struct rank *rank, int status)
{
    bool is_worse = status > 128 && r->is_settling && r->status <= 128;
    if (status == 0 || (r->status != 0 && !is_worse)) {
        return;
    }
    r->status = status;
    r->culprit = rank->number;
    if (!r->is_settling) {
        r->is_settling = true;
        r->is_from_here = !r->is_stopping;
        r->settle_ns = clock_now_ns() + (status > 128 || r->is_stopping ? 0 : SETTLE_NS);
    }
}

/* The culprit is known. */
static void settle(struct ranks *r)
{
    r->is_settling = false;
    if (r->is_from_here) {
        dprintf(STDOUT_FILENO,
                "{\"event\":\"fatal\",\"rank\":%" PRId64
                ",\"device\":\"\",\"where\":\"launcher\",\"what\":\"ended with status %d\"}\n",
                r->culprit, r->status);
    }
    stop(r, SIGTERM);
}

/* Also of what ranks have left behind, where this is the first process of a container. */
static void reap(struct ranks *r)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        for (size_t idx = 0; idx < r->n; idx++) {
            struct rank *rank = &r->items[idx];
            if (rank->pid == pid && !rank->is_over) {
                rank->is_over = true;
                r->n_left--;
                take_status(r, rank, wrapper_exit_status(status));
            }
        }
    }
}

static void take_signal(struct ranks *r, int signal_no)
{
    if (signal_no == SIGCHLD) {
        reap(r);
    } else if (signal_no == SIGUSR1 || signal_no == SIGUSR2) {
        signal_all(r, signal_no);
    } else {
        stop(r, signal_no == SIGHUP ? SIGHUP : SIGTERM);
    }
}

static struct timespec span_until(int64_t until_ns)
{
    int64_t left_ns = until_ns - clock_now_ns();
    left_ns = left_ns > 0 ? left_ns : 0;
    return (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
}

static int wait_for_all(struct ranks *r, const sigset_t *signals)
{
    while (r->n_left > 0) {
        struct timespec until = span_until(r->is_settling ? r->settle_ns : r->kill_ns);
        bool has_limit = r->is_settling || (r->is_stopping && !r->is_killed);
        siginfo_t info;
        int signal_no =
            has_limit ? sigtimedwait(signals, &info, &until) : sigwaitinfo(signals, &info);
        if (signal_no > 0) {
            take_signal(r, signal_no);
        }
        if (r->is_settling && (clock_now_ns() >= r->settle_ns || r->status > 128)) {
            settle(r);
        }
        if (r->is_stopping && !r->is_killed && clock_now_ns() >= r->kill_ns) {
            r->is_killed = true;
            signal_all(r, SIGKILL);
        }
    }
    if (r->is_settling) {
        settle(r);
    }
    return r->status;
}

/* Each is a child of this process, so that its status is its own and a signal reaches it alone; its output is the log, byte
   for byte. */
static int start_all(struct ranks *r, int64_t first, char **argv)
{
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (size_t idx = 0; idx < r->n; idx++) {
        struct rank *rank = &r->items[idx];
        *rank = (struct rank){.number = first + (int64_t)idx};
        rank->pid = wrapper_fork_tied();
        if (rank->pid == 0) {
            set_number("RANK", rank->number);
            set_number("LOCAL_RANK", (int64_t)idx);
            (void)dup2(null_fd, STDIN_FILENO);
            wrapper_reset_signals();
            become(argv);
        }
        if (rank->pid < 0) {
            int failed = errno;
            r->n = idx;
            signal_all(r, SIGKILL);
            return fail("fork", err_errno_text(failed));
        }
        r->n_left++;
    }
    return 0;
}

static int ranks_main(int argc, char **argv)
{
    static const int SIGNALS[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD};
    struct ranks r = {0};
    const char *node = getenv(NODE_RANK_NAME);
    int64_t first = 0, count, grace_s, node_rank = 0;
    sigset_t signals;
    if (argc < 4 || !number_of(argv[1], 1, RANKS_MAX, &count) ||
        !number_of(argv[2], 0, GRACE_S_MAX, &grace_s)) {
        return STATUS_USAGE;
    }
    if (argv[0][0] ? !number_of(argv[0], 0, INT32_MAX, &first)
                   : !node || !number_of(node, 0, NODES_MAX, &node_rank)) {
        return argv[0][0] ? STATUS_USAGE : fail(NODE_RANK_NAME, "it is not set to a number");
    }
    sigemptyset(&signals);
    for (size_t idx = 0; idx < ARRAY_LEN(SIGNALS); idx++) {
        sigaddset(&signals, SIGNALS[idx]);
    }
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    share_cpus(count);
    r.items = xcalloc((size_t)count, sizeof(*r.items));
    r.n = (size_t)count;
    r.grace_ns = grace_s * NS_PER_S;
    int status = start_all(&r, argv[0][0] ? first : node_rank * count, argv + 3);
    status = status ? status : wait_for_all(&r, &signals);
    free(r.items);
    return status;
}

/* ---- what mpirun and srun start ---- */

static const char *said_by_launcher(const char *of_openmpi, const char *of_slurm)
{
    const char *text = getenv(of_openmpi);
    return text && text[0] ? text : getenv(of_slurm);
}

/* They number the ranks node by node, as we ask them to. */
static int task_main(int argc, char **argv)
{
    const char *rank = said_by_launcher("OMPI_COMM_WORLD_RANK", "SLURM_PROCID");
    const char *local = said_by_launcher("OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID");
    int64_t count;
    if (argc < 2 || !number_of(argv[0], 1, RANKS_MAX, &count)) {
        return STATUS_USAGE;
    }
    if (!rank || !local) {
        return fail("task", "neither mpirun nor srun says which rank this is");
    }
    (void)setenv("RANK", rank, 1);
    (void)setenv("LOCAL_RANK", local, 1);
    share_cpus(count);
    become(argv + 1);
}

static int node_task_main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *node = said_by_launcher("OMPI_COMM_WORLD_RANK", "SLURM_NODEID");
    if (argc < 1) {
        return STATUS_USAGE;
    }
    if (!node) {
        return fail("node-task", "neither mpirun nor srun says which node this is");
    }
    (void)setenv("NODE_RANK", node, 1);
    for (int idx = 0; idx < argc; idx++) {
        size_t len = strlen(argv[idx]);
        if (str_ends(str_of(argv[idx]), STR_LIT(NODE_RANK_NAME "=" NODE_RANK_HOLE))) {
            argv[idx] = arena_printf(&arena, "%.*s%s", (int)(len - strlen(NODE_RANK_HOLE)),
                                     argv[idx], node);
        }
    }
    become(argv);
}

/* ---- mpirun ---- */

/* Its hostfile is in memory, and gone with it. */
static int write_hosts(const char *slots, char **addresses, int64_t n, char ret_path[FILE_SIZE])
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(NODE_BODY_MAX);
    struct err err = {0};
    int fd = memfd_create("reperf-hosts", 0);
    for (int64_t idx = 0; idx < n; idx++) {
        strbuf_printf(&text, "%s slots=%s\n", addresses[idx], slots);
    }
    if (fd < 0) {
        return fail("hostfile", err_errno_text(errno));
    }
    if (fs_write_all(fd, text.ptr, text.len, "hostfile", &err) < 0) {
        return fail("hostfile", err.msg);
    }
    (void)snprintf(ret_path, FILE_SIZE, "/proc/self/fd/%d", fd);
    return 0;
}

static int mpirun_main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char hosts[FILE_SIZE], np[NUMBER_SIZE], allow_root[] = "--allow-run-as-root";
    const char *network = argv[0];
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int64_t slots, n_nodes;
    size_t n = 0;
    if (argc < 4 || !number_of(argv[1], 1, RANKS_MAX, &slots) ||
        !number_of(argv[2], 1, NODES_MAX, &n_nodes) || 3 + n_nodes >= argc) {
        return STATUS_USAGE;
    }
    if (write_hosts(argv[1], argv + 3, n_nodes, hosts) != 0) {
        return STATUS_PLACE;
    }
    (void)snprintf(np, sizeof(np), "%" PRId64, slots * n_nodes);
    const char *const BEGIN[] = {
        "mpirun", "--hostfile", hosts,           "-np",
        np,       "--map-by",   "slot",          "--bind-to",
        "none",   "--mca",      "plm_rsh_agent", "ssh -o BatchMode=yes -o ConnectTimeout=15"};
    const char *const OVER[] = {"--mca", "oob_tcp_if_include", network,
                                "--mca", "btl_tcp_if_include", network};
    char **words =
        arena_array(&arena, char *, (size_t)argc + ARRAY_LEN(BEGIN) + ARRAY_LEN(OVER) + 2);
    memcpy(words, BEGIN, sizeof(BEGIN));
    n = ARRAY_LEN(BEGIN);
    if (geteuid() == 0) {
        words[n++] = allow_root;
    }
    if (network[0]) {
        memcpy(words + n, OVER, sizeof(OVER));
        n += ARRAY_LEN(OVER);
    }
    for (int64_t idx = 3 + n_nodes; idx < argc; idx++) {
        words[n++] = argv[idx];
    }
    (void)dup2(null_fd, STDIN_FILENO);
    become(words);
}

int rank_program(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } PROGRAMS[] = {{"ranks", ranks_main},
                    {"task", task_main},
                    {"node-task", node_task_main},
                    {"mpirun", mpirun_main}};
    for (size_t idx = 0; argc > 1 && idx < ARRAY_LEN(PROGRAMS); idx++) {
        if (strcmp(argv[1], PROGRAMS[idx].name) == 0) {
            return PROGRAMS[idx].run(argc - 2, argv + 2);
        }
    }
    return -1;
}
