/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/sarif.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "codec/json_region.h"
#include "report/report_tables.h"
#include "view/address.h"

#include <stdlib.h>

/* Names of bases, whose folders the reader knows. Source: SARIF 2.1.0, 3.14.14. */
#define BASE_CHECKOUT "%SRCROOT%"
#define BASE_PROGRAM  "%REPERF%"
#define BASE_LOGS     "%LOGS%"

struct manifest { /* of one report */
    const struct report *report;
    struct str text; /* empty: it could not be read, and no line of it is known */
    struct spelled spelled;
    struct str uri;
    const char *base; /* NULL: the uri is absolute */
};

/* Where a finding is. */
struct spot {
    struct str place;             /* in the manifest: "$.cases[3]" */
    const struct report_case *of; /* the case that it is of; NULL: of none alone */
    struct str log;               /* path in the logs' repository; NULL: no log shows it */
    int64_t log_line;             /* 0: not known */
};

/* ---- where things are ---- */

static struct str real_path(struct arena *arena, const char *path)
{
    char *whole = realpath(path, NULL);
    struct str ret = whole ? str_dup(arena, str_of(whole)) : STR_EMPTY;
    free(whole);
    return ret;
}

/* The git work tree that the command was run in, else its folder. */
static struct str checkout_of(struct arena *arena)
{
    struct str here = real_path(arena, ".");
    for (struct str at = here; at.len > 1; at.len--) {
        const char *folder = str_z(arena, at);
        if (fs_exists(fs_join(arena, folder, ".git"))) {
            return at;
        }
        while (at.len > 1 && at.ptr[at.len - 1] != '/') {
            at.len--;
        }
    }
    return here;
}

/* Of a path below the folder, the rest; NULL of another. */
static struct str below(struct str path, struct str folder)
{
    bool is_below = path.len > folder.len && folder.len > 0 && str_starts(path, folder) &&
                    path.ptr[folder.len] == '/';
    return is_below ? str_sub(path, folder.len + 1, SIZE_MAX) : STR_EMPTY;
}

static void manifest_of(struct arena *arena, const char *root, struct str checkout,
                        const struct report *report, struct manifest *ret)
{
    const char *typed = str_z(arena, report->path);
    const char *own = fs_join(arena, root, typed);
    bool is_own = !report->place.ptr && typed[0] != '/' && fs_exists(own);
    struct str path = real_path(arena, is_own ? own : typed);
    struct str rest = below(path, checkout);
    struct err ignored = {0};
    *ret = (struct manifest){.report = report, .uri = report->path, .base = BASE_PROGRAM};
    if (path.ptr && (json_read_text(arena, str_z(arena, path), &ret->text, &ignored) < 0 ||
                     report_spell_out(arena, ret->text, typed, &ret->spelled, &ignored) < 0)) {
        ret->text = STR_EMPTY;
    }
    if (rest.ptr) {
        ret->uri = rest;
        ret->base = BASE_CHECKOUT;
    } else if (!is_own && path.ptr) {
        ret->uri = str_of(arena_printf(arena, "file://%.*s", STR_ARG(path)));
        ret->base = NULL;
    }
}

static bool has_cell(const struct report_case *c, struct str id)
{
    for (size_t idx = 0; idx < c->n_cells; idx++) {
        if (str_eq(c->cells[idx].id, id)) {
            return true;
        }
    }
    return false;
}

/* "LOG:LINE" or "LOG", below the folder of the report's logs. */
static void spot_log(const struct report *report, struct str where, struct spot *spot)
{
    struct str path = address_log_path(report, where);
    struct err ignored = {0};
    size_t end = path.len;
    while (end > 0 && path.ptr[end - 1] >= '0' && path.ptr[end - 1] <= '9') {
        end--;
    }
    spot->log = path;
    if (end > 0 && end < path.len && path.ptr[end - 1] == ':' &&
        str_to_i64(str_sub(path, end, SIZE_MAX), 1, INT32_MAX, &spot->log_line, &ignored) == 0) {
        spot->log = str_sub(path, 0, end - 1);
    }
}

static bool has_log(const struct report_case *c, struct str log)
{
    for (size_t idx = 0; idx < c->n_logs; idx++) {
        if (str_eq(c->logs[idx], log)) {
            return true;
        }
    }
    return false;
}

/* The finding's cell begins its message ("CELL: ..."), where several cases share a log. */
static bool is_said_of(const struct report_case *c, struct str message)
{
    return str_starts(message, c->id) && message.len > c->id.len && message.ptr[c->id.len] == '#';
}

/* "MANIFEST:$.place", "MANIFEST:CELL", "LOG:LINE" or "LOG". */
static struct spot spot_of(struct arena *arena, const struct report *report,
                           const struct finding *finding)
{
    struct spot spot = {.place = STR_LIT("$")};
    struct str rest = str_sub(finding->where, report->path.len + 1, SIZE_MAX);
    bool is_manifest = str_starts(finding->where, report->path);
    if (is_manifest && str_starts(rest, STR_LIT("$"))) {
        spot.place = rest;
        return spot;
    }
    if (!is_manifest) {
        spot_log(report, finding->where, &spot);
    }
    for (size_t idx = 0; idx < report->n_cases; idx++) {
        const struct report_case *c = &report->cases[idx];
        bool is_of = is_manifest ? has_cell(c, rest) : has_log(c, spot.log);
        if (is_of && (!spot.of || is_said_of(c, finding->message))) {
            spot.of = c;
            spot.place = str_of(arena_printf(arena, "$.cases[%zu].id", idx));
        }
    }
    return spot;
}

/* ---- writing ---- */

static void write_text(struct json_out *out, const char *key, struct str text)
{
    jw_object(out, key);
    jw_str(out, "text", text);
    jw_end_object(out);
}

static void write_rules(struct json_out *out)
{
    jw_array(out, "rules");
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        jw_object(out, NULL);
        jw_z(out, "id", rule->id);
        write_text(out, "shortDescription", str_of(rule->title));
        write_text(out, "fullDescription", str_of(rule->help));
        write_text(out, "help", str_of(rule->help));
        jw_object(out, "defaultConfiguration");
        jw_z(out, "level", finding_level_name(rule->level));
        jw_end_object(out);
        jw_end_object(out);
    }
    jw_end_array(out);
}

static int64_t rule_index(const char *id)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        if (strcmp(FINDING_RULES[idx].id, id) == 0) {
            return (int64_t)idx;
        }
    }
    return -1;
}

/* Of what is not known, 0 and not written. */
static void write_region(struct json_out *out, struct json_region region)
{
    jw_object(out, "region");
    jw_i64(out, "startLine", region.line);
    if (region.column > 0) {
        jw_i64(out, "startColumn", region.column);
        jw_i64(out, "endLine", region.end_line);
        jw_i64(out, "endColumn", region.end_column);
    }
    jw_end_object(out);
}

/* base NULL: the uri is absolute, and encoded. */
static void write_place(struct json_out *out, struct str uri, const char *base,
                        struct json_region region)
{
    CLEANUP(strbuf) struct strbuf encoded;
    strbuf_init(&encoded, 3 * uri.len + 1);
    address_add_path(&encoded, uri);
    jw_object(out, "physicalLocation");
    jw_object(out, "artifactLocation");
    jw_str(out, "uri", base ? strbuf_str(&encoded) : uri);
    if (base) {
        jw_z(out, "uriBaseId", base);
    }
    jw_end_object(out);
    if (region.line > 0) {
        write_region(out, region);
    }
    jw_end_object(out);
}

/* Of a table's row the row, whatever of it is meant. */
static struct str written_at(struct arena *arena, const struct manifest *manifest, struct str place)
{
    struct str at = str_of(report_written_at(arena, &manifest->spelled, place));
    int64_t row = str_find(at, STR_LIT("].rows["));
    int64_t end = row < 0 ? -1 : str_find(str_sub(at, (size_t)row + 1, SIZE_MAX), STR_LIT("]"));
    return end < 0 ? at : str_sub(at, 0, (size_t)(row + end) + 2);
}

static void write_location(struct arena *arena, struct json_out *out,
                           const struct manifest *manifest, const struct spot *spot)
{
    struct json_region region = {0};
    if (manifest->text.len) {
        region = json_region_of(manifest->text, written_at(arena, manifest, spot->place));
    }
    jw_array(out, "locations");
    jw_object(out, NULL);
    write_place(out, manifest->uri, manifest->base, region);
    jw_array(out, "logicalLocations");
    jw_object(out, NULL);
    jw_str(out, "fullyQualifiedName", spot->of ? spot->of->id : spot->place);
    jw_end_object(out);
    jw_end_array(out);
    jw_end_object(out);
    jw_end_array(out);
}

static void write_log(struct arena *arena, struct json_out *out, const struct report *report,
                      const struct spot *spot)
{
    struct str url = address_file(arena, &report->logs_source, spot->log, 0);
    jw_array(out, "relatedLocations");
    jw_object(out, NULL);
    write_place(out, url.len ? url : spot->log, url.len ? NULL : BASE_LOGS,
                (struct json_region){.line = spot->log_line});
    write_text(out, "message", STR_LIT("the log that shows it"));
    jw_end_object(out);
    jw_end_array(out);
}

/* The place with the id of its case or stack for the index: these come and go as a report grows. */
static const char *lasting_place(struct arena *arena, const struct report *report, struct str place)
{
    const struct str cases = STR_LIT("$.cases["), stacks = STR_LIT("$.stacks[");
    bool is_case = str_starts(place, cases);
    size_t from = is_case ? cases.len : stacks.len;
    int64_t end = str_find(place, STR_LIT("]"));
    size_t n = is_case ? report->n_cases : report->n_stacks;
    int64_t idx = 0;
    struct err ignored = {0};
    if ((!is_case && !str_starts(place, stacks)) || end < 0 || n == 0 ||
        str_to_i64(str_sub(place, from, (size_t)end - from), 0, (int64_t)n - 1, &idx, &ignored) <
            0) {
        return str_z(arena, place);
    }
    struct str id = is_case ? report->cases[idx].id : report->stacks[idx].id;
    struct str rest = str_sub(place, (size_t)end + 1, SIZE_MAX);
    return arena_printf(arena, "%s %.*s %.*s", is_case ? "case" : "stack", STR_ARG(id),
                        STR_ARG(rest));
}

/* What stays while lines move and numbers change: the rule, the report, the case or place, the log; and the index among equal
   ones. */
static void write_fingerprint(struct arena *arena, struct json_out *out, const char *rule,
                              const struct report *report, const struct spot *spot, size_t nth)
{
    const char *of =
        arena_printf(arena, "%s\n%.*s\n%s\n%.*s\n%zu", rule, STR_ARG(report->id),
                     lasting_place(arena, report, spot->place), STR_ARG(spot->log), nth);
    uint8_t sha256[SHA256_BYTES];
    sha256_of(str_of(of), sha256);
    jw_object(out, "partialFingerprints");
    jw_z(out, "primaryLocationLineHash",
         sha256_hex_of(sha256).text); /* the one key that GitHub's code scanning reads */
    jw_end_object(out);
}

/* How many findings before it have the same rule, place and log. */
static size_t nth_of(const struct findings *list, const struct spot *spots, size_t idx)
{
    size_t n = 0;
    for (size_t at = 0; at < idx; at++) {
        n += list->items[at].id == list->items[idx].id && spots[at].of == spots[idx].of &&
             str_eq(spots[at].place, spots[idx].place) && str_eq(spots[at].log, spots[idx].log);
    }
    return n;
}

static void write_results(struct arena *arena, struct json_out *out,
                          const struct manifest *manifest, const struct findings *list)
{
    const struct report *report = manifest->report;
    struct spot *spots = arena_array(arena, struct spot, list->n + 1);
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct finding *f = &list->items[idx];
        spots[idx] = spot_of(arena, report, f);
        jw_object(out, NULL);
        jw_z(out, "ruleId", f->id);
        jw_i64(out, "ruleIndex", rule_index(f->id));
        jw_z(out, "level", finding_level_name(f->level));
        write_text(out, "message", f->message);
        write_location(arena, out, manifest, &spots[idx]);
        if (spots[idx].log.ptr) {
            write_log(arena, out, report, &spots[idx]);
        }
        write_fingerprint(arena, out, f->id, report, &spots[idx], nth_of(list, spots, idx));
        jw_end_object(out);
    }
}

static void write_bases(struct json_out *out)
{
    static const char *const BASES[][2] = {
        {BASE_LOGS, "the folder of the report's logs, as for --logs"},
        {BASE_PROGRAM, "the folder of the manifests that come with reperf"},
        {BASE_CHECKOUT, "the checkout in which the command ran"}};
    jw_object(out, "originalUriBaseIds");
    for (size_t idx = 0; idx < ARRAY_LEN(BASES); idx++) {
        jw_object(out, BASES[idx][0]);
        write_text(out, "description", str_of(BASES[idx][1]));
        jw_end_object(out);
    }
    jw_end_object(out);
}

void sarif_write(struct arena *arena, const char *root, const struct sarif_report *reports,
                 size_t n, struct strbuf *buf)
{
    struct str checkout = checkout_of(arena);
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_object(&out, NULL);
    jw_z(&out, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    jw_z(&out, "version", "2.1.0");
    jw_array(&out, "runs");
    jw_object(&out, NULL);
    jw_object(&out, "tool");
    jw_object(&out, "driver");
    jw_z(&out, "name", "reperf");
    jw_z(&out, "version", REPERF_VERSION);
    write_rules(&out);
    jw_end_object(&out);
    jw_end_object(&out);
    write_bases(&out);
    jw_z(&out, "columnKind", "unicodeCodePoints");
    jw_array(&out, "results");
    for (size_t idx = 0; idx < n; idx++) {
        struct manifest manifest;
        manifest_of(arena, root, checkout, reports[idx].report, &manifest);
        write_results(arena, &out, &manifest, &reports[idx].findings);
    }
    jw_end_array(&out);
    jw_end_object(&out);
    jw_end_array(&out);
    jw_end_object(&out);
    strbuf_add_char(buf, '\n');
}
