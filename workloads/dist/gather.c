/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/gather.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/strbuf.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define STRANGERS                                                                                  \
    64 /* connections that have not identified themselves; one more displaces the oldest */
#define STRANGER_NS (5 * NS_PER_S)
#define GRACE_NS                                                                                   \
    (5 *                                                                                           \
     NS_PER_S) /* that a disagreement waits for ranks that have not connected yet, to tell them too */
#define MISSING_SAID 8

struct host {
    struct gathered all;
    const struct hello *own;
    int listener;
    struct guest *strangers;     /* owned; the newest first */
    struct pollfd *polled;       /* owned */
    char verdict[WIRE_TEXT_MAX]; /* "" while all agree */
    enum err_code code;          /* of the verdict */
    int n_here;
    int n_other_job, n_turned_away;
};

void gathered_release(struct gathered *all)
{
    for (int i = 0; i < all->n_ranks; i++) {
        fd_close(&all->guests[i].fd);
    }
    free(all->guests);
    *all = (struct gathered){0};
}

static void tell(int fd, int rank, const char *text)
{
    struct note note = {.kind = NOTE_VERDICT, .rank = rank};
    uint8_t bytes[WIRE_NOTE_BYTES];
    snprintf(note.text, sizeof(note.text), "%s", text);
    note_encode(&note, bytes);
    /* A new connection has room for it; a peer that does not read it runs into its own deadline. */
    (void)send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL);
    (void)shutdown(fd, SHUT_WR);
}

static void disagree(struct host *host, enum err_code code, const char *text)
{
    if (host->verdict[0] == '\0') {
        host->code = code;
        snprintf(host->verdict, sizeof(host->verdict), "%s", text);
    }
}

/* ---- one identified guest ---- */

static void seat(struct host *host, struct guest *stranger)
{
    struct guest *place = &host->all.guests[stranger->hello.rank];
    bool is_twice = stranger->hello.rank == 0 || place->fd >= 0;
    if (is_twice) {
        char text[WIRE_TEXT_MAX];
        snprintf(text, sizeof(text), "rank %d connected twice: from %s and from %s",
                 stranger->hello.rank, stranger->hello.rank == 0 ? "here" : place->from,
                 stranger->from);
        disagree(host, ERR_USAGE, text);
        tell(stranger->fd, stranger->hello.rank, host->verdict);
        fd_close(&stranger->fd);
        return;
    }
    *place = *stranger;
    place->fd = take_fd(&stranger->fd);
    host->n_here++;
}

static void turn_away(struct host *host, struct guest *stranger)
{
    host->n_turned_away++;
    fd_close(&stranger->fd);
}

static void understand(struct host *host, struct guest *stranger)
{
    struct err err = {0};
    char text[WIRE_TEXT_MAX];
    struct hello *hello = &stranger->hello;
    if (hello_decode(stranger->bytes, hello, &err) < 0) {
        turn_away(host, stranger);
        return;
    }
    if (hello->version == WIRE_VERSION && strcmp(hello->token, host->own->token) != 0) {
        snprintf(text, sizeof(text),
                 "rank %d is of another job than the rank 0 that listens here: REPERF_JOB differs "
                 "(digest %.8s, here %.8s)",
                 hello->rank, hello->token, host->own->token);
        tell(stranger->fd, 0, text);
        fd_close(&stranger->fd);
        host->n_other_job++;
        return;
    }
    hello_compare(host->own, hello, text);
    if (text[0] != '\0') {
        disagree(host, ERR_USAGE, text);
        if (hello->version != WIRE_VERSION || hello->rank >= host->all.n_ranks) {
            tell(stranger->fd, 0, host->verdict); /* there is no seat for it */
            fd_close(&stranger->fd);
            host->n_here++;
            return;
        }
    }
    seat(host, stranger);
}

static void hear(struct host *host, struct guest *stranger)
{
    while (stranger->fd >= 0) {
        ssize_t n = recv(stranger->fd, stranger->bytes + stranger->len,
                         sizeof(stranger->bytes) - stranger->len, 0);
        if (n > 0) {
            stranger->len += (size_t)n;
            if (!hello_may_be(stranger->bytes, stranger->len)) {
                turn_away(host, stranger);
            } else if (stranger->len == sizeof(stranger->bytes)) {
                understand(host, stranger);
                return;
            }
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            turn_away(host, stranger);
        } else {
            return;
        }
    }
}

/* ---- one turn ---- */

static int take_new(struct host *host, struct err *err)
{
    for (;;) {
        int fd;
        if (sock_accept(host->listener, &fd, err) < 0) {
            return -1;
        }
        if (fd < 0) {
            return 0;
        }
        struct guest *last = &host->strangers[STRANGERS - 1];
        if (last->fd >= 0) {
            turn_away(host, last);
        }
        memmove(host->strangers + 1, host->strangers, (STRANGERS - 1) * sizeof(*host->strangers));
        host->strangers[0] = (struct guest){.fd = fd, .came_ns = clock_now_ns()};
        if (!sock_peer_host(fd, host->strangers[0].from)) {
            turn_away(host, &host->strangers[0]);
        }
    }
}

static void list_missing(const struct host *host, struct strbuf *list)
{
    int n_missing = 0;
    for (int i = 1; i < host->all.n_ranks; i++) {
        if (host->all.guests[i].fd < 0 && n_missing++ < MISSING_SAID) {
            strbuf_printf(list, "%s%d", n_missing > 1 ? ", " : "", i);
        }
    }
    if (n_missing > MISSING_SAID) {
        strbuf_printf(list, " and %d more", n_missing - MISSING_SAID);
    }
}

/* A rank that leaves before all are present will not come back: its job is over. After its hello it sends nothing. */
static void look_after(struct host *host, struct guest *guest)
{
    char byte;
    ssize_t n = recv(guest->fd, &byte, 1, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    char text[WIRE_TEXT_MAX];
    snprintf(text, sizeof(text), "rank %d (%s) left before all ranks were there", guest->hello.rank,
             guest->from);
    disagree(host, ERR_USAGE, text);
    fd_close(&guest->fd);
}

static int turn(struct host *host, int64_t deadline_ns, struct err *err)
{
    int n = host->all.n_ranks;
    host->polled[0] = (struct pollfd){.fd = host->listener, .events = POLLIN};
    for (int i = 1; i < n; i++) {
        host->polled[i] = (struct pollfd){.fd = host->all.guests[i].fd, .events = POLLIN};
    }
    for (int i = 0; i < STRANGERS; i++) {
        host->polled[n + i] = (struct pollfd){.fd = host->strangers[i].fd, .events = POLLIN};
    }
    (void)poll(host->polled, (nfds_t)n + STRANGERS, sock_poll_ms(deadline_ns, 500));
    for (int i = 1; i < n; i++) {
        if (host->all.guests[i].fd >= 0) {
            look_after(host, &host->all.guests[i]);
        }
    }
    if (take_new(host, err) < 0) {
        return -1;
    }
    for (int i = 0; i < STRANGERS; i++) {
        struct guest *stranger = &host->strangers[i];
        hear(host, stranger);
        if (stranger->fd >= 0 && clock_now_ns() - stranger->came_ns > STRANGER_NS) {
            turn_away(host, stranger);
        }
    }
    return 0;
}

/* ---- the whole of it ---- */

static void say_missing(const struct host *host, char *ret_text)
{
    CLEANUP(strbuf) struct strbuf list;
    strbuf_init(&list, WIRE_TEXT_MAX);
    list_missing(host, &list);
    if (host->n_other_job > 0) {
        strbuf_printf(&list, "; %d came with another REPERF_JOB", host->n_other_job);
    }
    if (host->n_turned_away > 0) {
        strbuf_printf(&list, "; %d connections that were no ranks were turned away",
                      host->n_turned_away);
    }
    snprintf(ret_text, WIRE_TEXT_MAX,
             "--rendezvous-timeout has passed and of %d ranks these have not come: %s",
             host->all.n_ranks, list.ptr);
}

void gathered_tell(const struct gathered *all, const char *text)
{
    for (int i = 1; i < all->n_ranks; i++) {
        if (all->guests[i].fd >= 0) {
            tell(all->guests[i].fd, 0, text);
        }
    }
}

static int end_all(struct host *host, enum err_code code, struct err *err)
{
    gathered_tell(&host->all, host->verdict);
    return err_set(err, code, "%s", host->verdict);
}

static int host_all(struct host *host, const struct wait *wait, struct err *err)
{
    int64_t deadline_ns = wait->deadline_ns;
    bool was_one_mind = true;
    while (host->n_here < host->all.n_ranks - 1) {
        if (turn(host, deadline_ns, err) < 0) {
            return -1;
        }
        if (wait->stop && *wait->stop != 0) {
            snprintf(host->verdict, sizeof(host->verdict), "signal %d ended rank 0",
                     (int)*wait->stop);
            return end_all(host, ERR_INTERRUPTED, err);
        }
        int64_t now_ns = clock_now_ns();
        if (was_one_mind && host->verdict[0] != '\0') {
            was_one_mind = false;
            deadline_ns = now_ns + GRACE_NS < deadline_ns ? now_ns + GRACE_NS : deadline_ns;
        }
        if (now_ns >= deadline_ns && was_one_mind) {
            say_missing(host, host->verdict);
            return end_all(host, ERR_TIMEOUT, err);
        }
        if (now_ns >= deadline_ns) {
            break;
        }
    }
    return host->verdict[0] == '\0' ? 0 : end_all(host, host->code, err);
}

int gather(struct gathered *ret_all, int listener, const struct hello *own, const struct wait *wait,
           struct err *err)
{
    struct host host = {.own = own, .listener = listener};
    host.all.n_ranks = own->n_ranks;
    host.all.guests = xcalloc((size_t)own->n_ranks, sizeof(*host.all.guests));
    host.strangers = xcalloc(STRANGERS, sizeof(*host.strangers));
    host.polled = xcalloc((size_t)own->n_ranks + STRANGERS, sizeof(*host.polled));
    for (int i = 0; i < own->n_ranks; i++) {
        host.all.guests[i].fd = -1;
    }
    for (int i = 0; i < STRANGERS; i++) {
        host.strangers[i].fd = -1;
    }
    int status = host_all(&host, wait, err);
    for (int i = 0; i < STRANGERS; i++) {
        fd_close(&host.strangers[i].fd);
    }
    free(host.strangers);
    free(host.polled);
    if (status < 0) {
        gathered_release(&host.all);
    } else {
        *ret_all = host.all;
    }
    return status;
}
