/* SPDX-License-Identifier: Apache-2.0 */
/* `plan --checklist`: for the person who has the cluster, in the order in which to do it. */
#include "base/base.h"

#include "report/wants.h"
#include "view/plan_out.h"

#define IMAGES_MAX PLAN_NEEDS_MAX
/* Where ranks meet (run/run_nodes.c), and where `nodes doctor` tries. */
#define PORTS "20000 to 29999, and 29500"

struct site { /* the most that any case asks of a node */
    int64_t n_nodes, gpus, shm_bytes, log_bytes, known_bytes;
    bool wants_memlock, has_login;
    const struct plan_step *images[IMAGES_MAX]; /* one a image */
    size_t n_images;
};

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void add_step(struct site *site, const struct plan_step *step)
{
    size_t idx = 0;
    site->n_nodes = most(site->n_nodes, plan_step_nodes(step));
    site->gpus = most(site->gpus, step->gpus_per_node);
    site->shm_bytes = most(site->shm_bytes, step->flags.shm_bytes);
    site->wants_memlock |= step->flags.memlock_bytes == LIMIT_UNLIMITED;
    while (idx < site->n_images && !str_eq(site->images[idx]->image, step->image)) {
        idx++;
    }
    if (step->image.ptr && idx == site->n_images && idx < IMAGES_MAX) {
        site->images[site->n_images++] = step;
    }
}

static struct site site_of(const struct plan *plan)
{
    struct site site = {0};
    for (size_t idx = 0; idx < plan->n_steps; idx++) {
        add_step(&site, &plan->steps[idx]);
    }
    for (size_t idx = 0; idx < plan->n_needs; idx++) {
        const struct plan_need *need = &plan->needs[idx];
        site.known_bytes += need->disk_bytes > 0 ? need->disk_bytes : need->least_disk_bytes;
        site.has_login |= need->needs_login;
    }
    return site;
}

static void print_nodes(const struct plan *plan, const struct site *site,
                        const struct inventory *inventory, struct strbuf *out)
{
    long long n_used =
        plan->is_each_node ? (long long)inventory->n_nodes : (long long)site->n_nodes;
    strbuf_printf(out, "1. nodes: %lld of the %zu of %.*s, %lld GPU%s each\n", n_used,
                  inventory->n_nodes, STR_ARG(inventory->id), (long long)site->gpus,
                  site->gpus == 1 ? "" : "s");
    if (inventory->is_local) {
        return;
    }
    strbuf_add_z(out, "  [ ] a login by ssh, without a question, to each\n");
    for (size_t idx = 0; idx < inventory->n_nodes; idx++) {
        const struct inventory_node *node = &inventory->nodes[idx];
        struct str fast = inventory_fast_address(node);
        strbuf_printf(out, "      %.*s: %.*s%s%.*s\n", STR_ARG(node->name), STR_ARG(node->address),
                      node->fast_address.ptr ? ", ranks meet at " : "",
                      STR_ARG(node->fast_address.ptr ? fast : STR_LIT("")));
    }
    strbuf_add_z(out, "  [ ] ports open between them: " PORTS "\n");
    strbuf_printf(
        out, "  [ ] %s\n",
        site->n_nodes > 1
            ? "addresses by which each reaches the others (fast_address); a host name that "
              "stands for 127.0.1.1 does no harm"
            : "nothing between them: each case runs on one");
}

static void print_machine(struct arena *arena, const struct site *site,
                          const struct inventory *inventory, struct strbuf *out)
{
    strbuf_add_z(out, "2. each node\n");
    for (size_t idx = 0; idx < site->n_images; idx++) {
        struct str cuda = site->images[idx]->image_cuda;
        const char *needed = cuda.ptr ? cuda_needs_driver(cuda) : NULL;
        strbuf_printf(out, "  [ ] driver %s for image %.*s (CUDA %.*s)\n",
                      needed ? arena_printf(arena, "%s or newer", needed) : "not known",
                      STR_ARG(site->images[idx]->image),
                      STR_ARG(cuda.ptr ? cuda : STR_LIT("not stated")));
    }
    if (inventory->runtime != RUNTIME_NONE) {
        strbuf_printf(out, "  [ ] %s%s\n", runtime_kind_label(inventory->runtime),
                      site->gpus ? ", and NVIDIA's container toolkit" : "");
    }
    if (site->shm_bytes) {
        strbuf_printf(out, "  [ ] %.0f GB of memory for a container's /dev/shm\n",
                      (double)site->shm_bytes / (double)(1 << 30));
    }
    if (site->wants_memlock) {
        strbuf_add_z(out, "  [ ] dockerd with LimitMEMLOCK=infinity\n");
    }
    for (size_t idx = 0; idx < inventory->n_devices; idx++) {
        strbuf_printf(out, "  [ ] %.*s\n", STR_ARG(inventory->devices[idx]));
    }
    if (site->known_bytes) {
        strbuf_printf(
            out,
            "  [ ] disk: %.0f GB of images and data whose size is stated, and room for the rest",
            (double)site->known_bytes / 1e9);
    } else {
        strbuf_add_z(out, "  [ ] disk: room for images and data, none of whose sizes is stated");
    }
    strbuf_add_char(out, '\n');
}

/* The smoke profile has no rehearsal. */
static void print_orders(const struct plan *plan, const struct plan_orders *orders,
                         struct strbuf *out)
{
    strbuf_printf(out, "4. look before you run\n  [ ] $ %.*s\n", STR_ARG(orders->doctor));
    if (plan->profile == PROFILE_FULL && !plan->is_rehearsal && plan->n_steps) {
        strbuf_printf(out, "  [ ] $ %.*s --rehearse\n", STR_ARG(orders->run));
    }
    strbuf_printf(out, "5. run\n  [ ] $ reperf keygen reperf.key\n  [ ] $ %.*s --key reperf.key\n",
                  STR_ARG(orders->run));
}

void plan_out_checklist(const struct plan *plan, const struct inventory *inventory,
                        const struct plan_orders *orders, struct strbuf *out)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct site site = site_of(plan);
    strbuf_printf(out, "%.*s on %.*s: what must hold, in the order in which to see to it\n\n",
                  STR_ARG(plan->report), STR_ARG(plan->inventory));
    print_nodes(plan, &site, inventory, out);
    print_machine(&arena, &site, inventory, out);
    strbuf_add_z(out, "3. images, code and data, once each\n");
    plan_out_todos(plan, out);
    if (site.has_login) {
        strbuf_add_z(out, "  [ ] an account where data is for registered users only\n");
    }
    print_orders(plan, orders, out);
    plan_out_time(plan, out);
    strbuf_add_z(out,
                 "\nchecked without a GPU: every command, option, path and launcher of the "
                 "published frameworks, up to the first call of a device (make test-dress)\n"
                 "what only a GPU can show: that the driver runs the images; that NCCL finds the "
                 "fast network and its transport; that a batch fits its memory; the numbers\n");
}
