/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/ssh_known.h"

#include "codec/digest.h"
#include "codec/sign.h"

static const struct {
    const char *name;
    unsigned type;
} TYPES[] = {
    {"ssh-ed25519", SSH_KEY_ED25519},
    {"ecdsa-sha2-nistp256", SSH_KEY_ECDSA_256},
    {"ecdsa-sha2-nistp384", SSH_KEY_ECDSA_384},
    {"ecdsa-sha2-nistp521", SSH_KEY_ECDSA_521},
    {"ssh-rsa", SSH_KEY_RSA},
};

unsigned ssh_key_type_of_name(struct str name)
{
    const typeof(TYPES[0]) *found = Z_NAMED(TYPES, ARRAY_LEN(TYPES), name, name);
    return found ? found->type : SSH_KEY_OTHER;
}

struct str ssh_key_name_of_blob(struct str blob)
{
    uint32_t len = 0;
    for (size_t idx = 0; blob.len >= 4 && idx < 4; idx++) {
        len = len << 8 | (uint8_t)blob.ptr[idx];
    }
    return blob.len >= 4 && len <= blob.len - 4 && len <= 64 ? str_sub(blob, 4, len) : STR_EMPTY;
}

const char *ssh_known_name(struct arena *arena, const char *host, int64_t port)
{
    char *name = port == 22 ? arena_printf(arena, "%s", host)
                            : arena_printf(arena, "[%s]:%lld", host, (long long)port);
    for (char *c = name; *c; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    }
    return name;
}

/* * and ?; bytewise. fnmatch(3) would take the brackets of [host]:port for a set. */
static bool glob_matches(struct str pattern, struct str text)
{
    size_t p = 0;
    size_t t = 0;
    size_t star = SIZE_MAX; /* the last star seen, and how much it has matched */
    size_t taken = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.ptr[p] == '*') {
            star = p++;
            taken = t;
        } else if (p < pattern.len && (pattern.ptr[p] == '?' || pattern.ptr[p] == text.ptr[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++taken;
        } else {
            return false;
        }
    }
    p = str_span(pattern, p, "*");
    return p == pattern.len;
}

/* A comma-separated list with negation. */
static bool list_matches(struct str list, struct str text)
{
    struct str part;
    bool hit = false;
    while (str_next(&list, ',', &part)) {
        part = str_trim(part);
        if (part.len && part.ptr[0] == '!') {
            if (glob_matches(str_sub(part, 1, part.len), text)) {
                return false;
            }
        } else if (part.len && glob_matches(part, text)) {
            hit = true;
        }
    }
    return hit;
}

/* |1|SALT|HMAC */
static int hashed_matches(struct str hosts, struct str name, bool *ret_matches, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str rest = str_sub(hosts, 3, hosts.len);
    struct str salt_text, salt, wanted;
    uint8_t mac[SHA1_BYTES];
    *ret_matches = false;
    if (!str_next(&rest, '|', &salt_text) || !rest.ptr ||
        base64_decode(&arena, salt_text, &salt, ERR_IGNORED) < 0 ||
        base64_decode(&arena, rest, &wanted, ERR_IGNORED) < 0) {
        return 0;
    }
    if (hmac_sha1(salt, name, mac, err) < 0) {
        return -1;
    }
    *ret_matches = wanted.len == SHA1_BYTES && memcmp(wanted.ptr, mac, SHA1_BYTES) == 0;
    return 0;
}

static bool next_word(struct str *rest, struct str *ret_word)
{
    *rest = str_trim(*rest);
    size_t len = str_cspan(*rest, 0, " \t");
    *ret_word = str_sub(*rest, 0, len);
    *rest = str_sub(*rest, len, rest->len);
    return len > 0;
}

bool ssh_key_public(struct arena *arena, struct str text, struct str *ret_blob)
{
    struct str type, body;
    return next_word(&text, &type) && next_word(&text, &body) &&
           base64_decode(arena, body, ret_blob, ERR_IGNORED) == 0 &&
           str_eq(ssh_key_name_of_blob(*ret_blob), type);
}

static int take_line(struct known_answer *answer, struct str line, struct str name, struct str blob,
                     bool *ret_decided, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str hosts, type, text, key;
    bool is_revoked = false;
    bool matches;
    *ret_decided = false;
    if (!next_word(&line, &hosts) || hosts.ptr[0] == '#') {
        return 0;
    }
    if (hosts.ptr[0] == '@') {
        is_revoked = str_eq_z(hosts, "@revoked");
        if (!is_revoked || !next_word(&line, &hosts)) {
            return 0;
        }
    }
    if (str_starts(hosts, STR_LIT("|1|"))) {
        if (hashed_matches(hosts, name, &matches, err) < 0) {
            return -1;
        }
    } else {
        matches = list_matches(hosts, name);
    }
    if (!matches || !next_word(&line, &type) || !next_word(&line, &text) ||
        base64_decode(&arena, text, &key, ERR_IGNORED) < 0) {
        return 0;
    }
    if (is_revoked) {
        *ret_decided = blob.len && str_eq(key, blob);
        answer->state = *ret_decided ? KNOWN_REVOKED : answer->state;
        return 0;
    }
    answer->types |= ssh_key_type_of_name(type);
    if (answer->state != KNOWN_REVOKED && answer->state != KNOWN_MATCH) {
        bool is_first = answer->state == KNOWN_UNKNOWN;
        bool is_same = blob.len && str_eq(key, blob);
        answer->state = is_same ? KNOWN_MATCH : KNOWN_OTHER;
        /* Where there are several others, the one of the same type is the most useful to show. */
        *ret_decided = is_same || is_first || str_eq(type, ssh_key_name_of_blob(blob));
    }
    return 0;
}

int ssh_known_look(struct known_answer *answer, const char *file, struct str text, const char *name,
                   struct str blob, struct err *err)
{
    struct str line;
    for (size_t line_no = 1; str_next(&text, '\n', &line); line_no++) {
        bool decided = false;
        if (take_line(answer, line, str_of(name), blob, &decided, err) < 0) {
            return -1;
        }
        if (decided) {
            answer->file = file;
            answer->line = line_no;
        }
    }
    return 0;
}

int ssh_known_line(struct strbuf *out, const char *name, struct str salt, struct str blob,
                   struct err *err)
{
    uint8_t mac[SHA1_BYTES];
    if (!salt.len) {
        strbuf_add_z(out, name);
    } else {
        if (hmac_sha1(salt, str_of(name), mac, err) < 0) {
            return -1;
        }
        strbuf_add_z(out, "|1|");
        base64_encode(out, salt);
        strbuf_add_char(out, '|');
        base64_encode(out, (struct str){(const char *)mac, sizeof(mac)});
    }
    strbuf_printf(out, " %.*s ", STR_ARG(ssh_key_name_of_blob(blob)));
    base64_encode(out, blob);
    strbuf_add_char(out, '\n');
    return 0;
}

void ssh_key_fingerprint(struct strbuf *out, struct str blob)
{
    uint8_t sha256[SHA256_BYTES];
    sha256_of(blob, sha256);
    strbuf_add_z(out, "SHA256:");
    base64_encode(out, (struct str){(const char *)sha256, sizeof(sha256)});
    while (out->len && out->ptr[out->len - 1] == '=') {
        out->ptr[--out->len] = '\0';
    }
}
