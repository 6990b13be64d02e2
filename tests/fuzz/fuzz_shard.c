/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as pack.json, or as a shard whose checksums have been corrected so that the code behind them is reached: refused
   with a message, or every sample can be read and cropped. First byte: even for pack.json, odd for a shard given as header,
   entries and data without the zeros between them. */
#include "tests/fuzz/fuzz.h"

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/strbuf.h"
#include "data/order.h"
#include "data/pack.h"
#include "data/resample.h"

#include <fcntl.h>
#include <unistd.h>

#define SIDE_OUT  9
#define N_CLASSES 19

static char folder[] = "/tmp/reperf-fuzz.XXXXXX";

static void remove_folder(void)
{
    struct err err = {0};
    (void)!fs_remove_tree(folder, &err);
}

static void make_folder(void)
{
    static bool is_made;
    if (!is_made) {
        ASSERT(mkdtemp(folder) != NULL);
        ASSERT(atexit(remove_folder) == 0);
        is_made = true;
    }
}

static void write_file(const char *name, const void *ptr, size_t len)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    struct err err = {0};
    const char *path = fs_join(&arena, folder, name);
    CLEANUP(fd) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ASSERT(fd >= 0);
    ASSERT(fs_write_all(fd, ptr, len, name, &err) == 0);
}

static void parse_json(struct arena *arena UNUSED, struct str text)
{
    struct pack pack = {0};
    struct err err = {0};
    if (pack_parse(&pack, text, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0] != '\0');
        arena_release(&pack.arena);
        return;
    }
    int64_t n_samples = 0;
    for (int64_t i = 0; i < pack.n_shards; i++) {
        ASSERT(pack.shards[i].first_sample == n_samples);
        ASSERT(strlen(pack.shards[i].name) == strlen("00000.shard"));
        n_samples += pack.shards[i].n_samples;
    }
    ASSERT(n_samples == pack.n_samples && n_samples > 0);
    ASSERT(pack.arena.used_bytes < 4096 + 256 * text.len);
    arena_release(&pack.arena);
}

/* The file as stored on a disk, with corrected checksums. NULL without even a header. */
static uint8_t *lay_out(const uint8_t *data, size_t size, struct shard_header *header,
                        size_t *ret_size)
{
    if (size < sizeof(*header)) {
        return NULL;
    }
    memcpy(header, data, sizeof(*header));
    data += sizeof(*header);
    size -= sizeof(*header);
    size_t n = size / sizeof(struct shard_entry);
    n = n < header->n_samples ? n : header->n_samples;
    header->n_samples = (uint32_t)n;
    size_t entry_bytes = n * sizeof(struct shard_entry);
    size_t data_at = (SHARD_ALIGN + entry_bytes + SHARD_ALIGN - 1) / SHARD_ALIGN * SHARD_ALIGN;
    *ret_size = data_at + size - entry_bytes;
    uint8_t *file = xcalloc(1, *ret_size);
    memcpy(file + SHARD_ALIGN, data, entry_bytes);
    memcpy(file + data_at, data + entry_bytes, size - entry_bytes);
    for (size_t i = 0; i < n; i++) {
        struct shard_entry entry;
        uint8_t *at = file + SHARD_ALIGN + i * sizeof(entry);
        memcpy(&entry, at, sizeof(entry));
        if (entry.offset <= *ret_size && entry.bytes <= *ret_size - entry.offset) {
            entry.crc32c = crc32c(0, file + entry.offset, entry.bytes);
        }
        memcpy(at, &entry, sizeof(entry));
    }
    header->entries_crc32c = crc32c(0, file + SHARD_ALIGN, entry_bytes);
    header->header_crc32c = crc32c(0, header, offsetof(struct shard_header, header_crc32c));
    memcpy(file, header, sizeof(*header));
    return file;
}

static void write_pack_json(const struct shard_header *header, const uint8_t *file, size_t size)
{
    static const char *const kinds[] = {"classes", "classes", "segments", "tokens"};
    CLEANUP(strbuf) struct strbuf json;
    struct sha256 sha;
    char hex[SHA256_HEX_LEN + 1];
    bool is_tokens = header->kind == SHARD_TOKENS;
    sha256_init(&sha);
    sha256_add(&sha, header, sizeof(*header));
    sha256_add(&sha, file + SHARD_ALIGN, header->n_samples * sizeof(struct shard_entry));
    sha256_hex(&sha, hex);
    strbuf_init(&json, 4096);
    strbuf_printf(&json,
                  "{\"schema_version\":1,\"dataset\":\"fuzz\",\"synthetic\":true,\"kind\":\"%s\","
                  "\"split\":\"train\",\"n_samples\":%u,\"n_classes\":%s,\"source_sha256\":null,"
                  "\"recipe\":{},\"sample_order_sha256\":\"%064d\",\"shards\":[{\"name\":"
                  "\"00000.shard\",\"bytes\":%zu,\"samples\":%u,\"sha256\":\"%s\"}]}",
                  kinds[header->kind % 4], header->n_samples, is_tokens ? "null" : "19", 0, size,
                  header->n_samples, hex);
    write_file(PACK_NAME, json.ptr, json.len);
}

static void crop(const struct pack *pack, const struct pack_sample *sample, uint64_t key)
{
    CLEANUP(resample) struct resample scratch = {0};
    const struct augment_recipe *recipe =
        pack->kind == SHARD_SEGMENTS ? &augment_segments : &augment_classes;
    struct augment_size out = {SIDE_OUT, SIDE_OUT};
    struct augment_size image = {sample->height, sample->width};
    struct augment_plan plan = augment_plan(recipe, image, out, key);
    struct resample_job job = {.plan = &plan, .image = image, .out = out};
    float pixels[3 * SIDE_OUT * SIDE_OUT];
    int64_t labels[SIDE_OUT * SIDE_OUT];
    memcpy(job.mean, recipe->mean, sizeof(job.mean));
    memcpy(job.std, recipe->std, sizeof(job.std));
    resample_pixels(&scratch, &job, sample->pixels, pixels);
    for (size_t i = 0; i < ARRAY_LEN(pixels); i++) {
        ASSERT(pixels[i] > -3.0F && pixels[i] < 3.0F); /* (0 or 1 - mean) / deviation */
    }
    if (sample->labels) {
        resample_labels(&scratch, &job, sample->labels, PACK_IGNORED, labels);
        for (size_t i = 0; i < ARRAY_LEN(labels); i++) {
            ASSERT(labels[i] == PACK_IGNORED || (labels[i] >= 0 && labels[i] < N_CLASSES));
        }
    }
}

static void read_all(const struct pack *pack, size_t size)
{
    ASSERT(pack->sample_bytes_max > 0 && (size_t)pack->sample_bytes_max <= size + SHARD_DATA_ALIGN);
    uint8_t *buf = aligned_alloc(SHARD_DATA_ALIGN, (size_t)pack->sample_bytes_max);
    ASSERT(buf != NULL);
    for (int64_t i = 0; i < pack->n_samples; i++) {
        struct pack_sample sample;
        struct err err = {0};
        if (pack_read(pack, i, buf, &sample, &err) < 0) {
            ASSERT(err.code == ERR_INTEGRITY && err.msg[0] != '\0');
        } else if (pack->kind != SHARD_TOKENS) {
            crop(pack, &sample, order_hash(1, 2, (uint64_t)i));
        }
    }
    free(buf);
}

static void open_shard(struct arena *arena UNUSED, struct str text)
{
    struct shard_header header;
    size_t file_size = 0;
    uint8_t *file = lay_out((const uint8_t *)text.ptr, text.len, &header, &file_size);
    struct pack pack;
    struct err err = {0};
    if (!file) {
        return;
    }
    make_folder();
    write_file("00000.shard", file, file_size);
    write_pack_json(&header, file, file_size);
    if (pack_open(&pack, folder, &err) < 0) {
        ASSERT(err.code == ERR_INTEGRITY || err.code == ERR_PARSE); /* no samples: pack.json */
        ASSERT(err.msg[0] != '\0');
    } else {
        read_all(&pack, file_size);
        pack_release(&pack);
    }
    free(file);
}

FUZZ_READERS(parse_json, open_shard)
