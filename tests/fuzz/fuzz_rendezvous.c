/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes at the port of rank 0 or of a ring: a hello or a note is refused with a message, or written back byte for byte, and compared
   with our own without a crash; and any text as Slurm's node list. The first byte selects which of the three. Short input is padded with
   zeros, as the fields are. */
#include "tests/fuzz/fuzz.h"

#include "dist/ranks.h"
#include "dist/wire.h"

static void try_hello(const uint8_t *bytes)
{
    static const struct hello mine = {
        .version = WIRE_VERSION, .n_ranks = 4, .program = "0.1.0", .facts = "model=x batch=2"};
    struct hello hello;
    struct err err = {0};
    char text[WIRE_TEXT_MAX];
    uint8_t again[WIRE_HELLO_BYTES];
    if (hello_decode(bytes, &hello, &err) < 0) {
        ASSERT(err.code == ERR_PARSE && err.msg[0] != '\0');
        return;
    }
    ASSERT(hello_may_be(bytes, WIRE_HELLO_BYTES) && hello.rank >= 0 && hello.n_ranks >= 0);
    hello_compare(&mine, &hello, text);
    ASSERT(strlen(text) < WIRE_TEXT_MAX);
    /* A hello that is not a rank of ours is refused with a message. */
    ASSERT(text[0] != '\0' || (hello.rank < mine.n_ranks && hello.n_ranks == mine.n_ranks));
    if (hello.version == WIRE_VERSION) {
        hello_encode(&hello, again);
        ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    }
}

static void try_note(const uint8_t *bytes)
{
    struct note note;
    struct err err = {0};
    uint8_t again[WIRE_NOTE_BYTES];
    if (note_decode(bytes, &note, &err) < 0) {
        ASSERT(err.code == ERR_PARSE);
        return;
    }
    note_encode(&note, again);
    ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
}

static void try_list(const uint8_t *data, size_t size)
{
    char list[WIRE_HELLO_BYTES] = {0};
    char host[RANKS_ADDR_MAX];
    struct err err = {0};
    memcpy(list, data, size < sizeof(list) - 1 ? size : sizeof(list) - 1);
    if (ranks_first_host(list, host, &err) == 0) {
        ASSERT(host[0] != '\0' && strlen(host) < RANKS_ADDR_MAX && !strpbrk(host, " ,[]\n/"));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[WIRE_HELLO_BYTES] = {0};
    if (size == 0) {
        return 0;
    }
    memcpy(bytes, data + 1, size - 1 < sizeof(bytes) ? size - 1 : sizeof(bytes));
    switch (data[0] % 3) {
    case 0:
        try_hello(bytes);
        break;
    case 1:
        try_note(bytes);
        break;
    default:
        try_list(data + 1, size - 1);
        break;
    }
    return 0;
}
