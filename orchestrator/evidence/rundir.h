/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run lives: STATE/runs/RUN/
     evidence/       what is sealed, and nothing else: manifest/ (report.json, formats/, plan.json, overlay/), lock/lock.json,
                     environment/NODE.json, logs/raw/CASE/repeat-N.log, logs/outcome/CASE/repeat-N.json, series/, result.json
     journal.jsonl   how far it is (run/journal.h)
     events.jsonl    what happened when (run/events.h)
     metrics.prom    OpenMetrics text (run/metrics.c)
     jobs/           what the local node keeps of jobs; gone once sealed
     run.lock        held while an orchestrator works on the run; holds its process number
     RUN.tar.zst     the archive
   Paths live in the arena given. */
#ifndef EVIDENCE_RUNDIR_H
#define EVIDENCE_RUNDIR_H

#include "base/fs.h"
#include "report/run_id.h"

struct rundir {
    struct str id;
    const char *folder;
    const char *evidence;
    const char *journal;
    const char *events;
    const char *metrics;
    const char *jobs;
    const char *lock;
    const char *archive;
    const char *cancel; /* a file whose presence asks the orchestrator to give the run up */
};

void rundir_paths(struct arena *arena, const char *state, struct str id, struct rundir *ret_dir);
/* The same of the run's own folder, wherever it lies; folder is borrowed. */
void rundir_in(struct arena *arena, const char *folder, struct str id, struct rundir *ret_dir);

#define RUN_NAME_MAX 64

/* A run by its name, its id, an unambiguous prefix of the id, or "last". ERR_NOT_FOUND where there is none. */
MUST_CHECK int rundir_find(struct arena *arena, const char *state, const char *name,
                           struct rundir *ret_dir, struct err *err);

/* STATE/names/NAME is a link whose text is the run's id. A name begins with a letter, is of letters, digits, '.', '_' and '-', and
   is no word of ours ("last"); ERR_USAGE where it is not, or another run has it. A run that is gone gives its name back. */
MUST_CHECK int rundir_check_name(struct arena *arena, const char *state, const char *name,
                                 struct err *err);
MUST_CHECK int rundir_give_name(struct arena *arena, const char *state, const char *name,
                                const struct rundir *dir, struct err *err);
/* NULL: it has none. */
const char *rundir_name_of(struct arena *arena, const char *state, struct str id);

/* What an operand stands for: the archive of a run, or its folder if it has none yet; an existing path is itself, but a run's own
   folder means the evidence in it. */
MUST_CHECK int rundir_evidence_of(struct arena *arena, const char *state, const char *operand,
                                  bool wants_archive, const char **ret_path, struct err *err);

/* Ids of the runs on this machine, oldest first. No state folder: none. */
MUST_CHECK int rundir_list(struct arena *arena, const char *state, struct fs_names *ret_ids,
                           struct err *err);

/* The lock of one orchestrator. ERR_USAGE naming the holder's process where it is held. The descriptor is the lock. */
MUST_CHECK int rundir_lock(const struct rundir *dir, int *ret_fd, struct err *err);
/* Process that holds the lock, or 0. */
int64_t rundir_holder(const struct rundir *dir);

/* Below evidence/: "logs/raw/CASE/repeat-N.log" and its like. */
char *rundir_log_name(struct arena *arena, struct str case_id, int64_t repeat);
/* "logs/raw/CASE/repeat-N.NODE.log": of the jobs other than the one that metrics are read from. */
char *rundir_node_log_name(struct arena *arena, struct str case_id, int64_t repeat,
                           struct str node);
char *rundir_commands_name(struct arena *arena, struct str case_id, int64_t repeat);
/* What the node's monitor saw. */
char *rundir_monitor_name(struct arena *arena, struct str case_id, int64_t repeat, struct str node);
/* node NULL: of the job that metrics would have been read from. */
char *rundir_lost_log_name(struct arena *arena, struct str case_id, int64_t repeat, int64_t attempt,
                           struct str node);
char *rundir_outcome_name(struct arena *arena, struct str case_id, int64_t repeat);
char *rundir_series_name(struct arena *arena, struct str case_id, int64_t repeat);

/* Folder with the files of ours that a container of the run sees. */
char *rundir_overlay_name(struct arena *arena, struct str name);

/* fs_write_atomic after making the folders on the way. */
MUST_CHECK int rundir_write(struct arena *arena, const char *folder, const char *name,
                            struct str content, struct err *err);
/* The same, where the file may be there already with that content, from an attempt that was killed: then it is synced alone. */
MUST_CHECK int rundir_settle(struct arena *arena, const char *folder, const char *name,
                             struct str content, struct err *err);
#endif
