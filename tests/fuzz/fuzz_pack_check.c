/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as pack.json (first byte even) or as a shard (odd) that `reperf-pack verify` reads. The checksums of a shard's header and
   entries are corrected first, so that the code behind them is reached. Refused with a message; or pack.json written again reads the
   same, and every sample of the shard can be checked. */
#include "tests/fuzz/fuzz.h"

#include "base/crc32c.h"
#include "prep/pack_file.h"
#include "prep/shard_file.h"

#include <sys/mman.h>
#include <unistd.h>

#define N_CLASSES 19

static void pack_json(struct arena *arena, struct str text)
{
    CLEANUP(strbuf) struct strbuf first = {0}, second = {0};
    struct pack_file pack = {0}, again = {0};
    struct err err = {0};
    if (pack_file_parse(arena, text, "pack.json", &pack, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        return;
    }
    strbuf_init(&first, PACK_TEXT_MAX);
    strbuf_init(&second, PACK_TEXT_MAX);
    pack_file_text(&pack, &first);
    ASSERT(pack_file_parse(arena, strbuf_str(&first), "again", &again, &err) == 0);
    pack_file_text(&again, &second);
    ASSERT(str_eq(strbuf_str(&first), strbuf_str(&second)));
}

static void put_right(uint8_t *bytes, size_t size)
{
    struct shard_header header;
    size_t room = size > SHARD_ALIGN ? (size - SHARD_ALIGN) / sizeof(struct shard_entry) : 0;
    if (size < sizeof(header)) {
        return;
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.n_samples <= room) {
        header.entries_crc32c =
            crc32c(0, bytes + SHARD_ALIGN, header.n_samples * sizeof(struct shard_entry));
    }
    header.header_crc32c = crc32c(0, &header, offsetof(struct shard_header, header_crc32c));
    memcpy(bytes, &header, sizeof(header));
}

static void shard(struct arena *arena UNUSED, struct str text)
{
    CLEANUP(shard_file) struct shard_file file = SHARD_FILE_EMPTY;
    CLEANUP(fd) int fd = memfd_create("shard", MFD_CLOEXEC);
    const atomic_bool is_cancelled = false;
    uint8_t *bytes = xmalloc(text.len + 1);
    struct err err = {0};
    char path[64];
    memcpy(bytes, text.ptr, text.len);
    put_right(bytes, text.len);
    ASSERT(fd >= 0 && fs_write_all(fd, bytes, text.len, "memfd", &err) == 0);
    free(bytes);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (shard_file_open(&file, path, "shard", &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        return;
    }
    if (shard_file_check(&file, N_CLASSES, &is_cancelled, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
    }
}

FUZZ_READERS(pack_json, shard)
