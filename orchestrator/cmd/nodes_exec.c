/* SPDX-License-Identifier: Apache-2.0 */
/* `nodes exec`: one command on all nodes at once. Their output appears line by line with the node's name in front, or gathered:
   nodes with the same output form one block. */
#include "base/base.h"

#include <errno.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/nodes.h"
#include "codec/json.h"
#include "codec/json_document.h"

#define TIMEOUT_DEFAULT_S 600
#define TIMEOUT_MAX_S     (7 * INT64_C(86400))
#define LINE_MAX_BYTES    65536       /* a longer one is printed in parts */
#define GATHERED_MAX      (16u << 20) /* of a node; more is an error of the node */
#define OUTPUT_MAX        (1u << 30)
#define OUTAGE_NS         (2 * NS_PER_S) /* a user at the terminal wants to know soon */

struct args {
    const char *nodes;
    int64_t timeout_s;
    int64_t fanout;
    bool want_gathered;
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, fanout, "fanout", "nodes at one time (64)", .letter = 'f', .value = "N",
        .min = 1, .max = INVENTORY_NODES_MAX),
    OPT(struct args, want_gathered, "gather", "group nodes with equal output, once all have ended",
        .letter = 'b'),
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT(struct args, nodes, "nodes", "only these nodes of the inventory", .letter = 'w',
        .value = "SET"),
    OPT(struct args, timeout_s, "timeout", "of the command on one node (600)", .letter = 't',
        .value = "SECONDS", .min = 1, .max = TIMEOUT_MAX_S),
    OPT_END,
};

struct exec_node {
    struct exec_job *job;
    struct str name;
    struct strbuf output; /* gathered; else the line that is not yet whole */
    int exit_status;
    char status_text[32]; /* "exit status 3"; empty for 0 */
};

struct exec_job {
    const struct args *args;
    const char *const *argv; /* ended by NULL */
    size_t n_argv;
    struct nodes_fleet *nodes;
    struct exec_node *of; /* for each node */
    int broken_errno;     /* error of standard output; 0: none */
};

/* ---- lines as they come ---- */

/* On a terminal a node's output is sanitised; a file or a program gets it unchanged. */
static void print_line(struct exec_job *job, struct str name, struct str line)
{
    CLEANUP(free) char *plain = NULL;
    if (line.len && isatty(STDOUT_FILENO)) {
        line.len -= line.ptr[line.len - 1] == '\r';
        plain = memcpy(xmalloc(line.len + 1), line.ptr, line.len);
        text_plain(plain, line.len);
        line.ptr = plain;
    }
    if (job->broken_errno == 0 &&
        (printf("%.*s: ", STR_ARG(name)) < 0 ||
         (line.len && fwrite(line.ptr, 1, line.len, stdout) != line.len) || putchar('\n') == EOF)) {
        job->broken_errno = errno ? errno : EIO;
    }
}

static void flush_line(struct exec_node *node)
{
    print_line(node->job, node->name, strbuf_str(&node->output));
    strbuf_clear(&node->output);
}

static void take_output(void *ctx, const char *ptr, size_t len)
{
    struct exec_node *node = ctx;
    for (size_t idx = 0; idx < len; idx++) {
        if (ptr[idx] != '\n') {
            strbuf_add_char(&node->output, ptr[idx]);
        }
        if (ptr[idx] == '\n' || node->output.len == LINE_MAX_BYTES) {
            flush_line(node);
        }
    }
    if (node->job->broken_errno == 0 && fflush(stdout) != 0) {
        node->job->broken_errno = errno;
    }
}

/* ---- one node ---- */

static enum step step_node(void *ctx, struct fleet_node *fleet_node, size_t node_idx,
                           struct err *err)
{
    struct exec_job *job = ctx;
    struct exec_node *node = &job->of[node_idx];
    bool is_live = !job->args->want_gathered && !job->args->want_json;
    /* One word is a line for the shell, as with ssh; several are quoted as they are. */
    struct remote_exec exec = {.script = job->n_argv == 1 ? job->argv[0] : "exec \"$@\"",
                               .args = job->n_argv == 1 ? NULL : job->argv,
                               .output = is_live ? NULL : &node->output,
                               .on_output = is_live ? take_output : NULL,
                               .output_ctx = node,
                               .deadline_ns = job->args->timeout_s * NS_PER_S};
    if (job->broken_errno) { /* nobody reads it any more */
        fleet_node->remote->ops->abort(fleet_node->remote);
        return STEP_DONE;
    }
    enum step step =
        fleet_node->remote->ops->exec(fleet_node->remote, &exec, &node->exit_status, err);
    if (step != STEP_AGAIN && is_live && node->output.len) {
        flush_line(node); /* without its line break */
    }
    return step;
}

/* ---- the end ---- */

static struct str status_of(void *ctx, size_t node_idx)
{
    struct exec_job *job = ctx;
    const struct exec_node *node = &job->of[node_idx];
    return node->status_text[0] ? str_of(node->status_text) : STR_EMPTY;
}

static void log_status(void *ctx, struct str names, size_t node_idx)
{
    const struct exec_job *job = ctx;
    log_line(LOG_WARN, "%.*s: %s", STR_ARG(names), job->of[node_idx].status_text);
}

static struct str output_of(void *ctx, size_t node_idx)
{
    struct exec_job *job = ctx;
    const struct exec_node *node = &job->of[node_idx];
    return node->output.len ? strbuf_str(&node->output) : STR_EMPTY;
}

static void print_block(void *ctx, struct str names, size_t node_idx)
{
    struct exec_job *job = ctx;
    struct str rest = strbuf_str(&job->of[node_idx].output);
    struct str line;
    if (rest.ptr[rest.len - 1] == '\n') {
        rest.len--;
    }
    while (str_next(&rest, '\n', &line)) {
        print_line(job, names, line);
    }
}

static void add_node_json(struct json_out *out, const struct exec_job *job, size_t idx)
{
    const struct exec_node *node = &job->of[idx];
    const struct err *why = &job->nodes->fleet.nodes[idx].err;
    jw_object(out, NULL);
    jw_str(out, "node", node->name);
    jw_known(out, "exit_status", why->code == ERR_NONE ? node->exit_status : -1);
    jw_err(out, "error", why);
    jw_str(out, "output", strbuf_str(&node->output));
    jw_end_object(out);
}

static int print_json(const struct exec_job *job, int status, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(OUTPUT_MAX);
    struct json_out out;
    jw_document(&out, &text);
    jw_str(&out, "inventory", job->nodes->inventory.id);
    jw_words(&out, "argv", job->argv, job->n_argv);
    jw_i64(&out, "exit_status", status);
    jw_array(&out, "nodes");
    for (size_t idx = 0; idx < job->nodes->fleet.n_nodes; idx++) {
        add_node_json(&out, job, idx);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    return text.is_full
               ? err_set(err, ERR_IO, "nodes exec: more than %u bytes of output", OUTPUT_MAX)
               : cmd_print(strbuf_str(&text), err);
}

/* The worst problem: a node that failed, else the command's highest status. */
static int end_status(struct exec_job *job)
{
    int failed = nodes_log_failed(job->nodes);
    int highest = 0;
    for (size_t idx = 0; idx < job->nodes->fleet.n_nodes; idx++) {
        struct exec_node *node = &job->of[idx];
        bool has_failed = job->nodes->fleet.nodes[idx].err.code != ERR_NONE;
        if (!has_failed && node->exit_status != 0) {
            snprintf(node->status_text, sizeof(node->status_text), "exit status %d",
                     node->exit_status);
            highest = node->exit_status > highest ? node->exit_status : highest;
        }
    }
    nodes_each_group(job->nodes, job, status_of, log_status);
    return failed ? failed : highest;
}

static int print_end(struct exec_job *job, struct err *err)
{
    int status = end_status(job);
    if (job->args->want_json) {
        return print_json(job, status, err) < 0 ? -1 : status;
    }
    if (job->args->want_gathered) {
        nodes_each_group(job->nodes, job, output_of, print_block);
    }
    if (job->broken_errno == 0 && fflush(stdout) != 0) {
        job->broken_errno = errno;
    }
    if (job->broken_errno) {
        return err_set(err, err_code_of_errno(job->broken_errno), "write standard output: %s",
                       err_errno_text(job->broken_errno));
    }
    return status;
}

static int exec_on_all(struct exec_job *job, struct err *err)
{
    size_t n = job->nodes->fleet.n_nodes;
    bool is_live = !job->args->want_gathered && !job->args->want_json;
    job->of = xcalloc(n, sizeof(*job->of));
    for (size_t idx = 0; idx < n; idx++) {
        job->of[idx] = (struct exec_node){
            .job = job, .name = job->nodes->inventory.nodes[idx].name, .exit_status = -1};
        strbuf_init(&job->of[idx].output, is_live ? LINE_MAX_BYTES + 1 : GATHERED_MAX);
    }
    int status =
        fleet_each(&job->nodes->fleet, 0, step_node, job, err) < 0 ? -1 : print_end(job, err);
    for (size_t idx = 0; idx < n; idx++) {
        strbuf_release(&job->of[idx].output);
    }
    free(job->of);
    return status;
}

static int run(const struct cmd_ctx *ctx, struct cmd_call *call, struct err *err)
{
    CLEANUP(nodes_fleet) struct nodes_fleet nodes = {0};
    struct args *args = call->args;
    if (args->want_json && args->want_gathered) {
        return err_set(err, ERR_USAGE, "nodes exec: --gather and --json exclude each other");
    }
    const char **words = arena_array(call->arena, const char *, call->operands.n);
    memcpy(words, call->operands.items + 1, (call->operands.n - 1) * sizeof(*words));
    struct nodes_fleet_opts opts = {call->operands.items[0], args->nodes, args->fanout, OUTAGE_NS};
    if (nodes_open(call->arena, ctx, &opts, &nodes, err) < 0) {
        return -1;
    }
    struct exec_job job = {
        .args = args, .argv = words, .n_argv = call->operands.n - 1, .nodes = &nodes};
    return exec_on_all(&job, err);
}

const struct cmd NODES_EXEC =
    CMD("exec", "INVENTORY -- CMD...", "run a command on all nodes at once", OPTS, run,
        CMD_ARGS(struct args), .defaults = &(const struct args){.timeout_s = TIMEOUT_DEFAULT_S},
        CMD_OPERANDS(2, SIZE_MAX, "nodes exec: expected an inventory and, after --, a command"));
