/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/json_override.h"

#include "codec/json.h"
#include "codec/pattern.h"

#define VALUE_MAX (1u << 20)
#define KEY       "[A-Za-z0-9_-]+"

/* ---- paths ---- */

/* Cuts "key", ".key", "[N]" or "[id]" off the front of *rest, which is not empty. */
static void next_part(struct str *rest, struct json_path_part *part)
{
    bool is_index = rest->ptr[0] == '[';
    size_t from = is_index || rest->ptr[0] == '.';
    size_t to = str_cspan(*rest, from, is_index ? "]" : ".[");
    struct str name = str_sub(*rest, from, to - from);
    *rest = str_sub(*rest, to + is_index, SIZE_MAX);
    *part = is_index ? (struct json_path_part){.id = name} : (struct json_path_part){.key = name};
    if (is_index && str_to_i64(name, 0, INT32_MAX, &part->idx, ERR_IGNORED) == 0) {
        part->id = STR_EMPTY;
    }
}

int json_path_parse(struct str setting, struct json_path_part *parts, size_t *ret_n,
                    struct str *ret_path, struct str *ret_rest, struct err *err)
{
    static const char SETTING[] = "^(?:\\$\\.)?(" KEY "(?:\\." KEY "|\\[[^]]+\\])*)=";
    struct patterns patterns = {.n = 0};
    struct str g[2];
    bool is_one = patterns_find(&patterns, SETTING, setting, g, 2);
    struct str rest = is_one ? g[1] : STR_EMPTY;
    patterns_release(&patterns);
    for (*ret_n = 0; rest.len && *ret_n < JSON_PATH_PARTS_MAX;) {
        next_part(&rest, &parts[(*ret_n)++]);
    }
    if (!is_one || rest.len) {
        return err_set(err, ERR_USAGE,
                       "\"%.*s\": expected PATH=VALUE such as stacks[reperf].env.NAME=1",
                       setting.len < 100 ? (int)setting.len : 100, setting.ptr ? setting.ptr : "");
    }
    *ret_path = g[1];
    *ret_rest = str_sub(setting, g[0].len, SIZE_MAX);
    return 0;
}

/* ---- places in the text, which is known to be JSON ---- */

static size_t skip_blank(struct str text, size_t at)
{
    return str_span(text, at, " \t\r\n");
}

/* A key is compared as written: escapes in keys are not decoded. */
static bool is_key(struct str text, size_t at, size_t end, struct str key)
{
    return end >= at + 2 && str_eq(str_sub(text, at + 1, end - at - 2), key);
}

static bool find_member(struct str text, size_t at, struct str key, struct json_span *place)
{
    *place = (struct json_span){.is_absent = true, .is_empty = true};
    at = skip_blank(text, at + 1);
    while (at < text.len && text.ptr[at] == '"') {
        size_t end = json_end_of(text, at);
        size_t colon = skip_blank(text, end);
        size_t from = colon < text.len ? skip_blank(text, colon + 1) : text.len;
        size_t to = json_end_of(text, from);
        place->is_empty = false;
        if (is_key(text, at, end, key)) {
            *place = (struct json_span){from, to, false, false};
            return true;
        }
        at = skip_blank(text, to);
        if (at < text.len && text.ptr[at] == ',') {
            at = skip_blank(text, at + 1);
        }
    }
    place->from = place->to = at;
    return false;
}

static bool has_id(struct str text, size_t at, struct str id)
{
    struct json_span place = {0};
    return at < text.len && text.ptr[at] == '{' && find_member(text, at, STR_LIT("id"), &place) &&
           place.from < text.len && text.ptr[place.from] == '"' &&
           is_key(text, place.from, place.to, id);
}

static bool find_item(struct str text, size_t at, const struct json_path_part *part,
                      struct json_span *place)
{
    int64_t idx = 0;
    at = skip_blank(text, at + 1);
    while (at < text.len && text.ptr[at] != ']') {
        size_t to = json_end_of(text, at);
        if (part->id.ptr ? has_id(text, at, part->id) : idx == part->idx) {
            *place = (struct json_span){.from = at, .to = to};
            return true;
        }
        idx++;
        at = skip_blank(text, to > at ? to : text.len); /* a NUL byte, in text that is no JSON */
        if (at < text.len && text.ptr[at] == ',') {
            at = skip_blank(text, at + 1);
        }
    }
    return false;
}

bool json_place_step(struct str text, const struct json_path_part *part, struct json_span *place)
{
    const size_t at = place->from;
    const char first = at < text.len ? text.ptr[at] : '\0';
    place->is_absent = false;
    if (part->key.ptr) {
        return first == '{' && find_member(text, at, part->key, place);
    }
    return first == '[' && find_item(text, at, part, place);
}

static int find_place(struct str text, const struct json_path_part *parts, size_t n,
                      struct str path, struct json_span *ret_place, struct err *err)
{
    struct json_span place = {.from = skip_blank(text, 0), .to = text.len};
    for (size_t idx = 0; idx < n; idx++) {
        const struct json_path_part *part = &parts[idx];
        bool is_found = json_place_step(text, part, &place);
        if (!is_found && part->key.ptr && place.is_absent) {
            is_found = idx + 1 == n; /* a new key */
        }
        if (!is_found) {
            struct str name = part->key.ptr ? part->key : part->id;
            return err_set(err, ERR_USAGE, "%.*s: nothing there (at \"%.*s\", part %zu)",
                           STR_ARG(path), STR_ARG(name.ptr ? name : STR_LIT("[]")), idx + 1);
        }
    }
    *ret_place = place;
    return 0;
}

/* ---- values ---- */

/* The value as JSON text. A bare word is text; so is a number, if the old value is text. */
static struct str value_of(struct arena *arena, struct str given, bool is_text)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf buf = STRBUF(VALUE_MAX);
    struct json_out out;
    bool is_json = given.len && json_parse(given, "value", &doc, ERR_IGNORED) == 0;
    bool is_kept = is_json && (!is_text || given.ptr[0] == '"' || str_eq_z(given, "null"));
    if (is_kept) {
        return str_dup(arena, given);
    }
    jw_begin(&out, &buf, true);
    jw_str(&out, NULL, given.len ? given : STR_LIT(""));
    return str_dup(arena, str_trim(strbuf_str(&buf)));
}

int json_override(struct arena *arena, struct str text, struct str setting, bool is_text,
                  struct json_override *ret_override, struct err *err)
{
    struct json_path_part parts[JSON_PATH_PARTS_MAX];
    struct json_override made = {0};
    struct str given = STR_EMPTY;
    struct str path = STR_EMPTY;
    struct json_span place = {0};
    size_t n = 0;
    if (setting.len > VALUE_MAX / 8) {
        return err_set(err, ERR_USAGE, "a setting of more than %u bytes", VALUE_MAX / 8);
    }
    if (json_path_parse(setting, parts, &n, &path, &given, err) < 0 ||
        find_place(text, parts, n, path, &place, err) < 0) {
        return -1;
    }
    made.path = str_dup(arena, path);
    made.value = value_of(arena, given, place.is_absent ? is_text : text.ptr[place.from] == '"');
    if (!place.is_absent) {
        made.was = str_dup(arena, str_sub(text, place.from, place.to - place.from));
    }
    struct str before = str_sub(text, 0, place.from);
    struct str after = str_sub(text, place.to, text.len);
    if (place.is_absent) {
        before = str_trim((struct str){text.ptr, place.from});
        made.text = str_printf(arena, "%.*s%s\"%.*s\": %.*s%.*s", STR_ARG(before),
                               place.is_empty ? "" : ", ", STR_ARG(parts[n - 1].key),
                               STR_ARG(made.value), STR_ARG(after));
    } else {
        made.text =
            str_printf(arena, "%.*s%.*s%.*s", STR_ARG(before), STR_ARG(made.value), STR_ARG(after));
    }
    *ret_override = made;
    return 0;
}

/* A code point has one byte that does not continue another. */
static void advance(struct str text, size_t from, size_t end, int64_t *line, int64_t *column)
{
    for (size_t idx = from; idx < end; idx++) {
        if (text.ptr[idx] == '\n') {
            ++*line;
            *column = 1;
        } else {
            *column += ((unsigned char)text.ptr[idx] & 0xc0) != 0x80;
        }
    }
}

/* The end of a value; of an object or array, the end of its first line. */
static size_t end_of(struct str text, struct json_span place)
{
    char first = place.from < text.len ? text.ptr[place.from] : '\0';
    const char *newline = first == '{' || first == '['
                              ? memchr(text.ptr + place.from, '\n', place.to - place.from)
                              : NULL;
    return newline ? (size_t)(newline - text.ptr) : place.to;
}

struct json_region json_region_of(struct str text, struct str place)
{
    struct json_span found = {.from = skip_blank(text, 0), .to = text.len};
    struct json_path_part part;
    struct json_region ret = {1, 1, 1, 1};
    place = str_sub(place, str_starts(place, STR_LIT("$")), SIZE_MAX);
    while (place.len > 0 && (place.ptr[0] == '.' || place.ptr[0] == '[')) {
        struct json_span next = found;
        next_part(&place, &part);
        if (!json_place_step(text, &part, &next)) {
            break;
        }
        found = next;
    }
    advance(text, 0, found.from, &ret.line, &ret.column);
    ret.end_line = ret.line;
    ret.end_column = ret.column;
    advance(text, found.from, end_of(text, found), &ret.end_line, &ret.end_column);
    return ret;
}
