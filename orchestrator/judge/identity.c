/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "judge/identity.h"

#define COUNT_MAX   1000000000
#define STATED_MAX  16
#define NAME_BYTES  64
#define LIST_BYTES  160
#define NOT_PRINTED (-1)

const char *const IDENTITY_NAMES[IDENTITY_FACTS] = {
    [ID_GPUS] = "gpus",   [ID_NODES] = "nodes", [ID_PRECISION] = "precision", [ID_BATCH] = "batch",
    [ID_MODEL] = "model", [ID_UNIT] = "unit",   [ID_MACHINE] = "machine",     [ID_LOGS] = "runs"};

struct str identity_facts(struct arena *arena, const struct identity *identity,
                          enum identity_state state, const char *between)
{
    struct str names = STR_EMPTY;
    for (size_t fact = 0; fact < IDENTITY_FACTS; fact++) {
        if (identity->items[fact].state == state) {
            names = str_printf(arena, "%.*s%s%s", STR_ARG(names), names.len ? between : "",
                               IDENTITY_NAMES[fact]);
        }
    }
    return names;
}

const char *const PROOF_NAMES[3] = {"full", "partial", "contradicted"};

/* ---- what the log states ---- */

/* The different values that a run states for one name, in the order of its lines. */
struct stated {
    const struct fact *items[STATED_MAX];
    size_t n;
    const struct vocabulary *vocabulary; /* of precisions */
};

/* One run of a log, or, with run < 0, all of it. */
struct told {
    const struct measurement *m;
    int32_t run;
};

static struct told told_of(const struct measurement *m, const struct rule *rule)
{
    return (struct told){m, rule ? rule_run(rule, m) : -1};
}

static struct stated stated_of(const struct told *told, const char *name)
{
    const struct measurement *m = told->m;
    struct stated s = {0};
    for (size_t idx = 0; idx < m->n_facts && s.n < STATED_MAX; idx++) {
        bool is_new = str_eq_z(m->facts[idx].name, name) && fact_is_of(&m->facts[idx], told->run);
        for (size_t old = 0; old < s.n; old++) {
            is_new = is_new && !str_eq(s.items[old]->value, m->facts[idx].value);
        }
        if (is_new) {
            s.items[s.n++] = &m->facts[idx];
        }
    }
    return s;
}

static int64_t to_count(struct str text)
{
    int64_t value;
    return str_to_i64(text, 1, COUNT_MAX, &value, ERR_IGNORED) == 0 ? value : 0;
}

/* 0 if the log states none, or several. */
static int64_t count_stated(const struct told *told, const char *name)
{
    struct stated s = stated_of(told, name);
    return s.n == 1 ? to_count(s.items[0]->value) : 0;
}

/* The quotient if it is whole, else 0. */
static int64_t whole(int64_t product, int64_t factor)
{
    return product > 0 && factor > 0 && product % factor == 0 ? product / factor : 0;
}

/* Batches accumulated per optimizer step: 1 if the format knows no accumulation, 0 if it does but the log does not
   say. */
static int64_t accumulated(const struct format *format, const struct told *told)
{
    return format_reads(format, "grad_accumulation") ? count_stated(told, "grad_accumulation") : 1;
}

static struct log_counts counts_of(const struct format *format, const struct told *told)
{
    int64_t per_node = count_stated(told, "gpus_per_node");
    int64_t global = whole(count_stated(told, "global_batch"), accumulated(format, told));
    struct log_counts c = {count_stated(told, "gpus"), count_stated(told, "nodes"),
                           count_stated(told, "batch_per_gpu")};
    if (c.gpus == 0 && stated_of(told, "gpus").n == 0) {
        c.gpus = c.nodes > 0 && per_node > 0 ? c.nodes * per_node : whole(global, c.batch_per_gpu);
    }
    if (c.nodes == 0 && stated_of(told, "nodes").n == 0) {
        c.nodes = c.gpus == 1 ? 1 : whole(c.gpus, per_node);
    }
    if (c.batch_per_gpu == 0 && stated_of(told, "batch_per_gpu").n == 0) {
        c.batch_per_gpu = whole(global, c.gpus);
    }
    return c;
}

struct log_counts identity_counts(const struct format *format, const struct measurement *m,
                                  const struct rule *rule)
{
    const struct told told = told_of(m, rule);
    return counts_of(format, &told);
}

struct str identity_counts_doubt(struct arena *arena, const struct format *format,
                                 const struct measurement *m, const struct rule *rule)
{
    const struct told told = told_of(m, rule);
    const struct stated gpus = stated_of(&told, "gpus");
    const struct stated global = stated_of(&told, "global_batch");
    const struct stated each = stated_of(&told, "batch_per_gpu");
    int64_t devices = whole(whole(count_stated(&told, "global_batch"), accumulated(format, &told)),
                            count_stated(&told, "batch_per_gpu"));
    int64_t stated = count_stated(&told, "gpus");
    return devices > 0 && stated > 0 && devices != stated
               ? str_printf(arena,
                            "a batch of %.*s (line %" PRId64 ") over %.*s of one device "
                            "(line %" PRId64 ") is of %" PRId64 " devices, and line %" PRId64
                            " states %" PRId64,
                            STR_ARG(global.items[0]->value), global.items[0]->line,
                            STR_ARG(each.items[0]->value), each.items[0]->line, devices,
                            gpus.items[0]->line, stated)
               : STR_EMPTY;
}

/* ---- comparing ---- */

static struct identity_item unproven(struct str why)
{
    return (struct identity_item){ID_UNPROVEN, why, 0};
}

static struct identity_item proven(void)
{
    return (struct identity_item){ID_PROVEN, STR_EMPTY, 0};
}

/* The format never reads it, or this log lacks it, or states it for another run. */
static struct identity_item lacking(struct arena *arena, const struct format *format,
                                    const struct told *told, const char *fact, const char *words)
{
    const struct told whole_log = {told->m, -1};
    struct str why = format_absent(format, fact);
    bool is_elsewhere = stated_of(&whole_log, fact).n > 0;
    return unproven(why.ptr ? why
                            : str_printf(arena,
                                         is_elsewhere ? "the log states %s, but not for this run"
                                                      : "the log does not state %s",
                                         words));
}

typedef bool (*same_fn)(const struct stated *all, struct str row, struct str stated);

/* Compares all stated values with the row. Several different values prove nothing; if none is the row's, they contradict it. */
static struct identity_item compare(struct arena *arena, const struct stated *s, struct str row,
                                    same_fn same, const char *words)
{
    char list[LIST_BYTES] = "";
    size_t len = 0;
    size_t n_same = 0;
    for (size_t idx = 0; idx < s->n; idx++) {
        n_same += same(s, row, s->items[idx]->value);
        if (len < sizeof(list)) {
            len += (size_t)snprintf(list + len, sizeof(list) - len, "%s%.*s", idx ? " and " : "",
                                    STR_ARG(s->items[idx]->value));
        }
    }
    if (n_same == s->n) {
        return proven();
    }
    return (struct identity_item){
        n_same > 0 ? ID_UNPROVEN : ID_CONTRADICTED,
        str_printf(arena, "the row's %s is %.*s, but the log says %s", words, STR_ARG(row), list),
        n_same > 0 ? 0 : s->items[0]->line};
}

static bool same_count(const struct stated *all UNUSED, struct str row, struct str stated)
{
    return to_count(row) > 0 && to_count(row) == to_count(stated);
}

static struct str count_text(struct arena *arena, int64_t count)
{
    return str_printf(arena, "%" PRId64, count);
}

/* A count that follows from others the log states. */
static struct identity_item follows(struct arena *arena, int64_t row, int64_t found,
                                    const char *words)
{
    if (row == found) {
        return proven();
    }
    return (struct identity_item){
        ID_CONTRADICTED,
        str_printf(arena, "the row's %s is %" PRId64 ", but by what the log says it is %" PRId64,
                   words, row, found),
        0};
}

static struct identity_item check_count(struct arena *arena, const struct format *format,
                                        const struct told *told, enum identity_fact fact,
                                        int64_t row, int64_t counted)
{
    bool is_gpus = fact == ID_GPUS;
    const char *words = is_gpus ? "number of GPUs" : "number of nodes";
    struct stated s = stated_of(told, IDENTITY_NAMES[fact]);
    if (row == NOT_PRINTED) {
        return unproven(str_printf(arena, "the row does not print its %s", words));
    }
    if (s.n > 0) {
        return compare(arena, &s, count_text(arena, row), same_count, words);
    }
    return counted > 0 ? follows(arena, row, counted, words)
                       : lacking(arena, format, told, IDENTITY_NAMES[fact],
                                 is_gpus ? "how many GPUs there are" : "how many nodes there are");
}

/* A format counts the devices that train. Of a row of CPUs these are its processes, one a node, which a log does not tell from
   GPUs. */
static struct identity_item check_gpus(struct arena *arena, const struct format *format,
                                       const struct told *told, const struct identity_row *row,
                                       int64_t counted)
{
    if (row->nodes > 0 && row->gpus == 0 &&
        count_stated(told, IDENTITY_NAMES[ID_GPUS]) == row->nodes) {
        return unproven(STR_LIT("the row has no GPUs, and the log does not say that what trained "
                                "was none"));
    }
    return check_count(arena, format, told, ID_GPUS, row->nodes ? row->gpus : NOT_PRINTED, counted);
}

/* Batches per GPU that a step of the log accumulates: as stated, or by its batches of all GPUs and of one. 0: not known. */
static int64_t adds_up(const struct format *format, const struct told *told,
                       const struct log_counts *counts)
{
    int64_t each = count_stated(told, "batch_per_gpu");
    if (!format_reads(format, "grad_accumulation") || stated_of(told, "grad_accumulation").n > 0) {
        return count_stated(told, "grad_accumulation");
    }
    return counts->gpus > 0 && each > 0
               ? whole(count_stated(told, "global_batch"), each * counts->gpus)
               : 0;
}

/* Runs with the same batch differ if one accumulates several batches per step. The batch itself is still the row's: the log does
   not belong to another row for that reason alone, but what it proves is not the whole row. */
static struct identity_item check_accumulation(struct arena *arena, const struct identity_row *row,
                                               int64_t found)
{
    const char *says =
        row->accumulates > 0 ? arena_printf(arena, "%" PRId64, row->accumulates) : "not printed";
    if (found == row->accumulates || found == 0 || (found == 1 && row->accumulates == 0)) {
        return proven();
    }
    return unproven(str_printf(arena,
                               "how many batches a step adds up is %s in the row, and %" PRId64
                               " by what the log states",
                               says, found));
}

/* A global batch gives the batch per GPU if how many GPUs there are is known and nothing is accumulated; if an unstated
   number is accumulated, it must at least be a multiple of one step without accumulation. */
static struct identity_item check_global(struct arena *arena, const struct format *format,
                                         const struct told *told, const struct identity_row *row,
                                         bool knows_gpus)
{
    struct stated s = stated_of(told, "global_batch");
    int64_t batch = row->batch_per_gpu * row->gpus;
    bool accumulates = format_reads(format, "grad_accumulation");
    if (accumulates && s.n == 1 && row->gpus_per_node > 0 &&
        to_count(s.items[0]->value) % (row->batch_per_gpu * row->gpus_per_node) == 0) {
        return unproven(
            STR_LIT("batches are accumulated, and the log does not state the batch per GPU"));
    }
    struct identity_item item =
        compare(arena, &s, count_text(arena, batch), same_count, "batch of all GPUs");
    return item.state == ID_PROVEN && !knows_gpus
               ? unproven(STR_LIT(
                     "the log states the batch of all GPUs, but not how many GPUs there are"))
               : item;
}

static struct identity_item check_batch(struct arena *arena, const struct format *format,
                                        const struct told *told, const struct identity_row *row,
                                        bool knows_gpus)
{
    struct stated s = stated_of(told, "batch_per_gpu");
    if (row->batch_per_gpu == 0) {
        return unproven(STR_LIT("the row does not print its batch"));
    }
    if (s.n > 0) {
        return compare(arena, &s, count_text(arena, row->batch_per_gpu), same_count,
                       "batch per GPU");
    }
    if (row->nodes == 0) {
        return unproven(STR_LIT("the row does not print its number of GPUs"));
    }
    if (stated_of(told, "global_batch").n > 0) {
        return check_global(arena, format, told, row, knows_gpus);
    }
    return lacking(arena, format, told,
                   format_absent(format, "batch_per_gpu").ptr ? "batch_per_gpu" : "global_batch",
                   "the batch");
}

/* Words of one class are the same: full, half in any mixture; an unlisted word is equal only to itself. */
static bool same_precision(const struct stated *all, struct str row, struct str stated)
{
    const struct word *a = words_find(&all->vocabulary->precisions, row);
    const struct word *b = words_find(&all->vocabulary->precisions, stated);
    return a ? b && str_eq(a->kind, b->kind) : str_eq(row, stated);
}

/* Only letters and digits, in lower case; "plus" and "+" are "p": DeepLabV3+, deeplabv3plus and deeplabv3p are one model. */
static size_t bare_name(struct str text, char *out, size_t size)
{
    static const char PLUS[] = "plus";
    const size_t n_plus = sizeof(PLUS) - 1;
    size_t len = 0;
    for (size_t idx = 0; idx < text.len && len < size; idx++) {
        char c = text.ptr[idx];
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c == '+' ? 'p' : c;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) {
            out[len++] = c;
        }
        if (len >= n_plus && memcmp(out + len - n_plus, PLUS, n_plus) == 0) {
            len -= n_plus - 1;
        }
    }
    return len;
}

/* "HRNet_W18" is "hrnetw18"; "deeplabv3p" stands for "deeplabv3plus-mmseg", "resnet50" not for "resnet501". */
static bool same_model(const struct stated *all UNUSED, struct str row, struct str stated)
{
    char a[NAME_BYTES];
    char b[NAME_BYTES];
    size_t n_a = bare_name(row, a, sizeof(a));
    size_t n_b = bare_name(stated, b, sizeof(b));
    size_t n = n_a < n_b ? n_a : n_b;
    const char *longer = n_a > n_b ? a : b;
    if (n == 0 || memcmp(a, b, n) != 0) {
        return false;
    }
    return n_a == n_b || !is_digit(longer[n - 1]) || !is_digit(longer[n]);
}

struct str identity_model(const struct measurement *m)
{
    const struct told told = {m, -1};
    struct stated s = stated_of(&told, "model");
    return s.n > 0 ? s.items[0]->value : STR_EMPTY;
}

bool identity_is_model(struct str row, struct str stated)
{
    return same_model(NULL, row, stated);
}

/* What a unit counts; "samples" are images or sequences. */
static bool is_item(struct str kind)
{
    return str_eq_z(kind, "images") || str_eq_z(kind, "sequences");
}

static bool same_kind(const struct vocabulary *v, struct str row, struct str stated)
{
    const struct word *a = words_find(&v->units, row);
    const struct word *b = words_find(&v->units, stated);
    return a && b &&
           (str_eq(a->kind, b->kind) || (str_eq_z(a->kind, "samples") && is_item(b->kind)) ||
            (str_eq_z(b->kind, "samples") && is_item(a->kind)));
}

static struct identity_item check_unit(struct arena *arena, const struct vocabulary *v,
                                       const struct measurement *m, struct str stated,
                                       const struct rule *rule)
{
    const struct series *series = rule ? measurement_series(m, rule->series) : NULL;
    struct str unit;
    if (!stated.ptr) {
        return unproven(STR_LIT("the plan does not state the unit"));
    }
    if (!series) {
        return unproven(STR_LIT("no rule gives the number"));
    }
    unit = rule_unit(rule, series->unit);
    if (same_kind(v, stated, unit) || unit_time_ratio(v, unit, stated) > 0) {
        return proven();
    }
    return (struct identity_item){ID_CONTRADICTED,
                                  str_printf(arena, "the row's unit is %.*s, and %.*s gives %.*s",
                                             STR_ARG(stated), STR_ARG(rule->id),
                                             STR_ARG(unit.len ? unit : STR_LIT("a score"))),
                                  0};
}

struct identity_row identity_row_of(const struct report_case *c, const struct cell *cell)
{
    struct str accumulation = STR_EMPTY;
    struct str machine = STR_EMPTY;
    bool is_said = case_condition(c, "grad_accumulation", &accumulation);
    (void)case_condition(c, "machine", &machine);
    return (struct identity_row){.gpus = c->gpus,
                                 .nodes = c->nodes,
                                 .gpus_per_node = c->gpus_per_node,
                                 .batch_per_gpu = c->batch_per_gpu,
                                 .accumulates = is_said ? to_count(accumulation) : 0,
                                 .precision = c->precision,
                                 .model = c->model,
                                 .unit = cell->unit,
                                 .machine = machine,
                                 .framework = c->framework};
}

static bool is_unstated(struct str word)
{
    return str_eq_z(word, "unstated");
}

struct identity identity_of(struct arena *arena, const struct format *format,
                            const struct measurement *m, const struct identity_row *row,
                            const struct rule *rule)
{
    const struct told told = told_of(m, rule);
    struct log_counts counts = counts_of(format, &told);
    struct identity id = {0};
    struct stated precision = stated_of(&told, "precision");
    struct stated model = stated_of(&told, "model");
    precision.vocabulary = format->vocabulary;
    bool is_row_of_gpus = rule && rule->match_gpus; /* the rule took the row of this many */
    id.items[ID_GPUS] =
        is_row_of_gpus ? proven() : check_gpus(arena, format, &told, row, counts.gpus);
    id.items[ID_NODES] = is_row_of_gpus && row->gpus == 1
                             ? follows(arena, row->nodes, 1, "number of nodes")
                             : check_count(arena, format, &told, ID_NODES,
                                           row->nodes ? row->nodes : NOT_PRINTED, counts.nodes);
    id.items[ID_BATCH] =
        check_batch(arena, format, &told, row, id.items[ID_GPUS].state == ID_PROVEN);
    if (id.items[ID_BATCH].state == ID_PROVEN) {
        id.items[ID_BATCH] = check_accumulation(arena, row, adds_up(format, &told, &counts));
    }
    id.items[ID_PRECISION] =
        !row->precision.ptr           ? unproven(STR_LIT("the plan does not state the precision"))
        : is_unstated(row->precision) ? unproven(STR_LIT("the row does not print its precision"))
        : precision.n ? compare(arena, &precision, row->precision, same_precision, "precision")
                      : lacking(arena, format, &told, "precision", "the precision");
    id.items[ID_MODEL] = is_unstated(row->model)
                             ? unproven(STR_LIT("the row does not print its model"))
                         : model.n ? compare(arena, &model, row->model, same_model, "model")
                                   : lacking(arena, format, &told, "model", "the model");
    id.items[ID_UNIT] = check_unit(arena, format->vocabulary, m, row->unit, rule);
    return id;
}

void identity_count_logs(struct arena *arena, struct identity *identity, const struct rule *rule,
                         const struct measurement *m, size_t n)
{
    int64_t required = rule_required_for(rule, m);
    if (!rule->required.fact.ptr || required == (int64_t)n) {
        return;
    }
    identity->items[ID_LOGS] =
        required > 0
            ? (struct identity_item){ID_CONTRADICTED,
                                     str_printf(arena,
                                                "%.*s asks for %" PRId64 " runs, and there are %zu",
                                                STR_ARG(rule->id), required, n),
                                     0}
            : unproven(STR_LIT("the rule does not say how many runs its benchmark asks for"));
}

/* ---- the machine ---- */

/* A word of a machine's name that tells it from others: no vendor, no count or size ("8x", "80gb", "bs96"), no word of a run. */
static bool tells_machine(struct str word)
{
    static const char *const BEFORE_COUNTS[] = {"bs", "batch", "fp", "bf", "int", "gpu", "gpus",
                                                "n",  "g",     "c",  "v",  "tf",  "run"};
    size_t n_digits = str_span(word, 0, DIGITS);
    if (is_word_of(word, "nvidia tesla geforce amd intel gpu gpus node nodes server with and amp "
                         "log logs result results train training benchmark run x") ||
        n_digits == word.len ||
        (n_digits > 0 && (str_eq_z(str_sub(word, n_digits, SIZE_MAX), "x") ||
                          str_eq_z(str_sub(word, n_digits, SIZE_MAX), "g") ||
                          str_eq_z(str_sub(word, n_digits, SIZE_MAX), "gb")))) {
        return false;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(BEFORE_COUNTS); idx++) {
        size_t len = strlen(BEFORE_COUNTS[idx]);
        if (str_starts(word, str_of(BEFORE_COUNTS[idx])) && word.len > len && word.len <= len + 3 &&
            is_digit(word.ptr[len]) &&
            !str_eq_z(word, "v100")) { /* the one card that is spelt like a version */
            return false;
        }
    }
    return true;
}

/* The next such word, in lower case. False where the text is used up. */
static bool next_word(struct str *rest, char *word, size_t *ret_len)
{
    for (*ret_len = 0; rest->len > 0 || *ret_len > 0;) {
        char c = rest->len ? rest->ptr[0] : '\0';
        c = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
        if (((c >= 'a' && c <= 'z') || is_digit(c)) && *ret_len < NAME_BYTES) {
            word[(*ret_len)++] = c;
            *rest = str_sub(*rest, 1, SIZE_MAX);
            continue;
        }
        if (*ret_len > 0 && tells_machine((struct str){word, *ret_len})) {
            return true;
        }
        *ret_len = 0;
        *rest = str_sub(*rest, 1, SIZE_MAX);
    }
    return false;
}

/* How many words of `of` the text in `in` lacks; *ret_n: how many it has. */
static size_t count_lacking(struct str of, struct str in, size_t *ret_n)
{
    char a[NAME_BYTES];
    char b[NAME_BYTES];
    size_t n_a;
    size_t n_b;
    size_t n_lacking = 0;
    *ret_n = 0;
    while (next_word(&of, a, &n_a)) {
        struct str rest = in;
        bool has = false;
        while (!has && next_word(&rest, b, &n_b)) {
            has = n_a == n_b && memcmp(a, b, n_a) == 0;
        }
        n_lacking += !has;
        *ret_n += has;
    }
    return n_lacking;
}

enum identity_state identity_machine(const struct identity_machine_words *row, struct str path)
{
    struct str machine = row->machine;
    struct str part;
    struct str best = STR_EMPTY;
    char word[NAME_BYTES];
    size_t n_best = 0;
    size_t n;
    while (str_next(&path, '/', &part)) {
        (void)count_lacking(machine, part, &n);
        if (n > n_best) {
            n_best = n;
            best = part;
        }
    }
    size_t n_lacking = count_lacking(machine, best, &n);
    if (n_best == 0 || n_lacking == 0) {
        return n_best == 0 ? ID_UNPROVEN : ID_PROVEN;
    }
    while (next_word(&best, word, &n)) { /* a word that is neither the machine's nor the run's */
        size_t n_has = 0;
        (void)count_lacking((struct str){word, n}, machine, &n_has);
        if (n_has == 0 && !identity_is_model(row->model, (struct str){word, n}) &&
            str_find(row->framework, (struct str){word, n}) < 0) {
            return ID_CONTRADICTED;
        }
    }
    return ID_UNPROVEN;
}

void identity_see_path(struct arena *arena, struct identity *identity,
                       const struct identity_row *row, struct str path)
{
    struct identity_item *item = &identity->items[ID_MACHINE];
    if (!row->machine.ptr) {
        return; /* the row names no machine: nothing is asked of the log */
    }
    item->state = identity_machine(
        &(struct identity_machine_words){row->machine, row->model, row->framework}, path);
    item->why =
        item->state == ID_PROVEN
            ? STR_EMPTY
            : str_printf(
                  arena,
                  item->state == ID_UNPROVEN
                      ? "the row's machine is %.*s, and the path of the log does not say which it "
                        "is: %.*s"
                      : "the row's machine is %.*s, and the log is of another by its path: %.*s",
                  STR_ARG(row->machine), STR_ARG(path));
}

struct identity identity_none(struct str why)
{
    struct identity id = {0};
    for (size_t idx = 0; idx < ID_MACHINE; idx++) { /* without GPUs there is no number to compare */
        id.items[idx] = unproven(why);
    }
    return id;
}

void identity_join(struct identity *into, const struct identity *other)
{
    for (size_t idx = 0; idx < IDENTITY_FACTS; idx++) {
        if (other->items[idx].state > into->items[idx].state) {
            into->items[idx] = other->items[idx];
        }
    }
}

enum proof identity_proof(const struct identity *identity)
{
    enum identity_state worst = ID_PROVEN;
    for (size_t idx = 0; idx < IDENTITY_FACTS; idx++) {
        worst = identity->items[idx].state > worst ? identity->items[idx].state : worst;
    }
    return worst == ID_PROVEN     ? PROOF_FULL
           : worst == ID_UNPROVEN ? PROOF_PARTIAL
                                  : PROOF_CONTRADICTED;
}

const struct identity_item *identity_contradiction(const struct identity *identity)
{
    for (size_t idx = 0; idx < IDENTITY_FACTS; idx++) {
        if (identity->items[idx].state == ID_CONTRADICTED) {
            return &identity->items[idx];
        }
    }
    return NULL;
}
