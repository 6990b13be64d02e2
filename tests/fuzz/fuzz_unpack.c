/* SPDX-License-Identifier: Apache-2.0 */
/* Untrusted archives. The first byte selects whether tars inside are unpacked, and the length of the portions read. Every
   output path stays below one folder, comes after its folders, and occurs once. */
#include "tests/fuzz/fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/map.h"
#include "codec/unpack.h"

struct input {
    const uint8_t *ptr;
    size_t len, portion;
    uint8_t *last; /* owned: a portion of its own, so that a use after the next read is seen */
};

static int read_input(void *ctx, const void **ret_ptr, size_t *ret_len, struct err *err UNUSED)
{
    struct input *in = ctx;
    size_t n = in->len < in->portion ? in->len : in->portion;
    free(in->last);
    in->last = xmalloc(n + 1);
    memcpy(in->last, in->ptr, n);
    in->ptr += n;
    in->len -= n;
    *ret_ptr = in->last;
    *ret_len = n;
    return 0;
}

static void check_path(struct map *seen, struct arena *arena, const struct unpack_entry *entry)
{
    static char folder[] = "folder", other[] = "other";
    struct str rest = entry->path, part, path = str_dup(arena, entry->path);
    ASSERT(path.len > 0 && path.len < UNPACK_PATH_MAX);
    while (str_next(&rest, '/', &part)) {
        ASSERT(part.len > 0 && part.len <= UNPACK_NAME_MAX);
        ASSERT(!str_eq_z(part, ".") && !str_eq_z(part, ".."));
        ASSERT(!memchr(part.ptr, 0, part.len) && !memchr(part.ptr, '\n', part.len));
    }
    ASSERT(map_add(seen, path, entry->type == UNPACK_FOLDER ? folder : other));
    for (size_t at = path.len - 1; at > 0; at--) {
        if (path.ptr[at] == '/') {
            const char *above = map_get(seen, str_sub(path, 0, at));
            ASSERT(above && above[0] == 'f');
        }
    }
    if (entry->type == UNPACK_HARDLINK) {
        const char *target = map_get(seen, entry->target);
        ASSERT(target && target[0] == 'o');
    }
    if (entry->type == UNPACK_SYMLINK) {
        ASSERT(entry->target.len > 0 && entry->target.ptr[0] != '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t PORTIONS[] = {1, 511, 512, 4096, 65536, 1u << 20, 7, 100};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(map) struct map seen = {0};
    CLEANUP(unpack) struct unpack *unpack = NULL;
    struct input in = {.ptr = data + 1, .len = size - 1};
    struct unpack_opts opts = {.limits = {.files = 300, .bytes = 8u << 20}};
    struct unpack_entry entry;
    struct err err = {0};
    bool has = true;
    int result;
    if (size == 0) {
        return 0;
    }
    in.portion = PORTIONS[data[0] & 7];
    opts.fd = memfd_create("fuzz", MFD_CLOEXEC); /* what a zip is read from */
    ASSERT(opts.fd > 0 && write(opts.fd, in.ptr, in.len) == (ssize_t)in.len);
    opts.is_nested = data[0] & 8;
    result = unpack_new(&opts, read_input, &in, "fuzz", &unpack, &err);
    while (result == 0 && has) {
        uint64_t done = 0;
        const void *ptr;
        size_t len = 1;
        result = unpack_next(unpack, &entry, &has, &err);
        if (result < 0 || !has) {
            break;
        }
        check_path(&seen, &arena, &entry);
        while (result == 0 && len > 0 && entry.type == UNPACK_FILE && !(data[0] & 16)) {
            result = unpack_data(unpack, &ptr, &len, &err);
            done += result == 0 ? len : 0;
        }
        ASSERT(result < 0 || entry.type != UNPACK_FILE || (data[0] & 16) || !entry.is_size_known ||
               done == entry.size_bytes);
    }
    ASSERT((result == 0) == (err.code == ERR_NONE));
    ASSERT(result == 0 || err.code == ERR_INTEGRITY);
    ASSERT(result < 0 || in.len == 0); /* all was read */
    free(in.last);
    close(opts.fd);
    return 0;
}
