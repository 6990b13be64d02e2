/* SPDX-License-Identifier: Apache-2.0 */
/* Plain copies by SSH, file by file, for a node that no relay serves. Checked by the node's own SHA-256 tool. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "fleet/relay_server.h"
#include "fleet/stage_impl.h"

#define RATE_MIN_BYTES_PER_S 1000000 /* slower than this a copy is given up */
#define OUTPUT_MAX           4096
#define STATUS_ABSENT        98 /* not there, or another one */
#define STATUS_NO_HASHER     96

/* $1 file, $2 digest, $3 mode, $4 "look" or "take", $5 what a relay may have left of it. */
static const char SCRIPT[] =
    "sum() {\n"
    "  for tool in sha256sum 'busybox sha256sum' 'openssl dgst -r -sha256' 'shasum -a 256'; do\n"
    "    line=$($tool <\"$1\" 2>/dev/null) && hex=${line%% *} && [ ${#hex} -eq 64 ] || continue\n"
    "    echo \"$hex\"; return\n"
    "  done\n"
    "}\n"
    "[ -n \"$(sum /dev/null)\" ] || exit 96\n"
    "if [ \"$4\" = look ]; then\n"
    "  [ -f \"$1\" ] && [ \"$(sum \"$1\")\" = \"$2\" ] || exit 98\n"
    "  chmod \"$3\" \"$1\" && exit 0\n"
    "  exit 98\n"
    "fi\n"
    "part=$1.reperf.$$\n"
    "mkdir -p \"${1%/*}\" && cat >\"$part\" && chmod \"$3\" \"$part\" || { rm -f \"$part\"; exit "
    "1; }\n"
    "have=$(sum \"$part\")\n"
    "if [ \"$have\" = \"$2\" ] && mv -f \"$part\" \"$1\"; then\n"
    "  rm -f \"$5\"; rmdir \"${5%/*}\" 2>/dev/null; exit 0\n"
    "fi\n"
    "rm -f \"$part\"\n"
    "echo \"what arrived has SHA-256 $have\"; exit 97\n";

static int open_source(struct staging *staging, struct staging_node *node, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const char *path = stage_source_path(staging, &arena, node->copy_at);
    node->input_fd = open(path, O_RDONLY | O_CLOEXEC);
    return node->input_fd < 0
               ? err_set(err, err_code_of_errno(errno), "open %s: %s", path, err_errno_text(errno))
               : 0;
}

/* What an ended script means; STEP_DONE: on to the next file. */
static enum step judge(struct staging *staging, struct staging_node *node, int status,
                       struct str output, struct err *err)
{
    const struct relay_file *file = &staging->order.files[node->copy_at];
    bool was_sent = node->copy_sends;
    fd_close(&node->input_fd);
    if (status == 0) {
        node->copy_sends = false;
        if (was_sent) {
            node->report->bytes_sent += file->size_bytes;
            staging->report.head_bytes += file->size_bytes;
            node->report->way = STAGE_SSH;
        } else {
            node->report->bytes_there += file->size_bytes;
        }
        return STEP_DONE;
    }
    if (status == STATUS_ABSENT && !was_sent) {
        node->copy_sends = true;
        return open_source(staging, node, err) < 0 ? STEP_FAIL : STEP_AGAIN;
    }
    if (status == STATUS_NO_HASHER) {
        return step_fail(err_set(err, ERR_NODE,
                                 "it has nothing that computes SHA-256: nothing could be checked"));
    }
    return step_fail(err_set(err, status == 97 ? ERR_INTEGRITY : ERR_NODE, "copy of %s: %.*s",
                             file->path, STR_ARG(str_trim(output))));
}

static enum step copy_file(struct staging *staging, struct staging_node *node,
                           struct remote *remote, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct relay_file *file = &staging->order.files[node->copy_at];
    char hex[SHA256_HEX_SIZE];
    hex_encode(file->sha256, SHA256_BYTES, hex);
    const char *partial =
        arena_printf(&arena, "%s/" RELAY_FOLDER "/%s",
                     stage_item_root(staging, &arena, node->work, file->item), hex);
    const char *const args[] = {stage_target_path(staging, &arena, node, node->copy_at),
                                hex,
                                file->is_executable ? "755" : "644",
                                node->copy_sends ? "take" : "look",
                                partial,
                                NULL};
    struct remote_exec exec = {.script = SCRIPT,
                               .args = args,
                               .has_input_fd = node->copy_sends,
                               .input_fd = node->input_fd,
                               .output = &node->line,
                               .is_repeatable = true};
    int status = -1;
    enum step step;
    exec.deadline_ns =
        REMOTE_EXEC_DEADLINE_NS + (int64_t)(file->size_bytes / RATE_MIN_BYTES_PER_S) * NS_PER_S;
    step = remote->ops->exec(remote, &exec, &status, err);
    if (step == STEP_DONE) {
        step = judge(staging, node, status, strbuf_str(&node->line), err);
        strbuf_clear(&node->line);
    } else if (step == STEP_FAIL) {
        fd_close(&node->input_fd);
    }
    return step;
}

enum step stage_copy(struct staging *staging, struct staging_node *node, struct remote *remote,
                     struct err *err)
{
    for (; node->copy_at < staging->order.n_files; node->copy_at++) {
        bool was_sending = node->copy_sends;
        enum step step;
        if (!node->is_missing[node->copy_at]) {
            continue;
        }
        step = copy_file(staging, node, remote, err);
        if (step == STEP_AGAIN && node->copy_sends != was_sending) {
            step = copy_file(staging, node, remote, err); /* it was not there: sent at once */
        }
        if (step != STEP_DONE) {
            return step;
        }
    }
    return STEP_DONE;
}
