/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "view/findings_out.h"

#include "base/fs.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "codec/json_override.h"
#include "report/report_tables.h"
#include "view/address.h"

/* Names of bases, whose folders the reader knows. Source: SARIF 2.1.0, 3.14.14. */
#define BASE_CHECKOUT "%SRCROOT%"
#define BASE_PROGRAM  "%REPERF%"
#define BASE_LOGS     "%LOGS%"

struct manifest {    /* of one report */
    struct str text; /* empty: it could not be read, and no line of it is known */
    struct spelled spelled;
    struct str uri;
    const char *base; /* NULL: the uri is absolute */
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
        at = str_rcut(at, 1, "/");
    }
    return here;
}

/* What of the path lies below the folder; empty where it is not in it. */
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
    *ret = (struct manifest){.uri = report->path, .base = BASE_PROGRAM};
    if (path.ptr && (json_read_text(arena, str_z(arena, path), &ret->text, ERR_IGNORED) < 0 ||
                     report_spell_out(arena, ret->text, typed, &ret->spelled, ERR_IGNORED) < 0)) {
        ret->text = STR_EMPTY;
    }
    if (rest.ptr) {
        ret->uri = rest;
        ret->base = BASE_CHECKOUT;
    } else if (!is_own && path.ptr) {
        ret->uri = str_printf(arena, "file://%.*s", STR_ARG(path));
        ret->base = NULL;
    }
}

/* ---- writing ---- */

static void write_rules(struct json_out *out)
{
    for (size_t idx = 0; idx < N_FINDING_RULES; idx++) {
        const struct finding_rule *rule = &FINDING_RULES[idx];
        struct str help = finding_help(rule);
        JW(out,
           "{'id': ?, 'shortDescription': {'text': ?}, 'fullDescription': {'text': ?},"
           " 'help': {'text': ?}, 'defaultConfiguration': {'level': ?}}",
           str_of(rule->id), str_of(rule->title), help, help,
           str_of(FINDING_LEVEL_NAMES[rule->level]));
    }
}

static int64_t rule_index(const char *id)
{
    const struct finding_rule *rule = Z_NAMED(FINDING_RULES, N_FINDING_RULES, id, str_of(id));
    return rule ? rule - FINDING_RULES : -1;
}

/* A line or column of the region that is 0 is not known, and not written. base NULL: the uri is
   absolute, and encoded. */
static void write_place(struct json_out *out, struct str uri, const char *base,
                        struct json_region region)
{
    CLEANUP(strbuf) struct strbuf encoded = STRBUF(3 * uri.len + 1);
    address_add_path(&encoded, uri);
    JW(out, "'physicalLocation': {'artifactLocation': {'uri': ?",
       base ? strbuf_str(&encoded) : uri);
    if (base) {
        jw_z(out, "uriBaseId", base);
    }
    jw_end_object(out);
    if (region.line > 0) {
        jw_object(out, "region");
        jw_i64(out, "startLine", region.line);
        if (region.column > 0) {
            jw_i64(out, "startColumn", region.column);
            jw_i64(out, "endLine", region.end_line);
            jw_i64(out, "endColumn", region.end_column);
        }
        jw_end_object(out);
    }
    jw_end_object(out);
}

/* What lies in a row of a table is shown as that row. */
static struct str written_at(struct arena *arena, const struct manifest *manifest, struct str place)
{
    struct str at = str_of(report_written_at(arena, &manifest->spelled, place));
    int64_t row = str_find(at, STR_LIT("].rows["));
    int64_t end = row < 0 ? -1 : str_find(str_sub(at, (size_t)row + 1, SIZE_MAX), STR_LIT("]"));
    return end < 0 ? at : str_sub(at, 0, (size_t)(row + end) + 2);
}

static void write_location(struct arena *arena, struct json_out *out,
                           const struct manifest *manifest, const struct spot *at)
{
    struct json_region region = {0};
    struct str place = str_of(spot_path(arena, at, false));
    if (manifest->text.len) {
        region = json_region_of(manifest->text, written_at(arena, manifest, place));
    }
    jw_fill(out, "'locations': [{", NULL);
    write_place(out, manifest->uri, manifest->base, region);
    JW(out, "'logicalLocations': [{'fullyQualifiedName': ?}]}]",
       at->of_case && !at->below ? at->of_case->id : place);
}

static void write_log(struct arena *arena, struct json_out *out, const struct spot *at)
{
    struct str log = report_log_path(at->report, at->log);
    struct str url = address_file(arena, &at->report->logs_source, log, 0);
    jw_fill(out, "'relatedLocations': [{", NULL);
    write_place(out, url.len ? url : log, url.len ? NULL : BASE_LOGS,
                (struct json_region){.line = at->line});
    jw_fill(out, "'message': {'text': 'the log that shows it'}}]", NULL);
}

/* What stays while lines move and numbers change: the rule, the report, the case or place, and the log. */
static const char *lasting_name(struct arena *arena, const struct finding *f)
{
    return arena_printf(arena, "%s\n%.*s\n%s\n%.*s", f->id, STR_ARG(f->at.report->id),
                        spot_path(arena, &f->at, true),
                        STR_ARG(report_log_path(f->at.report, f->at.log)));
}

static void write_results(struct arena *arena, struct json_out *out,
                          const struct manifest *manifest, const struct findings *list)
{
    const char **names = arena_array(arena, const char *, list->n + 1);
    for (size_t idx = 0; idx < list->n; idx++) {
        const struct finding *f = &list->items[idx];
        size_t nth = 0; /* of those with the same name */
        uint8_t sha256[SHA256_BYTES];
        names[idx] = lasting_name(arena, f);
        for (size_t before = 0; before < idx; before++) {
            nth += strcmp(names[before], names[idx]) == 0;
        }
        jw_object(out, NULL);
        jw_z(out, "ruleId", f->id);
        jw_i64(out, "ruleIndex", rule_index(f->id));
        jw_z(out, "level", FINDING_LEVEL_NAMES[f->level]);
        JW(out, "'message': {'text': ?}", f->message);
        write_location(arena, out, manifest, &f->at);
        if (f->at.log.ptr) {
            write_log(arena, out, &f->at);
        }
        sha256_of(str_printf(arena, "%s\n%zu", names[idx], nth), sha256);
        /* The one key that GitHub's code scanning reads. */
        JW(out, "'partialFingerprints': {'primaryLocationLineHash': ?}}",
           str_of(sha256_hex_of(sha256).text));
    }
}

void sarif_write(struct arena *arena, const char *root, const struct sarif_report *reports,
                 size_t n, struct strbuf *buf)
{
    struct str checkout = checkout_of(arena);
    struct json_out out;
    jw_begin(&out, buf, false);
    jw_fill(&out,
            "{'$schema': 'https://json.schemastore.org/sarif-2.1.0.json', 'version': '2.1.0',"
            " 'runs': [{'tool': {'driver': {'name': 'reperf', 'version': '" REPERF_VERSION
            "', 'rules': [",
            NULL);
    write_rules(&out);
    JW(&out,
       "]}}, 'originalUriBaseIds': {"
       "'" BASE_LOGS "': {'description': {'text': ?}},"
       " '" BASE_PROGRAM
       "': {'description': {'text': 'the folder of the manifests that come with reperf'}},"
       " '" BASE_CHECKOUT "': {'description': {'text': 'the checkout in which the command ran'}}},"
       " 'columnKind': 'unicodeCodePoints', 'results': [",
       STR_LIT("the folder of the report's logs, as for --logs"));
    for (size_t idx = 0; idx < n; idx++) {
        struct manifest manifest;
        manifest_of(arena, root, checkout, reports[idx].report, &manifest);
        write_results(arena, &out, &manifest, &reports[idx].findings);
    }
    jw_fill(&out, "]}]}", NULL);
    strbuf_add_char(buf, '\n');
}
