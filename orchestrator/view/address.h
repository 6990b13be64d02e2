/* SPDX-License-Identifier: Apache-2.0 */
/* Web addresses of what was published: a commit, a file at a commit, a line of it. Empty if the addresses of the repository's
   host, or the commit, are unknown. In the arena. */
#pragma once

#include "base/strbuf.h"
#include "judge/finding.h"

struct str address_commit(struct arena *arena, const struct source_ref *source);
/* line: from 1; 0 for the file as a whole. */
struct str address_file(struct arena *arena, const struct source_ref *source, struct str path,
                        int64_t line);
/* What shows a finding: the log and its line, or the authors' page. */
struct str address_of_spot(struct arena *arena, const struct spot *at);
/* Everything but unreserved characters and / percent-encoded (RFC 3986). */
void address_add_path(struct strbuf *url, struct str path);
