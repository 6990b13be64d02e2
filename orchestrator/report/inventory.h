/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster: manifests/inventories/ID.json, or made from a list of hosts. Everything lives in the arena it was made in.
   The syntax of node sets is report/hostlist.h's. */
#pragma once

#include "base/strbuf.h"
#include "codec/json.h"
#include "report/recipe.h"

#define INVENTORY_NODES_MAX 4096
#define INVENTORY_GPUS_MAX  1024 /* in a node */
#define INVENTORY_LOCAL     "local"
#define SITE_LIST_MAX       32

/* What starts the workload on a node. */
enum runtime_kind {
    RUNTIME_NONE, /* the program itself, no container */
    RUNTIME_DOCKER,
    RUNTIME_PODMAN,
    RUNTIME_APPTAINER,
    RUNTIME_ENROOT,
    RUNTIME_KIND_COUNT,
};

/* What brings a job's processes onto its nodes. */
enum launcher_kind {
    LAUNCHER_SSH,    /* one job a node, started by us */
    LAUNCHER_MPIRUN, /* one job on the first node, which starts the others by a hostfile */
    LAUNCHER_SLURM,  /* sbatch on the login node or this machine; srun inside */
    LAUNCHER_KIND_COUNT,
};

struct inventory_node {
    struct str name;         /* unique */
    struct str address;      /* of its sshd: host name or IP */
    int64_t port;            /* 0: as ~/.ssh/config says, else 22 */
    struct str user;         /* NULL: as ~/.ssh/config says, else the caller's */
    int64_t gpus;            /* a node */
    struct str driver;       /* NVIDIA's, "450.80.02"; NULL: not stated */
    struct str fast_address; /* of its fast network, or NULL: address */
    struct str work_folder; /* absolute; NULL: ${XDG_STATE_HOME:-$HOME/.local/state}/reperf there */
    struct str *groups;
    size_t n_groups;
};

struct inventory {
    struct str id; /* "local", or the list as it was given */
    struct str title;
    bool is_local; /* this machine, without SSH: exactly one node */
    enum runtime_kind runtime;
    enum launcher_kind launcher;
    /* HOST:PORT[/PREFIX] of a registry that the nodes pull from by digest, or NULL. */
    struct str registry;
    struct str head_address;  /* of older inventories; nothing reads it */
    struct str shared_folder; /* absolute, the same on all nodes, or NULL */
    struct str login;         /* name of the node on which sbatch is called; NULL: this machine */
    /* What a site needs of every job; each is a condition of its runs. */
    struct condition *env; /* over the report's own */
    size_t n_env;
    /* Devices of each container with GPUs; those below /dev/infiniband where the case has several nodes. */
    struct str *devices;
    size_t n_devices;
    struct str proxy;         /* "http://HOST:PORT", without a login; NULL: none */
    struct str *engine_flags; /* words of `docker run`, added to each container's */
    size_t n_engine_flags;
    struct inventory_node *nodes;
    size_t n_nodes;
};

/* The value of a condition by which a run states what its site added (site_env, ...); ptr NULL: nothing. */
#define SITE_CONDITIONS_N 4
extern const char *const SITE_CONDITIONS[SITE_CONDITIONS_N + 1]; /* ended by NULL */
struct str inventory_condition(struct arena *arena, const struct inventory *inventory,
                               const char *name);
struct container_flags;
/* Adds what the site gives to a container of a case on so many nodes. With InfiniBand its memory may be locked without a
   limit. */
MUST_CHECK int inventory_add_flags(struct arena *arena, const struct inventory *inventory,
                                   int64_t n_nodes, struct container_flags *flags, struct err *err);
/* The oldest driver that a node states; ptr NULL: none does. */
struct str inventory_driver(const struct inventory *inventory);
#define INFINIBAND_DEVICES "/dev/infiniband"

extern const struct json_document INVENTORY_DOCUMENT;
/* A pattern such as gpu[01-04] as a node's name stands for several nodes; its address must then expand to as many. */
MUST_CHECK int inventory_decode(const struct json *root, struct arena *arena,
                                struct inventory *ret_inventory, struct err *err);
/* The same document again, with patterns expanded: frozen as manifest/inventory.json of a run. */
void inventory_encode(const struct inventory *inventory, struct strbuf *out);

/* This machine alone, without containers. */
struct inventory inventory_local(struct arena *arena);
/* From a node set of host names, without any file: runtime none (docker is not assumed), launcher ssh, 0 GPUs each. */
MUST_CHECK int inventory_of_hosts(struct arena *arena, struct str nodeset,
                                  struct inventory *ret_inventory, struct err *err);

/* Those nodes of the inventory that a node set names ("gpu[01-03],login"), in the inventory's order. ERR_USAGE for a name that
   it does not have. */
MUST_CHECK int inventory_select(const struct inventory *inventory, struct arena *arena,
                                struct str nodeset, struct inventory *ret_selected,
                                struct err *err);

/* "node[1-4]": the names of those nodes, folded. */
struct str inventory_fold(struct arena *arena, const struct inventory *inventory,
                          const size_t *nodes, size_t n_nodes);

/* By kind, ended by NULL. */
extern const char *const RUNTIME_KIND_NAMES[RUNTIME_KIND_COUNT + 1];
extern const char *const LAUNCHER_KIND_NAMES[LAUNCHER_KIND_COUNT + 1];
/* For people; engines that we have never run are marked experimental. */
const char *runtime_kind_label(enum runtime_kind kind);
bool runtime_kind_of_name(struct str name, enum runtime_kind *ret_kind);

/* fast_address, else address. */
struct str inventory_fast_address(const struct inventory_node *node);
