/* SPDX-License-Identifier: Apache-2.0 */
/* Invalid format manifests: each is refused, with the place and what was expected there. */
#include "unit.h"

#include "base/strbuf.h"
#include "judge/rule.h"
#include "log/format.h"
#include "report/vocabulary.h"

enum slot { PREFIX, SERIES, TOP, FACT, RULE, SLOTS };

/* A valid format with one more item in one of its places. */
static int decode(enum slot slot, const char *more, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct format *format = NULL;
    const char *in[SLOTS] = {"", "", "", "", ""};
    in[slot] = more;
    const char *text = arena_printf(ARENA,
                                    "{\"schema_version\": 1, \"id\": \"t\", \"title\": \"T\", "
                                    "\"framework\": \"f\", \"source\": \"s\", "
                                    "\"prefixes\": [\"srun\"%s], \"series\": [{\"name\": \"ips\", "
                                    "\"literal\": \"ips: \", \"pattern\": \"ips: "
                                    "(?<value>\\\\S+)\", \"unit\": \"samples/s\", \"scope\": "
                                    "\"rank\", \"quantity\": \"rate\", \"primary\": true}%s], "
                                    "\"run_start\": null%s, \"facts\": [{\"name\": \"cuda\", "
                                    "\"literal\": \"cuda \", \"pattern\": \"cuda "
                                    "(?<value>.*)\"}%s], \"rules\": [{\"name\": \"mean\", "
                                    "\"series\": \"ips\", \"statistic\": \"mean\", \"origin\": "
                                    "\"own\", \"source\": \"x\"}%s]}",
                                    in[PREFIX], in[SERIES], in[TOP], in[FACT], in[RULE]);
    if (json_parse(str_of(text), "t.json", &doc, err) < 0) {
        fail_msg("%s", err->msg);
    }
    doc.context = vocabulary_builtin(ARENA);
    struct json root = json_root(&doc);
    int result = format_read(&root, ARENA, &format, err);
    format_release(format);
    return result;
}

static void refuses(enum slot slot, const char *more, const char *words)
{
    struct err err = {0};
    if (decode(slot, more, &err) == 0) {
        fail_msg("accepted: %s", more);
    }
    assert_int_equal(err.code, ERR_MANIFEST);
    if (!strstr(err.msg, words)) {
        fail_msg("%s: \"%s\" does not say \"%s\"", more, err.msg, words);
    }
}

struct row {
    enum slot slot;
    const char *more, *words;
};

static void refuse_all(const struct row *rows, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        refuses(rows[idx].slot, rows[idx].more, rows[idx].words);
    }
}

TEST(what_more_is_right_is_read)
{
    for (int slot = 0; slot < SLOTS; slot++) {
        struct err err = {0};
        if (decode((enum slot)slot, "", &err) < 0) {
            fail_msg("%s", err.msg);
        }
    }
    /* A format need not say whose rate it is. */
    struct err err = {0};
    if (decode(SERIES,
               ", {\"name\": \"t\", \"literal\": null, \"pattern\": \"(?<value>1)\", \"unit\": "
               "\"s\", \"scope\": null, \"primary\": false, \"quantity\": \"step_time\"}",
               &err) < 0) {
        fail_msg("%s", err.msg);
    }
}

TEST(a_format_of_another_make_is_refused)
{
    static const struct row ROWS[] = {
        {PREFIX, ", \"torchrun\"", "expected one of mpirun, srun, found \"torchrun\""},
        {PREFIX, ", 3", "$.prefixes[1]"},
        {TOP, ", \"role\": \"main\"",
         "expected one of first, own, beside, generic, named, found \"main\""},
        {TOP, ", \"records\": \"xml\"", "expected one of csv, jsonl, found \"xml\""},
        {TOP, ", \"total_from\": \"steps\"", "total_from: there is no fact \"steps\""},
        {TOP, ", \"epochs_from\": \"epochs\"", "epochs_from: there is no fact \"epochs\""},
        {TOP, ", \"begin\": {\"unknown\": false, \"why\": \"x\"}",
         "expected \"unknown\" true and a \"why\""},
        {TOP, ", \"begin\": {\"unknown\": true, \"why\": \"\"}",
         "expected \"unknown\" true and a \"why\""},
        {TOP, ", \"begin\": {\"unknown\": true}", "why"},
        {TOP, ", \"begin\": {\"literal\": \"begun\"}", "pattern"},
        {TOP, ", \"done\": {\"literal\": \"done\", \"pattern\": \"done\"}",
         "done: its pattern has a group \"step\""},
        {TOP, ", \"done\": {\"literal\": \"done\", \"pattern\": 3}", "$.done.pattern"},
        {TOP, ", \"end\": {\"literal\": \"end\", \"pattern\": \"(\"}", "$.end"},
        {TOP, ", \"end\": {\"literal\": \"all\\ndone\", \"pattern\": \"a\"}",
         "a literal holds no line break"},
        {TOP, ", \"end\": {\"literal\": \"e\", \"pattern\": \"e\"}",
         "expected a literal of at least"},
    };
    refuse_all(ROWS, ARRAY_LEN(ROWS));
}

#define MORE(members)                                                                              \
    ", {\"name\": \"more\", \"literal\": null, \"scope\": \"job\", \"primary\": false, " members "}"

TEST(a_series_that_could_not_be_read_is_refused)
{
    static const struct row ROWS[] = {
        {SERIES, MORE("\"pattern\": \"done\", \"unit\": \"\", \"quantity\": \"progress\""),
         "expected a group \"step\" in the pattern of a progress"},
        {SERIES, MORE("\"pattern\": \"(?<step>1)\", \"unit\": \"\", \"quantity\": \"clock\""),
         "expected a group \"time\" in a clock's pattern"},
        {SERIES,
         MORE("\"pattern\": \"(?<time>1)(?<value>1)\", \"unit\": \"\", \"quantity\": \"clock\""),
         "unless its quantity is clock or progress"},
        {SERIES, MORE("\"pattern\": \"1\", \"unit\": \"s\", \"quantity\": \"step_time\""),
         "has a group \"value\""},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)(?<steps>2)\", \"unit\": \"s\", \"quantity\": "
              "\"step_time\""),
         "unknown group \"steps\""},
        {SERIES,
         MORE("\"pattern\": \"(?<step>1)(?<value>1)\", \"unit\": \"s\", \"quantity\": "
              "\"step_time\", \"epoch_from\": 0"),
         "\"epoch_from\" needs groups epoch and step"},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"s\", \"quantity\": \"step_time\", "
              "\"like\": \"x\""),
         "\"like\" is for lines that hold the literal, but there is none"},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"s\", \"quantity\": \"step_time\", "
              "\"until\": \"x\""),
         "\"until\" closes what \"after\" opens, but there is no \"after\""},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"s\", \"quantity\": \"step_time\", "
              "\"factor\": 0"),
         "expected a factor over 0"},
        {SERIES, MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"s\", \"quantity\": \"speed\""),
         "progress, found \"speed\""},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"ms\", \"quantity\": \"step_time\""),
         "unit \"ms\" does not fit quantity step_time"},
        {SERIES,
         MORE("\"pattern\": \"(?<value>1)\", \"unit\": \"samples/s\", \"quantity\": \"score\""),
         "unit \"samples/s\" does not fit quantity score"},
        {SERIES, MORE("\"pattern\": \"(?<value>1\", \"unit\": \"s\", \"quantity\": \"step_time\""),
         "$.series[1]"},
        {SERIES,
         ", {\"name\": \"ips\", \"literal\": \"sec\", \"like\": \"(\", \"pattern\": "
         "\"(?<value>1)\", \"unit\": \"s\", \"scope\": \"job\", \"primary\": false, \"quantity\": "
         "\"step_time\"}",
         "$.series[1]"},
        {SERIES,
         ", {\"name\": \"ips\", \"literal\": \"s\", \"pattern\": \"(?<value>1)\", \"unit\": \"s\", "
         "\"scope\": \"job\", \"primary\": false, \"quantity\": \"step_time\"}",
         "expected a literal of at least"},
        {SERIES,
         ", {\"name\": \"ips\", \"literal\": null, \"pattern\": \"(?<value>1)\", \"unit\": \"s\", "
         "\"scope\": \"job\", \"primary\": false, \"quantity\": \"step_time\"}",
         "two series named \"ips\""},
        {SERIES,
         ", {\"name\": \"t\", \"literal\": null, \"pattern\": \"(?<value>1)\", \"unit\": \"s\", "
         "\"scope\": \"job\", \"primary\": true, \"quantity\": \"step_time\"}",
         "expected one primary series, found 2"},
        {SERIES,
         ", {\"name\": \"t\", \"literal\": null, \"pattern\": \"(?<value>1)\", \"unit\": \"s\", "
         "\"scope\": \"gpu\", \"primary\": false, \"quantity\": \"step_time\"}",
         "expected one of rank, node, job, found \"gpu\""},
    };
    refuse_all(ROWS, ARRAY_LEN(ROWS));
}

TEST(a_fact_that_is_neither_read_nor_absent_is_refused)
{
    CLEANUP(strbuf) struct strbuf many;
    strbuf_init(&many, 1 << 16);
    static const struct row ROWS[] = {
        {FACT, ", {\"name\": \"cudnn\"}", "a fact has a literal and a pattern, or is absent"},
        {FACT, ", {\"name\": \"cudnn\", \"literal\": \"cudnn\", \"pattern\": \"cudnn\"}",
         "expected a group \"value\" in the fact's pattern, or \"says\""},
        {FACT,
         ", {\"name\": \"cudnn\", \"literal\": \"cudnn\", \"pattern\": \"cudnn (?<value>.)\", "
         "\"says\": \"8\"}",
         "expected a group \"value\" in the fact's pattern, or \"says\""},
        {FACT, ", {\"name\": \"cudnn\", \"literal\": \"cudnn\", \"pattern\": \"(\"}", "$.facts[1]"},
        {FACT, ", {\"name\": \"cudnn\", \"literal\": \"cudnn\", \"pattern\": 8}",
         "$.facts[1].pattern"},
        {FACT, ", {\"name\": \"weather\", \"literal\": \"weather\", \"pattern\": \"(?<value>.)\"}",
         "\"weather\" is not in the list of conditions"},
        {FACT, ", {\"name\": \"cudnn\", \"absent\": true}",
         "an absent fact has a name and \"why\" only"},
        {FACT, ", {\"name\": \"cudnn\", \"absent\": true, \"why\": \"x\", \"list\": true}",
         "an absent fact has a name and \"why\" only"},
        {FACT, ", {\"name\": \"cuda\", \"absent\": true, \"why\": \"no line has it\"}",
         "fact \"cuda\" is both read and absent"},
    };
    refuse_all(ROWS, ARRAY_LEN(ROWS));
    for (int idx = 0; idx < 64; idx++) {
        strbuf_printf(&many,
                      ", {\"name\": \"cudnn\", \"literal\": \"cudnn %d\", \"pattern\": \"cudnn "
                      "(?<value>.)\"}",
                      idx);
    }
    refuses(FACT, many.ptr, "more than 64 different literals");
}

#define ANOTHER(members)                                                                           \
    ", {\"name\": \"r\", \"series\": \"ips\", \"origin\": \"own\", \"source\": \"x\", " members "}"
#define OF_MEAN(members) ANOTHER("\"statistic\": \"mean\", " members)

TEST(a_rule_that_gives_no_number_is_refused)
{
    static const struct row ROWS[] = {
        {RULE,
         ", {\"name\": \"mean\", \"series\": \"ips\", \"statistic\": \"max\", \"origin\": \"own\", "
         "\"source\": \"x\"}",
         "two rules \"t/mean\""},
        {RULE,
         ", {\"name\": \"Max\", \"series\": \"ips\", \"statistic\": \"max\", \"origin\": \"own\", "
         "\"source\": \"x\"}",
         "expected a name of a-z, 0-9 and -, found \"Max\""},
        {RULE,
         ", {\"name\": \"max\", \"series\": \"loss\", \"statistic\": \"max\", \"origin\": \"own\", "
         "\"source\": \"x\"}",
         "the format has no series \"loss\""},
        {RULE, ANOTHER("\"statistic\": \"average\""), "expected one of mean, median"},
        {RULE, OF_MEAN("\"steps\": 3"), "$.rules[1].steps"},
        {RULE, OF_MEAN("\"steps\": [3]"), "expected [first, last], found 1 numbers"},
        {RULE, OF_MEAN("\"steps\": [3, \"x\"]"), "$.rules[1].steps[1]"},
        {RULE, OF_MEAN("\"steps\": [3, 1]"), "expected the first step before the last"},
        {RULE, OF_MEAN("\"trim\": {\"count\": 1}"),
         "\"trim\" belongs to statistic trimmed_mean only"},
        {RULE, ANOTHER("\"statistic\": \"trimmed_mean\""),
         "\"trim\" belongs to statistic trimmed_mean"},
        {RULE, ANOTHER("\"statistic\": \"trimmed_mean\", \"trim\": {\"count\": \"x\"}"),
         "$.rules[1].trim.count"},
        {RULE, ANOTHER("\"statistic\": \"trimmed_mean\", \"trim\": {\"share\": 0.5}"),
         "expected a share from 0 to under 0.5"},
        {RULE, ANOTHER("\"statistic\": \"trimmed_mean\", \"trim\": {}"),
         "expected a count or a share over 0"},
        {RULE, ANOTHER("\"statistic\": \"elapsed\", \"scale\": \"gpus\""),
         "statistic elapsed is for the whole job: expected scale none"},
        {RULE, ANOTHER("\"statistic\": \"elapsed\", \"unit\": \"weeks\""),
         "unit: expected s, min or h, found \"weeks\""},
        {RULE, OF_MEAN("\"scale\": \"fact_over\", \"fact\": \"global_batch\""),
         "\"fact\" and \"unit\" belong to scales fact and fact_over"},
        {RULE, OF_MEAN("\"fact\": \"global_batch\", \"unit\": \"samples/s\""),
         "\"fact\" and \"unit\" belong to scales fact and fact_over"},
        {RULE, OF_MEAN("\"success\": {\"fact\": \"status\", \"value\": \"success\"}"),
         "\"success\" belongs to repeats olympic only"},
        {RULE, OF_MEAN("\"required\": {\"fact\": \"benchmark\"}"), "logs"},
        {RULE, OF_MEAN("\"required\": {\"fact\": \"benchmark\", \"logs\": 5}"),
         "expected an object: numbers by name"},
        {RULE, OF_MEAN("\"required\": {\"fact\": \"benchmark\", \"logs\": {\"bert\": 0}}"),
         "$.rules[1].required.logs.bert"},
        {RULE, OF_MEAN("\"targets\": {\"at_least\": {}}"), "at_most"},
        {RULE, OF_MEAN("\"targets\": {\"at_least\": {}, \"at_most\": 1}"),
         "expected an object: numbers by name"},
        {RULE, OF_MEAN("\"targets\": {\"at_least\": {\"bert\": \"x\"}, \"at_most\": {}}"),
         "$.rules[1].targets.at_least.bert"},
    };
    refuse_all(ROWS, ARRAY_LEN(ROWS));
}

TEST(a_rule_for_too_many_models_is_refused)
{
    CLEANUP(strbuf) struct strbuf models;
    strbuf_init(&models, 1 << 16);
    for (int idx = 0; idx < 65; idx++) {
        strbuf_printf(&models, "%s\"m%d\": 1", idx ? ", " : "", idx);
    }
    refuses(RULE,
            arena_printf(ARENA, OF_MEAN("\"required\": {\"fact\": \"benchmark\", \"logs\": {%s}}"),
                         models.ptr),
            "expected at most 64 members");
    refuses(RULE,
            arena_printf(ARENA, OF_MEAN("\"targets\": {\"at_least\": {}, \"at_most\": {%s}}"),
                         models.ptr),
            "expected at most 64 members");
}
