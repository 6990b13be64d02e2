/* SPDX-License-Identifier: Apache-2.0 */
/* One repeat: its outcome record, its log, its series. */
#include "base/base.h"

#include "evidence/result.h"

#include <math.h>

#include "base/fs.h"
#include "base/vec.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "codec/json_table.h"
#include "evidence/evidence.h"
#include "evidence/rundir.h"
#include "fleet/monitor.h"
#include "fleet/runtime.h"
#include "judge/identity.h"
#include "judge/judgement.h"
#include "judge/number.h"
#include "judge/target.h"
#include "load/measure.h"
#include "report/inventory.h"

/* Reasons to doubt a repeat, from what outlived it, its own log and its judgement, and the nodes' monitors. */

struct taint_list {
    struct str *items;
    size_t n, n_max;
};
struct repeat_check {
    struct arena *arena;
    const struct frozen *frozen;
    const struct plan_step *step;
    const struct repeat_result *repeat;
    struct taint_list *taints;
};

static void add_taint(const struct repeat_check *c, const char *text)
{
    VEC_PUSH(c->taints, str_of(text));
}

/* The hex digits of a digest that begins there; ptr NULL: none does. */
static struct str digest_at(struct str word, size_t at)
{
    const struct str hex = str_sub(word, at, SHA256_HEX_SIZE - 1);
    uint8_t sha256[SHA256_BYTES];
    return hex_decode(hex, SHA256_BYTES, sha256, ERR_IGNORED) == 0 ? hex : STR_EMPTY;
}

/* "sha256:HEX", as engines are told what to run. */
static struct str image_in(struct str word)
{
    const struct str algorithm = STR_LIT("sha256:");
    return str_starts(word, algorithm) && word.len == algorithm.len + SHA256_HEX_SIZE - 1
               ? digest_at(word, algorithm.len)
               : STR_EMPTY;
}

/* Against the image that was pinned, and the program that was locked: what was started has each by its digest. Where the
   engines' id of the image is not known (that of its config), it is one at least. */
static void check_word(const struct repeat_check *c, struct str word, struct str *first_image)
{
    const int64_t bin = str_find(word, STR_LIT("/bin/"));
    const struct str program = bin < 0 ? STR_EMPTY : digest_at(word, (size_t)bin + 5);
    const struct str image = image_in(word);
    const bool is_pinned = c->step->image_id.ptr && !str_ends(c->step->image_digest, image);
    if (image.ptr && is_pinned && !str_ends(c->step->image_id, image)) {
        add_taint(c, arena_printf(c->arena, "its command names image %.*s, staged was %.*s",
                                  STR_ARG(image), STR_ARG(c->step->image_digest)));
    } else if (image.ptr && first_image->ptr && !str_eq(*first_image, image)) {
        add_taint(c, arena_printf(c->arena, "its commands name two images, %.*s and %.*s",
                                  STR_ARG(*first_image), STR_ARG(image)));
    }
    *first_image = first_image->ptr ? *first_image : image;
    for (size_t idx = 0; program.ptr && idx < c->frozen->n_programs; idx++) {
        const struct frozen_digest *locked = &c->frozen->programs[idx];
        const char *end = arena_printf(c->arena, "/%.*s", STR_ARG(locked->name));
        if (str_ends(word, str_of(end)) && !str_eq(program, locked->sha256)) {
            add_taint(c, arena_printf(
                             c->arena, "its command names a %.*s of SHA-256 %.*s, locked was %.*s",
                             STR_ARG(locked->name), STR_ARG(program), STR_ARG(locked->sha256)));
        }
    }
}

static int check_commands(const struct repeat_check *c, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    struct rundir_of of = {.case_id = c->step->case_id, .repeat = c->repeat->repeat};
    const char *path =
        fs_join(c->arena, c->frozen->folder, rundir_name(c->arena, RUNDIR_COMMANDS, of));
    struct json jobs, job, argv, word;
    struct str text, first_image = STR_EMPTY;
    if (!fs_exists(path)) {
        return 0; /* on this machine: the plan has it */
    }
    if (json_read_file(path, &doc, err) < 0 || json_member(&doc.root, "jobs", &jobs, err) < 0) {
        return -1;
    }
    for (bool more = json_first(&jobs, &job); more; more = json_next(&job)) {
        if (json_member(&job, "argv", &argv, err) < 0) {
            return -1;
        }
        for (bool has = json_first(&argv, &word); has; has = json_next(&word)) {
            if (json_str(&word, c->arena, &text, err) < 0) {
                return -1;
            }
            check_word(c, text, &first_image);
        }
    }
    return 0;
}

/* What its log states, against what the machine says of itself and what its case states; of a rehearsal's, what stands in for the
   framework states its own. A version of code is a name of people's. */
static void check_facts(const struct repeat_check *c)
{
    for (size_t idx = 0; idx < c->repeat->n_facts; idx++) {
        const struct fact *fact = &c->repeat->facts[idx];
        const bool is_free = c->frozen->plan.is_rehearsal || str_eq_z(fact->name, "code_version");
        const struct str of[] = {
            condition_value(c->frozen->machine, c->frozen->n_machine, fact->name),
            is_free ? STR_EMPTY : result_planned(c->step, str_z(c->arena, fact->name), STR_EMPTY)};
        for (size_t at = 0; at < ARRAY_LEN(of); at++) {
            if (of[at].ptr && fact_contradicts(fact->name, of[at], fact->value)) {
                add_taint(c, arena_printf(c->arena, "its log states %.*s %.*s, the %s %.*s",
                                          STR_ARG(fact->name), STR_ARG(fact->value),
                                          at ? "case" : "machine", STR_ARG(of[at])));
            }
        }
    }
}

/* What the monitors of its nodes saw. */
static int check_monitors(const struct repeat_check *c, struct err *err)
{
    const struct outcome_record *outcome = &c->repeat->outcome;
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        struct monitor_report report;
        struct err bad = {0};
        struct str text;
        if (!node->monitor.ptr) {
            continue;
        }
        if (fs_read(c->arena, fs_join(c->arena, c->frozen->folder, str_z(c->arena, node->monitor)),
                    MONITOR_TEXT_MAX, &text, err) < 0) {
            return -1;
        }
        if (monitor_judge(c->arena, text, &report, &bad) < 0) {
            report = (struct monitor_report){0};
            add_taint(
                c, arena_printf(c->arena, "%.*s: not watched: %s", STR_ARG(node->name), bad.msg));
        }
        for (size_t at = 0; at < report.n_taints; at++) {
            add_taint(c, arena_printf(c->arena, "%.*s: %.*s", STR_ARG(node->name),
                                      STR_ARG(report.taints[at].text)));
        }
    }
    return 0;
}

static int find_taints(struct arena *arena, const struct frozen *frozen,
                       const struct plan_step *step, struct repeat_result *repeat, struct err *err)
{
    struct taint_list taints = {0};
    const struct repeat_check c = {arena, frozen, step, repeat, &taints};
    const struct str left = repeat->outcome.left;
    if (repeat->counts && repeat->doubt.ptr) {
        add_taint(&c, repeat->doubt.ptr);
    }
    if (repeat->others.ptr) {
        add_taint(&c, repeat->others.ptr);
    }
    if (left.ptr) {
        add_taint(&c, arena_printf(arena, "outlived the job and were ended: %.*s", STR_ARG(left)));
    }
    int rc = check_monitors(&c, err);
    check_facts(&c);
    rc = rc < 0 ? rc : check_commands(&c, err);
    arena_adopt(arena, taints.items);
    repeat->taints = taints.items;
    repeat->n_taints = taints.n;
    return rc;
}

#define SERIES_TEXT_MAX (1u << 30)

const char *const OUTCOME_NAMES[] = {"exited", "deadline"};

static const struct json_field NODE_ROWS[] = {
    ROW("node", struct outcome_node, name, JSON_REQUIRED),
    ROW("exit_status", struct outcome_node, exit_status, JSON_REQUIRED, .max = 255),
    ROW("log", struct outcome_node, log, JSON_REQUIRED),
    ROW("log_sha256", struct outcome_node, log_sha256, JSON_REQUIRED),
    ROW("log_bytes", struct outcome_node, log_bytes, JSON_REQUIRED),
    ROW("monitor", struct outcome_node, monitor, JSON_NULLABLE),
};

/* Where nodes are. */
static void put_failed_node(struct json_out *out, const char *key, const void *of)
{
    const struct outcome_record *record = of;
    if (record->n_nodes) {
        jw_str(out, key, record->failed_node);
    }
}

static const struct json_field OUTCOME_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW("case", struct outcome_record, case_id, JSON_REQUIRED),
    ROW("repeat", struct outcome_record, repeat, JSON_REQUIRED, .min = 1, .max = REPEATS_RUN_MAX),
    ROW("attempt", struct outcome_record, attempt, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
    ROW_WORD("outcome", struct outcome_record, outcome, OUTCOME_NAMES, JSON_REQUIRED),
    ROW("exit_status", struct outcome_record, exit_status, JSON_REQUIRED, .max = 255),
    ROW("log", struct outcome_record, log, JSON_REQUIRED),
    ROW("log_sha256", struct outcome_record, log_sha256, JSON_REQUIRED),
    ROW("log_bytes", struct outcome_record, log_bytes, JSON_REQUIRED),
    ROW_LIST("nodes", struct outcome_record, nodes, n_nodes, NODE_ROWS, JSON_OMIT,
             .max = INVENTORY_NODES_MAX),
    ROW("failed_node", struct outcome_record, failed_node, JSON_NULLABLE, .put = put_failed_node),
    ROW("left", struct outcome_record, left, JSON_OMIT),
    ROW("replaces", struct outcome_record, replaces, JSON_OMIT, .form = &JSON_SHA256),
};

static const struct json_field JOB_ROWS[] = {
    ROW("node", struct commands_job, node, 0),
    ROW("argv", struct commands_job, argv, 0),
    ROW("env", struct commands_job, env, 0),
    ROW("cleanup", struct commands_job, cleanup, 0),
};
const struct json_field COMMANDS_ROWS[COMMANDS_N] = {
    ROW_NUMBER("schema_version", 1),
    ROW("case", struct commands_record, case_id, JSON_REQUIRED),
    ROW("repeat", struct commands_record, repeat, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
    ROW("attempt", struct commands_record, attempt, JSON_REQUIRED, .min = 1, .max = INT32_MAX),
    ROW_LIST("jobs", struct commands_record, jobs, n_jobs, JOB_ROWS, JSON_REQUIRED | JSON_UNREAD),
};

void outcome_encode(const struct outcome_record *record, struct strbuf *buf)
{
    json_encode_document(buf, OUTCOME_ROWS, ARRAY_LEN(OUTCOME_ROWS), record);
}

/* ---- the outcome record: trusted only as far as it agrees with its place, with itself, and with the files that it names ---- */

struct outcome_check {
    struct arena *arena;
    const struct frozen *frozen;
    const char *path; /* of the record */
};

static int wrong(const struct outcome_check *c, const char *what, struct str found, struct err *err)
{
    return err_set(err, ERR_INTEGRITY, "%s: %s, found \"%.*s\"", c->path, what,
                   STR_ARG(str_sub(found, 0, 200)));
}

/* Sets what a record must say of the files of a node: they are below its own name, but for the log that metrics are read from,
   which its reader checks. */
static int name_files(const struct outcome_check *c, const struct outcome_record *record,
                      struct outcome_node *node, struct err *err)
{
    const struct rundir_of of = {
        .case_id = record->case_id, .repeat = record->repeat, .name = node->name};
    struct str hex;
    if (node->monitor.ptr) {
        node->monitor = str_of(rundir_name(c->arena, RUNDIR_MONITOR, of));
    }
    if (str_eq(node->log, record->log)) {
        node->log_sha256 = record->log_sha256;
        node->log_bytes = record->log_bytes;
        return 0;
    }
    node->log = str_of(rundir_name(c->arena, RUNDIR_NODE_LOG, of));
    if (digest_file_hex(c->arena, fs_join(c->arena, c->frozen->folder, node->log.ptr), &hex, err) <
        0) {
        return -1;
    }
    return str_eq(node->log_sha256, hex)
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%.*s: not the log that was collected: SHA-256 was %.*s, is %.*s",
                         STR_ARG(node->log), STR_ARG(node->log_sha256), STR_ARG(hex));
}

/* The nodes are of the inventory, each once, as many as the case has jobs; the metrics are from the log of one. */
static int check_nodes(const struct outcome_check *c, const struct plan_step *step,
                       const struct outcome_record *record, struct err *err)
{
    const struct inventory *inventory = &c->frozen->inventory;
    size_t n_wanted = inventory->is_local                        ? 0
                      : c->frozen->plan.launcher == LAUNCHER_SSH ? (size_t)plan_step_nodes(step)
                                                                 : 1;
    size_t n_metric = 0;
    for (size_t idx = 0; idx < record->n_nodes; idx++) {
        const struct outcome_node *node = &record->nodes[idx];
        if (!STR_NAMED(inventory->nodes, inventory->n_nodes, name, node->name) ||
            STR_NAMED(record->nodes, record->n_nodes, name, node->name) != node) {
            return wrong(c, "expected nodes of the inventory, each once", node->name, err);
        }
        n_metric += str_eq(node->log, record->log);
    }
    return record->n_nodes == n_wanted && n_metric == (n_wanted > 0)
               ? 0
               : wrong(c, "expected as many nodes as the case has jobs, and metrics from one",
                       str_printf(c->arena, "%zu of %zu nodes, metrics from %zu", record->n_nodes,
                                  n_wanted, n_metric),
                       err);
}

/* The attempt's status is that of the node that failed first; it is 0 only where it is 0 everywhere. */
static int check_statuses(const struct outcome_check *c, const struct outcome_record *record,
                          struct err *err)
{
    bool has_failed = !record->failed_node.ptr;
    for (size_t idx = 0; idx < record->n_nodes; idx++) {
        const struct outcome_node *node = &record->nodes[idx];
        bool is_named = record->failed_node.ptr && str_eq(node->name, record->failed_node);
        has_failed = has_failed || (is_named && node->exit_status != 0);
        if (record->outcome == OUTCOME_EXITED &&
            ((node->exit_status != 0 && record->exit_status == 0) ||
             (is_named && node->exit_status != record->exit_status))) {
            return wrong(c, "exit status of a node does not agree with the attempt's", node->name,
                         err);
        }
    }
    if (!has_failed || (record->outcome == OUTCOME_EXITED && record->n_nodes &&
                        (record->exit_status != 0) != (record->failed_node.ptr != NULL))) {
        return wrong(c, "expected the node that failed to be named, and no other",
                     record->failed_node, err);
    }
    return 0;
}

/* Byte for byte the text that is written of it at its place. */
static int read_outcome(struct arena *arena, const struct frozen *frozen, struct repeat_of of,
                        struct outcome_record *ret_record, struct err *err)
{
    CLEANUP(json_doc) struct json_doc doc = {0};
    CLEANUP(strbuf) struct strbuf wanted = STRBUF(JSON_TEXT_MAX);
    struct str case_id = of.step->case_id;
    const char *name = rundir_of_repeat(arena, RUNDIR_OUTCOME, case_id, of.repeat);
    const struct outcome_check c = {arena, frozen, fs_join(arena, frozen->folder, name)};
    struct outcome_record record = {.repeat = 0};
    struct str text;
    if (json_read_text(arena, c.path, &text, err) < 0 || json_parse(text, c.path, &doc, err) < 0 ||
        json_decode(&doc.root, arena, OUTCOME_ROWS, ARRAY_LEN(OUTCOME_ROWS), &record, err) < 0) {
        return -1;
    }
    record.case_id = case_id;
    record.repeat = of.repeat;
    record.log = str_of(rundir_of_repeat(arena, RUNDIR_LOG, case_id, of.repeat));
    if (check_nodes(&c, of.step, &record, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < record.n_nodes; idx++) {
        if (name_files(&c, &record, &record.nodes[idx], err) < 0) {
            return -1;
        }
    }
    outcome_encode(&record, &wanted);
    *ret_record = record;
    return evidence_same_text(text, strbuf_str(&wanted), c.path, err) < 0
               ? -1
               : check_statuses(&c, &record, err);
}

/* ---- the series file ---- */

struct sealed_series {
    const struct repeat_result *repeat;
    const struct measurement *m;
};

static void put_samples(struct json_out *out, const char *key, const void *of)
{
    const struct series *series = of;
    jw_array(out, key);
    for (size_t idx = 0; idx < series->n; idx++) {
        series_put_sample(out, series, idx, SAMPLE_RUN);
    }
    jw_end_array(out);
}

static const struct json_field SAMPLES_ROWS[] = {
    {.kind = JSON_HERE, ROW_ROWS(SERIES_HEAD_ROWS)},
    ROW_OUT("samples", JSON_ANY, put_samples, JSON_REQUIRED),
};
static const struct json_field SERIES_ROWS[] = {
    ROW_NUMBER("schema_version", 1),
    ROW_VIA("case", struct sealed_series, repeat, outcome.case_id, JSON_REQUIRED),
    ROW_VIA("repeat", struct sealed_series, repeat, repeat, JSON_REQUIRED),
    ROW_VIA("log", struct sealed_series, repeat, log, JSON_REQUIRED),
    ROW_VIA("log_sha256", struct sealed_series, repeat, outcome.log_sha256, JSON_REQUIRED),
    ROW_VIA("format", struct sealed_series, m, format, JSON_REQUIRED),
    {ROW_AT("verdict", JSON_WORD, struct measurement, verdict),
     .via = {1 + offsetof(struct sealed_series, m)}, .item_size = sizeof(enum parse_verdict),
     .names = PARSE_VERDICT_NAMES, .n_names = ARRAY_LEN(PARSE_VERDICT_NAMES)},
    ROW_VIA("why", struct sealed_series, m, why, JSON_NULLABLE | JSON_BLANK),
    ROW_LIST("series", struct measurement, series, n_series, SAMPLES_ROWS, JSON_REQUIRED,
             .via = {1 + offsetof(struct sealed_series, m)}),
    ROW_LIST("facts", struct measurement, facts, n_facts, FACT_ROWS, JSON_REQUIRED,
             .via = {1 + offsetof(struct sealed_series, m)}),
};

static void encode_series(struct strbuf *buf, const struct repeat_result *repeat,
                          const struct measurement *m)
{
    const struct sealed_series of = {repeat, m};
    struct json_out out;
    jw_begin(&out, buf, true);
    json_encode_object(&out, NULL, SERIES_ROWS, ARRAY_LEN(SERIES_ROWS), &of);
    strbuf_add_char(buf, '\n');
}

/* ---- one repeat ---- */

static void does_not_count(struct repeat_result *repeat, enum err_code cause, const char *why)
{
    if (repeat->cause == ERR_NONE) {
        repeat->cause = cause;
        repeat->why = str_of(why);
    }
}

/* A container's engine may have something to say itself; else *ret_cause says what the workload's
   status means. */
static void ask_engine(struct arena *arena, const struct frozen *frozen,
                       const struct outcome_record *outcome, const char *log, struct err *ret_cause)
{
    const struct outcome_node *failed =
        STR_NAMED(outcome->nodes, outcome->n_nodes, name, outcome->failed_node);
    log = failed ? failed->log.ptr : log;
    if (runtime_exit_check(frozen->plan.runtime, (int)outcome->exit_status,
                           fs_read_tail(arena, fs_join(arena, frozen->folder, log)),
                           ret_cause) == 0) {
        ASSERT(outcome->exit_status == 0);
    }
}

static void judge_end(struct arena *arena, const struct frozen *frozen,
                      const struct plan_step *step, struct repeat_result *repeat)
{
    struct err cause = {0};
    int64_t status = repeat->outcome.exit_status;
    const char *where = repeat->outcome.failed_node.ptr
                            ? arena_printf(arena, "%.*s: ", STR_ARG(repeat->outcome.failed_node))
                            : "";
    if (repeat->outcome.outcome == OUTCOME_DEADLINE) {
        does_not_count(repeat, ERR_TIMEOUT,
                       arena_printf(arena, "stopped: it ran past its deadline of %lld s",
                                    (long long)plan_step_deadline_s(&frozen->plan, step)));
        return;
    }
    if (frozen->plan.runtime != RUNTIME_NONE) {
        ask_engine(arena, frozen, &repeat->outcome, repeat->log.ptr, &cause);
    }
    if (cause.code == ERR_CONTAINER) {
        does_not_count(repeat, ERR_CONTAINER, arena_printf(arena, "%s%s", where, cause.msg));
    } else if (status > 128) {
        does_not_count(
            repeat, ERR_WORKLOAD,
            arena_printf(arena, "%sended by signal %lld", where, (long long)(status - 128)));
    } else if (status != 0) {
        does_not_count(
            repeat, ERR_WORKLOAD,
            arena_printf(arena, "%sended with exit status %lld", where, (long long)status));
    }
}

struct str result_planned(const struct plan_step *step, const char *name, struct str otherwise)
{
    const struct condition *said =
        STR_NAMED(step->conditions, step->n_conditions, name, str_of(name));
    return said ? said->value : otherwise;
}

static int64_t planned_number(const struct plan_step *step, const char *name, int64_t otherwise)
{
    int64_t value = otherwise;
    struct str text = result_planned(step, name, STR_EMPTY);
    return text.ptr && str_to_i64(text, 1, INT32_MAX, &value, ERR_IGNORED) == 0 ? value : otherwise;
}

/* A rehearsal may train with fewer ranks and smaller batches than its case has: its recipe says so, and nothing is claimed. */
struct rule_case result_rule_case(const struct frozen *frozen, const struct plan_step *step)
{
    const struct report_case *c = step->bound.of_case;
    bool is_smoke = frozen->plan.profile == PROFILE_SMOKE;
    struct rule_case of = {.gpus = step->n_ranks,
                           .nodes = is_smoke ? plan_step_nodes(step) : c->nodes,
                           .batch_per_gpu = is_smoke ? 0 : c->batch_per_gpu};
    if (plan_claims_none(&frozen->plan)) {
        of.batch_per_gpu = planned_number(step, "batch_per_gpu", of.batch_per_gpu);
    }
    if (frozen->plan.is_rehearsal) {
        of.gpus = planned_number(step, "training_ranks", of.gpus);
        of.nodes = of.nodes < of.gpus ? of.nodes : of.gpus;
    }
    return of;
}

struct log_read { /* of a log */
    const struct format *format;
    const struct measurement *m;
};

static struct identity identity_in(struct arena *arena, const struct plan_step *step,
                                   const struct report_case *c, const struct rule_case *of,
                                   const struct log_read *log)
{
    const struct identity_row row = {.gpus = of->gpus,
                                     .nodes = of->nodes,
                                     .gpus_per_node = of->gpus / of->nodes,
                                     .batch_per_gpu = of->batch_per_gpu,
                                     .precision = result_planned(step, "precision", c->precision),
                                     .model = c->model};
    return identity_of(arena, log->format, log->m, &row, step->bound.rule);
}

/* A log that states other ranks, nodes, batch, precision or model than the plan is not this step's. Of a rehearsal the launcher
   states the case's and those that train their own: what is neither is wrong. */
static void judge_identity(struct arena *arena, const struct frozen *frozen,
                           const struct plan_step *step, const struct log_read *log,
                           struct repeat_result *repeat)
{
    const struct report_case *c = step->bound.of_case;
    const struct rule_case of = result_rule_case(frozen, step);
    struct identity identity = identity_in(arena, step, c, &of, log);
    if (frozen->plan.is_rehearsal) {
        const struct rule_case launched = {
            .gpus = step->n_ranks, .nodes = c->nodes, .batch_per_gpu = c->batch_per_gpu};
        struct identity other = identity_in(arena, step, c, &launched, log);
        for (size_t idx = 0; idx < IDENTITY_FACTS; idx++) {
            if (other.items[idx].state != ID_CONTRADICTED) {
                identity.items[idx] = other.items[idx];
            }
        }
    }
    const struct identity_item *wrong = identity_contradiction(&identity);
    if (wrong) {
        does_not_count(
            repeat, ERR_PARSE,
            arena_printf(arena, "log: it is not of this case: %.*s", STR_ARG(wrong->why)));
    }
}

/* A loss that did not come down is not a failure of the run: it is reported along with the rate. */
static void judge_target(struct arena *arena, const struct plan_step *step,
                         const struct measurement *m, const struct rule_case *of,
                         struct target_result *ret)
{
    struct target_value value;
    struct err err = {0};
    *ret = (struct target_result){.elapsed_s = (double)NAN};
    const struct loss_target *target = &step->beside.target;
    if (target_apply(target, m, of, &value, &err) < 0) {
        ret->why = str_printf(arena, "%s", err.msg);
    } else if (value.step == 0) {
        ret->why = str_printf(arena, "%.*s came down to %.4g, not to %.4g", STR_ARG(target->series),
                              value.lowest, target->at_most);
    } else {
        ret->elapsed_s = value.elapsed_s;
        ret->step = value.step;
    }
}

/* A rule that finds nothing (no evaluation in the log) says why, and is not a failure of the run either. */
static void judge_also(struct arena *arena, const struct plan_step *step,
                       const struct log_read *log, const struct rule_case *of,
                       struct repeat_result *repeat)
{
    const struct extras *beside = &step->beside;
    repeat->also = arena_array(arena, struct also_result, beside->n_also + 1);
    repeat->n_also = beside->n_also;
    for (size_t idx = 0; idx < beside->n_also; idx++) {
        const struct rule *rule = step->bound.also[idx];
        const struct series *series = measurement_series(log->m, rule->series);
        struct also_result *also = &repeat->also[idx];
        struct rule_value value;
        struct err err = {0};
        *also = (struct also_result){.value = (double)NAN,
                                     .rule = beside->also[idx],
                                     .series = rule->series,
                                     .unit = series ? str_dup(arena, rule_unit(rule, series->unit))
                                                    : STR_EMPTY};
        if (rule_apply(rule, log->m, of, &value, &err) < 0) {
            also->why = beside->why_not.ptr ? beside->why_not : str_printf(arena, "%s", err.msg);
        } else {
            also->value = value.value;
        }
    }
}

/* The rule's number. What the log lacks is a cause, not an error: the run goes on and says so. */
static void judge_log(struct arena *arena, const struct frozen *frozen,
                      const struct plan_step *step, const struct log_read *log,
                      struct repeat_result *repeat)
{
    struct rule_case of = result_rule_case(frozen, step);
    struct made_number number = {0};
    struct err err = {0};
    const struct judgement j =
        judgement_of(arena, log->m, step->bound.rule,
                     plan_claims_none(&frozen->plan) ? DEMAND_RAN : DEMAND_WHOLE);
    if (!judgement_is_ok(j.verdict)) {
        repeat->doubt = str_printf(arena, "log: %s%s%.*s", PARSE_VERDICT_NAMES[j.verdict],
                                   j.why.len ? ": " : "", STR_ARG(j.why));
    }
    if (!j.gives) {
        does_not_count(repeat, ERR_PARSE, repeat->doubt.ptr);
        return;
    }
    if (step->bound.rule) {
        judge_identity(arena, frozen, step, log, repeat);
    }
    if (number_of_log(log->format, log->m, step->bound.rule, &of, &number, &err) < 0) {
        does_not_count(repeat, ERR_PARSE, arena_printf(arena, "rule: %s", err.msg));
        return;
    }
    repeat->unit = number.unit;
    repeat->value = number.made.value;
    repeat->n_used = number.made.n_used;
    repeat->n_window = number.made.n_window;
    repeat->has_target = step->beside.target.series.ptr != NULL;
    if (repeat->has_target) {
        judge_target(arena, step, log->m, &of, &repeat->target);
    }
    judge_also(arena, step, log, &of, repeat);
}

int result_choose_format(struct arena *arena, const struct frozen *frozen, const char *path,
                         const struct format **ret_format, struct str *ret_why, struct err *err)
{
    CLEANUP(guesser) struct guesser *guesser = guesser_new(&frozen->formats);
    struct guess guess;
    *ret_format = NULL;
    if (measure_choose(guesser, &frozen->formats, path, &guess, err) < 0) {
        return -1;
    }
    if (guess.n == 1 && !guess.formats[0]->is_proposed) {
        *ret_format = guess.formats[0];
        return 0;
    }
    const char *why = guess.n == 1  ? "its format is only proposed: --format names one to trust:"
                      : guess.n > 1 ? "several formats fit; --format names one:"
                                    : "no known format reads anything in it; reperf measure LOG "
                                      "--suggest FILE makes one, which --format FILE takes";
    for (size_t idx = 0; idx < guess.n; idx++) {
        why =
            arena_printf(arena, "%s%s %.*s", why, idx ? "," : "", STR_ARG(guess.formats[idx]->id));
    }
    *ret_why = str_of(why);
    return 0;
}

struct log_of { /* how a log is read; format NULL: why says why it is not */
    const struct format *format;
    struct str why;
    bool has_rule; /* else only rates are read, as by `measure` */
};

static int read_log(struct arena *arena, const struct log_of *of, const char *path,
                    struct measurement *ret_m, struct str *ret_sha256, struct err *err)
{
    const struct reading how = {of->format, path, .is_of_rates = !of->has_rule};
    return of->has_rule ? measure_file(arena, &how, ret_m, ret_sha256, err)
           : measure_file(arena, &how, ret_m, NULL, err) < 0
               ? -1
               : digest_file_hex(arena, path, ret_sha256, err);
}

/* A log that cannot be read at all (one endless line) is a log without a metric, not an error of ours. */
static int measure_log(struct arena *arena, const struct log_of *of, const char *path,
                       struct measurement *ret_m, struct str *ret_sha256, struct err *err)
{
    struct err refused = {0};
    struct digest_value value;
    if (of->format && read_log(arena, of, path, ret_m, ret_sha256, &refused) == 0) {
        return 0;
    }
    if (of->format && refused.code != ERR_PARSE) {
        return err_set(err, refused.code, "%s", refused.msg);
    }
    if (digest_file(path, DIGEST_SHA256, &value, err) < 0) {
        return -1;
    }
    *ret_sha256 = hex_dup(arena, value.sha256, SHA256_BYTES);
    /* Where the folder lies is not of the evidence. */
    struct str why = str_of(refused.msg);
    why = str_sub(why, str_starts(why, str_of(path)) ? strlen(path) + 2 : 0, SIZE_MAX);
    *ret_m = (struct measurement){.format = of->format ? of->format->id : STR_EMPTY,
                                  .verdict = judgement_unread(0),
                                  .why = of->format ? str_dup(arena, why) : of->why,
                                  .last_step = -1,
                                  .total_steps = -1,
                                  .n_bytes = value.size_bytes};
    return 0;
}

/* What a result keeps of a log. */
static void keep_facts(struct arena *arena, const struct measurement *m,
                       struct repeat_result *repeat)
{
    struct fact *facts = arena_array(arena, struct fact, m->n_facts + 1);
    for (size_t idx = 0; idx < m->n_facts; idx++) {
        facts[idx] = m->facts[idx];
        facts[idx].value = str_dup(arena, m->facts[idx].value);
    }
    repeat->facts = facts;
    repeat->n_facts = m->n_facts;
    repeat->unit = repeat->unit.ptr ? str_dup(arena, repeat->unit) : STR_EMPTY;
}

/* A command that runs on several nodes may give other numbers on each: what the same format reads from the others' logs, where
   that is not the log's own. */
static int compare_nodes(struct arena *arena, const struct frozen *frozen,
                         const struct plan_step *step, const struct log_of *of_log,
                         struct repeat_result *repeat, struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    struct str own = STR_EMPTY;
    const char *text = NULL;
    size_t n = 0;
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
        const struct outcome_node *node = &outcome->nodes[idx];
        struct repeat_result other = {.value = (double)NAN};
        struct measurement m = {0};
        struct str sha256;
        if (str_eq(node->log, repeat->log)) {
            own = node->name;
            continue;
        }
        if (measure_log(&scratch, of_log, fs_join(&scratch, frozen->folder, node->log.ptr), &m,
                        &sha256, err) < 0) {
            return -1;
        }
        judge_log(&scratch, frozen, step, &(struct log_read){of_log->format, &m}, &other);
        if (other.cause == ERR_NONE &&
            fabs(rel_diff(other.value, repeat->value)) > REPRODUCED_REL_MAX && n++ == 0) {
            text = arena_printf(arena, "%.*s's log gives %.6g", STR_ARG(node->name), other.value);
        }
    }
    if (n) {
        repeat->others =
            str_printf(arena, "%s %.*s, %.*s's %.6g%s: the number is not all nodes'", text,
                       STR_ARG(repeat->unit), STR_ARG(own), repeat->value,
                       n > 1 ? arena_printf(arena, "; %zu more logs differ so", n - 1) : "");
    }
    return 0;
}

int result_repeat(struct arena *arena, const struct frozen *frozen, struct repeat_of of,
                  struct derived_to to, struct repeat_result *ret_repeat, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(SERIES_TEXT_MAX);
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY; /* of the samples */
    const struct plan_step *step = of.step;
    int64_t repeat_no = of.repeat;
    struct repeat_result repeat = {.repeat = repeat_no, .value = (double)NAN};
    struct measurement m = {0};
    struct str sha256;
    struct log_of of_log = {step->bound.format, STR_EMPTY, step->bound.rule != NULL};
    repeat.log = str_of(rundir_of_repeat(arena, RUNDIR_LOG, step->case_id, repeat_no));
    const char *path = fs_join(arena, frozen->folder, repeat.log.ptr);
    if (step->bound.why) {
        return err_set(err, ERR_MANIFEST, "%s/manifest: case %.*s: %s: %s", frozen->folder,
                       STR_ARG(step->case_id), step->bound.key, step->bound.why);
    }
    if (read_outcome(arena, frozen, of, &repeat.outcome, err) < 0 ||
        (!of_log.format &&
         result_choose_format(arena, frozen, path, &of_log.format, &of_log.why, err) < 0) ||
        measure_log(&scratch, &of_log, path, &m, &sha256, err) < 0) {
        return -1;
    }
    if (!str_eq(sha256, repeat.outcome.log_sha256) ||
        (int64_t)m.n_bytes != repeat.outcome.log_bytes) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: not the log that was collected: SHA-256 was %.*s, is %.*s",
                       repeat.log.ptr, STR_ARG(repeat.outcome.log_sha256), STR_ARG(sha256));
    }
    repeat.parse = m.verdict;
    judge_end(arena, frozen, step, &repeat);
    judge_log(arena, frozen, step, &(struct log_read){of_log.format, &m}, &repeat);
    repeat.counts = repeat.cause == ERR_NONE;
    repeat.n_also = repeat.counts ? repeat.n_also : 0;
    keep_facts(arena, &m, &repeat);
    if (repeat.counts && str_eq_z(step->bound.of_case->stack_id, COMMAND_STACK) &&
        compare_nodes(arena, frozen, step, &of_log, &repeat, err) < 0) {
        return -1;
    }
    if (find_taints(arena, frozen, step, &repeat, err) < 0) {
        return -1;
    }
    encode_series(&text, &repeat, &m);
    if (text.is_full) {
        return err_set(err, ERR_PARSE, "%s: more samples than fit %u bytes", repeat.log.ptr,
                       SERIES_TEXT_MAX);
    }
    if (to.put(to.ctx, rundir_of_repeat(arena, RUNDIR_SERIES, step->case_id, repeat_no),
               strbuf_str(&text), err) < 0) {
        return -1;
    }
    *ret_repeat = repeat;
    return 0;
}
