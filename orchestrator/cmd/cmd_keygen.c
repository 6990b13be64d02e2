/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "cmd/cmd.h"
#include "codec/json.h"
#include "codec/json_document.h"
#include "codec/sign.h"

#define OUTPUT_MAX (64u << 10)

struct keygen_args {
    bool want_json;
};

static const struct opt OPTS[] = {
    OPT(struct keygen_args, want_json, "json", "print one JSON document"),
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

static int run_keygen(const struct cmd_ctx *ctx UNUSED, int argc, char **argv, struct err *err)
{
    CLEANUP(opt_list) struct opt_list operands = {0};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf buf = {0};
    struct keygen_args args = {0};
    char key_id[SIGN_KEY_ID_SIZE];
    strbuf_init(&buf, OUTPUT_MAX);
    if (opt_parse(OPTS, argc, argv, &args, &operands, err) < 0) {
        return -1;
    }
    if (operands.n != 1) {
        return err_set(err, ERR_USAGE, "keygen: expected one FILE for the private key");
    }
    const char *public_path = arena_printf(&arena, "%s.pub", operands.items[0]);
    if (sign_keygen(operands.items[0], public_path, key_id, err) < 0) {
        return -1;
    }
    print_key(&buf, args.want_json, operands.items[0], public_path, key_id);
    return cmd_print(strbuf_str(&buf), err);
}

const struct cmd CMD_KEYGEN = {"keygen", "FILE",
                               "make an Ed25519 key: FILE (private, mode 0600) and FILE.pub", OPTS,
                               run_keygen};
