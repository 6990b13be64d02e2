/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a run other than its steps': its start, and why it ends early. */
#pragma once

#include "core/mlog.h"
#include "dist/job.h"
#include "train/device.h"
#include "train/feed.h"

struct run;

MUST_CHECK int say_start(const struct run *run, struct err *err);

/* The training itself has failed: prints a fatal line; always -1, with ERR_WORKLOAD. */
MUST_CHECK int say_end(const struct train_opts *opts, const struct mlog *log, int64_t step,
                       const char *what, struct err *err);

/* Data that cannot be read, or a checkpoint that cannot be written, ends the run with a fatal line; a signal without. */
MUST_CHECK int say_failure(const struct train_opts *opts, const struct mlog *log, int64_t step,
                           struct err *err);
