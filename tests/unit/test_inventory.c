/* SPDX-License-Identifier: Apache-2.0 */
/* Inventories: what a file may contain, what is refused and where, parts of one, and what --nodes takes (load/load_inventory). */
#include "unit.h"

#include "base/fs.h"
#include "load/load_inventory.h"
#include "report/inventory.h"
#include "scratch.h"

#define NODE                                                                                       \
    "{\"name\": \"n[1-2]\", \"address\": \"10.0.0.[8-9]\", \"port\": null, \"user\": null, "       \
    "\"gpus\": 8, \"fast_address\": null, \"work_folder\": null, \"groups\": [\"a\"]}"

static int decode(struct arena *arena, const char *text, struct inventory *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(str_of(text), "t", &doc, err) < 0) {
        return -1;
    }
    root = json_root(&doc);
    return inventory_decode(&root, arena, ret, err);
}

static const char *document(struct arena *arena, const char *more, const char *nodes)
{
    return arena_printf(arena,
                        "{\"schema_version\": 1, \"id\": \"x\", \"title\": \"t\", \"remote\": "
                        "\"ssh\", \"runtime\": \"podman\", %s\"nodes\": [%s], \"source\": null}",
                        more, nodes);
}

TEST(patterns_stand_for_nodes)
{
    struct inventory inventory;
    PASSES(
        decode(ARENA,
               document(ARENA,
                        "\"launcher\": \"mpirun\", \"registry\": \"10.0.0.1:5000/a\", "
                        "\"head_address\": \"10.0.0.1\", \"shared_folder\": \"/nfs/x\", "
                        "\"login\": \"m\", ",
                        NODE ", {\"name\": \"m\", \"address\": \"m.example\", \"port\": 2222, "
                             "\"user\": \"ops\", \"gpus\": 0, \"fast_address\": \"192.168.0.3\", "
                             "\"work_folder\": \"/scratch/w\", \"groups\": []}"),
               &inventory, ERR));
    assert_int_equal(inventory.n_nodes, 3);
    assert_int_equal(inventory.runtime, RUNTIME_PODMAN);
    assert_int_equal(inventory.launcher, LAUNCHER_MPIRUN);
    assert_string_equal(inventory.registry.ptr, "10.0.0.1:5000/a");
    assert_string_equal(inventory.shared_folder.ptr, "/nfs/x");
    assert_string_equal(inventory.login.ptr, "m");
    assert_string_equal(inventory.nodes[1].name.ptr, "n2");
    assert_string_equal(inventory.nodes[1].address.ptr, "10.0.0.9");
    assert_int_equal(inventory.nodes[1].port, 0);
    assert_int_equal(inventory.nodes[1].gpus, 8);
    assert_null(inventory.nodes[1].user.ptr);
    assert_string_equal(inventory_fast_address(&inventory.nodes[1]).ptr, "10.0.0.9");
    assert_string_equal(inventory_fast_address(&inventory.nodes[2]).ptr, "192.168.0.3");
    assert_int_equal(inventory.nodes[2].port, 2222);
}

TEST(written_and_read_again_it_is_the_same)
{
    CLEANUP(strbuf) struct strbuf first;
    strbuf_init(&first, 1 << 20);
    CLEANUP(strbuf) struct strbuf second;
    strbuf_init(&second, 1 << 20);
    struct inventory inventory;
    PASSES(decode(ARENA, document(ARENA, "\"registry\": \"r:1\", ", NODE), &inventory, ERR));
    inventory_encode(&inventory, &first);
    PASSES(decode(ARENA, first.ptr, &inventory, ERR));
    inventory_encode(&inventory, &second);
    assert_string_equal(first.ptr, second.ptr);
    assert_int_equal(inventory.n_nodes, 2);
    assert_non_null(strstr(first.ptr, "\"name\": \"n2\""));
}

#define NODE_ROW(name, address, rest)                                                              \
    "{\"name\": " name ", \"address\": " address ", \"port\": null, \"user\": null, \"gpus\": 1, " \
    "\"fast_address\": null, \"work_folder\": null, \"groups\": []" rest "}"

TEST(what_is_refused_says_where)
{
    static const struct {
        const char *more, *nodes, *expected;
    } ROWS[] = {
        {"", "", "t:$.nodes: expected at least 1 items"},
        {"\"colour\": 1, ", NODE, "colour"},
        {"\"launcher\": \"pbs\", ", NODE, "launcher"},
        {"\"registry\": \"nohost\", ", NODE, "registry: expected HOST:PORT"},
        {"\"registry\": \"h:99999\", ", NODE, "registry: expected HOST:PORT"},
        {"\"registry\": \"h:5000/\", ", NODE, "registry: expected HOST:PORT"},
        {"\"registry\": \"http://h:5000\", ", NODE, "registry: expected HOST:PORT"},
        {"\"head_address\": \"a b\", ", NODE, "head_address: expected a host name"},
        {"\"shared_folder\": \"nfs\", ", NODE, "shared_folder: expected an absolute path"},
        {"\"shared_folder\": \"/a/../etc\", ", NODE, "shared_folder: expected an absolute path"},
        {"\"login\": \"other\", ", NODE, "login: expected the name of a node, found \"other\""},
        {"", NODE ", " NODE, "nodes[1]: name: \"n1\" occurs twice"},
        {"", NODE_ROW("\"n[1-3]\"", "\"a[1-2]\"", ""),
         "address: expected as many as there are names (3), found 2"},
        {"", NODE_ROW("\"n[1-3]\"", "\"a\"", ""),
         "expected as many as there are names (3), found 1"},
        {"", NODE_ROW("\"n[1-\"", "\"a\"", ""), "nodes[0]: name: node set \"n[1-\", byte 2"},
        {"", NODE_ROW("\"n[1-5000]\"", "\"a\"", ""), "more than 4096 names"},
        {"", NODE_ROW("\"a;b\"", "\"a\"", ""), "expected a host name"},
        {"", NODE_ROW("\"a\"", "\"-oProxyCommand=x\"", ""), "address: node set"},
        {"", NODE_ROW("\"\"", "\"a\"", ""), "name: node set \"\", byte 1: expected a host name"},
        {"", NODE_ROW("\"n[1-4/3]\"", "\"a,b\"", ""),
         "name: node set \"n[1-4/3]\", byte 6: \"/\" is"},
        {"", NODE_ROW("\"a\"", "\"a,!b\"", ""), "address: node set \"a,!b\", byte 3: \"!\" is not"},
        {"", NODE_ROW("1", "\"a\"", ""), "nodes[0].name: expected"},
        {"", NODE_ROW("\"a\"", "\"a\"", ", \"extra\": 1"), "extra"},
        {"", "{\"name\": \"a\"}", "nodes[0]"},
        {"", "[]", "nodes[0]"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct inventory inventory = {0};
        struct err err = {0};
        int result =
            decode(ARENA, document(ARENA, ROWS[idx].more, ROWS[idx].nodes), &inventory, &err);
        if (result == 0 || err.code != ERR_MANIFEST || !strstr(err.msg, ROWS[idx].expected)) {
            fail_msg("row %zu: expected ... %s ..., found %s", idx, ROWS[idx].expected, err.msg);
        }
    }
}

TEST(one_field_of_a_node)
{
    static const char *const ROWS[][3] = {
        {"\"port\": null", "\"port\": 0", "port"},
        {"\"port\": null", "\"port\": 65536", "port"},
        {"\"user\": null", "\"user\": \"a b\"", "user: expected a user name"},
        {"\"user\": null", "\"user\": \"-l\"", "user: expected a user name"},
        {"\"gpus\": 8", "\"gpus\": -1", "gpus"},
        {"\"gpus\": 8", "\"gpus\": 1025", "gpus"},
        {"\"work_folder\": null", "\"work_folder\": \"relative\"", "work_folder: expected"},
        {"\"work_folder\": null", "\"work_folder\": \"/\"", "work_folder: expected"},
        {"\"work_folder\": null", "\"work_folder\": \"/a b\"", "work_folder: expected"},
        {"\"fast_address\": null", "\"fast_address\": \"10.1.0.1\"", "(2), found 1"},
        {"[\"a\"]", "[\"A B\"]", "groups"},
        {"[\"a\"]", "null", "groups"},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct str node = STR_LIT(NODE);
        int64_t at = str_find(node, str_of(ROWS[idx][0]));
        size_t len = strlen(ROWS[idx][0]);
        struct inventory inventory = {0};
        struct err err = {0};
        assert_true(at >= 0);
        const char *changed = arena_printf(ARENA, "%.*s%s%s", (int)at, node.ptr, ROWS[idx][1],
                                           node.ptr + (size_t)at + len);
        int result = decode(ARENA, document(ARENA, "", changed), &inventory, &err);
        if (result == 0 || err.code != ERR_MANIFEST || !strstr(err.msg, ROWS[idx][2])) {
            fail_msg("row %zu: expected ... %s ..., found %s", idx, ROWS[idx][2], err.msg);
        }
    }
}

TEST(a_local_one_has_one_node)
{
    struct inventory inventory;
    FAILS(decode(ARENA,
                 "{\"schema_version\": 1, \"id\": \"x\", \"title\": \"t\", \"remote\": "
                 "\"local\", \"runtime\": \"none\", \"nodes\": [" NODE "], \"source\": null}",
                 &inventory, ERR),
          ERR_ANY);
    SAYS("nodes: expected one, because remote is \"local\", found 2");
}

TEST(parts_keep_the_inventorys_order)
{
    struct inventory inventory;
    struct inventory part;
    size_t nodes[] = {2, 0};
    PASSES(decode(
        ARENA,
        document(ARENA, "\"login\": \"n2\", ", NODE ", " NODE_ROW("\"m[01-02]\"", "\"b,a\"", "")),
        &inventory, ERR));
    assert_string_equal(inventory.nodes[2].address.ptr, "b");
    PASSES(inventory_select(&inventory, ARENA, STR_LIT("m02,n2,m01"), &part, ERR));
    assert_int_equal(part.n_nodes, 3);
    assert_string_equal(part.nodes[0].name.ptr, "n2");
    assert_string_equal(part.nodes[2].name.ptr, "m02");
    PASSES(inventory_select(&inventory, ARENA, STR_LIT("n[1-2]"), &part, ERR));
    assert_int_equal(part.n_nodes, 2);
    assert_string_equal(str_z(ARENA, inventory_fold(ARENA, &inventory, nodes, ARRAY_LEN(nodes))),
                        "m01,n1");
    FAILS(inventory_select(&inventory, ARENA, STR_LIT("n1"), &part, ERR), ERR_USAGE);
    SAYS("leaves out n2, which is its login node");
    FAILS(inventory_select(&inventory, ARENA, STR_LIT("@a"), &part, ERR), ERR_ANY);
    assert_non_null(
        strstr(ERR->msg, "inventory x: node set \"@a\", byte 1: \"@\" is not understood"));
}

/* What --nodes says, as "ID: names", or the error. */
static const char *load(struct arena *arena, const char *root, const char *text)
{
    struct inventory inventory;
    struct err err = {0};
    const char *out;
    if (inventory_load(arena, root, text, &inventory, &err) < 0) {
        assert_true(err.code == ERR_USAGE || err.code == ERR_MANIFEST || err.code == ERR_NOT_FOUND);
        return arena_printf(arena, "%s", err.msg);
    }
    out = arena_printf(arena, "%.*s:", STR_ARG(inventory.id));
    for (size_t idx = 0; idx < inventory.n_nodes; idx++) {
        out = arena_printf(arena, "%s %.*s", out, STR_ARG(inventory.nodes[idx].name));
    }
    return out;
}

TEST_IN_SCRATCH(what_nodes_takes)
{
    const char *root = *state;
    const char *folder = fs_join(ARENA, root, "manifests/inventories");
    const char *path = fs_join(ARENA, folder, "x.json");
    PASSES(fs_mkdir_p(folder, ERR));
    PASSES(fs_write_atomic(path, str_of(document(ARENA, "", NODE)), ERR));
    PASSES(
        fs_write_atomic(fs_join(ARENA, folder, "y.json"), str_of(document(ARENA, "", NODE)), ERR));
    assert_string_equal(load(ARENA, root, "x"), "x: n1 n2");
    assert_string_equal(load(ARENA, root, "x:n2"), "x:n2: n2");
    assert_string_equal(load(ARENA, root, "x:n2,n1"), "x:n[1-2]: n1 n2");
    assert_string_equal(load(ARENA, root, path), "x: n1 n2");
    assert_string_equal(load(ARENA, root, arena_printf(ARENA, "%s:n[1-2]", path)),
                        "x:n[1-2]: n1 n2");
    assert_string_equal(load(ARENA, root, "h2,h1"), "h[1-2]: h2 h1");
    assert_string_equal(load(ARENA, root, "local"), "local: local");
    assert_non_null(strstr(load(ARENA, root, "y"), "expected \"y\" as the file is named"));
    assert_non_null(strstr(load(ARENA, root, "x:n3"), "inventory x has no node \"n3\""));
    assert_non_null(strstr(load(ARENA, root, "z:n1"), "no inventory \"z\" in "));
    assert_non_null(strstr(load(ARENA, root, "a b;c"), "and no list of hosts"));
    assert_non_null(strstr(load(ARENA, root, "x:"), "inventory x: node set \"\", byte 1"));
    assert_non_null(strstr(load(ARENA, root, "x:*!n2"), "byte 1: \"*\" is not understood"));
    assert_non_null(strstr(load(ARENA, root, "h[0-4/2]"), "byte 6: \"/\" is not understood"));
    assert_non_null(strstr(load(ARENA, root, ""), "found nothing"));
    assert_non_null(strstr(load(ARENA, root, "./nothing.json"), "nothing.json"));
}

TEST_IN_SCRATCH(slurms_allocation)
{
    const char *root = *state;
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_GPUS_ON_NODE");
    assert_non_null(strstr(load(ARENA, root, "slurm"), "SLURM_JOB_NODELIST is not set"));
    setenv("SLURM_JOB_NODELIST", "gpu[02,01],r[0-1]n[7-8]", 1);
    assert_string_equal(load(ARENA, root, "slurm"),
                        "gpu[01-02],r0n[7-8],r1n[7-8]: gpu02 gpu01 r0n7 r0n8 r1n7 r1n8");
    setenv("SLURM_GPUS_ON_NODE", "many", 1);
    assert_non_null(strstr(load(ARENA, root, "slurm"), "SLURM_GPUS_ON_NODE"));
    unsetenv("SLURM_GPUS_ON_NODE");
    setenv("SLURM_JOB_NODELIST", "gpu[02", 1);
    assert_non_null(strstr(load(ARENA, root, "slurm"), "SLURM_JOB_NODELIST: node set"));
    unsetenv("SLURM_JOB_NODELIST");
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
