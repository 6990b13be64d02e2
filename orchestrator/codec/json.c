/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/json.h"

#include "codec/pattern.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/map.h"

#define I64_EXACT_MAX 9007199254740992.0 /* 2^53 */
#define PATH_PARTS    (JSON_DEPTH_MAX + 1)
#define FEW_KEYS      12 /* are compared each with each */

/* ---- grammar: RFC 8259, checked before cJSON sees the text, which alone accepts trailing bytes, bad numbers, control characters
   and bad UTF-8 ---- */

struct scan {
    const char *name;
    const char *start;
    const char *at;
    const char *end;
};

static int scan_fail(const struct scan *s, struct err *err, const char *what)
{
    size_t line = 1;
    const char *line_start = s->start;
    for (const char *c = s->start; c < s->at; c++) {
        if (*c == '\n') {
            line++;
            line_start = c + 1;
        }
    }
    return err_set(err, ERR_MANIFEST, "%s:%zu:%zu: %s", s->name, line,
                   (size_t)(s->at - line_start) + 1, what);
}

/* Whether the next byte is one of these. */
static bool is_at(const struct scan *s, const char *set)
{
    return s->at < s->end && *s->at && strchr(set, *s->at);
}

static void skip_blank(struct scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\n' || *s->at == '\t' || *s->at == '\r')) {
        s->at++;
    }
}

static size_t scan_span(struct scan *s, const char *set)
{
    struct str rest = {s->at, (size_t)(s->end - s->at)};
    size_t n = str_span(rest, 0, set);
    s->at += n;
    return n;
}

static int scan_escape(struct scan *s, struct err *err)
{
    s->at++;
    if (!is_at(s, "\"\\/bfnrtu")) {
        return scan_fail(s, err, "unknown escape in a string");
    }
    const char *digits = s->at + 1;
    if (*s->at++ == 'u') {
        if (scan_span(s, DIGITS "abcdefABCDEF") < 4) {
            return scan_fail(s, err, "expected four hexadecimal digits after \\u");
        }
        s->at = digits + 4;
        if (memcmp(digits, "0000", 4) == 0) {
            return scan_fail(s, err, "a string holds U+0000");
        }
    }
    return 0;
}

/* A character of ASCII that stands for itself. */
static bool is_plain(char c)
{
    return (unsigned char)c < 0x80 && c >= 0x20 && c != '"' && c != '\\';
}

static int scan_string(struct scan *s, struct err *err)
{
    s->at++;
    while (s->at < s->end && *s->at != '"') {
        if (is_plain(*s->at)) {
            s->at++;
            continue;
        }
        if (*s->at == '\\') {
            if (scan_escape(s, err) < 0) {
                return -1;
            }
            continue;
        }
        size_t len = utf8_len((struct str){s->at, (size_t)(s->end - s->at)});
        if (len == 0 || (unsigned char)*s->at < 0x20) {
            return scan_fail(s, err, "bad UTF-8 or a control character in a string");
        }
        s->at += len;
    }
    if (s->at == s->end) {
        return scan_fail(s, err, "unterminated string");
    }
    s->at++;
    return 0;
}

/* At most 40 digits before and after the point, and 3 of the exponent. */
static int scan_number(struct scan *s, struct err *err)
{
    s->at += *s->at == '-';
    bool is_zero = is_at(s, "0");
    size_t n = scan_span(s, DIGITS);
    bool is_good = n > 0 && n <= 40 && !(is_zero && n > 1);
    if (is_good && is_at(s, ".")) {
        s->at++;
        n = scan_span(s, DIGITS);
        is_good = n > 0 && n <= 40;
    }
    if (is_good && is_at(s, "eE")) {
        s->at++;
        s->at += is_at(s, "+-");
        n = scan_span(s, DIGITS);
        is_good = n > 0 && n <= 3;
    }
    return is_good ? 0 : scan_fail(s, err, "bad number");
}

static int scan_scalar(struct scan *s, struct err *err)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    if (*s->at == '"') {
        return scan_string(s, err);
    }
    for (size_t idx = 0; idx < ARRAY_LEN(WORDS); idx++) {
        size_t len = strlen(WORDS[idx]);
        if ((size_t)(s->end - s->at) >= len && memcmp(s->at, WORDS[idx], len) == 0) {
            s->at += len;
            return 0;
        }
    }
    if (is_at(s, "-" DIGITS)) {
        return scan_number(s, err);
    }
    return scan_fail(s, err, "expected a JSON value");
}

/* "key" : of a member. */
static int scan_key(struct scan *s, struct err *err)
{
    skip_blank(s);
    if (!is_at(s, "\"")) {
        return scan_fail(s, err, "expected a key in double quotes");
    }
    if (scan_string(s, err) < 0) {
        return -1;
    }
    skip_blank(s);
    if (!is_at(s, ":")) {
        return scan_fail(s, err, "expected a colon after the key");
    }
    s->at++;
    return 0;
}

/* A scalar, or the beginning of a container, whose end is added to closers: what has to be closed. */
static int scan_value(struct scan *s, char *closers, int *depth, struct err *err)
{
    skip_blank(s);
    if (s->at == s->end) {
        return scan_fail(s, err, "expected a JSON value, found the end");
    }
    if (!is_at(s, "{[")) {
        return scan_scalar(s, err);
    }
    if (*depth == JSON_DEPTH_MAX - 1) {
        return scan_fail(s, err, "nested too deeply");
    }
    closers[(*depth)++] = *s->at++ == '{' ? '}' : ']';
    return 0;
}

/* One value, from where it begins or the blanks before it. */
static int scan_whole(struct scan *s, struct err *err)
{
    char closers[JSON_DEPTH_MAX];
    int depth = 0;
    int status = scan_value(s, closers, &depth, err);
    bool is_first = true; /* of its container */
    while (status == 0 && depth > 0) {
        skip_blank(s);
        char c = s->at < s->end ? *s->at : '\0';
        if (c == closers[depth - 1]) {
            s->at++;
            depth--;
            is_first = false;
        } else if (!is_first && c != ',') {
            return scan_fail(s, err, "expected a comma or a closing bracket");
        } else {
            int before = depth;
            s->at += !is_first;
            status = closers[depth - 1] == '}' ? scan_key(s, err) : 0;
            status = status < 0 ? -1 : scan_value(s, closers, &depth, err);
            is_first = depth > before;
        }
    }
    return status;
}

/* ERR_MANIFEST "name:LINE:COLUMN: ..." if the text is not one JSON value of at most JSON_DEPTH_MAX levels. */
static int json_scan(struct str text, const char *name, struct err *err)
{
    struct scan s = {name, text.ptr, text.ptr, text.ptr + text.len};
    if (scan_whole(&s, err) < 0) {
        return -1;
    }
    skip_blank(&s);
    return s.at == s.end ? 0 : scan_fail(&s, err, "expected nothing after the document");
}

size_t json_end_of(struct str text, size_t at)
{
    struct str rest = str_sub(text, at, text.len);
    struct scan s = {"", rest.ptr, rest.ptr, rest.ptr + rest.len};
    return rest.len && scan_whole(&s, ERR_IGNORED) == 0 ? (size_t)(s.at - text.ptr) : text.len;
}

/* ---- places in a document ---- */

static const cJSON *node_of(const struct json *at)
{
    return at->node;
}

static void path_of(const struct json *at, struct strbuf *path)
{
    const struct json *parts[PATH_PARTS];
    size_t n = 0;
    for (; at->parent && n < PATH_PARTS; at = at->parent) {
        parts[n++] = at;
    }
    strbuf_add_char(path, '$');
    while (n--) {
        if (parts[n]->key) {
            strbuf_printf(path, ".%s", parts[n]->key);
        } else {
            strbuf_printf(path, "[%zu]", parts[n]->idx);
        }
    }
}

int json_fail(const struct json *at, struct err *err, const char *fmt, ...)
{
    CLEANUP(strbuf) struct strbuf path = STRBUF(240);
    char what[ERR_MSG_MAX];
    va_list args;
    path_of(at, &path);
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return err_set(err, ERR_MANIFEST, "%s:%s: %s", at->name, path.ptr, what);
}

const char *json_kind_name(const struct json *at)
{
    switch (node_of(at)->type & 0xff) {
    case cJSON_False:
    case cJSON_True:
        return "a boolean";
    case cJSON_NULL:
        return "null";
    case cJSON_Number:
        return "a number";
    case cJSON_String:
        return "a string";
    case cJSON_Array:
        return "an array";
    default:
        return "an object";
    }
}

static const char *first_again(const cJSON *first)
{
    for (const cJSON *child = first; child; child = child->next) {
        for (const cJSON *before = first; before != child; before = before->next) {
            if (before->string[0] == child->string[0] &&
                strcmp(before->string, child->string) == 0) {
                return child->string;
            }
        }
    }
    return NULL;
}

static int check_keys(const struct json *at, struct err *err)
{
    CLEANUP(map) struct map seen = {0};
    static char mark;
    const cJSON *first = node_of(at)->child;
    size_t n = 0;
    for (const cJSON *child = first; child && n <= FEW_KEYS; child = child->next) {
        n++;
    }
    if (n <= FEW_KEYS) {
        const char *again = first_again(first);
        return again ? json_fail(at, err, "duplicate key \"%.100s\"", again) : 0;
    }
    for (const cJSON *child = first; child; child = child->next) {
        if (!map_add(&seen, str_of(child->string), &mark)) {
            return json_fail(at, err, "duplicate key \"%.100s\"", child->string);
        }
    }
    return 0;
}

/* Depth is at most JSON_DEPTH_MAX (json_scan), so this recursion is bounded. */
static int check_tree(const struct json *at, struct err *err)
{
    struct json item;
    if (json_is_object(at) && check_keys(at, err) < 0) {
        return -1;
    }
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        const cJSON *node = item.node;
        if (cJSON_IsNumber(node) && !isfinite(node->valuedouble)) {
            return json_fail(&item, err, "number out of range");
        }
        if (node->child && check_tree(&item, err) < 0) {
            return -1;
        }
    }
    return 0;
}

/* cJSON allocates each node and string by itself; in a document they are freed as a whole. */
static _Thread_local struct arena *parsed_into;

static void *take_room(size_t size)
{
    return arena_alloc(parsed_into, size, alignof(cJSON));
}

static void leave_room(void *ptr UNUSED)
{
}

/* Before there is a thread, since they are the same for all. */
__attribute__((constructor)) static void set_hooks(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){take_room, leave_room});
}

int json_parse(struct str text, const char *name, struct json_doc *ret_doc, struct err *err)
{
    struct json_doc doc = {.root.name = name};
    if (text.len > JSON_TEXT_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: %zu bytes, expected at most %u", name, text.len,
                       JSON_TEXT_MAX);
    }
    if (json_scan(text, name, err) < 0) {
        return -1;
    }
    parsed_into = &doc.arena;
    doc.root.node = cJSON_ParseWithLength(text.ptr, text.len);
    parsed_into = NULL;
    if (!doc.root.node) {
        json_doc_release(&doc);
        return err_set(err, ERR_MANIFEST, "%s: not a JSON document", name);
    }
    if (check_tree(&doc.root, err) < 0) {
        json_doc_release(&doc);
        return -1;
    }
    doc.root.patterns = arena_new(&doc.arena, struct patterns);
    *ret_doc = doc;
    return 0;
}

int json_read_text(struct arena *arena, const char *path, struct str *ret_text, struct err *err)
{
    struct stat info;
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > JSON_TEXT_MAX) {
        return err_set(err, ERR_MANIFEST, "%s: %lld bytes, expected at most %u", path,
                       (long long)info.st_size, JSON_TEXT_MAX);
    }
    if (fs_read(arena, path, JSON_TEXT_MAX, ret_text, err) < 0) {
        err->code =
            ERR_MANIFEST; /* absent, unreadable, not a file, too large: the error names this document */
        return -1;
    }
    return 0;
}

int json_read_file(const char *path, struct json_doc *ret_doc, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct str text;
    return json_read_text(&arena, path, &text, err) < 0 ? -1 : json_parse(text, path, ret_doc, err);
}

void json_doc_release(struct json_doc *doc)
{
    if (doc->root.patterns) {
        patterns_release(doc->root.patterns);
    }
    arena_release(&doc->arena);
    doc->root = (struct json){0};
}

static const struct json *root_of(const struct json *at)
{
    while (at->parent) {
        at = at->parent;
    }
    return at;
}

const void *json_context(const struct json *at)
{
    return root_of(at)->context;
}

struct patterns *json_patterns(const struct json *at)
{
    return root_of(at)->patterns;
}

bool json_is_null(const struct json *at)
{
    return cJSON_IsNull(node_of(at));
}

bool json_is_object(const struct json *at)
{
    return cJSON_IsObject(node_of(at));
}

bool json_is_array(const struct json *at)
{
    return cJSON_IsArray(node_of(at));
}

bool json_is_str(const struct json *at)
{
    return cJSON_IsString(node_of(at));
}

int json_str(const struct json *at, struct arena *arena, struct str *ret_value, struct err *err)
{
    if (!json_is_str(at)) {
        return json_fail(at, err, "expected a string, found %s", json_kind_name(at));
    }
    *ret_value = str_dup(arena, str_of(node_of(at)->valuestring));
    return 0;
}

int json_i64(const struct json *at, int64_t min, int64_t max, int64_t *ret_value, struct err *err)
{
    double value = node_of(at)->valuedouble;
    if (!cJSON_IsNumber(node_of(at)) || value != floor(value) || fabs(value) > I64_EXACT_MAX) {
        return json_fail(at, err, "expected a whole number up to 2^53, found %s",
                         json_kind_name(at));
    }
    if (min == max && (int64_t)value != min) {
        return json_fail(at, err, "expected %" PRId64 ", found %.0f", min, value);
    }
    if ((int64_t)value < min || (int64_t)value > max) {
        return json_fail(at, err, "expected %" PRId64 " to %" PRId64 ", found %.0f", min, max,
                         value);
    }
    *ret_value = (int64_t)value;
    return 0;
}

int json_f64(const struct json *at, double *ret_value, struct err *err)
{
    if (!cJSON_IsNumber(node_of(at))) {
        return json_fail(at, err, "expected a number, found %s", json_kind_name(at));
    }
    *ret_value = node_of(at)->valuedouble;
    return 0;
}

int json_bool(const struct json *at, bool *ret_value, struct err *err)
{
    if (!cJSON_IsBool(node_of(at))) {
        return json_fail(at, err, "expected true or false, found %s", json_kind_name(at));
    }
    *ret_value = cJSON_IsTrue(node_of(at));
    return 0;
}

bool json_find(const struct json *at, const char *key, struct json *ret_member)
{
    const cJSON *child =
        json_is_object(at) ? cJSON_GetObjectItemCaseSensitive(node_of(at), key) : NULL;
    if (!child) {
        return false;
    }
    *ret_member =
        (struct json){.name = at->name, .node = child, .parent = at, .key = child->string};
    return true;
}

int json_member(const struct json *at, const char *key, struct json *ret_member, struct err *err)
{
    if (!json_is_object(at)) {
        return json_fail(at, err, "expected an object, found %s", json_kind_name(at));
    }
    if (!json_find(at, key, ret_member)) {
        return json_fail(at, err, "expected a member \"%s\", found none", key);
    }
    return 0;
}

int json_expect_array(const struct json *at, size_t max, size_t *ret_n, struct err *err)
{
    size_t n = 0;
    if (!json_is_array(at)) {
        return json_fail(at, err, "expected an array, found %s", json_kind_name(at));
    }
    for (const cJSON *child = node_of(at)->child; child; child = child->next) {
        n++;
    }
    if (n > max) {
        return json_fail(at, err, "expected at most %zu items, found %zu", max, n);
    }
    *ret_n = n;
    return 0;
}

bool json_first(const struct json *at, struct json *ret_item)
{
    const cJSON *child = node_of(at)->child;
    if (!child) {
        return false;
    }
    *ret_item = (struct json){.name = at->name, .node = child, .parent = at};
    ret_item->key = json_is_object(at) ? child->string : NULL;
    return true;
}

bool json_next(struct json *item)
{
    const cJSON *next = node_of(item)->next;
    if (!next) {
        return false;
    }
    item->node = next;
    item->idx++;
    item->key = item->key ? next->string : NULL;
    return true;
}

int json_str_list(const struct json *at, struct arena *arena, size_t max, struct str **ret_items,
                  size_t *ret_n, struct err *err)
{
    struct json item;
    size_t n = 0;
    size_t idx = 0;
    if (json_expect_array(at, max, &n, err) < 0) {
        return -1;
    }
    struct str *items = arena_array(arena, struct str, n ? n : 1);
    for (bool more = json_first(at, &item); more; more = json_next(&item)) {
        if (json_str(&item, arena, &items[idx++], err) < 0) {
            return -1;
        }
    }
    *ret_items = items;
    *ret_n = n;
    return 0;
}

void jw_json(struct json_out *out, const char *key, const struct json *at)
{
    const cJSON *node = node_of(at);
    struct json item;
    bool is_list = json_is_array(at);
    if (is_list || json_is_object(at)) {
        (is_list ? jw_array : jw_object)(out, key);
        for (bool more = json_first(at, &item); more; more = json_next(&item)) {
            jw_json(out, item.key, &item);
        }
        (is_list ? jw_end_array : jw_end_object)(out);
    } else if (cJSON_IsNumber(node)) {
        jw_f64(out, key, node->valuedouble);
    } else if (cJSON_IsBool(node)) {
        jw_bool(out, key, cJSON_IsTrue(node));
    } else {
        jw_z(out, key, node->valuestring); /* NULL: null */
    }
}
