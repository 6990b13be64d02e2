/* SPDX-License-Identifier: Apache-2.0 */
/* An image into docker or podman: the tar goes through a pipe, written by a job of its own, while the loop waits for the engine.
   Then the engine is asked for the image by digest; the name that it reported is never trusted. */
#include "base/base.h"

#include "store/image_tar.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/progress.h"
#include "sys/pool.h"
#include "sys/proc.h"

#define TICK_NS    (100 * NS_PER_MS)
#define ASK_NS     (60 * NS_PER_S)
#define OUTPUT_MAX (64u << 10)
#define SHOWN_MAX  300

static const char *const PROGRAMS[] = {[IMAGE_DOCKER] = "docker", [IMAGE_PODMAN] = "podman"};

const char *image_engine_program(enum image_engine engine)
{
    return PROGRAMS[engine];
}

struct feed { /* the job that writes */
    struct pool_job job;
    const struct store *store;
    const struct image_info *info;
    int fd;
    atomic_uint_least64_t at_bytes;
};

struct load {
    struct arena *arena;
    const struct store *store;
    const struct image_info *info;
    const char *program;
    const char *host; /* DOCKER_HOST, or NULL */
    const char **env;
    struct strbuf output;
    bool wants_progress;
    bool (*should_stop)(void);
};

static void on_output(void *ctx, const char *ptr, size_t len)
{
    struct load *load = ctx;
    size_t room = load->output.cap_bytes - load->output.len;
    strbuf_add(&load->output, ptr, len < room ? len : room);
}

/* The last line that is not empty, without control characters. */
static const char *last_line(struct load *load)
{
    struct str rest = str_trim(strbuf_str(&load->output));
    struct str line = rest;
    struct str part;
    char *text;
    while (str_next(&rest, '\n', &part)) {
        line = str_trim(part).len ? str_trim(part) : line;
    }
    text = str_z(load->arena, str_sub(line, 0, SHOWN_MAX));
    for (char *c = text; *c; c++) {
        *c = (unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c;
    }
    return text[0] ? text : "no output";
}

/* The client's own environment, and in it the host that was asked for. */
static const char **engine_env(struct load *load)
{
    static const char HOST[] = "DOCKER_HOST=";
    size_t n_allowed, n = 0;
    const char **allowed = proc_env_allowed(load->arena, &n_allowed);
    const char **env = arena_array(load->arena, const char *, n_allowed + 2);
    for (size_t idx = 0; idx < n_allowed; idx++) {
        if (!load->host || strncmp(allowed[idx], HOST, strlen(HOST)) != 0) {
            env[n++] = allowed[idx];
        }
    }
    if (load->host) {
        env[n] = arena_printf(load->arena, "%s%s", HOST, load->host);
    }
    return env;
}

/* Runs the engine's client to its end. feed NULL: without input. */
static int run_client(struct load *load, const char *const *argv, struct feed *feed,
                      int *ret_status, struct err *err)
{
    CLEANUP(loop) struct loop loop = LOOP_EMPTY;
    CLEANUP(proc) struct proc proc = PROC_EMPTY;
    struct proc_spec spec = {.argv = argv,
                             .env = load->env,
                             .on_output = on_output,
                             .output_ctx = load,
                             .deadline_ns = feed ? 0 : ASK_NS,
                             .has_input = feed != NULL,
                             .input_fd = feed ? feed->fd : -1};
    struct progress progress;
    bool is_stopped = false;
    strbuf_clear(&load->output);
    loop_init(&loop, clock_system());
    if (proc_start(&proc, &loop, &spec, err) < 0) {
        if (err->code == ERR_NOT_FOUND || err->code == ERR_NODE) {
            err->code = ERR_CONTAINER;
        }
        return -1;
    }
    if (feed) {
        fd_close(&feed->fd); /* the child has its own: now its end shows at the writer */
        progress_start(&progress, loop.clock, "load", "bytes", load->info->bytes);
    }
    while (proc_step(&proc, err) == STEP_AGAIN) {
        if (load->should_stop && load->should_stop() && !is_stopped) {
            is_stopped = true;
            proc_stop(&proc);
        }
        if (feed && load->wants_progress) {
            progress_set(&progress, atomic_load(&feed->at_bytes));
        }
        if (loop_once(&loop, TICK_NS, err) < 0) {
            return -1;
        }
    }
    if (feed && load->wants_progress) {
        progress_end(&progress);
    }
    if (is_stopped) {
        return err_set(err, ERR_INTERRUPTED, "%s: stopped", argv[0]);
    }
    if (proc.is_timed_out) {
        return err_set(err, ERR_CONTAINER, "%s does not answer", argv[0]);
    }
    *ret_status = proc.exit_status;
    return 0;
}

struct image_writer {
    struct feed *feed;
    int fd;
};

static int write_job(void *arg, const atomic_bool *is_cancelled, struct err *err)
{
    struct image_writer *writer = arg;
    struct feed *feed = writer->feed;
    CLEANUP(fd) int fd = take_fd(&writer->fd); /* closed here, so that the engine reads EOF */
    const struct tar_to to = {fd, "pipe to the engine", is_cancelled, &feed->at_bytes};
    return image_write_tar(feed->store, feed->info, &to, err);
}

/* Asks the engine for the image with that digest. *ret_has false: it has none. */
static int ask_id(struct load *load, const char *digest, bool *ret_has, struct str *ret_id,
                  struct err *err)
{
    const char *const argv[] = {load->program, "image", "inspect", "--format",
                                "{{.Id}}",     digest,  NULL};
    int status = -1;
    struct str id;
    *ret_has = false;
    if (run_client(load, argv, NULL, &status, err) < 0) {
        return -1;
    }
    if (status != 0) {
        return 0;
    }
    id = str_trim(strbuf_str(&load->output));
    /* podman leaves the kind of digest out. */
    *ret_id = str_starts(id, STR_LIT("sha256:"))
                  ? str_dup(load->arena, id)
                  : str_of(arena_printf(load->arena, "sha256:%.*s", STR_ARG(id)));
    *ret_has = true;
    return 0;
}

/* An engine's id is the config's digest; docker's containerd store has the manifest's instead. Both are of what was sent. */
static int ask_either(struct load *load, bool *ret_has, struct str *ret_id, struct err *err)
{
    const uint8_t *const digests[] = {load->info->pins.config, load->info->pins.manifest};
    for (size_t idx = 0; idx < ARRAY_LEN(digests); idx++) {
        char text[OCI_DIGEST_SIZE];
        oci_digest_text(digests[idx], text);
        if (ask_id(load, text, ret_has, ret_id, err) < 0) {
            return -1;
        }
        if (*ret_has && str_eq_z(*ret_id, text)) {
            return 0;
        }
    }
    return 0;
}

static bool is_ours(const struct load *load, struct str id)
{
    char config[OCI_DIGEST_SIZE], manifest[OCI_DIGEST_SIZE];
    oci_digest_text(load->info->pins.config, config);
    oci_digest_text(load->info->pins.manifest, manifest);
    return str_eq_z(id, config) || str_eq_z(id, manifest);
}

static int check_engine(struct load *load, struct err *err)
{
    const char *const argv[] = {load->program, "version", NULL};
    int status = -1;
    if (run_client(load, argv, NULL, &status, err) < 0) {
        return -1;
    }
    return status == 0 ? 0
                       : err_set(err, ERR_CONTAINER, "%s does not answer: %s", load->program,
                                 last_line(load));
}

static int send_tar(struct load *load, struct err *err)
{
    const char *const argv[] = {load->program, "load", NULL};
    CLEANUP(pool) struct pool *pool = NULL;
    struct feed feed = {.store = load->store, .info = load->info, .fd = -1};
    struct image_writer writer = {&feed, -1};
    struct err why = {0};
    int fds[2];
    int status = -1;
    int result, sent;
    if (pool_new(1, &pool, err) < 0) {
        return -1;
    }
    if (pipe2(fds, O_CLOEXEC) < 0) {
        return err_set(err, ERR_INTERNAL, "pipe");
    }
    feed.fd = fds[0];
    writer.fd = fds[1];
    feed.job = (struct pool_job){.fn = write_job, .arg = &writer};
    pool_submit(pool, &feed.job);
    result = run_client(load, argv, &feed, &status, err);
    fd_close(&feed.fd); /* no reader is left: a waiting writer gets EPIPE */
    sent = pool_wait(pool, &feed.job, &why);
    if (result < 0) {
        return -1;
    }
    if (sent < 0 && why.code == ERR_INTEGRITY) {
        *err = why;
        return -1;
    }
    if (status != 0 || sent < 0) {
        return err_set(err, ERR_CONTAINER, "%s load ended with status %d: %s", load->program,
                       status, last_line(load));
    }
    return 0;
}

static int load_it(struct load *load, struct image_loaded *out, struct err *err)
{
    bool has = false;
    char text[OCI_DIGEST_SIZE];
    if (check_engine(load, err) < 0 || ask_either(load, &has, &out->id, err) < 0) {
        return -1;
    }
    if (has && is_ours(load, out->id)) {
        out->was_there = true;
        return 0;
    }
    if (send_tar(load, err) < 0 || ask_either(load, &has, &out->id, err) < 0) {
        return -1;
    }
    oci_digest_text(load->info->pins.config, text);
    if (!has || !is_ours(load, out->id)) {
        return err_set(
            err, ERR_INTEGRITY,
            "%s accepted image %s, but does not have it afterwards: expected the id %s, found %.*s",
            load->program, load->info->name, text, STR_ARG(has ? out->id : STR_LIT("none")));
    }
    return 0;
}

int image_load(struct arena *arena, const struct store *store, const struct image_info *info,
               const struct image_load_opts *opts, struct image_loaded *ret_loaded, struct err *err)
{
    struct load load = {.arena = arena,
                        .store = store,
                        .info = info,
                        .program = PROGRAMS[opts->engine],
                        .host = opts->engine == IMAGE_DOCKER ? opts->engine_host : NULL,
                        .wants_progress = opts->wants_progress,
                        .should_stop = opts->should_stop};
    struct image_loaded loaded = {.name = str_of(image_engine_name(arena, info))};
    int result;
    load.env = engine_env(&load);
    strbuf_init(&load.output, OUTPUT_MAX);
    result = load_it(&load, &loaded, err);
    strbuf_release(&load.output);
    if (result == 0) {
        *ret_loaded = loaded;
    }
    return result;
}
