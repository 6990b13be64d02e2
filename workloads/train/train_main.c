/* SPDX-License-Identifier: Apache-2.0 */
/* reperf-train: trains a bundled network. Exit statuses as DESIGN.md section 5 has them. */
#include "base/base.h"

#include "core/interrupt.h"
#include "train/train.h"

#include <unistd.h>

/* Threads of GNU OpenMP that wait for the others spin for some 10 ms by default: on a machine with other work a step then takes
   several times as long (README, "Measured"). It reads the setting before main, so the program executes itself again with 500
   turns, about 20 us, unless its caller has set it. If that fails it runs as it is: slower, not wrong. */
static void wait_briefly(char **argv)
{
    char path[4096];
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY")) {
        return;
    }
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len > 0 && setenv("GOMP_SPINCOUNT", "500", 0) == 0) {
        path[len] = '\0';
        execv(path, argv);
    }
}

static int run_mode(const struct train_opts *opts, const stop_flag *stop, struct err *err)
{
    switch (opts->mode) {
    case TRAIN_HELP:
        train_print_help(stdout);
        return 0;
    case TRAIN_VERSION:
        printf("reperf-train %s\n", REPERF_VERSION);
        return 0;
    case TRAIN_DESCRIBE:
        return train_describe(opts, clock_system(), STDOUT_FILENO, err);
    case TRAIN_READ:
        return train_read(opts, clock_system(), STDOUT_FILENO, stop, err);
    case TRAIN_CHECK:
        return train_check(opts, stop, err);
    case TRAIN_MAKE_CHECK:
        return train_make_check(opts, err);
    case TRAIN_RUN:
        break;
    }
    return train_run(opts, clock_system(), STDOUT_FILENO, stop, err);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct train_opts opts;
    wait_briefly(argv);
    const stop_flag *stop = interrupt_catch();
    if (train_options(argc - 1, argv + 1, &opts, &err) < 0 || run_mode(&opts, stop, &err) < 0) {
        fprintf(stderr, "reperf-train: %s\n", err.msg);
        return err.code == ERR_INTERRUPTED ? 128 + (int)*stop : err_exit_status(err.code);
    }
    if (fflush(stdout) != 0) {
        fprintf(stderr, "reperf-train: standard output cannot be written\n");
        return err_exit_status(ERR_DISK);
    }
    return 0;
}
