/* SPDX-License-Identifier: Apache-2.0 */
/* Where a run lives: STATE/runs/RUN/
     evidence/       what is sealed, and nothing else (RUNDIR_FILES)
     journal.jsonl   how far it is (run/journal.h)
     events.jsonl    what happened when (run/events.h)
     jobs/           what the local node keeps of jobs; gone once sealed
     run.lock        held while an orchestrator works on the run; holds its process number
     RUN.tar.zst     the archive; RUN.2.tar.zst the one after, of a run of which repeats were made again: the last one counts
   Paths live in the arena given. */
#pragma once

#include "base/fs.h"
#include "report/run_id.h"

struct rundir {
    struct str id;
    const char *folder;
    const char *evidence;
    const char *journal;
    const char *events;
    const char *jobs;
    const char *lock;
    const char *archive;
    const char *cancel; /* a file whose presence asks the orchestrator to give the run up */
};

void rundir_paths(struct arena *arena, const char *state, struct str id, struct rundir *ret_dir);
/* The same of the run's own folder, wherever it lies; folder is borrowed. */
void rundir_in(struct arena *arena, const char *folder, struct str id, struct rundir *ret_dir);
/* The archive of a run that was sealed n times before, each time with repeats that were then made
   again. */
const char *rundir_archive(struct arena *arena, const char *folder, struct str id, int n);
/* Where a sealed folder goes unless another place is asked for: a run's evidence beside it, under the run's id; FOLDER and FOLDER/ to
   FOLDER.tar.zst. ERR_NOT_FOUND where there is no such folder. */
MUST_CHECK int rundir_archive_of(struct arena *arena, const char *folder, const char **ret_archive,
                                 struct err *err);

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

/* Each kind of file below evidence/: its name, whether it must be there, and what has its digest. Who freezes, collects, derives, seals
   or checks takes it from here. */
enum rundir_kind {
    RUNDIR_REPORT,
    RUNDIR_PLAN,
    RUNDIR_INVENTORY,  /* none: this machine alone */
    RUNDIR_VOCABULARY, /* none: the program's own */
    RUNDIR_FORMAT,
    RUNDIR_OVERLAY, /* a folder of files of ours that a container of the run sees */
    RUNDIR_LOCAL,
    RUNDIR_LOCK,
    RUNDIR_NODE, /* none for a node that could never be asked */
    RUNDIR_COMMANDS,
    RUNDIR_LOG,      /* that metrics are read from */
    RUNDIR_NODE_LOG, /* of the attempt's other jobs */
    RUNDIR_MONITOR,  /* what the node's monitor saw */
    RUNDIR_OUTCOME,
    RUNDIR_LOST, /* of an attempt that does not count, the job that metrics would have been read from */
    RUNDIR_LOST_NODE,
    RUNDIR_LOST_OUTCOME, /* of one that was set aside: it ended, and was made again */
    RUNDIR_SERIES,
    RUNDIR_RESULT,
    RUNDIR_CRATE,
    RUNDIR_SUMS,
    RUNDIR_PROVENANCE,
    RUNDIR_STATEMENT,
    RUNDIR_FILES_N
};

struct rundir_file {
    const char *name; /* %c: case, %r: repeat, %a: attempt, %n: of a node, format or overlay */
    enum { RUNDIR_BY_LOCK, RUNDIR_BY_JOURNAL, RUNDIR_BY_SEAL } by; /* what has its digest */
    bool is_optional;
    /* It is written anew before it counts: until the run is over it need not be as the journal has it. */
    bool is_again;
};
extern const struct rundir_file RUNDIR_FILES[RUNDIR_FILES_N];

struct rundir_of {
    struct str case_id;
    int64_t repeat, attempt;
    struct str name;
};
char *rundir_name(struct arena *arena, enum rundir_kind kind, struct rundir_of of);
static inline char *rundir_of_repeat(struct arena *arena, enum rundir_kind kind, struct str case_id,
                                     int64_t repeat)
{
    return rundir_name(arena, kind, (struct rundir_of){.case_id = case_id, .repeat = repeat});
}
static inline char *rundir_of_name(struct arena *arena, enum rundir_kind kind, struct str name)
{
    return rundir_name(arena, kind, (struct rundir_of){.name = name});
}
/* The kind of a name, by what stands before its first hole; NULL: no run leaves such a file. */
const struct rundir_file *rundir_file(struct str name);

/* fs_write_atomic after making the folders on the way. */
MUST_CHECK int rundir_write(struct arena *arena, const char *folder, const char *name,
                            struct str content, struct err *err);
/* The same, where the file may be there already with that content, from an attempt that was killed: then it is synced alone. */
MUST_CHECK int rundir_settle(struct arena *arena, const char *folder, const char *name,
                             struct str content, struct err *err);
