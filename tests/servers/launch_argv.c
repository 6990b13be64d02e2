/* SPDX-License-Identifier: Apache-2.0 */
/* The result of launch_make, for scripts that run it: launch_argv LAUNCHER NODES RANKS_PER_NODE NODE_IDX [NAME=VALUE...] -- ARGV...
   prints the environment and then the argv of the job of that node, each word ended by a NUL byte, with an empty one between. */
#include "tests/servers/launch_fixture.h"

static void put(const char *word)
{
    fwrite(word, 1, strlen(word) + 1, stdout);
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    if (argc < 6) {
        return 2;
    }
    struct made made = launch_fixture(&arena, argc, argv);
    size_t node_idx = (size_t)number(argv[4]);
    ASSERT(node_idx < made.n_jobs);
    for (size_t idx = 0; made.jobs[node_idx].job.env[idx]; idx++) {
        put(made.jobs[node_idx].job.env[idx]);
    }
    put("");
    for (size_t idx = 0; made.jobs[node_idx].job.argv[idx]; idx++) {
        put(made.jobs[node_idx].job.argv[idx]);
    }
    return 0;
}
