/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as the answer of ssh -G, as known_hosts, as a public key and as a node's output: no value is invented, and
   nothing of a script's stream is lost or added. The first byte selects which. */
#include "net/ssh_impl.h"
#include "net/ssh_known.h"
#include "net/ssh_plan.h"
#include "tests/fuzz/fuzz.h"

#define NONCE "0123456789abcdef0123456789abcdef"

static void check_answer(struct arena *arena, struct str text)
{
    struct ssh_answer answer;
    struct err err = {0};
    if (ssh_answer_read(arena, text, &answer, &err) == 0) {
        ASSERT(answer.host_name && answer.user && answer.known_files);
        ASSERT(answer.port > 0 && answer.port <= 65535);
        ASSERT(answer.n_identity_files <= SSH_IDENTITIES_MAX);
        ASSERT(answer.connect_timeout_s >= 0 && answer.alive_s >= 0 && answer.alive_count_max >= 0);
    }
}

static void check_known(struct arena *arena, struct str text)
{
    struct known_answer types = KNOWN_ANSWER_EMPTY;
    struct known_answer answer = KNOWN_ANSWER_EMPTY;
    struct str blob = str_sub(text, 0, 51);
    struct err err = {0};
    const char *name = ssh_known_name(arena, "Node1", 22);
    ASSERT(ssh_known_look(&types, "known", text, name, STR_EMPTY, &err) == 0);
    ASSERT(types.state == KNOWN_UNKNOWN || types.state == KNOWN_OTHER);
    ASSERT((types.state == KNOWN_UNKNOWN) == (types.types == 0));
    ASSERT(ssh_known_look(&answer, "known", text, name, blob, &err) == 0);
    ASSERT(answer.state == KNOWN_UNKNOWN || answer.line > 0);
}

static void check_public(struct arena *arena, struct str text)
{
    struct str blob;
    if (ssh_key_public(arena, text, &blob)) {
        ASSERT(ssh_key_name_of_blob(blob).len <= 64);
    }
}

static void collect(void *ctx, const char *ptr, size_t len)
{
    strbuf_add(ctx, ptr, len);
}

/* The bytes are the script's output, whatever is in them except the end mark, which has a nonce that they cannot
   know. */
static void check_stream(struct arena *arena UNUSED, struct str bytes)
{
    CLEANUP(strbuf) struct strbuf whole, out;
    struct ssh_stream stream;
    size_t piece = bytes.len ? (uint8_t)bytes.ptr[0] % 70 + 1u : 1;
    strbuf_init(&whole, 1u << 20);
    strbuf_init(&out, 1u << 20);
    if (bytes.len > 65536 || str_find(bytes, STR_LIT(NONCE)) >= 0) {
        return;
    }
    strbuf_add_str(&whole, bytes);
    strbuf_add_z(&whole, "BEGIN " NONCE "\n");
    strbuf_add_str(&whole, bytes);
    strbuf_add_z(&whole, "END " NONCE " 7\n");
    stream_init(&stream);
    for (size_t at = 0; at < whole.len; at += piece) {
        stream_take(&stream, NONCE, str_sub(strbuf_str(&whole), at, piece), collect, &out);
    }
    stream_finish(&stream, collect, &out);
    ASSERT(stream.has_begun && stream.has_ended && stream.exit_status == 7);
    ASSERT(str_eq(strbuf_str(&out), bytes));
    stream_release(&stream);
}

FUZZ_READERS(check_answer, check_known, check_public, check_stream, check_stream)
