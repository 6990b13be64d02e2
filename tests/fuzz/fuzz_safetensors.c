/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: refused with a message, or tensors whose data tile the file's end exactly and whose names differ. A seal holds for
   exactly the bytes and for no others. */
#include "tests/fuzz/fuzz.h"

#include "core/safetensors.h"

static void check_seal(const uint8_t *data, size_t size)
{
    char hex[SHA256_HEX_LEN + 1] = "";
    struct err err = {0};
    struct str content = {(const char *)data, size};
    if (st_check_seal(content, hex, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY || err.code == ERR_PARSE);
        ASSERT(err.msg[0] != '\0');
        return;
    }
    ASSERT(strlen(hex) == SHA256_HEX_LEN);
    char *other = xcalloc(size, 1);
    memcpy(other, data, size);
    other[size - 1] = (char)(other[size - 1] ^ 1);
    content.ptr = other;
    ASSERT(st_check_seal(content, hex, &err) < 0 && err.code == ERR_INTEGRITY);
    free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct st_file file;
    struct err err = {0};
    check_seal(data, size);
    if (st_parse(&arena, (struct str){(const char *)data, size}, &file, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        ASSERT(err.msg[0] != '\0');
        return 0;
    }
    /* Memory stays in proportion to the input: a byte of header makes at most one small record. */
    ASSERT(arena.used_bytes < 4096 + 256 * size);
    ASSERT(file.n_meta >= 0 && file.n_meta <= ST_META_MAX);
    for (int i = 0; i < file.n_meta; i++) {
        ASSERT(st_find_meta(&file, file.meta[i].key) == file.meta[i].value);
    }
    int64_t total = 0;
    unsigned sum = 0;
    for (int i = 0; i < file.n_tensors; i++) {
        const struct st_tensor *tensor = &file.tensors[i];
        const uint8_t *at = tensor->data;
        int64_t count = 0;
        ASSERT(shape_count_checked(&tensor->shape, &count, &err) == 0);
        ASSERT(tensor->bytes == count * dtype_bytes(tensor->dtype));
        ASSERT(i == 0 || strcmp(file.tensors[i - 1].name, tensor->name) < 0);
        ASSERT(st_find(&file, tensor->name) == tensor);
        for (int64_t j = 0; j < tensor->bytes; j++) {
            sum += at[j]; /* the sanitizer sees a byte outside of the input */
        }
        total += tensor->bytes;
    }
    size_t header = 0;
    for (int i = 7; i >= 0; i--) {
        header = header << 8 | data[i];
    }
    ASSERT(8 + header + (size_t)total == size);
    volatile unsigned keep = sum;
    (void)keep;
    return 0;
}
