/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/watch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BEATS_A_TIMEOUT 4
#define BEAT_NS_MAX     NS_PER_S
#define VERDICT_NS      (4 * NS_PER_S) /* that a report waits for the verdict on it */
#define GOODBYE_NS      (5 * NS_PER_S)
#define TELL_NS         (2 * NS_PER_S) /* that rank 0 waits until all have read the verdict */
#define OUT_NOTES       4

/* The other end of one connection. Only the thread touches it. */
struct peer {
    int fd; /* -1: none, or gone */
    int rank;
    uint8_t in[WIRE_NOTE_BYTES];
    size_t in_len;
    uint8_t out[OUT_NOTES * WIRE_NOTE_BYTES];
    size_t out_len;
    int64_t heard_ns; /* when it last sent anything */
    uint64_t number;  /* operations it has begun */
    int64_t moved_ns; /* when that last changed */
    bool has_said_bye;
};

struct watch {
    struct watch_opts opts;
    pthread_t thread;
    struct peer *peers; /* owned */
    int n_peers;
    struct pollfd *polled; /* owned; peers, then `wake` */
    int wake;              /* eventfd: the computing thread has something to say */
    int event;             /* eventfd: there is a verdict */
    int64_t beat_ns;       /* between two beats */
    int64_t next_beat_ns;
    bool has_sent_bye;
    atomic_uint_fast64_t number; /* own operations begun */

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t is_changed;
    struct note verdict;
    bool has_verdict;
    struct note report; /* to be sent */
    bool has_report;
    bool is_closing;
};

/* ---- verdicts ---- */

static void send_note(struct peer *peer, const struct note *note)
{
    if (peer->fd >= 0 && peer->out_len + WIRE_NOTE_BYTES <= sizeof(peer->out)) {
        note_encode(note, peer->out + peer->out_len);
        peer->out_len += WIRE_NOTE_BYTES;
    }
}

/* The first verdict stays. Rank 0 tells all, including the accused one, which may be frozen and not dead. */
static void settle(struct watch *watch, const struct note *found)
{
    bool is_new = false;
    pthread_mutex_lock(&watch->lock);
    if (!watch->has_verdict) {
        is_new = true;
        watch->verdict = *found;
        watch->verdict.kind = NOTE_VERDICT;
        watch->has_verdict = true;
        pthread_cond_broadcast(&watch->is_changed);
    }
    pthread_mutex_unlock(&watch->lock);
    if (is_new) {
        const uint64_t one = 1;
        ssize_t n = write(watch->event, &one, sizeof(one));
        ASSERT(n == (ssize_t)sizeof(one)); /* the counter is far from full */
    }
    /* A frozen rank 0 that wakes up learns from the others that they have given it up. */
    bool is_told = watch->opts.rank == 0 || found->rank == 0;
    for (int i = 0; i < watch->n_peers && is_new && is_told; i++) {
        send_note(&watch->peers[i], &watch->verdict);
    }
}

static void accuse(struct watch *watch, int rank, const char *why)
{
    struct note note = {.kind = NOTE_VERDICT, .rank = rank};
    snprintf(note.text, sizeof(note.text), "rank %d %s", rank, why);
    settle(watch, &note);
}

/* ---- what comes in ---- */

static void leave(struct peer *peer)
{
    fd_close(&peer->fd);
    peer->fd = -1;
    peer->out_len = 0;
}

static void gone(struct watch *watch, struct peer *peer, const char *why)
{
    bool is_silent = peer->has_said_bye || watch->has_sent_bye;
    leave(peer);
    if (!is_silent) {
        char text[96];
        snprintf(text, sizeof(text), "died (%.64s)", why);
        accuse(watch, peer->rank, text);
    }
}

static void take_note(struct watch *watch, struct peer *peer)
{
    struct note note;
    struct err err = {0};
    peer->in_len = 0;
    if (note_decode(peer->in, &note, &err) < 0 || note.rank >= watch->opts.n_ranks) {
        gone(watch, peer, "it sends bytes that no rank sends");
        return;
    }
    switch (note.kind) {
    case NOTE_BEAT:
        peer->moved_ns = note.number != peer->number ? peer->heard_ns : peer->moved_ns;
        peer->number = note.number;
        break;
    case NOTE_REPORT:
    case NOTE_VERDICT:
        settle(watch, &note);
        break;
    case NOTE_BYE:
        peer->has_said_bye = true;
        break;
    case NOTE_WELCOME:
    case NOTE_RING:
    case NOTE_KIND_END:
        gone(watch, peer, "it sends bytes that no rank sends");
    }
}

static void take_all(struct watch *watch, struct peer *peer)
{
    while (peer->fd >= 0) {
        ssize_t n = recv(peer->fd, peer->in + peer->in_len, sizeof(peer->in) - peer->in_len, 0);
        if (n > 0) {
            peer->heard_ns = clock_now_ns();
            peer->in_len += (size_t)n;
            if (peer->in_len == sizeof(peer->in)) {
                take_note(watch, peer);
            }
        } else if (n == 0) {
            gone(watch, peer, "its connection closed");
        } else if (errno == EAGAIN || errno == EINTR) {
            return;
        } else {
            gone(watch, peer, err_errno_text(errno));
        }
    }
}

/* ---- what goes out ---- */

static void flush(struct peer *peer)
{
    while (peer->fd >= 0 && peer->out_len > 0) {
        ssize_t n = send(peer->fd, peer->out, peer->out_len, MSG_NOSIGNAL);
        if (n > 0) {
            peer->out_len -= (size_t)n;
            memmove(peer->out, peer->out + n, peer->out_len);
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            peer->out_len =
                0; /* the reading side sees what it is, after what there is still to read */
        } else {
            return;
        }
    }
}

/* A beat is left out if older messages still wait. */
static void beat(struct watch *watch, int64_t now_ns)
{
    const struct note note = {
        .kind = NOTE_BEAT, .rank = watch->opts.rank, .number = atomic_load(&watch->number)};
    if (now_ns < watch->next_beat_ns) {
        return;
    }
    watch->next_beat_ns = now_ns + watch->beat_ns;
    for (int i = 0; i < watch->n_peers; i++) {
        if (watch->peers[i].out_len == 0) {
            send_note(&watch->peers[i], &note);
        }
    }
}

/* ---- judging ---- */

static void judge_silence(struct watch *watch, int64_t now_ns)
{
    for (int i = 0; i < watch->n_peers; i++) {
        const struct peer *peer = &watch->peers[i];
        int64_t silent_ns = now_ns - peer->heard_ns;
        if (peer->fd >= 0 && !peer->has_said_bye && silent_ns > watch->opts.timeout_ns) {
            char text[96];
            snprintf(text, sizeof(text), "is silent for %.1f s (frozen, or its network is cut)",
                     (double)silent_ns / (double)NS_PER_S);
            accuse(watch, peer->rank, text);
        }
    }
}

/* Alive, but others wait for it in an operation that it does not enter. */
static void judge_stall(struct watch *watch, int64_t now_ns)
{
    uint64_t most = atomic_load(&watch->number);
    for (int i = 0; i < watch->n_peers; i++) {
        most = watch->peers[i].number > most ? watch->peers[i].number : most;
    }
    for (int i = 0; i < watch->n_peers; i++) {
        const struct peer *peer = &watch->peers[i];
        if (peer->fd >= 0 && peer->number < most && !peer->has_said_bye &&
            now_ns - peer->moved_ns > watch->opts.stall_ns) {
            char text[128];
            snprintf(text, sizeof(text),
                     "is alive but stuck for %.0f s (after operation %" PRIu64 " of %" PRIu64 ")",
                     (double)(now_ns - peer->moved_ns) / (double)NS_PER_S, peer->number, most);
            accuse(watch, peer->rank, text);
        }
    }
}

/* ---- the thread ---- */

/* Messages of the computing thread. True if it wants to end. */
static bool take_orders(struct watch *watch)
{
    struct note report = {.kind = NOTE_REPORT};
    uint64_t count;
    pthread_mutex_lock(&watch->lock);
    bool has_report = watch->has_report;
    if (has_report) {
        report = watch->report;
        watch->has_report = false;
    }
    bool is_closing = watch->is_closing;
    pthread_mutex_unlock(&watch->lock);
    if (read(watch->wake, &count, sizeof(count)) < 0) {
        ASSERT(errno == EAGAIN || errno == EINTR);
    }
    if (has_report && watch->opts.rank == 0) {
        settle(watch, &report);
    } else if (has_report) {
        send_note(&watch->peers[0], &report);
    }
    return is_closing;
}

static void turn(struct watch *watch, int max_ms)
{
    for (int i = 0; i < watch->n_peers; i++) {
        struct peer *peer = &watch->peers[i];
        flush(peer);
        watch->polled[i] = (struct pollfd){
            .fd = peer->fd, .events = (short)(POLLIN | (peer->out_len > 0 ? POLLOUT : 0))};
    }
    watch->polled[watch->n_peers] = (struct pollfd){.fd = watch->wake, .events = POLLIN};
    if (poll(watch->polled, (nfds_t)watch->n_peers + 1, sock_poll_ms(watch->next_beat_ns, max_ms)) <
        0) {
        return;
    }
    /* Reading comes before judging: a thread that was itself frozen then finds what was sent meanwhile. */
    for (int i = 0; i < watch->n_peers; i++) {
        take_all(watch, &watch->peers[i]);
    }
}

static bool has_verdict(struct watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    bool has = watch->has_verdict;
    pthread_mutex_unlock(&watch->lock);
    return has;
}

static bool all_have(const struct watch *watch, bool wants_bye)
{
    for (int i = 0; i < watch->n_peers; i++) {
        const struct peer *peer = &watch->peers[i];
        if (peer->fd >= 0 && !(wants_bye && peer->has_said_bye)) {
            return false;
        }
    }
    return true;
}

static void say_bye(struct watch *watch)
{
    const struct note bye = {.kind = NOTE_BYE, .rank = watch->opts.rank};
    for (int i = 0; i < watch->n_peers; i++) {
        send_note(&watch->peers[i], &bye);
    }
    watch->has_sent_bye = true;
}

/* Rank 0 answers once it has heard from all, so that no end looks like a death. */
static void part(struct watch *watch)
{
    int64_t end_ns = clock_now_ns() + GOODBYE_NS;
    bool is_judge = watch->opts.rank == 0;
    if (!is_judge) {
        say_bye(watch);
    }
    while (clock_now_ns() < end_ns && !all_have(watch, true) && !has_verdict(watch)) {
        beat(watch, clock_now_ns());
        turn(watch, 50);
    }
    if (is_judge && !has_verdict(watch)) {
        say_bye(watch);
    }
}

/* Sends what still waits; rank 0 then waits for the others to hang up, because closing a connection discards unread messages. */
static void tell(struct watch *watch)
{
    int64_t end_ns = clock_now_ns() + TELL_NS;
    bool is_judge = watch->opts.rank == 0;
    for (;;) {
        bool is_told = true;
        for (int i = 0; i < watch->n_peers; i++) {
            flush(&watch->peers[i]);
            is_told = is_told && watch->peers[i].out_len == 0;
        }
        if ((is_told && (!is_judge || all_have(watch, false))) || clock_now_ns() >= end_ns) {
            return;
        }
        watch->next_beat_ns = end_ns;
        turn(watch, 50);
    }
}

static void *run(void *arg)
{
    struct watch *watch = arg;
    while (!take_orders(watch)) {
        int64_t now_ns = clock_now_ns();
        beat(watch, now_ns);
        turn(watch, 1000);
        now_ns = clock_now_ns();
        if (!has_verdict(watch)) {
            judge_silence(watch, now_ns);
            judge_stall(watch, now_ns);
        }
    }
    if (!has_verdict(watch)) {
        part(watch);
    }
    tell(watch);
    return NULL;
}

/* ---- the computing thread's side ---- */

static void release(struct watch *watch)
{
    for (int i = 0; i < watch->n_peers; i++) {
        fd_close(&watch->peers[i].fd);
    }
    fd_close(&watch->wake);
    fd_close(&watch->event);
    free(watch->peers);
    free(watch->polled);
    free(watch);
}

int watch_start(struct watch **ret_watch, const struct watch_opts *opts, int *fds, struct err *err)
{
    struct watch *watch = xcalloc(1, sizeof(*watch));
    bool is_judge = opts->rank == 0;
    int64_t now_ns = clock_now_ns();
    int64_t beat_ns = opts->timeout_ns / BEATS_A_TIMEOUT;
    watch->opts = *opts;
    watch->beat_ns = beat_ns < BEAT_NS_MAX ? beat_ns : BEAT_NS_MAX;
    watch->peers = xcalloc((size_t)opts->n_ranks, sizeof(*watch->peers));
    watch->polled = xcalloc((size_t)opts->n_ranks + 1, sizeof(*watch->polled));
    for (int i = 0; i < (is_judge ? opts->n_ranks : 1); i++) {
        if (fds[i] >= 0) {
            watch->peers[watch->n_peers++] = (struct peer){
                .fd = take_fd(&fds[i]), .rank = i, .heard_ns = now_ns, .moved_ns = now_ns};
        }
    }
    watch->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    watch->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->is_changed, &attr);
    pthread_condattr_destroy(&attr);
    /* Signals go to the computing thread, whose waits they end. */
    sigset_t all;
    sigset_t old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int status = watch->wake < 0 || watch->event < 0
                     ? errno
                     : pthread_create(&watch->thread, NULL, run, watch);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (status != 0) {
        release(watch);
        return err_set(err, ERR_INTERNAL, "a thread for the ranks: %s", err_errno_text(status));
    }
    *ret_watch = watch;
    return 0;
}

int watch_fd(const struct watch *watch)
{
    return watch->event;
}

void watch_count(struct watch *watch)
{
    atomic_fetch_add(&watch->number, 1);
}

int watch_check(struct watch *watch, struct err *err)
{
    int status = 0;
    pthread_mutex_lock(&watch->lock);
    if (watch->has_verdict) {
        status = err_set(err, ERR_INTERNAL, "%s", watch->verdict.text);
    }
    pthread_mutex_unlock(&watch->lock);
    return status;
}

static void wake_up(const struct watch *watch)
{
    const uint64_t one = 1;
    ssize_t n = write(watch->wake, &one, sizeof(one));
    ASSERT(n == (ssize_t)sizeof(one));
}

static void wait_until(struct watch *watch, const bool *is_true, int64_t wait_ns)
{
    int64_t end_ns = clock_now_ns() + wait_ns;
    const struct timespec end = {.tv_sec = end_ns / NS_PER_S, .tv_nsec = end_ns % NS_PER_S};
    while (!*is_true &&
           pthread_cond_timedwait(&watch->is_changed, &watch->lock, &end) != ETIMEDOUT) {
    }
}

void watch_tell(struct watch *watch, int rank, const char *text)
{
    pthread_mutex_lock(&watch->lock);
    watch->report = (struct note){.kind = NOTE_REPORT, .rank = rank};
    snprintf(watch->report.text, sizeof(watch->report.text), "%s", text);
    watch->has_report = true;
    wake_up(watch);
    wait_until(watch, &watch->has_verdict, VERDICT_NS);
    pthread_mutex_unlock(&watch->lock);
}

int watch_report(struct watch *watch, int rank, const char *text, struct err *err)
{
    watch_tell(watch, rank, text);
    if (watch_check(watch, err) == 0) {
        return err_set(err, ERR_INTERNAL, "%s", text);
    }
    return -1;
}

void watch_close(struct watch *watch)
{
    if (!watch) {
        return;
    }
    pthread_mutex_lock(&watch->lock);
    watch->is_closing = true;
    wake_up(watch);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    pthread_cond_destroy(&watch->is_changed);
    pthread_mutex_destroy(&watch->lock);
    release(watch);
}
