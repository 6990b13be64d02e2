/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a log proves that it belongs to the row that is judged by it: compares GPUs, nodes, precision, batch and model as the
   log states them, the unit of the rule's number, and the words of machine and site in the log's path, with the row's. Pure. */
#pragma once

#include "judge/rule.h"
#include "report/report.h"

enum identity_fact {
    ID_GPUS,
    ID_NODES,
    ID_PRECISION,
    ID_BATCH,
    ID_MODEL,
    ID_UNIT,
    ID_MACHINE,
    ID_LOGS,
    IDENTITY_FACTS
};
enum identity_state { ID_PROVEN, ID_UNPROVEN, ID_CONTRADICTED }; /* ascending: the worst counts */

struct identity_item {
    enum identity_state state;
    struct str why; /* why it is not proven */
    int64_t line;   /* the line of the log that contradicts; 0: not known */
};
struct identity {
    struct identity_item items[IDENTITY_FACTS];
};

enum proof { PROOF_FULL, PROOF_PARTIAL, PROOF_CONTRADICTED };

/* Counts that the rule's run states once (without a rule: that the whole log states): 0 if it does not. If it states a product
   and a factor, their quotient. */
struct log_counts {
    int64_t gpus, nodes, batch_per_gpu;
};

extern const char *const IDENTITY_NAMES[IDENTITY_FACTS];
/* The names of the facts in one state, parted by `between`. */
struct str identity_facts(struct arena *arena, const struct identity *identity,
                          enum identity_state state, const char *between);
extern const char *const PROOF_NAMES[3];

struct log_counts identity_counts(const struct format *format, const struct measurement *m,
                                  const struct rule *rule);

/* What the counts that the log states hold against each other: the batch of all devices over that of one is another number of
   them. Empty: nothing. */
struct str identity_counts_doubt(struct arena *arena, const struct format *format,
                                 const struct measurement *m, const struct rule *rule);

/* What a log is checked against: a row of a table, or a plan's statements about a run. */
struct identity_row {
    int64_t gpus; /* of a run on a CPU: its ranks */
    int64_t nodes;
    int64_t gpus_per_node;
    int64_t batch_per_gpu; /* 0: not stated */
    int64_t accumulates;   /* batches per GPU that a step accumulates; 0: not stated */
    struct str precision;  /* NULL: not stated */
    struct str model;
    struct str unit;    /* NULL: not stated */
    struct str machine; /* words that tell its machine or site from others; NULL: none */
    struct str framework;
};

/* The model that the log states, or empty; and whether a row's name means the same. */
struct str identity_model(const struct measurement *m);
bool identity_is_model(struct str row, struct str stated);
struct identity_row identity_row_of(const struct report_case *c, const struct cell *cell);
/* Whether the words of a row's machine and those of a log's path are of one machine: the part of the path that shares a word with
   it speaks of a machine, and differs where both have words that the other lacks. */
struct identity_machine_words {
    struct str machine, model, framework; /* words of the last two say nothing of a machine */
};
enum identity_state identity_machine(const struct identity_machine_words *row, struct str path);
/* Compares a log with its row by what the rule's run states. rule is NULL if no rule gives its number: then the unit is
   unproven. */
struct identity identity_of(struct arena *arena, const struct format *format,
                            const struct measurement *m, const struct identity_row *row,
                            const struct rule *rule);
/* The log's path against the row's machine; identity_of knows no path. */
void identity_see_path(struct arena *arena, struct identity *identity,
                       const struct identity_row *row, struct str path);
struct identity identity_none(struct str why); /* everything is unproven */
/* Compares the number of the row's logs with that the rule asks for: proven if it asks for none. m: the first. */
void identity_count_logs(struct arena *arena, struct identity *identity, const struct rule *rule,
                         const struct measurement *m, size_t n);
/* The worse of both for each fact. */
void identity_join(struct identity *into, const struct identity *other);
enum proof identity_proof(const struct identity *identity);
/* The first fact that the log contradicts, or NULL. */
const struct identity_item *identity_contradiction(const struct identity *identity);

/* Whether a log's fact contradicts what is stated; never for names whose texts cannot be compared. */
bool fact_contradicts(struct str name, struct str stated, struct str fact);
