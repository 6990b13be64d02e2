/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/shard_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/crc32c.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the format is written as it is in memory");

void shard_seal(struct shard_header *header, const struct shard_entry *entries)
{
    header->entries_crc32c = crc32c(0, entries, header->n_samples * sizeof(*entries));
    header->header_crc32c = crc32c(0, header, offsetof(struct shard_header, header_crc32c));
}

void shard_sha256(const struct shard_header *header, const struct shard_entry *entries,
                  uint8_t *ret_sha256)
{
    CLEANUP(digest) struct digest digest = DIGEST_EMPTY;
    digest_start(&digest, DIGEST_SHA256);
    digest_update(&digest, header, sizeof(*header));
    digest_update(&digest, entries, header->n_samples * sizeof(*entries));
    memcpy(ret_sha256, digest_finish(&digest).sha256, SHA256_BYTES);
}

void shard_file_release(struct shard_file *shard)
{
    fd_close(&shard->fd);
    free(shard->entries);
    *shard = SHARD_FILE_EMPTY;
}

static int check_header(const struct shard_file *shard, uint64_t file_bytes, struct err *err)
{
    const struct shard_header *h = &shard->header;
    bool is_tokens = h->kind == SHARD_TOKENS;
    if (memcmp(h->magic, SHARD_MAGIC, sizeof(h->magic)) != 0) {
        return err_set(err, ERR_INTEGRITY, "%s: does not begin with %s", shard->name, SHARD_MAGIC);
    }
    if (crc32c(0, h, offsetof(struct shard_header, header_crc32c)) != h->header_crc32c) {
        return err_set(err, ERR_INTEGRITY, "%s: the CRC-32C of the header does not match",
                       shard->name);
    }
    if (h->kind < SHARD_CLASSES || h->kind > SHARD_TOKENS || !h->n_samples) {
        return err_set(err, ERR_INTEGRITY, "%s: kind %u with %u samples", shard->name, h->kind,
                       h->n_samples);
    }
    if (h->total_bytes != file_bytes || h->data_offset != shard_data_offset(h->n_samples) ||
        h->data_offset > file_bytes) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: %" PRIu64 " bytes, its header says %" PRIu64 " with data at %" PRIu64,
                       shard->name, file_bytes, h->total_bytes, h->data_offset);
    }
    if (is_tokens ? !h->sequence || h->sequence > TOKENS_SEQUENCE_MAX ||
                        h->predictions > TOKENS_PREDICTIONS_MAX
                  : h->sequence || h->predictions) {
        return err_set(err, ERR_INTEGRITY, "%s: sequence %u and predictions %u do not fit its kind",
                       shard->name, h->sequence, h->predictions);
    }
    return 0;
}

/* The bytes that an entry of this form has; 0 where the form is not of the kind. */
static uint64_t expected_bytes(const struct shard_header *h, const struct shard_entry *entry)
{
    uint64_t pixels = (uint64_t)entry->width * entry->height;
    struct tokens_shape shape = {h->sequence, h->predictions};
    if (entry->reserved || entry->zero || (h->kind == SHARD_CLASSES) != (entry->label >= 0) ||
        entry->label < -1) {
        return 0;
    }
    if (h->kind == SHARD_TOKENS) {
        return entry->width || entry->height || entry->channels ? 0 : tokens_len(&shape) * 4;
    }
    if (entry->channels != 3 || entry->width > SHARD_SIDE_MAX || entry->height > SHARD_SIDE_MAX) {
        return 0;
    }
    return pixels * (h->kind == SHARD_SEGMENTS ? 4 : 3);
}

static int check_entries(struct shard_file *shard, struct err *err)
{
    const struct shard_header *h = &shard->header;
    uint64_t offset = h->data_offset, end = offset;
    for (uint32_t idx = 0; idx < h->n_samples; idx++) {
        const struct shard_entry *entry = &shard->entries[idx];
        if (!entry->bytes || entry->bytes != expected_bytes(h, entry) || entry->offset != offset) {
            return err_set(err, ERR_INTEGRITY,
                           "%s: sample %u: the entry is not of its kind, or not in its place",
                           shard->name, idx);
        }
        end = offset + entry->bytes;
        offset = shard_align(end, SHARD_DATA_ALIGN);
        shard->sample_bytes_max =
            entry->bytes > shard->sample_bytes_max ? entry->bytes : shard->sample_bytes_max;
    }
    return end == h->total_bytes
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: the last sample ends at %" PRIu64 ", the file at %" PRIu64,
                         shard->name, end, h->total_bytes);
}

static int check_zeros(const struct shard_file *shard, uint64_t from, uint64_t to, struct err *err)
{
    uint8_t bytes[SHARD_ALIGN];
    ASSERT(to >= from && to - from <= sizeof(bytes));
    if (fs_read_at(shard->fd, bytes, (size_t)(to - from), from, shard->name, err) < 0) {
        return -1;
    }
    for (uint64_t idx = 0; idx < to - from; idx++) {
        if (bytes[idx]) {
            return err_set(err, ERR_INTEGRITY, "%s: byte %" PRIu64 " is not zero", shard->name,
                           from + idx);
        }
    }
    return 0;
}

int shard_file_open(struct shard_file *shard, const char *path, const char *name, struct err *err)
{
    struct stat info;
    *shard = SHARD_FILE_EMPTY;
    shard->name = name;
    shard->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (shard->fd < 0 || fstat(shard->fd, &info) < 0) {
        return err_set(err, errno == ENOENT ? ERR_INTEGRITY : err_code_of_errno(errno), "%s: %s",
                       name, err_errno_text(errno));
    }
    if (!S_ISREG(info.st_mode) || (uint64_t)info.st_size < SHARD_ALIGN) {
        return err_set(err, ERR_INTEGRITY, "%s: not a regular file of at least %d bytes", name,
                       SHARD_ALIGN);
    }
    if (fs_read_at(shard->fd, &shard->header, sizeof(shard->header), 0, shard->name, err) < 0 ||
        check_header(shard, (uint64_t)info.st_size, err) < 0) {
        return -1;
    }
    size_t entries_bytes =
        shard->header.n_samples * sizeof(*shard->entries); /* inside of the file */
    shard->entries = xmalloc(entries_bytes);
    if (fs_read_at(shard->fd, shard->entries, entries_bytes, SHARD_ALIGN, shard->name, err) < 0) {
        return -1;
    }
    if (crc32c(0, shard->entries, entries_bytes) != shard->header.entries_crc32c) {
        return err_set(err, ERR_INTEGRITY, "%s: the CRC-32C of the entries does not match", name);
    }
    if (check_entries(shard, err) < 0 ||
        check_zeros(shard, sizeof(shard->header), SHARD_ALIGN, err) < 0 ||
        check_zeros(shard, SHARD_ALIGN + entries_bytes, shard->header.data_offset, err) < 0) {
        return -1;
    }
    shard_sha256(&shard->header, shard->entries, shard->sha256);
    return 0;
}

static int check_labels(const struct shard_file *shard, uint32_t idx, uint32_t n_classes,
                        const uint8_t *labels, struct err *err)
{
    size_t n = shard->entries[idx].bytes / 4;
    for (size_t at = 0; at < n; at++) {
        if (labels[at] >= n_classes && labels[at] != UINT8_MAX) {
            return err_set(err, ERR_INTEGRITY, "%s: sample %u: label %u, expected 0 to %u or 255",
                           shard->name, idx, labels[at], n_classes - 1);
        }
    }
    return 0;
}

static int check_sample(const struct shard_file *shard, uint32_t idx, uint32_t n_classes,
                        uint8_t *buf, struct err *err)
{
    const struct shard_entry *entry = &shard->entries[idx];
    const struct tokens_shape shape = {shard->header.sequence, shard->header.predictions};
    uint64_t next = idx + 1 < shard->header.n_samples ? entry[1].offset : shard->header.total_bytes;
    if (fs_read_at(shard->fd, buf, (size_t)(next - entry->offset), entry->offset, shard->name,
                   err) < 0) {
        return -1;
    }
    if (crc32c(0, buf, entry->bytes) != entry->crc32c) {
        return err_set(err, ERR_INTEGRITY, "%s: sample %u: the CRC-32C of its data does not match",
                       shard->name, idx);
    }
    for (uint64_t at = entry->bytes; at < next - entry->offset; at++) {
        if (buf[at]) {
            return err_set(err, ERR_INTEGRITY, "%s: byte %" PRIu64 " is not zero", shard->name,
                           entry->offset + at);
        }
    }
    switch (shard->header.kind) {
    case SHARD_CLASSES:
        return entry->label < (int64_t)n_classes
                   ? 0
                   : err_set(err, ERR_INTEGRITY, "%s: sample %u: class %d, expected 0 to %u",
                             shard->name, idx, entry->label, n_classes - 1);
    case SHARD_SEGMENTS:
        return check_labels(shard, idx, n_classes, buf + (size_t)entry->bytes / 4 * 3, err);
    default:
        /* buf comes from malloc: aligned for int32. */
        return tokens_check(&shape, (const int32_t *)(const void *)buf, err) < 0
                   ? err_wrap(err, "%s: sample %u", shard->name, idx)
                   : 0;
    }
}

int shard_file_check(const struct shard_file *shard, uint32_t n_classes,
                     const atomic_bool *is_cancelled, struct err *err)
{
    CLEANUP(free) uint8_t *buf = xmalloc(shard->sample_bytes_max + SHARD_DATA_ALIGN);
    for (uint32_t idx = 0; idx < shard->header.n_samples; idx++) {
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (check_sample(shard, idx, n_classes, buf, err) < 0) {
            return -1;
        }
    }
    return 0;
}
