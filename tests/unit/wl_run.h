/* SPDX-License-Identifier: Apache-2.0 */
/* Training runs in this process, with a clock of their own. */
#pragma once

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "train/train.h"

#define WORDS_MAX 64

/* Each reading of the clock is 0.25 s after the last: a step, which reads it twice, takes exactly that. */
static UNUSED int64_t ticking(void *ctx)
{
    int64_t *now_ns = ctx;
    *now_ns += NS_PER_S / 4;
    return *now_ns;
}

static UNUSED int options_of(const char *line, struct train_opts *opts, struct err *err)
{
    char *argv[WORDS_MAX];
    int argc = 0;
    struct str rest = str_of(line);
    struct str word;
    while (rest.len > 0 && str_next(&rest, ' ', &word)) {
        ASSERT(argc < WORDS_MAX);
        argv[argc++] = str_z(ARENA, word);
    }
    return train_options(argc, argv, opts, err);
}

/* What a run prints, which lasts as long as the test; how it ended is in ERR. stop: NULL for never. */
static UNUSED char *run_of(const char *line, const stop_flag *stop)
{
    static const stop_flag never;
    struct train_opts opts;
    int64_t now_ns = 0;
    const struct clock_src clock = {.mono_ns = ticking, .ctx = &now_ns};
    CLEANUP(fd) int fd = memfd_create("printed", MFD_CLOEXEC);
    *ERR = (struct err){0};
    int status = options_of(line, &opts, ERR);
    if (status == 0) {
        status = train_run(&opts, clock, fd, stop ? stop : &never, ERR);
    }
    assert_int_equal(status < 0, ERR->code != ERR_NONE);
    off_t size = lseek(fd, 0, SEEK_END);
    char *text = arena_alloc(ARENA, (size_t)size + 1, 1);
    assert_int_equal(pread(fd, text, (size_t)size, 0), size);
    text[size] = '\0';
    return text;
}

/* One that ends well. */
static UNUSED char *must_run(const char *line)
{
    char *text = run_of(line, NULL);
    if (ERR->code != ERR_NONE) {
        fail_msg("%s: %s", line, ERR->msg);
    }
    return text;
}

/* One that is refused before anything is printed. */
static UNUSED void refused(const char *line, enum err_code code, const char *message)
{
    assert_string_equal(run_of(line, NULL), "");
    if (ERR->code != code || !strstr(ERR->msg, message)) {
        fail_msg("%s: %s: \"%s\"; expected \"%s\"", line, err_code_name(ERR->code), ERR->msg,
                 message);
    }
}

/* From 0, with its end; "" past the last. */
static UNUSED const char *nth_line(const char *text, int n)
{
    for (; n > 0; n--) {
        text = strchr(text, '\n');
        assert_non_null(text);
        text++;
    }
    const char *end = strchr(text, '\n');
    return end ? arena_strndup(ARENA, text, (size_t)(end + 1 - text)) : "";
}

static UNUSED void holds(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("%s\nis without %s", text, part);
    }
}
