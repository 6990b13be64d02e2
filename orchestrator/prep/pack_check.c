/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_check.h"

#include "base/fs.h"
#include "base/progress.h"
#include "prep/ordered.h"
#include "prep/packing.h"
#include "prep/shard_file.h"

struct checker {
    const struct check_opts *opts;
    struct arena *arena;
    struct check_result result;
    uint64_t *firsts;       /* first sample of each shard by pack.json */
    struct samples samples; /* deep */
    struct progress progress;
    uint64_t n_done;
};

struct check_slot {
    struct {
        char **items; /* owned */
        size_t n, n_max;
    } faults;
    struct packing_slot packing;
    uint8_t *found, *made; /* owned: one sample each */
    size_t found_bytes, made_bytes;
};

static void forget_faults(struct check_slot *slot)
{
    for (size_t idx = 0; idx < slot->faults.n; idx++) {
        free(slot->faults.items[idx]);
    }
    slot->faults.n = 0;
}

static void slot_release(void *ptr)
{
    struct check_slot *slot = ptr;
    forget_faults(slot);
    VEC_RELEASE(&slot->faults);
    packing_slot_release(&slot->packing);
    free(slot->found);
    free(slot->made);
}

static void note(struct check_slot *slot, const char *text)
{
    VEC_PUSH(&slot->faults, xstrdup(text));
}

static void add_fault(struct checker *c, const char *text)
{
    if (c->result.n_faults < CHECK_FAULTS_MAX) {
        c->result.faults[c->result.n_faults++] = arena_printf(c->arena, "%s", text);
    }
    c->result.n_all++;
}

static void take_faults(struct checker *c, struct check_slot *slot)
{
    for (size_t idx = 0; idx < slot->faults.n; idx++) {
        add_fault(c, slot->faults.items[idx]);
    }
    forget_faults(slot);
}

/* ---- samples ---- */

static void make_room(uint8_t **buf, size_t *size, size_t wanted)
{
    if (*size < wanted) {
        free(*buf);
        *buf = xmalloc(wanted);
        *size = wanted;
    }
}

/* Decoded again. The sample's bytes are in slot->found. */
static void compare(const struct checker *c, const struct shard_file *file, uint32_t idx,
                    struct check_slot *slot)
{
    const struct shard_entry *entry = &file->entries[idx];
    const struct image_sample *sample = &c->samples.items[file->header.first_sample + idx];
    struct err fault = {0};
    char text[ERR_MSG_MAX];
    int32_t label = c->samples.kind == SHARD_CLASSES ? sample->label : -1;
    if (sample->bytes != entry->bytes || sample->width != entry->width ||
        sample->height != entry->height || label != entry->label) {
        snprintf(text, sizeof(text), "%s: sample %u: size or class is not that of %s", file->name,
                 idx, sample->path);
        note(slot, text);
        return;
    }
    make_room(&slot->made, &slot->made_bytes, sample->bytes);
    if (packing_sample((struct packing_from){c->opts->source, &c->samples}, sample, &slot->packing,
                       slot->made, &fault) < 0) {
        note(slot, fault.msg);
    } else if (memcmp(slot->made, slot->found, sample->bytes) != 0) {
        snprintf(text, sizeof(text), "%s: sample %u: not what %s decodes to", file->name, idx,
                 sample->path);
        note(slot, text);
    }
}

static int check_samples(const struct checker *c, const struct shard_file *file,
                         struct check_slot *slot, const atomic_bool *is_cancelled, struct err *err)
{
    make_room(&slot->found, &slot->found_bytes, file->sample_bytes_max + SHARD_DATA_ALIGN);
    for (uint32_t idx = 0; idx < file->header.n_samples; idx++) {
        struct err fault = {0};
        if (atomic_load(is_cancelled)) {
            return err_set(err, ERR_INTERRUPTED, "interrupted");
        }
        if (shard_file_check(file, idx, c->result.pack.n_classes, slot->found, &fault) < 0) {
            note(slot, fault.msg);
        } else if (c->result.is_deep) {
            compare(c, file, idx, slot);
        }
    }
    return 0;
}

static int shard_work(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled,
                      struct err *err)
{
    const struct checker *c = ctx;
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(shard_file) struct shard_file file = SHARD_FILE_EMPTY;
    const struct pack_file_shard *row = &c->result.pack.shards[job];
    const char *name = row->name.ptr;
    struct err fault = {0};
    if (shard_file_open(&file, fs_join(&arena, c->opts->folder, name), name, &fault) < 0) {
        note(slot, fault.msg);
        return 0;
    }
    if (file.header.kind != c->result.pack.kind || file.header.n_samples != row->n_samples ||
        file.header.first_sample != c->firsts[job] || file.header.total_bytes != row->bytes) {
        note(slot, arena_printf(
                       &arena, "%s: its header is not the one that " PACK_NAME " describes", name));
        return 0;
    }
    if (memcmp(file.sha256, row->sha256, SHA256_BYTES) != 0) {
        note(slot, arena_printf(
                       &arena, "%s: the SHA-256 of header and entries is not the one in " PACK_NAME,
                       name));
    }
    return check_samples(c, &file, slot, is_cancelled, err);
}

static int shard_done(void *ctx, size_t job, void *slot, struct err *err UNUSED)
{
    struct checker *c = ctx;
    take_faults(c, slot);
    c->n_done += c->result.pack.shards[job].n_samples;
    progress_set(&c->progress, c->n_done);
    return 0;
}

static int check_shards(struct checker *c, struct err *err)
{
    const struct pack_file *pack = &c->result.pack;
    const struct ordered spec = {.ctx = c,
                                 .n_jobs = pack->n_shards,
                                 .n_threads = c->opts->n_threads,
                                 .slot_bytes = sizeof(struct check_slot),
                                 .slot_release = slot_release,
                                 .work = shard_work,
                                 .done = shard_done};
    uint64_t first = 0;
    c->firsts = arena_array(c->arena, uint64_t, pack->n_shards + 1);
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        c->firsts[idx] = first;
        first += pack->shards[idx].n_samples;
        c->result.bytes += pack->shards[idx].bytes;
    }
    progress_start(&c->progress, clock_system(), "verify", "samples", pack->n_samples);
    int result = ordered_run(&spec, err);
    progress_end(&c->progress);
    return result;
}

/* ---- all ---- */

static int find_extra(struct checker *c, struct err *err)
{
    struct fs_names names = {0};
    if (fs_list(c->arena, c->opts->folder, &names, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        bool is_known = strcmp(names.items[idx], PACK_NAME) == 0;
        for (size_t shard = 0; !is_known && shard < c->result.pack.n_shards; shard++) {
            is_known = str_eq_z(c->result.pack.shards[shard].name, names.items[idx]);
        }
        if (!is_known) {
            add_fault(
                c, arena_printf(c->arena, "%s: " PACK_NAME " does not name it", names.items[idx]));
        }
    }
    return 0;
}

/* The tree's samples; false where they are not the ones that were packed, which is a fault already. */
static int find_samples(struct checker *c, bool *ret_is_same, struct err *err)
{
    const struct pack_file *pack = &c->result.pack;
    struct samples_opts opts = {.dataset = c->opts->dataset,
                                .dataset_path = c->opts->dataset_path,
                                .split = pack->split,
                                .source = c->opts->source,
                                .is_synthetic = pack->is_synthetic,
                                .n_threads = c->opts->n_threads};
    struct err fault = {0};
    *ret_is_same = false;
    if (!str_eq(pack->dataset, c->opts->dataset->id)) {
        return err_set(err, ERR_USAGE, "the shards are of %.*s, not of %.*s",
                       STR_ARG(pack->dataset), STR_ARG(c->opts->dataset->id));
    }
    if (samples_find(c->arena, &opts, &c->samples, &fault) < 0) {
        if (fault.code != ERR_INTEGRITY) {
            *err = fault;
            return -1;
        }
        add_fault(c, fault.msg);
        return 0;
    }
    if (c->opts->source->list &&
        (!pack->has_source ||
         memcmp(pack->source_sha256, c->opts->source->list_sha256, SHA256_BYTES) != 0)) {
        add_fault(c, PACK_NAME ": source_sha256 is not that of the tree's list");
    }
    if (c->samples.kind != pack->kind || c->samples.n != pack->n_samples ||
        memcmp(c->samples.order_sha256, pack->order_sha256, SHA256_BYTES) != 0) {
        add_fault(c,
                  PACK_NAME ": the tree holds other samples than were packed, or in another order");
        return 0;
    }
    *ret_is_same = true;
    return 0;
}

static int check(struct checker *c, struct err *err)
{
    struct err fault = {0};
    struct str text;
    bool is_same = false;
    if (pack_file_read(c->arena, c->opts->folder, &c->result.pack, &text, &fault) < 0) {
        if (fault.code != ERR_INTEGRITY) {
            *err = fault;
            return -1;
        }
        c->result.pack = (struct pack_file){0};
        add_fault(c, fault.msg);
        return 0;
    }
    if (find_extra(c, err) < 0 || (c->opts->source && find_samples(c, &is_same, err) < 0)) {
        return -1;
    }
    c->result.is_deep = is_same;
    return check_shards(c, err);
}

int check_folder(struct arena *arena, const struct check_opts *opts,
                 struct check_result *ret_result, struct err *err)
{
    struct checker c = {.opts = opts, .arena = arena};
    int result;
    if (!fs_is_dir(opts->folder)) {
        return err_set(err, ERR_NOT_FOUND, "%s: no such folder", opts->folder);
    }
    c.result.faults = arena_array(arena, const char *, CHECK_FAULTS_MAX);
    result = check(&c, err);
    samples_release(&c.samples);
    if (result == 0) {
        *ret_result = c.result;
    }
    return result;
}
