/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "prep/pack_check.h"

#include "base/fs.h"
#include "base/progress.h"
#include "prep/ordered.h"
#include "prep/shard_file.h"

struct checker {
    struct arena *arena;
    const char *folder;
    struct check_result *out;
    uint64_t *firsts; /* first sample of each shard by pack.json */
    struct progress progress;
    uint64_t n_done;
};

static void add_fault(struct checker *c, const char *text)
{
    c->out->faults[c->out->n_faults++] = arena_printf(c->arena, "%s", text);
}

static int check_shard(const struct checker *c, size_t job, const atomic_bool *is_cancelled,
                       struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    CLEANUP(shard_file) struct shard_file file = SHARD_FILE_EMPTY;
    const struct pack_file *pack = &c->out->pack;
    const struct pack_file_shard *row = &pack->shards[job];
    const char *name = row->name.ptr;
    if (shard_file_open(&file, fs_join(&arena, c->folder, name), name, err) < 0) {
        return -1;
    }
    if (file.header.kind != pack->kind || file.header.n_samples != row->n_samples ||
        file.header.first_sample != c->firsts[job] || file.header.total_bytes != row->bytes ||
        memcmp(file.sha256, row->sha256, SHA256_BYTES) != 0) {
        return err_set(err, ERR_INTEGRITY,
                       "%s: its header is not the one that " PACK_NAME " describes", name);
    }
    return shard_file_check(&file, pack->n_classes, is_cancelled, err);
}

/* A fault is no error of the job's. */
static int shard_work(void *ctx, size_t job, void *slot, const atomic_bool *is_cancelled,
                      struct err *err)
{
    struct err *fault = slot;
    *fault = (struct err){0};
    return check_shard(ctx, job, is_cancelled, fault) < 0 && fault->code == ERR_INTERRUPTED
               ? err_pass(err, fault)
               : 0;
}

static int shard_done(void *ctx, size_t job, void *slot, struct err *err UNUSED)
{
    struct checker *c = ctx;
    const struct err *fault = slot;
    if (fault->code != ERR_NONE) {
        add_fault(c, fault->msg);
    }
    c->n_done += c->out->pack.shards[job].n_samples;
    progress_set(&c->progress, c->n_done);
    return 0;
}

static int check_shards(struct checker *c, size_t n_threads, struct err *err)
{
    const struct pack_file *pack = &c->out->pack;
    const struct ordered spec = {.ctx = c,
                                 .n_jobs = pack->n_shards,
                                 .n_threads = n_threads,
                                 .slot_bytes = sizeof(struct err),
                                 .work = shard_work,
                                 .done = shard_done};
    uint64_t first = 0;
    c->firsts = arena_array(c->arena, uint64_t, pack->n_shards + 1);
    for (size_t idx = 0; idx < pack->n_shards; idx++) {
        c->firsts[idx] = first;
        first += pack->shards[idx].n_samples;
        c->out->bytes += pack->shards[idx].bytes;
    }
    progress_start(&c->progress, clock_system(), "verify", "samples", pack->n_samples);
    int result = ordered_run(&spec, err);
    progress_end(&c->progress);
    return result;
}

static void find_extra(struct checker *c, const struct fs_names *names)
{
    for (size_t idx = 0; idx < names->n; idx++) {
        const struct pack_file *pack = &c->out->pack;
        const struct str name = str_of(names->items[idx]);
        if (!str_eq_z(name, PACK_NAME) && !STR_NAMED(pack->shards, pack->n_shards, name, name)) {
            add_fault(c, arena_printf(c->arena, "%s: " PACK_NAME " does not name it", name.ptr));
        }
    }
}

int check_folder(struct arena *arena, const char *folder, size_t n_threads,
                 struct check_result *ret_result, struct err *err)
{
    struct checker c = {.arena = arena, .folder = folder, .out = ret_result};
    struct fs_names names = {0};
    struct err fault = {0};
    *ret_result = (struct check_result){0};
    if (fs_list(arena, folder, &names, err) < 0) {
        return -1;
    }
    if (pack_file_read(arena, folder, &ret_result->pack, &fault) < 0) {
        if (fault.code != ERR_INTEGRITY) {
            return err_pass(err, &fault);
        }
        ret_result->pack = (struct pack_file){0};
    }
    ret_result->faults = arena_array(arena, const char *, ret_result->pack.n_shards + names.n + 1);
    if (fault.code) {
        add_fault(&c, fault.msg);
        return 0;
    }
    find_extra(&c, &names);
    return check_shards(&c, n_threads, err);
}
