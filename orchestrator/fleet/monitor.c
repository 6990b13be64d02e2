/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "fleet/monitor.h"

#include "base/str.h"
#include "base/vec.h"
#include "judge/stats.h"
#include "report/node_facts.h"

/* Source: NVML API reference, nvmlClocksEventReasons (nvml.h): bits of clocks_event_reasons.active. */
enum {
    REASON_SW_POWER_CAP = 0x4,
    REASON_HW_SLOWDOWN = 0x8,
    REASON_SW_THERMAL = 0x20,
    REASON_HW_THERMAL = 0x40,
    REASON_HW_POWER_BRAKE = 0x80,
};
#define REASONS_THERMAL ((uint64_t)(REASON_SW_THERMAL | REASON_HW_THERMAL))
#define N_NET           8
#define N_IB            4

struct gpu_state {
    struct monitor_gpu out;
    VEC(double) clocks; /* those of samples at work; in the arena */
    size_t n_thermal, n_brake, n_cap;
    bool has_ecc;
    double ecc_first[2], ecc_last[2];   /* uncorrected, corrected */
    size_t n_processes, processes_most; /* in this sample; in any */
};

/* What a network interface or an InfiniBand port counts. */
struct port_state {
    struct str name;
    bool is_ib;
    double first[N_NET], last[N_NET];
};

struct log_lines {
    struct arena *arena;
    struct monitor_report *report;
    struct str head;
    struct gpu_state *gpus;
    struct port_state *ports;
    size_t n_ports;
    double began_s[2]; /* the machine's begin by its clock: earliest, latest; 0: not known */
    double cpu_first[2], cpu_last[2]; /* all, stolen */
    bool has_cpu;
    int64_t line_no;
};

static int bad_line(const struct log_lines *reader, const char *what, struct err *err)
{
    return err_set(err, ERR_PARSE, "monitor: line %lld: %s", (long long)reader->line_no, what);
}

/* "N N N ...": exactly as many as wanted, or false. */
static bool read_numbers(struct str text, size_t n, double *ret_values)
{
    struct str word;
    size_t at = 0;
    while (at < n && str_next(&text, ' ', &word)) {
        if (word.len == 0) {
            continue;
        }
        if (str_to_f64(word, &ret_values[at], &(struct err){0}) < 0 || ret_values[at] < 0) {
            return false;
        }
        at++;
    }
    return at == n;
}

/* ---- lines ---- */

static int read_time(struct log_lines *reader, struct str rest, struct err *err)
{
    double values[3];
    if (!read_numbers(rest, 1, values)) {
        return bad_line(reader, "expected seconds since boot", err);
    }
    double *began_s = reader->began_s;
    if (read_numbers(rest, 3, values)) {
        began_s[0] = began_s[0] > 0 && began_s[0] < values[2] ? began_s[0] : values[2];
        began_s[1] = began_s[1] > values[2] ? began_s[1] : values[2];
    }
    reader->report->n_samples++;
    for (size_t idx = 0; idx < reader->report->n_gpus; idx++) {
        reader->gpus[idx].n_processes = 0;
    }
    return 0;
}

/* "cpu  user nice system idle iowait irq softirq steal ..."; guest times are in user's already. */
static int read_cpu(struct log_lines *reader, struct str rest, struct err *err)
{
    double ticks[8];
    double all = 0;
    if (!str_starts(rest, STR_LIT("cpu ")) || !read_numbers(str_sub(rest, 4, rest.len), 8, ticks)) {
        return bad_line(reader, "expected the first line of /proc/stat", err);
    }
    for (size_t idx = 0; idx < 8; idx++) {
        all += ticks[idx];
    }
    if (!reader->has_cpu) {
        reader->cpu_first[0] = all;
        reader->cpu_first[1] = ticks[7];
    }
    reader->has_cpu = true;
    reader->cpu_last[0] = all;
    reader->cpu_last[1] = ticks[7];
    return 0;
}

static int read_port(struct log_lines *reader, struct str rest, bool is_ib, struct err *err)
{
    struct str name;
    struct port_state *port = NULL;
    double values[N_NET] = {0};
    if (!str_next(&rest, ' ', &name) || name.len == 0 ||
        !read_numbers(rest, is_ib ? N_IB : N_NET, values)) {
        return bad_line(reader, "expected a name and its counters", err);
    }
    for (size_t idx = 0; idx < reader->n_ports && !port; idx++) {
        struct port_state *at = &reader->ports[idx];
        port = at->is_ib == is_ib && str_eq(at->name, name) ? at : NULL;
    }
    if (!port) {
        if (reader->n_ports == MONITOR_PORTS_MAX) {
            return bad_line(reader, "too many interfaces", err);
        }
        port = &reader->ports[reader->n_ports++];
        *port = (struct port_state){.name = str_dup(reader->arena, name), .is_ib = is_ib};
        memcpy(port->first, values, sizeof(values));
    }
    memcpy(port->last, values, sizeof(values));
    return 0;
}

/* ---- GPUs ---- */

static bool number_of(const struct smi_cell *cells, size_t n, const char *field, double *ret_value)
{
    const struct smi_cell *cell = STR_NAMED(cells, n, field, str_of(field));
    return cell && cell->value.ptr && str_to_f64(cell->value, ret_value, &(struct err){0}) == 0;
}

/* "0x0000000000000004" */
static bool reasons_of(const struct smi_cell *cells, size_t n, uint64_t *ret_mask)
{
    static const char *const FIELDS[] = {"clocks_event_reasons.active",
                                         "clocks_throttle_reasons.active"};
    const struct smi_cell *cell = NULL;
    for (size_t idx = 0; idx < ARRAY_LEN(FIELDS) && !cell; idx++) {
        cell = STR_NAMED(cells, n, field, str_of(FIELDS[idx]));
    }
    return cell && str_starts(cell->value, STR_LIT("0x")) &&
           facts_hex(str_sub(cell->value, 2, SIZE_MAX), ret_mask);
}

static struct gpu_state *gpu_of(struct log_lines *reader, int64_t index)
{
    for (size_t idx = 0; idx < reader->report->n_gpus; idx++) {
        if (reader->gpus[idx].out.index == index) {
            return &reader->gpus[idx];
        }
    }
    if (reader->report->n_gpus == MONITOR_GPUS_MAX) {
        return NULL;
    }
    struct gpu_state *gpu = &reader->gpus[reader->report->n_gpus++];
    *gpu = (struct gpu_state){.out = {.index = index, .temperature_max_c = -1}};
    return gpu;
}

static void take_errors(struct gpu_state *gpu, const struct smi_cell *cells, size_t n)
{
    static const char *const FIELDS[2] = {"ecc.errors.uncorrected.volatile.total",
                                          "ecc.errors.corrected.volatile.total"};
    for (size_t idx = 0; idx < 2; idx++) {
        double errors;
        if (number_of(cells, n, FIELDS[idx], &errors)) {
            gpu->ecc_first[idx] = gpu->out.n_samples > 1 ? gpu->ecc_first[idx] : errors;
            gpu->ecc_last[idx] = errors;
            gpu->has_ecc = true;
        }
    }
}

static void take_work(struct log_lines *reader, struct gpu_state *gpu, const struct smi_cell *cells,
                      size_t n)
{
    double value = 0;
    uint64_t reasons = 0;
    if (!number_of(cells, n, "utilization.gpu", &value) || value < MONITOR_BUSY_PERCENT) {
        return;
    }
    gpu->out.n_busy++;
    if (number_of(cells, n, "clocks.sm", &value) ||
        number_of(cells, n, "clocks.current.sm", &value)) {
        VEC_RESERVE_IN(reader->arena, &gpu->clocks);
        gpu->clocks.items[gpu->clocks.n++] = value;
    }
    if (reasons_of(cells, n, &reasons)) {
        /* HW slowdown is one of its two causes; older cards name neither. */
        bool is_brake = (reasons & REASON_HW_POWER_BRAKE) != 0;
        bool is_thermal =
            (reasons & REASONS_THERMAL) != 0 || ((reasons & REASON_HW_SLOWDOWN) != 0 && !is_brake);
        gpu->n_thermal += is_thermal;
        gpu->n_brake += is_brake;
        gpu->n_cap += (reasons & REASON_SW_POWER_CAP) != 0;
    }
}

static int read_gpu(struct log_lines *reader, struct str row, struct err *err)
{
    struct smi_cell cells[SMI_COLUMNS_MAX];
    size_t n = 0;
    double value;
    if (!reader->head.ptr) {
        return bad_line(reader, "a GPU before the head", err);
    }
    if (smi_row(reader->arena, reader->head, row, cells, &n, err) < 0) {
        err->code = ERR_PARSE;
        return err_wrap(err, "monitor: line %lld", (long long)reader->line_no);
    }
    if (!number_of(cells, n, "index", &value) || value < 0 || value >= MONITOR_GPUS_MAX) {
        return bad_line(reader, "a GPU without an index", err);
    }
    struct gpu_state *gpu = gpu_of(reader, (int64_t)value);
    if (!gpu) {
        return bad_line(reader, "too many GPUs", err);
    }
    gpu->out.n_samples++;
    const struct smi_cell *bus = STR_NAMED(cells, n, field, STR_LIT("pci.bus_id"));
    gpu->out.bus_id = bus ? bus->value : STR_EMPTY;
    if (number_of(cells, n, "clocks.max.sm", &value)) {
        gpu->out.clock_max_mhz = value;
    }
    if (number_of(cells, n, "temperature.gpu", &value) && value > gpu->out.temperature_max_c) {
        gpu->out.temperature_max_c = value;
    }
    take_errors(gpu, cells, n);
    take_work(reader, gpu, cells, n);
    return 0;
}

static int read_process(struct log_lines *reader, struct str rest, struct err *err)
{
    struct str bus;
    if (!str_next(&rest, ',', &bus) || !rest.ptr) {
        return bad_line(reader, "expected a GPU's bus id and a process", err);
    }
    for (size_t idx = 0; idx < reader->report->n_gpus; idx++) {
        struct gpu_state *gpu = &reader->gpus[idx];
        if (str_eq(gpu->out.bus_id, str_trim(bus))) {
            gpu->n_processes++;
            gpu->processes_most =
                gpu->n_processes > gpu->processes_most ? gpu->n_processes : gpu->processes_most;
        }
    }
    return 0;
}

static int read_line(struct log_lines *reader, struct str line, struct err *err)
{
    struct str rest = str_sub(line, 2, line.len);
    if (line.len < 3 || line.ptr[1] != ' ') {
        return bad_line(reader, "expected a letter, a blank and a reading", err);
    }
    switch (line.ptr[0]) {
    case 't':
        return read_time(reader, rest, err);
    case 'c':
        return read_cpu(reader, rest, err);
    case 'n':
        return read_port(reader, rest, false, err);
    case 'i':
        return read_port(reader, rest, true, err);
    case 'h':
        reader->head = str_dup(reader->arena, str_trim(rest));
        return 0;
    case 'g':
        return read_gpu(reader, str_trim(rest), err);
    case 'p':
        return read_process(reader, rest, err);
    case '?':
    case 'l':
    case 'm':
    case 'f':
        return 0; /* kept in the log, not judged */
    default:
        return bad_line(reader, "no such reading", err);
    }
}

/* ---- verdicts ---- */

static PRINTF_LIKE(3, 4) void add_taint(struct log_lines *reader, const char *id, const char *fmt,
                                        ...)
{
    struct monitor_report *report = reader->report;
    va_list args;
    ASSERT(report->n_taints < MONITOR_TAINTS_MAX); /* each has this many verdicts at most */
    va_start(args, fmt);
    report->taints[report->n_taints++] = (struct taint){id, str_vprintf(reader->arena, fmt, args)};
    va_end(args);
}

static void judge_gpu(struct log_lines *reader, struct gpu_state *gpu)
{
    long long index = (long long)gpu->out.index;
    if (gpu->n_thermal) {
        add_taint(reader, "gpu-thermal",
                  "GPU %lld: slowed by heat in %zu of %zu samples at work, up to %.0f degrees C",
                  index, gpu->n_thermal, gpu->out.n_busy, gpu->out.temperature_max_c);
    }
    if (gpu->n_brake) {
        add_taint(reader, "gpu-power",
                  "GPU %lld: slowed by the power supply in %zu of %zu samples at work", index,
                  gpu->n_brake, gpu->out.n_busy);
    }
    if (gpu->clocks.n) {
        stats_sort(gpu->clocks.items, gpu->clocks.n);
        gpu->out.clock_median_mhz = stats_sorted_median(gpu->clocks.items, gpu->clocks.n);
    }
    double share = gpu->out.clock_max_mhz > 0 && gpu->clocks.n
                       ? 100 * gpu->out.clock_median_mhz / gpu->out.clock_max_mhz
                       : 100;
    if (share < MONITOR_CLOCK_MIN_PERCENT) {
        add_taint(reader, "gpu-clock",
                  "GPU %lld: at work with %.0f of %.0f MHz (median; %zu of %zu samples at its "
                  "power cap)",
                  index, gpu->out.clock_median_mhz, gpu->out.clock_max_mhz, gpu->n_cap,
                  gpu->out.n_busy);
    }
    for (size_t idx = 0; idx < 2; idx++) {
        if (gpu->has_ecc && gpu->ecc_last[idx] > gpu->ecc_first[idx]) {
            add_taint(reader, "gpu-ecc", "GPU %lld: %.0f %s ECC errors", index,
                      gpu->ecc_last[idx] - gpu->ecc_first[idx], idx ? "corrected" : "uncorrected");
        }
    }
    if (gpu->processes_most > 1) { /* a rank has a GPU of its own */
        add_taint(reader, "gpu-shared",
                  "GPU %lld: %zu processes on it, and one of them is the rank", index,
                  gpu->processes_most);
    }
}

/* Counters that went back were reset by a driver or a reboot: the rise is unknown. */
static double rise(const struct port_state *port, size_t idx)
{
    return port->last[idx] > port->first[idx] ? port->last[idx] - port->first[idx] : 0;
}

static void judge_port(struct log_lines *reader, const struct port_state *port)
{
    double errors = port->is_ib ? rise(port, 0) + rise(port, 1) + rise(port, 2) + rise(port, 3)
                                : rise(port, 2) + rise(port, 6);
    double packets = rise(port, 1) + rise(port, 5);
    double drops = rise(port, 3) + rise(port, 7);
    if (errors > 0) {
        add_taint(reader, port->is_ib ? "infiniband" : "nic-errors", "%.*s: %.0f errors",
                  STR_ARG(port->name), errors);
    }
    if (!port->is_ib && drops >= MONITOR_DROPS_MIN &&
        drops * 1000 > packets * MONITOR_DROPS_MAX_PERMILLE) {
        add_taint(reader, "nic-drops", "%.*s: %.0f of %.0f packets dropped", STR_ARG(port->name),
                  drops, packets);
    }
}

static void judge(struct log_lines *reader)
{
    double ticks = reader->cpu_last[0] - reader->cpu_first[0];
    double stolen = reader->cpu_last[1] - reader->cpu_first[1];
    struct monitor_report *report = reader->report;
    for (size_t idx = 0; idx < report->n_gpus; idx++) {
        judge_gpu(reader, &reader->gpus[idx]);
        report->gpus[idx] = reader->gpus[idx].out;
    }
    for (size_t idx = 0; idx < reader->n_ports; idx++) {
        judge_port(reader, &reader->ports[idx]);
    }
    if (ticks > 0 && stolen * 100 > ticks * MONITOR_STEAL_MAX_PERCENT) {
        add_taint(reader, "cpu-steal", "%.1f %% of its CPU time went to others (steal)",
                  100 * stolen / ticks);
    }
    if (reader->began_s[1] - reader->began_s[0] > MONITOR_SET_MAX_S) {
        add_taint(reader, "clock-set", "its clock was set, by %.0f s between the extremes",
                  reader->began_s[1] - reader->began_s[0]);
    }
}

int monitor_judge(struct arena *arena, struct str text, struct monitor_report *ret_report,
                  struct err *err)
{
    static const char BEGIN[] = "reperf-monitor 1 begin ";
    static const char END[] = "reperf-monitor 1 end ";
    struct monitor_report report = {.gpus =
                                        arena_array(arena, struct monitor_gpu, MONITOR_GPUS_MAX),
                                    .taints = arena_array(arena, struct taint, MONITOR_TAINTS_MAX)};
    struct log_lines reader = {.arena = arena,
                               .report = &report,
                               .gpus = arena_array(arena, struct gpu_state, MONITOR_GPUS_MAX),
                               .ports = arena_array(arena, struct port_state, MONITOR_PORTS_MAX),
                               .line_no = 1};
    struct str line;
    if (text.len > MONITOR_TEXT_MAX || !str_next(&text, '\n', &line) ||
        !str_starts(line, STR_LIT(BEGIN))) {
        return err_set(err, ERR_PARSE, "monitor: expected '%s'", BEGIN);
    }
    while (!report.is_whole && str_next(&text, '\n', &line)) {
        reader.line_no++;
        if (!text.ptr) {
            break; /* the last line of a truncated log may be incomplete */
        }
        if (str_starts(line, STR_LIT(END))) {
            report.is_whole = true;
        } else if (read_line(&reader, line, err) < 0) {
            return -1;
        }
    }
    judge(&reader);
    *ret_report = report;
    return 0;
}
