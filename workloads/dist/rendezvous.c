/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/rendezvous.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "core/sha256.h"
#include "dist/gather.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>
#include <unistd.h>

/* ---- both sides ---- */

static int fill_hello(const struct rendezvous_opts *opts, int ring_port, struct hello *ret_hello,
                      struct err *err)
{
    struct hello hello = {.version = WIRE_VERSION,
                          .rank = opts->ranks->rank,
                          .n_ranks = opts->ranks->n_ranks,
                          .ring_port = ring_port,
                          .program = REPERF_VERSION};
    struct sha256 sha;
    sha256_init(&sha);
    sha256_add(&sha, "reperf job\n", strlen("reperf job\n"));
    sha256_add(&sha, opts->job ? opts->job : "", opts->job ? strlen(opts->job) : 0);
    sha256_hex(&sha, hello.token);
    snprintf(hello.network, sizeof(hello.network), "%s", opts->network);
    snprintf(hello.facts, sizeof(hello.facts), "%s", opts->facts);
    if (opts->iface && sock_iface_host(opts->iface, hello.ring_addr, err) < 0) {
        return -1;
    }
    *ret_hello = hello;
    return 0;
}

/* If all ranks are on this machine nobody else can connect. */
static const char *bind_host(const struct rendezvous_opts *opts)
{
    const char *host = opts->ranks->master_addr;
    if (!sock_is_loopback(host)) {
        return NULL;
    }
    return strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
}

/* ---- every rank but 0 ---- */

/* The answer to the hello: 0 and a welcome; -1. */
static int read_welcome(int fd, const struct rendezvous_opts *opts, struct note *ret_note,
                        struct err *err)
{
    uint8_t bytes[WIRE_NOTE_BYTES];
    struct err why = {0};
    if (sock_recv_all(fd, bytes, sizeof(bytes), &opts->wait, err) < 0) {
        return -1;
    }
    if (note_decode(bytes, ret_note, &why) < 0) {
        return err_set(err, ERR_PARSE, "what answers is no reperf-train (%s)", why.msg);
    }
    if (ret_note->kind == NOTE_VERDICT) {
        return err_set(err, ERR_USAGE, "%s", ret_note->text);
    }
    if (ret_note->kind != NOTE_WELCOME || ret_note->text[0] == '\0' || ret_note->port == 0) {
        return err_set(err, ERR_PARSE, "what answers is no rank 0");
    }
    return 0;
}

/* One connection, one hello. A rank 0 that hangs up without an answer belonged to another job that has ended: ERR_NET, to be
   retried. */
static int greet(const struct rendezvous_opts *opts, const struct hello *hello, int *ret_fd,
                 struct note *ret_note, struct err *err)
{
    CLEANUP(fd) int fd = -1;
    uint8_t bytes[WIRE_HELLO_BYTES];
    hello_encode(hello, bytes);
    if (sock_connect(opts->ranks->master_addr, opts->ranks->master_port, &opts->wait, &fd, err) <
            0 ||
        sock_send_all(fd, bytes, sizeof(bytes), &opts->wait, err) < 0 ||
        read_welcome(fd, opts, ret_note, err) < 0) {
        return -1;
    }
    *ret_fd = take_fd(&fd);
    return 0;
}

static int join(const struct rendezvous_opts *opts, const struct hello *hello,
                struct meeting *meeting, struct err *err)
{
    const struct ranks *ranks = opts->ranks;
    struct note note;
    for (;;) {
        struct err now = {0};
        if (greet(opts, hello, &meeting->control[0], &note, &now) == 0) {
            break;
        }
        bool may_try = now.code == ERR_NET && clock_now_ns() < opts->wait.deadline_ns;
        if (!may_try) {
            bool is_said = now.code == ERR_USAGE || now.code == ERR_INTERRUPTED;
            return err_set(err, now.code, "%s%s%s", is_said ? "" : "rank 0 is not there: ", now.msg,
                           now.code == ERR_TIMEOUT ? "; --rendezvous-timeout has passed" : "");
        }
        (void)poll(NULL, 0, sock_poll_ms(opts->wait.deadline_ns, 200));
    }
    if (note.rank != (ranks->rank + 1) % ranks->n_ranks) {
        return err_set(err, ERR_INTERNAL, "rank 0 names rank %d as the next one", note.rank);
    }
    memcpy(meeting->next_host, note.text, sizeof(meeting->next_host));
    memcpy(meeting->key, note.key, sizeof(meeting->key));
    meeting->next_port = note.port;
    return 0;
}

/* ---- rank 0 ---- */

/* The address at which rank `from` reaches rank `to`: the one that `to` has named, else the one that rank 0 sees. Rank 0
   itself, and ranks that reached it by loopback and so share its machine, are where `from` found rank 0. */
static int address_of(const struct gathered *all, const struct hello *own, int from, int to,
                      char *ret_host, struct err *err)
{
    const struct hello *hello = to == 0 ? own : &all->guests[to].hello;
    if (hello->ring_addr[0] != '\0') {
        memcpy(ret_host, hello->ring_addr, sizeof(hello->ring_addr));
        return 0;
    }
    bool is_known = to > 0 && sock_peer_host(all->guests[to].fd, ret_host);
    bool is_on_this_machine = to == 0 || (is_known && sock_is_loopback(ret_host));
    if (is_on_this_machine && from > 0) {
        is_known = sock_own_host(all->guests[from].fd, ret_host);
    }
    return is_known ? 0 : err_set(err, ERR_NET, "rank %d has disconnected", to);
}

static int introduce(const struct rendezvous_opts *opts, struct gathered *all,
                     const struct hello *own, struct meeting *meeting, struct err *err)
{
    int n_ranks = opts->ranks->n_ranks;
    for (int rank = 0; rank < n_ranks; rank++) {
        int next = (rank + 1) % n_ranks;
        uint8_t bytes[WIRE_NOTE_BYTES];
        struct note note = {.kind = NOTE_WELCOME,
                            .rank = next,
                            .port = next == 0 ? own->ring_port : all->guests[next].hello.ring_port};
        memcpy(note.key, meeting->key, sizeof(note.key));
        if (address_of(all, own, rank, next, note.text, err) < 0) {
            return -1;
        }
        if (rank == 0) {
            memcpy(meeting->next_host, note.text, sizeof(note.text));
            meeting->next_port = note.port;
            continue;
        }
        note_encode(&note, bytes);
        if (sock_send_all(all->guests[rank].fd, bytes, sizeof(bytes), &opts->wait, err) < 0) {
            return err_wrap(err, "rank %d", rank);
        }
    }
    return 0;
}

static int host(const struct rendezvous_opts *opts, const struct hello *own,
                struct meeting *meeting, struct err *err)
{
    CLEANUP(fd) int listener = opts->listener > 0 ? opts->listener : -1;
    CLEANUP(gathered) struct gathered all = {0};
    if (getrandom(meeting->key, sizeof(meeting->key), 0) != (ssize_t)sizeof(meeting->key)) {
        return err_set(err, ERR_INTERNAL, "random numbers: %s", err_errno_text(errno));
    }
    if ((listener < 0 &&
         sock_listen(bind_host(opts), opts->ranks->master_port, &listener, err) < 0) ||
        gather(&all, listener, own, &opts->wait, err) < 0) {
        return -1;
    }
    if (introduce(opts, &all, own, meeting, err) < 0) {
        char text[WIRE_TEXT_MAX];
        snprintf(text, sizeof(text), "%.400s", err->msg);
        gathered_tell(&all, text);
        return -1;
    }
    for (int rank = 1; rank < opts->ranks->n_ranks; rank++) {
        meeting->control[rank] = take_fd(&all.guests[rank].fd);
    }
    return 0;
}

void meeting_release(struct meeting *meeting, int n_control)
{
    for (int i = 0; meeting->control && i < n_control; i++) {
        fd_close(&meeting->control[i]);
    }
    free(meeting->control);
    fd_close(&meeting->listener);
    *meeting = (struct meeting){.listener = -1};
}

int rendezvous(const struct rendezvous_opts *opts, struct meeting *ret_meeting, struct err *err)
{
    struct meeting meeting = {.listener = -1};
    struct hello own;
    int n_ranks = opts->ranks->n_ranks;
    ASSERT(n_ranks > 1 && n_ranks <= WIRE_RANKS_MAX && strlen(opts->facts) < WIRE_FACTS_MAX);
    meeting.control = xcalloc((size_t)n_ranks, sizeof(*meeting.control));
    for (int i = 0; i < n_ranks; i++) {
        meeting.control[i] = -1;
    }
    if (sock_listen(bind_host(opts), 0, &meeting.listener, err) < 0 ||
        fill_hello(opts, sock_own_port(meeting.listener), &own, err) < 0 ||
        (opts->ranks->rank == 0 ? host(opts, &own, &meeting, err)
                                : join(opts, &own, &meeting, err)) < 0) {
        meeting_release(&meeting, n_ranks);
        return err_wrap(err, "rendezvous at %s port %d", opts->ranks->master_addr,
                        opts->ranks->master_port);
    }
    *ret_meeting = meeting;
    return 0;
}

/* ---- the ring ---- */

struct ring_making {
    const struct rendezvous_opts *opts;
    const struct meeting *meeting;
};

/* A note from the rank before this one? Anything else is a stranger's. */
static bool is_from_before(const struct ring_making *making, const uint8_t *bytes)
{
    const struct ranks *ranks = making->opts->ranks;
    struct note note;
    struct err err = {0};
    return note_decode(bytes, &note, &err) == 0 && note.kind == NOTE_RING &&
           note.rank == (ranks->rank + ranks->n_ranks - 1) % ranks->n_ranks &&
           note.number == (uint64_t)ranks->rank &&
           memcmp(note.key, making->meeting->key, sizeof(note.key)) == 0;
}

#define CALLERS                                                                                    \
    8 /* that may be in the middle of their first message; one more displaces the oldest */

struct caller {
    int fd;
    uint8_t bytes[WIRE_NOTE_BYTES];
    size_t len;
};

/* Reads what has arrived. True: it is the rank before. Other connections are closed. */
static bool hear(const struct ring_making *making, struct caller *caller)
{
    ssize_t n =
        recv(caller->fd, caller->bytes + caller->len, sizeof(caller->bytes) - caller->len, 0);
    if (n > 0) {
        caller->len += (size_t)n;
        if (caller->len < sizeof(caller->bytes)) {
            return false;
        }
        if (is_from_before(making, caller->bytes)) {
            return true;
        }
    } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    fd_close(&caller->fd);
    return false;
}

static int take_callers(const struct ring_making *making, struct caller *callers, int *ret_prev,
                        struct err *err)
{
    static const struct caller none = {.fd = -1};
    int fd;
    if (sock_accept(making->meeting->listener, &fd, err) < 0) {
        return -1;
    }
    if (fd >= 0) {
        fd_close(&callers[CALLERS - 1].fd);
        memmove(callers + 1, callers, (CALLERS - 1) * sizeof(*callers));
        callers[0] = none;
        callers[0].fd = fd;
    }
    for (int i = 0; i < CALLERS && *ret_prev < 0; i++) {
        if (callers[i].fd >= 0 && hear(making, &callers[i])) {
            *ret_prev = take_fd(&callers[i].fd);
        }
    }
    return 0;
}

static int await_before(const struct ring_making *making, int *ret_prev, struct err *err)
{
    const struct wait *wait = &making->opts->wait;
    struct caller *callers = xcalloc(CALLERS, sizeof(*callers));
    int status = 0;
    for (int i = 0; i < CALLERS; i++) {
        callers[i].fd = -1;
    }
    while (status == 0 && *ret_prev < 0) {
        struct pollfd fds[CALLERS + 2] = {
            {.fd = making->meeting->listener, .events = POLLIN},
            {.fd = wait->cancel_fd > 0 ? wait->cancel_fd : -1, .events = POLLIN}};
        for (int i = 0; i < CALLERS; i++) {
            fds[i + 2] = (struct pollfd){.fd = callers[i].fd, .events = POLLIN};
        }
        (void)poll(fds, ARRAY_LEN(fds), sock_poll_ms(wait->deadline_ns, 500));
        if (fds[1].revents != 0) {
            status = err_set(err, ERR_INTERRUPTED, "called off");
        } else if (wait->stop && *wait->stop != 0) {
            status = err_set(err, ERR_INTERRUPTED, "signal %d", (int)*wait->stop);
        } else if (clock_now_ns() >= wait->deadline_ns) {
            status = err_set(err, ERR_TIMEOUT,
                             "rank %d has not connected to rank %d before --rendezvous-timeout",
                             (making->opts->ranks->rank + making->opts->ranks->n_ranks - 1) %
                                 making->opts->ranks->n_ranks,
                             making->opts->ranks->rank);
        } else {
            status = take_callers(making, callers, ret_prev, err);
        }
    }
    for (int i = 0; i < CALLERS; i++) {
        fd_close(&callers[i].fd);
    }
    free(callers);
    return status;
}

int rendezvous_ring(const struct rendezvous_opts *opts, const struct meeting *meeting,
                    int *ret_next, int *ret_prev, struct err *err)
{
    const struct ring_making making = {opts, meeting};
    const struct ranks *ranks = opts->ranks;
    int next_rank = (ranks->rank + 1) % ranks->n_ranks;
    struct note note = {.kind = NOTE_RING, .rank = ranks->rank, .number = (uint64_t)next_rank};
    uint8_t bytes[WIRE_NOTE_BYTES];
    memcpy(note.key, meeting->key, sizeof(note.key));
    note_encode(&note, bytes);
    CLEANUP(fd) int next = -1;
    CLEANUP(fd) int prev = -1;
    /* Connecting needs no answer of the other program, only of its kernel: no two ranks can wait for each other. */
    if (sock_connect(meeting->next_host, meeting->next_port, &opts->wait, &next, err) < 0 ||
        sock_send_all(next, bytes, sizeof(bytes), &opts->wait, err) < 0) {
        return err_wrap(err, "rank %d cannot reach rank %d", ranks->rank, next_rank);
    }
    if (await_before(&making, &prev, err) < 0) {
        return -1;
    }
    *ret_next = take_fd(&next);
    *ret_prev = take_fd(&prev);
    return 0;
}
