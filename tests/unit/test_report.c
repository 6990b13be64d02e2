/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <unistd.h>

#include "base/fs.h"
#include "document.h"
#include "load/load.h"

#define COMMIT "0123456789abcdef0123456789abcdef01234567"
#define SOURCE                                                                                     \
    "{'repository':'https://example.org/r.git','commit':'" COMMIT                                  \
    "','path':'README.md','date':'2020-01-02'}"
#define CELL(id, printed, unit, derive)                                                            \
    "{'cell':'" id "','metric':'throughput','printed':'" printed "','unit':'" unit                 \
    "','table':'t','derive':" derive ",'rule':null,'format':null,'also_printed':[]}"
#define CASE(id, cells)                                                                            \
    "{'id':'" id "','stack':'a','environment':'e','group':'g','format':'f','rule':'f/"             \
    "r','baseline':null,'logs':['x/1.log'],'conditions':{},'cells':[" cells "]}"
#define REPORT(cases)                                                                              \
    "{'schema_version':1,'id':'r','title':'T','source':" SOURCE ",'logs':" SOURCE                  \
    ",'environments':[{'id':'e','title':'E','nodes':4,'gpus_per_node':8,'conditions':{'cuda':'11." \
    "2','nccl':null,'os':'Debian'},'source':" SOURCE                                               \
    "}],'stacks':[{'id':'a','framework':'fw','label':'F "                                          \
    "W','image':null,'image_tag':null,'image_digest':null,'dataset':null,'sources':[{'repository'" \
    ":'https://example.org/"                                                                       \
    "c.git','commit':null,'ref':'main','printed_url':null}],'conditions':{'cuda':'11.0','seed':"   \
    "null},'env':{'A':'1','B':null},'commands':[{'purpose':'run','nodes':0,'gpus':0,'precision':"  \
    "null,'per':'node','printed':'go','works':null}]}],'cases':[" cases "]}"
#define RUN_OF(batch)                                                                              \
    "{'purpose':'run','nodes':2,'gpus':16,'batch':" batch                                          \
    ",'precision':'fp32','per':'node','printed':'go','works':null}"
#define ENV           "'env':{'A':'1','B':null},"
#define FULL(members) ENV "'full':[{'title':'T'," members "}],"
#define MOUNTS(kind, name, more)                                                                   \
    FULL("'image':'i','mounts':[{'kind':'" kind "','name':'" name "','inside':'/s'" more "}]")
#define ID       "m/fw/fp32/n2g8/bs4"
#define ONE_CELL CELL(ID "#throughput", "117.205", "samples/s", "null")
#define GOOD     REPORT(CASE(ID, ONE_CELL))

static int decode(struct arena *arena, const char *text, struct report *ret, struct err *err)
{
    const struct json *root = document(text, vocabulary_builtin(arena), err);
    return root ? report_decode(root, arena, ret, err) : -1;
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

TEST(a_wrong_report_is_refused_with_its_place)
{
    /* What occurs in GOOD, what it becomes, and the place that is named, unless it is the document. */
    static const char *const FAULTS[][3] = {
        {"'schema_version':1", "'schema_version':2", "$.schema_version"},
        {"'id':'r'", "'id':'R'", "$.id"},
        {"'id':'r'", "'id':'r','id':'r'"},
        {"'title':'T'", "'title':'T','x':1"},
        {"'title':'T',", ""},
        {COMMIT, "0123456789ABCDEF0123456789abcdef01234567", "$.source.commit"},
        {COMMIT, "0123456", "$.source.commit"},
        {"2020-01-02", "2020-1-2", "date"},
        {"https://example.org/r.git", "git@example.org:r", "repository"},
        {"https://example.org/c.git", "https://example.org/c/tree/main"},
        {"https://example.org/c.git", "https://example.org/o/c/blob/main/x"},
        {"https://example.org/c.git", "https://user:word@example.org/o/c"},
        {"'path':'README.md'", "'path':'../x'"},
        {"'cuda':'11.2'", "'cudda':'11.2'"},
        {"'cuda':'11.2'", "'cuda':11.2", "conditions.cuda"},
        {"'gpus_per_node':8", "'gpus_per_node':4"},
        {"'nodes':4", "'nodes':1"},
        {"'nodes':4", "'nodes':0"},
        {"'purpose':'run'", "'purpose':'fly'", "purpose"},
        {"'per':'node'", "'per':'rack'", "per"},
        {"'gpus':0,", "'gpus':0,'batch':-1,", "batch"},
        {"'commands':[", "'commands':[" RUN_OF("4") ","},
        {"'printed':'go'", "'printed':null"},
        {"'image_digest':null", "'image_digest':'sha256:00'", "image_digest"},
        {"'A':'1'", "'1A':'1'"},
        {"'stack':'a'", "'stack':'b'"},
        {"'environment':'e'", "'environment':'x'"},
        {"'environment':'e'", "'environment':null"},
        {"'framework':'fw'", "'framework':'other'"},
        {"'id':'" ID "'", "'id':'m/fw/fp31/n2g8/bs4'"},
        {"'id':'" ID "'", "'id':'m/fw/fp32/n2x8/bs4'", "id"},
        {"'id':'" ID "'", "'id':'m/fw/fp32/n02g8/bs4'", "id"},
        {"'id':'" ID "'", "'id':'m/fw/fp32/n2g8/bs04'", "id"},
        {"'id':'" ID "'", "'id':'m/fw/fp32/n2g8'"},
        {"'id':'" ID "'", "'id':'m/fw/fp32/n2g8/bs4/v/w'", "id"},
        {"'cell':'" ID "#", "'cell':'" ID "x#", "cell"},
        {"#throughput'", "#speedup'", "cell"},
        {"'metric':'throughput'", "'metric':'speed'", "metric"},
        {"'unit':'samples/s'", "'unit':'samples'", "unit"},
        {"'unit':'samples/s'", "'unit':'s'", "unit"},
        {"'117.205'", "117.205", "printed"},
        {"'117.205'", "'117,205'", "printed"},
        {"'117.205'", "'1e3'", "printed"},
        {"'117.205'", "'0'", "printed"},
        {"'117.205'", "'9999999999999999999'", "printed"},
        {"'f/r'", "'g/r'", "rule"},
        {"'f/r'", "null"},
        {"'x/1.log'", "'/x/1.log'"},
        {"'baseline':null", "'baseline':'" ID "'"},
        {"'derive':null", "'derive':{'kind':'ratio','of':['" ID "#throughput']}"},
        {"'derive':null", "'derive':{'kind':'mode','of':[]}", "kind"},
        {"'derive':null", "'derive':{'kind':'mean','of':['nobody']}", "derive.of[0]"},
        {"'derive':null", "'derive':{'kind':'mean','of':['" ID "#throughput']}"},
        {"'logs':{", "'logs':null,'logs':{"},
        {ENV, FULL("'image':'i','why_not':'w'")},
        {ENV, MOUNTS("source", "https://example.org/d.git", "")},
        {ENV, MOUNTS("source", "https://example.org/d.git", ",'commit':'0123'"), "commit"},
        {ENV, MOUNTS("source", "https://user:word@example.org/o/d", ",'commit':'" COMMIT "'"),
         "mounts[0]"},
        {ENV, MOUNTS("dataset", "d", ",'commit':'" COMMIT "'")},
        {ENV, MOUNTS("dataset", "d", ",'paths':['a']")},
        {ENV, MOUNTS("source", "https://h/r", ",'commit':'" COMMIT "','paths':[]")},
        {ENV, MOUNTS("source", "https://h/r", ",'commit':'" COMMIT "','paths':['../a']")},
        {ENV, MOUNTS("source", "https://h/r", ",'commit':'" COMMIT "','paths':['a','a/b']")},
    };
    for (EACH(fault, FAULTS)) {
        struct report r = {0};
        char *text = replaced(GOOD, (*fault)[0], (*fault)[1]);
        FAILS_WITH(decode(ARENA, text, &r, ERR), ERR_MANIFEST, "t.json");
        SAYS((*fault)[2] ? (*fault)[2] : "");
        assert_null(r.id.ptr);
    }
}

TEST(ids_are_unique)
{
    struct report r = {0};
    FAILS(decode(ARENA, REPORT(CASE(ID, ONE_CELL) "," CASE(ID, ONE_CELL)), &r, ERR), ERR_MANIFEST);
    SAYS("$.cases[1]: id");
    FAILS(decode(ARENA, REPORT(CASE(ID, ONE_CELL "," ONE_CELL)), &r, ERR), ERR_MANIFEST);
    SAYS("cells[1].cell");
}

TEST(derived_cells_may_not_chase_each_other)
{
    struct report r = {0};
#define MEAN_OF(id)  "{'kind':'mean','of':['" ID "#throughput." id "']}"
#define LINK(id, of) CELL(ID "#throughput." id, "1", "samples/s", of)
    static const char *const CIRCLE =
        REPORT(CASE(ID, LINK("1", MEAN_OF("2")) "," LINK("2", MEAN_OF("1"))));
    static const char *const CHAIN =
        REPORT(CASE(ID, LINK("1", MEAN_OF("2")) "," LINK("2", "null")));
    FAILS(decode(ARENA, CIRCLE, &r, ERR), ERR_MANIFEST);
    PASSES(decode(ARENA, CHAIN, &r, ERR));
    assert_int_equal(r.cases[0].cells[0].derive, DERIVE_MEAN);
}

TEST(own_framework_has_no_cells)
{
    struct report r = {0};
    char *own = replaced(GOOD, "'framework':'fw'", "'framework':'reperf'");
    const char *no_baseline =
        "{'id':'m/reperf/fp32/n1g1/"
        "bs4','stack':'a','environment':null,'group':'g','format':'reperf','rule':'reperf/"
        "m','baseline':'none','logs':[],'conditions':{},'cells':[]}";
    FAILS_WITH(decode(ARENA, replaced(own, CASE(ID, ONE_CELL), no_baseline), &r, ERR), ERR_MANIFEST,
               "baseline");
    FAILS(decode(ARENA, replaced(own, ID "','stack'", "m/reperf/fp32/n2g8/bs4','stack'"), &r, ERR),
          ERR_MANIFEST);
}

static struct str encode(struct arena *arena, const struct report *report)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(JSON_TEXT_MAX);
    json_encode_document(&text, REPORT_DOCUMENT.rows, REPORT_DOCUMENT.n_rows, report);
    return str_dup(arena, strbuf_str(&text));
}

TEST(what_was_read_is_written_again)
{
    struct report_set set = {0};
    struct report own = {0};
    const char *mounts = MOUNTS("source", "https://example.org/c.git", ",'paths':['a','b/c']");
    PASSES(decode(ARENA, replaced(GOOD, ENV, mounts), &own, ERR));
    struct str text = encode(ARENA, &own);
    const char *kept[] = {ID,        "\"nccl\": null", "\"B\": null", "\"paths\": [",
                          "\"b/c\"", "1.log",          "117.205",     "\"ref\": \"main\""};
    for (EACH(row, kept)) {
        assert_true(str_find(text, str_of(*row)) > 0);
    }
    PASSES(load_all_reports(ARENA, ".", &set, ERR));
    assert_true(set.n > 5);
    for (size_t idx = 0; idx < set.n; idx++) {
        struct report again = {0};
        struct str once = encode(ARENA, &set.items[idx]);
        PASSES(decode(ARENA, str_z(ARENA, once), &again, ERR));
        assert_true(str_eq(once, encode(ARENA, &again)));
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
    struct report r = {0};
    struct report_set set = {0};
    char *root = make_root(ARENA, "r.json", json_text(GOOD));
    PASSES(load_report(ARENA, root, "r", &r, ERR));
    assert_string_equal(r.path.ptr, "manifests/reports/r.json");
    PASSES(load_all_reports(ARENA, root, &set, ERR));
    assert_int_equal(set.n, 1);
    PASSES(load_report(ARENA, root, fs_join(ARENA, root, "manifests/reports/r.json"), &r, ERR));
    FAILS(load_report(ARENA, root, "nobody", &r, ERR), ERR_NOT_FOUND);
    make_root(ARENA, "s.json", json_text(GOOD));
    FAILS(load_all_reports(ARENA, root, &set, ERR), ERR_MANIFEST);
    SAYS("manifests/reports/s.json:$.id");
    PASSES(fs_remove_tree(root, ERR));
}
