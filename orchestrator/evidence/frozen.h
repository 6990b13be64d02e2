/* SPDX-License-Identifier: Apache-2.0 */
/* What a run froze before it began, read back from its evidence folder: the report, the formats with their rules, the plan,
   the run's id, the machine's conditions. Everything that is derived later (series, result.json) follows from this and from
   the raw logs alone, so that replay gives the same bytes years later. */
#pragma once

#include "evidence/discrepancy.h"
#include "judge/verdict.h"
#include "log/format.h"
#include "report/plan.h"

struct frozen_digest {
    struct str name; /* of a program, or of a file below the folder */
    struct str sha256;
};

struct frozen {
    const char *folder; /* the evidence folder; borrowed */
    struct str run_id;
    struct str version; /* of the program that froze it; ptr NULL: not stated */
    struct str report_sha256;
    /* manifest/vocabulary.json, or the program's own where an archive has none. */
    const struct vocabulary *vocabulary;
    struct report report;
    struct plan plan;
    struct inventory inventory; /* of manifest/inventory.json; this machine where there is none */
    struct format_set formats;  /* frozen_release gives its patterns back */
    struct condition *machine;  /* of environment/local.json */
    size_t n_machine;
    struct frozen_digest *programs; /* of lock/lock.json */
    size_t n_programs;
    /* The files below manifest/, the rules among them, and environment/local.json: by the lock (none: not stated), and as they
       are. */
    struct frozen_digest *locked, *files;
    size_t n_locked;
    size_t n_files;
};

/* ERR_INTEGRITY where the plan was made for another report than the frozen one. */
MUST_CHECK int frozen_load(struct arena *arena, const char *folder, struct frozen *ret_frozen,
                           struct err *err);
/* How far from a published number, or ratio, is still it, as a share. */
static inline double frozen_tolerance(const struct frozen *frozen)
{
    return frozen->plan.tolerance > 0 ? frozen->plan.tolerance : REPRODUCED_REL_MAX;
}
/* Reads them again once the nodes were examined. */
MUST_CHECK int frozen_load_machine(struct arena *arena, struct frozen *frozen, struct err *err);
void frozen_release(struct frozen *frozen);
CLEANUP_BY(frozen, struct frozen, frozen_release);

/* Digests of the files that the run froze before its lock. */
MUST_CHECK int frozen_load_files(struct arena *arena, struct frozen *frozen, struct err *err);
/* lock/lock.json: run id, programs by version and digest, every frozen file (the rules among them) by digest, pins of the
   stacks that are run. */
void frozen_encode_lock(const struct frozen *frozen, struct strbuf *out);

/* Checks that its parts belong to one run: the plan has the report's requested cases, each with rule, ranks and conditions as in
   the report, and the lock follows from both. ERR_INTEGRITY; what the lock lacks that today's has is added to discrepancies. */
MUST_CHECK int frozen_check(struct arena *arena, const struct frozen *frozen,
                            struct discrepancies *discrepancies, struct err *err);
