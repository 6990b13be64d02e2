/* SPDX-License-Identifier: Apache-2.0 */
/* The journal of a run: journal.jsonl, one record a line, synced before what it announces is done. Each record carries its number
   and a digest over itself and the digest of the record before, so a last line cut by a crash is noticed and dropped, and a
   changed or removed line is ERR_INTEGRITY. Each file of the evidence is in the record that announces it, by its digest: resume,
   seal and verify hold the folder against them. The chain reveals edits; an owner who writes the whole of it anew is revealed by
   nothing but a signature that was made before. A journal is written only by the process that holds the run's lock. */
#pragma once

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "codec/json.h"

#define JOURNAL_RECORDS_MAX 1000000
#define JOURNAL_BYTES_MAX   (512u << 20)
#define JOURNAL_CHECK_SIZE  65
#define JOURNAL_FILES_MAX   4096 /* of a record: logs and monitors of all nodes */

enum journal_state {
    J_PLANNED, /* the run: its plan is frozen */
    J_STARTED, /* an attempt of a repeat: its job is about to be started */
    J_LOST,    /* the attempt left no status, or was stopped: it does not count and is made again */
    J_FINISHED,    /* the repeat: its log is collected; outcome, exit_status, log_sha256 */
    J_PARSED,      /* the repeat: verdict, value */
    J_JUDGED,      /* the case: verdict */
    J_RESULT,      /* the run: result.json is written */
    J_SEALED,      /* the run: the archive is written */
    J_INTERRUPTED, /* the run: stopped by a signal; may be resumed */
    J_RESUMED,
    J_CANCELLED, /* the run: stopped for good */
    J_FILES,     /* files that belong to no other record */
    J_SET_ASIDE, /* the repeat: its attempt does not count any more, and it is made again */
    J_STATE_COUNT,
};

struct journal_file {
    struct str name;   /* below the evidence folder */
    struct str sha256; /* "": of a set-aside attempt, the file counts no more */
};

struct journal_record {
    int64_t seq; /* from 1 */
    struct str time;
    enum journal_state state;
    struct str case_id; /* NULL: of the whole run */
    int64_t repeat;     /* from 1; 0: of the whole case or run */
    int64_t attempt;    /* from 1; 0: none */
    struct str outcome; /* of J_FINISHED, J_LOST */
    int64_t exit_status;
    struct str log_sha256;
    int64_t log_bytes;
    struct str verdict; /* of J_PARSED, J_JUDGED, J_RESULT (status) */
    struct str note;
    struct journal_file *files; /* that were written before it */
    size_t n_files;
    struct str check; /* of J_RESULT, once read: in hex, which seal signs */
};

struct journal {
    int fd; /* -1 also after a failure that could not be undone: every append fails then */
    const char *path;       /* borrowed */
    struct clock_src clock; /* of the time in each record */
    /* Of the last record, which is on the disk: */
    int64_t seq;
    uint64_t end_bytes;
    char check[JOURNAL_CHECK_SIZE];
    /* REPERF_CRASH_AFTER, for tests: SIGKILL to ourselves after the record of this number; 0: never. */
    int64_t crash_after;
};

#define JOURNAL_EMPTY ((struct journal){.fd = -1})

struct journal_records {
    struct journal_record *items;
    size_t n;
    uint64_t torn_bytes; /* of a last record that was cut; dropped */
    struct str result;   /* the check of the last result; ptr NULL: none */
};

/* Reads without changing anything: for status, history. No file: no records. */
MUST_CHECK int journal_read(struct arena *arena, const char *path,
                            struct journal_records *ret_records, struct err *err);

/* Every file by its name, a struct journal_file: as the last record has it that names it. */
void journal_files(const struct journal_records *records, struct map *ret_files);

/* Opens for appending (made when absent), cuts a torn last record off, returns what is there. */
MUST_CHECK int journal_open(struct journal *journal, struct arena *arena, const char *path,
                            struct clock_src clock, struct journal_records *ret_records,
                            struct err *err);

/* Fills seq and time, writes, syncs. After a failure the file is cut back to its last record; where
   that fails too, the handle is dead: no later record may follow bytes in an unknown state. */
MUST_CHECK int journal_append(struct journal *journal, const struct journal_record *record,
                              struct err *err);

void journal_release(struct journal *journal);
CLEANUP_BY(journal, struct journal, journal_release);
