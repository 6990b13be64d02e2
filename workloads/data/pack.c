/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "data/pack.h"

#include "base/crc32c.h"
#include "base/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PACK_JSON_BYTES_MAX (64U << 20)
#define IMAGE_CHANNELS      3
#define SEQUENCE_MAX        65536

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is read as it lies");

/* ---- opening ---- */

static int64_t align_up(int64_t n, int64_t align)
{
    return (n + align - 1) / align * align;
}

/* Exactly this stretch; a file that ends before it is damaged. */
static int read_at(int fd, void *buf, int64_t n_bytes, int64_t offset, struct err *err)
{
    char *to = buf;
    int64_t done = 0;
    while (done < n_bytes) {
        ssize_t got = pread(fd, to + done, (size_t)(n_bytes - done), (off_t)(offset + done));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return err_set(err, ERR_IO, "read at byte %" PRId64 ": %s", offset + done,
                           err_errno_text(errno));
        }
        if (got == 0) {
            return err_set(err, ERR_INTEGRITY,
                           "the file ends before byte %" PRId64 ", which was there at the start",
                           offset + n_bytes);
        }
        done += got;
    }
    return 0;
}

static int differs(struct err *err, const char *what, uint64_t found, uint64_t expected)
{
    return err_set(err, ERR_INTEGRITY, "%s is %" PRIu64 ", expected %" PRIu64, what, found,
                   expected);
}

/* Everything in the header against pack.json and the file. */
static int check_header(const struct pack *pack, const struct pack_shard *shard,
                        const struct shard_header *header, struct err *err)
{
    uint32_t crc = crc32c(0, header, offsetof(struct shard_header, header_crc32c));
    int64_t entries_end = SHARD_ALIGN + shard->n_samples * (int64_t)sizeof(struct shard_entry);
    bool is_tokens = pack->kind == SHARD_TOKENS;
    if (memcmp(header->magic, SHARD_MAGIC, sizeof(header->magic)) != 0) {
        return err_set(err, ERR_INTEGRITY, "does not start with %s", SHARD_MAGIC);
    }
    if (crc != header->header_crc32c) {
        return differs(err, "the header's CRC-32C", crc, header->header_crc32c);
    }
    if (header->kind != pack->kind) {
        return differs(err, "kind", header->kind, pack->kind);
    }
    if (header->n_samples != (uint64_t)shard->n_samples) {
        return differs(err, "n_samples", header->n_samples, (uint64_t)shard->n_samples);
    }
    if (header->first_sample != (uint64_t)shard->first_sample) {
        return differs(err, "first_sample", header->first_sample, (uint64_t)shard->first_sample);
    }
    if (header->total_bytes != (uint64_t)shard->bytes) {
        return differs(err, "total_bytes", header->total_bytes, (uint64_t)shard->bytes);
    }
    if (header->data_offset != (uint64_t)align_up(entries_end, SHARD_ALIGN)) {
        return differs(err, "data_offset", header->data_offset,
                       (uint64_t)align_up(entries_end, SHARD_ALIGN));
    }
    if (is_tokens ? header->sequence == 0 || header->sequence > SEQUENCE_MAX ||
                        header->predictions > header->sequence
                  : header->sequence != 0 || header->predictions != 0) {
        return err_set(err, ERR_INTEGRITY,
                       "sequence %" PRIu32 ", predictions %" PRIu32
                       "; expected 1 to %d and no more than the sequence, or 0 for images",
                       header->sequence, header->predictions, SEQUENCE_MAX);
    }
    return 0;
}

/* Bytes that a sample of this entry must have, or 0 if the entry's form is invalid. */
static int64_t sample_bytes(const struct pack *pack, const struct shard_entry *entry)
{
    int64_t pixels = (int64_t)entry->height * entry->width;
    if (entry->reserved != 0 || entry->zero != 0) {
        return 0;
    }
    if (pack->kind == SHARD_TOKENS) {
        bool is_plain = entry->height == 0 && entry->width == 0 && entry->channels == 0;
        return is_plain ? 4 * (3 * pack->sequence + 2 * pack->predictions + 1) : 0;
    }
    bool has_form = entry->channels == IMAGE_CHANNELS && entry->height <= SHARD_SIDE_MAX &&
                    entry->width <= SHARD_SIDE_MAX;
    return !has_form ? 0 : pixels * (IMAGE_CHANNELS + (pack->kind == SHARD_SEGMENTS ? 1 : 0));
}

static int check_entry(const struct pack *pack, const struct shard_entry *entry, int64_t offset,
                       struct err *err)
{
    int64_t bytes = sample_bytes(pack, entry);
    if (bytes == 0 || bytes != (int64_t)entry->bytes) {
        return err_set(err, ERR_INTEGRITY,
                       "%" PRIu32 " bytes for %d x %d x %d of kind %s, which needs %" PRId64,
                       entry->bytes, entry->height, entry->width, entry->channels,
                       shard_kind_name(pack->kind), bytes);
    }
    if (entry->offset != (uint64_t)offset) {
        return differs(err, "offset", entry->offset, (uint64_t)offset);
    }
    bool has_label = pack->kind == SHARD_CLASSES
                         ? entry->label >= 0 && entry->label < pack->n_classes
                         : entry->label == -1;
    if (!has_label) {
        return err_set(err, ERR_INTEGRITY,
                       "label %" PRId32 ", expected 0 to %" PRId64 " for classes, else -1",
                       entry->label, pack->n_classes - 1);
    }
    return 0;
}

/* The entries tile the file from data_offset to its end. */
static int check_entries(struct pack *pack, const struct pack_shard *shard,
                         const struct shard_header *header, struct err *err)
{
    int64_t offset = (int64_t)header->data_offset;
    int64_t end = offset;
    for (int64_t i = 0; i < shard->n_samples; i++) {
        const struct shard_entry *entry = &shard->entries[i];
        if (check_entry(pack, entry, offset, err) < 0) {
            return err_wrap(err, "sample %" PRId64 " (%" PRId64 " of the set)", i,
                            shard->first_sample + i);
        }
        int64_t room = align_up(entry->bytes, SHARD_DATA_ALIGN);
        end = offset + entry->bytes;
        offset += room; /* n_samples is below 2^32 and so is room: no overflow */
        pack->sample_bytes_max = room > pack->sample_bytes_max ? room : pack->sample_bytes_max;
    }
    return end == shard->bytes
               ? 0
               : differs(err, "the last sample's end", (uint64_t)end, (uint64_t)shard->bytes);
}

static int check_digests(const struct pack_shard *shard, const struct shard_header *header,
                         struct err *err)
{
    struct sha256 sha;
    char hex[SHA256_HEX_LEN + 1];
    size_t n_bytes = (size_t)shard->n_samples * sizeof(struct shard_entry);
    uint32_t crc = crc32c(0, shard->entries, n_bytes);
    if (crc != header->entries_crc32c) {
        return differs(err, "the entries' CRC-32C", crc, header->entries_crc32c);
    }
    sha256_init(&sha);
    sha256_add(&sha, header, sizeof(*header));
    sha256_add(&sha, shard->entries, n_bytes);
    sha256_hex(&sha, hex);
    if (strcmp(hex, shard->sha256) != 0) {
        return err_set(err, ERR_INTEGRITY,
                       "SHA-256 of header and entries is %s, " PACK_NAME " says %s", hex,
                       shard->sha256);
    }
    return 0;
}

static int open_shard(struct pack *pack, struct pack_shard *shard, struct err *err)
{
    struct shard_header header;
    struct stat info;
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    const char *path = fs_join(&scratch, pack->path, shard->name);
    shard->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (shard->fd < 0 || fstat(shard->fd, &info) < 0) {
        bool is_gone = errno == ENOENT;
        return err_set(err, is_gone ? ERR_INTEGRITY : err_code_of_errno(errno), "%s",
                       err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode)) {
        return err_set(err, ERR_INTEGRITY, "not a regular file");
    }
    if (info.st_size != shard->bytes) {
        return differs(err, "its size", (uint64_t)info.st_size, (uint64_t)shard->bytes);
    }
    if (shard->n_samples == 0 ||
        shard->n_samples > (shard->bytes - SHARD_ALIGN) / (int64_t)sizeof(struct shard_entry)) {
        return err_set(err, ERR_INTEGRITY, "%" PRId64 " samples do not go into %" PRId64 " bytes",
                       shard->n_samples, shard->bytes);
    }
    int64_t n_bytes = shard->n_samples * (int64_t)sizeof(struct shard_entry);
    struct shard_entry *entries =
        arena_array(&pack->arena, struct shard_entry, (size_t)shard->n_samples);
    shard->entries = entries;
    if (read_at(shard->fd, &header, sizeof(header), 0, err) < 0 ||
        check_header(pack, shard, &header, err) < 0 ||
        read_at(shard->fd, entries, n_bytes, SHARD_ALIGN, err) < 0 ||
        check_digests(shard, &header, err) < 0) {
        return -1;
    }
    if (pack->kind == SHARD_TOKENS && shard->first_sample > 0 &&
        (header.sequence != pack->sequence || header.predictions != pack->predictions)) {
        return err_set(err, ERR_INTEGRITY,
                       "sequence and predictions are not those of the first shard");
    }
    pack->sequence = header.sequence;
    pack->predictions = header.predictions;
    return check_entries(pack, shard, &header, err);
}

static int read_pack_json(struct pack *pack, struct err *err)
{
    struct str text;
    struct sha256 sha;
    CLEANUP(arena) struct arena scratch = ARENA_EMPTY;
    const char *path = fs_join(&scratch, pack->path, PACK_NAME);
    if (!fs_is_dir(pack->path)) {
        return err_set(err, ERR_USAGE, "no such folder");
    }
    if (!fs_exists(path)) {
        return err_set(err, ERR_INTEGRITY,
                       "not whole: " PACK_NAME ", which is written last, is missing");
    }
    if (fs_read(&scratch, path, PACK_JSON_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    sha256_init(&sha);
    sha256_add(&sha, text.ptr, text.len);
    sha256_hex(&sha, pack->sha256);
    return pack_parse(pack, text, err) < 0 ? err_wrap(err, PACK_NAME) : 0;
}

int pack_open(struct pack *pack, const char *path, struct err *err)
{
    *pack = (struct pack){0};
    pack->path = arena_strndup(&pack->arena, path, strlen(path));
    int result = read_pack_json(pack, err);
    for (int64_t i = 0; result == 0 && i < pack->n_shards; i++) {
        result = open_shard(pack, &pack->shards[i], err);
        result = result < 0 ? err_wrap(err, "%s", pack->shards[i].name) : 0;
    }
    if (result < 0) {
        pack_release(pack);
        return err_wrap(err, "%s", path);
    }
    return 0;
}

void pack_release(struct pack *pack)
{
    for (int64_t i = 0; i < pack->n_shards; i++) {
        fd_close(&pack->shards[i].fd);
    }
    arena_release(&pack->arena);
    *pack = (struct pack){0};
}

/* ---- reading ---- */

/* The last shard that starts at or before the sample. */
static const struct pack_shard *shard_of(const struct pack *pack, int64_t sample)
{
    int64_t low = 0;
    int64_t high = pack->n_shards - 1;
    ASSERT(sample >= 0 && sample < pack->n_samples);
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (pack->shards[middle].first_sample <= sample) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return &pack->shards[low];
}

/* Without a branch, so that it vectorises. */
static bool has_bad_label(const uint8_t *labels, int64_t count, uint8_t n_classes)
{
    uint8_t bad = 0;
    for (int64_t i = 0; i < count; i++) {
        bad |= (uint8_t)((labels[i] >= n_classes) & (labels[i] != PACK_IGNORED));
    }
    return bad != 0;
}

static bool all_within(const int32_t *values, int64_t count, int64_t max)
{
    for (int64_t i = 0; i < count; i++) {
        if (values[i] < 0 || values[i] > max) {
            return false;
        }
    }
    return true;
}

static int check_tokens(const struct pack *pack, const int32_t *tokens, struct err *err)
{
    int64_t s = pack->sequence;
    int64_t p = pack->predictions;
    const int32_t *segments = tokens + s;
    const int32_t *mask = segments + s;
    const int32_t *positions = mask + s;
    const int32_t *ids = positions + p;
    const int32_t *next = ids + p;
    if (!all_within(tokens, s, INT32_MAX) || !all_within(segments, s, 1) ||
        !all_within(mask, s, 1) || !all_within(positions, p, s - 1) ||
        !all_within(ids, p, INT32_MAX) || !all_within(next, 1, 1)) {
        return err_set(err, ERR_INTEGRITY,
                       "a token below 0, a segment, mask or next-sentence label other than 0 and "
                       "1, or a position past the sequence");
    }
    return 0;
}

static int check_sample(const struct pack *pack, const struct shard_entry *entry,
                        const uint8_t *buf, struct pack_sample *ret_sample, struct err *err)
{
    int64_t n_pixels = (int64_t)entry->height * entry->width;
    uint32_t crc = crc32c(0, buf, entry->bytes);
    if (crc != entry->crc32c) {
        return err_set(err, ERR_INTEGRITY, "CRC-32C is %08" PRIx32 ", expected %08" PRIx32, crc,
                       entry->crc32c);
    }
    *ret_sample = (struct pack_sample){
        .height = entry->height, .width = entry->width, .label = entry->label, .pixels = buf};
    if (pack->kind == SHARD_TOKENS) {
        ret_sample->pixels = NULL;
        ret_sample->tokens = (const int32_t *)(const void *)buf;
        return check_tokens(pack, ret_sample->tokens, err);
    }
    if (pack->kind == SHARD_SEGMENTS) {
        ret_sample->labels = buf + IMAGE_CHANNELS * n_pixels;
        if (has_bad_label(ret_sample->labels, n_pixels, (uint8_t)pack->n_classes)) {
            return err_set(err, ERR_INTEGRITY, "a pixel's label is %" PRId64 " to 254",
                           pack->n_classes);
        }
    }
    return 0;
}

int pack_read(const struct pack *pack, int64_t sample, uint8_t *buf, struct pack_sample *ret_sample,
              struct err *err)
{
    const struct pack_shard *shard = shard_of(pack, sample);
    int64_t idx = sample - shard->first_sample;
    const struct shard_entry *entry = &shard->entries[idx];
    if (read_at(shard->fd, buf, entry->bytes, (int64_t)entry->offset, err) < 0 ||
        check_sample(pack, entry, buf, ret_sample, err) < 0) {
        return err_wrap(err, "%s/%s: sample %" PRId64 " (%" PRId64 " of the set)", pack->path,
                        shard->name, idx, sample);
    }
    return 0;
}

void pack_advise(const struct pack *pack, int64_t sample)
{
    const struct pack_shard *shard = shard_of(pack, sample);
    const struct shard_entry *entry = &shard->entries[sample - shard->first_sample];
    /* A hint: its failure changes no result. */
    (void)posix_fadvise(shard->fd, (off_t)entry->offset, (off_t)entry->bytes, POSIX_FADV_WILLNEED);
}
