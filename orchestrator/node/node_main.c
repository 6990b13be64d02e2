/* SPDX-License-Identifier: Apache-2.0 */
/* `reperf-node relay WORK` receives files and passes them on (node/relay_server.c), `reperf-node batch DIR` is a batch job of
   Slurm (node/batch.c). `reperf-node WORK` serves the jobs of WORK over its stdin and stdout (codec/node_wire.h) until stdin
   ends. The orchestrator puts it on a node and starts it there (fleet/remote_node.c). It has no state in memory: so it may be
   killed and started again at any moment, and the jobs that it started go on without it. Linked statically: it runs on any
   Linux of its architecture. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/fs.h"
#include "node/serve.h"

#define READ_BYTES 65536
/* The other end of the channel may have disappeared; it may be opened again. */
#define IDLE_MS         (10 * 60 * 1000)
#define STATUS_USAGE    2
#define STATUS_PROTOCOL 3

static int answer(struct server *server, const struct node_request *request)
{
    CLEANUP(strbuf) struct strbuf text, frame;
    struct node_answer to = {.seq = request->seq};
    strbuf_init(&text, NODE_TEXT_MAX);
    strbuf_init(&frame, NODE_TEXT_MAX + (2u << 10));
    to.status = serve_request(server, request, &text);
    to.text = strbuf_str(&text);
    node_answer_write(&frame, &to);
    ASSERT(!frame.is_full);
    return fs_write_all(STDOUT_FILENO, frame.ptr, frame.len, "the channel", ERR_IGNORED);
}

/* Serves all complete requests received. -1: not one of ours, or nobody listens. */
static int serve_all(struct server *server, struct strbuf *input)
{
    size_t used = 0;
    for (;;) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct node_request request;
        size_t len = 0;
        int rc = node_request_read(&arena, str_sub(strbuf_str(input), used, input->len), &request,
                                   &len, ERR_IGNORED);
        if (rc < 0 || (rc > 0 && answer(server, &request) < 0)) {
            return -1;
        }
        if (rc == 0) {
            memmove(input->ptr, input->ptr + used, input->len - used);
            input->len -= used;
            return 0;
        }
        used += len;
    }
}

/* A full pipe blocks: the other end reads the answer, or is gone. */
static int serve_channel(struct server *server)
{
    CLEANUP(strbuf) struct strbuf input = STRBUF(NODE_FRAME_MAX + READ_BYTES);
    char bytes[READ_BYTES];
    for (;;) {
        struct pollfd channel = {.fd = server->input_fd, .events = POLLIN};
        if (poll(&channel, 1, IDLE_MS) == 0) {
            return 0;
        }
        ssize_t len = read(server->input_fd, bytes, sizeof(bytes));
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len <= 0) {
            return 0;
        }
        strbuf_add(&input, bytes, (size_t)len);
        if (input.is_full || serve_all(server, &input) < 0) {
            return STATUS_PROTOCOL;
        }
    }
}

static int say_hello(const char *self)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *hello = arena_printf(&arena, NODE_HELLO "%s\n", self);
    return fs_write_all(STDOUT_FILENO, hello, strlen(hello), "the channel", ERR_IGNORED);
}

int main(int argc, char **argv)
{
    struct server server = {.input_fd = STDIN_FILENO};
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("reperf-node %s\n", REPERF_VERSION);
        return fflush(stdout) == 0 ? 0 : 10;
    }
    if (argc == 3 && strcmp(argv[1], "batch") == 0 && argv[2][0] == '/') {
        return batch_main(argv[2]);
    }
    if (argc > 2 && strcmp(argv[1], "srun") == 0) {
        return srun_main(argc - 2, argv + 2);
    }
    int of_ranks = rank_program(argc, argv);
    if (of_ranks >= 0) {
        return of_ranks;
    }
    if (argc == 3 && strcmp(argv[1], "relay") == 0 && argv[2][0] == '/') {
        (void)signal(SIGPIPE, SIG_IGN);
        return relay_main(argv[2]);
    }
    if (argc != 2 || argv[1][0] != '/') {
        fprintf(stderr, "usage: reperf-node WORK, an absolute folder; reperf starts it on a node "
                        "and talks to it over its stdin and stdout\n");
        return STATUS_USAGE;
    }
    server.work_folder = argv[1];
    int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null_fd < 0) {
        fprintf(stderr, "reperf-node: /dev/null: %s\n", err_errno_text(errno));
        return STATUS_PROTOCOL;
    }
    (void)dup2(null_fd, STDERR_FILENO); /* the channel carries only frames */
    close(null_fd);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGCHLD, SIG_DFL);
    (void)setenv("LC_ALL", "C", 1); /* for the scripts that it runs */
    return say_hello(argv[0]) < 0 ? STATUS_PROTOCOL : serve_channel(&server);
}
