/* SPDX-License-Identifier: Apache-2.0 */
/* A log, under a format like a real one: its measurement does not depend on how the bytes arrive, samples agree with the
   verdict, and any other input is an error at worst. */
#include "tests/fuzz/fuzz.h"

#include <math.h>

#include "judge/rule.h"
#include "log/parser.h"
#include "report/vocabulary.h"

#define INPUT_BYTES_MAX (1u << 20)

static const char FORMAT[] =
    "{\"schema_version\": 1, \"id\": \"f\", \"title\": \"T\", \"framework\": \"f\", \"source\": "
    "\"s\", \"prefixes\": [\"mpirun\", \"srun\"], \"series\": [{\"name\": \"ips\", \"literal\": "
    "\"ips: \", \"pattern\": \"(?:(?<time>\\\\d{4}-\\\\d\\\\d-\\\\d\\\\d \\\\S+) )?(?:epoch: "
    "(?<epoch>\\\\d+), )?iter: (?<step>\\\\d+)/(?<total>\\\\d+), .*ips: (?<value>\\\\S+) "
    "samples/sec\", \"unit\": \"samples/s\", \"scope\": \"rank\", \"quantity\": \"rate\", "
    "\"primary\": true}, {\"name\": \"table\", \"literal\": null, \"pattern\": "
    "\"^\\\\s*(?<gpus>\\\\d+) *\\\\| *(?<value>\\\\S+) *\\\\|\", \"unit\": \"images/s\", "
    "\"scope\": \"job\", \"quantity\": \"summary\", \"primary\": false, \"after\": {\"literal\": "
    "\"total_ips\", \"pattern\": \"^total_ips\"}, \"until\": \"^$\"}, {\"name\": \"loss\", "
    "\"literal\": \"loss: \", \"pattern\": \"loss: (?<value>\\\\S+)\", \"unit\": \"\", \"scope\": "
    "\"rank\", \"quantity\": \"score\", \"primary\": false}], \"run_start\": {\"literal\": "
    "\"start\", \"pattern\": \"^start\"}, \"end\": {\"literal\": \"done\", \"pattern\": \"^done\", "
    "\"required\": false}, \"facts\": [{\"name\": \"cuda\", \"literal\": \"cuda \", \"pattern\": "
    "\"cuda (?<value>\\\\S+)\"}], \"rules\": []}";

static struct format *format; /* one for all inputs; never freed */
static struct arena format_arena;

static void make_format(void)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct err err = {0};
    int status = json_parse(STR_LIT(FORMAT), "fuzz", &doc, &err);
    ASSERT(status == 0);
    doc.root.context = vocabulary_builtin(&format_arena);
    status = format_read(&doc.root, &format_arena, &format, &err);
    ASSERT(status == 0);
}

static int parse(struct arena *arena, struct str text, size_t piece, struct measurement *ret_m)
{
    struct parser *parser = NULL;
    struct err err = {0};
    int status = parser_new(format, arena, &parser, &err);
    for (size_t at = 0; status == 0 && at < text.len; at += piece) {
        status =
            parser_feed(parser, text.ptr + at, text.len - at < piece ? text.len - at : piece, &err);
    }
    if (status == 0) {
        status = parser_finish(parser, ret_m, &err);
    }
    ASSERT(status == 0 || err.code == ERR_PARSE);
    parser_free(parser);
    return status;
}

static bool is_same_f64(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void compare(const struct measurement *a, const struct measurement *b)
{
    ASSERT(a->verdict == b->verdict);
    ASSERT(a->n_lines == b->n_lines);
    ASSERT(a->n_runs == b->n_runs);
    ASSERT(a->n_facts == b->n_facts);
    for (size_t idx = 0; idx < a->n_facts; idx++) {
        ASSERT(str_eq(a->facts[idx].value, b->facts[idx].value));
        ASSERT(a->facts[idx].line == b->facts[idx].line);
    }
    for (size_t idx = 0; idx < a->n_series; idx++) {
        ASSERT(a->series[idx].n == b->series[idx].n);
        for (size_t at = 0; at < a->series[idx].n; at++) {
            const struct sample *x = &a->series[idx].samples[at];
            const struct sample *y = &b->series[idx].samples[at];
            ASSERT(is_same_f64(x->value, y->value));
            ASSERT(is_same_f64(x->time_s, y->time_s));
            ASSERT(x->step == y->step && x->rank == y->rank);
            ASSERT(x->run == y->run && x->gpus == y->gpus);
        }
    }
}

static void check(const struct measurement *m)
{
    const struct series *primary = measurement_primary(m);
    bool has_bad = false;
    for (size_t idx = 0; idx < m->n_series; idx++) {
        for (size_t at = 0; at < m->series[idx].n; at++) {
            double value = m->series[idx].samples[at].value;
            has_bad = has_bad || (m->series[idx].quantity != QTY_SCORE && isnan(value));
            ASSERT(m->series[idx].quantity == QTY_SCORE || isnan(value) || value > 0);
            ASSERT(!isinf(value));
        }
    }
    ASSERT((m->verdict == PARSE_NAN) ==
           (m->causes.n[CAUSE_UNREADABLE] + m->causes.n[CAUSE_NAN_LOSS] > 0));
    ASSERT(!has_bad || m->verdict == PARSE_NAN);
    ASSERT(m->verdict != PARSE_OK || primary->n > 0);
    ASSERT((m->verdict == PARSE_OK) == (m->why.len == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct measurement whole;
    struct measurement pieces;
    struct str text;
    size_t piece;
    int status;
    if (!format) {
        make_format();
    }
    if (size < 1 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    piece = (size_t)data[0] + 1; /* the first byte selects how the rest arrives */
    text = (struct str){(const char *)data + 1, size - 1};
    status = parse(&arena, text, size, &whole);
    ASSERT(parse(&arena, text, piece, &pieces) == status);
    if (status == 0) {
        check(&whole);
        compare(&whole, &pieces);
    }
    return 0;
}
