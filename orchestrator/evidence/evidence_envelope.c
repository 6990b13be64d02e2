/* SPDX-License-Identifier: Apache-2.0 */
/* DSSE envelopes. Source: github.com/secure-systems-lab/dsse, envelope.md and protocol.md. */
#include "base/base.h"

#include "evidence/evidence.h"

#define PAE_MAX (JSON_TEXT_MAX + SIGN_DSSE_TYPE_MAX)

static int sign_payload(struct str payload, const struct sign_key *key,
                        uint8_t ret_signature[SIGN_BYTES], struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = {0};
    strbuf_init(&pae, PAE_MAX);
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), payload);
    ASSERT(!pae.is_full);
    return sign_message(key, strbuf_str(&pae), ret_signature, err);
}

static void write_envelope(struct strbuf *buf, const struct evidence_envelope *envelope)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    struct json_out out;
    strbuf_init(&text, 2 * (size_t)JSON_TEXT_MAX);
    base64_encode(&text, envelope->payload);
    jw_begin(&out, buf, true);
    jw_object(&out, NULL);
    jw_z(&out, "payloadType", EVIDENCE_PAYLOAD_TYPE);
    jw_str(&out, "payload", strbuf_str(&text));
    jw_array(&out, "signatures");
    if (envelope->is_signed) {
        strbuf_clear(&text);
        base64_encode(&text, (struct str){(const char *)envelope->signature, SIGN_BYTES});
        jw_object(&out, NULL);
        jw_z(&out, "keyid", envelope->key_id);
        jw_str(&out, "sig", strbuf_str(&text));
        jw_end_object(&out);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(buf, '\n');
}

int evidence_envelope(struct strbuf *buf, struct str payload, const struct sign_key *key,
                      struct err *err)
{
    struct evidence_envelope envelope = {.payload = payload, .is_signed = key != NULL};
    if (payload.len > JSON_TEXT_MAX / 4 * 3 - 1024) {
        return err_set(err, ERR_DISK, "a statement of %zu bytes: too many files or cells",
                       payload.len);
    }
    if (key) {
        memcpy(envelope.key_id, key->id, sizeof(envelope.key_id));
        if (sign_payload(payload, key, envelope.signature, err) < 0) {
            return -1;
        }
    }
    write_envelope(buf, &envelope);
    return 0;
}

static int read_bytes(const struct json *at, const char *key, struct arena *arena,
                      struct str *ret_bytes, struct err *err)
{
    struct json member;
    struct str text;
    if (json_member(at, key, &member, err) < 0 || json_str(&member, arena, &text, err) < 0) {
        return -1;
    }
    return base64_decode(arena, text, ret_bytes, err);
}

static int read_signature(const struct json *list, struct arena *arena,
                          struct evidence_envelope *envelope, struct err *err)
{
    struct json item, key_id;
    struct str bytes, id;
    if (!json_first(list, &item)) {
        return 0;
    }
    if (json_member(&item, "keyid", &key_id, err) < 0 || json_str(&key_id, arena, &id, err) < 0 ||
        read_bytes(&item, "sig", arena, &bytes, err) < 0) {
        return -1;
    }
    if (bytes.len != SIGN_BYTES || id.len != SIGN_KEY_ID_SIZE - 1) {
        return json_fail(&item, err, "expected an Ed25519 signature and a key id");
    }
    envelope->is_signed = true;
    memcpy(envelope->signature, bytes.ptr, SIGN_BYTES);
    memcpy(envelope->key_id, id.ptr, id.len);
    return 0;
}

static int read_members(const struct json *root, struct arena *arena,
                        struct evidence_envelope *envelope, struct err *err)
{
    struct json list;
    size_t n = 0;
    if (read_bytes(root, "payload", arena, &envelope->payload, err) < 0 ||
        json_member(root, "signatures", &list, err) < 0 ||
        json_expect_array(&list, 1, &n, err) < 0) {
        return -1;
    }
    return read_signature(&list, arena, envelope, err);
}

int evidence_envelope_read(struct arena *arena, struct str text, const char *name,
                           struct evidence_envelope *ret_envelope, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf wanted = {0};
    struct evidence_envelope envelope = {0};
    struct json root;
    size_t at = 0;
    strbuf_init(&wanted, 2 * (size_t)JSON_TEXT_MAX);
    if (json_parse(text, name, &doc, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    root = json_root(&doc);
    if (read_members(&root, arena, &envelope, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    write_envelope(&wanted, &envelope);
    while (at < text.len && at < wanted.len && text.ptr[at] == wanted.ptr[at]) {
        at++;
    }
    if (at < text.len || at < wanted.len) {
        return err_set(err, ERR_INTEGRITY, "%s: byte %zu is not as reperf writes an envelope", name,
                       at);
    }
    *ret_envelope = envelope;
    return 0;
}

int evidence_envelope_check(const struct evidence_envelope *envelope, const struct sign_key *key,
                            struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = {0};
    if (!envelope->is_signed) {
        return err_set(err, ERR_INTEGRITY, "not signed");
    }
    if (strcmp(envelope->key_id, key->id) != 0) {
        return err_set(err, ERR_INTEGRITY, "signed by key %.16s, expected key %.16s",
                       envelope->key_id, key->id);
    }
    strbuf_init(&pae, PAE_MAX);
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), envelope->payload);
    return sign_check(key, strbuf_str(&pae), envelope->signature, err);
}
