/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks' messages, how ranks learn who they are, and sums over a ring: threads over socket pairs. */
#include "unit.h"

#include <math.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/rng.h"
#include "dist/ranks.h"
#include "dist/ring.h"
#include "dist/wire.h"

/* ---- messages ---- */

static const char HEX[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

static struct hello some_hello(int rank)
{
    struct hello hello = {.version = WIRE_VERSION,
                          .rank = rank,
                          .n_ranks = 4,
                          .ring_port = 4711,
                          .program = "0.1.0",
                          .ring_addr = "fe80::1%eth0",
                          .facts = "model=resnet50 batch=2 lr=0.1"};
    memcpy(hello.token, HEX, sizeof(HEX));
    memcpy(hello.network, HEX, sizeof(HEX));
    return hello;
}

TEST(messages_come_back_as_they_were)
{
    uint8_t bytes[WIRE_HELLO_BYTES];
    struct hello hello = some_hello(3);
    struct hello back;
    hello_encode(&hello, bytes);
    PASSES(hello_decode(bytes, &back, ERR));
    assert_int_equal(back.rank, 3);
    assert_int_equal(back.n_ranks, 4);
    assert_int_equal(back.ring_port, 4711);
    assert_string_equal(back.ring_addr, hello.ring_addr);
    assert_string_equal(back.facts, hello.facts);
    assert_string_equal(back.token, HEX);
    struct note note = {
        .kind = NOTE_REPORT, .rank = 2, .port = 65535, .number = 0x123456789abcdefULL};
    snprintf(note.text, sizeof(note.text), "rank 2 died");
    memset(note.key, 0xa5, sizeof(note.key));
    struct note again;
    note_encode(&note, bytes);
    PASSES(note_decode(bytes, &again, ERR));
    assert_int_equal(again.kind, NOTE_REPORT);
    assert_true(again.number == note.number);
    assert_int_equal(again.port, 65535);
    assert_string_equal(again.text, note.text);
    assert_memory_equal(again.key, note.key, sizeof(note.key));
}

/* Any single byte may be wrong: then it is an error, or another value that a later check will see, never a crash. */
TEST(a_wrong_byte_is_an_error_or_another_value)
{
    uint8_t bytes[WIRE_HELLO_BYTES];
    const struct hello hello = some_hello(1);
    int n_refused = 0;
    for (int at = 0; at < WIRE_HELLO_BYTES; at++) {
        struct err err = {0};
        struct hello back;
        hello_encode(&hello, bytes);
        bytes[at] ^= 0x80;
        if (hello_decode(bytes, &back, &err) < 0) {
            n_refused++;
            continue;
        }
        uint8_t again[WIRE_HELLO_BYTES];
        hello_encode(&back, again);
        /* Of another version only the head is read. */
        assert_true(back.version != WIRE_VERSION || memcmp(again, bytes, sizeof(again)) == 0);
    }
    /* All but version (4), low bytes of rank and world size, and of the port (2). */
    assert_true(n_refused >= WIRE_HELLO_BYTES - 12);
    for (int at = 0; at < WIRE_MAGIC_BYTES; at++) {
        hello_encode(&hello, bytes);
        assert_true(hello_may_be(bytes, (size_t)at));
        bytes[at] ^= 1;
        assert_false(hello_may_be(bytes, (size_t)at + 1));
    }
}

TEST(disagreements_name_ranks_and_values)
{
    char text[WIRE_TEXT_MAX];
    const struct hello mine = some_hello(0);
    struct hello theirs = some_hello(1);
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "");
    snprintf(theirs.facts, sizeof(theirs.facts), "model=resnet50 batch=4 lr=0.1");
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "rank 1 has batch=4, rank 0 batch=2");
    snprintf(theirs.facts, sizeof(theirs.facts), "model=resnet50 batch=2 lr=0.1 more");
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "rank 1 has more, rank 0 nothing more");
    theirs.n_ranks = 8;
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "rank 1 has a world size of 8, rank 0 one of 4");
    snprintf(theirs.program, sizeof(theirs.program), "0.2.0");
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "rank 1 is reperf-train 0.2.0, rank 0 0.1.0");
    theirs.version = 7;
    hello_compare(&mine, &theirs, text);
    assert_non_null(strstr(text, "rank 1 speaks version 7"));
    theirs = some_hello(4);
    hello_compare(&mine, &theirs, text);
    assert_string_equal(text, "rank 4 came to a job of 4 ranks");
    theirs = some_hello(2);
    theirs.network[0] = 'f';
    hello_compare(&mine, &theirs, text);
    assert_non_null(strstr(text, "rank 2 has another network"));
}

/* ---- who am I ---- */

static const char *from_list(void *ctx, const char *name)
{
    const char *const *at = ctx;
    for (; *at; at += 2) {
        if (strcmp(at[0], name) == 0) {
            return at[1];
        }
    }
    return NULL;
}
#define ENV(...) ((void *)(uintptr_t)(const char *const[]){__VA_ARGS__, NULL})

static struct ranks good(void *env)
{
    struct ranks ranks;
    PASSES(ranks_read(from_list, env, false, &ranks, ERR));
    return ranks;
}

static void bad(void *env, const char *part)
{
    struct ranks ranks;
    FAILS_WITH(ranks_read(from_list, env, false, &ranks, ERR), ERR_USAGE, part);
}

TEST(launchers_are_understood)
{
    struct ranks r = good(ENV("HOME", "/root"));
    assert_string_equal(r.launcher, "none");
    assert_int_equal(r.n_ranks, 1);
    r = good(ENV("RANK", "5", "WORLD_SIZE", "8", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "4",
                 "MASTER_ADDR", "10.11.0.2", "MASTER_PORT", "1234", "OMPI_COMM_WORLD_RANK", "0",
                 "OMPI_COMM_WORLD_SIZE", "2"));
    assert_string_equal(r.launcher, "torchrun");
    assert_int_equal(r.rank, 5);
    assert_int_equal(r.local_rank, 1);
    assert_int_equal(r.n_local_ranks, 4);
    assert_int_equal(r.master_port, 1234);
    r = good(ENV("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2",
                 "OMPI_COMM_WORLD_LOCAL_RANK", "1", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"));
    assert_string_equal(r.launcher, "openmpi");
    assert_string_equal(r.master_addr, "127.0.0.1");
    assert_int_equal(r.master_port, RANKS_PORT_DEFAULT);
    r = good(ENV("SLURM_PROCID", "2", "SLURM_NTASKS", "16", "SLURM_STEP_NUM_TASKS", "4",
                 "SLURM_LOCALID", "0", "SLURM_JOB_NODELIST", "gpu[07-09,12],x1"));
    assert_string_equal(r.launcher, "slurm");
    assert_int_equal(r.n_ranks, 4);
    assert_string_equal(r.master_addr, "gpu07");
    r = good(ENV("SLURM_NTASKS", "16", "SLURM_JOB_NODELIST", "gpu[07-09]"));
    assert_int_equal(r.n_ranks, 1); /* the shell of an allocation */
}

TEST(contradictions_are_refused)
{
    bad(ENV("RANK", "0"), "RANK without WORLD_SIZE");
    bad(ENV("WORLD_SIZE", "2"), "without RANK");
    bad(ENV("RANK", "2", "WORLD_SIZE", "2", "MASTER_ADDR", "x"), "RANK");
    bad(ENV("RANK", "-1", "WORLD_SIZE", "2", "MASTER_ADDR", "x"), "RANK");
    bad(ENV("RANK", "", "WORLD_SIZE", "2", "MASTER_ADDR", "x"), "RANK");
    bad(ENV("RANK", "0", "WORLD_SIZE", "0"), "WORLD_SIZE");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2x"), "WORLD_SIZE");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2000000"), "WORLD_SIZE");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2"), "MASTER_ADDR");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "a b"), "MASTER_ADDR");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "x", "MASTER_PORT", "0"), "MASTER_PORT");
    bad(ENV("RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", "x", "LOCAL_WORLD_SIZE", "3"),
        "LOCAL_WORLD_SIZE");
    bad(ENV("RANK", "0", "WORLD_SIZE", "4", "MASTER_ADDR", "x", "LOCAL_WORLD_SIZE", "2",
            "LOCAL_RANK", "2"),
        "LOCAL_RANK");
    bad(ENV("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "4", "OMPI_COMM_WORLD_LOCAL_SIZE",
            "2"),
        "MASTER_ADDR");
    bad(ENV("SLURM_PROCID", "0", "SLURM_NTASKS", "2", "SLURM_JOB_NODELIST", "gpu[07"),
        "SLURM_JOB_NODELIST");
}

TEST(first_hosts)
{
    static const char *const rows[][2] = {
        {"node1", "node1"},         {"node1,node2", "node1"},      {"node[1-4]", "node1"},
        {"gpu[01-04]", "gpu01"},    {"gpu[12,15]-ib", "gpu12-ib"}, {"r[1-2]n[3-4]", "r1n3"},
        {"10.11.0.2", "10.11.0.2"},
    };
    static const char *const wrong[] = {"",          ",",   "node[",  "node[]",
                                        "node[a-b]", "a b", "n[1;2]", "x/y"};
    char host[RANKS_ADDR_MAX];
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        PASSES(ranks_first_host(rows[i][0], host, ERR));
        assert_string_equal(host, rows[i][1]);
    }
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        FAILS(ranks_first_host(wrong[i], host, ERR), ERR_ANY);
    }
    CLEANUP(free) char *longest = xcalloc(100000, 1);
    memset(longest, 'a', 99999);
    FAILS(ranks_first_host(longest, host, ERR), ERR_ANY);
}

/* ---- the ring ---- */

#define RANKS_MOST 5
#define LONG_NS    (120 * NS_PER_S) /* far beyond what anything here takes */

struct peer {
    struct ring ring;
    struct comm comm;
    pthread_t thread;
    void (*work)(struct peer *peer);
    int64_t count;
    enum dtype dtype;
    void *data;
    int n_ranks, rank;
};

static void *run_peer(void *arg)
{
    struct peer *peer = arg;
    peer->work(peer);
    return NULL;
}

static void make_ring(struct peer *peers, int n)
{
    int next[RANKS_MOST];
    int prev[RANKS_MOST];
    for (int i = 0; i < n; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
        next[i] = pair[0];
        prev[(i + 1) % n] = pair[1];
    }
    for (int i = 0; i < n; i++) {
        ring_init(&peers[i].ring, i, n, next[i], prev[i]);
        peers[i].ring.timeout_ns = LONG_NS;
        peers[i].comm = ring_comm(&peers[i].ring);
        peers[i].rank = i;
        peers[i].n_ranks = n;
    }
}

static void release_ring(struct peer *peers, int n)
{
    for (int i = 0; i < n; i++) {
        free(peers[i].data);
        ring_release(&peers[i].ring);
    }
}

static void run_all(struct peer *peers, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(pthread_create(&peers[i].thread, NULL, run_peer, &peers[i]), 0);
    }
    for (int i = 0; i < n; i++) {
        pthread_join(peers[i].thread, NULL);
    }
}

static double term(int rank, int64_t i)
{
    struct rng rng;
    rng_init(&rng, (uint64_t)rank << 40 ^ (uint64_t)i);
    return rng_normal(&rng) * pow(10.0, (double)(i % 7) - 3.0);
}

static void sum_some(struct peer *peer)
{
    for (int64_t i = 0; i < peer->count; i++) {
        if (peer->dtype == DT_F64) {
            ((double *)peer->data)[i] = term(peer->rank, i);
        } else {
            ((float *)peer->data)[i] = (float)term(peer->rank, i);
        }
    }
    comm_all_reduce(&peer->comm, peer->data, peer->count, peer->dtype);
}

/* What chunk c holds is x_c + x_(c+1) + ... in this order and in the type itself. */
static void check_sum(const struct peer *peers, int n)
{
    int64_t count = peers[0].count;
    for (int chunk = 0, at = 0; chunk < n; chunk++) {
        int64_t size = count / n + (chunk < count % n ? 1 : 0);
        for (int64_t end = at + size; at < end; at++) {
            double wide = term(chunk, at);
            float narrow = (float)wide;
            for (int k = 1; k < n; k++) {
                wide += term((chunk + k) % n, at);
                narrow += (float)term((chunk + k) % n, at);
            }
            for (int rank = 0; rank < n; rank++) {
                if (peers[0].dtype == DT_F64) {
                    assert_true(((double *)peers[rank].data)[at] == wide);
                } else {
                    assert_true(((float *)peers[rank].data)[at] == narrow);
                }
            }
        }
    }
}

TEST(sums_are_those_of_the_documented_order)
{
    static const int64_t counts[] = {0, 1, 2, 3, 7, 1000, 65537, 300001};
    for (int n = 2; n <= RANKS_MOST; n++) {
        for (size_t c = 0; c < ARRAY_LEN(counts) * 2; c++) {
            struct peer peers[RANKS_MOST] = {0};
            make_ring(peers, n);
            for (int i = 0; i < n; i++) {
                peers[i].work = sum_some;
                peers[i].count = counts[c / 2];
                peers[i].dtype = c % 2 ? DT_F64 : DT_F32;
                peers[i].data = xcalloc((size_t)counts[c / 2] + 1, sizeof(double));
            }
            run_all(peers, n);
            for (int i = 0; i < n; i++) {
                assert_int_equal(peers[i].comm.err.code, ERR_NONE);
            }
            check_sum(peers, n);
            release_ring(peers, n);
        }
    }
}

static void gather_and_broadcast(struct peer *peer)
{
    int64_t bytes = peer->count;
    uint8_t *rows = peer->data;
    memset(rows + peer->rank * bytes, 'a' + peer->rank, (size_t)bytes);
    comm_all_gather(&peer->comm, rows, bytes);
    comm_barrier(&peer->comm);
    uint8_t *tail = rows + peer->n_ranks * bytes;
    memset(tail, '0' + peer->rank, (size_t)bytes);
    comm_broadcast(&peer->comm, tail, bytes, peer->n_ranks - 1);
}

TEST(rows_come_together_and_one_goes_to_all)
{
    static const int64_t sizes[] = {1, 8, 600000};
    for (int n = 2; n <= RANKS_MOST; n++) {
        for (size_t s = 0; s < ARRAY_LEN(sizes); s++) {
            struct peer peers[RANKS_MOST] = {0};
            make_ring(peers, n);
            for (int i = 0; i < n; i++) {
                peers[i].work = gather_and_broadcast;
                peers[i].count = sizes[s];
                peers[i].data = xcalloc((size_t)(sizes[s] * (n + 1)), 1);
            }
            run_all(peers, n);
            for (int i = 0; i < n; i++) {
                const uint8_t *at = peers[i].data;
                assert_int_equal(peers[i].comm.err.code, ERR_NONE);
                for (int64_t k = 0; k < sizes[s] * (n + 1); k++) {
                    int row = (int)(k / sizes[s]);
                    assert_int_equal(at[k], row < n ? 'a' + row : '0' + n - 1);
                }
            }
            release_ring(peers, n);
        }
    }
}

static void out_of_step(struct peer *peer)
{
    double values[4] = {0};
    comm_all_reduce(&peer->comm, values, 3 + (peer->rank == 1), DT_F64);
}

static void dies_early(struct peer *peer)
{
    static double values[3][100000];
    if (peer->rank == 1) {
        ring_release(&peer->ring);
        return;
    }
    comm_all_reduce(&peer->comm, values[peer->rank], 100000, DT_F64);
    comm_all_reduce(&peer->comm, values[peer->rank], 100000, DT_F64);
}

static void never_comes(struct peer *peer)
{
    double value = 1.0;
    if (peer->rank != 1) {
        comm_all_reduce(&peer->comm, &value, 1, DT_F64);
    }
}

/* Three ranks that fail; timeout_ns is that of all but rank 1, who finds out, however late rank 0 is. */
static void three_fail(struct peer *peers, void (*work)(struct peer *peer), int64_t timeout_ns)
{
    memset(peers, 0, 3 * sizeof(*peers));
    make_ring(peers, 3);
    for (int i = 0; i < 3; i++) {
        peers[i].work = work;
        peers[i].ring.timeout_ns = i == 1 ? LONG_NS : timeout_ns;
    }
    run_all(peers, 3);
}

TEST(failures_stick_and_name_somebody)
{
    struct peer peers[3];
    three_fail(peers, out_of_step, NS_PER_S / 4);
    assert_non_null(strstr(peers[1].comm.err.msg, "rank 0 is at operation 1 (kind 1, 24 bytes), "
                                                  "rank 1 at 1 (kind 1, 32 bytes)"));
    release_ring(peers, 3);
    three_fail(peers, dies_early, LONG_NS);
    assert_true(comm_has_failed(&peers[2].comm));
    assert_non_null(strstr(peers[2].comm.err.msg, "rank 1 died"));
    int64_t n_calls = peers[2].comm.n_calls;
    double untouched = 5.0;
    comm_all_reduce(&peers[2].comm, &untouched, 1, DT_F64);
    assert_true(untouched == 5.0);
    assert_int_equal(peers[2].comm.n_calls, n_calls);
    release_ring(peers, 3);
    three_fail(peers, never_comes, NS_PER_S / 4);
    assert_non_null(strstr(peers[2].comm.err.msg, "rank 1 died (seen by rank 2: time-out"));
    release_ring(peers, 3);
}
