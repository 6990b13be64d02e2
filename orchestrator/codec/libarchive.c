/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "codec/libarchive_impl.h"

struct libarchive la;

int libarchive_open(struct err *err)
{
    static const char *const NAMES[] = {LIBARCHIVE(LIBRARY_NAME)};
    static struct library library = {"libarchive.so.13", NAMES, ARRAY_LEN(NAMES), &la, false};
    return library_open(&library, err);
}

void libarchive_read_free(struct archive *reader)
{
    if (reader) {
        la.read_free(reader);
    }
}

void libarchive_write_free(struct archive *writer)
{
    if (writer) {
        la.write_free(writer);
    }
}
