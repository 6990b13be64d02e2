/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/packing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "base/fs.h"
#include "base/progress.h"
#include "base/publish.h"
#include "base/temp.h"
#include "prep/hdf5.h"
#include "prep/jpeg.h"
#include "prep/ordered.h"
#include "prep/pack_file.h"
#include "prep/png.h"
#include "prep/shard_file.h"

#define CHUNK_BYTES     (4ull << 20) /* decoded data in one job */
#define CHUNK_SAMPLES   2048
#define ROWS_AT_ONCE    512
#define HEAD_MAX        (1u << 16)
#define SPARE_BYTES     (16ull << 20) /* free space besides the shards */
#define RECIPE_REVISION 1             /* grows when the same input would give other bytes */

struct chunk {
    uint32_t shard;
    size_t first, n; /* among all samples */
};

struct packed_shard {
    size_t first, n; /* among the samples */
    uint64_t data_offset, total_bytes;
    uint8_t sha256[SHA256_BYTES]; /* header and entries */
};

/* The whole set, laid out. */
struct packing_plan {
    struct packed_shard *shards; /* owned */
    struct shard_entry *entries; /* owned: one a sample; their CRC comes with the data */
    size_t n_shards;
    uint64_t total_bytes;
};

struct packer {
    const struct packing_opts *opts;
    struct arena *arena;
    struct packing_plan plan;
    bool *is_kept; /* in the arena, as all below: by shard */
    int *fds;
    struct chunk *chunks;
    size_t n_chunks;
    struct progress progress;
    size_t n_done;
    int folder_fd;
};

/* ---- one sample's bytes from its source ---- */

/* What a thread has of its own. */
struct packing_slot {
    struct image_decoder decoder;
    struct file_bytes file, partner;
    uint8_t *sample; /* owned: one sample */
    size_t sample_bytes;
    const char *hdf5_path; /* the HDF5 file */
    struct hdf5_file *hdf5;
    int32_t *rows; /* owned: some of its rows, from first_row on */
    uint64_t first_row;
    uint32_t n_rows;
};

static void slot_release(void *ptr)
{
    struct packing_slot *slot = ptr;
    image_decoder_release(&slot->decoder);
    file_bytes_release(&slot->file);
    file_bytes_release(&slot->partner);
    free(slot->sample);
    hdf5_close(slot->hdf5);
    free(slot->rows);
}

/* Place of the first pixel that is neither a class nor ignored; n where there is none. */
static size_t bad_label(const uint8_t *labels, size_t n, uint32_t n_classes)
{
    uint8_t worst = 0;
    for (size_t idx = 0; idx < n;
         idx++) { /* without a branch: 255 becomes 0, others stay or grow by one */
        uint8_t shifted = (uint8_t)(labels[idx] + 1);
        worst = shifted > worst ? shifted : worst;
    }
    if (worst <= n_classes) {
        return n;
    }
    for (size_t idx = 0; idx < n; idx++) {
        if (labels[idx] >= n_classes && labels[idx] != UINT8_MAX) {
            return idx;
        }
    }
    return n;
}

static int decode_labels(const struct tree_source *source, const struct samples *samples,
                         const struct image_sample *sample, struct packing_slot *slot, uint8_t *dst,
                         struct err *err)
{
    const char *path = sample->partner;
    struct pixel_info info = {0};
    size_t n = (size_t)sample->width * sample->height;
    if (tree_source_read(source, path, IMAGE_FILE_BYTES_MAX, &slot->partner, err) < 0) {
        return -1;
    }
    struct str file = (struct str){(const char *)slot->partner.ptr, slot->partner.len};
    if (image_probe(file, true, path, &info, err) < 0) {
        return -1;
    }
    if (info.width != sample->width || info.height != sample->height) {
        return err_set(err, ERR_INTEGRITY, "%s: %u x %u pixels, its image has %u x %u", path,
                       info.width, info.height, sample->width, sample->height);
    }
    if (image_decode_labels(file, &info, dst, err) < 0) {
        return err_wrap(err, "%s", path);
    }
    size_t bad = bad_label(dst, n, samples->n_classes);
    return bad == n
               ? 0
               : err_set(err, ERR_INTEGRITY,
                         "%s: label %u at x %zu, y %zu; expected 0 to %u or 255", path, dst[bad],
                         bad % sample->width, bad / sample->width, samples->n_classes - 1);
}

static int decode_image(const struct tree_source *source, const struct samples *samples,
                        const struct image_sample *sample, struct packing_slot *slot, uint8_t *dst,
                        struct err *err)
{
    struct str file;
    if (tree_source_read(source, sample->path, IMAGE_FILE_BYTES_MAX, &slot->file, err) < 0) {
        return -1;
    }
    file = (struct str){(const char *)slot->file.ptr, slot->file.len};
    if (image_decode_rgb(&slot->decoder, file, &sample->info, samples->short_side, dst, err) < 0) {
        return err_wrap(err, "%s", sample->path);
    }
    return sample->partner
               ? decode_labels(source, samples, sample, slot,
                               dst + (size_t)sample->width * sample->height * IMAGE_RGB, err)
               : 0;
}

/* Rows are read many at once: they lie in compressed chunks. */
static int read_row(const struct packing_opts *from, const struct image_sample *sample,
                    struct packing_slot *slot, int32_t *row, struct err *err)
{
    const struct tokens_shape *shape = &from->samples->shape;
    const size_t row_len = tokens_len(shape);
    if (slot->hdf5_path != sample->path) {
        CLEANUP(arena) struct arena arena = ARENA_EMPTY;
        hdf5_close(slot->hdf5);
        slot->hdf5 = NULL;
        slot->hdf5_path = NULL;
        if (hdf5_open(fs_join(&arena, from->source->folder, sample->path), shape, &slot->hdf5,
                      err) < 0) {
            return err_wrap(err, "%s", sample->path);
        }
        slot->hdf5_path = sample->path;
        slot->n_rows = 0;
    }
    if (sample->place < slot->first_row || sample->place - slot->first_row >= slot->n_rows) {
        const uint32_t n_all = hdf5_n_rows(slot->hdf5);
        if (sample->place >= n_all) {
            return err_set(err, ERR_INTEGRITY, "%s: it became shorter while it was read",
                           sample->path);
        }
        slot->first_row = sample->place;
        slot->n_rows = n_all - (uint32_t)sample->place;
        slot->n_rows = slot->n_rows < ROWS_AT_ONCE ? slot->n_rows : ROWS_AT_ONCE;
        slot->rows = xrealloc(slot->rows, ROWS_AT_ONCE * row_len * sizeof(*slot->rows));
        if (hdf5_read(slot->hdf5, (uint32_t)slot->first_row, slot->n_rows, slot->rows, err) < 0) {
            return err_wrap(err, "%s", sample->path);
        }
    }
    memcpy(row, slot->rows + (sample->place - slot->first_row) * row_len, sample->bytes);
    return 0;
}

/* Its bytes into dst. */
static int read_sample(const struct packing_opts *from, const struct image_sample *sample,
                       struct packing_slot *slot, uint8_t *dst, struct err *err)
{
    const struct samples *samples = from->samples;
    if (samples->kind != SHARD_TOKENS) {
        return decode_image(from->source, samples, sample, slot, dst, err);
    }
    /* dst is aligned for int32: samples begin at multiples of SHARD_DATA_ALIGN. */
    int32_t *numbers = (int32_t *)(void *)dst;
    if (read_row(from, sample, slot, numbers, err) < 0) {
        return -1;
    }
    return tokens_check(&samples->shape, numbers, err) < 0
               ? err_wrap(err, "%s: row %" PRIu64, sample->path, sample->place)
               : 0;
}

/* ---- plan ---- */

static void plan_release(struct packing_plan *plan)
{
    free(plan->shards);
    free(plan->entries);
    *plan = (struct packing_plan){0};
}

/* Where the shard that begins with this sample ends: at least one sample, then as many as fit. */
static struct packed_shard lay_shard(const struct samples *samples, size_t first,
                                     uint64_t shard_bytes)
{
    struct packed_shard shard = {.first = first};
    uint64_t data = 0;
    for (size_t idx = first; idx < samples->n; idx++) {
        uint64_t with = shard_align(data, SHARD_DATA_ALIGN) + samples->items[idx].bytes;
        uint64_t offset = shard_data_offset(shard.n + 1);
        if (shard.n && offset + with > shard_bytes) {
            break;
        }
        data = with;
        shard.n++;
        shard.data_offset = offset;
    }
    shard.total_bytes = shard.data_offset + data;
    return shard;
}

static void fill_entries(const struct samples *samples, const struct packed_shard *shard,
                         struct shard_entry *entries)
{
    uint64_t offset = shard->data_offset;
    for (size_t idx = shard->first; idx < shard->first + shard->n; idx++) {
        const struct image_sample *sample = &samples->items[idx];
        entries[idx] =
            (struct shard_entry){.offset = offset,
                                 .bytes = sample->bytes,
                                 .height = (uint16_t)sample->height,
                                 .width = (uint16_t)sample->width,
                                 .channels = samples->kind == SHARD_TOKENS ? 0 : IMAGE_RGB,
                                 .label = samples->kind == SHARD_CLASSES ? sample->label : -1};
        offset = shard_align(offset + sample->bytes, SHARD_DATA_ALIGN);
    }
}

static int plan_make(const struct samples *samples, uint64_t shard_bytes,
                     struct packing_plan *ret_plan, struct err *err)
{
    struct packing_plan plan = {0};
    size_t n_max = 0;
    plan.entries = xcalloc(samples->n, sizeof(*plan.entries));
    for (size_t first = 0; first < samples->n;) {
        if (plan.n_shards == n_max) {
            plan.shards = vec_grow(plan.shards, &n_max, sizeof(*plan.shards));
        }
        struct packed_shard shard = lay_shard(samples, first, shard_bytes);
        fill_entries(samples, &shard, plan.entries);
        plan.shards[plan.n_shards++] = shard;
        plan.total_bytes += shard.total_bytes;
        first += shard.n;
        if (plan.n_shards > PACK_SHARDS_MAX) {
            plan_release(&plan);
            return err_set(err, ERR_USAGE, "more than %d shards; --shard-bytes makes them larger",
                           PACK_SHARDS_MAX);
        }
    }
    *ret_plan = plan;
    return 0;
}

static void add_traits(struct json_out *out, const struct samples *samples)
{
    static const char *const NAMES[IMAGE_TRAITS] = {"grey",  "palette", "deep",
                                                    "alpha", "cmyk",    "rotated"};
    jw_object(out, "images");
    for (unsigned idx = 0; idx < IMAGE_TRAITS; idx++) {
        jw_i64(out, NAMES[idx], (int64_t)samples->n_traits[idx]);
    }
    jw_i64(out, "other_format", (int64_t)samples->n_other_format);
    jw_end_object(out);
}

/* What determines the bytes, as JSON in one line: pack.json's recipe. */
static void write_recipe(const struct packing_opts *opts, struct strbuf *ret_text)
{
    const struct samples *samples = opts->samples;
    struct json_out out;
    jw_begin(&out, ret_text, true);
    jw_object(&out, NULL);
    jw_z(&out, "writer", "reperf-pack");
    jw_i64(&out, "revision", RECIPE_REVISION);
    jw_i64(&out, "shard_bytes", (int64_t)opts->shard_bytes);
    jw_array(&out, "libraries");
    if (samples->kind != SHARD_TOKENS) {
        jw_z(&out, NULL, jpeg_library());
        jw_z(&out, NULL, png_library());
    } else {
        jw_z(&out, NULL, hdf5_library());
    }
    jw_end_array(&out);
    if (samples->kind == SHARD_TOKENS) {
        jw_i64(&out, "sequence", samples->shape.sequence);
        jw_i64(&out, "predictions", samples->shape.predictions);
    } else {
        if (samples->short_side > 0) {
            jw_i64(&out, "short_side", samples->short_side);
        } else {
            jw_null(&out, "short_side");
        }
        add_traits(&out, samples);
    }
    jw_end_object(&out);
}

static struct pack_file describe(const struct packer *p, struct str recipe)
{
    const struct packing_opts *opts = p->opts;
    struct pack_file pack = {.dataset = opts->dataset_id,
                             .split = opts->split,
                             .is_synthetic = opts->is_synthetic,
                             .kind = opts->samples->kind,
                             .n_samples = opts->samples->n,
                             .n_classes = opts->samples->n_classes,
                             .recipe = recipe,
                             .has_order = true};
    pack.has_source = opts->source->list != NULL;
    if (pack.has_source) {
        memcpy(pack.source_sha256, opts->source->list_sha256, SHA256_BYTES);
    }
    memcpy(pack.order_sha256, opts->samples->order_sha256, SHA256_BYTES);
    return pack;
}

/* ---- jobs ---- */

static const char *shard_path(const struct packer *p, uint32_t shard, const char *ending)
{
    char name[32];
    snprintf(name, sizeof(name), SHARD_NAME, (unsigned)shard);
    return arena_printf(p->arena, "%s/%s%s", p->opts->folder, name, ending);
}

static void cut_chunks(struct packer *p)
{
    const struct samples *samples = p->opts->samples;
    size_t n_max = samples->n;
    p->chunks = arena_array(p->arena, struct chunk, n_max);
    for (uint32_t idx = 0; idx < p->plan.n_shards; idx++) {
        const struct packed_shard *shard = &p->plan.shards[idx];
        struct chunk chunk = {.shard = idx, .first = shard->first};
        uint64_t bytes = 0;
        for (size_t at = shard->first; !p->is_kept[idx] && at < shard->first + shard->n; at++) {
            if (chunk.n &&
                (bytes + samples->items[at].bytes > CHUNK_BYTES || chunk.n == CHUNK_SAMPLES)) {
                p->chunks[p->n_chunks++] = chunk;
                chunk = (struct chunk){.shard = idx, .first = at};
                bytes = 0;
            }
            bytes += samples->items[at].bytes;
            chunk.n++;
        }
        if (chunk.n) {
            p->chunks[p->n_chunks++] = chunk;
        }
        p->n_done += p->is_kept[idx] ? shard->n : 0;
    }
}

static int chunk_prepare(void *ctx, size_t job, void *slot UNUSED, struct err *err)
{
    struct packer *p = ctx;
    const struct chunk *chunk = &p->chunks[job];
    const struct packed_shard *shard = &p->plan.shards[chunk->shard];
    if (chunk->first == shard->first) {
        const char *path = shard_path(p, chunk->shard, ".part");
        int fd = p->fds[chunk->shard] = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (fd < 0 || ftruncate(fd, (off_t)shard->total_bytes) < 0) {
            return err_errno(err, "create", path);
        }
    }
    return 0;
}

static int chunk_work(void *ctx, size_t job, void *ptr, const atomic_bool *is_cancelled,
                      struct err *err)
{
    struct packer *p = ctx;
    struct packing_slot *slot = ptr;
    const struct chunk *chunk = &p->chunks[job];
    const struct samples *samples = p->opts->samples;
    const int fd = p->fds[chunk->shard];
    for (size_t idx = chunk->first; idx < chunk->first + chunk->n; idx++) {
        const struct image_sample *sample = &samples->items[idx];
        struct shard_entry *entry = &p->plan.entries[idx];
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (slot->sample_bytes < sample->bytes) {
            free(slot->sample);
            slot->sample = xmalloc(sample->bytes);
            slot->sample_bytes = sample->bytes;
        }
        if (read_sample(p->opts, sample, slot, slot->sample, err) < 0) {
            return -1;
        }
        entry->crc32c = crc32c(0, slot->sample, sample->bytes);
        if (fs_write_at(fd, slot->sample, sample->bytes, entry->offset, "a shard", err) < 0) {
            return -1;
        }
    }
    /* Written back while others decode, so that the last fsync is short. Only advice: its failure is nothing. */
    const struct shard_entry *first = &p->plan.entries[chunk->first];
    const struct shard_entry *last = &p->plan.entries[chunk->first + chunk->n - 1];
    (void)sync_file_range(fd, (off_t)first->offset,
                          (off_t)(last->offset + last->bytes - first->offset),
                          SYNC_FILE_RANGE_WRITE);
    return 0;
}

static int finish_shard(struct packer *p, uint32_t idx, struct err *err)
{
    struct packed_shard *shard = &p->plan.shards[idx];
    const struct shard_entry *entries = p->plan.entries + shard->first;
    const struct samples *samples = p->opts->samples;
    const char *temp = shard_path(p, idx, ".part");
    struct shard_header header = {.kind = samples->kind,
                                  .n_samples = (uint32_t)shard->n,
                                  .first_sample = shard->first,
                                  .data_offset = shard->data_offset,
                                  .total_bytes = shard->total_bytes,
                                  .sequence = samples->shape.sequence,
                                  .predictions = samples->shape.predictions};
    memcpy(header.magic, SHARD_MAGIC, sizeof(header.magic));
    shard_seal(&header, entries);
    shard_sha256(&header, entries, shard->sha256);
    if (fs_write_at(p->fds[idx], &header, sizeof(header), 0, "a shard", err) < 0 ||
        fs_write_at(p->fds[idx], entries, shard->n * sizeof(*entries), SHARD_ALIGN, "a shard",
                    err) < 0) {
        return -1;
    }
    if (publish_file(p->fds[idx], temp, shard_path(p, idx, ""), err) < 0) {
        return -1;
    }
    fd_close(&p->fds[idx]);
    return 0;
}

static int chunk_done(void *ctx, size_t job, void *slot UNUSED, struct err *err)
{
    struct packer *p = ctx;
    const struct chunk *chunk = &p->chunks[job];
    const struct packed_shard *shard = &p->plan.shards[chunk->shard];
    p->n_done += chunk->n;
    progress_set(&p->progress, p->n_done);
    return chunk->first + chunk->n == shard->first + shard->n ? finish_shard(p, chunk->shard, err)
                                                              : 0;
}

/* ---- what is there ---- */

/* The entries of the plan have no CRC yet; that of the data is in the file's. */
static bool is_same_layout(const struct packer *p, uint32_t idx, const struct shard_file *file)
{
    const struct packed_shard *shard = &p->plan.shards[idx];
    const struct samples *samples = p->opts->samples;
    if (file->header.n_samples != shard->n || file->header.first_sample != shard->first ||
        file->header.total_bytes != shard->total_bytes || file->header.kind != samples->kind ||
        file->header.sequence != samples->shape.sequence ||
        file->header.predictions != samples->shape.predictions) {
        return false;
    }
    for (size_t at = 0; at < shard->n; at++) {
        struct shard_entry expected = p->plan.entries[shard->first + at];
        expected.crc32c = file->entries[at].crc32c;
        if (memcmp(&expected, &file->entries[at], sizeof(expected)) != 0) {
            return false;
        }
    }
    return true;
}

/* A shard that is unreadable or damaged is written again: that is not an error. Runs on any thread. */
static int check_shard(void *ctx, size_t job, void *slot UNUSED, const atomic_bool *is_cancelled,
                       struct err *err)
{
    struct packer *p = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(shard_file) struct shard_file file = SHARD_FILE_EMPTY;
    struct err fault = {0};
    char name[32];
    snprintf(name, sizeof(name), SHARD_NAME, (unsigned)job);
    if (shard_file_open(&file, fs_join(&arena, p->opts->folder, name), name, &fault) < 0 ||
        !is_same_layout(p, (uint32_t)job, &file)) {
        return 0;
    }
    if (shard_file_check(&file, p->opts->samples->n_classes, is_cancelled, &fault) < 0) {
        if (fault.code == ERR_INTERRUPTED) {
            *err = fault;
        }
        return fault.code == ERR_INTERRUPTED ? -1 : 0;
    }
    memcpy(p->plan.shards[job].sha256, file.sha256, SHA256_BYTES);
    p->is_kept[job] = true;
    return 0;
}

static int keep_whole_shards(struct packer *p, struct err *err)
{
    struct ordered spec = {
        .ctx = p, .n_jobs = p->plan.n_shards, .n_threads = p->opts->n_threads, .work = check_shard};
    return ordered_run(&spec, err);
}

static bool is_ours(struct str name)
{
    return str_ends(name, STR_LIT(".shard")) || str_ends(name, STR_LIT(".shard.part")) ||
           str_eq_z(name, PACK_NAME) || str_eq_z(name, PLAN_NAME);
}

/* The last two: what fs_write_atomic had not renamed when it was killed. */
static bool is_torn(struct str name)
{
    return str_ends(name, STR_LIT(".shard.part")) || str_eq_z(temp_of(name), PACK_NAME) ||
           str_eq_z(temp_of(name), PLAN_NAME);
}

/* Remains of an earlier packing: all of it, or what a stop left half written. */
static int remove_ours(struct packer *p, bool is_all, struct err *err)
{
    struct fs_names names = {0};
    if (fs_list(p->arena, p->opts->folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        struct str name = str_of(names.items[idx]);
        if (is_torn(name) || (is_all && is_ours(name))) {
            const char *path = fs_join(p->arena, p->opts->folder, names.items[idx]);
            if (unlink(path) < 0) {
                return err_errno(err, "remove", path);
            }
        }
    }
    return 0;
}

enum found { FOUND_NOTHING, FOUND_PART, FOUND_ALL, FOUND_OTHER };

static int look(struct packer *p, struct str head, enum found *ret_found, struct err *err)
{
    const char *const names[] = {PACK_NAME, PLAN_NAME};
    struct fs_names files = {0};
    for (size_t idx = 0; idx < ARRAY_LEN(names); idx++) {
        const char *path = fs_join(p->arena, p->opts->folder, names[idx]);
        struct str text;
        if (!fs_exists(path)) {
            continue;
        }
        if (fs_read(p->arena, path, PACK_TEXT_MAX, &text, err) < 0) {
            return -1;
        }
        *ret_found = !str_starts(text, head) ? FOUND_OTHER : idx == 0 ? FOUND_ALL : FOUND_PART;
        return 0;
    }
    if (fs_list(p->arena, p->opts->folder, &files, err) < 0) {
        return -1;
    }
    *ret_found = FOUND_NOTHING;
    for (size_t idx = 0; idx < files.n; idx++) {
        *ret_found = is_ours(str_of(files.items[idx])) ? FOUND_OTHER : *ret_found;
    }
    return 0;
}

static int check_disk(const struct packer *p, struct err *err)
{
    uint64_t wanted = SPARE_BYTES;
    for (size_t idx = 0; idx < p->plan.n_shards; idx++) {
        wanted += p->is_kept[idx] ? 0 : p->plan.shards[idx].total_bytes;
    }
    return fs_expect_room(p->folder_fd, wanted, p->opts->folder, err);
}

/* ---- all ---- */

static int write_shards(struct packer *p, struct err *err)
{
    struct ordered spec = {.ctx = p,
                           .n_jobs = 0,
                           .n_threads = p->opts->n_threads,
                           .slot_bytes = sizeof(struct packing_slot),
                           .slot_release = slot_release,
                           .prepare = chunk_prepare,
                           .work = chunk_work,
                           .done = chunk_done};
    cut_chunks(p);
    spec.n_jobs = p->n_chunks;
    progress_start(&p->progress, clock_system(), "pack", "samples", p->opts->samples->n);
    int result = ordered_run(&spec, err);
    progress_end(&p->progress);
    for (size_t idx = 0; idx < p->plan.n_shards; idx++) {
        fd_close(&p->fds[idx]);
    }
    return result;
}

static int write_pack_file(struct packer *p, struct pack_file *pack, struct err *err)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(PACK_TEXT_MAX);
    pack->n_shards = p->plan.n_shards;
    pack->shards = arena_array(p->arena, struct pack_file_shard, pack->n_shards);
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        const struct packed_shard *shard = &p->plan.shards[idx];
        struct pack_file_shard *row = &pack->shards[idx];
        *row = (struct pack_file_shard){.name = str_printf(p->arena, SHARD_NAME, (unsigned)idx),
                                        .bytes = shard->total_bytes,
                                        .n_samples = shard->n};
        memcpy(row->sha256, shard->sha256, SHA256_BYTES);
    }
    pack_file_text(pack, &text);
    if (text.is_full) {
        return err_set(err, ERR_INTERNAL, PACK_NAME " is larger than %u bytes", PACK_TEXT_MAX);
    }
    if (fs_write_atomic(fs_join(p->arena, p->opts->folder, PACK_NAME), strbuf_str(&text), err) <
        0) {
        return -1;
    }
    (void)unlink(fs_join(p->arena, p->opts->folder, PLAN_NAME));
    return 0;
}

static int prepare_folder(struct packer *p, struct str head, enum found found, struct err *err)
{
    if (found == FOUND_OTHER && !p->opts->is_forced) {
        return err_set(err, ERR_USAGE,
                       "%s holds shards of another recipe or source; --force replaces them",
                       p->opts->folder);
    }
    if (remove_ours(p, found == FOUND_OTHER, err) < 0) {
        return -1;
    }
    return found == FOUND_PART
               ? 0
               : fs_write_atomic(fs_join(p->arena, p->opts->folder, PLAN_NAME), head, err);
}

static int pack_into(struct packer *p, struct packing_result *ret_result, struct err *err)
{
    CLEANUP(strbuf) struct strbuf head = {0}, recipe = {0};
    struct packing_result result = {.n_shards = p->plan.n_shards,
                                    .total_bytes = p->plan.total_bytes};
    enum found found = FOUND_NOTHING;
    strbuf_init(&head, HEAD_MAX);
    strbuf_init(&recipe, HEAD_MAX);
    write_recipe(p->opts, &recipe);
    struct pack_file pack = describe(p, strbuf_str(&recipe));
    pack_file_head(&pack, &head);
    if (look(p, strbuf_str(&head), &found, err) < 0) {
        return -1;
    }
    if (found == FOUND_ALL || found == FOUND_PART) {
        if (keep_whole_shards(p, err) < 0) {
            return -1;
        }
    }
    for (size_t idx = 0; idx < p->plan.n_shards; idx++) {
        result.n_kept += p->is_kept[idx];
    }
    result.was_there = found == FOUND_ALL && result.n_kept == p->plan.n_shards;
    *ret_result = result;
    if (result.was_there) {
        (void)unlink(fs_join(p->arena, p->opts->folder, PLAN_NAME));
        return remove_ours(p, false, err);
    }
    if (check_disk(p, err) < 0 || prepare_folder(p, strbuf_str(&head), found, err) < 0 ||
        write_shards(p, err) < 0) {
        return -1;
    }
    return write_pack_file(p, &pack, err);
}

int packing_write(struct arena *arena, const struct packing_opts *opts,
                  struct packing_result *ret_result, struct err *err)
{
    CLEANUP(fd) int folder_fd = -1;
    struct packer p = {.opts = opts, .arena = arena};
    if (fs_mkdir_p(opts->folder, err) < 0) {
        return -1;
    }
    folder_fd = open(opts->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd < 0 || flock(folder_fd, LOCK_EX | LOCK_NB) < 0) {
        return err_set(err, ERR_IO, "%s: another reperf-pack is writing here, or: %s", opts->folder,
                       err_errno_text(errno));
    }
    p.folder_fd = folder_fd;
    if (plan_make(opts->samples, opts->shard_bytes, &p.plan, err) < 0) {
        return -1;
    }
    p.is_kept = arena_array(arena, bool, p.plan.n_shards);
    p.fds = arena_array(arena, int, p.plan.n_shards);
    for (size_t idx = 0; idx < p.plan.n_shards; idx++) {
        p.fds[idx] = -1;
    }
    int result = pack_into(&p, ret_result, err);
    plan_release(&p.plan);
    return result;
}
