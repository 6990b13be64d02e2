/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "load/load_inventory.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/nearest.h"
#include "codec/json.h"
#include "load/places.h"
#include "report/hostlist.h"

#define KIND            "inventories"
#define INVENTORIES_MAX 4096
#define ID_PART_MAX     256
#define SUFFIX          ".json"

static int read_inventory(struct arena *arena, const char *path, struct inventory *ret_inventory,
                          struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    return json_read_file(path, &doc, err) < 0
               ? -1
               : inventory_decode(&doc.root, arena, ret_inventory, err);
}

/* One of a place: its file is named after its id. */
static int read_stored(struct arena *arena, const struct placed *file,
                       struct inventory *ret_inventory, struct err *err)
{
    if (read_inventory(arena, file->path, ret_inventory, err) < 0) {
        return -1;
    }
    return str_eq_z(ret_inventory->id, file->stem)
               ? 0
               : err_set(err, ERR_MANIFEST,
                         "%s:$.id: expected \"%s\" as the file is named, found \"%.100s\"",
                         file->is_own
                             ? file->path
                             : arena_printf(arena, "manifests/" KIND "/%s" SUFFIX, file->stem),
                         file->stem, ret_inventory->id.ptr);
}

/* Position of the colon between an inventory and a node set: the first one outside brackets, or after ".json"; -1 if none. */
static int64_t find_colon(const char *text)
{
    const char *suffix = strstr(text, SUFFIX ":");
    const char *colon = suffix ? suffix + strlen(SUFFIX) : strpbrk(text, ":[");
    return colon && *colon == ':' ? colon - text : -1;
}

/* A slash after a bracket makes no path: ClusterShell's n[0-10/2] is refused as a node set. */
static bool is_path(struct str text)
{
    int64_t slash = str_find(text, STR_LIT("/"));
    int64_t bracket = str_find(text, STR_LIT("["));
    return (slash >= 0 && (bracket < 0 || slash < bracket)) || str_ends(text, STR_LIT(SUFFIX));
}

static int load_slurm(struct arena *arena, struct inventory *ret_inventory, struct err *err)
{
    const char *list = getenv("SLURM_JOB_NODELIST");
    const char *gpus = getenv("SLURM_GPUS_ON_NODE");
    struct hostlist hosts;
    int64_t n_gpus = 0;
    if (!list || !list[0]) {
        return err_set(err, ERR_USAGE,
                       "nodes \"slurm\": SLURM_JOB_NODELIST is not set: this is no allocation of "
                       "Slurm (salloc or sbatch make one)");
    }
    if (hostlist_expand(arena, str_of(list), &hosts, err) < 0) {
        return err_wrap(err, "SLURM_JOB_NODELIST");
    }
    if (gpus && gpus[0] && str_to_i64(str_of(gpus), 0, INVENTORY_GPUS_MAX, &n_gpus, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "SLURM_GPUS_ON_NODE");
    }
    if (inventory_of_hosts(arena, hostlist_fold(arena, hosts.names, hosts.n), ret_inventory, err) <
        0) {
        return err_wrap(err, "SLURM_JOB_NODELIST");
    }
    for (size_t idx = 0; idx < ret_inventory->n_nodes; idx++) {
        /* In Slurm's order: its first node is the one where the batch script runs. */
        ret_inventory->nodes[idx] = (struct inventory_node){
            .name = hosts.names[idx], .address = hosts.names[idx], .gpus = n_gpus};
    }
    return 0;
}

/* Any word may be a host; a warning says so if it is nearly an inventory's name. */
static void say_near(struct arena *arena, const struct placed_list *files, struct str text)
{
    const char *name = str_z(arena, text);
    struct nearest nearest = nearest_to(name);
    char said[NEAREST_TEXT_MAX];
    for (size_t idx = 0; idx < files->n; idx++) {
        nearest_offer(&nearest, files->items[idx].stem);
    }
    nearest_offer(&nearest, INVENTORY_LOCAL);
    nearest_offer(&nearest, "slurm");
    if (nearest.name && nearest.distance > 0) {
        log_line(LOG_WARN, "no inventory is called %s, it is taken for a host%s", name,
                 nearest_text(&nearest, said));
    }
}

/* An inventory's name, without a node set. False: it is not one, and nothing was tried. */
static bool load_named(struct arena *arena, const char *root, struct str text,
                       struct inventory *ret_inventory, int *ret_result, struct err *err)
{
    const char *name = str_z(arena, text);
    struct placed_list files = {0};
    if (is_path(text)) {
        *ret_result = fs_exists(name) ? read_inventory(arena, name, ret_inventory, err)
                                      : err_set(err, ERR_NOT_FOUND, "%s: no such inventory", name);
        return true;
    }
    if (places_list(arena, root, KIND, INVENTORIES_MAX, &files, err) < 0) {
        *ret_result = -1;
        return true;
    }
    const struct placed *found = placed_find(&files, text);
    if (found) {
        *ret_result = read_stored(arena, found, ret_inventory, err);
        return true;
    }
    if (str_eq_z(text, INVENTORY_LOCAL)) {
        *ret_inventory = inventory_local(arena);
        *ret_result = 0;
        return true;
    }
    if (str_eq_z(text, "slurm")) {
        *ret_result = load_slurm(arena, ret_inventory, err);
        return true;
    }
    say_near(arena, &files, text);
    return false;
}

static int load_part(struct arena *arena, struct str name, struct str nodeset,
                     struct inventory *inventory, struct err *err)
{
    if (inventory_select(inventory, arena, nodeset, inventory, err) < 0) {
        return -1;
    }
    struct str *names = arena_array(arena, struct str, inventory->n_nodes);
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        names[idx] = inventory->nodes[idx].name;
    }
    inventory->id = str_printf(
        arena, "%.*s:%.*s", STR_ARG(is_path(name) ? inventory->id : name),
        STR_ARG(str_sub(hostlist_fold(arena, names, inventory->n_nodes), 0, ID_PART_MAX)));
    return 0;
}

int inventory_load(struct arena *arena, const char *root, const char *text,
                   struct inventory *ret_inventory, struct err *err)
{
    struct str whole = str_of(text);
    int64_t colon = find_colon(text);
    struct str name = colon < 0 ? whole : str_sub(whole, 0, (size_t)colon);
    struct inventory inventory;
    struct places places;
    int result = 0;
    if (whole.len == 0) {
        return err_set(err, ERR_USAGE, "nodes: expected an inventory or host names, found nothing");
    }
    if (places_find(arena, root, &places, err) < 0) {
        return -1;
    }
    if (load_named(arena, root, name, &inventory, &result, err)) {
        if (result < 0 ||
            (colon >= 0 && load_part(arena, name, str_sub(whole, (size_t)colon + 1, whole.len),
                                     &inventory, err) < 0)) {
            return -1;
        }
    } else if (inventory_of_hosts(arena, whole, &inventory, err) < 0) {
        return err_wrap(err, "no inventory \"%.*s\" in %s, and no list of hosts",
                        STR_ARG(str_sub(name, 0, 100)), places_said(arena, &places, KIND));
    }
    *ret_inventory = inventory;
    return 0;
}

int inventory_load_all(struct arena *arena, const char *root, struct inventory_set *ret_set,
                       struct err *err)
{
    struct placed_list files;
    struct inventory_set set = {0};
    if (places_list(arena, root, KIND, INVENTORIES_MAX, &files, err) < 0) {
        return -1;
    }
    set.items = arena_array(arena, struct inventory, files.n + 1);
    for (; set.n < files.n; set.n++) {
        if (read_stored(arena, &files.items[set.n], &set.items[set.n], err) < 0) {
            return -1;
        }
    }
    qsort(set.items, set.n, sizeof(set.items[0]), str_cmp_first);
    *ret_set = set;
    return 0;
}
