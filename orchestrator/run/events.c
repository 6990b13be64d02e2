/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "run/events.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"

#define EVENT_MAX 8192

const struct event_row EVENTS[EV_COUNT] = {
    [EV_RUN_PLANNED] = {"run_planned", "info", "the plan is frozen, the run's folder is there"},
    [EV_RUN_RESUMED] = {"run_resumed", "info", "an orchestrator took a run up that another left"},
    [EV_JOB_STARTED] = {"job_started", "info", "an attempt of a repeat runs"},
    [EV_JOB_ATTACHED] = {"job_attached", "info", "a job that outlived its orchestrator was found"},
    [EV_JOB_DEADLINE] = {"job_deadline", "warning", "a job ran past its deadline and is stopped"},
    [EV_JOB_LOST] = {"job_lost", "warning", "a job left no status; the repeat is made again"},
    [EV_NODE_LOST] = {"node_lost", "warning",
                      "a node could not be reached any more; detail says why"},
    [EV_IMAGE_PROVIDED] = {"image_provided", "info", "the pinned image is on the nodes"},
    [EV_LOG_NOT_CHECKED] = {"log_not_checked", "warning",
                            "a log's digest could not be compared with the node's own"},
    [EV_REPEAT_FINISHED] = {"repeat_finished", "info", "a job ended and its log was collected"},
    [EV_REPEAT_PARSED] = {"repeat_parsed", "info",
                          "a log was read; value in fields where it counts"},
    [EV_REPEAT_SET_ASIDE] = {"repeat_set_aside", "info",
                             "a repeat that failed is made again; what it left is kept"},
    [EV_CASE_JUDGED] = {"case_judged", "info", "a case has its verdict"},
    [EV_RUN_INTERRUPTED] = {"run_interrupted", "warning",
                            "stopped by a signal, or by what its message says; can be resumed"},
    [EV_RUN_CANCELLED] = {"run_cancelled", "warning", "stopped for good by reperf cancel"},
    [EV_RUN_FAILED] = {"run_failed", "error", "the orchestrator itself failed; can be resumed"},
    [EV_RUN_SEALED] = {"run_sealed", "info", "the archive is written"},
};

int events_open(struct events *events, const char *path, struct clock_src clock, struct err *err)
{
    CLEANUP(fd) int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    char last = '\n';
    off_t size;
    if (fd < 0) {
        return err_errno(err, "open", path);
    }
    size = lseek(fd, 0, SEEK_END);
    if (size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n' &&
        fs_write_all(fd, "\n", 1, path, err) < 0) {
        return -1;
    }
    *events = (struct events){.fd = take_fd(&fd), .clock = clock};
    return 0;
}

void events_write(struct events *events, enum event event, const struct event_fields *fields)
{
    CLEANUP(strbuf) struct strbuf buf = STRBUF(EVENT_MAX);
    struct json_out out;
    struct err err = {0};
    char time[RFC3339_MAX];
    if (events->fd < 0) {
        return;
    }
    clock_rfc3339(events->clock.wall_ns(events->clock.ctx), time);
    jw_begin(&out, &buf, true);
    jw_object(&out, NULL);
    jw_z(&out, "ts", time);
    jw_i64(&out, "mono_ns", events->clock.mono_ns(events->clock.ctx));
    jw_z(&out, "level", EVENTS[event].level);
    jw_z(&out, "event", EVENTS[event].name);
    jw_str(&out, "node", fields->node);
    jw_str(&out, "step", fields->case_id);
    jw_object(&out, "fields");
    if (fields->repeat) {
        jw_i64(&out, "repeat", fields->repeat);
    }
    if (fields->attempt) {
        jw_i64(&out, "attempt", fields->attempt);
    }
    if (fields->value_name) {
        jw_f64(&out, fields->value_name, fields->value);
    }
    if (fields->text.ptr) {
        jw_str(&out, "detail", str_sub(fields->text, 0, EVENT_MAX / 8));
    }
    jw_end_object(&out);
    jw_end_object(&out);
    strbuf_add_char(&buf, '\n');
    if (buf.is_full || fs_write_all(events->fd, buf.ptr, buf.len, "events.jsonl", &err) < 0) {
        log_line(LOG_DEBUG, "event %s dropped: %s", EVENTS[event].name, err.msg);
    }
}

void events_release(struct events *events)
{
    fd_close(&events->fd);
}
