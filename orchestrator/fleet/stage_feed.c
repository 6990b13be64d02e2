/* SPDX-License-Identifier: Apache-2.0 */
/* The stream of a node whose relay is not reached by TCP: the same frames, by requests. */
#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fs.h"
#include "fleet/stage_impl.h"

void stage_feed_again(struct staging_node *node)
{
    strbuf_clear(&node->feed);
    fd_close(&node->feed_fd);
    node->feed_file = 0;
    node->is_fed = false;
}

static uint64_t bytes_there(const struct staging_node *node, size_t file)
{
    for (size_t at = 0; at < node->partials.n; at++) {
        if (node->partials.items[at].file == file) {
            return node->partials.items[at].bytes;
        }
    }
    return 0;
}

/* 1: there is one that it lacks, open; 0: no more; -1. */
static int next_file(struct staging *staging, struct staging_node *node, struct err *err)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    const struct relay_order *order = &staging->order;
    while (node->feed_file < order->n_files &&
           (!node->is_missing[node->feed_file] || !order->files[node->feed_file].size_bytes)) {
        node->feed_file++;
    }
    if (node->feed_fd >= 0 || node->feed_file == order->n_files) {
        return node->feed_fd >= 0;
    }
    const char *path = stage_source_path(staging, &arena, node->feed_file);
    node->feed_offset = bytes_there(node, node->feed_file);
    node->feed_fd = open(path, O_RDONLY | O_CLOEXEC);
    return node->feed_fd < 0
               ? err_set(err, err_code_of_errno(errno), "open %s: %s", path, err_errno_text(errno))
               : 1;
}

static void add_header(struct staging_node *node, const struct relay_frame *frame)
{
    uint8_t header[RELAY_HEADER_BYTES];
    relay_frame_encode(frame, header);
    strbuf_add(&node->feed, header, sizeof(header));
}

/* A frame's worth of the file that is open. */
static int add_block(struct staging *staging, struct staging_node *node, size_t room,
                     struct err *err)
{
    const struct relay_file *file = &staging->order.files[node->feed_file];
    uint64_t left = file->size_bytes - node->feed_offset;
    size_t most = room < RELAY_BLOCK_BYTES ? room : RELAY_BLOCK_BYTES;
    size_t len = left < most ? (size_t)left : most;
    char *bytes CLEANUP(free) = xmalloc(len);
    size_t have = 0;
    while (have < len) {
        ssize_t n =
            pread(node->feed_fd, bytes + have, len - have, (off_t)(node->feed_offset + have));
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_set(err, n == 0 ? ERR_INTEGRITY : ERR_IO, "%s: %s", file->path,
                           n == 0 ? "it became shorter while it was sent" : err_errno_text(errno));
        }
        have += (size_t)n;
    }
    add_header(node, &(struct relay_frame){.kind = RELAY_DATA,
                                           .file = (uint32_t)node->feed_file,
                                           .len = (uint32_t)len,
                                           .offset = node->feed_offset});
    strbuf_add(&node->feed, bytes, len);
    node->feed_offset += len;
    staging->report.head_bytes += len;
    if (node->feed_offset == file->size_bytes) {
        fd_close(&node->feed_fd);
        node->feed_file++;
    }
    return 0;
}

static int fill(struct staging *staging, struct staging_node *node, struct err *err)
{
    while (!node->is_fed) {
        size_t room = STAGE_FEED_BYTES - 1 - node->feed.len;
        int more = room <= (size_t)2 * RELAY_HEADER_BYTES ? 0 : next_file(staging, node, err);
        if (more < 0) {
            return -1;
        }
        if (more == 0 && node->feed_file == staging->order.n_files && room >= RELAY_HEADER_BYTES) {
            add_header(node, &(struct relay_frame){.kind = RELAY_END});
            node->is_fed = true;
            return 0;
        }
        if (more == 0) {
            return 0;
        }
        if (add_block(staging, node, room - RELAY_HEADER_BYTES, err) < 0) {
            return -1;
        }
    }
    return 0;
}

enum step stage_feed(struct staging *staging, struct staging_node *node, struct remote *remote,
                     struct err *err)
{
    if (!node->feed.len && fill(staging, node, err) < 0) {
        staging->fatal = *err; /* what is wrong with a file here is wrong for all */
        return STEP_FAIL;
    }
    const struct str bytes = strbuf_str(&node->feed);
    const struct remote_ask ask = {.what = "a part of a stream",
                                   .op = NODE_FEED,
                                   .fields = &bytes,
                                   .n_fields = 1,
                                   .output = &node->answer,
                                   .deadline_ns = STAGE_FEED_NS};
    enum step step = remote->ops->ask(remote, &ask, err);
    if (step != STEP_AGAIN) {
        strbuf_clear(&node->feed);
        node->is_fed = node->is_fed || node->answer.len > 0; /* the relay is over: why is heard */
        strbuf_clear(&node->answer);
    }
    return step;
}
