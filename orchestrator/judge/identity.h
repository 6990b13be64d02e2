/* SPDX-License-Identifier: Apache-2.0 */
/* Does a log show that it is of the row that is judged by it? GPUs, nodes, precision, batch and model as the log states them, and the
   unit of the rule's number, against the row's. Pure. */
#ifndef JUDGE_IDENTITY_H
#define JUDGE_IDENTITY_H

#include "judge/format.h"
#include "report/report.h"

enum identity_fact {
    ID_GPUS,
    ID_NODES,
    ID_PRECISION,
    ID_BATCH,
    ID_MODEL,
    ID_UNIT,
    ID_LOGS,
    IDENTITY_FACTS
};
enum identity_state { ID_PROVEN, ID_UNPROVEN, ID_CONTRADICTED }; /* ascending: the worst counts */

struct identity_item {
    enum identity_state state;
    struct str why; /* of a state other than proven */
    int64_t line;   /* of the log, where it contradicts; 0 not known */
};
struct identity {
    struct identity_item items[IDENTITY_FACTS];
};

enum proof { PROOF_FULL, PROOF_PARTIAL, PROOF_CONTRADICTED };

/* Counts that the run which the rule takes states once (without a rule: the whole log): 0 where it does not. Where it states a product
   and a factor, their quotient. */
struct log_counts {
    int64_t gpus, nodes, batch_per_gpu;
};

/* Names of facts beside the conditions: gpus, nodes, gpus_per_node, precision, model. */
bool identity_is_known(struct str name);
const char *identity_name(enum identity_fact fact);
const char *proof_name(enum proof proof);

struct log_counts identity_counts(const struct format *format, const struct measurement *m,
                                  const struct rule *rule);
/* Whether a fact of this name is one that identity or its counts stand on. */
bool identity_stands_on(struct str name);

/* What a log is checked against: a row of a table, or what a plan says of a run. */
struct identity_row {
    int64_t gpus; /* of a run on a CPU: its ranks */
    int64_t nodes;
    int64_t gpus_per_node;
    int64_t batch_per_gpu; /* 0: not stated */
    int64_t accumulates;   /* batches of a GPU that a step adds up; 0: not stated */
    struct str precision;  /* NULL: not stated */
    struct str model;
    struct str unit; /* NULL: not stated */
};

/* What the log states, or empty; and whether a row's name is that. */
struct str identity_model(const struct measurement *m);
bool identity_is_model(struct str row, struct str stated);
struct identity_row identity_row_of(const struct report_case *c, const struct cell *cell);
/* The row that a log stands for, by what the run states that the rule takes. rule is NULL where no rule gives its number: then the unit is unproven. */
struct identity identity_of(struct arena *arena, const struct format *format,
                            const struct measurement *m, const struct identity_row *row,
                            const struct rule *rule);
struct identity identity_none(struct str why); /* everything is unproven */
/* How many logs the row has against how many the rule asks for: proven where it asks for none. m: the first. */
void identity_count_logs(struct arena *arena, struct identity *identity, const struct rule *rule,
                         const struct measurement *m, size_t n);
/* Of each fact the worse of both. */
void identity_join(struct identity *into, const struct identity *other);
enum proof identity_proof(const struct identity *identity);
/* The first that the log contradicts, or NULL. */
const struct identity_item *identity_contradiction(const struct identity *identity);

#endif
