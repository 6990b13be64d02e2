/* SPDX-License-Identifier: Apache-2.0 */
/* What a run froze before it began, read back from its evidence folder: the report, the formats with their rules, the plan,
   the run's id, the machine's conditions. Everything that is derived later (series, result.json) follows from this and from
   the raw logs alone, so that replay gives the same bytes years later. */
#ifndef EVIDENCE_FROZEN_H
#define EVIDENCE_FROZEN_H

#include "log/format.h"
#include "report/plan.h"

struct frozen_program {
    struct str name;
    struct str sha256;
};

struct frozen {
    const char *folder; /* the evidence folder; borrowed */
    struct str run_id;
    int64_t derivation; /* DERIVATION_FIRST to DERIVATION_NOW */
    struct str report_sha256;
    const struct vocabulary
        *vocabulary; /* of manifest/vocabulary.json; the program's where an archive has none */
    struct report report;
    struct plan plan;
    struct inventory inventory; /* of manifest/inventory.json; this machine where there is none */
    struct format_set formats;  /* frozen_release gives its patterns back */
    struct condition *machine;  /* of environment/local.json */
    size_t n_machine;
    struct frozen_program *programs; /* of lock/lock.json */
    size_t n_programs;
};

/* ERR_INTEGRITY where the plan was made for another report than the frozen one. */
MUST_CHECK int frozen_load(struct arena *arena, const char *folder, struct frozen *ret_frozen,
                           struct err *err);
/* Reads them again once the nodes were examined. */
MUST_CHECK int frozen_load_machine(struct arena *arena, struct frozen *frozen, struct err *err);
void frozen_release(struct frozen *frozen);
static inline void frozen_cleanup(struct frozen *frozen)
{
    frozen_release(frozen);
}

/* lock/lock.json: run id, derivation in force, programs by digest, pins of the stacks that are run. */
void frozen_encode_lock(const struct frozen *frozen, struct strbuf *out);

/* Checks that its parts belong to one run: the plan has the report's requested cases, each with rule, ranks and conditions as in the
   report, and the lock follows from both. ERR_INTEGRITY. */
MUST_CHECK int frozen_check(struct arena *arena, const struct frozen *frozen, struct err *err);

#endif
