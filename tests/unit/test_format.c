/* SPDX-License-Identifier: Apache-2.0 */
/* Formats and the parsing of logs: every trap found in published logs, with made input. */
#include "unit.h"

#include <math.h>

#include "base/strbuf.h"
#include "document_format.h"
#include "log/parser_impl.h"

static const char HEAD[] = "{'schema_version': 1, 'id': 't', 'title': 'T', 'framework': 'f', "
                           "'source': 's', 'prefixes': ['mpirun', 'srun'], ";

/* Epoch, step, total and value of a rank; a clock time; a fact; an end that need not be. */
static const char TRAIN[] =
    "'series': [{'name': 'ips', 'literal': 'ips: ', 'pattern': "
    "'^(?:(?<time>\\\\d{4}-\\\\d\\\\d-\\\\d\\\\d \\\\d\\\\d:\\\\d\\\\d:\\\\d\\\\d) )?(?:epoch: "
    "(?<epoch>\\\\d+), )?iter: (?<step>\\\\d+)(?:/(?<total>\\\\d+))?, ips: (?<value>\\\\S+) "
    "samples/sec', 'unit': 'samples/s', 'scope': 'rank', 'quantity': 'rate', 'primary': true}, "
    "{'name': 'loss', 'literal': 'loss: ', 'pattern': 'loss: (?<value>\\\\S+)', 'unit': '', "
    "'scope': 'rank', 'quantity': 'score', 'primary': false}], 'run_start': {'literal': 'start of "
    "run', 'pattern': '^start of run'}, 'end': null, 'facts': [{'name': 'cuda', 'literal': 'cuda "
    "', 'pattern': '^cuda (?<value>\\\\d.*)'}, {'name': 'warmup', 'literal': 'warmup ', 'pattern': "
    "'^warmup (?<value>\\\\d+)'}], 'rules': [{'name': 'mean', 'series': 'ips', 'statistic': "
    "'mean', 'origin': 'own', 'source': 'x'}]}";

static const char TABLE[] =
    "'series': [{'name': 'table', 'literal': null, 'pattern': '^ *(?<gpus>\\\\d+) *\\\\| "
    "*(?<value>[\\\\d.]+) *\\\\|$', 'unit': 'images/s', 'scope': 'job', 'quantity': 'summary', "
    "'primary': true, 'after': {'literal': 'total_ips', 'pattern': '^total_ips$'}, 'until': "
    "'^$'}], 'run_start': null, 'end': {'literal': 'all done', 'pattern': '^all done', 'required': "
    "true}, 'fatal': {'literal': 'broken', 'pattern': '^broken'}, 'facts': [], 'rules': []}";

static struct format *format_with(const char *body)
{
    return format_of(arena_printf(ARENA, "%s%s", HEAD, body));
}

/* Feeds text in two parts, cut at `cut`. */
static int parse_cut(struct format *format, struct str text, size_t cut, struct measurement *ret_m,
                     struct err *err)
{
    struct parser *parser = NULL;
    int status = parser_new(format, ARENA, &parser, err);
    if (status == 0) {
        status = parser_feed(parser, text.ptr, cut, err);
    }
    if (status == 0) {
        status = parser_feed(parser, text.ptr + cut, text.len - cut, err);
    }
    if (status == 0) {
        status = parser_finish(parser, ret_m, err);
    }
    parser_free(parser);
    return status;
}

static struct measurement parse(struct format *format, struct str text)
{
    struct measurement m = {0};
    PASSES(parse_cut(format, text, 0, &m, ERR));
    return m;
}

/* "step=value@rank/run ..." of the primary series, and the verdict. */
static const char *told(const struct measurement *m)
{
    const struct series *s = measurement_primary(m);
    CLEANUP(strbuf) struct strbuf text = STRBUF(1u << 20);
    for (size_t idx = 0; idx < s->n; idx++) {
        strbuf_printf(&text, "%" PRId64 "=%g", s->samples[idx].step, s->samples[idx].value);
        if (s->samples[idx].rank >= 0) {
            strbuf_printf(&text, "@%d", s->samples[idx].rank);
        }
        if (s->samples[idx].run > 0) {
            strbuf_printf(&text, "/%d", s->samples[idx].run);
        }
        strbuf_add_z(&text, " ");
    }
    strbuf_add_z(&text, PARSE_VERDICT_NAMES[m->verdict]);
    return arena_strndup(ARENA, text.ptr, text.len);
}

static void reads_as(const char *body, struct str text, const char *wanted)
{
    struct format *format = format_with(body);
    struct measurement m = parse(format, text);
    assert_string_equal(told(&m), wanted);
    assert_int_equal(m.verdict == PARSE_OK, m.why.len == 0);
    assert_int_equal(m.n_bytes, text.len);
    format_release(format);
}
#define IT(step, ips)             "iter: " #step ", ips: " #ips " samples/sec\n"
#define TRAIN_READS(text, wanted) reads_as(TRAIN, STR_LIT(text), wanted)

TEST(plain_logs)
{
    TRAIN_READS(IT(1, 10) IT(2, 20.5), "1=10 2=20.5 ok");
    TRAIN_READS("", "no_metric");
    TRAIN_READS("\n\n\n", "no_metric");
    TRAIN_READS("nothing here\n", "no_metric");
    TRAIN_READS("iter: 1, ips: 10 samples/sec", "1=10 ok"); /* whole, only without a line break */
}

TEST(what_looks_like_a_rate_is_not_read)
{
    TRAIN_READS("ips: 127.0.0.1\nips: None\n", "no_metric");
    TRAIN_READS("LAUNCH INFO ips: 127.0.0.1\n" IT(1, 5) "ips: None\n", "1=5 ok");
    TRAIN_READS("iter: 1, ips: 5 images/s\n", "no_metric"); /* another unit */
}

TEST(control_bytes_and_bars)
{
    TRAIN_READS("\033[32miter: 1, i\033[0mps: 10 samples/sec\033[0m\n", "1=10 ok");
    TRAIN_READS("it\0er: 1, ip\0\0s: 1\0"
                "0 samples/sec\n\0\0",
                "1=10 ok");
    TRAIN_READS(" 10%|##| 1/9\r 20%|##| 2/9\riter: 1, ips: 10 samples/sec\r 30%|##| 3/9\r\n",
                "1=10 ok");
    TRAIN_READS("iter: 1, ips: 10 samples/sec\r\niter: 2, ips: 11 samples/sec\r\n", "1=10 2=11 ok");
    TRAIN_READS("\033]0;title\a" IT(1, 10), "1=10 ok");
    TRAIN_READS("\033]0;title\033\\" IT(1, 10), "1=10 ok");
    TRAIN_READS("\033]0;never ended\n" IT(1, 10), "1=10 ok");
    TRAIN_READS("\033[1;31\niter: 1, ips: 10 samples/sec\033", "1=10 ok");
    TRAIN_READS("\033\0[32m" IT(1, 10), "1=10 ok");
    TRAIN_READS("\033(Biter: 1, ips: 10 samples/sec\033[K\n", "1=10 ok");
}

TEST(launcher_tags)
{
    TRAIN_READS("[1,3]<stdout>:" IT(1, 10), "1=10@3 ok");
    TRAIN_READS("Thu Dec 17 15:05:20 2020[1,0]<stderr>:" IT(1, 10), "1=10@0 ok");
    TRAIN_READS("Thu Dec  7 15:05:20 2020[1,12]<stdout>:" IT(1, 10), "1=10@12 ok");
    /* A bar before the tag, and a tag within the record. */
    TRAIN_READS("8.12it/s]\r8.13it/s]Sat Dec 19 15:14:59 2020[1,0]<stdout>:" IT(1, 10),
                "no_metric"); /* "^" keeps it out: the line begins with the bar */
    TRAIN_READS("iter: 1, i[1,0]<stdout>:ps: 10 samples/sec\n", "1=10@0 ok");
    TRAIN_READS("[1,0]<stdout>:" IT(1, 10) "[1,1]<stdout>:" IT(1, 11) "[1,1]<stdout>:" IT(
                    2, 12) "[1,0]<stdout>:" IT(2, 13),
                "1=10@0 1=11@1 2=12@1 2=13@0 ok");
    TRAIN_READS(" 3: " IT(1, 10) "12: " IT(1, 11), "1=10@3 1=11@12 ok");
    TRAIN_READS("[x,0]<stdout>:\n]<stdout>:\n<stdout>:\n[1,]<stdout>:\n" IT(1, 1), "1=1 ok");
}

TEST(a_loss_that_no_format_names_is_seen_by_its_word)
{
    static const struct {
        const char *text;
        bool lacks, is_word;
    } CASES[] = {{"step 3 loss nan", true, true},
                 {"{'loss': nan, 'lr': 1}", true, true},
                 {"train_loss=-Infinity", true, true},
                 {"Loss: NaN (nan)", true, true},
                 {"loss none", true, false},
                 {"loss nanmean 1.5", true, false},
                 {"val_loss: nan", true, false},
                 {"eval/loss inf", true, false},
                 {"loss inf0 1", true, false},
                 {"loss 2.5 nan", false, false},
                 {"boss: n", false, false}};
    struct patterns patterns = {0};
    for (EACH(row, CASES)) {
        bool is_word;
        assert_int_equal(parser_lacks_loss(&patterns, str_of(row->text), &is_word), row->lacks);
        assert_int_equal(is_word, row->is_word);
    }
    patterns_release(&patterns);
}

TEST(runs_and_repeated_steps)
{
    TRAIN_READS(IT(1, 1) IT(2, 2) IT(1, 3), "1=1 2=2 1=3/1 ambiguous");
    /* If each step is printed as often, as many writers without a tag share the log. */
    TRAIN_READS(IT(1, 1) IT(1, 2) IT(2, 3) IT(2, 4), "1=1@0 1=2@1 2=3@0 2=4@1 ok");
    /* Otherwise equal steps are one run, which is not whole. */
    TRAIN_READS(IT(1, 1) IT(1, 2) IT(2, 3), "1=1 1=2 2=3 ambiguous");
    TRAIN_READS(IT(1, 1) IT(2, 2) IT(2, 3), "1=1 2=2 2=3 ambiguous");
    TRAIN_READS(IT(1, 1) IT(1, 2), "1=1 1=2 ambiguous");
    TRAIN_READS("2020-12-16 18:32:38 " IT(1, 1) "2020-12-16 18:32:48 " IT(
                    1, 2) "2020-12-16 18:32:58 " IT(2, 3) "2020-12-16 18:33:08 " IT(2, 4),
                "1=1 1=2 2=3 2=4 ambiguous"); /* too far apart for writers of one step */
    /* steps that begin again with each epoch */
    TRAIN_READS("epoch: 1, " IT(1, 1) "epoch: 1, " IT(2, 2) "epoch: 2, " IT(1, 3),
                "1=1 2=2 1=3 ok");
    TRAIN_READS("epoch: 2, " IT(1, 1) "epoch: 1, " IT(2, 2), "1=1 2=2/1 ambiguous");
    TRAIN_READS("start of run\n" IT(1, 1) "start of run\n" IT(2, 2), "1=1 2=2/1 ambiguous");
    TRAIN_READS("start of run\nstart of run\n" IT(1, 1), "1=1 ok");
}

TEST(values_that_are_none)
{
    TRAIN_READS(IT(1, nan) IT(2, 2), "1=nan 2=2 nan");
    TRAIN_READS(IT(1, inf), "1=nan nan");
    TRAIN_READS(IT(1, -inf), "1=nan nan");
    /* A first rate of 0 says that nothing is measured yet; a later 0 is no value. */
    TRAIN_READS(IT(1, 0), "no_metric");
    TRAIN_READS(IT(1, 0.000), "no_metric");
    TRAIN_READS(IT(1, 0) IT(2, 2), "2=2 ok");
    TRAIN_READS(IT(1, 0) IT(2, 0), "2=nan nan");
    TRAIN_READS(IT(1, 2) IT(2, 0), "1=2 2=nan nan");
    TRAIN_READS(IT(1, 2) IT(2, 0.000), "1=2 2=nan nan");
    TRAIN_READS(IT(1, -5), "1=nan nan");
    TRAIN_READS(IT(1, 1e999), "1=nan nan");
    TRAIN_READS(IT(1, None), "1=nan nan");
    /* nor may the loss be none, also where no rate is */
    TRAIN_READS("loss: nan\n" IT(1, 5), "1=5 nan");
}

TEST(ends)
{
    TRAIN_READS("iter: 10/20, ips: 1 samples/sec\niter: 20/20, ips: 1 samples/sec\n",
                "10=1 20=1 ok");
    /* within one interval of the end */
    TRAIN_READS("iter: 8/20, ips: 1 samples/sec\niter: 16/20, ips: 1 samples/sec\n", "8=1 16=1 ok");
    TRAIN_READS("iter: 5/20, ips: 1 samples/sec\niter: 10/20, ips: 1 samples/sec\n",
                "5=1 10=1 incomplete");
    TRAIN_READS("iter: 10/20, ips: 1 samples/sec\niter: 20/20, ips: 1", "10=1 truncated");
    TRAIN_READS("iter: 10/20, ips: 1 samples/sec\niter: 20/20, ips: 1 samples/s", "10=1 truncated");
    TRAIN_READS(IT(10, 1) "iter: 20, ips: ", "10=1 truncated");
    TRAIN_READS(IT(10, 1) "epoch: 1, iter: 20", "10=1 truncated");
    TRAIN_READS(IT(10, 1) "some other line", "10=1 ok");
    TRAIN_READS("iter: 20/20, ips: 1", "no_metric");
    /* two runs count more than a truncated line, a bad value more than both */
    TRAIN_READS(IT(2, 1) IT(1, 1) "iter: 2, ips: ", "2=1 1=1/1 ambiguous");
    TRAIN_READS(IT(2, -1) IT(1, 1) "iter: 2, ips: ", "2=nan 1=1/1 nan");
    TRAIN_READS(IT(1, 1) IT(2, 0) IT(1, 1) "iter: 2, ips: ", "1=1 2=nan 1=1/1 nan");
    /* A run whose only rate is a first 0 has no number, so that the other run is the only one. */
    TRAIN_READS(IT(2, 0) IT(1, 1) "iter: 2, ips: ", "1=1/1 truncated");
}

TEST(tables)
{
    reads_as(TABLE,
             STR_LIT("total_ips\n   | 96 |\n------\n 1 | 387.07 |\n 8 | 2998.1 |\n\nlatency\n 1 | "
                     "0.25 |\n\nall done\n"),
             "1=387.07 2=2998.1 ok");
    reads_as(TABLE, STR_LIT(" 1 | 387.07 |\nall done\n"), "no_metric");
    reads_as(TABLE, STR_LIT("total_ips\n 1 | 387.07 |\n\nbroken\nall done\n"),
             "1=387.07 incomplete");
    reads_as(TABLE, STR_LIT("total_ips\n 1 | 387.07 |\n"), "1=387.07 incomplete");
    reads_as(TABLE, STR_LIT("total_ips\n 1 | 387.07 |\n\ntotal_ips\n 1 | 5 |\n\nall done\n"),
             "1=387.07 1=5/1 ambiguous");
    struct format *format = format_with(TABLE);
    struct measurement m =
        parse(format, STR_LIT("total_ips\n 1 | 387.07 |\n 8 | 2998.1 |\n\nall done\n"));
    assert_int_equal(m.series[0].samples[0].gpus, 1);
    assert_int_equal(m.series[0].samples[1].gpus, 8);
    format_release(format);
}

TEST(facts_times_and_counts)
{
    struct format *format = format_with(TRAIN);
    struct measurement m =
        parse(format, STR_LIT("x\ncuda 10.1 \r\ncuda 10.1\nwarmup 3\n2020-12-16 18:32:38 " IT(5, 1)
                                  IT(2, 2) "cuda 11.2\ntail"));
    assert_int_equal(m.n_facts, 4);
    assert_true(str_eq_z(m.facts[0].name, "cuda") && str_eq_z(m.facts[0].value, "10.1"));
    assert_int_equal(m.facts[0].line, 2);
    assert_true(str_eq_z(m.facts[2].name, "log_date") && str_eq_z(m.facts[2].value, "2020-12-16"));
    assert_true(str_eq_z(m.facts[3].value, "11.2")); /* the second run differs */
    assert_int_equal(m.facts[3].line, 7);
    assert_int_equal(m.warmup_steps, 3);
    assert_int_equal(m.n_lines, 8);
    assert_int_equal(m.n_runs, 2);
    assert_true(m.series[0].samples[0].time_s == 1608143558);
    assert_true(isnan(m.series[0].samples[1].time_s));
    assert_int_equal(m.first_run, PARSE_OK);
    format_release(format);
}

/* Every beginning of a log either lacks samples at its end or is reported as truncated: never a wrong number. */
TEST(a_cut_log_never_gives_a_wrong_value)
{
    static const char LOG[] = "iter: 1/3, ips: 125 samples/sec\niter: 2/3, ips: 250 "
                              "samples/sec\niter: 3/3, ips: 375 samples/sec\n";
    struct format *format = format_with(TRAIN);
    for (size_t len = 0; len < sizeof(LOG); len++) {
        struct measurement m = parse(format, (struct str){LOG, len});
        const struct series *s = measurement_primary(&m);
        for (size_t idx = 0; idx < s->n; idx++) {
            assert_true(s->samples[idx].value == 125.0 * (double)(idx + 1));
        }
        assert_true((m.verdict == PARSE_OK) == (s->n == 3));
    }
    format_release(format);
}

TEST(long_lines)
{
    struct format *format = format_with(TRAIN);
    struct measurement m = {0};
    size_t len = FORMAT_LINE_MAX + 40;
    char *text = xmalloc(2 * len);
    /* exactly the limit, then a line */
    memset(text, 'x', 2 * len);
    memcpy(text, IT(1, 7), 28);
    text[28 + FORMAT_LINE_MAX] = '\n';
    PASSES(parse_cut(format, (struct str){text, 28 + FORMAT_LINE_MAX + 1}, 100, &m, ERR));
    assert_string_equal(told(&m), "1=7 ok");
    /* one more byte */
    text[28 + FORMAT_LINE_MAX] = 'x';
    text[28 + FORMAT_LINE_MAX + 1] = '\n';
    for (size_t cut = 0; cut < 2 * len; cut += 99991) {
        FAILS(parse_cut(format, (struct str){text, 2 * len}, cut, &m, ERR), ERR_PARSE);
        SAYS("byte 28");
    }
    /* NULs do not count */
    memset(text + 28, 0, 2 * len - 28);
    PASSES(parse_cut(format, (struct str){text, 2 * len}, 5, &m, ERR));
    assert_string_equal(told(&m), "1=7 ok");
    free(text);
    format_release(format);
}

TEST(ranks_are_limited)
{
    struct format *format = format_with(TRAIN);
    struct measurement m = {0};
    FAILS(parse_cut(format, STR_LIT("[1,65536]<stdout>:" IT(1, 1)), 0, &m, ERR), ERR_PARSE);
    format_release(format);
}

TEST(runs_are_limited)
{
    struct parser *parser = NULL;
    struct format *format = format_with(TRAIN);
    PASSES(parser_new(format, ARENA, &parser, ERR));
    parser->run = RUNS_MAX - 2; /* counted from 0 */
    PASSES(parser_feed(parser, IT(2, 1) IT(1, 1), 56, ERR));
    FAILS(parser_feed(parser, IT(0, 1), 28, ERR), ERR_PARSE);
    SAYS("more than 32767 runs");
    parser_free(parser);
    format_release(format);
}

TEST(scores_can_be_left_out)
{
    struct format *format = format_with(TRAIN);
    for (int named = 0; named < 2; named++) {
        struct parser *parser = NULL;
        struct measurement m;
        PASSES(parser_new(format, ARENA, &parser, ERR));
        parser_skip_scores(parser, named ? STR_LIT("loss") : STR_EMPTY);
        PASSES(parser_feed(parser, "loss: 2\n" IT(1, 1), 36, ERR));
        PASSES(parser_finish(parser, &m, ERR));
        assert_int_equal(measurement_series(&m, STR_LIT("loss"))->n, named);
        assert_int_equal(measurement_primary(&m)->n, 1);
        parser_free(parser);
    }
    format_release(format);
}
