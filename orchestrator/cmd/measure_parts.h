/* SPDX-License-Identifier: Apache-2.0 */
/* What `measure` says about one log, and how it is shown. Private to cmd_measure.c and measure_show.c. */
#ifndef CMD_MEASURE_PARTS_H
#define CMD_MEASURE_PARTS_H

#include "base/fs.h"
#include "base/opt.h"
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

/* Folders that hold no result of MLPerf become the logs below them, by their names; *ret_n_rounds: folders that do, and stay. The paths
   live in the arena. */
MUST_CHECK int measure_expand(struct arena *arena, struct opt_list *files, size_t *ret_n_rounds,
                              struct err *err);
/* Why no format reads it, with the next step where its first bytes are those of another kind of file. */
const char *measure_why_unread(const struct log_head *head);
/* What a log holds in other forms: files of lines that are gone when their descriptors are closed. */
struct spools {
    struct arena *arena; /* borrowed: of their paths */
    int fds[8];
    size_t n;
};
static inline char *spools_add(struct spools *spools, int fd)
{
    ASSERT(spools->n < ARRAY_LEN(spools->fds));
    spools->fds[spools->n++] = fd;
    return arena_printf(spools->arena, "/proc/self/fd/%d", fd);
}
static inline void spools_cleanup(struct spools *spools)
{
    while (spools->n) {
        fd_cleanup(&spools->fds[--spools->n]);
    }
}
/* Each returns the path of the other form, or NULL. gzip, zstd, xz, bzip2; NULL: it is not one of them, or damaged. */
const char *measure_decompress(struct spools *spools, const char *path);
/* One JSON document: each of its numbers on a line, behind the names that lead to it. */
const char *measure_flatten(struct spools *spools, const char *path);
/* A CSV whose quoted fields hold line breaks: without those. */
const char *measure_join_rows(struct spools *spools, const struct log_head *head);
/* Without what all of its lines begin with, whatever its numbers; NULL: they begin with nothing alike. */
const char *measure_strip(struct spools *spools, const struct log_head *head);
/* The scalars of TensorBoard's event file, as JSON lines; *path stays if it is none. */
MUST_CHECK int measure_events(struct spools *spools, const char **path, struct err *err);
/* Standard input as a file that can be read several times. */
MUST_CHECK int measure_spool(struct spools *spools, const char **ret_path, struct err *err);

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
