/* SPDX-License-Identifier: Apache-2.0 */
/* For each line of its input, a node set, one line: "ok FOLDED NAME..." or "error TEXT". An argument "slurm": as Slurm's lists. */
#include "base/base.h"

#include "base/strbuf.h"
#include "report/hostlist.h"

#define LINE_MAX_BYTES (2u << 20)

static void answer(struct str line, enum hostlist_syntax syntax)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct hostlist list;
    struct err err = {0};
    struct str folded;
    if (hostlist_expand(&arena, line, syntax, &list, &err) < 0) {
        printf("error %s\n", err.msg);
        return;
    }
    folded = hostlist_fold(&arena, list.names, list.n);
    printf("ok %.*s", STR_ARG(folded));
    for (size_t idx = 0; idx < list.n; idx++) {
        printf(" %s", list.names[idx].ptr);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    bool is_slurm = argc > 1 && strcmp(argv[1], "slurm") == 0;
    char *line = NULL;
    size_t size = 0;
    ssize_t len;
    while ((len = getline(&line, &size, stdin)) > 0 && (size_t)len < LINE_MAX_BYTES) {
        answer(str_trim((struct str){line, (size_t)len}), is_slurm ? HOSTLIST_SLURM : HOSTLIST_SET);
    }
    free(line);
    return ferror(stdin) || fflush(stdout) != 0;
}
