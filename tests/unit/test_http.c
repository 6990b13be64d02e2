/* SPDX-License-Identifier: Apache-2.0 */
/* net/http against a server whose every byte is known: heads, bodies, ranges, redirects, and the error code of each kind of
   failure. */
#include "unit.h"

#include <sys/stat.h>

#include "canned_server.h"
#include "net/http.h"
#include "net/http_head.h"

struct client {
    struct http *http;
    struct strbuf body;
    struct http_head head;
    struct http_transfer *transfer;
};

static void client_start(struct client *client, const struct http_settings *settings)
{
    *client = (struct client){0};
    strbuf_init(&client->body, 1 << 20);
    PASSES(http_new(settings, &client->http, ERR));
}

static void client_cleanup(struct client *client)
{
    http_transfer_free(client->transfer);
    http_free(client->http);
    strbuf_release(&client->body);
}

static int take_body(void *ctx, const uint8_t *ptr, size_t len, struct err *err)
{
    struct client *client = ctx;
    strbuf_add(&client->body, ptr, len);
    return client->body.is_full ? err_set(err, ERR_FETCH, "more than the body's cap") : 0;
}

static int take_head(void *ctx, const struct http_head *head, struct err *err UNUSED)
{
    struct client *client = ctx;
    client->head = *head;
    return 0;
}

/* Until it is there. */
static int get(struct client *client, const struct http_request *request, struct err *err)
{
    struct http_request own = *request;
    struct http_transfer *transfer = NULL;
    enum step step;
    own.on_head = take_head;
    own.on_body = take_body;
    own.ctx = client;
    if (http_start(client->http, &own, &transfer, err) < 0) {
        return -1;
    }
    while ((step = http_step(transfer, err)) == STEP_AGAIN) {
        assert_int_equal(http_wait(client->http, 200 * NS_PER_MS, err), 0);
    }
    if (step == STEP_FAIL) {
        http_transfer_free(transfer);
        return -1;
    }
    client->transfer = transfer;
    return 0;
}

/* One request to a server that gives these replies. */
static int ask(struct client *client, const struct canned_reply *replies, size_t n,
               struct http_request request, const char *path, struct str *ret_asked,
               struct err *err)
{
    /* Short where the server falls silent or next to; elsewhere a busy machine must not look like that. */
    const struct http_settings settings = {
        .proxy = "", .stall_timeout_ns = (replies[0].end == CANNED_CLOSES ? 60 : 1) * NS_PER_S};
    struct canned_server server = canned_start(replies, n);
    struct str asked;
    int result;
    client_start(client, &settings);
    request.url = canned_url(&server, path);
    result = get(client, &request, err);
    asked = canned_stop(&server);
    if (ret_asked) {
        *ret_asked = asked;
    }
    return result;
}

static bool has(struct str text, const char *part)
{
    return str_find(text, str_of(part)) >= 0;
}

/* A head in words: status, bytes of the body of those of the file, what else is said. */
static const char *head_text(const struct http_head *head)
{
    return arena_printf(
        ARENA, "%d: %lld of %lld at %llu%s%s%s, again after %lld, %.*s, %.*s", head->status,
        (long long)head->content_bytes, (long long)head->total_bytes,
        (unsigned long long)head->first_byte, head->has_content_range ? " of a range" : "",
        head->is_delimited ? "" : " without an end", head->is_encoded ? " encoded" : "",
        (long long)(head->retry_after_ns < 0 ? -1 : head->retry_after_ns / NS_PER_S),
        STR_ARG(head->etag), STR_ARG(head->last_modified));
}

TEST(replies_are_read)
{
    static const struct {
        const char *reply, *head, *body;
    } ROWS[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"a-1\"\r\nAccept-Ranges: bytes\r\n"
         "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\nContent-Type: text/plain\r\n\r\nhello",
         "200: 5 of 5 at 0, again after -1, \"a-1\", Sat, 21 Nov 2026 10:00:00 GMT", "hello"},
        {"HTTP/1.1 206 Partial Content\r\nContent-Length: 3\r\n"
         "Content-Range: bytes 7-9/100\r\n\r\nabc",
         "206: 3 of 100 at 7 of a range, again after -1, , ", "abc"},
        {"HTTP/1.1 429 Too Many\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nslow",
         "429: 4 of -1 at 0, again after 7, , ", ""},
        {"HTTP/1.1 416 No\r\nContent-Range: bytes */12\r\nContent-Length: 0\r\n\r\n",
         "416: 0 of 12 at 0, again after -1, , ", ""},
        {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nzz",
         "200: 2 of 2 at 0 encoded, again after -1, , ", "zz"},
        {"HTTP/1.0 200 OK\r\n\r\nzz", "200: -1 of -1 at 0 without an end, again after -1, , ",
         "zz"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nzz\r\n0\r\n\r\n",
         "200: -1 of -1 at 0, again after -1, , ", "zz"},
    };
    for (EACH(row, ROWS)) {
        const struct canned_reply reply = {str_of(row->reply), CANNED_CLOSES};
        const struct http_request range = {.has_range = true, .first_byte = 7, .last_byte = 9};
        bool is_ranged = strstr(row->reply, " 206 ") != NULL;
        CLEANUP(client) struct client client;
        struct str asked;
        PASSES(ask(&client, &reply, 1, is_ranged ? range : (struct http_request){0},
                   "/f?key=secret", &asked, ERR));
        assert_string_equal(head_text(&client.head), row->head);
        assert_true(str_eq_z(strbuf_str(&client.body), row->body));
        assert_true(has(asked, "GET /f?key=secret HTTP/1.1\r\n"));
        assert_true(has(asked, "\r\nAccept-Encoding: identity\r\n"));
        assert_int_equal(has(asked, "\r\nRange: bytes=7-9\r\n"), is_ranged);
    }
}

static void is_given_up(struct str text, enum canned_end end, enum err_code code, const char *says)
{
    const struct canned_reply reply = {text, end};
    CLEANUP(client) struct client client;
    FAILS_WITH(ask(&client, &reply, 1, (struct http_request){0}, "/f?key=hidden", NULL, ERR), code,
               says);
    assert_false(has(str_of(ERR->msg), "hidden"));
}

TEST(failures_have_their_codes)
{
    static const struct {
        const char *text;
        enum err_code code;
        enum canned_end end;
        const char *says;
    } ROWS[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc", ERR_NET, CANNED_CLOSES, ""},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", ERR_NET, CANNED_CLOSES,
         ""},
        {"", ERR_NET, CANNED_CLOSES, ""},
        {"\x16\x03\x01garbage\r\n\r\n", ERR_NET, CANNED_CLOSES, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabc", ERR_NET, CANNED_CLOSES, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nabc", ERR_TIMEOUT, CANNED_STAYS, ""},
        {"", ERR_TIMEOUT, CANNED_STAYS, ""},
        {"HTTP/1.1 302 Go\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n", ERR_FETCH,
         CANNED_CLOSES, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", ERR_FETCH,
         CANNED_CLOSES, ""},
        {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", ERR_FETCH,
         CANNED_CLOSES, ""},
        {"HTTP/1.1 407 Login\r\nContent-Length: 0\r\n\r\n", ERR_AUTH, CANNED_CLOSES, ""},
        /* One byte each 20 ms: always alive, and never done. */
        {"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", ERR_TIMEOUT, CANNED_TRICKLES,
         "Less than 1000 bytes/sec"},
    };
    for (EACH(row, ROWS)) {
        is_given_up(str_of(row->text), row->end, row->code, row->says);
    }
}

TEST(endless_heads_are_refused)
{
    static const struct {
        const char *begin, *line, *says;
        int n;
    } ROWS[] = {{"", "X-1: some text that goes on and on\r\n", "bytes of headers", 100000},
                {"X-A: ", "a name of 32 letters, or a value", "a header line", 1600000}};
    for (EACH(row, ROWS)) {
        CLEANUP(strbuf) struct strbuf text = STRBUF(64u << 20);
        strbuf_add_z(&text, "HTTP/1.1 200 OK\r\n");
        strbuf_add_z(&text, row->begin);
        for (int idx = 0; idx < row->n; idx++) {
            strbuf_add_z(&text, row->line);
        }
        strbuf_add_z(&text, "\r\nContent-Length: 1\r\n\r\nx");
        is_given_up(strbuf_str(&text), CANNED_CLOSES, ERR_FETCH, row->says);
    }
}

TEST(a_refused_connection_is_net)
{
    struct canned_server server = canned_start(NULL, 0);
    const struct http_request request = {.url = canned_url(&server, "/f")};
    CLEANUP(client) struct client client;
    canned_stop(&server);
    client_start(&client, &(struct http_settings){.proxy = ""});
    FAILS(get(&client, &request, ERR), ERR_NET);
}

TEST(follows_redirects_up_to_a_number)
{
    struct canned_reply replies[HTTP_REDIRECTS_MAX + 2];
    struct client client;
    struct str asked;
    const struct canned_reply circle = {
        STR_LIT(
            "HTTP/1.1 302 Go\r\nLocation: /g\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbye"),
        false};
    const struct canned_reply good = {
        STR_LIT("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"), false};
    const struct canned_reply two[] = {circle, good};
    const struct http_request range = {.has_range = true, .first_byte = 0, .last_byte = 1};
    PASSES(ask(&client, two, 2, range, "/f", &asked, ERR));
    assert_string_equal(client.body.ptr, "ok");
    assert_int_equal(client.head.status, 200);
    assert_true(has(asked, "GET /g HTTP/1.1\r\nHost"));
    client_cleanup(&client);
    for (EACH(row, replies)) {
        *row = circle;
    }
    FAILS(ask(&client, replies, ARRAY_LEN(replies), range, "/f", NULL, ERR), ERR_FETCH);
    client_cleanup(&client);
}

static const struct canned_reply EMPTY = {{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 38},
                                          CANNED_CLOSES};

static void write_mode(const char *path, const char *text, mode_t mode)
{
    scratch_write(path, str_of(text));
    assert_int_equal(chmod(path, mode), 0);
}

/* A login is only for the host it was given for: localhost is another name than 127.0.0.1. */
TEST(a_login_is_not_sent_to_another_host)
{
    const char *netrc = scratch_path("netrc-of-one");
    const struct http_settings settings = {.proxy = "", .netrc_path = netrc};
    struct canned_server other = canned_start(&EMPTY, 1), server;
    struct canned_reply away = {.end = CANNED_CLOSES};
    struct http_request request = {0};
    CLEANUP(client) struct client client;
    struct str asked, asked_other;
    away.text = str_printf(&scratch_arena,
                           "HTTP/1.1 302 Go\r\nLocation: http://localhost:%d/g\r\n"
                           "Content-Length: 0\r\n\r\n",
                           other.port);
    write_mode(netrc, "machine 127.0.0.1 login ann password hush\n", 0600);
    server = canned_start(&away, 1);
    client_start(&client, &settings);
    request.url = canned_url(&server, "/f");
    PASSES(get(&client, &request, ERR));
    asked = canned_stop(&server);
    asked_other = canned_stop(&other);
    assert_true(has(asked, "Authorization: Basic YW5uOmh1c2g="));
    assert_true(has(asked_other, "GET /g"));
    assert_false(has(asked_other, "Authorization"));
}

TEST(logins_come_from_private_files)
{
    struct canned_server server = canned_start(&EMPTY, 1);
    const char *netrc = scratch_path("netrc");
    const char *cookies = scratch_path("cookies");
    const struct http_settings settings = {
        .proxy = "", .netrc_path = netrc, .cookie_path = cookies};
    struct http_request request = {.url = canned_url(&server, "/f")};
    struct client client;
    struct http *http;
    struct str asked;
    write_mode(netrc, "machine 127.0.0.1 login ann password hush\n", 0600);
    write_mode(cookies, "127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tcrumb\n", 0600);
    client_start(&client, &settings);
    PASSES(get(&client, &request, ERR));
    asked = canned_stop(&server);
    assert_true(has(asked, "\r\nAuthorization: Basic YW5uOmh1c2g=\r\n"));
    assert_true(has(asked, "\r\nCookie: session=crumb\r\n"));
    client_cleanup(&client);
    for (size_t idx = 0; idx < 2; idx++) {
        const char *path = idx ? cookies : netrc;
        assert_int_equal(chmod(path, 0640), 0);
        FAILS(http_new(&settings, &http, ERR), ERR_AUTH);
        assert_true(has(str_of(ERR->msg), path) && has(str_of(ERR->msg), "0640"));
        assert_false(has(str_of(ERR->msg), "hush"));
        assert_int_equal(chmod(path, 0600), 0);
    }
    assert_int_equal(unlink(netrc), 0);
    FAILS(http_new(&settings, &http, ERR), ERR_NOT_FOUND);
}

TEST(files_are_read_in_pieces)
{
    const char *path = scratch_path("a file%");
    const char *url = arena_printf(&scratch_arena, "file://%s/a%%20file%%25", scratch_folder);
    struct http_request request = {.url = url};
    CLEANUP(client) struct client client;
    scratch_write(path, STR_LIT("0123456789"));
    client_start(&client, &(struct http_settings){.allows_file = true});
    PASSES(get(&client, &request, ERR));
    assert_string_equal(client.body.ptr, "0123456789");
    assert_int_equal(client.head.status, 200);
    assert_int_equal(client.head.total_bytes, 10);
    assert_true(client.head.etag.len > 0);
    http_transfer_free(client.transfer);
    strbuf_clear(&client.body);
    request.has_range = true;
    request.first_byte = 3;
    request.last_byte = 100;
    PASSES(get(&client, &request, ERR));
    assert_string_equal(client.body.ptr, "3456789");
    assert_int_equal(client.head.status, 206);
    assert_int_equal(client.head.first_byte, 3);
    http_transfer_free(client.transfer);
    request.first_byte = 10;
    PASSES(get(&client, &request, ERR));
    assert_int_equal(client.head.status, 416);
    assert_int_equal(client.head.total_bytes, 10);
    http_transfer_free(client.transfer);
    request.url = arena_printf(&scratch_arena, "file://%s/none", scratch_folder);
    PASSES(get(&client, &request, ERR));
    assert_int_equal(client.head.status, 404);
}

TEST(bad_urls_are_usage_and_not_shown)
{
    static const char *const URLS[] = {"ftp://u:hush@host/f",
                                       "file:///etc/hostname",
                                       "http://u:hu/sh@host/hush",
                                       "http://[::1/f",
                                       "hush",
                                       "",
                                       "http://host:hush/"};
    CLEANUP(client) struct client client;
    client_start(&client, &(struct http_settings){.proxy = ""});
    for (EACH(row, URLS)) {
        const struct http_request request = {.url = *row};
        FAILS(get(&client, &request, ERR), ERR_USAGE);
        assert_false(has(str_of(ERR->msg), "hush"));
    }
}

TEST(urls_are_shown_without_secrets)
{
    static const char *const ROWS[][2] = {
        {"https://host/a/b.tar", "https://host/a/b.tar"},
        {"https://ann:hush@host:8443/a?token=hush#hush", "https://host:8443/a"},
        {"https://ann:p@ss@host/a", "(no URL)"},
        {"https://host?hush", "https://host/"},
        {"http://[::1]:80/a@b", "http://[::1]:80/a@b"},
        {"file:///data/a", "file:///data/a"},
        {"http://ann:hu/sh@host/", "(no URL)"},
        {"http://host/a\nb\x7f", "(no URL)"},
        {"ann:hush", "(no URL)"},
        {"", "(no URL)"},
    };
    for (EACH(row, ROWS)) {
        assert_string_equal(http_url_shown(&scratch_arena, (*row)[0]), (*row)[1]);
    }
}

TEST(content_ranges_are_strict)
{
    static const struct {
        const char *text;
        bool is_good;
        struct content_range range;
    } ROWS[] = {
        {"bytes 0-0/1", true, {true, 0, 0, 1}},
        {"BYTES 5-9/*", true, {true, 5, 9, -1}},
        {"bytes */0", true, {false, 0, 0, 0}},
        {"bytes 0-4/4", false, {0}},
        {"bytes 5-4/9", false, {0}},
        {"bytes -4/9", false, {0}},
        {"bytes 1-/9", false, {0}},
        {"bytes */*", false, {0}},
        {"bytes 0-1", false, {0}},
        {"bytes 0-1/99999999999999999999", false, {0}},
        {"items 0-1/2", false, {0}},
        {"bytes 0 - 1/2", false, {0}},
        {"", false, {0}},
    };
    for (EACH(row, ROWS)) {
        struct content_range range = {0};
        assert_int_equal(content_range_parse(str_of(row->text), &range), row->is_good);
        assert_memory_equal(&range, &row->range, sizeof(range));
    }
}

UNIT_MAIN(scratch_group_start, scratch_group_end)
