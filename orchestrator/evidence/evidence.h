/* SPDX-License-Identifier: Apache-2.0 */
/* What an archive says about itself: SHA256SUMS, the two signed statements, the RO-Crate description. Texts are functions of the
   files and of result.json alone: equal runs give equal bytes. Checking rebuilds or compares; it never guesses.
   Strings of the structs are borrowed from the arena given. */
#pragma once

#include "codec/digest.h"
#include "codec/json.h"
#include "codec/sign.h"
#include "codec/ustar.h"

#define EVIDENCE_RESULT       "result.json"
#define EVIDENCE_CRATE        "ro-crate-metadata.json"
#define EVIDENCE_SUMS_MAX     (32u << 20)
#define EVIDENCE_CELLS_MAX    100000
#define EVIDENCE_PAYLOAD_TYPE "application/vnd.in-toto+json"

struct evidence_file {
    struct str name;
    uint64_t size_bytes;
    uint8_t sha256[SHA256_BYTES];
};

struct evidence_files {
    struct evidence_file *items; /* in ustar_order */
    size_t n;
    size_t n_max;
};

enum evidence_outcome { EVIDENCE_PASSED, EVIDENCE_WARNED, EVIDENCE_FAILED };

struct evidence_cell {
    struct str name, case_id;
    unsigned verdict; /* its place in the list of verdicts */
    enum evidence_outcome outcome;
};

/* What is read from result.json: "run_id", "report", optionally "finished_at" (RFC 3339), and "cells", whose items have "cell" or
   "case", and "verdict": reproduced passes, slower and failed fail, faster, not_comparable and not_run are warnings. Its other
   keys are ignored here. */
struct evidence_facts {
    struct str run_id;
    struct str report;
    struct str finished_at; /* ptr NULL: not stated */
    /* The check of the journal's record of this result, in hex; ptr NULL: none. */
    struct str journal;
    struct evidence_cell *cells;
    size_t n_cells;
    enum evidence_outcome outcome; /* the worst of the cells */
    const char *counts; /* "1 faster, 2 not_comparable": of those that did not pass; "" */
};
MUST_CHECK int evidence_facts(struct arena *arena, struct str result_json, const char *name,
                              struct evidence_facts *ret_facts, struct err *err);
/* "PASSED", "WARNED", "FAILED", as in-toto's test-result has them. */
extern const char *const EVIDENCE_OUTCOME_NAMES[EVIDENCE_FAILED + 1];

/* Lines of sha256sum(1) for all files that are not closing members. */
void evidence_sums(struct strbuf *buf, const struct evidence_files *files);
/* The text must be exactly that; the error names the first file that is wrong, missing or added. ERR_INTEGRITY. */
MUST_CHECK int evidence_sums_check(struct str text, const struct evidence_files *files,
                                   struct err *err);

enum evidence_kind { EVIDENCE_TEST_RESULT, EVIDENCE_PROVENANCE };
/* The member that holds it. */
const char *evidence_statement_name(enum evidence_kind kind);
/* An in-toto Statement v1 whose subjects are the files (SHA256SUMS among them, the statements not). */
void evidence_statement(struct strbuf *buf, enum evidence_kind kind,
                        const struct evidence_facts *facts, const struct evidence_files *files,
                        struct str version);
/* Exactly the text that a program of some version of reperf makes of these facts and files. The provenance gives facts->journal.
   ERR_INTEGRITY. */
MUST_CHECK int evidence_statement_check(struct arena *arena, struct str payload,
                                        enum evidence_kind kind, struct evidence_facts *facts,
                                        const struct evidence_files *files, struct err *err);

/* A DSSE envelope; key NULL: without signatures. */
MUST_CHECK int evidence_envelope(struct strbuf *buf, struct str payload, const struct sign_key *key,
                                 struct err *err);
struct evidence_envelope {
    struct str payload;
    bool is_signed;
    char key_id[SIGN_KEY_ID_SIZE];
    uint8_t signature[SIGN_BYTES];
};
/* Only the text that evidence_envelope would have made. ERR_INTEGRITY. */
MUST_CHECK int evidence_envelope_read(struct arena *arena, struct str text, const char *name,
                                      struct evidence_envelope *ret_envelope, struct err *err);
/* ERR_INTEGRITY if it is not signed by this key. */
MUST_CHECK int evidence_envelope_check(const struct evidence_envelope *envelope,
                                       const struct sign_key *key, struct err *err);

/* RO-Crate 1.1 with the Workflow Run Crate profile 0.5. files: what the crate describes, bytewise, sizes filled. */
struct evidence_crate_marks { /* what does not follow from the files: who sealed them and when */
    struct str version;
    struct str time; /* RFC 3339 */
};
void evidence_crate(struct strbuf *buf, const struct evidence_facts *facts,
                    const struct evidence_files *files, const struct evidence_crate_marks *marks);
/* Exactly the text but for its marks, which must be of that form; not sealed before the run began. files: all of the archive,
   in any order. ERR_INTEGRITY. */
MUST_CHECK int evidence_crate_check(struct arena *arena, struct str text,
                                    const struct evidence_facts *facts,
                                    const struct evidence_files *files, struct err *err);

/* For the above: letters, digits, ".-+". And that two texts are one, naming the first byte that is not. */
MUST_CHECK int evidence_version_check(struct str version, const char *name, struct err *err);
MUST_CHECK int evidence_same_text(struct str found, struct str wanted, const char *name,
                                  struct err *err);
