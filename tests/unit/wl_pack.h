/* SPDX-License-Identifier: Apache-2.0 */
/* Small packed datasets written by hand after data/shard.h, independently of reperf-pack, so that reader and writer check
   each other through the format alone. Every pixel and token follows from its place: pack_pixel, pack_label,
   pack_token. */
#pragma once

#include "scratch.h"

#include "base/crc32c.h"
#include "base/strbuf.h"
#include "core/sha256.h"
#include "data/shard.h"

#define HAND_SHARDS_MAX 8

struct hand_pack {
    enum shard_kind kind;
    uint32_t n_samples, per_shard;
    uint32_t n_classes, sequence, predictions;
    bool is_synthetic;
    const char *split;               /* NULL: "train" */
    const struct hand_fault *faults; /* of the last shard, two at most; NULL: none */
    bool keeps_crc;                  /* of the original header and entries, before the faults */
};

static UNUSED const struct hand_pack CLASSES = {
    .kind = SHARD_CLASSES, .n_samples = 50, .per_shard = 17, .n_classes = 7};
static UNUSED const struct hand_pack SEGMENTS = {
    .kind = SHARD_SEGMENTS, .n_samples = 11, .per_shard = 4, .n_classes = 19};
static UNUSED const struct hand_pack TOKENS = {
    .kind = SHARD_TOKENS, .n_samples = 10, .per_shard = 6, .sequence = 8, .predictions = 3};

/* A number of the header, or of an entry, that is another. */
struct hand_fault {
    int entry;       /* from 1 on; 0: of the header */
    size_t at, size; /* 0: no fault */
    uint64_t value;
};
#define IN_HEADER(field, ...)                                                                      \
    {                                                                                              \
        0, offsetof(struct shard_header, field), sizeof(((struct shard_header *)0)->field),        \
            (uint64_t)(__VA_ARGS__)                                                                \
    }
#define IN_ENTRY(n, field, ...)                                                                    \
    {                                                                                              \
        (n) + 1, offsetof(struct shard_entry, field), sizeof(((struct shard_entry *)0)->field),    \
            (uint64_t)(__VA_ARGS__)                                                                \
    }

static UNUSED uint16_t hand_height(uint32_t sample)
{
    return (uint16_t)(9 + sample % 4);
}

static UNUSED uint16_t hand_width(uint32_t sample)
{
    return (uint16_t)(12 + sample % 3);
}

static UNUSED uint8_t hand_pixel(uint32_t sample, uint32_t at)
{
    return (uint8_t)(sample * 31 + at * 7 + at / 11);
}

static UNUSED uint8_t hand_segment(const struct hand_pack *pack, uint32_t sample, uint32_t at)
{
    uint32_t class = (sample + at) % (pack->n_classes + 1);
    return class == pack->n_classes ? 255 : (uint8_t) class;
}

static UNUSED int32_t hand_token(const struct hand_pack *pack, uint32_t sample, uint32_t at)
{
    uint32_t s = pack->sequence;
    uint32_t p = pack->predictions;
    if (at < s) {
        return (int32_t)(1000 * sample + at);
    }
    if (at < 3 * s) {
        return (int32_t)((sample + at) % 2);
    }
    if (at < 3 * s + p) {
        return (int32_t)((sample + at) % s);
    }
    return at < 3 * s + 2 * p ? (int32_t)(7 * sample + at) : (int32_t)(sample % 2);
}

static UNUSED uint32_t hand_bytes(const struct hand_pack *pack, uint32_t sample)
{
    uint32_t pixels = (uint32_t)hand_height(sample) * hand_width(sample);
    return pack->kind == SHARD_TOKENS     ? 4 * (3 * pack->sequence + 2 * pack->predictions + 1)
           : pack->kind == SHARD_SEGMENTS ? 4 * pixels
                                          : 3 * pixels;
}

static UNUSED void hand_sample(const struct hand_pack *pack, uint32_t sample, uint8_t *to)
{
    uint32_t bytes = hand_bytes(pack, sample);
    uint32_t pixels = (uint32_t)hand_height(sample) * hand_width(sample);
    for (uint32_t i = 0; pack->kind == SHARD_TOKENS && i < bytes / 4; i++) {
        int32_t token = hand_token(pack, sample, i);
        memcpy(to + i * sizeof(token), &token, sizeof(token));
    }
    for (uint32_t i = 0; pack->kind != SHARD_TOKENS && i < bytes; i++) {
        to[i] = i < 3 * pixels ? hand_pixel(sample, i) : hand_segment(pack, sample, i - 3 * pixels);
    }
}

static UNUSED uint64_t hand_align(uint64_t n, uint64_t align)
{
    return (n + align - 1) / align * align;
}

static UNUSED void hand_seal(struct shard_header *header, const struct shard_entry *entries)
{
    header->entries_crc32c = crc32c_table(0, entries, header->n_samples * sizeof(*entries));
    header->header_crc32c = crc32c_table(0, header, sizeof(*header) - sizeof(uint32_t));
}

/* One shard; its line of pack.json is added to json. */
static UNUSED void hand_shard(const struct hand_pack *pack, const char *folder, uint32_t idx,
                              struct strbuf *json)
{
    uint32_t first = idx * pack->per_shard;
    uint32_t n =
        first + pack->per_shard > pack->n_samples ? pack->n_samples - first : pack->per_shard;
    struct shard_entry *entries = xcalloc(n, sizeof(*entries));
    struct shard_header header = {.kind = pack->kind,
                                  .n_samples = n,
                                  .first_sample = first,
                                  .sequence = pack->sequence,
                                  .predictions = pack->predictions};
    uint64_t end = hand_align(SHARD_ALIGN + n * sizeof(*entries), SHARD_ALIGN);
    memcpy(header.magic, SHARD_MAGIC, sizeof(header.magic));
    header.data_offset = end;
    for (uint32_t i = 0; i < n; i++) {
        bool is_tokens = pack->kind == SHARD_TOKENS;
        uint64_t offset = hand_align(end, SHARD_DATA_ALIGN);
        entries[i] = (struct shard_entry){
            .offset = offset,
            .bytes = hand_bytes(pack, first + i),
            .height = is_tokens ? 0 : hand_height(first + i),
            .width = is_tokens ? 0 : hand_width(first + i),
            .channels = is_tokens ? 0 : 3,
            .label = pack->kind == SHARD_CLASSES ? (int32_t)((first + i) % pack->n_classes) : -1};
        end = offset + entries[i].bytes;
    }
    CLEANUP(free) uint8_t *file = xcalloc(1, end);
    for (uint32_t i = 0; i < n; i++) {
        hand_sample(pack, first + i, file + entries[i].offset);
        entries[i].crc32c = crc32c_table(0, file + entries[i].offset, entries[i].bytes);
    }
    header.total_bytes = end;
    hand_seal(&header, entries);
    for (int i = 0; i < 2 && pack->faults && first + n == pack->n_samples; i++) {
        const struct hand_fault *fault = &pack->faults[i];
        char *base = fault->entry ? (char *)&entries[fault->entry - 1] : (char *)&header;
        memcpy(base + fault->at, &fault->value, fault->size); /* little-endian, as the format is */
        if (!pack->keeps_crc) {
            hand_seal(&header, entries);
        }
    }
    memcpy(file, &header, sizeof(header));
    memcpy(file + SHARD_ALIGN, entries, n * sizeof(*entries));
    char name[32];
    char hex[SHA256_HEX_LEN + 1];
    struct sha256 sha;
    snprintf(name, sizeof(name), SHARD_NAME, idx);
    sha256_init(&sha);
    sha256_add(&sha, &header, sizeof(header));
    sha256_add(&sha, entries, n * sizeof(*entries));
    sha256_hex(&sha, hex);
    scratch_write(fs_join(&scratch_arena, folder, name), (struct str){(char *)file, end});
    strbuf_printf(json,
                  "%s{\"name\":\"%s\",\"bytes\":%" PRIu64 ",\"samples\":%u,\"sha256\":\"%s\"}",
                  idx > 0 ? "," : "", name, end, n, hex);
    free(entries);
}

/* The folder with its shards and pack.json. */
static UNUSED void hand_write(const struct hand_pack *pack, const char *folder)
{
    static const char *const kinds[] = {"", "classes", "segments", "tokens"};
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000000";
    CLEANUP(strbuf) struct strbuf json = STRBUF(1 << 20);
    char classes[16];
    snprintf(classes, sizeof(classes), "%u", pack->n_classes);
    strbuf_printf(&json,
                  "{\"schema_version\":1,\"dataset\":\"by-hand\",\"synthetic\":%s,\"kind\":\"%s\","
                  "\"split\":\"%s\",\"n_samples\":%u,\"n_classes\":%s,\"source_sha256\":null,"
                  "\"recipe\":{\"side\":[1,-2.5e3],\"x\":{}},\"sample_order_sha256\":\"%s\","
                  "\"shards\":[",
                  pack->is_synthetic ? "true" : "false", kinds[pack->kind],
                  pack->split ? pack->split : "train", pack->n_samples,
                  pack->kind == SHARD_TOKENS ? "null" : classes, zeros);
    for (uint32_t i = 0; i * pack->per_shard < pack->n_samples; i++) {
        hand_shard(pack, folder, i, &json);
    }
    strbuf_add_z(&json, "]}\n");
    scratch_write(fs_join(&scratch_arena, folder, PACK_NAME), strbuf_str(&json));
}
