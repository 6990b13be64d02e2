/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <unistd.h>

#include "base/fs.h"
#include "load/load.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SOURCE                                                                                     \
    "{\"repository\":\"https://example.org/r.git\",\"commit\":\"" COMMIT                           \
    "\",\"path\":\"README.md\",\"date\":\"2020-01-02\"}"
#define CELL(id, printed, unit, derive)                                                            \
    "{\"cell\":\"" id "\",\"metric\":\"throughput\",\"printed\":\"" printed "\",\"unit\":\"" unit  \
    "\",\"table\":\"t\",\"derive\":" derive ",\"rule\":null,\"format\":null,\"also_printed\":[]}"
#define CASE(id, cells)                                                                            \
    "{\"id\":\"" id "\",\"stack\":\"a\",\"environment\":\"e\",\"group\":\"g\",\"format\":\"f\","   \
    "\"rule\":\"f/r\",\"baseline\":null,\"logs\":[\"x/"                                            \
    "1.log\"],\"conditions\":{},\"cells\":[" cells "]}"
#define REPORT(cases)                                                                              \
    "{\"schema_version\":1,\"id\":\"r\",\"title\":\"T\",\"source\":" SOURCE ",\"logs\":" SOURCE    \
    ",\"environments\":[{\"id\":\"e\",\"title\":\"E\",\"nodes\":4,\"gpus_per_node\":8,"            \
    "\"conditions\":{\"cuda\":\"11.2\",\"nccl\":null,\"os\":\"Debian\"},\"source\":" SOURCE "}],"  \
    "\"stacks\":[{\"id\":\"a\",\"framework\":\"fw\",\"label\":\"F W\",\"image\":null,"             \
    "\"image_tag\":null,\"image_digest\":null,\"dataset\":null,\"sources\":[{\"repository\":"      \
    "\"https://example.org/c.git\",\"commit\":null,\"ref\":\"main\",\"printed_url\":null}],"       \
    "\"conditions\":{\"cuda\":\"11.0\",\"seed\":null},\"env\":{\"A\":\"1\",\"B\":null},"           \
    "\"commands\":[{\"purpose\":\"run\",\"nodes\":0,\"gpus\":0,\"precision\":null,\"per\":"        \
    "\"node\",\"printed\":\"go\",\"works\":null}]}],\"cases\":[" cases "]}"
#define RUN_OF(batch)                                                                              \
    "{\"purpose\":\"run\",\"nodes\":2,\"gpus\":16,\"batch\":" batch                                \
    ",\"precision\":\"fp32\",\"per\":\"node\",\"printed\":\"go\",\"works\":null}"
#define ENV           "\"env\":{\"A\":\"1\",\"B\":null},"
#define FULL(members) ENV "\"full\":[{\"title\":\"T\"," members "}],"
#define MOUNTS(kind, name, more)                                                                   \
    FULL("\"image\":\"i\",\"mounts\":[{\"kind\":\"" kind "\",\"name\":\"" name                     \
         "\",\"inside\":\"/s\"" more "}]")
#define ID       "m/fw/fp32/n2g8/bs4"
#define ONE_CELL CELL(ID "#throughput", "117.205", "samples/s", "null")
#define GOOD     REPORT(CASE(ID, ONE_CELL))

static int decode(struct arena *arena, const char *text, struct report *ret, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct json root;
    if (json_parse(str_of(text), "r.json", &doc, err) < 0) {
        return -1;
    }
    doc.context = vocabulary_builtin(arena);
    root = json_root(&doc);
    return report_decode(&root, arena, ret, err);
}

TEST(a_report_is_read)
{
    struct report r = {0};
    const struct report_case *c;
    struct str value = STR_LIT("unchanged");
    PASSES(decode(ARENA, GOOD, &r, ERR));
    assert_int_equal(r.n_cases, 1);
    c = &r.cases[0];
    assert_true(str_eq_z(c->model, "m") && str_eq_z(c->framework, "fw"));
    assert_true(str_eq_z(c->precision, "fp32") && !c->variant.ptr);
    assert_int_equal(c->gpus, 16);
    assert_int_equal(c->batch_per_gpu, 4);
    assert_true(c->cells[0].published == 117.205);
    assert_int_equal(c->cells[0].decimals, 3);
    assert_true(str_eq_z(r.stacks[0].sources[0].ref, "main") && !r.stacks[0].sources[0].commit.ptr);
    assert_true(str_eq_z(r.stacks[0].env[0].value, "1") && !r.stacks[0].env[1].value.ptr);
    assert_ptr_equal(report_case_find(&r, STR_LIT(ID)), c);
    assert_null(report_case_find(&r, STR_LIT("m/fw/fp32/n2g8/bs5")));
    assert_true(str_eq_z(c->cells[0].id, ID "#throughput"));
    assert_true(case_condition(c, "cuda", &value) && str_eq_z(value, "11.0"));
    assert_true(case_condition(c, "os", &value) && str_eq_z(value, "Debian"));
    assert_true(case_condition(c, "nccl", &value) && !value.ptr);
    assert_false(case_condition(c, "ecc", &value));
}

/* `from` occurs in GOOD; `to` in its place is an error whose message holds `says`. */
struct fault {
    const char *from, *to, *says;
};

static char *replace_once(struct arena *arena, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    assert_non_null(at);
    return arena_printf(arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const struct fault FAULTS[] = {
    {"\"schema_version\":1", "\"schema_version\":2", "$.schema_version: expected 1 to 1"},
    {"\"id\":\"r\"", "\"id\":\"R\"", "$.id: expected small letters"},
    {"\"id\":\"r\"", "\"id\":\"r\",\"id\":\"r\"", "duplicate key \"id\""},
    {"\"title\":\"T\"", "\"title\":\"T\",\"x\":1", "unknown key \"x\""},
    {"\"title\":\"T\",", "", "expected a member \"title\""},
    {COMMIT, "0123456789ABCDEF0123456789abcdef01234567", "$.source.commit: expected 40 hex"},
    {COMMIT, "0123456", "$.source.commit: expected 40 hex"},
    {"2020-01-02", "2020-1-2", "date: expected YYYY-MM-DD"},
    {"https://example.org/r.git", "git@example.org:r", "repository: expected https://"},
    {"https://example.org/c.git", "https://example.org/c/tree/main", "that git can clone"},
    {"https://example.org/c.git", "https://example.org/o/c/blob/main/x", "that git can clone"},
    {"https://example.org/c.git", "https://user:word@example.org/o/c", "that git can clone"},
    {"\"path\":\"README.md\"", "\"path\":\"../x\"", "relative path"},
    {"\"cuda\":\"11.2\"", "\"cudda\":\"11.2\"", "\"cudda\" is not one of"},
    {"\"cuda\":\"11.2\"", "\"cuda\":11.2", "conditions.cuda: expected a string"},
    {"\"gpus_per_node\":8", "\"gpus_per_node\":4", "8 GPUs, but environment"},
    {"\"nodes\":4", "\"nodes\":1", "environment \"e\" has 1 of 8"},
    {"\"nodes\":4", "\"nodes\":0", "expected 1 to"},
    {"\"purpose\":\"run\"", "\"purpose\":\"fly\"", "purpose: expected one of pull, build,"},
    {"\"per\":\"node\"", "\"per\":\"rack\"",
     "per: expected one of node, rank, head, found \"rack\""},
    {"\"gpus\":0,", "\"gpus\":0,\"batch\":-1,", "batch: expected 0 to"},
    {"\"commands\":[", "\"commands\":[" RUN_OF("4") ",", "at most one run command"},
    {"\"printed\":\"go\"", "\"printed\":null", "in printed or works"},
    {"\"image_digest\":null", "\"image_digest\":\"sha256:00\"", "image_digest: expected sha256:"},
    {"\"A\":\"1\"", "\"1A\":\"1\"", "a variable's name"},
    {"\"stack\":\"a\"", "\"stack\":\"b\"", "no stack \"b\""},
    {"\"environment\":\"e\"", "\"environment\":\"x\"", "no environment \"x\""},
    {"\"environment\":\"e\"", "\"environment\":null", "expected an environment"},
    {"\"framework\":\"fw\"", "\"framework\":\"other\"", "framework \"fw\", but stack"},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp31/n2g8/bs4\"", "its precision: \"fp31\""},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp32/n2x8/bs4\"", "id: expected model/framework"},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp32/n02g8/bs4\"", "id: expected model/framework"},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp32/n2g8/bs04\"", "id: expected model/framework"},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp32/n2g8\"", "expected model/framework"},
    {"\"id\":\"" ID "\"", "\"id\":\"m/fw/fp32/n2g8/bs4/v/w\"", "id: expected model/framework"},
    {"\"cell\":\"" ID "#", "\"cell\":\"" ID "x#", "cell: expected the case id"},
    {"#throughput\"", "#speedup\"", "cell: expected the case id, # and \"throughput\""},
    {"\"metric\":\"throughput\"", "\"metric\":\"speed\"", "metric: \"speed\""},
    {"\"unit\":\"samples/s\"", "\"unit\":\"samples\"", "unit: \"samples\""},
    {"\"unit\":\"samples/s\"", "\"unit\":\"s\"", "unit: \"s\""},
    {"\"117.205\"", "117.205", "printed: expected a string"},
    {"\"117.205\"", "\"117,205\"", "printed: expected a plain decimal number"},
    {"\"117.205\"", "\"1e3\"", "printed: expected a plain decimal number"},
    {"\"117.205\"", "\"0\"", "printed: expected more than 0"},
    {"\"117.205\"", "\"9999999999999999999\"", "printed: expected a plain decimal number"},
    {"\"f/r\"", "\"g/r\"", "rule: expected one of format f"},
    {"\"f/r\"", "null", "needs a format and a rule"},
    {"\"x/1.log\"", "\"/x/1.log\"", "relative path"},
    {"\"baseline\":null", "\"baseline\":\"" ID "\"", "baseline null"},
    {"\"derive\":null", "\"derive\":{\"kind\":\"ratio\",\"of\":[\"" ID "#throughput\"]}",
     "expected numerator and denominator"},
    {"\"derive\":null", "\"derive\":{\"kind\":\"mode\",\"of\":[]}",
     "kind: expected one of ratio, mean, median, found \"mode\""},
    {"\"derive\":null", "\"derive\":{\"kind\":\"mean\",\"of\":[\"nobody\"]}",
     "derive.of[0]: no cell \"nobody\""},
    {"\"derive\":null", "\"derive\":{\"kind\":\"mean\",\"of\":[\"" ID "#throughput\"]}",
     "it is circular"},
    {"\"logs\":{", "\"logs\":null,\"logs\":{", "duplicate key"},
    {ENV, FULL("\"image\":\"i\",\"why_not\":\"w\""), "an image or why_not, found both"},
    {ENV, MOUNTS("source", "https://example.org/d.git", ""), "a repository of the stack's sources"},
    {ENV, MOUNTS("source", "https://example.org/d.git", ",\"commit\":\"0123\""),
     "commit: expected 40 hex"},
    {ENV, MOUNTS("source", "https://user:word@example.org/o/d", ",\"commit\":\"" COMMIT "\""),
     "mounts[0]: name: "},
    {ENV, MOUNTS("dataset", "d", ",\"commit\":\"" COMMIT "\""), "only a source has one"},
    {ENV, MOUNTS("dataset", "d", ",\"paths\":[\"a\"]"), "only a source has paths"},
    {ENV, MOUNTS("source", "https://h/r", ",\"commit\":\"" COMMIT "\",\"paths\":[]"),
     "1 to 32 paths"},
    {ENV, MOUNTS("source", "https://h/r", ",\"commit\":\"" COMMIT "\",\"paths\":[\"../a\"]"),
     "below the repository's top"},
    {ENV, MOUNTS("source", "https://h/r", ",\"commit\":\"" COMMIT "\",\"paths\":[\"a\",\"a/b\"]"),
     "already within"},
};

TEST(a_wrong_report_is_refused_with_its_place)
{
    for (size_t idx = 0; idx < ARRAY_LEN(FAULTS); idx++) {
        struct report r = {0};
        char *text = replace_once(ARENA, GOOD, FAULTS[idx].from, FAULTS[idx].to);
        FAILS(decode(ARENA, text, &r, ERR), ERR_ANY);
        if (!strstr(ERR->msg, FAULTS[idx].says)) {
            fail_msg("%s: \"%s\" does not say \"%s\"", FAULTS[idx].to, ERR->msg, FAULTS[idx].says);
        }
        assert_int_equal(ERR->code, ERR_MANIFEST);
        SAYS("r.json");
        assert_null(r.id.ptr);
    }
}

TEST(ids_are_unique)
{
    struct err err = {0};
    struct err err2 = {0};
    struct report r = {0};
    assert_int_equal(decode(ARENA, REPORT(CASE(ID, ONE_CELL) "," CASE(ID, ONE_CELL)), &r, &err),
                     -1);
    assert_non_null(strstr(err.msg, "$.cases[1]: id: duplicate case"));
    assert_int_equal(decode(ARENA, REPORT(CASE(ID, ONE_CELL "," ONE_CELL)), &r, &err2), -1);
    assert_non_null(strstr(err2.msg, "cells[1].cell: duplicate cell"));
}

TEST(derived_cells_may_not_chase_each_other)
{
    struct err err = {0};
    struct err err2 = {0};
    struct report r = {0};
#define MEAN_OF(id)  "{\"kind\":\"mean\",\"of\":[\"" ID "#throughput." id "\"]}"
#define LINK(id, of) CELL(ID "#throughput." id, "1", "samples/s", MEAN_OF(of))
    assert_int_equal(decode(ARENA, REPORT(CASE(ID, LINK("1", "2") "," LINK("2", "1"))), &r, &err),
                     -1);
    assert_non_null(strstr(err.msg, "it is circular"));
    assert_int_equal(decode(ARENA,
                            REPORT(CASE(ID, LINK("1", "2") "," CELL(ID "#throughput.2", "1",
                                                                    "samples/s", "null"))),
                            &r, &err2),
                     0);
    assert_int_equal(r.cases[0].cells[0].derive, DERIVE_MEAN);
}

TEST(own_framework_has_no_cells)
{
    struct err err = {0};
    struct err err2 = {0};
    struct report r = {0};
    char *own = replace_once(ARENA, GOOD, "\"framework\":\"fw\"", "\"framework\":\"reperf\"");
    assert_int_equal(
        decode(ARENA,
               replace_once(ARENA, own, CASE(ID, ONE_CELL),
                            "{\"id\":\"m/reperf/fp32/n1g1/bs4\",\"stack\":\"a\",\"environment\":"
                            "null,\"group\":\"g\",\"format\":\"reperf\",\"rule\":\"reperf/m\","
                            "\"baseline\":\"none\",\"logs\":[],\"conditions\":{},\"cells\":[]}"),
               &r, &err),
        -1);
    assert_non_null(strstr(err.msg, "baseline: expected another case's id"));
    assert_int_equal(
        decode(ARENA,
               replace_once(ARENA, own, ID "\",\"stack\"", "m/reperf/fp32/n2g8/bs4\",\"stack\""),
               &r, &err2),
        -1);
}

static struct str encode(struct arena *arena, const struct report *report)
{
    CLEANUP(strbuf) struct strbuf text = {0};
    strbuf_init(&text, JSON_TEXT_MAX);
    json_encode_document(&text, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, report);
    return str_dup(arena, strbuf_str(&text));
}

TEST(what_was_read_is_written_again)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    struct report_set set = {0};
    struct report own = {0};
    const char *mounts =
        MOUNTS("source", "https://example.org/c.git", ",\"paths\":[\"a\",\"b/c\"]");
    assert_int_equal(decode(&arena, replace_once(&arena, GOOD, ENV, mounts), &own, &err), 0);
    struct str text = encode(&arena, &own);
    const char *kept[] = {ID,        "\"nccl\": null", "\"B\": null", "\"paths\": [",
                          "\"b/c\"", "1.log",          "117.205",     "\"ref\": \"main\""};
    for (size_t idx = 0; idx < ARRAY_LEN(kept); idx++) {
        assert_true(str_find(text, str_of(kept[idx])) > 0);
    }
    assert_int_equal(load_all_reports(&arena, ".", &set, &err), 0);
    assert_true(set.n > 5);
    for (size_t idx = 0; idx < set.n; idx++) {
        struct report again = {0};
        struct str once = encode(&arena, &set.items[idx]);
        assert_int_equal(decode(&arena, str_z(&arena, once), &again, &err), 0);
        assert_true(str_eq(once, encode(&arena, &again)));
        assert_int_equal(again.n_cases, set.items[idx].n_cases);
    }
}

/* A folder manifests/reports with one file. */
static char *make_root(struct arena *arena, const char *name, const char *text)
{
    char *root = arena_printf(arena, "%s/reperf-report-%ld",
                              getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (long)getpid());
    PASSES(fs_mkdir_p(fs_join(arena, root, "manifests/reports"), ERR));
    PASSES(fs_write_atomic(arena_printf(arena, "%s/manifests/reports/%s", root, name), str_of(text),
                           ERR));
    return root;
}

TEST(reports_are_found_by_name)
{
    struct err err = {0};
    struct err missing = {0};
    struct err wrong_name = {0};
    struct report r = {0};
    struct report_set set = {0};
    char *root = make_root(ARENA, "r.json", GOOD);
    assert_int_equal(load_report(ARENA, root, "r", &r, &err), 0);
    assert_string_equal(r.path.ptr, "manifests/reports/r.json");
    assert_int_equal(load_all_reports(ARENA, root, &set, &err), 0);
    assert_int_equal(set.n, 1);
    assert_int_equal(load_report(ARENA, root,
                                 arena_printf(ARENA, "%s/manifests/reports/r.json", root), &r,
                                 &err),
                     0);
    assert_int_equal(load_report(ARENA, root, "nobody", &r, &missing), -1);
    assert_int_equal(missing.code, ERR_NOT_FOUND);
    make_root(ARENA, "s.json", GOOD);
    assert_int_equal(load_all_reports(ARENA, root, &set, &wrong_name), -1);
    assert_non_null(strstr(wrong_name.msg, "manifests/reports/s.json:$.id: expected \"s\""));
    assert_int_equal(fs_remove_tree(root, &err), 0);
}
