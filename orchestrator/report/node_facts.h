/* SPDX-License-Identifier: Apache-2.0 */
/* What a node says of itself. reperf-node answers with one line a fact:
       = KEY VALUE
       ? KEY WHY     it is not known
   A tool that is missing gives the second form: a fact that nobody could find out is never a good one. Pure; everything
   lives in the arena. */
#pragma once

#include "base/str.h"

#define FACTS_MAX     8192
#define FACT_KEY_MAX  128
#define FACT_TEXT_MAX 8192
#define FACT_GPUS_MAX 64

struct node_fact {
    struct str key;
    struct str value; /* NULL: not known */
    struct str why;   /* then */
};

struct node_facts {
    struct node_fact *items; /* sorted by key, each once */
    size_t n;
    size_t n_max;
};

/* ERR_NODE for a malformed line or a duplicate key. Control characters in values become blanks. */
MUST_CHECK int facts_parse(struct arena *arena, struct str text, struct node_facts *ret_facts,
                           struct err *err);

/* Adds gpu.count, gpu.N.FIELD, nvidia.driver and nvidia.cuda, read from what nvidia-smi printed (facts smi.*: its CSV with the
   head line). ERR_NODE if it is not such a CSV. */
MUST_CHECK int facts_expand_gpus(struct arena *arena, struct node_facts *facts, struct err *err);

/* NULL if the node did not report it. */
const struct node_fact *facts_find(const struct node_facts *facts, const char *key);
/* The value, or a NULL str if it is not known. */
struct str facts_value(const struct node_facts *facts, const char *key);
/* The same of a key that is printed. */
struct str facts_at(const struct node_facts *facts, const char *fmt, ...) PRINTF_LIKE(2, 3);
/* Why it is not known; NULL str if it is. */
struct str facts_why(const struct node_facts *facts, const char *key);
/* False if it is not known or not a whole number from 0 on. */
bool facts_i64(const struct node_facts *facts, const char *key, int64_t *ret_value);

/* A mask of 1 to 16 hex digits, as the kernel and nvidia-smi print them. */
bool facts_hex(struct str text, uint64_t *ret_mask);

/* Inserts in order; for parsers of facts. ERR_NODE if full. */
MUST_CHECK int facts_add(struct arena *arena, struct node_facts *facts, struct node_fact fact,
                         struct err *err);

/* One value of a line of nvidia-smi's CSV under a head such as "clocks.max.sm [MHz]": key part "clocks.max.sm_mhz", value "1530",
   or why it is not known ("[N/A]", "[Not Supported]", ...). Source: `nvidia-smi --help` and --help-query-gpu (R470 to R610):
   --format=csv prints units in the header and after each value. */
struct smi_cell {
    struct str field; /* "clocks.max.sm" */
    struct str unit;  /* "mhz", "mib", "w", "percent"; NULL: none */
    struct str value; /* NULL: not known */
    struct str why;
};
#define SMI_COLUMNS_MAX 64
/* ERR_NODE if line and header differ in their number of columns, or a value lacks the unit of its header. */
MUST_CHECK int smi_row(struct arena *arena, struct str head, struct str line,
                       struct smi_cell cells[SMI_COLUMNS_MAX], size_t *ret_n, struct err *err);

/* Newest CUDA of a banner "... Driver Version: 535.104.05   CUDA Version: 12.2 |" ("CUDA UMD Version:" from R595 on); NULL:
   none. */
struct str smi_banner_cuda(struct str banner);
