/* SPDX-License-Identifier: Apache-2.0 */
/* A published report as data (manifests/reports/ID.json; described in manifests/reports/README.md, schema in manifests/schema).
   Everything lives in the arena it was decoded into. A struct str with ptr NULL is a null: not stated by its authors. */
#pragma once

#include "codec/json_table.h"
#include "report/recipe.h"

#define REPORTS_MAX      256
#define CASES_MAX        4096
#define CELLS_MAX        64  /* a case */
#define LOGS_MAX         64  /* a case */
#define COMMANDS_MAX     256 /* a stack */
#define DERIVE_DEPTH_MAX 8

struct source_ref { /* where a statement was read */
    struct str repository;
    struct str commit;
    struct str path;
    struct str date; /* YYYY-MM-DD */
};
extern const struct json_field SOURCE_ROWS[4]; /* of a struct source_ref */

struct environment { /* of the machines: its conditions are gpu, cpu, os, driver, cuda, ... */
    struct str id;
    struct str title;
    int64_t nodes, gpus_per_node;
    struct conditions conditions;
    struct source_ref source;
};

struct pin_source {         /* a git repository that the launch needs */
    struct str repository;  /* a URL that can be cloned */
    struct str commit;      /* 40 hex digits or NULL */
    struct str ref;         /* branch or tag that was used instead, or NULL */
    struct str printed_url; /* as the report prints it, if different; or NULL */
};

struct stack { /* a framework as this report ran it */
    struct str id;
    struct str framework; /* slug: "paddle", "ngc-tf", "reperf" */
    struct str label;     /* as in the table head: "NGC PyTorch(mmseg)" */
    struct str image;     /* folder under images/, or NULL (no image) */
    struct str image_tag;
    struct str image_digest; /* "sha256:..." or NULL */
    struct str dataset;      /* folder under datasets/ */
    struct pin_source *sources;
    size_t n_sources;
    struct conditions conditions;
    struct condition *env; /* environment variables of the launch, in order */
    size_t n_env;
    struct command *commands;
    size_t n_commands;
    struct recipes smoke; /* none: its cases cannot run under that profile */
    /* None: the report's own commands in its image; only if it needs no code, installs or data. */
    struct recipes full;
};

enum metric {
    METRIC_THROUGHPUT,
    METRIC_RUN_THROUGHPUT,
    METRIC_SPEEDUP,
    METRIC_TIME_TO_TRAIN,
    METRIC_ACCURACY,
    METRIC_OTHER /* of the vocabulary, without special treatment */
};

enum derive_kind { DERIVE_NONE, DERIVE_RATIO, DERIVE_MEAN, DERIVE_MEDIAN };

struct
    also_printed { /* the same quantity, printed elsewhere by the same authors with another value */
    struct str printed;
    struct source_ref source;
};

struct cell {
    struct str id; /* unique in the report: "CASE#throughput" */
    enum metric metric;
    struct str metric_name;
    struct str printed; /* "10715.3", "4202.70": digits matter */
    double published;
    int decimals;
    struct str unit;
    struct str table; /* heading in the report */
    enum derive_kind derive;
    /* Ids of the cells it is derived from: ratio has two (numerator, denominator). */
    struct str *of;
    size_t n_of;
    struct str rule;   /* overrides the case's rule: "FORMAT/NAME"; or NULL */
    struct str format; /* overrides the case's format, or NULL */
    struct also_printed *also;
    size_t n_also;
    struct str footnote; /* what the report says of this number beside it; or NULL */
};

struct not_printed { /* a place of a table where the report prints no number */
    struct str table, row, column;
    struct str printed; /* "-", "OOM" */
    int64_t line;       /* of the report's source */
};

struct factor {        /* published along with the logs */
    double value;      /* 0: none */
    struct str path;   /* below logs_source.path, of the file that holds it */
    struct str sha256; /* of that file, hex */
};

struct report_case {
    struct str id; /* model/framework/precision/nNgG/bsB[/VARIANT] */
    struct str model, framework, precision, variant; /* from the id; variant NULL */
    int64_t nodes, gpus_per_node, gpus,
        batch_per_gpu;                   /* 0 GPUs: CPUs alone; batch 0: not printed */
    struct str stack_id, environment_id; /* as the file names them */
    const struct stack *stack;
    const struct environment *environment; /* NULL for framework reperf */
    struct str group;                      /* cells that one rule must explain together */
    struct str format;                     /* id, or NULL if there is no log */
    struct str rule;                       /* "FORMAT/NAME", or NULL */
    /* The case id that a run of this one is compared with (framework reperf), or NULL. */
    struct str baseline;
    const struct report_case
        *rated;       /* the baseline, else the case itself: whose numbers are published */
    struct str *logs; /* paths below --logs, or empty */
    size_t n_logs;
    int64_t logged_steps;         /* training steps that its published log ran; 0: not known */
    struct conditions conditions; /* of this case, over the stack's and the environment's */
    struct factor factor; /* the number by its rule is multiplied by it before the comparison */
    struct str matched;   /* how its logs were found if the report does not name them; or NULL */
    struct cell *cells;
    size_t n_cells;
    /* Names of the nodes that it is fixed to (report/each_node.h); NULL: any. */
    const struct str *on;
    size_t n_on;
};

#define COMMAND_STACK "command" /* the stack, framework and group of a command without a report */

struct report {
    struct str id;
    struct str title;
    struct str path; /* of the manifest, for messages: "manifests/reports/ID.json" */
    /* The user's folder whose reports/ holds it; NULL: the program's, or another. */
    struct str place;
    struct source_ref source;
    /* path: the folder below --logs; commit: of the logs; NULL if there are none. */
    struct source_ref logs_source;
    /* The folder beside manifests/ with its raw logs, which came with it; or NULL. */
    struct str own_logs;
    bool is_unpublished; /* nobody published numbers for its cases: they are only measured */
    /* Nobody stated them: each was chosen because it gives numbers of its table. */
    bool rules_inferred;
    /* The digest of its kept series (load/kept_series.h), hex; NULL: none are kept. */
    struct str series_sha256;
    struct not_printed *not_printed;
    size_t n_not_printed;
    struct environment *environments;
    size_t n_environments;
    struct stack *stacks;
    size_t n_stacks;
    struct report_case *cases;
    size_t n_cases;
};

extern const struct json_document REPORT_DOCUMENT;
MUST_CHECK int report_decode(const struct json *root, struct arena *arena,
                             struct report *ret_report, struct err *err);

extern const struct json_field NOT_PRINTED_ROWS[5];

/* NULL if absent. */
const struct report_case *report_case_find(const struct report *report, struct str id);

/* A log's path in its repository: without the folder below --logs that the report calls the clone. */
struct str report_log_path(const struct report *report, struct str path);
/* Where a row is published: the page of its table, or, where none is and its logs were matched to it, their folder. */
struct source_ref report_row_source(const struct report *report, const struct report_case *c);

/* False where it is not among them. */
bool conditions_find(const struct conditions *list, const char *name, struct str *ret_value);
/* Whether they are columns of one row: model, precision, nodes, GPUs and variant; the batch may differ. */
bool report_same_row(const struct report_case *a, const struct report_case *b);

/* The value in force: the case's, else the stack's, else the environment's; false if none names it. A name with a null
   gives true and a NULL str. */
bool case_condition(const struct report_case *c, const char *name, struct str *ret_value);

/* What is run of it. */
static inline struct str command_text(const struct command *command)
{
    return command->works.ptr ? command->works : command->printed;
}
/* Whether the command is for this case: a stack has at most one of purpose "run" for a case. */
bool command_is_for(const struct command *command, const struct report_case *c);
/* That one, or NULL. */
const struct command *run_command_for(const struct command *commands, size_t n,
                                      const struct report_case *c);

/* What ids are: small letters and digits, with single dots and dashes between them, at most 64. */
bool is_slug(struct str s);
const char *metric_name(enum metric metric);
