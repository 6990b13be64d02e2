/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "node/gauge.h"

#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "base/fs.h"

#define STATUS_USAGE  2
#define STATUS_FAILED 74
#define LIMIT_S_MAX   3600
#define SAMPLE_MS_MAX 10000
#define BYTES_MAX     (INT64_C(1) << 44)
#define COUNT_MAX     1000
#define MODEL_MAX     128
#define GPUS_MAX      64

/* ---- what is printed ---- */

/* Text of this machine inside a JSON string. */
static void put_text(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        char c = *text;
        strbuf_add_char(out, c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c);
    }
}

void gauge_add(struct gauge *gauge, const struct gauge_series *series)
{
    struct strbuf *out = &gauge->series;
    strbuf_printf(out,
                  "%s{\"measure\":\"%s\",\"size_bytes\":%" PRId64 ",\"work\":%" PRId64 ",\"ns\":[",
                  out->len ? "," : "", series->measure, series->size_bytes, series->work);
    for (size_t idx = 0; idx < series->n; idx++) {
        strbuf_printf(out, "%s%" PRId64, idx ? "," : "", series->ns[idx]);
    }
    strbuf_add_z(out, "]}");
}

void gauge_note(struct gauge *gauge, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    strbuf_add_z(&gauge->notes, gauge->notes.len ? ",\"" : "\"");
    put_text(&gauge->notes, text);
    strbuf_add_char(&gauge->notes, '"');
}

void gauge_lacks(struct gauge *gauge, const char *measure, const char *why)
{
    struct strbuf *out = &gauge->lacks;
    strbuf_printf(out, "%s{\"measure\":\"%s\",\"why\":\"", out->len ? "," : "", measure);
    put_text(out, why);
    strbuf_add_z(out, "\"}");
}

/* "model name : X" on x86; else the kernel's numbers for implementer and part. */
static void read_model(char *ret_model)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[512];
    ret_model[0] = '\0';
    while (file && !ret_model[0] && fgets(line, sizeof(line), file)) {
        const char *colon = strchr(line, ':');
        if (colon && (strncmp(line, "model name", 10) == 0 || strncmp(line, "CPU part", 8) == 0)) {
            struct str value = str_trim(str_of(colon + 1));
            snprintf(ret_model, MODEL_MAX, "%.*s", STR_ARG(value));
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

static int count_gpus(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct fs_names names = {0};
    struct err ignored = {0};
    static const char FOLDER[] = "/proc/driver/nvidia/gpus"; /* of NVIDIA's kernel module */
    if (!fs_is_dir(FOLDER) || fs_list(&arena, FOLDER, &names, &ignored) < 0) {
        return 0;
    }
    return names.n < GPUS_MAX ? (int)names.n : GPUS_MAX;
}

static int print(const struct gauge *gauge)
{
    CLEANUP(strbuf) struct strbuf out;
    char model[MODEL_MAX];
    struct err err = {0};
    int *cpus = xcalloc(GAUGE_CPUS_MAX, sizeof(*cpus));
    strbuf_init(&out, 4 * (size_t)GAUGE_TEXT_MAX);
    read_model(model);
    strbuf_printf(&out, "{\"schema_version\":1,\"what\":\"%s\",\"cpu_model\":\"", gauge->what);
    put_text(&out, model);
    strbuf_printf(
        &out, "\",\"cpus\":%zu,\"gpus\":%d,\"series\":[%s],\"notes\":[%s],\"not_measured\":[%s]}\n",
        team_cpus(cpus, GAUGE_CPUS_MAX), count_gpus(), gauge->series.ptr, gauge->notes.ptr,
        gauge->lacks.ptr);
    free(cpus);
    if (out.is_full || gauge->series.is_full || gauge->notes.is_full || gauge->lacks.is_full) {
        return STATUS_FAILED;
    }
    return fs_write_all(STDOUT_FILENO, out.ptr, out.len, "standard output", &err) < 0
               ? STATUS_FAILED
               : 0;
}

/* ---- the request ---- */

struct asked {
    int argc;
    char **argv;
};

static bool number_at(const struct asked *asked, int idx, int64_t min, int64_t max, int64_t *ret)
{
    struct err ignored = {0};
    return idx < asked->argc && str_to_i64(str_of(asked->argv[idx]), min, max, ret, &ignored) == 0;
}

static bool peer_of(const struct asked *asked, struct gauge_peer *ret_peer)
{
    int64_t port;
    const char *token = getenv(GAUGE_TOKEN_ENV);
    if (!number_at(asked, 1, 1, UINT16_MAX, &port) || !token ||
        strlen(token) != GAUGE_TOKEN_BYTES) {
        return false;
    }
    *ret_peer = (struct gauge_peer){asked->argv[0], (uint16_t)port, token};
    return true;
}

static int fail(const struct err *err)
{
    fprintf(stderr, "%s\n", err->msg);
    return STATUS_FAILED;
}

static int run_local(struct gauge *gauge, const struct asked *asked, bool *ret_is_done)
{
    int64_t number = 0, repeats;
    int at = 0;
    bool has_number = strcmp(gauge->what, "loop") != 0;
    bool is_disk = strcmp(gauge->what, "disk") == 0;
    *ret_is_done = false;
    at += is_disk;
    if ((has_number && !number_at(asked, at++, 0, BYTES_MAX, &number)) ||
        !number_at(asked, at++, 1, GAUGE_REPEATS_MAX - 1, &repeats) || at != asked->argc) {
        return STATUS_USAGE;
    }
    if (strcmp(gauge->what, "memory") == 0) {
        gauge_memory(gauge, number, (size_t)repeats);
    } else if (strcmp(gauge->what, "flops") == 0 && number <= SAMPLE_MS_MAX) {
        gauge_flops(gauge, number * NS_PER_MS, (size_t)repeats);
    } else if (is_disk && number > 0) {
        gauge_disk(gauge, asked->argv[0], number, (size_t)repeats);
    } else if (strcmp(gauge->what, "loop") == 0) {
        gauge_loop(gauge, (size_t)repeats);
    } else {
        return STATUS_USAGE;
    }
    *ret_is_done = true;
    return 0;
}

static int run_link(struct gauge *gauge, const struct asked *asked, bool is_ring)
{
    int64_t sample_ms, repeats;
    struct gauge_peer peer;
    struct err err = {0};
    if (asked->argc != 4 || !peer_of(asked, &peer) ||
        !number_at(asked, 2, 1, SAMPLE_MS_MAX, &sample_ms) ||
        !number_at(asked, 3, 1, GAUGE_REPEATS_MAX, &repeats)) {
        return STATUS_USAGE;
    }
    return gauge_link(gauge, &peer, sample_ms * NS_PER_MS, (size_t)repeats, is_ring, &err) < 0
               ? fail(&err)
               : print(gauge);
}

static int run_listen(const struct asked *asked)
{
    struct gauge_peer self;
    struct err err = {0};
    if (asked->argc != 2 || !peer_of(asked, &self)) {
        return STATUS_USAGE;
    }
    return gauge_listen(&self, &err) < 0 ? fail(&err) : 0;
}

/* Prints the time here, one per line; the other end sees when each line arrives. */
static int run_clock(const struct asked *asked)
{
    struct clock_src clock = clock_system();
    int64_t count, gap_ms;
    if (asked->argc != 2 || !number_at(asked, 0, 1, COUNT_MAX, &count) ||
        !number_at(asked, 1, 1, 1000, &gap_ms)) {
        return STATUS_USAGE;
    }
    for (int64_t idx = 0; idx < count; idx++) {
        struct timespec gap = {.tv_sec = gap_ms / 1000, .tv_nsec = gap_ms % 1000 * NS_PER_MS};
        char text[32];
        struct err err = {0};
        int len = snprintf(text, sizeof(text), "%" PRId64 "\n", clock.wall_ns(clock.ctx));
        if (fs_write_all(STDOUT_FILENO, text, (size_t)len, "standard output", &err) < 0) {
            return STATUS_FAILED;
        }
        (void)nanosleep(&gap, NULL);
    }
    return 0;
}

static int run(struct gauge *gauge, const struct asked *asked)
{
    bool is_done;
    int status;
    if (strcmp(gauge->what, "clock") == 0) {
        return run_clock(asked);
    }
    if (strcmp(gauge->what, "listen") == 0) {
        return run_listen(asked);
    }
    if (strcmp(gauge->what, "link") == 0 || strcmp(gauge->what, "ring") == 0) {
        return run_link(gauge, asked, strcmp(gauge->what, "ring") == 0);
    }
    status = run_local(gauge, asked, &is_done);
    return is_done ? print(gauge) : status;
}

int gauge_main(int argc, char **argv)
{
    struct asked asked = {argc, argv};
    struct gauge gauge = {0};
    int64_t limit_s;
    int status;
    if (argc < 2 || !number_at(&asked, 0, 1, LIMIT_S_MAX, &limit_s)) {
        return STATUS_USAGE;
    }
    (void)alarm((unsigned)limit_s); /* SIGALRM ends it */
    gauge.what = argv[1];
    strbuf_init(&gauge.series, GAUGE_TEXT_MAX);
    strbuf_init(&gauge.notes, GAUGE_TEXT_MAX);
    strbuf_init(&gauge.lacks, GAUGE_TEXT_MAX);
    asked.argc -= 2;
    asked.argv += 2;
    status = run(&gauge, &asked);
    strbuf_release(&gauge.series);
    strbuf_release(&gauge.notes);
    strbuf_release(&gauge.lacks);
    return status;
}
