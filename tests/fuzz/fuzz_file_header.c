/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as each kind of file, shallow and deep: refused with a reason, or facts that are possible; a truncation of a file
   that was accepted deep is refused deep. */
#include "codec/file_header.h"
#include "tests/fuzz/fuzz.h"

typedef int (*reader)(const uint8_t *ptr, size_t len, bool deep, struct file_header *ret,
                      struct err *err);

static bool reads(reader read, const uint8_t *data, size_t size, bool deep, struct file_header *ret)
{
    struct err err = {0};
    if (read(data, size, deep, ret, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0]);
        return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const reader ALL[] = {file_header_jpeg, file_header_png, file_header_hdf5,
                                 file_header_tfrecord, file_header_text};
    for (size_t idx = 0; idx < ARRAY_LEN(ALL); idx++) {
        struct file_header shallow = {0};
        struct file_header deep = {0};
        bool is_good = reads(ALL[idx], data, size, true, &deep);
        bool is_fair = reads(ALL[idx], data, size, false, &shallow);
        ASSERT(!is_good || is_fair);
        if (is_good) {
            ASSERT(memcmp(&shallow, &deep, sizeof(deep)) == 0);
        }
        if (is_good && idx < 2) {
            ASSERT(deep.width > 0 && deep.height > 0 && deep.channels >= 1 && deep.channels <= 4);
        }
    }
    return 0;
}
