/* SPDX-License-Identifier: Apache-2.0 */
/* Whole jobs over 127.0.0.1, a thread a rank, with uninvited connections. */
#include "unit.h"

#include <fcntl.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fs.h"
#include "dist/job.h"
#include "tests/unit/rank_port.h"

#define RANKS_MOST 6
#define LONG_NS    (120 * NS_PER_S) /* far beyond what anything here takes */

static const char HEX[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

#define TOKEN_OF_NONE "894df794e1c1a685461d8d9787baffcca891382b66ec3286ef141a17a24b9898"

struct peer {
    struct ranks ranks;
    const char *facts, *token;
    int listener;
    int64_t rendezvous_ns;
    struct job job;
    pthread_t thread;
    int status;
    struct err err;
    double sum;
    const char *fails_with; /* after the rendezvous */
    const char *ends_with;  /* what all ranks find, each by itself, after computing for so long: */
    int64_t computes_ns;
};

static void *run_peer(void *arg)
{
    struct peer *m = arg;
    const struct job_opts opts = {.ranks = &m->ranks,
                                  .token = m->token,
                                  .facts = m->facts,
                                  .network = HEX,
                                  .listener = m->listener,
                                  .rendezvous_ns = m->rendezvous_ns,
                                  .timeout_ns = LONG_NS};
    m->status = job_open(&m->job, &opts, &m->err);
    if (m->status < 0) {
        return NULL;
    }
    if (m->fails_with) {
        job_fail(&m->job, m->fails_with);
    }
    m->sum = (double)m->ranks.rank + 1.0;
    for (int i = 0; i < 20 && !m->fails_with; i++) {
        double value = (double)m->ranks.rank + 1.0;
        comm_all_reduce(&m->job.comm, &value, 1, DT_F64);
        m->sum = value;
    }
    const struct timespec computes = {m->computes_ns / NS_PER_S, m->computes_ns % NS_PER_S};
    (void)nanosleep(&computes, NULL);
    if (comm_has_failed(&m->job.comm)) {
        m->status = -1;
        m->err = m->job.comm.err;
    } else if (m->ends_with) {
        m->status = err_set(&m->err, ERR_WORKLOAD, "%s", m->ends_with);
        job_ends_alike(&m->job);
        job_fail(&m->job, m->err.msg);
    }
    job_close(&m->job);
    return NULL;
}

static void prepare(struct peer *peers, int n, int port)
{
    memset(peers, 0, (size_t)n * sizeof(*peers));
    for (int i = 0; i < n; i++) {
        peers[i].ranks = (struct ranks){.launcher = "torchrun",
                                        .rank = i,
                                        .n_ranks = n,
                                        .master_addr = "127.0.0.1",
                                        .master_port = port};
        peers[i].facts = "model=x batch=2";
        peers[i].rendezvous_ns = LONG_NS;
    }
}

static void start(struct peer *peer)
{
    assert_int_equal(pthread_create(&peer->thread, NULL, run_peer, peer), 0);
}

static void start_all(struct peer *peers, int n)
{
    for (int i = n - 1; i >= 0; i--) {
        start(&peers[i]);
    }
}

static void join_all(struct peer *peers, int n)
{
    for (int i = 0; i < n; i++) {
        pthread_join(peers[i].thread, NULL);
    }
}

/* All ranks end well, with the sum of them all. */
static void all_meet(struct peer *peers, int n)
{
    join_all(peers, n);
    for (int i = 0; i < n; i++) {
        if (peers[i].status != 0 || peers[i].err.msg[0] != '\0') {
            fail_msg("rank %d of %d: %s", i, n, peers[i].err.msg);
        }
        assert_true(peers[i].sum == (double)(n * (n + 1)) / 2.0);
    }
}

static void all_fail_with(struct peer *peers, int n, enum err_code code, const char *text)
{
    join_all(peers, n);
    for (int i = 0; i < n; i++) {
        assert_int_equal(peers[i].status, -1);
        if (!strstr(peers[i].err.msg, text) || (code != ERR_ANY && peers[i].err.code != code)) {
            fail_msg("rank %d: \"%s\" is not in \"%s\"", i, text, peers[i].err.msg);
        }
    }
}

/* An uninvited connection; waits until somebody listens. */
static int visit(int port, const void *ptr, size_t len)
{
    int fd = -1;
    const struct wait wait = {.deadline_ns = clock_now_ns() + LONG_NS};
    PASSES(sock_connect("127.0.0.1", port, &wait, &fd, ERR));
    PASSES(sock_send_all(fd, ptr, len, &wait, ERR));
    return fd;
}

/* What rank 0 answers to a hello. */
static struct note answer_to(int fd)
{
    struct note note = {0};
    uint8_t bytes[WIRE_NOTE_BYTES];
    const struct wait wait = {.deadline_ns = clock_now_ns() + LONG_NS};
    PASSES(sock_recv_all(fd, bytes, sizeof(bytes), &wait, ERR));
    PASSES(note_decode(bytes, &note, ERR));
    return note;
}

static void hello_of(int rank, int n_ranks, const char *facts, uint8_t *ret_bytes)
{
    struct hello hello = {.version = WIRE_VERSION,
                          .rank = rank,
                          .n_ranks = n_ranks,
                          .ring_port = 1,
                          .program = REPERF_VERSION};
    snprintf(hello.facts, sizeof(hello.facts), "%s", facts);
    memcpy(hello.network, HEX, sizeof(HEX));
    /* SHA-256 of a job without a name, as rank 0 has it. Source: sha256sum of "reperf job" and a newline. */
    memcpy(hello.token, TOKEN_OF_NONE, WIRE_HEX_LEN);
    hello_encode(&hello, ret_bytes);
}

TEST(any_number_of_ranks_meets)
{
    for (int n = 1; n <= RANKS_MOST; n++) {
        struct peer peers[RANKS_MOST];
        prepare(peers, n, rank_port());
        start_all(peers, n);
        all_meet(peers, n);
    }
}

TEST(guests_do_no_harm)
{
    struct peer peers[3];
    uint8_t bytes[WIRE_HELLO_BYTES + 1] = {0};
    int port = rank_port();
    int silent[100];
    prepare(peers, 3, port);
    start(&peers[0]);
    start(&peers[1]);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        silent[i] = visit(port, "R", i % 2);
    }
    const char http[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    fd_close(&(int){visit(port, http, sizeof(http) - 1)});
    hello_of(2, 3, "model=x batch=2", bytes);
    bytes[20] ^= 1; /* another port: this is a hello, but truncated */
    fd_close(&(int){visit(port, bytes, 900)});
    bytes[300] = 7; /* and one with a byte that no text has */
    fd_close(&(int){visit(port, bytes, WIRE_HELLO_BYTES)});
    struct peer other;
    prepare(&other, 1, port);
    other.ranks.n_ranks = 3;
    other.ranks.rank = 2;
    other.token = "another job";
    start(&other);
    pthread_join(other.thread, NULL);
    assert_int_equal(other.status, -1);
    assert_int_equal(other.err.code, ERR_USAGE);
    assert_non_null(strstr(other.err.msg, "REPERF_JOB differs"));
    start(&peers[2]);
    all_meet(peers, 3);
    for (size_t i = 0; i < ARRAY_LEN(silent); i++) {
        fd_close(&silent[i]);
    }
}

TEST(what_ranks_disagree_about_ends_them_all)
{
    static const struct {
        int at;
        struct ranks ranks;
        const char *facts, *says;
    } ROWS[] = {
        {2, {.rank = 2, .n_ranks = 3}, "model=x batch=4", "rank 2 has batch=4, rank 0 batch=2"},
        {1,
         {.rank = 1, .n_ranks = 4},
         "model=x batch=2",
         "rank 1 has a world size of 4, rank 0 one of 3"},
        {2,
         {.rank = 1, .n_ranks = 3},
         "model=x batch=2",
         "rank 1 connected twice: from 127.0.0.1 and from 127.0.0.1"},
    };
    for (EACH(row, ROWS)) {
        struct peer peers[3];
        prepare(peers, 3, rank_port());
        peers[row->at].ranks.rank = row->ranks.rank;
        peers[row->at].ranks.n_ranks = row->ranks.n_ranks;
        peers[row->at].facts = row->facts;
        start_all(peers, 3);
        all_fail_with(peers, 3, ERR_ANY, row->says);
    }
}

/* A port of rank 0's, at which others may be before it. */
static int listen_for(struct peer *rank_0)
{
    PASSES(sock_listen("127.0.0.1", 0, &rank_0->listener, ERR));
    return sock_own_port(rank_0->listener);
}

static int greet(int port, int rank, int n_ranks)
{
    uint8_t bytes[WIRE_HELLO_BYTES];
    hello_of(rank, n_ranks, "model=x batch=2", bytes);
    return visit(port, bytes, sizeof(bytes));
}

TEST(who_leaves_is_named)
{
    struct peer peers[2], alone;
    int port = rank_port();
    prepare(peers, 2, port);
    for (int i = 0; i < 2; i++) {
        peers[i].ranks.n_ranks = 3;
        start(&peers[i]);
    }
    int fd = greet(port, 2, 3);
    assert_int_equal(answer_to(fd).kind, NOTE_WELCOME);
    fd_close(&fd);
    /* Another leaves while one has not come yet. Who has come hears of it. */
    prepare(&alone, 1, 0);
    alone.ranks.n_ranks = 4;
    alone.ranks.master_port = listen_for(&alone);
    int stays = greet(alone.ranks.master_port, 1, 4);
    fd_close(&(int){greet(alone.ranks.master_port, 2, 4)});
    start(&alone);
    all_fail_with(peers, 2, ERR_ANY, "rank 2 died (");
    join_all(&alone, 1);
    assert_int_equal(alone.err.code, ERR_USAGE);
    assert_non_null(strstr(alone.err.msg, "rank 2 (127.0.0.1) left before all ranks were there"));
    struct note note = answer_to(stays);
    assert_int_equal(note.kind, NOTE_VERDICT);
    assert_string_equal(note.text, "rank 2 (127.0.0.1) left before all ranks were there");
    fd_close(&stays);
}

TEST(who_does_not_come_is_named)
{
    struct peer peers[2], waiting;
    /* Rank 1 was there before rank 0 gives up, and hears of it. */
    prepare(&waiting, 1, 0);
    waiting.ranks.n_ranks = 3;
    waiting.ranks.master_port = listen_for(&waiting);
    waiting.rendezvous_ns = NS_PER_S;
    int stays = greet(waiting.ranks.master_port, 1, 3);
    start(&waiting);
    /* Meanwhile, a rank that says hello and then is not where it said: the ring does not close. */
    prepare(peers, 2, 0);
    int port = listen_for(&peers[0]);
    int fd = greet(port, 2, 3);
    for (int i = 0; i < 2; i++) {
        peers[i].ranks.n_ranks = 3;
        peers[i].ranks.master_port = port;
        peers[i].rendezvous_ns = 5 * NS_PER_S;
        start(&peers[i]);
    }
    join_all(peers, 2);
    fd_close(&fd);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(peers[i].status, -1);
    }
    assert_non_null(strstr(peers[1].err.msg, "rank"));
    join_all(&waiting, 1);
    assert_int_equal(waiting.err.code, ERR_TIMEOUT);
    assert_non_null(strstr(waiting.err.msg, "of 3 ranks these have not come: 2"));
    assert_non_null(strstr(answer_to(stays).text, "of 3 ranks these have not come: 2"));
    fd_close(&stays);
}

TEST(a_rank_that_fails_tells_the_others)
{
    for (int bad = 0; bad < 4; bad++) {
        struct peer peers[4];
        char text[64];
        prepare(peers, 4, rank_port());
        peers[bad].fails_with = "shard 7 is damaged";
        start_all(peers, 4);
        snprintf(text, sizeof(text), "rank %d failed: shard 7 is damaged", bad);
        all_fail_with(peers, 4, ERR_INTERNAL, text);
    }
}

/* However long one of them still computes when the others are done. */
TEST(what_all_find_is_every_ranks_own)
{
    for (int late = 0; late < 3; late++) {
        struct peer peers[3];
        prepare(peers, 3, rank_port());
        for (int i = 0; i < 3; i++) {
            peers[i].ends_with = "loss is not a number";
            peers[i].computes_ns = i == late ? NS_PER_S / 2 : 0;
            start(&peers[i]);
        }
        all_fail_with(peers, 3, ERR_WORKLOAD, "loss is not a number");
    }
}

TEST(a_port_that_is_taken_is_said)
{
    struct peer peer;
    int fd = -1;
    PASSES(sock_listen("127.0.0.1", 0, &fd, ERR));
    prepare(&peer, 1, sock_own_port(fd));
    peer.ranks.n_ranks = 2;
    run_peer(&peer);
    assert_int_equal(peer.status, -1);
    assert_int_equal(peer.err.code, ERR_NET);
    assert_non_null(strstr(peer.err.msg, "in use"));
    fd_close(&fd);
}

/* Who chose the port listens there from then on: nobody else gets it in between. */
TEST(rank_0_takes_a_listener)
{
    struct peer peers[3];
    int fd = -1;
    PASSES(sock_listen("127.0.0.1", 0, &fd, ERR));
    prepare(peers, 3, sock_own_port(fd));
    peers[0].listener = fd;
    start_all(peers, 3);
    all_meet(peers, 3);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it has closed it */
}
