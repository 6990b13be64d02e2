/* SPDX-License-Identifier: Apache-2.0 */
/* Reasons to doubt a repeat, from what outlived it, its own log and its judgement, and the nodes' monitors. */
#include "base/base.h"

#include "evidence/result.h"

#include "base/fs.h"
#include "base/vec.h"
#include "codec/digest.h"
#include "codec/json.h"
#include "evidence/rundir.h"
#include "fleet/monitor.h"
#include "judge/identity.h"

static struct str machine_value(const struct frozen *frozen, struct str name)
{
    for (size_t idx = 0; idx < frozen->n_machine; idx++) {
        if (str_eq(frozen->machine[idx].name, name)) {
            return frozen->machine[idx].value;
        }
    }
    return STR_EMPTY;
}

struct taint_list {
    struct str *items;
    size_t n, n_max;
};
struct checking {
    struct arena *arena;
    const struct frozen *frozen;
    const struct plan_step *step;
    const struct repeat_result *repeat;
    struct taint_list *taints;
};

static void add_taint(const struct checking *c, const char *text)
{
    VEC_PUSH(c->taints, str_of(text));
}

/* The hex digits of a digest that begins there; ptr NULL: none does. */
static struct str digest_at(struct str word, size_t at)
{
    const struct str hex = str_sub(word, at, SHA256_HEX_SIZE - 1);
    uint8_t sha256[SHA256_BYTES];
    struct err no_digest = {0};
    return hex_decode(hex, SHA256_BYTES, sha256, &no_digest) == 0 ? hex : STR_EMPTY;
}

/* "sha256:HEX", as engines are told what to run. */
static struct str image_in(struct str word)
{
    const struct str algorithm = STR_LIT("sha256:");
    return str_starts(word, algorithm) && word.len == algorithm.len + SHA256_HEX_SIZE - 1
               ? digest_at(word, algorithm.len)
               : STR_EMPTY;
}

/* Against the image that was pinned, and the program that was locked: what was started has each by its digest. Where the engines' id of
   the image is not known (that of its config), it is one at least. */
static void check_word(const struct checking *c, struct str word, struct str *first_image)
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

static int check_commands(const struct checking *c, struct err *err)
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
    if (json_read_file(path, &doc, err) < 0) {
        return -1;
    }
    const struct json root = json_root(&doc);
    if (json_member(&root, "jobs", &jobs, err) < 0) {
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
static void check_facts(const struct checking *c)
{
    for (size_t idx = 0; idx < c->repeat->n_facts; idx++) {
        const struct fact *fact = &c->repeat->facts[idx];
        const bool is_free = c->frozen->plan.is_rehearsal || str_eq_z(fact->name, "code_version");
        const struct str of[] = {
            machine_value(c->frozen, fact->name),
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

int result_taints(struct arena *arena, const struct frozen *frozen, const struct plan_step *step,
                  struct repeat_result *repeat, struct err *err)
{
    const struct outcome_record *outcome = &repeat->outcome;
    struct taint_list taints = {0};
    const struct checking c = {arena, frozen, step, repeat, &taints};
    int rc = 0;
    if (repeat->counts && repeat->doubt.ptr) {
        add_taint(&c, repeat->doubt.ptr);
    }
    if (repeat->others.ptr) {
        add_taint(&c, repeat->others.ptr);
    }
    if (outcome->left.ptr) {
        add_taint(&c, arena_printf(arena, "outlived the job and were ended: %.*s",
                                   STR_ARG(outcome->left)));
    }
    for (size_t idx = 0; idx < outcome->n_nodes; idx++) {
        const struct outcome_node *node = &outcome->nodes[idx];
        struct monitor_report report;
        struct err bad = {0};
        struct str text;
        if (!node->monitor.ptr) {
            continue;
        }
        if (fs_read(arena, fs_join(arena, frozen->folder, str_z(arena, node->monitor)),
                    MONITOR_TEXT_MAX, &text, err) < 0) {
            rc = -1;
            break;
        }
        if (monitor_judge(arena, text, &report, &bad) < 0) {
            report = (struct monitor_report){0};
            add_taint(&c,
                      arena_printf(arena, "%.*s: not watched: %s", STR_ARG(node->name), bad.msg));
        }
        for (size_t at = 0; at < report.n_taints; at++) {
            add_taint(&c, arena_printf(arena, "%.*s: %.*s", STR_ARG(node->name),
                                       STR_ARG(report.taints[at].text)));
        }
    }
    check_facts(&c);
    rc = rc < 0 ? rc : check_commands(&c, err);
    if (rc == 0) {
        repeat->n_taints = taints.n;
        repeat->taints = arena_array(arena, struct str, taints.n + 1);
        for (size_t idx = 0; idx < taints.n; idx++) {
            repeat->taints[idx] = taints.items[idx];
        }
    }
    VEC_RELEASE(&taints);
    return rc;
}
