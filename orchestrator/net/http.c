/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "net/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/library.h"
#include "net/http_head.h"

/* The functions of libcurl that are used, opened by the first http_new(): curl.easy_init() is curl_easy_init(). */
#define LIBCURL(X)                                                                                 \
    X(curl_, easy_cleanup)                                                                         \
    X(curl_, easy_getinfo)                                                                         \
    X(curl_, easy_header)                                                                          \
    X(curl_, easy_init)                                                                            \
    X(curl_, easy_setopt)                                                                          \
    X(curl_, easy_strerror)                                                                        \
    X(curl_, free)                                                                                 \
    X(curl_, global_cleanup)                                                                       \
    X(curl_, global_init)                                                                          \
    X(curl_, multi_add_handle)                                                                     \
    X(curl_, multi_cleanup)                                                                        \
    X(curl_, multi_info_read)                                                                      \
    X(curl_, multi_init)                                                                           \
    X(curl_, multi_perform)                                                                        \
    X(curl_, multi_poll)                                                                           \
    X(curl_, multi_remove_handle)                                                                  \
    X(curl_, multi_setopt)                                                                         \
    X(curl_, multi_strerror)                                                                       \
    X(curl_, slist_append)                                                                         \
    X(curl_, slist_free_all)                                                                       \
    X(curl_, url)                                                                                  \
    X(curl_, url_cleanup)                                                                          \
    X(curl_, url_get)                                                                              \
    X(curl_, url_set)

static struct {
    LIBCURL(LIBRARY_FIELD)
} curl;

static int open_libcurl(struct err *err)
{
    static const char *const NAMES[] = {LIBCURL(LIBRARY_NAME)};
    static struct library library = {"libcurl.so.4", NAMES, ARRAY_LEN(NAMES), &curl, false};
    return library_open(&library, err);
}

struct http {
    struct http_settings settings; /* strings are borrowed */
    void *multi;                   /* CURLM, with connections of its own */
};

struct http_transfer {
    struct http *http;  /* borrowed */
    struct arena arena; /* strings of the request and of the head */
    const char *shown;  /* the URL, for messages */
    void *easy;         /* CURL; NULL: nothing is to be read */
    bool is_file;       /* file://: its head is known from the start */
    void *headers;      /* struct curl_slist */
    char *error_text;
    struct http_head head;
    bool has_head;
    bool is_done;
    bool is_redirected;
    bool drops_body; /* the body of an error status */
    int result;      /* CURLcode, once is_done */
    struct err err;  /* a callback's, or the file's */
    uint64_t header_bytes;
    http_head_fn on_head;
    http_body_fn on_body;
    void *ctx;
};

#define HTTP_PROXY_LOGIN "%s: the proxy requires a login" /* ERR_AUTH, with and without a tunnel */
#define KEPT_CONNECTIONS 32L

static void transfer_ended(CURL *easy, CURLcode result)
{
    struct http_transfer *transfer = NULL;
    if (curl.easy_getinfo(easy, CURLINFO_PRIVATE, &transfer) != CURLE_OK || !transfer) {
        return;
    }
    transfer->is_done = true;
    transfer->result = (int)result;
}

static void take_ended(struct http *http)
{
    const CURLMsg *message;
    int n_left;
    while ((message = curl.multi_info_read(http->multi, &n_left))) {
        if (message->msg == CURLMSG_DONE) {
            transfer_ended(message->easy_handle, message->data.result);
        }
    }
}

int http_wait(struct http *http, int64_t max_wait_ns, struct err *err)
{
    int n_running;
    CURLMcode code = curl.multi_poll(http->multi, NULL, 0, (int)(max_wait_ns / NS_PER_MS), NULL);
    code = code == CURLM_OK ? curl.multi_perform(http->multi, &n_running) : code;
    take_ended(http);
    return code == CURLM_OK ? 0
                            : err_set(err, ERR_INTERNAL, "libcurl: %s", curl.multi_strerror(code));
}

/* --- how it ended ----------------------------------------------------------------------------------- */

static enum err_code code_of(const struct http_transfer *transfer, CURLcode result, long status)
{
    switch ((int)result) {
    case CURLE_OPERATION_TIMEDOUT:
        return ERR_TIMEOUT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
        return ERR_INTEGRITY;
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_URL_MALFORMAT:
        return transfer->is_redirected ? ERR_FETCH : ERR_USAGE;
    case CURLE_TOO_MANY_REDIRECTS:
        return ERR_FETCH;
    case CURLE_UNSUPPORTED_PROTOCOL: /* the scheme of a redirect; or the answer is not HTTP */
        return status / 100 == 3 ? ERR_FETCH : ERR_NET;
    case CURLE_LOGIN_DENIED:
    case CURLE_AUTH_ERROR:
        return ERR_AUTH;
    case CURLE_OUT_OF_MEMORY: /* also what libcurl reports for a header line over its limit */
        return transfer->header_bytes > 0 && !transfer->has_head ? ERR_FETCH : ERR_INTERNAL;
    default:
        return ERR_NET;
    }
}

/* Fills *err from libcurl's result. */
static int transfer_failed(struct http_transfer *transfer, struct err *err)
{
    CURLcode result = (CURLcode)transfer->result;
    long status = 0;
    long proxy_status = 0;
    long n_redirects = 0;
    const char *text = transfer->error_text[0] ? transfer->error_text : curl.easy_strerror(result);
    bool is_long_line =
        result == CURLE_OUT_OF_MEMORY && code_of(transfer, result, status) == ERR_FETCH;
    (void)curl.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl.easy_getinfo(transfer->easy, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    (void)curl.easy_getinfo(transfer->easy, CURLINFO_REDIRECT_COUNT, &n_redirects);
    transfer->is_redirected = n_redirects > 0 || status / 100 == 3;
    for (char *c = transfer->error_text; *c; c++) {
        *c = *c < ' ' || *c == 0x7f ? '?' : *c;
    }
    if (proxy_status == 407) {
        return err_set(err, ERR_AUTH, HTTP_PROXY_LOGIN, transfer->shown);
    }
    if (proxy_status == 403) {
        return err_set(err, ERR_AUTH, "%s: the proxy does not allow it (403)", transfer->shown);
    }
    return err_set(err, code_of(transfer, result, status), "%s: %s%s", transfer->shown,
                   transfer->is_redirected ? "redirected: " : "",
                   is_long_line ? "a header line is longer than libcurl accepts" : text);
}

#define CONNECT_TIMEOUT_NS (15 * NS_PER_S)
#define STALL_TIMEOUT_NS   (30 * NS_PER_S)
#define LEAST_BYTES_PER_S  1000L /* also configured for git */
#define BUFFER_BYTES       (256L * 1024)
/* The heads of all answers of a transfer, redirects and all; some libcurl end at 300 KiB. */
#define HEADER_BYTES_MAX (256u << 10)

int http_check_secret(const char *path, struct err *err)
{
    struct stat info;
    CLEANUP(fd) int fd = -1;
    if (!path) {
        return 0;
    }
    if (fs_open(path, &fd, &info, err) < 0) {
        return -1;
    }
    if (info.st_mode & (S_IRWXG | S_IRWXO)) {
        return err_set(err, ERR_AUTH, "%s holds secrets and has mode %04o: chmod 600 it", path,
                       (unsigned)info.st_mode & 07777);
    }
    return 0;
}

static int make_multi(struct http *http, struct err *err)
{
    bool is_bad = false;
    http->multi = curl.multi_init();
    if (!http->multi) {
        return err_set(err, ERR_INTERNAL, "libcurl: curl_multi_init failed");
    }
    is_bad |= curl.multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING) != CURLM_OK;
    is_bad |= curl.multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, KEPT_CONNECTIONS) != CURLM_OK;
    return is_bad ? err_set(err, ERR_INTERNAL, "libcurl: curl_multi_setopt failed") : 0;
}

int http_new(const struct http_settings *settings, struct http **ret_http, struct err *err)
{
    CLEANUP(http) struct http *http = NULL;
    if (http_check_secret(settings->netrc_path, err) < 0 ||
        http_check_secret(settings->cookie_path, err) < 0) {
        return -1;
    }
    if (open_libcurl(err) < 0) {
        return -1;
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_set(err, ERR_INTERNAL, "libcurl: curl_global_init failed");
    }
    http = xcalloc(1, sizeof(*http));
    http->settings = *settings;
    if (!settings->ca_path) {
        http->settings.ca_path = getenv("SSL_CERT_FILE");
    }
    if (!settings->stall_timeout_ns) {
        http->settings.stall_timeout_ns = STALL_TIMEOUT_NS;
    }
    if (make_multi(http, err) < 0) {
        return -1;
    }
    *ret_http = http;
    http = NULL;
    return 0;
}

void http_free(struct http *http)
{
    if (!http) {
        return;
    }
    curl.multi_cleanup(http->multi);
    free(http);
    curl.global_cleanup();
}

/* --- the head ------------------------------------------------------------------------------------- */

static struct str header_of(struct http_transfer *transfer, const char *name)
{
    struct curl_header *header = NULL;
    struct str value;
    if (curl.easy_header(transfer->easy, name, 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
        return STR_EMPTY;
    }
    value = str_trim(str_of(header->value));
    return header_value_is_plain(value) ? str_dup(&transfer->arena, value) : STR_EMPTY;
}

static int64_t info_of(struct http_transfer *transfer, CURLINFO what)
{
    curl_off_t value = -1;
    return curl.easy_getinfo(transfer->easy, what, &value) == CURLE_OK ? value : -1;
}

static void read_range(struct http_transfer *transfer, struct http_head *head)
{
    struct str value = header_of(transfer, "Content-Range");
    struct content_range range;
    bool is_one = value.ptr && content_range_parse(value, &range);
    if (head->status == 200) {
        head->total_bytes = head->content_bytes;
    }
    if (is_one && (head->status == 206 || head->status == 416)) {
        head->total_bytes = range.total_bytes;
    }
    if (is_one && head->status == 206 && range.has_range) {
        head->has_content_range = true;
        head->first_byte = range.first;
    }
}

static void read_head(struct http_transfer *transfer)
{
    struct http_head *head = &transfer->head;
    long status = 0;
    long version = 0;
    bool is_chunked = header_of(transfer, "Transfer-Encoding").len > 0;
    (void)curl.easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)curl.easy_getinfo(transfer->easy, CURLINFO_HTTP_VERSION, &version);
    head->status = (int)status;
    head->content_bytes = info_of(transfer, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    head->total_bytes = -1;
    head->is_delimited = head->content_bytes >= 0 || is_chunked || version > CURL_HTTP_VERSION_1_1;
    head->is_encoded = content_encoding_changes(header_of(transfer, "Content-Encoding"));
    int64_t retry_after_s = info_of(transfer, CURLINFO_RETRY_AFTER);
    head->retry_after_ns =
        retry_after_s > 0 && retry_after_s < INT64_MAX / NS_PER_S ? retry_after_s * NS_PER_S : -1;
    head->etag = header_of(transfer, "ETag");
    head->last_modified = header_of(transfer, "Last-Modified");
    read_range(transfer, head);
}

/* Two readers could disagree about which of them ends the body. */
static bool has_two_lengths(const struct http_transfer *transfer)
{
    struct curl_header *first = NULL;
    return curl.easy_header(transfer->easy, "Content-Length", 0, CURLH_HEADER, -1, &first) ==
               CURLHE_OK &&
           first->amount > 1;
}

/* Gives the head to the callback; -1: transfer->err is set. */
static int transfer_give_head(struct http_transfer *transfer)
{
    if (transfer->has_head) {
        return 0;
    }
    if (!transfer->is_file) {
        read_head(transfer);
    }
    transfer->has_head = true;
    if (!transfer->is_file && has_two_lengths(transfer)) {
        return err_set(&transfer->err, ERR_FETCH, "%s: more than one Content-Length",
                       transfer->shown);
    }
    if (transfer->head.status == 407) {
        return err_set(&transfer->err, ERR_AUTH, HTTP_PROXY_LOGIN, transfer->shown);
    }
    transfer->drops_body = transfer->head.status >= 400;
    if (transfer->on_head &&
        transfer->on_head(transfer->ctx, &transfer->head, &transfer->err) < 0) {
        ASSERT(transfer->err.code != ERR_NONE);
        return -1;
    }
    return 0;
}

/* Likewise the body. */
static int transfer_give_body(struct http_transfer *transfer, const uint8_t *ptr, size_t len)
{
    if (transfer->drops_body || !transfer->on_body) {
        return 0;
    }
    if (transfer->on_body(transfer->ctx, ptr, len, &transfer->err) < 0) {
        ASSERT(transfer->err.code != ERR_NONE);
        return -1;
    }
    return 0;
}

/* libcurl before 8.3 takes any number of lines. */
static size_t on_header(char *ptr UNUSED, size_t size, size_t n, void *ctx)
{
    struct http_transfer *transfer = ctx;
    transfer->header_bytes += size * n;
    if (transfer->header_bytes > HEADER_BYTES_MAX) {
        (void)!err_set(&transfer->err, ERR_FETCH, "%s: more than %u bytes of headers",
                       transfer->shown, HEADER_BYTES_MAX);
        return 0;
    }
    return size * n;
}

static size_t on_write(char *ptr, size_t size, size_t n, void *ctx)
{
    struct http_transfer *transfer = ctx;
    size_t len = size * n;
    if (transfer_give_head(transfer) < 0 ||
        transfer_give_body(transfer, (const uint8_t *)ptr, len) < 0) {
        return len ? 0 : CURL_WRITEFUNC_PAUSE; /* both end or stop it; len is never 0 */
    }
    return len;
}

/* --- URLs ------------------------------------------------------------------------------------------- */

static void free_url(CURLU *url)
{
    if (url) {
        curl.url_cleanup(url);
    }
}

static void free_text(char *text)
{
    if (text) {
        curl.free(text);
    }
}

CLEANUP_POINTER(url, CURLU, free_url);
CLEANUP_POINTER(text, char, free_text);

char *http_url_shown(struct arena *arena, const char *url)
{
    static const CURLUPart HIDDEN[] = {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                                       CURLUPART_QUERY, CURLUPART_FRAGMENT};
    CLEANUP(url) CURLU *parts = open_libcurl(ERR_IGNORED) < 0 ? NULL : curl.url();
    CLEANUP(text) char *text = NULL;
    bool is_bad = !parts || curl.url_set(parts, CURLUPART_URL, url, 0) != CURLUE_OK;
    for (size_t idx = 0; !is_bad && idx < ARRAY_LEN(HIDDEN); idx++) {
        is_bad = curl.url_set(parts, HIDDEN[idx], NULL, 0) != CURLUE_OK;
    }
    is_bad = is_bad || curl.url_get(parts, CURLUPART_URL, &text, 0) != CURLUE_OK;
    return arena_printf(arena, "%s", is_bad ? "(no URL)" : text);
}

/* --- a transfer ------------------------------------------------------------------------------------ */

#define SET(option, value) (is_bad |= curl.easy_setopt(easy, (option), (value)) != CURLE_OK)

static int set_options(struct http_transfer *transfer, const struct http_request *request,
                       struct err *err)
{
    const struct http_settings *settings = &transfer->http->settings;
    CURL *easy = transfer->easy;
    bool is_bad = false;
    bool is_secure = strncasecmp(request->url, "https:", 6) == 0;
    SET(CURLOPT_PRIVATE, transfer);
    SET(CURLOPT_ERRORBUFFER, transfer->error_text);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L); /* ending a transfer does not wait for a pending name lookup */
    SET(CURLOPT_USERAGENT, "reperf/" REPERF_VERSION);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, transfer);
    SET(CURLOPT_WRITEFUNCTION, on_write);
    SET(CURLOPT_WRITEDATA, transfer);
    /* Digests and ranges refer to unencoded bytes. */
    transfer->headers = curl.slist_append(NULL, "Accept-Encoding: identity");
    SET(CURLOPT_HTTPHEADER, transfer->headers);
    SET(CURLOPT_URL, request->url);
    SET(CURLOPT_PROTOCOLS_STR, transfer->is_file ? "file" : "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, (long)HTTP_REDIRECTS_MAX);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_BUFFERSIZE, BUFFER_BYTES);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(CONNECT_TIMEOUT_NS / NS_PER_MS));
    SET(CURLOPT_LOW_SPEED_LIMIT, LEAST_BYTES_PER_S);
    SET(CURLOPT_LOW_SPEED_TIME, (long)((settings->stall_timeout_ns + NS_PER_S - 1) / NS_PER_S));
    if (settings->proxy) {
        SET(CURLOPT_PROXY, settings->proxy);
    }
    if (settings->ca_path) {
        SET(CURLOPT_CAINFO, settings->ca_path);
    }
    if (settings->netrc_path) {
        SET(CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
        SET(CURLOPT_NETRC_FILE, settings->netrc_path);
    }
    if (settings->cookie_path) {
        SET(CURLOPT_COOKIEFILE, settings->cookie_path);
    }
    if (request->has_range) {
        SET(CURLOPT_RANGE, arena_printf(&transfer->arena, "%" PRIu64 "-%" PRIu64,
                                        request->first_byte, request->last_byte));
    }
    return is_bad || !transfer->headers ? err_set(err, ERR_INTERNAL, "libcurl refuses an option")
                                        : 0;
}

static int start_curl(struct http_transfer *transfer, const struct http_request *request,
                      struct err *err)
{
    transfer->error_text = arena_alloc(&transfer->arena, CURL_ERROR_SIZE, 1);
    transfer->easy = curl.easy_init();
    if (!transfer->easy) {
        return err_set(err, ERR_INTERNAL, "libcurl: curl_easy_init failed");
    }
    if (set_options(transfer, request, err) < 0) {
        return -1;
    }
    return curl.multi_add_handle(transfer->http->multi, transfer->easy) == CURLM_OK
               ? 0
               : err_set(err, ERR_INTERNAL, "libcurl: curl_multi_add_handle failed");
}

/* ---- files ---- */

static void set_head(struct http_transfer *transfer, const struct stat *info,
                     const struct http_request *request)
{
    struct http_head *head = &transfer->head;
    uint64_t size_bytes = (uint64_t)info->st_size;
    head->status = 200;
    head->content_bytes = head->total_bytes = info->st_size;
    head->is_delimited = true;
    head->etag = str_printf(&transfer->arena, "\"%jx-%jx-%jx.%09ld\"", (uintmax_t)info->st_ino,
                            (uintmax_t)info->st_size, (uintmax_t)info->st_mtim.tv_sec,
                            info->st_mtim.tv_nsec);
    if (request->has_range && request->first_byte >= size_bytes) {
        head->status = 416;
        head->content_bytes = 0;
    } else if (request->has_range) {
        uint64_t last = request->last_byte < size_bytes ? request->last_byte : size_bytes - 1;
        head->status = 206;
        head->has_content_range = true;
        head->first_byte = request->first_byte;
        head->content_bytes = (int64_t)(last - request->first_byte + 1);
    }
}

/* What is wrong with the file becomes an answer (404, 403, 416) as from a server. libcurl reads what was asked for in one
   call: who asks for ranges does not wait for long. */
static int start_file(struct http_transfer *transfer, const char *path,
                      const struct http_request *request, struct err *err)
{
    struct stat info;
    transfer->is_file = true;
    transfer->head.retry_after_ns = transfer->head.total_bytes = -1;
    if (stat(path, &info) < 0 || access(path, R_OK) < 0) {
        if (errno != ENOENT && errno != ENOTDIR && errno != EACCES && errno != EPERM) {
            return err_errno(err, "open", path);
        }
        transfer->head.status = errno == ENOENT || errno == ENOTDIR ? 404 : 403;
    } else if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_IO, "open %s: expected a regular file", path);
    } else {
        set_head(transfer, &info, request);
    }
    transfer->is_done = transfer->head.status >= 400;
    return transfer->is_done ? 0 : start_curl(transfer, request, err);
}

/* Shows no part of an unreadable URL: it may contain a password anywhere. */
static int start_by_scheme(struct http_transfer *transfer, const struct http_request *request,
                           struct err *err)
{
    CLEANUP(url) CURLU *url = curl.url();
    CLEANUP(text) char *scheme = NULL;
    CLEANUP(text) char *path = NULL;
    if (strlen(request->url) > HTTP_URL_MAX || !url ||
        curl.url_set(url, CURLUPART_URL, request->url, 0) != CURLUE_OK ||
        curl.url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK) {
        return err_set(err, ERR_USAGE, "%s: expected a URL", transfer->shown);
    }
    if (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0) {
        return start_curl(transfer, request, err);
    }
    if (strcmp(scheme, "file") == 0 && transfer->http->settings.allows_file) {
        if (curl.url_get(url, CURLUPART_PATH, &path, CURLU_URLDECODE) != CURLUE_OK) {
            return err_set(err, ERR_USAGE, "%s: expected a path", transfer->shown);
        }
        return start_file(transfer, path, request, err);
    }
    return err_set(err, ERR_USAGE, "%s: expected a URL of http or https%s", transfer->shown,
                   transfer->http->settings.allows_file ? " or a file" : "");
}

int http_start(struct http *http, const struct http_request *request,
               struct http_transfer **ret_transfer, struct err *err)
{
    struct http_transfer *transfer = xcalloc(1, sizeof(*transfer));
    transfer->http = http;
    transfer->shown = http_url_shown(&transfer->arena, request->url);
    transfer->on_head = request->on_head;
    transfer->on_body = request->on_body;
    transfer->ctx = request->ctx;
    if (start_by_scheme(transfer, request, err) < 0) {
        http_transfer_free(transfer);
        return -1;
    }
    *ret_transfer = transfer;
    return 0;
}

void http_transfer_free(struct http_transfer *transfer)
{
    if (!transfer) {
        return;
    }
    if (transfer->easy) {
        /* Fails only if it is not in there. */
        (void)curl.multi_remove_handle(transfer->http->multi, transfer->easy);
        curl.easy_cleanup(transfer->easy);
    }
    curl.slist_free_all(transfer->headers);
    arena_release(&transfer->arena);
    free(transfer);
}

void http_set_rate(struct http_transfer *transfer, uint64_t rate_bytes_per_s)
{
    /* Half the rate, if that is less than what every transfer has to bring. */
    long least = rate_bytes_per_s && rate_bytes_per_s / 2 < LEAST_BYTES_PER_S
                     ? (long)(rate_bytes_per_s / 2)
                     : LEAST_BYTES_PER_S;
    if (transfer->easy) {
        (void)curl.easy_setopt(transfer->easy, CURLOPT_MAX_RECV_SPEED_LARGE,
                               (curl_off_t)rate_bytes_per_s);
        (void)curl.easy_setopt(transfer->easy, CURLOPT_LOW_SPEED_LIMIT, least);
    }
}

/* Head of an answer without a body, then the end. */
static int finish(struct http_transfer *transfer, struct err *err)
{
    if (transfer->err.code == ERR_NONE && transfer->result == CURLE_OK) {
        (void)!transfer_give_head(transfer);
    }
    if (transfer->err.code != ERR_NONE) {
        return err_pass(err, &transfer->err);
    }
    return transfer->result == CURLE_OK ? 0 : transfer_failed(transfer, err);
}

enum step http_step(struct http_transfer *transfer, struct err *err)
{
    if (!transfer->is_done) {
        return STEP_AGAIN;
    }
    return finish(transfer, err) < 0 ? STEP_FAIL : STEP_DONE;
}
