/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "store/dataset_repair.h"

#include <errno.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/publish.h"
#include "store/copy_file.h"
#include "store/dataset_tar.h"
#include "store/store_verify.h"

struct wanted_file {
    const struct tree_file *file;
    bool is_back;
};

struct repairing {
    struct dataset_job job;
    const struct dataset_repair_opts *opts;
    struct dataset_repaired *out;
    const char *work;  /* STORE/tmp/repair-NAME, or in the user's folder */
    struct map wanted; /* path to a struct wanted_file */
};

/* ---- what is to be done ---- */

static size_t collect_wanted(struct repairing *r, const struct dataset_verified *before)
{
    size_t n = 0;
    for (size_t idx = 0; idx < before->n_faults; idx++) {
        const struct dataset_fault *fault = &before->faults[idx];
        const struct tree_file *file = tree_list_find(&before->list, fault->path);
        if (file && fault->kind != FAULT_EXTRA && fault->kind != FAULT_COUNT &&
            (fault->kind == FAULT_MISSING || fault->expected)) {
            struct wanted_file *wanted = arena_new(r->job.arena, struct wanted_file);
            wanted->file = file;
            n += map_add(&r->wanted, str_of(file->path), wanted);
        }
    }
    return n;
}

static int remove_extra(struct repairing *r, const struct dataset_verified *before, struct err *err)
{
    for (size_t idx = 0; idx < before->n_faults; idx++) {
        const struct dataset_fault *fault = &before->faults[idx];
        const char *path = fs_join(r->job.arena, before->tree_path, fault->path);
        if (fault->kind != FAULT_EXTRA || tree_list_find(&before->list, fault->path)) {
            continue;
        }
        if (unlink(path) < 0) {
            return err_errno(err, "remove", path);
        }
        log_line(LOG_INFO, "removed %s", path);
        r->out->n_removed++;
    }
    return 0;
}

/* ---- archives ---- */

/* A synthetic dataset is made again of as many samples as it had. */
static void keep_samples(struct dataset_job *job)
{
    struct dataset_record earlier;
    if (!job->here->is_synthetic ||
        dataset_ref_read(job->arena, job->store, job->here->name, &earlier, ERR_IGNORED) < 0) {
        return;
    }
    const char **samples = arena_array(job->arena, const char *, earlier.n_splits + 1);
    for (size_t idx = 0; idx < earlier.n_splits; idx++) {
        samples[idx] = arena_printf(job->arena, "%.*s=%lld", STR_ARG(earlier.splits[idx].name),
                                    (long long)earlier.splits[idx].n_samples);
    }
    job->samples = samples;
    job->n_samples = earlier.n_splits;
}

/* Reads those in the store completely: a corrupt one is quarantined, so that it is fetched again with the lost ones. */
static int mend_archives(struct repairing *r, struct err *err)
{
    const struct store_ref ref = {.kind = DATASET_REF_KIND, .name = r->job.here->name};
    const struct clock_src *clock = &r->job.net->opts->clock;
    const struct store_verify_opts opts = {.pool = r->opts->verify->pool,
                                           .n_threads = r->opts->verify->n_threads,
                                           .now_ns = clock->wall_ns(clock->ctx)};
    keep_samples(&r->job);
    return store_verify_ref(r->job.arena, r->job.store, &opts, &ref, &r->out->n_bad_archives, err) <
                   0
               ? -1
               : dataset_get_parts(&r->job, &r->out->fetched, err);
}

/* The store may lose an archive whose tree holds. One that was made of the tree is made of it again. */
static int bring_archives(struct repairing *r, struct err *err)
{
    const struct dataset_job *job = &r->job;
    struct dataset_record earlier;
    struct err none = {0};
    size_t n_lost = 0;
    if (dataset_ref_read(job->arena, job->store, job->here->name, &earlier, &none) < 0) {
        /* Without a reference the tree is all that is known. */
        return none.code == ERR_NOT_FOUND ? 0 : err_pass(err, &none);
    }
    for (size_t idx = 0; idx < earlier.seen.n_items; idx++) {
        n_lost += !fs_exists(store_blob_path(job->store, earlier.seen.items[idx].sha256));
    }
    if (n_lost == 0) {
        return 0;
    }
    r->out->n_bad_archives = n_lost;
    const struct dataset *dataset = &job->here->dataset;
    const struct dataset_verified *v = &r->out->verified;
    const struct dataset_tar_opts tar = {.list = &v->list,
                                         .folder = v->tree_path,
                                         .name = dataset->n_files ? dataset->files[0].name.ptr : "",
                                         .wanted = earlier.seen.items[0].sha256};
    struct digest_value made;
    if (dataset->n_files == 1 && dataset->files[0].n_urls == 0 && earlier.seen.n_items == 1 &&
        dataset_tar(job->store, &tar, &made, &none) == 0) {
        return 0;
    }
    if (none.code == ERR_INTERRUPTED) {
        return err_pass(err, &none);
    }
    return dataset_get_parts(job, &r->out->fetched, err);
}

/* ---- files ---- */

/* NULL: it is there. */
static struct wanted_file *find_wanted(const struct repairing *r, const char *path)
{
    struct wanted_file *wanted = map_get(&r->wanted, str_of(path));
    return wanted && !wanted->is_back ? wanted : NULL;
}

static bool wants(void *ctx, const char *path)
{
    return find_wanted(ctx, path) != NULL;
}

/* Replaces the existing file in one step. If that fails, the tree is made again. */
static void place(struct repairing *r, const char *from, struct wanted_file *wanted)
{
    const char *to = fs_join(r->job.arena, r->out->verified.tree_path, wanted->file->path);
    struct err ignored = {0};
    if (fs_mkdir_above(to, &ignored) < 0 || rename(from, to) < 0) {
        log_line(LOG_DEBUG, "%s: %s", to, ignored.code ? ignored.msg : err_errno_text(errno));
        return;
    }
    wanted->is_back = true;
    r->out->files[r->out->n_files++] = wanted->file->path;
}

/* Those of the other copy that are what the list says; what is placed is what was digested. */
static int take_copies(struct repairing *r, struct err *err)
{
    const char *work = fs_join(r->job.arena, r->work, "copy");
    for (size_t idx = 0; idx < r->wanted.n; idx++) {
        struct wanted_file *wanted = r->wanted.entries[idx].value;
        const char *from = fs_join(r->job.arena, r->opts->from, wanted->file->path);
        struct digest_value value;
        struct err why = {0};
        if (!fs_exists(from)) {
            continue;
        }
        if (fs_remove_tree(r->work, err) < 0) {
            return -1;
        }
        if (copy_file(from, work, &value, &why) < 0) {
            if (why.code == ERR_INTERRUPTED) {
                return err_pass(err, &why);
            }
            log_line(LOG_WARN, "%s", why.msg);
        } else if (memcmp(value.sha256, wanted->file->sha256, SHA256_BYTES) == 0) {
            place(r, work, wanted);
        }
    }
    return 0;
}

/* Those of the archives' files whose digest is the list's. */
static int mend_files(struct repairing *r, struct err *err)
{
    struct dataset_unpacking to = {.job = &r->job,
                                   .from = &r->out->fetched.record.seen,
                                   .work = r->work,
                                   .wants = wants,
                                   .ctx = r};
    if (fs_remove_tree(r->work, err) < 0 || fs_mkdir_p(r->work, err) < 0) {
        return -1;
    }
    int result = dataset_unpack(&to, err);
    for (size_t idx = 0; result == 0 && idx < to.files.n; idx++) {
        struct wanted_file *wanted = find_wanted(r, to.files.items[idx].path);
        if (wanted && memcmp(wanted->file->sha256, to.files.items[idx].sha256, SHA256_BYTES) == 0) {
            place(r, fs_join(r->job.arena, r->work, wanted->file->path), wanted);
        }
    }
    VEC_RELEASE(&to.files);
    return result < 0 ? -1 : publish_all(r->job.store->lock_fd, r->job.store->folder, err);
}

/* ---- the whole ---- */

static int make_anew(struct repairing *r, struct err *err)
{
    r->job.wants_tree = true;
    r->job.makes_anew = true;
    r->out->is_anew = true;
    r->out->n_files = 0;
    return dataset_make_tree(&r->job, &r->out->fetched, err);
}

static int mend(struct repairing *r, size_t n_wanted, bool is_anew, struct err *err)
{
    const bool is_folder = r->opts->verify->folder;
    r->out->files = arena_array(r->job.arena, const char *, n_wanted + 1);
    r->out->fetched.tree_path = dataset_tree_path(r->job.store, r->job.here->name);
    r->job.wants_tree = r->job.here->from != NULL; /* it is made of the other one's tree */
    if (r->opts->from && !is_anew && take_copies(r, err) < 0) {
        return -1;
    }
    if (!is_anew && r->out->n_files == n_wanted) {
        return is_folder ? 0 : publish_all(r->job.store->lock_fd, r->job.store->folder, err);
    }
    if (mend_archives(r, err) < 0 || (!is_anew && mend_files(r, err) < 0)) {
        return -1;
    }
    /* A folder of the user's is verified again. */
    return is_folder || (r->out->n_files == n_wanted && !is_anew) ? 0 : make_anew(r, err);
}

static int verify_again(struct repairing *r, struct err *err)
{
    const struct dataset_verified *after = &r->out->verified;
    if (dataset_verify(r->job.arena, r->job.store, r->job.here, r->opts->verify, &r->out->verified,
                       err) < 0) {
        return -1;
    }
    return after->verdict != VERDICT_WRONG
               ? 0
               : err_set(err, ERR_INTEGRITY, "%s does not hold after the repair: %s%s",
                         r->opts->verify->folder ? r->opts->verify->folder : r->job.here->name,
                         dataset_faults_text(r->job.arena, after->n_of),
                         after->n_of[FAULT_EXTRA] && !r->opts->removes_extra
                             ? "; --remove-extra removes files that are not part of it"
                             : "");
}

static int repair(struct repairing *r, struct err *err)
{
    struct dataset_verified *before = &r->out->verified;
    struct err why = {0};
    struct err dropped = {0};
    bool is_anew = false;
    size_t n_wanted = 0;
    int result;
    if (dataset_verify(r->job.arena, r->job.store, r->job.here, r->opts->verify, before, &why) <
        0) {
        is_anew = !r->opts->verify->folder && (why.code == ERR_INTEGRITY || why.code == ERR_FETCH);
        if (!is_anew) {
            return err_pass(err, &why);
        }
        log_line(LOG_INFO, "%s", why.msg);
    } else if (before->verdict != VERDICT_WRONG) {
        result = r->opts->verify->folder ? 0 : bring_archives(r, err);
        r->out->was_whole = result == 0 && r->out->n_bad_archives == 0;
        return result;
    } else {
        n_wanted = collect_wanted(r, before);
        if (r->opts->removes_extra && remove_extra(r, before, err) < 0) {
            return -1;
        }
    }
    result = is_anew || n_wanted ? mend(r, n_wanted, is_anew, err) : 0;
    if (fs_remove_tree(r->work, &dropped) < 0) {
        log_line(LOG_WARN, "%s", dropped.msg);
    }
    return result < 0 ? -1 : verify_again(r, err);
}

int dataset_repair(const struct dataset_job *job, const struct dataset_repair_opts *opts,
                   struct dataset_repaired *repaired, struct err *err)
{
    const char *folder = opts->verify->folder;
    const int pid = (int)getpid();
    struct repairing r = {
        .job = *job,
        .opts = opts,
        .out = repaired,
        .work = folder ? arena_printf(job->arena, "%s/.reperf-repair-%d", folder, pid)
                       : store_path(job->store, arena_printf(job->arena, "tmp/repair-%s-%d",
                                                             job->here->name, pid)),
    };
    r.job.wants_tree = false;
    *repaired = (struct dataset_repaired){0};
    int result = repair(&r, err);
    map_release(&r.wanted);
    return result;
}
