/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

#include <unistd.h>

#include "base/log.h"
#include "base/str.h"

#define QUIET_NS         (1 * NS_PER_S)
#define TERMINAL_STEP_NS (100 * NS_PER_MS)
#define PLAIN_STEP_NS    (5 * NS_PER_S)
#define BAR_CELLS        24
#define LINE_BYTES       512
#define SLOW_RATE        10 /* a second: below, decimals matter */

void progress_start(struct progress *p, struct clock_src clock, const char *what, const char *unit,
                    uint64_t total)
{
    *p = (struct progress){.clock = clock, .what = what, .unit = unit, .total = total};
    p->start_ns = clock.mono_ns(clock.ctx);
    p->is_terminal = isatty(STDERR_FILENO);
}

static void format_amount(char *dst, size_t size, uint64_t amount, const char *unit)
{
    if (strcmp(unit, "bytes") == 0) {
        snprintf(dst, size, "%.1f MB", (double)amount / 1e6);
    } else {
        snprintf(dst, size, "%" PRIu64 " %s", amount, unit);
    }
}

/* Returns the length, as snprintf does. */
static int format_line(const struct progress *p, int64_t now_ns, int n_cells, char *dst,
                       size_t size)
{
    double seconds = (double)(now_ns - p->start_ns) / (double)NS_PER_S;
    double rate = seconds > 0 ? (double)p->done / seconds : 0;
    double share = p->total ? (double)p->done / (double)p->total : 0;
    int cells = (int)(share * n_cells);
    char done[48];
    char per_s[48];
    char left[96];
    format_amount(done, sizeof(done), p->done, p->unit);
    if (rate > 0 && rate < SLOW_RATE) {
        snprintf(per_s, sizeof(per_s), "%.2f %s", rate, p->unit);
    } else {
        format_amount(per_s, sizeof(per_s), (uint64_t)rate, p->unit);
    }
    if (!p->total || share > 1.0) {
        return snprintf(dst, size, "%s  %s, %s/s, %.0f s", p->what, done, per_s, seconds);
    }
    if (rate > 0) {
        snprintf(left, sizeof(left), "%s/s, %.0f s left", per_s,
                 (double)(p->total - p->done) / rate);
    } else {
        snprintf(left, sizeof(left), "%.0f s", seconds); /* how long it takes is not known */
    }
    return snprintf(dst, size, "%s [%.*s%.*s] %3.0f %%  %s, %s", p->what, cells,
                    "########################", n_cells - cells, "........................",
                    share * 100, done, left);
}

/* Fits one row: first the bar is shortened, then the end of the text. The last column stays free, because a terminal may wrap
   there. */
static void show_on_terminal(const struct progress *p, int64_t now_ns)
{
    char line[LINE_BYTES];
    char before[LINE_BYTES];
    int room = log_columns() - 1;
    int len = format_line(p, now_ns, BAR_CELLS, line, sizeof(line));
    if (len > room) {
        int n_cells = len - room < BAR_CELLS ? BAR_CELLS - (len - room) : 0;
        len = format_line(p, now_ns, n_cells, line, sizeof(line));
    }
    len = len < room ? len : room;
    len = len < LINE_BYTES ? len : LINE_BYTES - 1;
    text_plain_line(line, (size_t)len);
    before[log_take_unended(before, sizeof(before))] = '\0';
    fprintf(stderr, "%s\r%.*s", before, len, line);
    log_set_unended(len);
}

static void show(struct progress *p, int64_t now_ns)
{
    if (p->is_terminal) {
        show_on_terminal(p, now_ns);
    } else {
        char line[LINE_BYTES];
        (void)format_line(p, now_ns, BAR_CELLS, line, sizeof(line));
        fprintf(stderr, "%s\n", line);
    }
    p->shown_ns = now_ns;
}

void progress_set(struct progress *p, uint64_t done)
{
    int64_t now_ns = p->clock.mono_ns(p->clock.ctx);
    int64_t step_ns = p->is_terminal ? TERMINAL_STEP_NS : PLAIN_STEP_NS;
    p->done = done;
    if (now_ns - p->start_ns < QUIET_NS || now_ns - p->shown_ns < step_ns) {
        return;
    }
    show(p, now_ns);
}

void progress_show(void *progress, uint64_t done, uint64_t total)
{
    struct progress *p = progress;
    p->total = total;
    progress_set(p, done);
}

void progress_end(struct progress *p)
{
    if (p->shown_ns && p->is_terminal) {
        char before[LINE_BYTES];
        before[log_take_unended(before, sizeof(before))] = '\0';
        fputs(before, stderr);
    }
    p->shown_ns = 0;
}
