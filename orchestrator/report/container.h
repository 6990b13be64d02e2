/* SPDX-License-Identifier: Apache-2.0 */
/* How a workload's container is started, as data: read from a report's own `docker run` line, completed by us, turned into an
   engine's argv by fleet/runtime. Strings live in the arena they were read into. Pure. */
#pragma once

#include "base/arena.h"
#include "codec/json_table.h"
#include "report/shell_script.h"

#define CONTAINER_LIST_MAX 64
#define LIMIT_UNLIMITED    (-1)

struct container_mount {
    struct str host;   /* absolute path on the node */
    struct str inside; /* absolute; it is read-only there */
};

struct container_flags {
    int64_t shm_bytes; /* 0: not asked */
    /* Limits inside; 0: not asked, LIMIT_UNLIMITED */
    int64_t memlock_bytes, stack_bytes, n_files, n_processes;
    int64_t memory_bytes; /* of its control group; 0: none */
    bool is_host_net, is_host_ipc, is_host_pid, is_privileged, wants_gpus;
    struct str *devices; /* "/dev/infiniband" */
    size_t n_devices;
    struct str *caps; /* "IPC_LOCK" */
    size_t n_caps;
    struct str *security; /* "seccomp=unconfined" */
    size_t n_security;
    struct str *env; /* "NAME=VALUE", as the line sets them */
    size_t n_env;
    struct str cpuset;  /* "0-3,8"; NULL: all */
    struct str workdir; /* NULL: the image's */
    /* Words of the line that mean anything else: kept, shown, never dropped silently. */
    struct str *not_understood;
    size_t n_not_understood;
};

/* "64g", "512MB", "1GiB", "67108864": all powers of 1024. False, and nothing set, for anything else. */
struct patterns;
bool container_size(struct patterns *patterns, struct str text, int64_t *ret_bytes);
/* Whether a command's first word, with or without a path, is a container engine: the only list of them. */
bool container_is_engine(struct str program);
/* Index of the image among the words of such a command, found by the arity of the options before it; n if there is none. */
size_t container_image_at(const struct shell_word *words, size_t n);
/* Of the first `docker run`, `nvidia-docker run` or `podman run` of the text. ERR_MANIFEST if there is none, for more options
   than the limits allow, or for U+0000. */
MUST_CHECK int container_flags_of_command(struct arena *arena, struct str line,
                                          struct container_flags *ret_flags, struct err *err);
/* Adds what a site's words of `docker run` ask for: its numbers replace, its lists are added. */
MUST_CHECK int container_flags_add(struct arena *arena, const struct str *words, size_t n,
                                   struct container_flags *flags, struct err *err);
#define CONTAINER_FLAGS_N 18
extern const struct json_field CONTAINER_FLAGS_ROWS[CONTAINER_FLAGS_N];

/* Forms of words: nothing that a shell would expand. */
#define CONTAINER_PATH     "^/[^\\x00-\\x20\\x7f$`]*$"
#define CONTAINER_DEVICE   "^/[^\\x00-\\x20\\x7f$`\"\\\\*?[,]*$" /* or HOST:INSIDE[:rwm] */
#define CONTAINER_CAP      "^[A-Za-z_][A-Za-z0-9_]*$"
#define CONTAINER_SECURITY "^(?!-)[^\\x00-\\x20\\x7f$`]+$"
#define CONTAINER_ENV      "^[A-Za-z_][A-Za-z0-9_]*\\+?=[^\\x00-\\x1f\\x7f$`]*$"
#define CONTAINER_CPUSET   "^[0-9]+([-,][0-9]+)*$" /* "0-3,8" */
bool container_is_path(struct str s);
