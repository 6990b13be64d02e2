/* SPDX-License-Identifier: Apache-2.0 */
/* Inventories: what a file may contain, what is refused and where, parts of one, and what --nodes takes (load/load_inventory). */
#include "unit.h"

#include "base/fs.h"
#include "document.h"
#include "load/load_inventory.h"
#include "report/inventory.h"
#include "scratch.h"

#define NODE                                                                                       \
    "{'name': 'n[1-2]', 'address': '10.0.0.[8-9]', 'port': null, 'user': null, 'gpus': 8, "        \
    "'fast_address': null, 'work_folder': null, 'groups': ['a']}"

static int decode(struct arena *arena, const char *text, struct inventory *ret, struct err *err)
{
    const struct json *root = document(text, NULL, err);
    return root ? inventory_decode(root, arena, ret, err) : -1;
}

static const char *inventory_of(struct arena *arena, const char *more, const char *nodes)
{
    return json_text(arena_printf(arena,
                                  "{'schema_version': 1, 'id': 'x', 'title': 't', 'remote': 'ssh', "
                                  "'runtime': 'podman', %s'nodes': [%s], 'source': null}",
                                  more, nodes));
}

TEST(patterns_stand_for_nodes)
{
    struct inventory inventory;
    PASSES(decode(
        ARENA,
        inventory_of(
            ARENA,
            "'launcher': 'mpirun', 'registry': '10.0.0.1:5000/a', 'head_address': '10.0.0.1', "
            "'shared_folder': '/nfs/x', 'login': 'm', ",
            NODE ", {'name': 'm', 'address': 'm.example', 'port': 2222, 'user': 'ops', 'gpus': 0, "
                 "'fast_address': '192.168.0.3', 'work_folder': '/scratch/w', 'groups': []}"),
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
    CLEANUP(strbuf) struct strbuf first = STRBUF(1 << 20);
    CLEANUP(strbuf) struct strbuf second = STRBUF(1 << 20);
    struct inventory inventory;
    PASSES(decode(ARENA, inventory_of(ARENA, "'registry': 'r:1', ", NODE), &inventory, ERR));
    inventory_encode(&inventory, &first);
    PASSES(decode(ARENA, first.ptr, &inventory, ERR));
    inventory_encode(&inventory, &second);
    assert_string_equal(first.ptr, second.ptr);
    assert_int_equal(inventory.n_nodes, 2);
    assert_non_null(strstr(first.ptr, json_text("'name': 'n2'")));
}

#define NODE_ROW(name, address, rest)                                                              \
    "{'name': " name ", 'address': " address                                                       \
    ", 'port': null, 'user': null, 'gpus': 1, 'fast_address': null, 'work_folder': null, "         \
    "'groups': []" rest "}"

static void is_refused(const char *more, const char *nodes, const char *place)
{
    struct inventory inventory = {0};
    FAILS(decode(ARENA, inventory_of(ARENA, more, nodes), &inventory, ERR), ERR_MANIFEST);
    SAYS(place ? place : "");
}

TEST(what_is_refused_says_where)
{
    static const char *const ROWS[][3] = {
        {"", "", "t"},
        {"'colour': 1, ", NODE, "colour"},
        {"'launcher': 'pbs', ", NODE, "launcher"},
        {"'registry': 'nohost', ", NODE, "registry"},
        {"'registry': 'h:99999', ", NODE, "registry"},
        {"'registry': 'h:5000/', ", NODE, "registry"},
        {"'registry': 'http://h:5000', ", NODE, "registry"},
        {"'head_address': 'a b', ", NODE, "head_address"},
        {"'shared_folder': 'nfs', ", NODE, "shared_folder"},
        {"'shared_folder': '/a/../etc', ", NODE, "shared_folder"},
        {"'login': 'other', ", NODE, "login"},
        {"", NODE ", " NODE, "nodes[1]"},
        {"", NODE_ROW("'n[1-3]'", "'a[1-2]'", ""), "address"},
        {"", NODE_ROW("'n[1-3]'", "'a'", "")},
        {"", NODE_ROW("'n[1-'", "'a'", ""), "nodes[0]"},
        {"", NODE_ROW("'n[1-5000]'", "'a'", "")},
        {"", NODE_ROW("'a;b'", "'a'", "")},
        {"", NODE_ROW("'a'", "'-oProxyCommand=x'", ""), "address"},
        {"", NODE_ROW("''", "'a'", ""), "name"},
        {"", NODE_ROW("'n[1-4/3]'", "'a,b'", ""), "name"},
        {"", NODE_ROW("'a'", "'a,!b'", ""), "address"},
        {"", NODE_ROW("1", "'a'", ""), "nodes[0].name"},
        {"", NODE_ROW("'a'", "'a'", ", 'extra': 1"), "extra"},
        {"", "{'name': 'a'}", "nodes[0]"},
        {"", "[]", "nodes[0]"},
    };
    for (EACH(row, ROWS)) {
        is_refused((*row)[0], (*row)[1], (*row)[2]);
    }
}

TEST(one_field_of_a_node)
{
    static const char *const ROWS[][3] = {
        {"'port': null", "'port': 0", "port"},
        {"'port': null", "'port': 65536", "port"},
        {"'user': null", "'user': 'a b'", "user"},
        {"'user': null", "'user': '-l'", "user"},
        {"'gpus': 8", "'gpus': -1", "gpus"},
        {"'gpus': 8", "'gpus': 1025", "gpus"},
        {"'work_folder': null", "'work_folder': 'relative'", "work_folder"},
        {"'work_folder': null", "'work_folder': '/'", "work_folder"},
        {"'work_folder': null", "'work_folder': '/a b'", "work_folder"},
        {"'fast_address': null", "'fast_address': '10.1.0.1'", "fast_address"},
        {"['a']", "['A B']", "groups"},
        {"['a']", "null", "groups"},
    };
    for (EACH(row, ROWS)) {
        is_refused("", replaced(NODE, (*row)[0], (*row)[1]), (*row)[2]);
    }
}

TEST(a_local_one_has_one_node)
{
    struct inventory inventory;
    FAILS_WITH(
        decode(ARENA,
               "{'schema_version': 1, 'id': 'x', 'title': 't', 'remote': 'local', 'runtime': "
               "'none', 'nodes': [" NODE "], 'source': null}",
               &inventory, ERR),
        ERR_ANY, "nodes");
}

TEST(parts_keep_the_inventorys_order)
{
    struct inventory inventory;
    struct inventory part;
    size_t nodes[] = {2, 0};
    PASSES(decode(
        ARENA,
        inventory_of(ARENA, "'login': 'n2', ", NODE ", " NODE_ROW("'m[01-02]'", "'b,a'", "")),
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
    FAILS(inventory_select(&inventory, ARENA, STR_LIT("@a"), &part, ERR), ERR_USAGE);
}

/* What --nodes says, as "ID: names", or the error's code. */
static const char *load(const char *root, const char *text)
{
    struct inventory inventory;
    struct err err = {0};
    if (inventory_load(ARENA, root, text, &inventory, &err) < 0) {
        return err_code_name(err.code);
    }
    const char *out = arena_printf(ARENA, "%.*s:", STR_ARG(inventory.id));
    for (size_t idx = 0; idx < inventory.n_nodes; idx++) {
        out = arena_printf(ARENA, "%s %.*s", out, STR_ARG(inventory.nodes[idx].name));
    }
    return out;
}

TEST_IN_SCRATCH(what_nodes_takes)
{
    static const char *const ROWS[][2] = {
        {"x", "x: n1 n2"},
        {"x:n2", "x:n2: n2"},
        {"x:n2,n1", "x:n[1-2]: n1 n2"},
        {"h2,h1", "h[1-2]: h2 h1"},
        {"local", "local: local"},
        {"y", "manifest"}, /* named otherwise than its file */
        {"x:n3", "usage"},
        {"z:n1", "usage"},
        {"a b;c", "usage"},
        {"x:", "usage"},
        {"x:*!n2", "usage"},
        {"h[0-4/2]", "usage"},
        {"", "usage"},
        {"./nothing.json", "not_found"},
    };
    const char *root = *state;
    const char *folder = fs_join(ARENA, root, "manifests/inventories");
    const char *path = fs_join(ARENA, folder, "x.json");
    const struct str text = str_of(inventory_of(ARENA, "", NODE));
    PASSES(fs_mkdir_p(folder, ERR));
    PASSES(fs_write_atomic(path, text, ERR));
    PASSES(fs_write_atomic(fs_join(ARENA, folder, "y.json"), text, ERR));
    for (EACH(row, ROWS)) {
        assert_string_equal(load(root, (*row)[0]), (*row)[1]);
    }
    assert_string_equal(load(root, path), "x: n1 n2");
    assert_string_equal(load(root, arena_printf(ARENA, "%s:n[1-2]", path)), "x:n[1-2]: n1 n2");
}

TEST_IN_SCRATCH(slurms_allocation)
{
    const char *root = *state;
    unsetenv("SLURM_JOB_NODELIST");
    unsetenv("SLURM_GPUS_ON_NODE");
    assert_string_equal(load(root, "slurm"), "usage");
    setenv("SLURM_JOB_NODELIST", "gpu[02,01],r[0-1]n[7-8]", 1);
    assert_string_equal(load(root, "slurm"),
                        "gpu[01-02],r0n[7-8],r1n[7-8]: gpu02 gpu01 r0n7 r0n8 r1n7 r1n8");
    setenv("SLURM_GPUS_ON_NODE", "many", 1);
    assert_string_equal(load(root, "slurm"), "usage");
    unsetenv("SLURM_GPUS_ON_NODE");
    setenv("SLURM_JOB_NODELIST", "gpu[02", 1);
    assert_string_equal(load(root, "slurm"), "usage");
    unsetenv("SLURM_JOB_NODELIST");
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
