/* SPDX-License-Identifier: Apache-2.0 */
/* Staging onto four nodes that are four work folders of this machine, with real relays between them (the program next to
   this test's folder). Real sshds: tests/integration/test_stage.sh. */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/digest.h"
#include "fleet/stage.h"
#include "remote_here.h"

#define N_NODES    4
#define BIG_BYTES  (5u << 20)
#define FILES_MANY 300

struct cluster { /* one test's */
    const char *folder;
    struct loop loop;
    struct inventory_node specs[N_NODES];
    struct inventory inventory;
    struct fleet fleet;
    struct stage_opts opts;
    struct stage_report report; /* of the last staging */
    struct arena arena;
};

static void cluster_open(struct cluster *c, const char *folder, size_t n_nodes)
{
    static const char *const NAMES[] = {"n1", "n2", "n3", "n4"};
    ASSERT(n_nodes <= N_NODES);
    *c = (struct cluster){.folder = folder};
    loop_init(&c->loop, clock_system());
    c->fleet = (struct fleet){.loop = &c->loop, .inventory = &c->inventory, .fanout = 2};
    c->fleet.nodes = xcalloc(n_nodes, sizeof(*c->fleet.nodes));
    for (size_t idx = 0; idx < n_nodes; idx++) {
        c->specs[idx].name = str_of(NAMES[idx]);
        c->specs[idx].address = STR_LIT("127.0.0.1");
        c->fleet.nodes[idx].spec = &c->specs[idx];
        c->fleet.nodes[idx].remote =
            remote_local_new(&c->loop, fs_join(&scratch_arena, folder, NAMES[idx]));
        c->fleet.n_nodes++;
    }
    c->inventory.nodes = c->specs;
    c->inventory.n_nodes = n_nodes;
    c->opts = (struct stage_opts){.clock = clock_system()};
}

static void cluster_cleanup(struct cluster *c)
{
    fleet_release(&c->fleet);
    loop_release(&c->loop);
    arena_release(&c->arena);
}

static const char *below(const char *folder, const char *name)
{
    return fs_join(&scratch_arena, folder, name);
}

/* Bytes that neither compression nor a shift makes alike. */
static void write_bytes(const char *path, size_t size, uint32_t seed)
{
    char *bytes = xmalloc(size + 1);
    for (size_t idx = 0; idx < size; idx++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[idx] = (char)(seed >> 24);
    }
    scratch_write(path, (struct str){bytes, size});
    free(bytes);
}

static void assert_same(const char *a, const char *b)
{
    struct digest_value left, right;
    PASSES(digest_file(a, DIGEST_SHA256, &left, ERR));
    PASSES(digest_file(b, DIGEST_SHA256, &right, ERR));
    assert_memory_equal(left.sha256, right.sha256, SHA256_BYTES);
}

static int stage(struct cluster *c, const struct stage_item *items, size_t n_items)
{
    struct err err = {0};
    int n_failed = stage_items(&c->arena, &c->fleet, &c->opts, (struct stage_list){items, n_items},
                               &c->report, &err);
    if (n_failed < 0) {
        print_message("%s\n", err.msg);
    }
    for (size_t idx = 0; idx < c->fleet.n_nodes; idx++) {
        if (c->fleet.nodes[idx].err.code != ERR_NONE) {
            print_message("n%zu: %s\n", idx + 1, c->fleet.nodes[idx].err.msg);
        }
    }
    return n_failed;
}

static void make_tree(const char *folder)
{
    char name[64];
    PASSES(fs_mkdir_p(below(folder, "deep/er"), ERR));
    write_bytes(below(folder, "deep/er/big"), BIG_BYTES + 7, 1);
    write_bytes(below(folder, "empty"), 0, 0);
    write_bytes(below(folder, "deep/tool"), 1000, 2);
    write_bytes(below(folder, "deep/same"), 1000, 2);
    assert_int_equal(chmod(below(folder, "deep/tool"), 0755), 0);
    for (unsigned idx = 0; idx < FILES_MANY; idx++) {
        snprintf(name, sizeof(name), "deep/file %u", idx);
        write_bytes(below(folder, name), (size_t)idx * 11, idx);
    }
}

TEST_IN_SCRATCH(hands_a_folder_on)
{
    CLEANUP(cluster) struct cluster c;
    struct fs_names names;
    const char *source = below(*state, "source");
    struct stat info;
    make_tree(source);
    struct stage_item items[] = {
        {.kind = STAGE_FOLDER, .source = source, .target = "data/x", .may_be_shared = false},
        {.kind = STAGE_FILE,
         .source = below(source, "deep/tool"),
         .target = "bin/abc/tool",
         .is_executable = true}};
    cluster_open(&c, *state, N_NODES);
    assert_int_equal(stage(&c, items, 2), 0);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        const struct stage_node *node = &c.report.nodes[idx];
        assert_int_equal(node->way, STAGE_CHAIN);
        assert_false(node->is_shared);
        assert_int_equal(node->bytes_there, 0);
        assert_same(below(source, "deep/er/big"), below(node->paths[0], "deep/er/big"));
        assert_same(below(source, "deep/file 299"), below(node->paths[0], "deep/file 299"));
        assert_same(below(source, "deep/same"), below(node->paths[0], "deep/same"));
        assert_same(below(source, "empty"), below(node->paths[0], "empty"));
        assert_same(items[1].source, node->paths[1]);
        assert_int_equal(stat(node->paths[1], &info), 0);
        assert_int_equal(info.st_mode & 0777, 0755);
        PASSES(fs_list(&scratch_arena, node->paths[0], &names, ERR));
        assert_int_equal(names.n, 2); /* deep, empty: nothing temporary */
    }
    /* Once through the head's own line, not four times. */
    assert_true(c.report.head_bytes == c.report.total_bytes);
    /* The second time nothing is sent. */
    assert_int_equal(stage(&c, items, 2), 0);
    assert_true(c.report.head_bytes == 0);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_int_equal(c.report.nodes[idx].way, STAGE_NOTHING);
        assert_true(c.report.nodes[idx].bytes_there == c.report.total_bytes);
    }
    /* One changed byte on one node: that file alone is sent, to that node alone. */
    write_bytes(below(c.report.nodes[2].paths[0], "deep/file 17"), (size_t)17 * 11, 99);
    assert_int_equal(unlink(below(c.report.nodes[1].paths[0], "deep/file 5")), 0);
    assert_int_equal(stage(&c, items, 2), 0);
    assert_true(c.report.head_bytes == (uint64_t)(17 + 5) * 11);
    assert_int_equal(c.report.nodes[0].way, STAGE_NOTHING);
    assert_int_equal(c.report.nodes[2].way, STAGE_CHAIN);
    assert_same(below(source, "deep/file 17"), below(c.report.nodes[2].paths[0], "deep/file 17"));
}

TEST_IN_SCRATCH(shared_folders_are_not_copied)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "source");
    struct fs_names names;
    make_tree(source);
    struct stage_item items[] = {
        {.kind = STAGE_FOLDER, .source = source, .target = "data/x", .may_be_shared = true}};
    cluster_open(&c, *state, N_NODES);
    assert_int_equal(stage(&c, items, 1), 0);
    for (size_t idx = 0; idx < N_NODES; idx++) {
        assert_true(c.report.nodes[idx].is_shared);
        assert_int_equal(c.report.nodes[idx].way, STAGE_SHARED);
        assert_string_equal(c.report.nodes[idx].paths[0], source);
    }
    assert_true(c.report.head_bytes == 0);
    PASSES(fs_list(&scratch_arena, source, &names, ERR));
    assert_int_equal(names.n, 2); /* deep, empty: the mark is gone */
    c.opts.must_copy = true;
    assert_int_equal(stage(&c, items, 1), 0);
    assert_int_equal(c.report.nodes[0].way, STAGE_CHAIN);
    assert_same(below(source, "deep/er/big"), below(c.report.nodes[3].paths[0], "deep/er/big"));
}

TEST_IN_SCRATCH(a_file_that_is_another_is_refused_here)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "f");
    struct stage_item item = {
        .kind = STAGE_FILE,
        .source = source,
        .target = "data/f",
        .sha256_hex = STR_LIT("0000000000000000000000000000000000000000000000000000000000000000")};
    write_bytes(source, 10, 3);
    cluster_open(&c, *state, 1);
    FAILS(stage_items(&c.arena, &c.fleet, &c.opts, (struct stage_list){&item, 1}, &c.report, ERR),
          ERR_INTEGRITY);
}

/* In place: the file is at no time shorter, which would be another fault. */
static void change_source(void *ctx, uint64_t bytes_done UNUSED, uint64_t bytes_total UNUSED)
{
    CLEANUP(fd) int fd = open(ctx, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(fd, "changed", 7, 1000), 7);
}

/* Its digest was taken before. It is sent twice, and never gets its name. */
TEST_IN_SCRATCH(a_file_that_changes_meanwhile_is_no_file_there)
{
    CLEANUP(cluster) struct cluster c;
    char *source = fs_join(&scratch_arena, *state, "f");
    struct stage_item item = {.kind = STAGE_FILE, .source = source, .target = "data/f"};
    struct fs_names names;
    write_bytes(source, 100000, 3);
    cluster_open(&c, *state, 2);
    c.opts.on_progress = change_source;
    c.opts.progress_ctx = source;
    assert_int_equal(stage(&c, &item, 1), 2);
    assert_int_equal(c.fleet.nodes[0].err.code, ERR_INTEGRITY);
    assert_int_equal(c.fleet.nodes[1].err.code, ERR_INTEGRITY);
    assert_int_equal(c.report.head_bytes, 300000);
    PASSES(fs_list(&scratch_arena, below(*state, "n1/data"), &names, ERR));
    assert_int_equal(names.n, 0);
}

/* A node that cannot be written to fails alone, and is named. */
TEST_IN_SCRATCH(a_node_that_fails_is_told_apart)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "f");
    struct stage_item item = {.kind = STAGE_FILE, .source = source, .target = "data/f"};
    write_bytes(source, 100000, 3);
    cluster_open(&c, *state, 3);
    PASSES(fs_mkdir_p(below(*state, "n2"), ERR));
    scratch_write(below(*state, "n2/data"), STR_LIT("a file where a folder should be"));
    assert_int_equal(stage(&c, &item, 1), 1);
    assert_int_equal(c.fleet.nodes[1].err.code, ERR_IO);
    assert_same(source, c.report.nodes[0].paths[0]);
    assert_same(source, c.report.nodes[2].paths[0]);
}

TEST_IN_SCRATCH(a_node_that_is_left_out_is_left_alone)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "source");
    make_tree(source);
    struct stage_item item = {
        .kind = STAGE_FOLDER, .source = source, .target = "data/x", .may_be_shared = true};
    cluster_open(&c, *state, 3);
    c.fleet.nodes[1].is_left_out = true;
    assert_int_equal(stage(&c, &item, 1), 0);
    assert_true(c.report.nodes[0].is_shared && c.report.nodes[2].is_shared);
    c.opts.must_copy = true;
    assert_int_equal(stage(&c, &item, 1), 0);
    assert_same(below(source, "deep/er/big"), below(c.report.nodes[2].paths[0], "deep/er/big"));
    assert_false(fs_exists(below(*state, "n2")));
}

/* An address at which nobody listens: from there on copies are made another way, which is reported. */
TEST_IN_SCRATCH(a_node_without_tcp_gets_copies)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "source");
    struct stage_item item = {.kind = STAGE_FOLDER, .source = source, .target = "data/x"};
    PASSES(fs_mkdir_p(source, ERR));
    write_bytes(below(source, "a"), 100000, 3);
    write_bytes(below(source, "b c"), 200000, 4);
    cluster_open(&c, *state, 3);
    c.specs[1].address = STR_LIT("127.255.255.255"); /* broadcast: connect is refused at once */
    assert_int_equal(stage(&c, &item, 1), 0);
    assert_int_equal(c.report.nodes[0].way, STAGE_CHAIN);
    for (size_t idx = 1; idx < 3; idx++) {
        assert_int_equal(c.report.nodes[idx].way, STAGE_SSH);
        assert_non_null(c.report.nodes[idx].why);
    }
    for (size_t idx = 0; idx < 3; idx++) {
        assert_same(below(source, "a"), below(c.report.nodes[idx].paths[0], "a"));
        assert_same(below(source, "b c"), below(c.report.nodes[idx].paths[0], "b c"));
    }
}

/* Its relay cannot be reached: the same stream goes to its stdin. */
TEST_IN_SCRATCH(a_node_that_nobody_connects_to_is_served_by_ssh)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "tree");
    struct stage_item item = {.kind = STAGE_FOLDER, .source = source, .target = "data/tree"};
    make_tree(source);
    write_bytes(below(source, "huge"), 9u << 20, 9);
    cluster_open(&c, *state, 2);
    c.specs[0].address = STR_LIT("no-such-host.invalid");
    assert_int_equal(stage(&c, &item, 1), 0);
    for (size_t idx = 0; idx < 2; idx++) {
        assert_int_equal(c.report.nodes[idx].way, STAGE_SSH);
        assert_non_null(strstr(c.report.nodes[idx].why, "does not resolve"));
        const char *there = c.report.nodes[idx].paths[0];
        assert_same(below(source, "huge"), below(there, "huge"));
        assert_same(below(source, "deep/file 299"), below(there, "deep/file 299"));
        assert_same(below(source, "empty"), below(there, "empty"));
    }
    assert_int_equal(stage(&c, &item, 1), 0);
    assert_true(c.report.head_bytes == 0);
}

/* The rest of a stream is not sent to a relay that has ended: no more than what it may still have read. */
TEST_IN_SCRATCH(nothing_more_goes_to_a_relay_that_has_ended)
{
    CLEANUP(cluster) struct cluster c;
    const char *source = below(*state, "tree");
    struct stage_item item = {.kind = STAGE_FOLDER, .source = source, .target = "data/tree"};
    PASSES(fs_mkdir_p(source, ERR));
    write_bytes(below(source, "a"), 1000, 3);
    write_bytes(below(source, "huge"), 0, 0);
    assert_int_equal(truncate(below(source, "huge"), 64 << 20), 0);
    cluster_open(&c, *state, 1);
    c.specs[0].address = STR_LIT("no-such-host.invalid");
    PASSES(fs_mkdir_p(below(*state, "n1/data/tree/a/folder"), ERR));
    assert_int_equal(stage(&c, &item, 1), 1);
    assert_non_null(strstr(c.fleet.nodes[0].err.msg, "name a"));
    assert_true(c.report.head_bytes > 0 && c.report.head_bytes < 32 << 20);
}

UNIT_MAIN(node_group_start, scratch_group_end)
