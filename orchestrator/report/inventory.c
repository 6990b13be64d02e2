/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/inventory.h"

#include "base/map.h"
#include "base/vec.h"
#include "codec/json_table.h"
#include "report/container.h"
#include "report/hostlist.h"
#include "report/report_decode.h"
#include "report/wants.h"

#define ID_MAX_BYTES   512
#define HOSTS_MAX      65536
#define NULLABLE_FIELD (JSON_REQUIRED | JSON_NULLABLE)
#define PATH_MAX_BYTES 512
#define GROUPS_MAX     16

const char *const RUNTIME_KIND_NAMES[RUNTIME_KIND_COUNT + 1] = {"none", "docker", "podman",
                                                                "apptainer", "enroot"};
const char *const LAUNCHER_KIND_NAMES[LAUNCHER_KIND_COUNT + 1] = {"ssh", "slurm"};
static const char *const REMOTE_NAMES[] = {"ssh", "local"};

const char *runtime_kind_label(enum runtime_kind kind)
{
    return kind == RUNTIME_APPTAINER ? "apptainer (experimental)"
           : kind == RUNTIME_ENROOT  ? "enroot (experimental)"
                                     : RUNTIME_KIND_NAMES[kind];
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

struct str inventory_fast_address(const struct inventory_node *node)
{
    return node->fast_address.ptr ? node->fast_address : node->address;
}

/* ---- what a site adds ---- */

const char *const SITE_CONDITIONS[SITE_CONDITIONS_N + 1] = {"site_devices", "site_engine_flags",
                                                            "site_env", "site_proxy", NULL};

static struct str joined(struct arena *arena, const struct str *items, size_t n)
{
    const char *text = n ? "" : NULL;
    for (size_t idx = 0; idx < n; idx++) {
        text = arena_printf(arena, "%s%s%.*s", text, idx ? " " : "", STR_ARG(items[idx]));
    }
    return str_of(text);
}

struct str inventory_condition(struct arena *arena, const struct inventory *inventory,
                               const char *name)
{
    struct str *env = arena_array(arena, struct str, inventory->n_env + 1);
    for (size_t idx = 0; idx < inventory->n_env; idx++) {
        env[idx] = str_printf(arena, "%.*s=%.*s", STR_ARG(inventory->env[idx].name),
                              STR_ARG(inventory->env[idx].value));
    }
    return strcmp(name, "site_env") == 0     ? joined(arena, env, inventory->n_env)
           : strcmp(name, "site_proxy") == 0 ? inventory->proxy
           : strcmp(name, "site_devices") == 0
               ? joined(arena, inventory->devices, inventory->n_devices)
               : joined(arena, inventory->engine_flags, inventory->n_engine_flags);
}

struct str inventory_driver(const struct inventory *inventory)
{
    struct str oldest = STR_EMPTY;
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        struct str driver = inventory->nodes[idx].driver;
        if (driver.ptr && (!oldest.ptr || version_cmp(driver, oldest) < 0)) {
            oldest = driver;
        }
    }
    return oldest;
}

int inventory_add_flags(struct arena *arena, const struct inventory *inventory, int64_t n_nodes,
                        struct container_flags *flags, struct err *err)
{
    struct str *words = arena_array(arena, struct str, 2 * SITE_LIST_MAX + 1);
    size_t n = 0;
    for (size_t idx = 0; idx < inventory->n_engine_flags; idx++) {
        words[n++] = inventory->engine_flags[idx];
    }
    for (size_t idx = 0; flags->wants_gpus && idx < inventory->n_devices; idx++) {
        struct str device = inventory->devices[idx];
        bool is_infiniband = str_starts(device, STR_LIT(INFINIBAND_DEVICES));
        if (is_infiniband && n_nodes < 2) {
            continue;
        }
        words[n++] = str_printf(arena, "--device=%.*s", STR_ARG(device));
        if (is_infiniband) {
            words[n++] = STR_LIT("--ulimit=memlock=-1");
        }
    }
    if (n == 0) {
        return 0;
    }
    return container_flags_add(arena, words, n, flags, err) < 0 ? err_wrap(err, "the inventory")
                                                                : 0;
}

/* ---- as JSON ---- */

#define PORT                                                                                       \
    "([1-9][0-9]{0,3}|[1-5][0-9]{4}|6([0-4][0-9]{3}|5([0-4][0-9]{2}|5([0-2][0-9]|3[0-5]))))"
#define HOST     "[A-Za-z0-9]([A-Za-z0-9._:-]{0,251}[A-Za-z0-9])?"
#define A_FOLDER "an absolute path without blanks, \".\" and \"..\""
static const struct json_form REGISTRY = {.pattern = "^" HOST ":" PORT
                                                     "(/[a-z0-9]([a-z0-9._/-]*[a-z0-9])?)?$",
                                          .max = PATH_MAX_BYTES,
                                          .what = "HOST:PORT or HOST:PORT/NAME"};
static const struct json_form ADDRESS = {.pattern = "^" HOST "$", .what = "a host name or address"};
static const struct json_form LOGIN = {.pattern = "^" HOST "$"};
static const struct json_form FOLDER = {.pattern = "^(?!.*/\\.\\.?(/|$))/[^\\x00-\\x20\\x7f]+$",
                                        .max = PATH_MAX_BYTES,
                                        .what = A_FOLDER};
static const struct json_form USER = {.pattern = "^[a-z_][a-z0-9_-]{0,31}$", .what = "a user name"};
/* One host, or a node set such as gpu[01-04]. */
static const struct json_form HOSTS = {.pattern = "^[A-Za-z0-9[][][A-Za-z0-9._:, -]*$",
                                       .max = HOSTS_MAX};

static const struct json_form DRIVER = {.pattern = "^[0-9]+(\\.[0-9]+)*$", .max = 32};
static const struct json_form DEVICE = {.pattern = CONTAINER_DEVICE, .what = "an absolute path"};
static const struct json_form PROXY = {.pattern = "^https?://" HOST ":" PORT "$",
                                       .what = "http://HOST:PORT, without a login"};
static const struct json_form WORD = {.pattern = "^[^\\s$`]+$", .max = PATH_MAX_BYTES};

#define NODE struct inventory_node
static const struct json_field NODE_ROWS[] = {
    ROW("name", NODE, name, JSON_REQUIRED, .form = &HOSTS),
    ROW("address", NODE, address, JSON_REQUIRED, .form = &HOSTS),
    ROW("port", NODE, port, NULLABLE_FIELD, .min = 1, .max = 65535),
    ROW("user", NODE, user, NULLABLE_FIELD, .form = &USER),
    ROW("gpus", NODE, gpus, JSON_REQUIRED, .max = INVENTORY_GPUS_MAX),
    ROW("driver", NODE, driver, JSON_OMIT, .form = &DRIVER),
    ROW("fast_address", NODE, fast_address, NULLABLE_FIELD, .form = &HOSTS),
    ROW("work_folder", NODE, work_folder, NULLABLE_FIELD, .form = &FOLDER),
    ROW_STRS("groups", NODE, groups, n_groups, JSON_REQUIRED | JSON_UNIQUE, .max = GROUPS_MAX,
             .form = &FORM_SLUG),
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
    return hostlist_expand(arena, value, ret_list, &why) == 0
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

struct node_rows {
    VEC(struct inventory_node) nodes;
    struct map names;
};

/* One row stands for as many nodes as its name's pattern expands to; there are no addresses, or as many as names. */
static int add_row(const struct json *at, struct arena *arena, const struct inventory_node *row,
                   struct node_rows *rows, struct err *err)
{
    struct hostlist names;
    struct hostlist addresses;
    struct hostlist fast;
    if (expand(at, arena, "name", row->name, &names, err) < 0 ||
        expand(at, arena, "address", row->address, &addresses, err) < 0 ||
        check_number(at, "address", &addresses, names.n, err) < 0 ||
        expand(at, arena, "fast_address", row->fast_address, &fast, err) < 0 ||
        check_number(at, "fast_address", &fast, names.n, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct inventory_node node = *row;
        node.name = names.names[idx];
        node.address = addresses.names[idx];
        node.fast_address = fast.n ? fast.names[idx] : STR_EMPTY;
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

/* The rows become nodes. */
static int expand_rows(const struct json *list, struct arena *arena, void *out, struct err *err)
{
    struct inventory *inventory = out;
    struct node_rows rows = {0};
    struct json item;
    size_t idx = 0;
    int result = 0;
    for (bool more = json_first(list, &item); more && result == 0; more = json_next(&item)) {
        result = add_row(&item, arena, &inventory->nodes[idx++], &rows, err);
    }
    if (result == 0 && inventory->login.ptr && !map_get(&rows.names, inventory->login)) {
        result =
            json_fail(list->parent, err, "login: expected the name of a node, found \"%.100s\"",
                      inventory->login.ptr);
    }
    if (result == 0) {
        inventory->n_nodes = rows.nodes.n;
        inventory->nodes = arena_array(arena, struct inventory_node, rows.nodes.n + 1);
        memcpy(inventory->nodes, rows.nodes.items, rows.nodes.n * sizeof(*inventory->nodes));
    }
    VEC_RELEASE(&rows.nodes);
    map_release(&rows.names);
    return result;
}

static void put_null(struct json_out *out, const char *key, const void *of UNUSED)
{
    jw_null(out, key);
}

static const struct json_field ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("id", struct inventory, id, JSON_REQUIRED, .form = &FORM_LINE),
    ROW("title", struct inventory, title, JSON_REQUIRED, .form = &FORM_LINE),
    ROW_WORD("remote", struct inventory, is_local, REMOTE_NAMES, JSON_REQUIRED),
    ROW_WORD("runtime", struct inventory, runtime, RUNTIME_KIND_NAMES, JSON_REQUIRED),
    ROW_WORD("launcher", struct inventory, launcher, LAUNCHER_KIND_NAMES, JSON_NULLABLE),
    ROW("registry", struct inventory, registry, JSON_NULLABLE, .form = &REGISTRY),
    ROW("head_address", struct inventory, head_address, JSON_NULLABLE, .form = &ADDRESS),
    ROW("shared_folder", struct inventory, shared_folder, JSON_NULLABLE, .form = &FOLDER),
    ROW("login", struct inventory, login, JSON_NULLABLE, .form = &LOGIN),
    ROW_PAIRS("env", struct inventory, env, n_env, JSON_OMIT, .max = SITE_LIST_MAX,
              .schema = "\"propertyNames\": {\"pattern\": \"^[A-Za-z_][A-Za-z0-9_]*$\"}"),
    ROW_STRS("devices", struct inventory, devices, n_devices, JSON_OMIT | JSON_UNIQUE,
             .max = SITE_LIST_MAX, .form = &DEVICE),
    ROW("proxy", struct inventory, proxy, JSON_OMIT, .form = &PROXY),
    ROW_STRS("engine_flags", struct inventory, engine_flags, n_engine_flags, JSON_OMIT,
             .max = SITE_LIST_MAX, .form = &WORD),
    ROW_LIST("nodes", struct inventory, nodes, n_nodes, NODE_ROWS, JSON_REQUIRED, .min = 1,
             .max = INVENTORY_NODES_MAX, .get = expand_rows),
    /* Where it is known from is for people. */
    ROW_INSIDE("source", SOURCE_ROWS, NULLABLE_FIELD | JSON_UNREAD, .put = put_null),
};
const struct json_document INVENTORY_DOCUMENT = {
    JSON_DOCUMENT("inventory.json", "a cluster", ROWS),
    .about = "manifests/inventories/ID.json, for --nodes; the meaning of each key is in "
             "manifests/inventories/README.md",
    .rules = "\"if\": {\"properties\": {\"remote\": {\"const\": \"local\"}}}, \"then\": "
             "{\"properties\": {\"nodes\": {\"maxItems\": 1}}}"};

int inventory_decode(const struct json *root, struct arena *arena, struct inventory *ret_inventory,
                     struct err *err)
{
    struct inventory inventory = {0};
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &inventory, err) < 0) {
        return -1;
    }
    if (inventory.is_local && inventory.n_nodes != 1) {
        return json_fail(root, err, "nodes: expected one, because remote is \"local\", found %zu",
                         inventory.n_nodes);
    }
    *ret_inventory = inventory;
    return 0;
}

void inventory_encode(const struct inventory *inventory, struct strbuf *out_text)
{
    json_encode_document(out_text, ROWS, ARRAY_LEN(ROWS), inventory);
}

/* ---- nodes chosen ---- */

/* "fe80::1" is an address; a name with one colon was meant as HOST:PORT. */
static bool has_one_colon(struct str name)
{
    int64_t at = str_find(name, STR_LIT(":"));
    return at >= 0 && str_find(str_sub(name, (size_t)at + 1, name.len), STR_LIT(":")) < 0;
}

struct inventory inventory_local(struct arena *arena)
{
    struct inventory inventory = {.id = STR_LIT(INVENTORY_LOCAL),
                                  .title = STR_LIT("this machine, no containers"),
                                  .is_local = true,
                                  .nodes = arena_new(arena, struct inventory_node),
                                  .n_nodes = 1};
    inventory.nodes[0] =
        (struct inventory_node){.name = inventory.id, .address = STR_LIT("127.0.0.1")};
    return inventory;
}

int inventory_of_hosts(struct arena *arena, struct str nodeset, struct inventory *ret_inventory,
                       struct err *err)
{
    struct hostlist hosts;
    struct inventory inventory = {.title = STR_LIT("no inventory, hosts by name"),
                                  .runtime = RUNTIME_NONE,
                                  .launcher = LAUNCHER_SSH};
    _Static_assert(HOSTLIST_NAMES_MAX == INVENTORY_NODES_MAX, "a set fits an inventory");
    if (hostlist_expand(arena, nodeset, &hosts, err) < 0) {
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
    if (hostlist_expand(arena, nodeset, &list, err) < 0) {
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
