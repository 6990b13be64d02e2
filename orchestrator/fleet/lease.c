/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/lease.h"

#include <limits.h>
#include <unistd.h>

#include "base/str.h"

#define OUTPUT_MAX 4096

/* Only characters of names are kept: it is read on other machines and shown on terminals. */
static void name_us(char ret_who[LEASE_WHO_MAX])
{
    const char *user = getenv("LOGNAME");
    char host[HOST_NAME_MAX + 1] = "";
    user = user && user[0] ? user : getenv("USER");
    if (gethostname(host, sizeof(host) - 1) < 0 || !host[0]) {
        snprintf(host, sizeof(host), "unknown");
    }
    if (user && user[0]) {
        snprintf(ret_who, LEASE_WHO_MAX, "%.40s@%.80s", user, host);
    } else {
        snprintf(ret_who, LEASE_WHO_MAX, "uid-%ld@%.80s", (long)geteuid(), host);
    }
    for (char *at = ret_who; *at; at++) {
        *at = str_is_made_of((struct str){at, 1}, "a-zA-Z0-9._@-") ? *at : '_';
    }
}

enum step lease_step(struct lease_op *op, struct remote *remote, const char *run_id,
                     enum lease_mode mode, struct str *ret_holder, struct err *err)
{
    char ttl[16];
    snprintf(ttl, sizeof(ttl), "%d", LEASE_TTL_S);
    if (!op->is_begun) {
        strbuf_init(&op->output, OUTPUT_MAX);
        op->is_begun = true;
        name_us(op->who);
    }
    const struct str fields[] = {str_of(run_id), str_of(ttl),
                                 mode == LEASE_TAKE ? STR_LIT("take") : STR_LIT("drop"),
                                 str_of(op->who)};
    const struct remote_ask ask = {.what = "the lease of the node",
                                   .op = NODE_LEASE,
                                   .fields = fields,
                                   .n_fields = ARRAY_LEN(fields),
                                   .output = &op->output};
    enum step step = remote->ops->ask(remote, &ask, err);
    if (step != STEP_DONE) {
        return step;
    }
    struct str said = str_trim(strbuf_str(&op->output));
    if (said.len && !str_starts(said, STR_LIT("held "))) {
        return step_fail(err_set(err, ERR_NODE,
                                 "its answer about the lease was not understood: \"%.*s\"",
                                 STR_ARG(str_sub(said, 0, 200))));
    }
    *ret_holder = said.len ? str_sub(said, 5, said.len) : STR_EMPTY;
    return STEP_DONE;
}

void lease_op_release(struct lease_op *op)
{
    if (op->is_begun) {
        strbuf_release(&op->output);
    }
    *op = (struct lease_op){0};
}
