/* SPDX-License-Identifier: Apache-2.0 */
/* What ssh -G says of one host, and what of it is refused; known_hosts; key files; the stream of a script. */
#include "unit.h"

#include "codec/digest.h"
#include "codec/sign.h"
#include "net/ssh_impl.h"
#include "net/ssh_known.h"
#include "net/ssh_plan.h"

#define WHOLE_TEXT "host n\nuser u\nhostname h\nport 22\nuserknownhostsfile /k\n"

/* A line of the answer, beside those that there must be. */
TEST(test_answer)
{
    static const struct {
        const char *text;
        const char *error; /* part of the message, or NULL */
    } ROWS[] = {
        {WHOLE_TEXT, NULL},
        {"user u\nhostname h\nport 22\n", "does not say"},
        {WHOLE_TEXT "port 0\n", "does not say"},
        {WHOLE_TEXT "port 70000\n", "does not say"},
        {WHOLE_TEXT "port x\n", "port: "},
        {WHOLE_TEXT "Warning: of any kind\nnovalue\nuser\n", NULL},
        {WHOLE_TEXT "proxycommand nc %h %p\n",
         "proxycommand: \"nc %h %p\" is not supported; use ProxyJump"},
        {WHOLE_TEXT "proxycommand none\n", NULL},
        {WHOLE_TEXT "pubkeyauthentication false\n", "a login needs a key"},
        {WHOLE_TEXT "pubkeyauthentication true\nverifyhostkeydns false\n", NULL},
        {WHOLE_TEXT "certificatefile /c\n", "certificatefile: \"/c\" is not supported"},
        {WHOLE_TEXT "bindinterface eth0\n", "bindinterface: "},
        {WHOLE_TEXT "revokedhostkeys /r\n", "revokedhostkeys: "},
        {WHOLE_TEXT "connecttimeout none\nforwardagent yes\n", NULL},
    };
    for (EACH(row, ROWS)) {
        struct ssh_answer answer;
        struct err err = {0};
        assert_int_equal(ssh_answer_read(ARENA, str_of(row->text), &answer, &err),
                         row->error ? -1 : 0);
        if (row->error) {
            assert_true(err.code == ERR_MANIFEST || err.code == ERR_PARSE);
            assert_non_null(strstr(err.msg, row->error));
        } else {
            assert_string_equal(answer.user, "u");
            assert_int_equal(answer.port, 22);
        }
    }
}

TEST(test_answer_fields)
{
    struct ssh_answer answer;
    PASSES(ssh_answer_read(ARENA,
                           STR_LIT(WHOLE_TEXT
                                   "user a b\nidentityfile ~/a b\nidentityfile b\n"
                                   "identitiesonly yes\nconnecttimeout 120\n"
                                   "serveraliveinterval 5\nserveralivecountmax 4\n"
                                   "userknownhostsfile /k1 /k2\nstricthostkeychecking accept-new\n"
                                   "proxyjump a,b\naddressfamily inet6\nhostkeyalias alias\n"
                                   "identityagent none\nhashknownhosts yes\n"),
                           &answer, ERR));
    assert_string_equal(answer.user, "a b");
    assert_int_equal(answer.n_identity_files, 2);
    assert_string_equal(answer.identity_files[0], "~/a b");
    assert_string_equal(answer.identities_only, "yes");
    assert_int_equal(answer.connect_timeout_s, 120);
    assert_int_equal(answer.alive_s, 5);
    assert_int_equal(answer.alive_count_max, 4);
    assert_string_equal(answer.known_files, "/k1 /k2");
    assert_null(answer.global_known_files);
    assert_string_equal(answer.strict, "accept-new");
    assert_string_equal(answer.proxy_jump, "a,b");
    assert_string_equal(answer.family, "inet6");
    assert_string_equal(answer.host_key_alias, "alias");
    assert_string_equal(answer.identity_agent, "none");
    assert_string_equal(answer.hash_names, "yes");
}

static const char *is_dashed(const char *host, const char *user)
{
    struct ssh_plan *plan = NULL;
    struct err err = {0};
    const struct ssh_plan_opts opts = {.host = host, .user = user};
    int result = ssh_plan_new(&opts, &plan, &err);
    ssh_plan_drop(plan);
    return result < 0 && err.code == ERR_USAGE && strstr(err.msg, "begins with") ? "refused" : "";
}

TEST(test_dash)
{
    assert_string_equal(is_dashed("-oProxyCommand=x", NULL), "refused");
    assert_string_equal(is_dashed("h", "-lx"), "refused");
    assert_string_equal(is_dashed("h-", "x"), "");
}

/* ---- known_hosts ---- */

/* RFC 2202, test case 2. */
TEST(test_hmac)
{
    static const uint8_t WANTED[SHA1_BYTES] = {0xef, 0xfc, 0xdf, 0x6a, 0xe5, 0xeb, 0x2f,
                                               0xa2, 0xd2, 0x74, 0x16, 0xd5, 0xf1, 0x84,
                                               0xdf, 0x9c, 0x25, 0x9a, 0x7c, 0x79};
    uint8_t mac[SHA1_BYTES];
    PASSES(hmac_sha1(STR_LIT("Jefe"), STR_LIT("what do ya want for nothing?"), mac, ERR));
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
    *answer = KNOWN_ANSWER_EMPTY;
    PASSES(ssh_known_look(answer, "file", text, name, blob, ERR));
    return answer->state;
}

TEST(test_known)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(65536);
    struct str ed = blob_of(ARENA, "ssh-ed25519", "good");
    struct str ec = blob_of(ARENA, "ecdsa-sha2-nistp256", "good");
    struct str bad = blob_of(ARENA, "ssh-ed25519", "evil");
    struct known_answer answer;
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
    assert_string_equal(ssh_known_name(ARENA, "HOST", 22), "host");
    assert_string_equal(ssh_known_name(ARENA, "::1", 23), "[::1]:23");
}

TEST(test_known_hashed)
{
    CLEANUP(strbuf) struct strbuf text, hosts;
    struct str ed = blob_of(ARENA, "ssh-ed25519", "good");
    struct str salt = STR_LIT("0123456789abcdefghij");
    uint8_t mac[SHA1_BYTES];
    struct known_answer answer;
    strbuf_init(&text, 65536);
    strbuf_init(&hosts, 1024);
    PASSES(hmac_sha1(salt, STR_LIT("gamma"), mac, ERR));
    strbuf_add_z(&hosts, "|1|");
    base64_encode(&hosts, salt);
    strbuf_add_char(&hosts, '|');
    base64_encode(&hosts, (struct str){(const char *)mac, sizeof(mac)});
    add_line(&text, hosts.ptr, ed);
    add_line(&text, "|1|nonsense", ed);
    assert_int_equal(look(strbuf_str(&text), "gamma", ed, &answer), KNOWN_MATCH);
    assert_int_equal(look(strbuf_str(&text), "delta", ed, &answer), KNOWN_UNKNOWN);
    strbuf_clear(&text);
    PASSES(ssh_known_line(&text, "gamma", salt, ed, ERR));
    assert_true(str_starts(strbuf_str(&text), STR_LIT("|1|")));
    assert_int_equal(look(strbuf_str(&text), "gamma", ed, &answer), KNOWN_MATCH);
    strbuf_clear(&text);
    PASSES(ssh_known_line(&text, "gamma", STR_EMPTY, ed, ERR));
    assert_true(str_starts(strbuf_str(&text), STR_LIT("gamma ssh-ed25519 ")));
}

/* ---- keys ---- */

TEST(test_public)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(1024);
    struct str ed = blob_of(ARENA, "ssh-ed25519", "good");
    struct str blob = STR_EMPTY;
    strbuf_add_z(&text, "ssh-ed25519 ");
    base64_encode(&text, ed);
    strbuf_add_z(&text, " me@here\n");
    assert_true(ssh_key_public(ARENA, strbuf_str(&text), &blob));
    assert_true(str_eq(blob, ed));
    text.ptr[0] = 'x'; /* another type than the blob's own */
    assert_false(ssh_key_public(ARENA, strbuf_str(&text), &blob));
    assert_false(ssh_key_public(ARENA, STR_LIT("ssh-ed25519"), &blob));
    assert_false(
        ssh_key_public(ARENA, STR_LIT("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"), &blob));
    assert_false(ssh_key_public(ARENA, STR_EMPTY, &blob));
}

/* ---- the stream ---- */

#define NONCE "0123456789abcdef0123456789abcdef"

static void collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* The same is read whatever pieces it arrives in. */
TEST(test_stream)
{
    static const char WHOLE[] = "motd\nprompt> BEGIN " NONCE "\nout\nEND of it\n\nBEGIN " NONCE
                                "\n\0x\nEND " NONCE " 37\nleft behind";
    static const char WANTED[] = "out\nEND of it\n\nBEGIN " NONCE "\n\0x\n";
    for (size_t piece = 1; piece < sizeof(WHOLE); piece++) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(65536);
        struct ssh_stream stream;
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
        assert_string_equal(stream_noise(&stream, ARENA), "; it printed: motd prompt>");
        stream_release(&stream);
    }
}

TEST(test_stream_cut)
{
    CLEANUP(strbuf) struct strbuf out = STRBUF(65536);
    struct ssh_stream stream;
    stream_init(&stream);
    stream_take(&stream, NONCE, STR_LIT("BEGIN " NONCE "\nhalf\nEND " NONCE " 3"), collect, &out);
    stream_finish(&stream, collect, &out);
    assert_true(stream.has_begun);
    assert_false(stream.has_ended);
    stream_release(&stream);
}

/* No byte is held back that cannot belong to the mark: a line is shown when it is complete. */
TEST(test_stream_at_once)
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
    CLEANUP(strbuf) struct strbuf out = STRBUF(65536);
    struct ssh_stream stream;
    stream_init(&stream);
    for (EACH(row, PIECES)) {
        stream_take(&stream, NONCE, str_of((*row)[0]), collect, &out);
        assert_string_equal(out.ptr, (*row)[1]);
    }
    assert_true(stream.has_ended);
    assert_int_equal(stream.exit_status, 0);
    stream_release(&stream);
}

/* A node that prints no status after the mark but more and more output: nothing is held back, and the end is still
   seen. */
TEST(test_stream_false_end)
{
    static const char *const FALSE_ENDS[] = {"END " NONCE " 9999", "END " NONCE " 256\n",
                                             "END " NONCE " \n", "END " NONCE " -1\n"};
    for (EACH(row, FALSE_ENDS)) {
        CLEANUP(strbuf) struct strbuf out = STRBUF(4 << 20);
        struct ssh_stream stream;
        char filler[4096];
        stream_init(&stream);
        memset(filler, 'x', sizeof(filler));
        stream_take(&stream, NONCE, STR_LIT("BEGIN " NONCE "\n"), collect, &out);
        stream_take(&stream, NONCE, str_of(*row), collect, &out);
        for (size_t n = 0; n < 512; n++) { /* 2 MB: more than is ever held */
            stream_take(&stream, NONCE, (struct str){filler, sizeof(filler)}, collect, &out);
        }
        assert_false(stream.has_ended);
        assert_int_equal(out.len, strlen(*row) + 512 * sizeof(filler));
        stream_take(&stream, NONCE, STR_LIT("END " NONCE " 7\n"), collect, &out);
        assert_true(stream.has_ended);
        assert_int_equal(stream.exit_status, 7);
        stream_release(&stream);
    }
}
