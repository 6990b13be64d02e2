/* SPDX-License-Identifier: Apache-2.0 */
/* Container engines on the nodes, behind one interface: the command that starts a workload inside, the one that ends it, and the
   meaning of its end. They are argv arrays, data that runs nothing by itself, so that plan and journal can show them; the
   runner runs them through a node's remote. fleet/node_image brings the images. docker and podman are run in the tests;
   apptainer and enroot are refused: untried. */
#pragma once

#include "fleet/remote.h"
#include "report/container.h"
#include "report/inventory.h"

struct runtime_image {
    struct str name;   /* repository, e.g. "reperf/cpu" */
    struct str digest; /* "sha256:..." of its manifest: the pin */
    /* "sha256:...", how the nodes' engines name it and are told what to run: the digest of its config, or, where docker keeps
       images in containerd, of its manifest. */
    struct str id;
};

struct runtime_job {
    /* The container's name: letters, digits, - _ .; unique, made from run, case, repeat, attempt and node. */
    const char *name;
    const struct runtime_image *image;   /* NULL for runtime none */
    const struct container_flags *flags; /* NULL: none */
    const struct container_mount *mounts;
    size_t n_mounts;
    const char *const *argv; /* inside */
    /* NAME=VALUE, ended by NULL: set inside; wins over flags->env. Values are seen in argv, but for names that sound like a
       secret (TOKEN, SECRET, PASSWORD, KEY, ...): those go through the environment of the engine's command. */
    const char *const *env;
    const char *run_id; /* label: `nodes clean` finds orphans by it */
    bool keeps_cache;   /* RUNTIME_CACHE inside is kept on the node, for all runs */
    /* argv goes to the image's own entrypoint (reports' images prepare their environment there); else argv[0] is the program. */
    bool keeps_entrypoint;
};

/* A volume of that name. */
#define RUNTIME_CACHE_NAME "reperf-cache"
#define RUNTIME_CACHE      "/reperf/cache"

#define RUNTIME_LABEL_RUN "reperf.run" /* on every container: its run's id */
#define RUNTIME_LABEL_JOB "reperf.job" /* and its name */

struct runtime_commands {
    /* Runs in the foreground until the workload ends, with its exit status, and removes the container. The log is the
       workload's, and after a status other than 0 one line of ours for runtime_exit_check. */
    const char *const *argv;
    /* That command's own environment, besides what a node gives anyway (PATH, HOME); ended by NULL. */
    const char *const *env;
    /* An argv that ends and removes the container whatever its state; idempotent; NULL: none is needed. */
    const char *const *cleanup;
};

/* ERR_CONTAINER: the flags ask for what this engine cannot do; nothing that was asked for is silently left out. */
MUST_CHECK int runtime_commands(struct arena *arena, enum runtime_kind kind,
                                const struct runtime_job *job,
                                struct runtime_commands *ret_commands, struct err *err);

/* Whether the log of a job that failed says that its engine was lost while it ran: nothing is known of the workload's end
   then. */
bool runtime_is_lost(enum runtime_kind kind, int exit_status, struct str log_tail);
/* What the end of a job's command means, by its exit status and the last part of its log (some KiB). 0: status 0. ERR_CONTAINER:
   the engine could not start it, lost it, a flag is not in force inside, the image has no such program, or it ran out of memory
   (also where the workload said 0 afterwards: the status is then 137). ERR_WORKLOAD: its own status. */
MUST_CHECK int runtime_exit_check(enum runtime_kind kind, int exit_status, struct str log_tail,
                                  struct err *err);

/* The argv that is run inside instead of argv: a /bin/sh wrapper (bash, dash, busybox; the image must have /bin/sh). It holds
   limits, /dev/shm, memory limit, network, devices and GPUs against the flags and says in one JSON line on stderr what it
   found ({"event":"container","holds":...,"wrong":[...],...}); with is_required a flag that does not hold ends it with status
   125 before the workload begins. It passes TERM, INT and HUP on as TERM, and says so in the log if the kernel killed a
   process for lack of memory. What it cannot see: whether capabilities and security options are in force. */
MUST_CHECK int runtime_inside_check(struct arena *arena, const struct container_flags *flags,
                                    bool is_required, const char *const *argv,
                                    const char *const **ret_argv, struct err *err);
