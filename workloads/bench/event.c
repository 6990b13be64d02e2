/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "bench/event.h"

#include "core/json_in.h"

#define TEXT_MAX 4096

/* A number as written, up to what ends it. */
static int read_number(struct json_in *in, double *ret_value, struct err *err)
{
    (void)json_in_peek(in);
    size_t from = in->at;
    while (in->at < in->text.len && !strchr(",]} \t\r\n", in->text.ptr[in->at])) {
        in->at++;
    }
    return str_to_f64(str_sub(in->text, from, in->at - from), ret_value, err);
}

static enum event_kind kind_of(struct str name)
{
    return str_eq_z(name, "run_start")  ? EVENT_START
           : str_eq_z(name, "step")     ? EVENT_STEP
           : str_eq_z(name, "run_stop") ? EVENT_STOP
           : str_eq_z(name, "fatal")    ? EVENT_FATAL
                                        : EVENT_OTHER;
}

static struct str *start_text(struct event *event, struct str key)
{
    return str_eq_z(key, "gpu")         ? &event->gpu
           : str_eq_z(key, "driver")    ? &event->driver
           : str_eq_z(key, "cuda")      ? &event->cuda
           : str_eq_z(key, "libraries") ? &event->libraries
                                        : NULL;
}

static int read_value(struct json_in *in, struct arena *arena, struct str key, struct event *event,
                      struct err *err)
{
    struct str text;
    if (str_eq_z(key, "event")) {
        if (json_in_text(in, arena, TEXT_MAX, &text, err) < 0) {
            return -1;
        }
        event->kind = kind_of(text);
        return 0;
    }
    if (str_eq_z(key, "step")) {
        return json_in_whole(in, INT64_MAX, &event->step, err);
    }
    if (str_eq_z(key, "step_time_ns")) {
        return json_in_whole(in, INT64_MAX, &event->step_time_ns, err);
    }
    if (str_eq_z(key, "peak_memory_bytes")) {
        return json_in_whole(in, INT64_MAX, &event->peak_memory_bytes, err);
    }
    if (str_eq_z(key, "loss")) {
        event->has_loss = true;
        return read_number(in, &event->loss, err);
    }
    if (str_eq_z(key, "what")) {
        return json_in_text(in, arena, TEXT_MAX, &event->what, err);
    }
    struct str *text_of_start = start_text(event, key);
    if (text_of_start && json_in_peek(in) == '"') {
        return json_in_text(in, arena, TEXT_MAX, text_of_start, err);
    }
    return json_in_skip(in, arena, err);
}

int event_read(struct arena *arena, struct str line, struct event *ret_event, struct err *err)
{
    struct json_in in = {.text = line};
    struct event event = {0};
    int64_t n = 0;
    bool has_more = false;
    bool has_event = false;
    if (json_in_expect(&in, '{', err) < 0 || json_in_more(&in, '}', &n, &has_more, err) < 0) {
        return -1;
    }
    while (has_more) {
        struct str key;
        if (json_in_text(&in, arena, TEXT_MAX, &key, err) < 0 ||
            json_in_expect(&in, ':', err) < 0 || read_value(&in, arena, key, &event, err) < 0 ||
            json_in_more(&in, '}', &n, &has_more, err) < 0) {
            return -1;
        }
        has_event = has_event || str_eq_z(key, "event");
    }
    if (json_in_end(&in, err) < 0) {
        return -1;
    }
    if (!has_event) {
        return err_set(err, ERR_PARSE, "a line without an event");
    }
    *ret_event = event;
    return 0;
}
