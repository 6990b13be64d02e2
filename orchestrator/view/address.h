/* SPDX-License-Identifier: Apache-2.0 */
/* Web addresses of what was published: a commit, a file at a commit, a line of it. Empty if the addresses of the repository's host, or
   the commit, are unknown. In the arena. */
#ifndef VIEW_ADDRESS_H
#define VIEW_ADDRESS_H

#include "base/strbuf.h"
#include "report/report.h"

struct str address_commit(struct arena *arena, const struct source_ref *source);
/* line: from 1; 0 for the file as a whole. */
struct str address_file(struct arena *arena, const struct source_ref *source, struct str path,
                        int64_t line);
/* Everything but unreserved characters and / percent-encoded (RFC 3986). */
void address_add_path(struct strbuf *url, struct str path);
/* A log's path in its repository: without the folder below --logs that the report calls the clone. */
struct str address_log_path(const struct report *report, struct str path);
/* Where a row is published: the page of its table, or, where none is and its logs were matched to it, their folder. */
struct source_ref address_of_row(const struct report *report, const struct report_case *c);

#endif
