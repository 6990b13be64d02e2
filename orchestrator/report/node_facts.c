/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/node_facts.h"

#include "base/str.h"
#include "base/vec.h"

static bool is_key(struct str key)
{
    return str_is_made_of(key, "a-zA-Z0-9._:@-") && key.len <= FACT_KEY_MAX;
}

/* A printable copy: no control characters, cut at the limit. */
static struct str clean(struct arena *arena, struct str text)
{
    struct str cut = str_sub(str_trim(text), 0, FACT_TEXT_MAX);
    char *copy = str_z(arena, cut);
    for (size_t idx = 0; idx < cut.len; idx++) {
        if ((unsigned char)copy[idx] < 0x20 || copy[idx] == 0x7f) {
            copy[idx] = ' ';
        }
    }
    return str_trim((struct str){copy, cut.len});
}

/* ---- find ---- */

/* Index of the key, or of where it belongs. */
static size_t place_of(const struct node_facts *facts, struct str key, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = facts->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (str_cmp(facts->items[mid].key, key) < 0) {
            low = mid + 1;
        } else {
            high = mid;
        }
    }
    *ret_is_there = low < facts->n && str_eq(facts->items[low].key, key);
    return low;
}

const struct node_fact *facts_find(const struct node_facts *facts, const char *key)
{
    bool is_there;
    size_t place = place_of(facts, str_of(key), &is_there);
    return is_there ? &facts->items[place] : NULL;
}

struct str facts_value(const struct node_facts *facts, const char *key)
{
    const struct node_fact *fact = facts_find(facts, key);
    return fact ? fact->value : STR_EMPTY;
}

struct str facts_at(const struct node_facts *facts, const char *fmt, ...)
{
    char key[FACT_KEY_MAX + 1];
    va_list args;
    va_start(args, fmt);
    vsnprintf(key, sizeof(key), fmt, args);
    va_end(args);
    return facts_value(facts, key);
}

struct str facts_why(const struct node_facts *facts, const char *key)
{
    const struct node_fact *fact = facts_find(facts, key);
    return fact ? fact->why : STR_LIT("the node did not say");
}

bool facts_i64(const struct node_facts *facts, const char *key, int64_t *ret_value)
{
    struct str value = facts_value(facts, key);
    return value.ptr && str_to_i64(value, 0, INT64_MAX, ret_value, ERR_IGNORED) == 0;
}

bool facts_hex(struct str text, uint64_t *ret_mask)
{
    uint64_t mask = 0;
    for (size_t idx = 0; idx < text.len; idx++) {
        char c = text.ptr[idx];
        mask = mask << 4 | (uint64_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    *ret_mask = mask;
    return str_is_made_of(text, "0-9a-fA-F") && text.len <= 16;
}

/* ---- read ---- */

int facts_add(struct arena *arena, struct node_facts *facts, struct node_fact fact, struct err *err)
{
    bool is_there;
    size_t place = place_of(facts, fact.key, &is_there);
    if (is_there) {
        return err_set(err, ERR_NODE, "the probe says %.*s twice", STR_ARG(fact.key));
    }
    if (facts->n == FACTS_MAX) {
        return err_set(err, ERR_NODE, "the probe says more than %d facts", FACTS_MAX);
    }
    VEC_RESERVE_IN(arena, facts);
    memmove(&facts->items[place + 1], &facts->items[place],
            (facts->n - place) * sizeof(*facts->items));
    facts->items[place] = fact;
    facts->n++;
    return 0;
}

static int parse_line(struct arena *arena, struct node_facts *facts, struct str line,
                      size_t line_no, struct err *err)
{
    struct str rest = str_sub(line, 2, line.len);
    struct node_fact fact = {0};
    bool is_value = str_starts(line, STR_LIT("= "));
    if ((!is_value && !str_starts(line, STR_LIT("? "))) || !str_next(&rest, ' ', &fact.key) ||
        !is_key(fact.key)) {
        return err_set(err, ERR_NODE, "line %zu of the probe: expected '= KEY VALUE', found '%.*s'",
                       line_no, STR_ARG(clean(arena, str_sub(line, 0, 60))));
    }
    fact.key = str_dup(arena, fact.key);
    if (is_value) {
        fact.value = clean(arena, rest.ptr ? rest : STR_LIT(""));
    } else {
        fact.why = clean(arena, rest.ptr ? rest : STR_LIT(""));
        fact.why = fact.why.len ? fact.why : STR_LIT("no reason given");
    }
    return facts_add(arena, facts, fact, err);
}

int facts_parse(struct arena *arena, struct str text, struct node_facts *ret_facts, struct err *err)
{
    struct node_facts facts = {0};
    struct str line;
    for (size_t line_no = 1; str_next(&text, '\n', &line) && (line.len || text.ptr); line_no++) {
        if (parse_line(arena, &facts, line, line_no, err) < 0) {
            return -1;
        }
    }
    *ret_facts = facts;
    return 0;
}

/* ---- GPUs ---- */

/* The probe's query groups: "all" holds everything if the driver knows every field, otherwise the others exist. */
static const char *const GROUPS[] = {"all", "id",    "cap",   "clock", "app",
                                     "ecc", "power", "state", "mig",   "pcie"};

/* ---- one line ---- */

static struct str unit_of(struct str head_unit)
{
    static const struct {
        const char *printed, *ours;
    } UNITS[] = {{"MHz", "mhz"}, {"MiB", "mib"}, {"W", "w"}, {"%", "percent"}};
    const typeof(UNITS[0]) *found = Z_NAMED(UNITS, ARRAY_LEN(UNITS), printed, head_unit);
    return found ? str_of(found->ours) : STR_EMPTY;
}

static bool is_not_known(struct str value)
{
    static const char *const WORDS[] = {"N/A", "", "Unknown Error", "ERR!", NULL};
    if (value.len && value.ptr[0] == '[') {
        return true;
    }
    return str_eq_any(value, WORDS);
}

/* "clocks.max.sm [MHz]" */
static int read_head(struct arena *arena, struct str column, struct smi_cell *cell,
                     struct str *ret_unit, struct err *err)
{
    int64_t bracket = str_find(column, STR_LIT(" ["));
    *ret_unit = STR_EMPTY;
    cell->field = str_dup(arena, column);
    if (bracket < 0) {
        return 0;
    }
    cell->field = str_dup(arena, str_sub(column, 0, (size_t)bracket));
    *ret_unit = str_sub(column, (size_t)bracket + 2, column.len);
    if (!str_ends(*ret_unit, STR_LIT("]"))) {
        return err_set(err, ERR_NODE, "nvidia-smi: head '%.*s': no ']'", STR_ARG(column));
    }
    ret_unit->len--;
    cell->unit = unit_of(*ret_unit);
    return cell->unit.ptr
               ? 0
               : err_set(err, ERR_NODE, "nvidia-smi: head '%.*s': unknown unit", STR_ARG(column));
}

static int read_value(struct arena *arena, struct str value, struct str unit, struct smi_cell *cell,
                      struct err *err)
{
    if (is_not_known(value)) {
        cell->why = value.len ? str_dup(arena, value) : STR_LIT("nvidia-smi leaves it empty");
        return 0;
    }
    if (unit.ptr) {
        size_t len = value.len;
        if (!str_ends(value, unit)) {
            return err_set(err, ERR_NODE,
                           "nvidia-smi: %.*s: expected a value in %.*s, found '%.*s'",
                           STR_ARG(cell->field), STR_ARG(unit), STR_ARG(value));
        }
        value = str_trim(str_sub(value, 0, len - unit.len));
    }
    cell->value = str_dup(arena, value);
    return 0;
}

int smi_row(struct arena *arena, struct str head, struct str line,
            struct smi_cell cells[SMI_COLUMNS_MAX], size_t *ret_n, struct err *err)
{
    struct str column = STR_EMPTY;
    struct str value = STR_EMPTY;
    size_t n = 0;
    while (str_next(&head, ',', &column)) {
        struct str unit;
        if (n == SMI_COLUMNS_MAX) {
            return err_set(err, ERR_NODE, "nvidia-smi: more than %d columns", SMI_COLUMNS_MAX);
        }
        cells[n] = (struct smi_cell){0};
        if (read_head(arena, str_trim(column), &cells[n], &unit, err) < 0) {
            return -1;
        }
        if (!str_next(&line, ',', &value)) {
            return err_set(err, ERR_NODE, "nvidia-smi: %zu values, but more columns in its head",
                           n);
        }
        if (read_value(arena, str_trim(value), unit, &cells[n], err) < 0) {
            return -1;
        }
        n++;
    }
    if (line.ptr) {
        return err_set(err, ERR_NODE, "nvidia-smi: %zu columns in its head, but more values", n);
    }
    *ret_n = n;
    return 0;
}

struct str smi_banner_cuda(struct str banner)
{
    static const char *const LABELS[] = {"CUDA Version:", "CUDA UMD Version:"};
    for (size_t idx = 0; idx < ARRAY_LEN(LABELS); idx++) {
        int64_t at = str_find(banner, str_of(LABELS[idx]));
        if (at >= 0) {
            struct str rest =
                str_trim(str_sub(banner, (size_t)at + strlen(LABELS[idx]), banner.len));
            size_t len = 0;
            while (len < rest.len && (is_digit(rest.ptr[len]) || rest.ptr[len] == '.')) {
                len++;
            }
            return len ? str_sub(rest, 0, len) : STR_EMPTY; /* "N/A" */
        }
    }
    return STR_EMPTY;
}

/* ---- as facts ---- */

static int add_gpu(struct arena *arena, struct node_facts *facts, const struct smi_cell *cells,
                   size_t n, struct err *err)
{
    int64_t gpu;
    if (n == 0 || !str_eq_z(cells[0].field, "index") || !cells[0].value.ptr ||
        str_to_i64(cells[0].value, 0, FACT_GPUS_MAX - 1, &gpu, &(struct err){0}) < 0) {
        return err_set(err, ERR_NODE, "nvidia-smi: a line does not begin with a GPU's index");
    }
    for (size_t idx = 1; idx < n; idx++) {
        const struct smi_cell *cell = &cells[idx];
        const char *key =
            arena_printf(arena, "gpu.%lld.%.*s%s%.*s", (long long)gpu, STR_ARG(cell->field),
                         cell->unit.ptr ? "_" : "", STR_ARG(cell->unit));
        bool is_there = facts_find(facts, key) != NULL;
        if (!is_there &&
            facts_add(arena, facts, (struct node_fact){str_of(key), cell->value, cell->why}, err) <
                0) {
            return -1;
        }
    }
    return 0;
}

/* Returns the number of GPUs, -1 on an error, 0 if there is no such group. */
static int64_t add_group(struct arena *arena, struct node_facts *facts, const char *group,
                         struct err *err)
{
    struct smi_cell cells[SMI_COLUMNS_MAX];
    struct str head = facts_value(facts, arena_printf(arena, "smi.%s.0", group));
    size_t n = 0;
    for (int64_t row = 1; head.ptr && row <= FACT_GPUS_MAX; row++) {
        struct str line =
            facts_value(facts, arena_printf(arena, "smi.%s.%lld", group, (long long)row));
        if (!line.ptr) {
            return row - 1;
        }
        if (smi_row(arena, head, line, cells, &n, err) < 0 ||
            add_gpu(arena, facts, cells, n, err) < 0) {
            return -1;
        }
    }
    return head.ptr ? FACT_GPUS_MAX : 0;
}

static bool has_rows(struct arena *arena, const struct node_facts *facts, const char *group)
{
    return facts_value(facts, arena_printf(arena, "smi.%s.0", group)).ptr != NULL;
}

/* Without nvidia-smi's list, counts the driver's device files. */
static int add_count(struct arena *arena, struct node_facts *facts, int64_t listed, struct err *err)
{
    struct node_fact count = {STR_LIT("gpu.count"), STR_EMPTY, STR_EMPTY};
    struct str why = facts_why(facts, "smi.id");
    struct str smi = facts_why(facts, "nvidia.smi");
    int64_t devices = 0;
    bool has_devices = facts_i64(facts, "nvidia.devices", &devices);
    if (listed >= 0) {
        count.value = str_printf(arena, "%lld", (long long)listed);
    } else if (has_devices && (devices == 0 || facts_find(facts, "nvidia.smi") == NULL ||
                               str_eq_z(smi, "no nvidia-smi"))) {
        /* Without a device file no GPU can be used, whatever is in the slots. */
        count.value = str_printf(arena, "%lld", (long long)devices);
    } else {
        count.why = why.ptr && facts_find(facts, "smi.id") ? why : smi;
        count.why = count.why.ptr ? count.why : STR_LIT("nvidia-smi lists none");
    }
    return facts_add(arena, facts, count, err);
}

int facts_expand_gpus(struct arena *arena, struct node_facts *facts, struct err *err)
{
    struct str banner = facts_value(facts, "nvidia.smi");
    struct str cuda = smi_banner_cuda(banner);
    struct node_fact driver = {STR_LIT("nvidia.driver"), STR_EMPTY, STR_EMPTY};
    struct node_fact newest = {STR_LIT("nvidia.cuda"), cuda, STR_EMPTY};
    int64_t listed = -1;
    for (size_t idx = 0; idx < ARRAY_LEN(GROUPS); idx++) {
        int64_t n =
            has_rows(arena, facts, GROUPS[idx]) ? add_group(arena, facts, GROUPS[idx], err) : 0;
        if (n < 0) {
            return -1;
        }
        if (idx < 2 && has_rows(arena, facts, GROUPS[idx])) {
            listed = n;
        }
    }
    driver.value = facts_value(facts, "gpu.0.driver_version");
    if (!driver.value.ptr) {
        driver.value = facts_value(facts, "nvidia.module");
        driver.why = driver.value.ptr ? STR_EMPTY : facts_why(facts, "nvidia.module");
    }
    if (!cuda.ptr) {
        newest.why = banner.ptr ? STR_LIT("nvidia-smi's banner does not say")
                                : facts_why(facts, "nvidia.smi");
    }
    return facts_add(arena, facts, driver, err) < 0 || facts_add(arena, facts, newest, err) < 0
               ? -1
               : add_count(arena, facts, listed, err);
}
