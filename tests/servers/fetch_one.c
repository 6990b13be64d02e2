/* SPDX-License-Identifier: Apache-2.0 */
/* One fetch by net/fetch, for the tests of it: KEY=VALUE arguments, any number of url=. The result goes to stdout as KEY VALUE
   lines, an error to stderr as "CODE: message"; the exit status is the error's. kill_at=BYTES: it kills itself once so many are there,
   and the state says so; a killer from outside comes too late on a busy machine. */
#include "base/base.h"

#include <signal.h>
#include <sys/resource.h>

#include "base/fs.h"
#include "net/fetch.h"

struct options {
    struct http_settings settings;
    struct fetch_spec spec;
    const char *urls[FETCH_MIRRORS_MAX];
    struct fetch_pieces pieces;
    uint8_t md5[MD5_BYTES];
    uint8_t sha256[SHA256_BYTES];
    bool wants_progress;
    uint64_t kill_at_bytes; /* 0: never */
};

static int to_u64(struct str value, uint64_t *ret_value, struct err *err)
{
    int64_t number;
    if (str_to_i64(value, 0, INT64_MAX, &number, err) < 0) {
        return -1;
    }
    *ret_value = (uint64_t)number;
    return 0;
}

/* One SHA-256 in hex a line. */
static int read_pieces(struct options *options, struct arena *arena, const char *path,
                       struct err *err)
{
    uint8_t(*rows)[SHA256_BYTES];
    struct str text, line;
    size_t n = 0;
    if (fs_read(arena, path, 1u << 28, &text, err) < 0) {
        return -1;
    }
    rows = arena_alloc(arena, (text.len / 65 + 1) * SHA256_BYTES, 1);
    while (str_next(&text, '\n', &line)) {
        if (line.len && hex_decode(line, SHA256_BYTES, rows[n++], err) < 0) {
            return -1;
        }
    }
    options->pieces.sha256 = (const uint8_t(*)[SHA256_BYTES])rows;
    options->pieces.n = n;
    options->spec.pieces = &options->pieces;
    return 0;
}

static int take_number(struct options *options, const char *key, struct str value, struct err *err)
{
    struct fetch_spec *spec = &options->spec;
    uint64_t number;
    if (to_u64(value, &number, err) < 0) {
        return -1;
    }
    if (strcmp(key, "size") == 0) {
        spec->size_bytes = (int64_t)number;
    } else if (strcmp(key, "connections") == 0) {
        spec->n_connections = (size_t)number;
    } else if (strcmp(key, "retries") == 0) {
        spec->n_retries = (int)number;
    } else if (strcmp(key, "rate") == 0) {
        spec->rate_bytes_per_s = number;
    } else if (strcmp(key, "spare") == 0) {
        spec->spare_bytes = number;
    } else if (strcmp(key, "kinds") == 0) {
        spec->kinds = (unsigned)number;
    } else if (strcmp(key, "backoff_ms") == 0) {
        spec->backoff_ns = (int64_t)number * NS_PER_MS;
    } else if (strcmp(key, "stall_ms") == 0) {
        options->settings.stall_timeout_ns = (int64_t)number * NS_PER_MS;
    } else if (strcmp(key, "piece_bytes") == 0) {
        options->pieces.piece_bytes = number;
    } else if (strcmp(key, "kill_at") == 0) {
        options->kill_at_bytes = number;
    } else if (strcmp(key, "progress") == 0) {
        options->wants_progress = number != 0;
    } else {
        return err_set(err, ERR_USAGE, "unknown option %s", key);
    }
    return 0;
}

static int take_option(struct options *options, struct arena *arena, const char *argument,
                       struct err *err)
{
    struct fetch_spec *spec = &options->spec;
    struct str rest = str_of(argument);
    struct str key_text;
    const char *key, *value;
    if (!str_next(&rest, '=', &key_text) || !rest.ptr) {
        return err_set(err, ERR_USAGE, "%s: expected KEY=VALUE", argument);
    }
    key = str_z(arena, key_text);
    value = rest.ptr;
    if (strcmp(key, "url") == 0 && spec->n_urls < FETCH_MIRRORS_MAX) {
        options->urls[spec->n_urls++] = value;
    } else if (strcmp(key, "folder") == 0) {
        spec->folder = value;
    } else if (strcmp(key, "sha256") == 0) {
        spec->sha256 = options->sha256;
        return hex_decode(rest, SHA256_BYTES, options->sha256, err);
    } else if (strcmp(key, "md5") == 0) {
        spec->md5 = options->md5;
        return hex_decode(rest, MD5_BYTES, options->md5, err);
    } else if (strcmp(key, "pieces") == 0) {
        return read_pieces(options, arena, value, err);
    } else if (strcmp(key, "netrc") == 0) {
        options->settings.netrc_path = value;
    } else if (strcmp(key, "cookies") == 0) {
        options->settings.cookie_path = value;
    } else if (strcmp(key, "ca") == 0) {
        options->settings.ca_path = value;
    } else if (strcmp(key, "proxy") == 0) {
        options->settings.proxy = value;
    } else {
        return take_number(options, key, rest, err);
    }
    return 0;
}

static void print_result(const struct fetch_result *result, unsigned kinds)
{
    char hex[SHA256_HEX_SIZE];
    struct rusage usage;
    printf("size %" PRIu64 "\n", result->value.size_bytes);
    if (kinds & DIGEST_MD5) {
        hex_encode(result->value.md5, MD5_BYTES, hex);
        printf("md5 %s\n", hex);
    }
    if (kinds & DIGEST_SHA256) {
        hex_encode(result->value.sha256, SHA256_BYTES, hex);
        printf("sha256 %s\n", hex);
    }
    printf("data %s\nurl %s\nreceived %" PRIu64 "\nkept %" PRIu64 "\nagain %" PRIu64 "\n",
           result->data_path, result->url, result->received_bytes, result->kept_bytes,
           result->again_bytes);
    printf("bad_pieces %zu\n", result->n_bad_pieces);
    getrusage(RUSAGE_SELF, &usage);
    printf("rss_kib %ld\ncpu_ms %ld\n", usage.ru_maxrss,
           (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
               (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000);
}

/* What should_stop, which gets no argument, looks at. */
static struct {
    const struct fetch *fetch;
    uint64_t at_bytes;
    bool is_due; /* the step that follows brings the state up to date */
} killed;

static bool kill_self(void)
{
    uint64_t done, total;
    fetch_progress(killed.fetch, &done, &total);
    if (killed.is_due) {
        raise(SIGKILL);
    }
    killed.is_due = done >= killed.at_bytes;
    return false;
}

static int fetch_one(struct options *options, struct err *err)
{
    CLEANUP(pool) struct pool *pool = NULL;
    CLEANUP(http) struct http *http = NULL;
    CLEANUP(fetch) struct fetch *fetch = NULL;
    struct fetch_run run = {.clock = clock_system(), .wants_progress = options->wants_progress};
    const struct fetch_result *result;
    if (pool_new(2, &pool, err) < 0 || http_new(&options->settings, &http, err) < 0) {
        return -1;
    }
    run.http = http;
    run.pool = pool;
    run.should_stop = options->kill_at_bytes ? kill_self : NULL;
    killed.at_bytes = options->kill_at_bytes;
    if (fetch_new(&run, &options->spec, &fetch, err) < 0) {
        return -1;
    }
    killed.fetch = fetch;
    if (fetch_all(fetch, err) < 0) {
        return -1;
    }
    result = fetch_result(fetch);
    print_result(result, options->spec.kinds | (options->spec.sha256 ? 2u : 0) |
                             (options->spec.md5 ? 1u : 0));
    return 0;
}

int main(int argc, char **argv)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct options options = {.settings = {.allows_file = true},
                              .spec = {.name = "the file", .size_bytes = -1}};
    struct err err = {0};
    options.spec.urls = options.urls;
    for (int idx = 1; err.code == ERR_NONE && idx < argc; idx++) {
        if (take_option(&options, &arena, argv[idx], &err) < 0) {
            break;
        }
    }
    if (err.code == ERR_NONE && !options.spec.folder) {
        (void)!err_set(&err, ERR_USAGE, "folder= is missing");
    }
    if (err.code != ERR_NONE || fetch_one(&options, &err) < 0) {
        fprintf(stderr, "%s: %s\n", err_code_name(err.code), err.msg);
    }
    return err_exit_status(err.code);
}
