/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/inventory.h"

#include "base/map.h"
#include "base/vec.h"
#include "codec/json_table.h"
#include "report/hostlist.h"
#include "report/report_decode.h"

#define ID_MAX_BYTES   512
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)
#define USER_MAX_BYTES 32
#define PATH_MAX_BYTES 512
#define GROUPS_MAX     16

const char *const RUNTIME_KIND_NAMES[RUNTIME_KIND_COUNT + 1] = {"none", "docker", "podman",
                                                                "apptainer", "enroot"};
const char *const LAUNCHER_KIND_NAMES[LAUNCHER_KIND_COUNT + 1] = {"ssh", "mpirun", "slurm"};
static const char *const REMOTE_NAMES[] = {"ssh", "local", NULL};

const char *runtime_kind_name(enum runtime_kind kind)
{
    ASSERT(kind < RUNTIME_KIND_COUNT);
    return RUNTIME_KIND_NAMES[kind];
}

const char *runtime_kind_label(enum runtime_kind kind)
{
    return kind == RUNTIME_APPTAINER ? "apptainer (experimental)"
           : kind == RUNTIME_ENROOT  ? "enroot (experimental)"
                                     : runtime_kind_name(kind);
}

const char *launcher_kind_name(enum launcher_kind kind)
{
    ASSERT(kind < LAUNCHER_KIND_COUNT);
    return LAUNCHER_KIND_NAMES[kind];
}

bool runtime_kind_of_name(struct str name, enum runtime_kind *ret_kind)
{
    for (int kind = 0; kind < RUNTIME_KIND_COUNT; kind++) {
        if (str_eq_z(name, RUNTIME_KIND_NAMES[kind])) {
            *ret_kind = (enum runtime_kind)kind;
            return true;
        }
    }
    return false;
}

bool launcher_kind_of_name(struct str name, enum launcher_kind *ret_kind)
{
    for (int kind = 0; kind < LAUNCHER_KIND_COUNT; kind++) {
        if (str_eq_z(name, LAUNCHER_KIND_NAMES[kind])) {
            *ret_kind = (enum launcher_kind)kind;
            return true;
        }
    }
    return false;
}

struct str inventory_fast_address(const struct inventory_node *node)
{
    return node->fast_address.ptr ? node->fast_address : node->address;
}

/* ---- text forms ---- */

static bool is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_user(struct str text)
{
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        if (!(c >= 'a' && c <= 'z') && c != '_' && (idx == 0 || (!is_alnum(c) && c != '-'))) {
            return false;
        }
    }
    return text.len > 0 && text.len <= USER_MAX_BYTES;
}

/* Absolute, nothing that leads upwards, no blank or control character. */
static bool is_folder(struct str text)
{
    struct str rest = text;
    struct str part;
    for (size_t idx = 0; idx < text.len; idx++) {
        if ((uint8_t)text.ptr[idx] <= ' ' || text.ptr[idx] == 0x7f) {
            return false;
        }
    }
    while (str_next(&rest, '/', &part)) {
        if (str_eq_z(part, "..") || str_eq_z(part, ".")) {
            return false;
        }
    }
    return text.len > 1 && text.len <= PATH_MAX_BYTES && text.ptr[0] == '/';
}

/* HOST:PORT[/PREFIX] */
static bool is_registry(struct str text)
{
    struct str rest = text;
    struct str place;
    struct str prefix = STR_EMPTY;
    struct err ignored = {0};
    int64_t port;
    size_t colon;
    if (text.len > PATH_MAX_BYTES || !str_next(&rest, '/', &place)) {
        return false;
    }
    prefix = rest;
    for (colon = place.len; colon > 0 && place.ptr[colon - 1] != ':'; colon--) {
    }
    if (colon == 0 || !hostlist_is_name(str_sub(place, 0, colon - 1)) ||
        str_to_i64(str_sub(place, colon, place.len), 1, 65535, &port, &ignored) < 0) {
        return false;
    }
    for (size_t idx = 0; idx < prefix.len; idx++) {
        char c = prefix.ptr[idx];
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' &&
            c != '-' && c != '/') {
            return false;
        }
    }
    return !prefix.ptr ||
           (prefix.len > 0 && is_alnum(prefix.ptr[0]) && is_alnum(prefix.ptr[prefix.len - 1]));
}

static int check_form(const struct json *at, const char *key, struct str value,
                      bool (*is_right)(struct str), const char *expected, struct err *err)
{
    if (!value.ptr || is_right(value)) {
        return 0;
    }
    return json_fail(at, err, "%s: expected %s, found \"%.*s\"", key, expected,
                     (int)(value.len < 100 ? value.len : 100), value.ptr);
}

#define EXPECTED_HOST   "a host name or address"
#define EXPECTED_FOLDER "an absolute path without blanks, \".\" and \"..\""

/* ---- reading ---- */

struct inventory_text { /* as it stands in the file */
    struct inventory inventory;
    struct str remote, runtime, launcher;
    int64_t version;
};

static int decode_fields(const struct json *root, struct arena *arena, struct inventory_text *text,
                         struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("schema_version", struct inventory_text, version, JSON_REQUIRED, .min = 1, .max = 1),
        ROW("id", struct inventory_text, inventory.id, JSON_REQUIRED),
        ROW("title", struct inventory_text, inventory.title, JSON_REQUIRED),
        ROW("remote", struct inventory_text, remote, JSON_REQUIRED),
        ROW("runtime", struct inventory_text, runtime, JSON_REQUIRED),
        ROW("launcher", struct inventory_text, launcher, JSON_NULLABLE),
        ROW("registry", struct inventory_text, inventory.registry, JSON_NULLABLE),
        ROW("head_address", struct inventory_text, inventory.head_address, JSON_NULLABLE),
        ROW("shared_folder", struct inventory_text, inventory.shared_folder, JSON_NULLABLE),
        ROW("login", struct inventory_text, inventory.login, JSON_NULLABLE),
        ROW_ANY("nodes", JSON_REQUIRED),
        ROW_ANY("source", NULLABLE_FIELD),
    };
    const struct inventory *inventory = &text->inventory;
    if (json_decode(root, arena, FIELDS, ARRAY_LEN(FIELDS), text, err) < 0 ||
        check_line(root, "id", inventory->id, err) < 0 ||
        check_line(root, "title", inventory->title, err) < 0 ||
        check_word(root, "remote", text->remote, REMOTE_NAMES, err) < 0 ||
        check_word(root, "runtime", text->runtime, RUNTIME_KIND_NAMES, err) < 0 ||
        check_word(root, "launcher", text->launcher, LAUNCHER_KIND_NAMES, err) < 0 ||
        check_form(root, "registry", inventory->registry, is_registry,
                   "HOST:PORT or HOST:PORT/NAME", err) < 0 ||
        check_form(root, "head_address", inventory->head_address, hostlist_is_name, EXPECTED_HOST,
                   err) < 0 ||
        check_form(root, "shared_folder", inventory->shared_folder, is_folder, EXPECTED_FOLDER,
                   err) < 0) {
        return -1;
    }
    return 0;
}

struct node_text { /* one row, which stands for as many nodes as its name's pattern expands to */
    struct inventory_node node;
    struct hostlist names, addresses, fast_addresses; /* addresses: none, or as many as names */
};

/* The names that a pattern stands for; a NULL value has none. */
static int expand(const struct json *at, struct arena *arena, const char *key, struct str value,
                  struct hostlist *ret_list, struct err *err)
{
    struct err why = {0};
    *ret_list = (struct hostlist){0};
    if (!value.ptr) {
        return 0;
    }
    return hostlist_expand(arena, value, HOSTLIST_SET, ret_list, &why) == 0
               ? 0
               : json_fail(at, err, "%s: %s", key, why.msg);
}

/* As many as there are names. */
static int check_number(const struct json *at, const char *key, const struct hostlist *list,
                        size_t n_names, struct err *err)
{
    return !list->n || list->n == n_names
               ? 0
               : json_fail(at, err, "%s: expected as many as there are names (%zu), found %zu", key,
                           n_names, list->n);
}

static int decode_row(const struct json *at, struct arena *arena, struct node_text *ret_text,
                      struct err *err)
{
    static const struct json_field FIELDS[] = {
        ROW("name", struct inventory_node, name, JSON_REQUIRED),
        ROW("address", struct inventory_node, address, JSON_REQUIRED),
        ROW("port", struct inventory_node, port, NULLABLE_FIELD, .min = 1, .max = 65535),
        ROW("user", struct inventory_node, user, NULLABLE_FIELD),
        ROW("gpus", struct inventory_node, gpus, JSON_REQUIRED, .max = INVENTORY_GPUS_MAX),
        ROW("fast_address", struct inventory_node, fast_address, NULLABLE_FIELD),
        ROW("work_folder", struct inventory_node, work_folder, NULLABLE_FIELD),
        ROW_ANY("groups", JSON_REQUIRED),
    };
    struct node_text text = {0};
    struct inventory_node *node = &text.node;
    struct json groups;
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), node, err) < 0 ||
        expand(at, arena, "name", node->name, &text.names, err) < 0 ||
        expand(at, arena, "address", node->address, &text.addresses, err) < 0 ||
        check_number(at, "address", &text.addresses, text.names.n, err) < 0 ||
        expand(at, arena, "fast_address", node->fast_address, &text.fast_addresses, err) < 0 ||
        check_number(at, "fast_address", &text.fast_addresses, text.names.n, err) < 0 ||
        check_form(at, "user", node->user, is_user, "a user name", err) < 0 ||
        check_form(at, "work_folder", node->work_folder, is_folder, EXPECTED_FOLDER, err) < 0 ||
        json_member(at, "groups", &groups, err) < 0 ||
        json_str_list(&groups, arena, GROUPS_MAX, &node->groups, &node->n_groups, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < node->n_groups; idx++) {
        if (check_slug(at, "groups", node->groups[idx], err) < 0) {
            return -1;
        }
    }
    *ret_text = text;
    return 0;
}

struct node_rows {
    VEC(struct inventory_node) nodes;
    struct map names;
};

static int add_row(const struct json *at, struct arena *arena, struct node_rows *rows,
                   struct err *err)
{
    struct node_text text;
    if (decode_row(at, arena, &text, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < text.names.n; idx++) {
        struct inventory_node node = text.node;
        node.name = text.names.names[idx];
        node.address = text.addresses.names[idx];
        node.fast_address = text.fast_addresses.n ? text.fast_addresses.names[idx] : STR_EMPTY;
        if (!map_add(&rows->names, node.name, rows)) {
            return json_fail(at, err, "name: \"%.100s\" occurs twice", node.name.ptr);
        }
        if (rows->nodes.n == INVENTORY_NODES_MAX) {
            return json_fail(at, err, "expected at most %d nodes in all", INVENTORY_NODES_MAX);
        }
        VEC_PUSH(&rows->nodes, node);
    }
    return 0;
}

static int decode_rows(const struct json *root, struct arena *arena, struct node_rows *rows,
                       struct err *err)
{
    struct json list;
    struct json item;
    size_t n;
    if (json_member(root, "nodes", &list, err) < 0 ||
        json_expect_array(&list, INVENTORY_NODES_MAX, &n, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&list, &item); more; more = json_next(&item)) {
        if (add_row(&item, arena, rows, err) < 0) {
            return -1;
        }
    }
    return n ? 0 : json_fail(&list, err, "expected at least one node");
}

static int decode_nodes(const struct json *root, struct arena *arena, struct inventory *inventory,
                        struct err *err)
{
    struct node_rows rows = {0};
    int result = decode_rows(root, arena, &rows, err);
    if (result == 0 && inventory->login.ptr && !map_get(&rows.names, inventory->login)) {
        result = json_fail(root, err, "login: expected the name of a node, found \"%.100s\"",
                           inventory->login.ptr);
    }
    if (result == 0) {
        inventory->n_nodes = rows.nodes.n;
        inventory->nodes = arena_array(arena, struct inventory_node, rows.nodes.n);
        memcpy(inventory->nodes, rows.nodes.items, rows.nodes.n * sizeof(*inventory->nodes));
    }
    VEC_RELEASE(&rows.nodes);
    map_release(&rows.names);
    return result;
}

int inventory_decode(const struct json *root, struct arena *arena, struct inventory *ret_inventory,
                     struct err *err)
{
    struct inventory_text text = {.launcher = STR_LIT("ssh")};
    struct inventory *inventory = &text.inventory;
    if (decode_fields(root, arena, &text, err) < 0 ||
        decode_nodes(root, arena, inventory, err) < 0) {
        return -1;
    }
    inventory->is_local = str_eq_z(text.remote, "local");
    (void)runtime_kind_of_name(text.runtime, &inventory->runtime);
    (void)launcher_kind_of_name(text.launcher, &inventory->launcher);
    if (inventory->is_local && inventory->n_nodes != 1) {
        return json_fail(root, err, "nodes: expected one, because remote is \"local\", found %zu",
                         inventory->n_nodes);
    }
    *ret_inventory = *inventory;
    return 0;
}

/* ---- writing ---- */

static void encode_node(struct json_out *out, const struct inventory_node *node)
{
    jw_object(out, NULL);
    jw_str(out, "name", node->name);
    jw_str(out, "address", node->address);
    if (node->port) {
        jw_i64(out, "port", node->port);
    } else {
        jw_null(out, "port");
    }
    jw_str(out, "user", node->user);
    jw_i64(out, "gpus", node->gpus);
    jw_str(out, "fast_address", node->fast_address);
    jw_str(out, "work_folder", node->work_folder);
    jw_array(out, "groups");
    for (size_t idx = 0; idx < node->n_groups; idx++) {
        jw_str(out, NULL, node->groups[idx]);
    }
    jw_end_array(out);
    jw_end_object(out);
}

void inventory_encode(const struct inventory *inventory, struct strbuf *out_text)
{
    struct json_out out;
    jw_begin(&out, out_text, false);
    jw_object(&out, NULL);
    jw_i64(&out, "schema_version", 1);
    jw_str(&out, "id", inventory->id);
    jw_str(&out, "title", inventory->title);
    jw_z(&out, "remote", inventory->is_local ? "local" : "ssh");
    jw_z(&out, "runtime", runtime_kind_name(inventory->runtime));
    jw_z(&out, "launcher", launcher_kind_name(inventory->launcher));
    jw_str(&out, "registry", inventory->registry);
    jw_str(&out, "head_address", inventory->head_address);
    jw_str(&out, "shared_folder", inventory->shared_folder);
    jw_str(&out, "login", inventory->login);
    jw_array(&out, "nodes");
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        encode_node(&out, &inventory->nodes[idx]);
    }
    jw_end_array(&out);
    jw_null(&out, "source");
    jw_end_object(&out);
}

/* ---- nodes chosen ---- */

/* "fe80::1" is an address; a name with one colon was meant as HOST:PORT. */
static bool has_one_colon(struct str name)
{
    int64_t at = str_find(name, STR_LIT(":"));
    return at >= 0 && str_find(str_sub(name, (size_t)at + 1, name.len), STR_LIT(":")) < 0;
}

int inventory_of_hosts(struct arena *arena, struct str nodeset, struct inventory *ret_inventory,
                       struct err *err)
{
    struct hostlist hosts;
    struct inventory inventory = {.title = STR_LIT("no inventory, hosts by name"),
                                  .runtime = RUNTIME_NONE,
                                  .launcher = LAUNCHER_SSH};
    _Static_assert(HOSTLIST_NAMES_MAX == INVENTORY_NODES_MAX, "a set fits an inventory");
    if (hostlist_expand(arena, nodeset, HOSTLIST_SET, &hosts, err) < 0) {
        return -1;
    }
    inventory.nodes = arena_array(arena, struct inventory_node, hosts.n);
    for (size_t idx = 0; idx < hosts.n; idx++) {
        if (has_one_colon(hosts.names[idx])) {
            return err_set(err, ERR_USAGE,
                           "\"%.100s\" is not a host name: put a port and a user into an inventory "
                           "or into ~/.ssh/config",
                           hosts.names[idx].ptr);
        }
        inventory.nodes[idx] =
            (struct inventory_node){.name = hosts.names[idx], .address = hosts.names[idx]};
    }
    inventory.n_nodes = hosts.n;
    inventory.id = str_sub(hostlist_fold(arena, hosts.names, hosts.n), 0, ID_MAX_BYTES);
    *ret_inventory = inventory;
    return 0;
}

int inventory_select(const struct inventory *inventory, struct arena *arena, struct str nodeset,
                     struct inventory *ret_selected, struct err *err)
{
    CLEANUP(map) struct map known = {0};
    CLEANUP(map) struct map wanted = {0};
    struct inventory selected = *inventory;
    struct str id = str_sub(inventory->id, 0, 100);
    struct hostlist list;
    if (hostlist_expand(arena, nodeset, HOSTLIST_SET, &list, err) < 0) {
        return err_wrap(err, "inventory %.*s", STR_ARG(id));
    }
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        (void)map_add(&known, inventory->nodes[idx].name, &known);
    }
    for (size_t idx = 0; idx < list.n; idx++) {
        if (!map_get(&known, list.names[idx])) {
            return err_set(err, ERR_USAGE, "inventory %.*s has no node \"%.*s\"", STR_ARG(id),
                           STR_ARG(str_sub(list.names[idx], 0, 100)));
        }
        (void)map_add(&wanted, list.names[idx], &wanted);
    }
    if (inventory->login.ptr && !map_get(&wanted, inventory->login)) {
        return err_set(err, ERR_USAGE,
                       "inventory %.*s: node set \"%.*s\" leaves out %.*s, which is its login node",
                       STR_ARG(id), STR_ARG(str_sub(nodeset, 0, 100)),
                       STR_ARG(str_sub(inventory->login, 0, 100)));
    }
    selected.nodes = arena_array(arena, struct inventory_node, list.n);
    selected.n_nodes = 0;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        if (map_get(&wanted, inventory->nodes[idx].name)) {
            selected.nodes[selected.n_nodes++] = inventory->nodes[idx];
        }
    }
    ASSERT(selected.n_nodes == list.n);
    *ret_selected = selected;
    return 0;
}

struct str inventory_fold(struct arena *arena, const struct inventory *inventory,
                          const size_t *nodes, size_t n_nodes)
{
    struct str *names = arena_array(arena, struct str, n_nodes + 1);
    for (size_t idx = 0; idx < n_nodes; idx++) {
        names[idx] = inventory->nodes[nodes[idx]].name;
    }
    return hostlist_fold(arena, names, n_nodes);
}
