/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "codec/sign.h"

struct args {
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct args, want_json, "json", "print one JSON document"),
    OPT_END,
};

static void print_key(struct strbuf *buf, bool want_json, const char *private_path,
                      const char *public_path, const char *key_id)
{
    struct json_out out;
    if (!want_json) {
        strbuf_printf(buf, "private key %s\npublic key  %s\nkey id      %s\n", private_path,
                      public_path, key_id);
        return;
    }
    jw_document(&out, buf);
    jw_z(&out, "private_key", private_path);
    jw_z(&out, "public_key", public_path);
    jw_z(&out, "key_id", key_id);
    jw_end_object(&out);
}

static int run_keygen(const struct cmd_ctx *ctx UNUSED, struct cmd_call *call, struct err *err)
{
    const struct args *args = call->args;
    char key_id[SIGN_KEY_ID_SIZE];
    const char *public_path = arena_printf(call->arena, "%s.pub", call->operands.items[0]);
    if (sign_keygen(call->operands.items[0], public_path, key_id, err) < 0) {
        return -1;
    }
    print_key(call->out, args->want_json, call->operands.items[0], public_path, key_id);
    return 0;
}

const struct cmd CMD_KEYGEN =
    CMD("keygen", "FILE", "make an Ed25519 key: FILE (private, mode 0600) and FILE.pub", OPTS,
        run_keygen, CMD_ARGS(struct args),
        CMD_OPERANDS(1, 1, "keygen: expected one FILE for the private key"));
