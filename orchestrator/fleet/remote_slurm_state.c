/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the login node's answer about a job to a report. Source of the states: squeue(1), "JOB STATE CODES", Slurm
   22.05. */
#include "base/base.h"

#include "fleet/remote_slurm_impl.h"

#define LAG_NS                                                                                     \
    (15 * NS_PER_S) /* for a status to be seen through a network file system, or an end by Slurm */

static bool is_one_of(struct str state, const char *const *names, size_t n)
{
    for (size_t idx = 0; idx < n; idx++) {
        if (str_eq_z(state, names[idx])) {
            return true;
        }
    }
    return false;
}

/* States that are not the end. */
static bool is_queued(struct str state)
{
    static const char *const NAMES[] = {"PENDING",  "CONFIGURING",   "REQUEUED", "REQUEUE_HOLD",
                                        "RESIZING", "RESV_DEL_HOLD", "STAGE_OUT"};
    return is_one_of(state, NAMES, ARRAY_LEN(NAMES));
}

static bool is_active(struct str state)
{
    static const char *const NAMES[] = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED",
                                        "SIGNALING"};
    return is_one_of(state, NAMES, ARRAY_LEN(NAMES));
}

static enum err_code cause_of(struct str state)
{
    static const char *const NODE[] = {"NODE_FAIL", "BOOT_FAIL", "PREEMPTED", "LAUNCH_FAILED",
                                       "RECONFIG_FAIL"};
    if (str_eq_z(state, "TIMEOUT") || str_eq_z(state, "DEADLINE")) {
        return ERR_TIMEOUT;
    }
    if (str_eq_z(state, "OUT_OF_MEMORY")) {
        return ERR_WORKLOAD;
    }
    return is_one_of(state, NODE, ARRAY_LEN(NODE)) ? ERR_NODE : ERR_NONE;
}

static void say_why(struct job_report *report, struct str id, struct str state, struct str reason)
{
    bool has_reason = reason.len && !str_eq_z(reason, "None");
    snprintf(report->why, sizeof(report->why), "Slurm job %.*s: %.*s%s%.*s%s", STR_ARG(id),
             STR_ARG(state), has_reason ? " (" : "", has_reason ? (int)reason.len : 0,
             has_reason ? reason.ptr : "", has_reason ? ")" : "");
}

/* Since when. The first time: now. */
static bool has_lasted(int64_t now_ns, int64_t *since_ns)
{
    *since_ns = *since_ns ? *since_ns : now_ns;
    return now_ns - *since_ns >= LAG_NS;
}

/* "ended STATUS [JOB STATE REASON]", with the latter where it did not end well: ranks may see a lost node before Slurm says so, and
   srun's own status of a job that Slurm ended may be 1. */
static int read_ended(struct str words, int64_t now_ns, int64_t *gone_ns, struct job_report *report,
                      struct err *err)
{
    struct str status = STR_EMPTY;
    struct str id = STR_EMPTY;
    struct str state = STR_EMPTY;
    int64_t value = 0;
    (void)str_next(&words, ' ', &status);
    if (str_to_i64(status, 0, 255, &value, err) < 0) {
        return err_wrap(err, "status of a job");
    }
    *report = (struct job_report){.state = JOB_ENDED, .exit_status = (int)value};
    if (str_next(&words, ' ', &id) && str_next(&words, ' ', &state)) {
        report->cause = cause_of(state);
        if (is_active(state) && !has_lasted(now_ns, gone_ns)) {
            *report = (struct job_report){.state = JOB_RUNNING};
        }
        if (report->cause || report->state == JOB_RUNNING) {
            say_why(report, id, state, str_trim(words));
        }
    }
    return 0;
}

/* "slurm CLAIMED JOB STATE REASON": without a status. */
static void read_state(struct str words, int64_t now_ns, int64_t *gone_ns,
                       struct job_report *report)
{
    struct str claimed = STR_EMPTY;
    struct str id = STR_EMPTY;
    struct str state = STR_EMPTY;
    (void)(str_next(&words, ' ', &claimed) && str_next(&words, ' ', &id) &&
           str_next(&words, ' ', &state));
    *report = (struct job_report){.state = JOB_RUNNING, .is_waiting = is_queued(state)};
    say_why(report, id, state, str_trim(words));
    if (report->is_waiting || is_active(state)) {
        *gone_ns = 0;
        return;
    }
    /* COMPLETED says nothing here: only the status is the program's own word. */
    if (has_lasted(now_ns, gone_ns) || str_eq_z(claimed, "0")) {
        report->state = JOB_LOST;
        report->cause = cause_of(state);
    }
}

int slurm_read_report(struct str line, int64_t now_ns, int64_t *gone_ns,
                      struct job_report *ret_report, struct err *err)
{
    struct str kind = STR_EMPTY;
    (void)str_next(&line, ' ', &kind);
    if (str_eq_z(kind, "absent")) {
        *ret_report = (struct job_report){.state = JOB_ABSENT};
        return 0;
    }
    if (str_eq_z(kind, "ended")) {
        return read_ended(line, now_ns, gone_ns, ret_report, err);
    }
    if (str_eq_z(kind, "slurm")) {
        read_state(line, now_ns, gone_ns, ret_report);
        return 0;
    }
    return err_set(err, ERR_NODE, "the login node's shell said \"%.*s\"", STR_ARG(kind));
}
