/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "core/plan_cache.h"

#include "base/fs.h"
#include "base/log.h"
#include "core/json_in.h"
#include "core/json_writer.h"
#include "core/sha256.h"

const char *plan_cache_folder(struct arena *arena)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (cache &&
        cache[0] ==
            '/') { /* a relative one is to be ignored. Source: XDG Base Directory Specification */
        return arena_printf(arena, "%s/reperf/plans", cache);
    }
    return home && home[0] == '/' ? arena_printf(arena, "%s/.cache/reperf/plans", home) : NULL;
}

char *plan_cache_path(struct arena *arena, const char *folder, const char *key)
{
    struct sha256 sha;
    char hex[SHA256_HEX_LEN + 1];
    sha256_init(&sha);
    sha256_add(&sha, key, strlen(key));
    sha256_hex(&sha, hex);
    return arena_printf(arena, "%s/%s.json", folder, hex);
}

/* ---- reading ---- */

enum field { F_VERSION, F_KEY, F_PLAN, F_TIME, F_COUNT };
static const char *const FIELDS[F_COUNT] = {"schema_version", "key", "plan", "time_ns"};

static int field_of(struct str name)
{
    for (int i = 0; i < F_COUNT; i++) {
        if (str_eq_z(name, FIELDS[i])) {
            return i;
        }
    }
    return -1;
}

static bool is_printable(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < ' ' || text.ptr[i] > '~') {
            return false;
        }
    }
    return text.len > 0;
}

static int read_field(struct json_in *in, struct arena *arena, int field, const char *key,
                      struct plan_choice *choice, struct err *err)
{
    struct str text;
    int64_t version = 0;
    if (field == F_VERSION) {
        if (json_in_whole(in, INT32_MAX, &version, err) < 0) {
            return -1;
        }
        return version == PLAN_CACHE_VERSION
                   ? 0
                   : err_set(err, ERR_PARSE, "schema_version %" PRId64 ": expected %d", version,
                             PLAN_CACHE_VERSION);
    }
    if (field == F_TIME) {
        return json_in_whole(in, PLAN_TIME_MAX_NS, &choice->time_ns, err);
    }
    size_t max = field == F_KEY ? PLAN_KEY_MAX : PLAN_CHOICE_MAX;
    if (json_in_text(in, arena, max - 1, &text, err) < 0) {
        return -1;
    }
    if (field == F_KEY) {
        return str_eq_z(text, key) ? 0 : err_set(err, ERR_PARSE, "it is for another key");
    }
    if (!is_printable(text)) {
        return err_set(err, ERR_PARSE, "plan: expected printable text");
    }
    memcpy(choice->plan, text.ptr, text.len);
    choice->plan[text.len] = '\0';
    return 0;
}

int plan_cache_parse(struct arena *arena, struct str text, const char *key,
                     struct plan_choice *ret_choice, struct err *err)
{
    struct json_in in = {.text = text};
    struct plan_choice choice = {0};
    unsigned seen = 0;
    int64_t n_seen = 0;
    bool has_more = false;
    if (json_in_expect(&in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        struct str name;
        if (json_in_more(&in, '}', &n_seen, &has_more, err) < 0) {
            return -1;
        }
        if (!has_more) {
            break;
        }
        if (json_in_text(&in, arena, 32, &name, err) < 0 || json_in_expect(&in, ':', err) < 0) {
            return -1;
        }
        int field = field_of(name);
        if (field < 0 || (seen >> field & 1U) != 0) {
            return err_set(err, ERR_PARSE, "\"%.*s\": %s", STR_ARG(name),
                           field < 0 ? "unknown key" : "occurs twice");
        }
        seen |= 1U << field;
        if (read_field(&in, arena, field, key, &choice, err) < 0) {
            return -1;
        }
    }
    if (json_in_end(&in, err) < 0) {
        return -1;
    }
    if (seen != (1U << F_COUNT) - 1) {
        return err_set(err, ERR_PARSE, "a key is missing");
    }
    *ret_choice = choice;
    return 0;
}

bool plan_cache_find(const char *folder, const char *key, struct plan_choice *ret_choice)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct str text;
    char *path = plan_cache_path(&arena, folder, key);
    if (fs_read(&arena, path, PLAN_FILE_MAX, &text, &err) < 0) {
        if (err.code != ERR_NOT_FOUND) {
            log_line(LOG_WARN, "plan cache: %s; the plan is chosen again", err.msg);
        }
        return false;
    }
    if (plan_cache_parse(&arena, text, key, ret_choice, &err) < 0) {
        log_line(LOG_WARN, "plan cache: %s: %s; the plan is chosen again", path, err.msg);
        return false;
    }
    return true;
}

/* ---- writing ---- */

void plan_cache_put(const char *folder, const char *key, const struct plan_choice *choice)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf text;
    struct err err = {0};
    strbuf_init(&text, PLAN_FILE_MAX);
    struct json_out out = {.buf = &text};
    json_out_open(&out, '{');
    json_out_put_i64(&out, FIELDS[F_VERSION], PLAN_CACHE_VERSION);
    json_out_put_text(&out, FIELDS[F_KEY], key);
    json_out_put_text(&out, FIELDS[F_PLAN], choice->plan);
    json_out_put_i64(&out, FIELDS[F_TIME], choice->time_ns);
    json_out_close(&out, '}');
    strbuf_add_char(&text, '\n');
    ASSERT(!text.is_full);
    if (fs_mkdir_p(folder, &err) < 0 ||
        fs_write_atomic(plan_cache_path(&arena, folder, key), strbuf_str(&text), &err) < 0) {
        log_line(LOG_WARN, "plan cache: %s; the choice is not kept", err.msg);
    }
}
