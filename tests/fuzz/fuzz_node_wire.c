/* SPDX-License-Identifier: Apache-2.0 */
/* The frames between reperf-node and the orchestrator: the first byte selects which end reads, or that it is a line of leftovers on a
   node. An accepted frame is written again to the same bytes, is never longer than its input, and a truncation of it asks for more. */
#include "tests/fuzz/fuzz.h"

#include "codec/node_wire.h"
#include "fleet/clean.h"

static void try_request(struct arena *arena UNUSED, struct str bytes)
{
    CLEANUP(strbuf) struct strbuf again;
    struct node_request request;
    struct err err = {0};
    size_t len = 0;
    int rc = node_request_read(arena, bytes, &request, &len, &err);
    ASSERT((rc < 0) == (err.code != ERR_NONE));
    strbuf_init(&again, NODE_FRAME_MAX);
    if (rc <= 0) {
        return;
    }
    ASSERT(len <= bytes.len);
    ASSERT(request.op >= NODE_START && request.op < NODE_OP_END);
    for (size_t idx = 0; idx < request.n_fields; idx++) {
        ASSERT(request.fields[idx].ptr[request.fields[idx].len] == '\0');
        ASSERT(strlen(request.fields[idx].ptr) == request.fields[idx].len);
    }
    node_request_write(&again, &request);
    ASSERT(!again.is_full);
    ASSERT(str_eq(strbuf_str(&again), str_sub(bytes, 0, len)));
    ASSERT(node_request_read(arena, str_sub(bytes, 0, len - 1), &request, &len, &err) == 0);
}

static void try_answer(struct arena *arena UNUSED, struct str bytes)
{
    CLEANUP(strbuf) struct strbuf again;
    struct node_answer answer;
    struct err err = {0};
    size_t len = 0;
    int rc = node_answer_read(bytes, &answer, &len, &err);
    ASSERT((rc < 0) == (err.code != ERR_NONE));
    strbuf_init(&again, NODE_FRAME_MAX);
    if (rc <= 0) {
        return;
    }
    ASSERT(len <= bytes.len);
    ASSERT(answer.status >= 0 && answer.status <= 255);
    node_answer_write(&again, &answer);
    ASSERT(!again.is_full);
    ASSERT(str_eq(strbuf_str(&again), str_sub(bytes, 0, len)));
    ASSERT(node_answer_read(str_sub(bytes, 0, len - 1), &answer, &len, &err) == 0);
}

static void try_leftover(struct arena *arena UNUSED, struct str line)
{
    struct clean_item item = {0};
    struct err err = {0};
    int rc = clean_read_line(arena, line, &item, &err);
    ASSERT((rc < 0) == (err.code == ERR_NODE));
    if (rc == 0) {
        struct str kind = str_of(CLEAN_KIND_NAMES[item.kind]);
        ASSERT(str_starts(line, kind));
        ASSERT(item.id.ptr >= line.ptr && item.id.len && item.name.len && item.state);
        ASSERT(item.name.ptr + item.name.len <= line.ptr + line.len);
    }
}

/* 0, 1 and l */
FUZZ_READERS(try_request, try_answer, try_request, try_answer, try_request, try_answer, try_request,
             try_answer, try_request, try_answer, try_leftover, try_answer, try_request, try_answer)
