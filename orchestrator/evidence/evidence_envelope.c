/* SPDX-License-Identifier: Apache-2.0 */
/* DSSE envelopes. Source: github.com/secure-systems-lab/dsse, envelope.md and protocol.md. */
#include "base/base.h"

#include "evidence/evidence.h"

#include "codec/json_table.h"

#define PAE_MAX (JSON_TEXT_MAX + SIGN_DSSE_TYPE_MAX)

static int sign_payload(struct str payload, const struct sign_key *key,
                        uint8_t ret_signature[SIGN_BYTES], struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = STRBUF(PAE_MAX);
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), payload);
    ASSERT(!pae.is_full);
    return sign_message(key, strbuf_str(&pae), ret_signature, err);
}

struct dsse_text { /* as it stands there */
    struct str payload;
    struct dsse_signature {
        struct str key_id, sig;
    } * items;
    size_t n;
};
static const struct json_field SIGNATURE_ROWS[] = {
    ROW("keyid", struct dsse_signature, key_id, JSON_REQUIRED),
    ROW("sig", struct dsse_signature, sig, JSON_REQUIRED),
};
static const struct json_field ROWS[] = {
    ROW_ALONE("payloadType", JSON_CONST, JSON_REQUIRED, .is = EVIDENCE_PAYLOAD_TYPE),
    ROW("payload", struct dsse_text, payload, JSON_REQUIRED),
    ROW_LIST("signatures", struct dsse_text, items, n, SIGNATURE_ROWS, JSON_REQUIRED, .max = 1),
};

static void write_envelope(struct strbuf *buf, const struct evidence_envelope *envelope)
{
    CLEANUP(strbuf) struct strbuf payload, sig;
    strbuf_init(&payload, 2 * (size_t)JSON_TEXT_MAX);
    strbuf_init(&sig, (size_t)4 * SIGN_BYTES);
    base64_encode(&payload, envelope->payload);
    base64_encode(&sig, (struct str){(const char *)envelope->signature, SIGN_BYTES});
    struct dsse_signature signature = {str_of(envelope->key_id), strbuf_str(&sig)};
    const struct dsse_text text = {strbuf_str(&payload), &signature, envelope->is_signed};
    struct json_out out;
    jw_begin(&out, buf, true);
    jw_object(&out, NULL);
    json_encode(&out, ROWS, ARRAY_LEN(ROWS), &text);
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

static int read_envelope(const struct json *root, struct arena *arena,
                         struct evidence_envelope *envelope, struct err *err)
{
    struct dsse_text text = {0};
    struct str bytes;
    if (json_decode(root, arena, ROWS, ARRAY_LEN(ROWS), &text, err) < 0 ||
        base64_decode(arena, text.payload, &envelope->payload, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < text.n; idx++) {
        struct str id = text.items[idx].key_id;
        if (base64_decode(arena, text.items[idx].sig, &bytes, err) < 0) {
            return -1;
        }
        if (bytes.len != SIGN_BYTES || id.len != SIGN_KEY_ID_SIZE - 1) {
            return json_fail(root, err, "expected an Ed25519 signature and a key id");
        }
        envelope->is_signed = true;
        memcpy(envelope->signature, bytes.ptr, SIGN_BYTES);
        memcpy(envelope->key_id, id.ptr, id.len);
    }
    return 0;
}

int evidence_envelope_read(struct arena *arena, struct str text, const char *name,
                           struct evidence_envelope *ret_envelope, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(2 * (size_t)JSON_TEXT_MAX);
    struct evidence_envelope envelope = {0};
    if (json_parse(text, name, &doc, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    const struct json root = json_root(&doc);
    if (read_envelope(&root, arena, &envelope, err) < 0) {
        err->code = ERR_INTEGRITY;
        return -1;
    }
    write_envelope(&wanted, &envelope);
    *ret_envelope = envelope;
    return evidence_same_text(text, strbuf_str(&wanted), name, err);
}

int evidence_envelope_check(const struct evidence_envelope *envelope, const struct sign_key *key,
                            struct err *err)
{
    CLEANUP(strbuf) struct strbuf pae = STRBUF(PAE_MAX);
    if (!envelope->is_signed) {
        return err_set(err, ERR_INTEGRITY, "not signed");
    }
    if (strcmp(envelope->key_id, key->id) != 0) {
        return err_set(err, ERR_INTEGRITY, "signed by key %.16s, expected key %.16s",
                       envelope->key_id, key->id);
    }
    dsse_pae(&pae, STR_LIT(EVIDENCE_PAYLOAD_TYPE), envelope->payload);
    return sign_check(key, strbuf_str(&pae), envelope->signature, err);
}
