/* SPDX-License-Identifier: Apache-2.0 */
/* What a config sets for one host, and what is refused; known_hosts; key files; the stream of a script. */
#include "base/base.h"

#include <setjmp.h>

#include <cmocka.h>

#include "codec/digest_hmac.h"
#include "codec/sign.h"
#include "net/ssh_config.h"
#include "net/ssh_impl.h"
#include "net/ssh_key.h"
#include "net/ssh_known.h"

/* "inc" is a file that sets a user; "loop" includes itself; all others are not there. */
static int include(void *ctx UNUSED, struct arena *arena, const char *pattern,
                   struct ssh_config_text **ret_texts, size_t *ret_n, struct err *err UNUSED)
{
    const char *text = strcmp(pattern, "inc") == 0    ? "User included\nHost other\nUser no\n"
                       : strcmp(pattern, "loop") == 0 ? "Include loop"
                                                      : NULL;
    *ret_n = text ? 1 : 0;
    *ret_texts = arena_array(arena, struct ssh_config_text, 1);
    (*ret_texts)[0] = (struct ssh_config_text){pattern, str_of(text)};
    return 0;
}

struct case_text {
    const char *text;
    const char *host_name, *user; /* wanted; NULL: not said */
    int64_t port;
    const char *error; /* part of the message, or NULL */
};

static const struct case_text CASES[] = {
    {"", NULL, NULL, 0, NULL},
    {"HostName 10.0.0.1\nUser u\nPort 2222\n", "10.0.0.1", "u", 2222, NULL},
    {"  hostname=10.0.0.1 # so\n\tUSER = \"u v\"\r\n", "10.0.0.1", "u v", 0, NULL},
    {"User first\nUser second\n", NULL, "first", 0, NULL},
    {"Host node*\nUser a\nHost *\nUser b\nPort 7\n", NULL, "a", 7, NULL},
    {"Host node?\nUser a\n", NULL, "a", 0, NULL},
    {"Host node\nUser a\n", NULL, NULL, 0, NULL},
    {"Host node* !node1\nUser a\n", NULL, NULL, 0, NULL},
    {"Host !node1\nUser a\n", NULL, NULL, 0, NULL},
    {"Host x node1\nUser a\n", NULL, "a", 0, NULL},
    {"Host x\nInclude inc\n", NULL, NULL, 0, NULL},
    {"Include inc\nUser later\nPort 3\n", NULL, "included", 3, NULL},
    {"Include nothing\nUser a\n", NULL, "a", 0, NULL},
    {"Include loop\n", NULL, NULL, 0, "more than 256 files"},
    {"Match host node*\nUser a\n", NULL, "a", 0, NULL},
    {"Match originalhost x\nUser a\nMatch all\nUser b\n", NULL, "b", 0, NULL},
    {"Match user me,you host node1\nUser a\n", NULL, "a", 0, NULL},
    {"User z\nMatch user me\nPort 9\n", NULL, "z", 0, NULL},
    {"Match exec true\nUser a\n", NULL, NULL, 0, "f:1: Match exec is not supported"},
    {"Host x\nMatch canonical\n", NULL, NULL, 0, "f:2: Match canonical"},
    {"\n\nProxyCommand nc %h %p\n", NULL, NULL, 0, "f:3: ProxyCommand"},
    {"ProxyCommand none\nUser a\n", NULL, "a", 0, NULL},
    {"ProxyJump j\nProxyCommand nc\nUser a\n", NULL, "a", 0, NULL},
    {"StrictHostKeyChecking no\n", NULL, NULL, 0, "StrictHostKeyChecking no is refused"},
    {"StrictHostKeyChecking maybe\n", NULL, NULL, 0, "expected yes, ask or accept-new"},
    {"Host x\nStrictHostKeyChecking no\n", NULL, NULL, 0, NULL},
    {"Port 70000\n", NULL, NULL, 0, "f:1: "},
    {"Port\n", NULL, NULL, 0, "a value is missing"},
    {"User \"a\n", NULL, NULL, 0, "unterminated quote"},
    {"Nonsense 1\n", NULL, NULL, 0, "unknown keyword Nonsense"},
    {"IgnoreUnknown Non*\nNonsense 1\nUser a\n", NULL, "a", 0, NULL},
    {"ForwardAgent yes\nControlMaster auto\nUser a\n", NULL, "a", 0, NULL},
    {"CertificateFile c\n", NULL, NULL, 0, "CertificateFile is not supported"},
    {"UserKnownHostsFile a b c d e f g h i\n", NULL, NULL, 0,
     "UserKnownHostsFile: more than 8 files"},
    {"PubkeyAuthentication no\n", NULL, NULL, 0, "PubkeyAuthentication no"},
    {"KnownHostsCommand none\nUser a\n", NULL, "a", 0, NULL},
};

static int read_text(struct ssh_settings *settings, struct arena *arena, const char *text,
                     struct err *err)
{
    struct ssh_config_ask ask = {.host = "node1", .local_user = "me", .include = include};
    struct ssh_config_text file = {"f", str_of(text)};
    *settings = SSH_SETTINGS_EMPTY;
    return ssh_config_read(settings, arena, &ask, &file, err);
}

static void check_text(const char *got, const char *wanted)
{
    if (wanted) {
        assert_non_null(got);
        assert_string_equal(got, wanted);
    } else {
        assert_null(got);
    }
}

static void test_config(void **state UNUSED)
{
    for (size_t idx = 0; idx < ARRAY_LEN(CASES); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct ssh_settings settings;
        struct err err = {0};
        int result = read_text(&settings, &arena, CASES[idx].text, &err);
        if (CASES[idx].error) {
            assert_int_equal(result, -1);
            assert_true(err.code == ERR_MANIFEST || err.code == ERR_PARSE);
            assert_non_null(strstr(err.msg, CASES[idx].error));
            continue;
        }
        assert_int_equal(result, 0);
        check_text(settings.host_name, CASES[idx].host_name);
        check_text(settings.user, CASES[idx].user);
        assert_int_equal(settings.port, CASES[idx].port);
    }
}

static void test_config_others(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct ssh_settings settings;
    struct err err = {0};
    assert_int_equal(
        read_text(&settings, &arena,
                  "IdentityFile a\nIdentityFile b\nIdentitiesOnly yes\nConnectTimeout 2m\n"
                  "ServerAliveInterval 5\nServerAliveCountMax 4\nUserKnownHostsFile k1 k2\n"
                  "UserKnownHostsFile k3\nStrictHostKeyChecking accept-new\nProxyJump a,b\n"
                  "ProxyJump c\nAddressFamily inet6\nHostKeyAlias alias\nIdentityAgent none\n",
                  &err),
        0);
    assert_int_equal(settings.n_identity_files, 2);
    assert_string_equal(settings.identity_files[1], "b");
    assert_int_equal(settings.identities_only, 1);
    assert_int_equal(settings.connect_timeout_s, 120);
    assert_int_equal(settings.alive_interval_s, 5);
    assert_int_equal(settings.alive_count_max, 4);
    assert_int_equal(settings.n_known_files, 2);
    assert_string_equal(settings.known_files[1], "k2");
    assert_int_equal(settings.strict, SSH_STRICT_ACCEPT_NEW);
    assert_string_equal(settings.proxy_jump, "a,b");
    assert_int_equal(settings.family, 6);
    assert_string_equal(settings.host_key_alias, "alias");
    assert_string_equal(settings.identity_agent, "none");
}

static void test_expand(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct ssh_tokens tokens = {"/h", "host", "orig", "user", "me", 22};
    static const struct {
        const char *text, *wanted;
    } ROWS[] = {
        {"~/.ssh/id", "/h/.ssh/id"},
        {"%d/%h-%p-%r-%u-%n%%", "/h/host-22-user-me-orig%"},
        {"~", "/h"},
        {"${HOME}/x", "/h/x"},
        {"/a b", "/a b"},
        {"~other/x", NULL},
        {"%z", NULL},
        {"%", NULL},
        {"${X}", NULL},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        const char *got = NULL;
        struct err err = {0};
        assert_int_equal(ssh_config_expand(&arena, ROWS[idx].text, &tokens, &got, &err),
                         ROWS[idx].wanted ? 0 : -1);
        check_text(got, ROWS[idx].wanted);
    }
}

static void test_jump(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    static const struct {
        const char *text, *user, *host;
        int64_t port;
    } ROWS[] = {
        {"h", NULL, "h", 0},
        {"u@h:22", "u", "h", 22},
        {"a@b@h", "a@b", "h", 0},
        {"[::1]:5", NULL, "::1", 5},
        {"u@[fe80::1]", "u", "fe80::1", 0},
        {"::1", NULL, "::1", 0},
        {"ssh://u@h:9/", "u", "h", 9},
        {"", NULL, NULL, 0},
        {"@h", NULL, NULL, 0},
        {"h:0", NULL, NULL, 0},
        {"h:x", NULL, NULL, 0},
        {"[::1", NULL, NULL, 0},
        {"[::1]5", NULL, NULL, 0},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        struct ssh_jump jump = {0};
        struct err err = {0};
        int result = ssh_jump_parse(&arena, str_of(ROWS[idx].text), &jump, &err);
        assert_int_equal(result, ROWS[idx].host ? 0 : -1);
        if (result == 0) {
            check_text(jump.user, ROWS[idx].user);
            check_text(jump.host, ROWS[idx].host);
            assert_int_equal(jump.port, ROWS[idx].port);
        }
    }
}

/* ---- known_hosts ---- */

/* RFC 2202, test case 2. */
static void test_hmac(void **state UNUSED)
{
    static const uint8_t WANTED[SHA1_BYTES] = {0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f,
                                               0xa2, 0xd2, 0x74, 0x16, 0xd5, 0xf1, 0x84,
                                               0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79};
    uint8_t mac[SHA1_BYTES];
    struct err err = {0};
    assert_int_equal(hmac_sha1(STR_LIT("Jefe"), STR_LIT("what do ya want for nothing?"), mac, &err),
                     0);
    assert_memory_equal(mac, WANTED, SHA1_BYTES);
}

static struct str blob_of(struct arena *arena, const char *name, const char *body)
{
    char *bytes = arena_array(arena, char, 64);
    size_t len = strlen(name);
    bytes[3] = (char)len;
    memcpy(bytes + 4, name, len);
    snprintf(bytes + 4 + len, 64 - 4 - len, "%s", body);
    return (struct str){bytes, 4 + len + strlen(body)};
}

static void add_line(struct strbuf *out, const char *hosts, struct str blob)
{
    strbuf_printf(out, "%s %.*s ", hosts, STR_ARG(ssh_key_name_of_blob(blob)));
    base64_encode(out, blob);
    strbuf_add_z(out, " comment\n");
}

static enum known_state look(struct str text, const char *name, struct str blob,
                             struct known_answer *answer)
{
    struct err err = {0};
    *answer = KNOWN_ANSWER_EMPTY;
    assert_int_equal(ssh_known_look(answer, "file", text, name, blob, &err), 0);
    return answer->state;
}

static void test_known(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    struct str ed = blob_of(&arena, "ssh-ed25519", "good");
    struct str ec = blob_of(&arena, "ecdsa-sha2-nistp256", "good");
    struct str bad = blob_of(&arena, "ssh-ed25519", "evil");
    struct known_answer answer;
    strbuf_init(&text, 65536);
    strbuf_add_z(&text, "# a comment\n\nbroken\n");
    add_line(&text, "alpha,10.0.0.1,*.lan,!x.lan", ed);
    add_line(&text, "alpha", ec);
    add_line(&text, "[beta]:2222", ed);
    add_line(&text, "@revoked *", bad);
    add_line(&text, "@cert-authority *", ec);
    struct str all = strbuf_str(&text);
    assert_int_equal(look(all, "alpha", ed, &answer), KNOWN_MATCH);
    assert_int_equal(answer.line, 4);
    assert_int_equal(answer.types, SSH_KEY_ED25519 | SSH_KEY_ECDSA_256);
    assert_int_equal(look(all, "alpha", ec, &answer), KNOWN_MATCH);
    assert_int_equal(answer.line, 5);
    assert_int_equal(look(all, "a.lan", ed, &answer), KNOWN_MATCH);
    assert_int_equal(look(all, "x.lan", ed, &answer), KNOWN_UNKNOWN);
    assert_int_equal(look(all, "10.0.0.1", ec, &answer), KNOWN_OTHER);
    assert_int_equal(answer.line, 4);
    assert_int_equal(look(all, "[beta]:2222", ed, &answer), KNOWN_MATCH);
    assert_int_equal(look(all, "beta", ed, &answer), KNOWN_UNKNOWN);
    assert_int_equal(look(all, "alpha", bad, &answer), KNOWN_REVOKED);
    assert_int_equal(answer.line, 7);
    assert_int_equal(look(all, "nobody", ec, &answer), KNOWN_UNKNOWN);
    assert_string_equal(ssh_known_name(&arena, "HOST", 22), "host");
    assert_string_equal(ssh_known_name(&arena, "::1", 23), "[::1]:23");
}

static void test_known_hashed(void **state UNUSED)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text, hosts;
    struct str ed = blob_of(&arena, "ssh-ed25519", "good");
    struct str salt = STR_LIT("0123456789abcdefghij");
    uint8_t mac[SHA1_BYTES];
    struct known_answer answer;
    struct err err = {0};
    strbuf_init(&text, 65536);
    strbuf_init(&hosts, 1024);
    assert_int_equal(hmac_sha1(salt, STR_LIT("gamma"), mac, &err), 0);
    strbuf_add_z(&hosts, "|1|");
    base64_encode(&hosts, salt);
    strbuf_add_char(&hosts, '|');
    base64_encode(&hosts, (struct str){(const char *)mac, sizeof(mac)});
    add_line(&text, hosts.ptr, ed);
    add_line(&text, "|1|nonsense", ed);
    assert_int_equal(look(strbuf_str(&text), "gamma", ed, &answer), KNOWN_MATCH);
    assert_int_equal(look(strbuf_str(&text), "delta", ed, &answer), KNOWN_UNKNOWN);
}

/* ---- keys ---- */

static void test_key_labels(void **state UNUSED)
{
    static const struct {
        const char *text;
        int result;
        unsigned type;
        bool is_encrypted;
    } ROWS[] = {
        {"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", 0, SSH_KEY_RSA,
         false},
        {"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nAAAA\n-----END EC", 0, 0, true},
        {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ", 0, 0, true},
        {"-----BEGIN CERTIFICATE-----\nAAAA\n-----END ", -1, 0, false},
        {"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END ", -1, 0, false},
        {"-----BEGIN OPENSSH PRIVATE KEY-----", -1, 0, false},
        {"ssh-ed25519 AAAA me", -1, 0, false},
        {"", -1, 0, false},
    };
    for (size_t idx = 0; idx < ARRAY_LEN(ROWS); idx++) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct ssh_key_info info = {0};
        struct err err = {0};
        assert_int_equal(ssh_key_inspect(&arena, str_of(ROWS[idx].text), &info, &err),
                         ROWS[idx].result);
        assert_int_equal(info.type, ROWS[idx].type);
        assert_int_equal(info.is_encrypted, ROWS[idx].is_encrypted);
    }
}

/* ---- the stream ---- */

#define NONCE "0123456789abcdef0123456789abcdef"

static void collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* The same is read whatever pieces it arrives in. */
static void test_stream(void **state UNUSED)
{
    static const char WHOLE[] = "motd\nprompt> BEGIN " NONCE "\nout\nEND of it\n\nBEGIN " NONCE
                                "\n\0x\nEND " NONCE " 37\nleft behind";
    static const char WANTED[] = "out\nEND of it\n\nBEGIN " NONCE "\n\0x\n";
    for (size_t piece = 1; piece < sizeof(WHOLE); piece++) {
        CLEANUP(strbuf) struct strbuf out;
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        struct ssh_stream stream;
        strbuf_init(&out, 65536);
        stream_init(&stream);
        for (size_t at = 0; at < sizeof(WHOLE) - 1; at += piece) {
            struct str rest = {WHOLE + at, sizeof(WHOLE) - 1 - at};
            stream_take(&stream, NONCE, str_sub(rest, 0, piece), collect, &out);
        }
        stream_finish(&stream, collect, &out);
        assert_true(stream.has_begun && stream.has_ended);
        assert_int_equal(stream.exit_status, 37);
        assert_int_equal(out.len, sizeof(WANTED) - 1);
        assert_memory_equal(out.ptr, WANTED, sizeof(WANTED) - 1);
        assert_string_equal(stream_noise(&stream, &arena), "; it printed: motd prompt>");
        stream_release(&stream);
    }
}

static void test_stream_cut(void **state UNUSED)
{
    CLEANUP(strbuf) struct strbuf out;
    struct ssh_stream stream;
    strbuf_init(&out, 65536);
    stream_init(&stream);
    stream_take(&stream, NONCE, STR_LIT("BEGIN " NONCE "\nhalf\nEND " NONCE " 3"), collect, &out);
    stream_finish(&stream, collect, &out);
    assert_true(stream.has_begun);
    assert_false(stream.has_ended);
    stream_release(&stream);
}

/* No byte is held back that cannot belong to the mark: a line is shown when it is complete. */
static void test_stream_at_once(void **state UNUSED)
{
    static const char *const PIECES[][2] = {
        {"BEGIN " NONCE "\nline\n", "line\n"},
        {"no break", "line\nno break"},
        {"E", "line\nno break"},
        {"ND", "line\nno break"},
        {" of it\n", "line\nno breakEND of it\n"},
        {"x END 0123", "line\nno breakEND of it\nx "},
        {"END " NONCE " 0\n", "line\nno breakEND of it\nx END 0123"},
    };
    CLEANUP(strbuf) struct strbuf out;
    struct ssh_stream stream;
    strbuf_init(&out, 65536);
    stream_init(&stream);
    for (size_t idx = 0; idx < ARRAY_LEN(PIECES); idx++) {
        stream_take(&stream, NONCE, str_of(PIECES[idx][0]), collect, &out);
        assert_string_equal(out.ptr, PIECES[idx][1]);
    }
    assert_true(stream.has_ended);
    assert_int_equal(stream.exit_status, 0);
    stream_release(&stream);
}

/* A node that prints no status after the mark but more and more output: nothing is held back, and the end is still
   seen. */
static void test_stream_false_end(void **state UNUSED)
{
    static const char *const FALSE_ENDS[] = {"END " NONCE " 9999", "END " NONCE " 256\n",
                                             "END " NONCE " \n", "END " NONCE " -1\n"};
    for (size_t idx = 0; idx < ARRAY_LEN(FALSE_ENDS); idx++) {
        CLEANUP(strbuf) struct strbuf out;
        struct ssh_stream stream;
        char filler[4096];
        strbuf_init(&out, 4 << 20);
        stream_init(&stream);
        memset(filler, 'x', sizeof(filler));
        stream_take(&stream, NONCE, STR_LIT("BEGIN " NONCE "\n"), collect, &out);
        stream_take(&stream, NONCE, str_of(FALSE_ENDS[idx]), collect, &out);
        for (size_t n = 0; n < 512; n++) { /* 2 MB: more than is ever held */
            stream_take(&stream, NONCE, (struct str){filler, sizeof(filler)}, collect, &out);
        }
        assert_false(stream.has_ended);
        assert_int_equal(out.len, strlen(FALSE_ENDS[idx]) + 512 * sizeof(filler));
        stream_take(&stream, NONCE, STR_LIT("END " NONCE " 7\n"), collect, &out);
        assert_true(stream.has_ended);
        assert_int_equal(stream.exit_status, 7);
        stream_release(&stream);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config),         cmocka_unit_test(test_config_others),
        cmocka_unit_test(test_expand),         cmocka_unit_test(test_jump),
        cmocka_unit_test(test_hmac),           cmocka_unit_test(test_known),
        cmocka_unit_test(test_known_hashed),   cmocka_unit_test(test_key_labels),
        cmocka_unit_test(test_stream),         cmocka_unit_test(test_stream_cut),
        cmocka_unit_test(test_stream_at_once), cmocka_unit_test(test_stream_false_end),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
