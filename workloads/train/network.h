/* SPDX-License-Identifier: Apache-2.0 */
/* The graph of a run, as built for its device: on a CPU every operation as in the model, on a GPU fused and on several streams. */
#pragma once

#include "graph/graph.h"
#include "train/options.h"

/* As the model has it, for any device. In the arena. */
MUST_CHECK int network_plain(const struct train_opts *opts, struct arena *arena, bool has_ranks,
                             struct graph **ret_graph, struct err *err);

/* In the arena. has_ranks: one rank's part of opts->ranks, else a network on its own. */
MUST_CHECK int network_build(const struct train_opts *opts, struct arena *arena,
                             const struct backend *backend, bool has_ranks,
                             struct graph **ret_graph, struct err *err);
