/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-pack: synthetic datasets, and packed shards from their trees. The exit statuses are those of reperf-pack(1). */
#include "base/base.h"

#include <signal.h>

#include "base/log.h"
#include "base/stop.h"
#include "prep/verb.h"

static const struct cmd *const VERBS[] = {&VERB_PACK, &VERB_RECORDS, &VERB_SYNTH, &VERB_VERIFY};

static void print_usage(FILE *out)
{
    fprintf(out, "reperf-pack makes synthetic datasets, and packed shards for training.\n\n"
                 "usage: reperf-pack VERB [options]\n\n");
    for (size_t idx = 0; idx < ARRAY_LEN(VERBS); idx++) {
        fprintf(out, "  %-10s %s\n", VERBS[idx]->name, VERBS[idx]->summary);
    }
    fprintf(out, "\nreperf-pack VERB --help shows the options of a verb.\n");
}

static int run_verb(const struct cmd *verb, int argc, char **argv)
{
    struct err err = {0};
    const struct cmd_ctx ctx = {.clock = clock_system()};
    int status = cmd_call(verb, &ctx, argc, argv, &err);
    if (status >= 0) {
        return status;
    }
    log_line(LOG_ERROR, "%s", err.msg);
    return err.code == ERR_INTERRUPTED && stop_is_asked() ? stop_status()
                                                          : err_exit_status(err.code);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    stop_hold();
    log_set_program("reperf-pack");
    if (argc < 2) {
        print_usage(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("reperf-pack %s\n", REPERF_VERSION);
        return fflush(stdout) == 0 ? 0 : 10;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return fflush(stdout) == 0 ? 0 : 10;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(VERBS); idx++) {
        if (strcmp(VERBS[idx]->name, argv[1]) != 0) {
            continue;
        }
        if (cmd_asks_for_help(argc - 2, argv + 2)) {
            printf("usage: reperf-pack ");
            cmd_print_help(VERBS[idx]);
            return fflush(stdout) == 0 ? 0 : 10;
        }
        return run_verb(VERBS[idx], argc - 2, argv + 2);
    }
    log_line(LOG_ERROR, "unknown verb \"%.100s\"; reperf-pack --help lists them", argv[1]);
    return 2;
}
