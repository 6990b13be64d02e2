/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` says about one log, and how it is shown. Private to cmd_measure.c and measure_show.c. */
#ifndef CMD_MEASURE_PARTS_H
#define CMD_MEASURE_PARTS_H

#include "base/fs.h"
#include "base/strbuf.h"
#include "base/table.h"
#include "codec/json.h"
#include "judge/identity.h"
#include "judge/judgement.h"
#include "judge/number.h"
#include "load/measure.h"
#include "log/arithmetic.h"

#define FLUSH_BYTES  (64u << 10)
#define SIDECARS_MAX 8 /* protocols in one log */

struct format_set;
struct proposal; /* draft/propose.h */

/* Figures of a protocol whose lines stand among those of the log's own format. */
struct sidecar {
    const struct format *format;
    enum parse_verdict verdict;
    const struct series *series;
    bool has_value;
    double value;
};

/* What is said about one log. */
struct finding_of_log {
    const char *file;  /* as it is named */
    const char *path;  /* where it is read */
    struct str format; /* NULL: not found */
    bool fits_several; /* why not: several formats read it */
    struct measurement m;
    struct log_counts counts;
    const struct series *series; /* primary, or the rule's; NULL where there is no format */
    enum parse_verdict verdict;
    struct str why;
    bool has_value;
    bool is_proposed; /* its format is, and the user has not named it */
    struct rule_value value;
    struct arithmetic arithmetic;
    struct figure figure; /* without a rule: how the value was made */
    struct str unit;
    const struct rule *rule; /* NULL: the engine's */
    struct sidecar sidecars[SIDECARS_MAX];
    size_t n_sidecars;
    struct proposal *proposal; /* borrowed; NULL: a format was found */
};

/* Why no format reads it, with the next step where its first bytes are those of another kind of file. */
const char *measure_why_unread(const struct log_head *head);
/* Lines that a file holds in another form, as a file of their own; fd -1: none. */
struct converted {
    const char *path;
    int fd;
};
static inline void converted_cleanup(struct converted *c)
{
    fd_cleanup(&c->fd);
}
/* gzip, zstd, xz, bzip2; false: it is not one of them, or damaged. */
bool measure_decompress(struct arena *arena, const char *path, struct converted *ret);
/* One JSON document: each of its numbers on a line, behind the names that lead to it. */
bool measure_flatten(struct arena *arena, const char *path, struct converted *ret);
/* A CSV whose quoted fields hold line breaks: without those. */
bool measure_join_rows(struct arena *arena, const struct log_head *head, struct converted *ret);
/* Without what all of its lines begin with, whatever its numbers; false: they begin with nothing alike. */
bool measure_strip(struct arena *arena, const struct log_head *head, struct converted *ret);
/* An empty file that is gone when its descriptor is closed. */
MUST_CHECK int measure_open_spool(struct arena *arena, const char **ret_path, int *ret_fd,
                                  struct err *err);
/* Standard input as a file that can be read several times: its path, and the descriptor that holds it. */
MUST_CHECK int measure_spool(struct arena *arena, const char **ret_path, int *ret_fd,
                             struct err *err);

/* Prints and empties the buffer, so that a document of any length needs little memory. */
MUST_CHECK int measure_flush(struct strbuf *buf, size_t over, struct err *err);
MUST_CHECK int measure_put_log(struct json_out *out, const struct finding_of_log *f,
                               struct err *err);
void measure_add_row(struct table *table, const struct finding_of_log *f);
/* Errors of usage that name what there is instead. */
MUST_CHECK int measure_name_formats(const struct format_set *set, const char *asked,
                                    struct err *err);
MUST_CHECK int measure_name_rules(const struct format *format, const char *asked, struct err *err);
/* Below the table: what is unknown about the log; for a single log, how the number was computed and what the log
   states. */
void measure_add_details(struct strbuf *text, const struct finding_of_log *f, bool is_only);

#endif
