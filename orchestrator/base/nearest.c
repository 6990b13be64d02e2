/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "base/nearest.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t edit_distance(struct str a, struct str b)
{
    size_t rows[3][NEAREST_NAME_MAX + 1];
    if (a.len > NEAREST_NAME_MAX || b.len > NEAREST_NAME_MAX) {
        return NEAREST_NAME_MAX;
    }
    for (size_t at = 0; at <= b.len; at++) {
        rows[0][at] = at;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t at = 1; at <= b.len; at++) {
            bool is_same = a.ptr[i - 1] == b.ptr[at - 1];
            row[at] = least(least(above[at] + 1, row[at - 1] + 1), above[at - 1] + !is_same);
            if (i > 1 && at > 1 && a.ptr[i - 1] == b.ptr[at - 2] && a.ptr[i - 2] == b.ptr[at - 1]) {
                row[at] = least(row[at], rows[(i - 2) % 3][at - 2] + 1);
            }
        }
    }
    return rows[a.len % 3][b.len];
}

/* At most one letter in three may differ; a name that begins with everything that was typed is near, too. */
void nearest_offer(struct nearest *nearest, const char *name)
{
    size_t n_wanted = strlen(nearest->wanted);
    if (n_wanted < 2 || n_wanted > NEAREST_NAME_MAX || strlen(name) > NEAREST_NAME_MAX) {
        return;
    }
    size_t distance = edit_distance(str_of(nearest->wanted), str_of(name));
    if (distance > (n_wanted + 2) / 3) {
        if (n_wanted < 3 || strncmp(name, nearest->wanted, n_wanted) != 0) {
            return;
        }
    }
    if (!nearest->name || distance < nearest->distance) {
        nearest->name = name;
        nearest->distance = distance;
    }
}

const char *nearest_text(const struct nearest *nearest, char buf[NEAREST_TEXT_MAX])
{
    buf[0] = '\0';
    if (nearest->name) {
        snprintf(buf, NEAREST_TEXT_MAX, " (did you mean %s?)", nearest->name);
    }
    return buf;
}
