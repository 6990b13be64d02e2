/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPUs of this machine can do: one line of JSON, in the form in which reperf-node bench prints the rest of the machine
   (manifests/schema/node-bench-answer.json). It states work and nanoseconds of each repeat; the reader computes the figures. */
#include "base/base.h"

#include "bench/gpus.h"

#include "base/cpus.h"
#include "base/fs.h"
#include "bench/bench.h"
#include "core/json_writer.h"
#include "dist/sock.h"

#include <errno.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORK_MAX      (INT64_C(1) << 53) /* of a repeat */
#define LOOK_MS       200                /* between checks for signals and the deadline */
#define DOCUMENT_MAX  (1 << 20)
#define SLOW_SHARE    0.9 /* of the median of this machine's GPUs: slower ones are named */
#define SLOW_GPUS_MIN 3

static const char *const NAMES[GPU_MEASURES] = {"gpu.hbm", "gpu.matmul", "gpu.matmul.fp32",
                                                "gpu.allreduce"};

struct gpu_process {
    pid_t pid;
    int fd;
    bool has_died;
    struct gpu_reply reply;
    int64_t *ns; /* of each repeat */
};

struct gpus {
    const struct bench_opts *opts;
    struct arena *arena;
    struct clock_src clock;
    const volatile sig_atomic_t *stop;
    int64_t deadline_ns;
    struct gpu_process *each;
    int n;
    int listener; /* where the first process meets the others; -1 once it has it */
    struct strbuf series_text, notes_text, lacks_text;
    struct json_out series, notes, lacks; /* members of the three lists, in these buffers */
};

static void gpus_cleanup(struct gpus *g)
{
    strbuf_release(&g->series_text);
    strbuf_release(&g->notes_text);
    strbuf_release(&g->lacks_text);
    fd_close(&g->listener);
}

/* ---- processes ---- */

static void ended(struct gpu_process *p)
{
    int status = 0;
    p->has_died = true;
    (void)close(p->fd);
    p->fd = -1;
    (void)waitpid(p->pid, &status, 0);
    p->reply = (struct gpu_reply){.is_failure = true};
    (void)snprintf(p->reply.text, sizeof(p->reply.text), "its process ended by %s %d",
                   WIFSIGNALED(status) ? "signal" : "itself with status",
                   WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int over(const struct gpus *g, struct err *err)
{
    if (*g->stop != 0) {
        return err_set(err, ERR_INTERRUPTED, "signal %d", (int)*g->stop);
    }
    return g->clock.mono_ns(g->clock.ctx) > g->deadline_ns
               ? err_set(err, ERR_TIMEOUT, "not done after %" PRId64 " s", g->opts->deadline_s)
               : 0;
}

/* Waits for all; one that has died has failed. */
static int hear_all(struct gpus *g, struct err *err)
{
    for (int i = 0; i < g->n; i++) {
        struct gpu_process *p = &g->each[i];
        struct pollfd ready = {.fd = p->fd, .events = POLLIN};
        int n = 0;
        while (!p->has_died && n == 0) {
            if (over(g, err) < 0) {
                return -1;
            }
            n = poll(&ready, 1, LOOK_MS);
            n = n < 0 ? 0 : n; /* by a signal */
        }
        if (!p->has_died && recv(p->fd, &p->reply, sizeof(p->reply), 0) != sizeof(p->reply)) {
            ended(p);
        }
        p->reply.text[sizeof(p->reply.text) - 1] = '\0';
    }
    return 0;
}

static int tell_all(struct gpus *g, const struct gpu_order *order, struct err *err)
{
    for (int i = 0; i < g->n; i++) {
        struct gpu_process *p = &g->each[i];
        if (!p->has_died && send(p->fd, order, sizeof(*order), MSG_NOSIGNAL) != sizeof(*order)) {
            ended(p);
        }
    }
    return hear_all(g, err);
}

/* The first that failed; NULL: none. */
static const struct gpu_process *failed(const struct gpus *g)
{
    for (int i = 0; i < g->n; i++) {
        if (g->each[i].reply.is_failure) {
            return &g->each[i];
        }
    }
    return NULL;
}

static int start(struct gpus *g, const struct gpu_place *place, struct gpu_process *p,
                 struct err *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) {
        return err_set(err, ERR_INTERNAL, "socketpair: %s", err_errno_text(errno));
    }
    p->pid = fork();
    if (p->pid < 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        return err_set(err, ERR_INTERNAL, "fork: %s", err_errno_text(errno));
    }
    if (p->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int i = 0; i < g->n; i++) { /* of those before it */
            (void)close(g->each[i].fd);
        }
        (void)close(ends[0]);
        if (place->gpu > 0) {
            (void)close(g->listener);
        }
        _exit(gpu_worker(place, ends[1]));
    }
    (void)close(ends[1]);
    p->fd = ends[0];
    return 0;
}

/* They end when their socket is closed. */
static void end_all(struct gpus *g, bool is_in_peace)
{
    for (int i = 0; i < g->n; i++) {
        if (!g->each[i].has_died) {
            (void)close(g->each[i].fd);
            if (!is_in_peace) {
                (void)kill(g->each[i].pid, SIGKILL);
            }
        }
    }
    for (int i = 0; i < g->n; i++) {
        if (!g->each[i].has_died) {
            (void)waitpid(g->each[i].pid, NULL, 0);
        }
    }
}

/* In a process of its own: a driver opened here would not survive the fork. */
static int count(int *ret_n, struct err *err)
{
    struct told {
        int n;
        struct err err;
    } told = {0};
    int ends[2];
    if (pipe(ends) < 0) {
        return err_set(err, ERR_INTERNAL, "pipe: %s", err_errno_text(errno));
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)!gpu_count(&told.n, &told.err);
        _exit(write(ends[1], &told, sizeof(told)) == (ssize_t)sizeof(told) ? 0 : 1);
    }
    (void)close(ends[1]);
    ssize_t got = pid < 0 ? -1 : read(ends[0], &told, sizeof(told));
    (void)close(ends[0]);
    if (pid > 0) {
        (void)waitpid(pid, NULL, 0);
    }
    if (got != (ssize_t)sizeof(told)) {
        return err_set(err, ERR_WORKLOAD, "the CUDA driver cannot be opened");
    }
    *ret_n = told.n;
    return told.err.code == ERR_NONE ? 0 : err_set(err, told.err.code, "%s", told.err.msg);
}

/* ---- one measure ---- */

static void lack(struct gpus *g, enum gpu_measure measure, const char *why)
{
    json_out_open(&g->lacks, '{');
    json_out_put_text(&g->lacks, "measure", NAMES[measure]);
    json_out_put_text(&g->lacks, "why", why);
    json_out_close(&g->lacks, '}');
}

static void note(struct gpus *g, const char *text)
{
    json_out_text(&g->notes, str_of(text));
}

static void lack_of(struct gpus *g, enum gpu_measure measure, const struct gpu_process *of)
{
    char why[GPU_TEXT_MAX + 32];
    (void)snprintf(why, sizeof(why), "GPU %d: %s", (int)(of - g->each), of->reply.text);
    lack(g, measure, why);
}

/* Names the GPU that slows down the others; for a sum over all that cannot be known. */
static void name_slow(struct gpus *g, enum gpu_measure measure)
{
    int64_t n_repeats = g->opts->n_repeats;
    double *own = arena_array(g->arena, double, (size_t)n_repeats);
    double *all = arena_array(g->arena, double, (size_t)g->n);
    double *sorted = arena_array(g->arena, double, (size_t)g->n);
    if (g->n < SLOW_GPUS_MIN || measure == GPU_ALL_REDUCE) {
        return;
    }
    for (int i = 0; i < g->n; i++) {
        for (int64_t at = 0; at < n_repeats; at++) {
            own[at] = (double)g->each[i].ns[at];
        }
        all[i] = sorted[i] = bench_median(own, n_repeats);
    }
    double usual = bench_median(sorted, g->n);
    for (int i = 0; i < g->n; i++) {
        double share = usual / all[i];
        if (share < SLOW_SHARE) {
            note(g, arena_printf(g->arena, "%s: GPU %d has %.0f %% of the median of the %d GPUs",
                                 NAMES[measure], i, 100.0 * share, g->n));
        }
    }
}

static void put_series(struct gpus *g, enum gpu_measure measure, int64_t work)
{
    json_out_open(&g->series, '{');
    json_out_put_text(&g->series, "measure", NAMES[measure]);
    json_out_put_i64(&g->series, "size_bytes", 0);
    json_out_put_i64(&g->series, "work", work);
    json_out_key(&g->series, "ns");
    json_out_open(&g->series, '[');
    for (int64_t at = 0; at < g->opts->n_repeats; at++) {
        int64_t slowest = 1;
        for (int i = 0; i < g->n; i++) {
            slowest = g->each[i].ns[at] > slowest ? g->each[i].ns[at] : slowest;
        }
        json_out_i64(&g->series, slowest);
    }
    json_out_close(&g->series, ']');
    json_out_close(&g->series, '}');
}

/* The same number for all, so that the slowest reaches the target time. The work is that of all GPUs together, but for an all-reduce that
   of one: NCCL's bus bandwidth. */
static int64_t passes_of(const struct gpus *g, enum gpu_measure measure, int64_t *ret_work)
{
    int64_t slowest_ns = 1;
    int64_t work = measure == GPU_ALL_REDUCE ? g->each[0].reply.work : 0;
    for (int i = 0; i < g->n; i++) {
        const struct gpu_reply *reply = &g->each[i].reply;
        slowest_ns = reply->ns > slowest_ns ? reply->ns : slowest_ns;
        work += measure == GPU_ALL_REDUCE ? 0 : reply->work;
    }
    int64_t passes = g->opts->sample_ms * NS_PER_MS / slowest_ns + 1;
    int64_t most = (WORK_MAX - 1) / (work > 0 ? work : 1);
    passes = passes > most ? most : passes;
    *ret_work = passes * work;
    return passes;
}

static int measure_one(struct gpus *g, enum gpu_measure measure, struct err *err)
{
    struct gpu_order order = {.verb = GPU_PREPARE, .measure = measure};
    int64_t work = 0;
    if (tell_all(g, &order, err) < 0) {
        return -1;
    }
    const struct gpu_process *bad = failed(g);
    order.verb = GPU_RUN;
    order.count = bad ? 0 : passes_of(g, measure, &work);
    for (int64_t at = 0; at < g->opts->n_repeats && !bad; at++) {
        if (tell_all(g, &order, err) < 0) {
            return -1;
        }
        for (int i = 0; i < g->n; i++) {
            g->each[i].ns[at] = g->each[i].reply.ns;
        }
        bad = failed(g);
    }
    if (bad) {
        lack_of(g, measure, bad);
    }
    order.verb = GPU_END;
    if (tell_all(g, &order, err) < 0) {
        return -1;
    }
    if (bad) {
        return 0;
    }
    bad = failed(g);
    if (bad) {
        lack_of(g, measure, bad);
        return 0;
    }
    put_series(g, measure, work);
    name_slow(g, measure);
    return 0;
}

/* ---- all ---- */

static void put_list(struct json_out *out, const char *key, const struct strbuf *members)
{
    json_out_key(out, key);
    json_out_open(out, '[');
    strbuf_add(out->buf, members->ptr, members->len);
    json_out_close(out, ']');
}

static int print(const struct gpus *g, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text;
    struct json_out out = {.buf = &text};
    size_t cpus = cpus_usable();
    strbuf_init(&text, 4 * (size_t)DOCUMENT_MAX);
    json_out_open(&out, '{');
    json_out_put_i64(&out, "schema_version", 1);
    json_out_put_text(&out, "what", "gpu");
    json_out_put_text(&out, "cpu_model", "");
    json_out_put_i64(&out, "cpus", cpus > 0 ? (int64_t)cpus : 1);
    json_out_put_i64(&out, "gpus", g->n);
    put_list(&out, "series", &g->series_text);
    put_list(&out, "notes", &g->notes_text);
    put_list(&out, "not_measured", &g->lacks_text);
    json_out_close(&out, '}');
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    return fs_write_all(STDOUT_FILENO, text.ptr, text.len, "standard output", err);
}

static int measure_all(struct gpus *g, struct err *err)
{
    if (hear_all(g, err) < 0) {
        return -1;
    }
    const struct gpu_process *bad = failed(g);
    if (!bad) {
        note(g, arena_printf(g->arena, "%d x %s", g->n, g->each[0].reply.text));
    }
    for (enum gpu_measure measure = GPU_COPY; measure < GPU_MEASURES; measure++) {
        if (bad) {
            lack_of(g, measure, bad);
        } else if (measure == GPU_ALL_REDUCE && g->n == 1) {
            lack(g, measure, "there is one GPU");
        } else if (measure_one(g, measure, err) < 0) {
            return -1;
        }
    }
    return 0;
}

static int run(struct gpus *g, int n_gpus, struct err *err)
{
    struct gpu_place *places = arena_array(g->arena, struct gpu_place, (size_t)n_gpus);
    int rc = sock_listen("127.0.0.1", 0, &g->listener, err);
    g->each = arena_array(g->arena, struct gpu_process, (size_t)n_gpus);
    for (int i = 0; i < n_gpus && rc == 0; i++) {
        places[i] = (struct gpu_place){.gpu = i,
                                       .n_gpus = n_gpus,
                                       .port = sock_own_port(g->listener),
                                       .listener = i == 0 ? g->listener : 0,
                                       .memory_bytes = g->opts->memory_mib << 20,
                                       .sample_ns = g->opts->sample_ms * NS_PER_MS,
                                       .stop = g->stop};
        g->each[i].ns = arena_array(g->arena, int64_t, (size_t)g->opts->n_repeats);
        rc = start(g, &places[i], &g->each[i], err);
        g->n += rc == 0;
    }
    fd_close(&g->listener);
    rc = rc < 0 ? -1 : measure_all(g, err);
    end_all(g, rc == 0);
    return rc < 0 ? -1 : print(g, err);
}

int bench_gpus(const struct bench_opts *opts, struct clock_src clock,
               const volatile sig_atomic_t *stop, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(gpus)
    struct gpus g = {.opts = opts,
                     .arena = &arena,
                     .clock = clock,
                     .stop = stop,
                     .listener = -1,
                     .deadline_ns = clock.mono_ns(clock.ctx) + opts->deadline_s * NS_PER_S};
    int n_gpus = 0;
    strbuf_init(&g.series_text, DOCUMENT_MAX);
    g.series = (struct json_out){.buf = &g.series_text};
    strbuf_init(&g.notes_text, DOCUMENT_MAX);
    g.notes = (struct json_out){.buf = &g.notes_text};
    strbuf_init(&g.lacks_text, DOCUMENT_MAX);
    g.lacks = (struct json_out){.buf = &g.lacks_text};
    int rc = count(&n_gpus, err);
    if (rc == 0 && n_gpus == 0) {
        rc = err_set(err, ERR_WORKLOAD, "gpus: there is no GPU");
    }
    if (rc == 0 && n_gpus > GPUS_MAX) {
        rc = err_set(err, ERR_WORKLOAD, "gpus: %d of them; at most %d are measured", n_gpus,
                     GPUS_MAX);
    }
    return rc < 0 ? -1 : run(&g, n_gpus, err);
}
