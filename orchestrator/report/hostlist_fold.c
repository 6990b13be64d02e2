/* SPDX-License-Identifier: Apache-2.0 */
/* Folding. A name is literal text with numbers in it; names that differ only in their numbers are a set of points, which is
   covered by boxes: boxes that differ in one number are merged until none do. */
#include "base/base.h"

#include "base/strbuf.h"
#include "report/hostlist.h"

#define NUMBERS_MAX 16 /* numbers in a name; with more it is not folded */

struct number {
    int64_t value;
    int width; /* digits as written */
};

struct fold_axis { /* the numbers of a box at one place of the name, sorted; in the arena */
    struct number *items;
    size_t n;
};

struct box {
    struct str pattern; /* of its names, each number as "%" */
    size_t n_axes;
    struct fold_axis axes[NUMBERS_MAX];
};

/* ---- order ---- */

/* By width and then value: 7 before 01 before 12, and 9 before 10. */
static int compare_numbers(const struct number *a, const struct number *b)
{
    if (a->width != b->width) {
        return a->width < b->width ? -1 : 1;
    }
    return (a->value > b->value) - (a->value < b->value);
}

static int compare_axes(const struct fold_axis *a, const struct fold_axis *b)
{
    for (size_t idx = 0; idx < a->n && idx < b->n; idx++) {
        int order = compare_numbers(&a->items[idx], &b->items[idx]);
        if (order != 0) {
            return order;
        }
    }
    return (a->n > b->n) - (a->n < b->n);
}

/* All axes but `without` (SIZE_MAX: all). Equal there and in the pattern: 0. */
static int compare_boxes_without(const struct box *a, const struct box *b, size_t without)
{
    int order = str_cmp(a->pattern, b->pattern);
    for (size_t idx = 0; order == 0 && idx < a->n_axes; idx++) {
        order = idx == without ? 0 : compare_axes(&a->axes[idx], &b->axes[idx]);
    }
    return order;
}

static int compare_for_merge(const void *a, const void *b, void *without)
{
    const size_t *axis = without;
    int order = compare_boxes_without(a, b, *axis);
    return order ? order
                 : compare_axes(&((const struct box *)a)->axes[*axis],
                                &((const struct box *)b)->axes[*axis]);
}

static size_t box_size(const struct box *box)
{
    size_t size = 1;
    for (size_t idx = 0; idx < box->n_axes; idx++) {
        size *= box->axes[idx].n; /* at most the number of names */
    }
    return size;
}

/* As they are printed: by pattern, the largest first, then by number. */
static int compare_for_print(const void *a, const void *b)
{
    const struct box *box_a = a;
    const struct box *box_b = b;
    int order = str_cmp(box_a->pattern, box_b->pattern);
    size_t size_a = box_size(box_a);
    size_t size_b = box_size(box_b);
    if (order == 0 && size_a != size_b) {
        order = size_a > size_b ? -1 : 1;
    }
    return order ? order : compare_boxes_without(a, b, SIZE_MAX);
}

/* ---- boxes ---- */

/* A box of the one name. */
static struct box read_name(struct arena *arena, struct str name)
{
    struct box box = {0};
    char *pattern = arena_array(arena, char, name.len + 1);
    size_t len = 0;
    for (size_t at = 0; at < name.len;) {
        struct number number = {0};
        size_t end = at;
        while (end < name.len && is_digit(name.ptr[end])) {
            end++;
        }
        if (end == at || end - at > HOSTLIST_DIGITS_MAX || box.n_axes == NUMBERS_MAX) {
            end += end == at;
            memcpy(pattern + len, name.ptr + at, end - at);
            len += end - at;
            at = end;
            continue;
        }
        number.width = (int)(end - at);
        for (; at < end; at++) {
            number.value = number.value * 10 + (name.ptr[at] - '0');
        }
        pattern[len++] = '%'; /* never a byte of a name */
        box.axes[box.n_axes].items = arena_array(arena, struct number, 1);
        box.axes[box.n_axes].items[0] = number;
        box.axes[box.n_axes++].n = 1;
    }
    box.pattern = (struct str){pattern, len};
    return box;
}

/* Both are sorted and have no number in common. */
static struct fold_axis join_axes(struct arena *arena, const struct fold_axis *a,
                                  const struct fold_axis *b)
{
    struct fold_axis axis = {.items = arena_array(arena, struct number, a->n + b->n)};
    size_t at_a = 0;
    size_t at_b = 0;
    while (at_a < a->n || at_b < b->n) {
        bool is_a =
            at_b == b->n || (at_a < a->n && compare_numbers(&a->items[at_a], &b->items[at_b]) < 0);
        axis.items[axis.n++] = is_a ? a->items[at_a++] : b->items[at_b++];
    }
    return axis;
}

/* Boxes of equal names that differ in this axis alone, and follow each other, become one. A run of m is joined in pairs, so that
   each number is copied log m times. */
static void join_run(struct arena *arena, struct box *boxes, size_t n, size_t axis)
{
    for (size_t step = 1; step < n; step *= 2) {
        for (size_t idx = 0; idx + step < n; idx += 2 * step) {
            boxes[idx].axes[axis] =
                join_axes(arena, &boxes[idx].axes[axis], &boxes[idx + step].axes[axis]);
        }
    }
}

/* How many are left. */
static size_t merge_along(struct arena *arena, struct box *boxes, size_t n, size_t axis)
{
    size_t n_left = 0;
    qsort_r(boxes, n, sizeof(*boxes), compare_for_merge, &axis);
    for (size_t from = 0; from < n;) {
        size_t end = from + 1;
        while (end < n && axis < boxes[from].n_axes &&
               compare_boxes_without(&boxes[from], &boxes[end], axis) == 0) {
            end++;
        }
        join_run(arena, boxes + from, end - from, axis);
        boxes[n_left++] = boxes[from];
        from = end;
    }
    return n_left;
}

static size_t drop_equal(struct box *boxes, size_t n)
{
    size_t n_left = 0;
    qsort(boxes, n, sizeof(*boxes), compare_for_print);
    for (size_t idx = 0; idx < n; idx++) {
        if (n_left == 0 || compare_boxes_without(&boxes[n_left - 1], &boxes[idx], SIZE_MAX) != 0) {
            boxes[n_left++] = boxes[idx];
        }
    }
    return n_left;
}

static size_t merge_all(struct arena *arena, struct box *boxes, size_t n)
{
    size_t n_axes = 0;
    size_t n_before;
    for (size_t idx = 0; idx < n; idx++) {
        n_axes = boxes[idx].n_axes > n_axes ? boxes[idx].n_axes : n_axes;
    }
    do {
        n_before = n;
        for (size_t axis = n_axes; axis-- > 0;) {
            n = merge_along(arena, boxes, n, axis);
        }
    } while (n < n_before);
    qsort(boxes, n, sizeof(*boxes), compare_for_print);
    return n;
}

/* ---- text ---- */

static bool is_padded(const struct number *number)
{
    int64_t least = 1;
    for (int idx = 1; idx < number->width; idx++) {
        least *= 10;
    }
    return number->width > 1 && number->value < least;
}

/* Whether `next` is the number that FIRST-LAST counts to after `last`. */
static bool goes_on(const struct number *first, const struct number *last,
                    const struct number *next)
{
    return next->value == last->value + 1 &&
           (next->width == last->width || (!is_padded(first) && !is_padded(next)));
}

static void print_number(struct strbuf *out, const struct number *number)
{
    strbuf_printf(out, "%0*lld", number->width, (long long)number->value);
}

static void print_axis(struct strbuf *out, const struct fold_axis *axis)
{
    if (axis->n == 1) {
        print_number(out, &axis->items[0]);
        return;
    }
    strbuf_add_char(out, '[');
    for (size_t from = 0; from < axis->n;) {
        size_t end = from + 1;
        while (end < axis->n &&
               goes_on(&axis->items[from], &axis->items[end - 1], &axis->items[end])) {
            end++;
        }
        if (from) {
            strbuf_add_char(out, ',');
        }
        print_number(out, &axis->items[from]);
        if (end - from > 1) {
            strbuf_add_char(out, '-');
            print_number(out, &axis->items[end - 1]);
        }
        from = end;
    }
    strbuf_add_char(out, ']');
}

static void print_box(struct strbuf *out, const struct box *box)
{
    size_t axis = 0;
    for (size_t idx = 0; idx < box->pattern.len; idx++) {
        if (box->pattern.ptr[idx] == '%') {
            print_axis(out, &box->axes[axis++]);
        } else {
            strbuf_add_char(out, box->pattern.ptr[idx]);
        }
    }
}

struct str hostlist_fold(struct arena *arena, const struct str *names, size_t n_names)
{
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    CLEANUP(strbuf) struct strbuf out;
    CLEANUP(free) struct box *boxes = xcalloc(n_names + 1, sizeof(*boxes));
    size_t n = n_names;
    strbuf_init(&out, (HOSTLIST_NAME_MAX + 3) * (n_names + 1));
    for (size_t idx = 0; idx < n; idx++) {
        ASSERT(hostlist_is_name(names[idx]));
        boxes[idx] = read_name(&scratch, names[idx]);
    }
    n = merge_all(&scratch, boxes, drop_equal(boxes, n));
    for (size_t idx = 0; idx < n; idx++) {
        if (idx) {
            strbuf_add_char(&out, ',');
        }
        print_box(&out, &boxes[idx]);
    }
    ASSERT(!out.is_full);
    return str_dup(arena, strbuf_str(&out));
}
