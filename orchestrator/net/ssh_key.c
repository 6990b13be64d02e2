/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_key.h"

#include "codec/sign_seed.h"
#include "net/ssh_known.h"

bool ssh_wire_u32(struct str *rest, uint32_t *ret_value)
{
    uint32_t value = 0;
    if (rest->len < 4) {
        return false;
    }
    for (size_t idx = 0; idx < 4; idx++) {
        value = value << 8 | (uint8_t)rest->ptr[idx];
    }
    *rest = str_sub(*rest, 4, rest->len);
    *ret_value = value;
    return true;
}

bool ssh_wire_string(struct str *rest, struct str *ret_string)
{
    uint32_t len;
    struct str at = *rest;
    if (!ssh_wire_u32(&at, &len) || len > at.len) {
        return false;
    }
    *ret_string = str_sub(at, 0, len);
    *rest = str_sub(at, len, at.len);
    return true;
}

static struct str without_line_ends(struct arena *arena, struct str text)
{
    char *out = arena_array(arena, char, text.len + 1);
    size_t len = 0;
    for (size_t idx = 0; idx < text.len; idx++) {
        if (text.ptr[idx] != '\n' && text.ptr[idx] != '\r') {
            out[len++] = text.ptr[idx];
        }
    }
    return (struct str){out, len};
}

/* The private half: two equal check numbers, the type, the public key, seed and public key. */
static void take_seed(struct str section, struct ssh_key_info *info)
{
    uint32_t check[2];
    struct str type, public_key, private_key;
    if (ssh_wire_u32(&section, &check[0]) && ssh_wire_u32(&section, &check[1]) &&
        check[0] == check[1] && ssh_wire_string(&section, &type) && str_eq_z(type, "ssh-ed25519") &&
        ssh_wire_string(&section, &public_key) && ssh_wire_string(&section, &private_key) &&
        public_key.len == SIGN_PUBLIC_BYTES &&
        private_key.len == SIGN_SEED_BYTES + SIGN_PUBLIC_BYTES &&
        str_eq(str_sub(private_key, SIGN_SEED_BYTES, SIGN_PUBLIC_BYTES), public_key)) {
        info->seed = str_sub(private_key, 0, SIGN_SEED_BYTES);
    }
}

static int inspect_openssh(struct arena *arena, struct str body, struct ssh_key_info *info,
                           struct err *err)
{
    static const char MAGIC[] = "openssh-key-v1"; /* its NUL belongs to it */
    struct str bytes, cipher, kdf, options, section;
    uint32_t n_keys;
    if (base64_decode(arena, without_line_ends(arena, body), &bytes, err) < 0) {
        return -1;
    }
    if (!str_starts(bytes, (struct str){MAGIC, sizeof(MAGIC)})) {
        return err_set(err, ERR_PARSE, "not an openssh-key-v1");
    }
    bytes = str_sub(bytes, sizeof(MAGIC), bytes.len);
    if (!ssh_wire_string(&bytes, &cipher) || !ssh_wire_string(&bytes, &kdf) ||
        !ssh_wire_string(&bytes, &options) || !ssh_wire_u32(&bytes, &n_keys) || n_keys != 1 ||
        !ssh_wire_string(&bytes, &info->blob)) {
        return err_set(err, ERR_PARSE, "the openssh-key-v1 is truncated");
    }
    info->is_encrypted = !str_eq_z(cipher, "none");
    info->type = ssh_key_type_of_name(ssh_key_name_of_blob(info->blob));
    if (!info->is_encrypted && ssh_wire_string(&bytes, &section)) {
        take_seed(section, info);
    }
    return 0;
}

int ssh_key_inspect(struct arena *arena, struct str text, struct ssh_key_info *ret_info,
                    struct err *err)
{
    const struct str BEGIN = STR_LIT("-----BEGIN ");
    struct ssh_key_info info = {0};
    int64_t at = str_find(text, BEGIN);
    struct str rest, label;
    int64_t end;
    if (at < 0) {
        return err_set(err, ERR_PARSE, "not a private key: no line \"-----BEGIN ...\"");
    }
    rest = str_sub(text, (size_t)at + BEGIN.len, text.len);
    (void)str_next(&rest, '\n', &label);
    label = str_trim(label);
    end = str_find(rest, STR_LIT("-----END "));
    if (!rest.ptr || end < 0) {
        return err_set(err, ERR_PARSE, "not a private key: no line \"-----END ...\"");
    }
    rest.len = (size_t)end;
    if (str_eq_z(label, "OPENSSH PRIVATE KEY-----")) {
        if (inspect_openssh(arena, rest, &info, err) < 0) {
            return -1;
        }
    } else if (str_eq_z(label, "ENCRYPTED PRIVATE KEY-----")) {
        info.is_encrypted = true;
    } else if (str_ends(label, STR_LIT("PRIVATE KEY-----"))) {
        info.type = str_starts(label, STR_LIT("RSA ")) ? SSH_KEY_RSA : 0;
        info.is_encrypted = str_find(rest, STR_LIT("Proc-Type: 4,ENCRYPTED")) >= 0;
    } else {
        return err_set(err, ERR_PARSE, "not a private key: \"-----BEGIN %.*s\"", STR_ARG(label));
    }
    *ret_info = info;
    return 0;
}

int ssh_key_public(struct arena *arena, struct str text, struct str *ret_blob, struct err *err)
{
    struct str rest = str_trim(text);
    struct str type, body;
    if (!str_next(&rest, ' ', &type) || !str_next(&rest, ' ', &body)) {
        return err_set(err, ERR_PARSE, "expected TYPE BASE64");
    }
    return base64_decode(arena, str_trim(body), ret_blob, err);
}
