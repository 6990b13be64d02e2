/* SPDX-License-Identifier: Apache-2.0 */
/* What the rooms lint and draft register: commands of their own, and what they add to those of this room. All else does without
   them: reperf-core is the program that is linked without orchestrator/guests.c, and has none. */
#pragma once

#include "draft/measure_folder.h"
#include "draft/propose.h"
#include "lint/lint.h"

/* For logs that no format reads (draft/propose.h, draft/suggest.h). */
struct proposer {
    int (*propose)(struct arena *arena, const struct proposal_want *want, struct proposal *ret,
                   struct format_set *ret_set, struct err *err);
    void (*release)(struct proposal *proposal);
    void (*add)(struct strbuf *text, const char *file, const struct proposal *proposal);
    void (*put)(struct json_out *out, const struct proposal *proposal);
    int (*given)(const struct given_format *given, struct strbuf *out, struct err *err);
};

struct guests {
    const struct cmd_row *cmds; /* ended by a row without a command */
    /* What can be seen in a report without its logs; NULL: nothing is looked for. */
    void (*lint)(struct arena *arena, const struct report *report, struct findings *findings);
    const struct proposer *proposer; /* NULL: measure refuses --suggest, --pattern and --unit */
    /* measure FOLDER; NULL: a folder is no log. */
    int (*measure_folders)(const struct cmd_ctx *ctx, const struct folder_args *args,
                           struct err *err);
};
extern const struct guests GUESTS; /* orchestrator/guests.c, or guests_none.c */
