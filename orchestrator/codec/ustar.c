/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/ustar.h"

static const char *const CLOSING[] = {USTAR_SUMS, USTAR_PROVENANCE, USTAR_STATEMENT};

int ustar_closing_rank(struct str name)
{
    for (size_t idx = 0; idx < ARRAY_LEN(CLOSING); idx++) {
        if (str_eq_z(name, CLOSING[idx])) {
            return (int)idx + 1;
        }
    }
    return 0;
}

int ustar_order(struct str a, struct str b)
{
    int rank = ustar_closing_rank(a) - ustar_closing_rank(b);
    return rank ? rank : str_cmp(a, b);
}

void ustar_names_release(struct ustar_names *names)
{
    unpack_names_release(&names->names);
    *names = (struct ustar_names){0};
}

static int check_caps(const struct ustar_names *names, struct str name, uint64_t size_bytes,
                      struct err *err)
{
    if (name.len > USTAR_NAME_MAX) {
        return err_set(err, ERR_INTEGRITY, "name of %zu bytes, expected 1 to %d: %.80s", name.len,
                       USTAR_NAME_MAX, name.ptr);
    }
    if (names->n_files >= USTAR_FILES_MAX) {
        return err_set(err, ERR_INTEGRITY, "more than %d files", USTAR_FILES_MAX);
    }
    return size_bytes > USTAR_TOTAL_MAX || names->total_bytes > USTAR_TOTAL_MAX - size_bytes
               ? err_set(err, ERR_INTEGRITY, "%.*s: more than %lld bytes in all", STR_ARG(name),
                         USTAR_TOTAL_MAX)
               : 0;
}

int ustar_names_add(struct ustar_names *names, struct str name, uint64_t size_bytes,
                    struct err *err)
{
    struct str clean;
    bool is_new;
    if (check_caps(names, name, size_bytes, err) < 0 || unpack_names_clean(name, &clean, err) < 0) {
        return -1;
    }
    if (names->last.ptr && ustar_order(names->last, name) >= 0) {
        return err_set(err, ERR_INTEGRITY, "%.*s: twice, or not sorted: it comes after %.*s",
                       STR_ARG(name), STR_ARG(names->last));
    }
    names->names.n_max = UNPACK_FILES_MAX; /* with the folders: more than these names can have */
    if (unpack_names_add(&names->names, clean, UNPACK_FILE, STR_EMPTY, &is_new, err) < 0) {
        return err_wrap(err, "%.*s", STR_ARG(name));
    }
    names->last = str_dup(&names->names.arena, name);
    names->n_files++;
    names->total_bytes += size_bytes;
    return 0;
}
