/* SPDX-License-Identifier: Apache-2.0 */
/* `fetch --dry-run` of a dataset. */
#include "base/base.h"

#include "cmd/dataset_ops.h"
#include "codec/json_document.h"
#include "store/dataset_store.h"

static void put_foreseen(struct artifact_sink *sink, const struct dataset_foreseen *one)
{
    const char *from = one->is_wanted ? "person" : DATASET_ORIGINS[one->origin];
    jw_object(sink->out, NULL);
    jw_str(sink->out, "name", one->file->name);
    jw_known(sink->out, "bytes", one->bytes);
    jw_z(sink->out, "from", from);
    jw_z(sink->out, "url", one->url);
    jw_end_object(sink->out);
    strbuf_printf(sink->text, "  %-9s %s, ", from, one->file->name.ptr);
    if (one->bytes < 0) {
        strbuf_add_z(sink->text, "size not known");
    } else {
        strbuf_printf(sink->text, "%lld bytes", (long long)one->bytes);
    }
    strbuf_printf(sink->text, "%s%s\n", one->url ? " from " : "", one->url ? one->url : "");
}

int dataset_op_foresee(struct artifact_job *job, const struct artifact *artifact,
                       struct artifact_sink *sink, struct err *err)
{
    const struct dataset_fetch_opts opts = {.net = job->net};
    struct dataset_foreseen_list list;
    struct dataset_here here;
    int64_t to_get = 0;
    size_t n_open = 0;
    size_t n_to_get = 0;
    if (dataset_load(job->arena,
                     &(struct dataset_which){job->ctx->root, job->locks, artifact->name.ptr,
                                             artifact->is_synthetic},
                     &here, err) < 0 ||
        dataset_foresee(job->arena, job->store, &here, &opts, &list, err) < 0) {
        return -1;
    }
    bool has_tree = dataset_state(job->arena, job->store, &here) == DATASET_TREE;
    strbuf_printf(sink->text, "%s%s\n", here.dataset.id.ptr,
                  here.is_synthetic ? " (synthetic)" : "");
    jw_bool(sink->out, "synthetic", here.is_synthetic || here.dataset.is_synthetic);
    jw_array(sink->out, "files");
    for (size_t idx = 0; idx < list.n; idx++) {
        bool is_new = list.items[idx].origin != FROM_STORE;
        put_foreseen(sink, &list.items[idx]);
        n_to_get += is_new;
        n_open += is_new && list.items[idx].bytes < 0;
        to_get += is_new && list.items[idx].bytes > 0 ? list.items[idx].bytes : 0;
    }
    jw_end_array(sink->out);
    jw_i64(sink->out, "files_to_get", (int64_t)n_to_get);
    jw_i64(sink->out, "bytes_to_get", to_get);
    jw_i64(sink->out, "files_of_unknown_size", (int64_t)n_open);
    jw_bool(sink->out, "unpacked", has_tree);
    strbuf_printf(sink->text, "  to get: %zu of %zu files, %lld bytes", n_to_get, list.n,
                  (long long)to_get);
    if (n_open) {
        strbuf_printf(sink->text, " and %zu whose size is not known", n_open);
    }
    strbuf_printf(sink->text, "; the tree %s\n",
                  has_tree ? "is there, and would be checked" : "would be unpacked");
    return 0;
}
