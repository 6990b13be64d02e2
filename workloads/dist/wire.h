/* SPDX-License-Identifier: Apache-2.0 */
/* What ranks exchange apart from the data: two messages of fixed size. Bytes from outside are fully checked before a field is used.
   Pure: buffers in, values out. Integers are little endian, text is printable ASCII padded with NUL. */
#pragma once

#include "base/err.h"

#define WIRE_VERSION     1
#define WIRE_MAGIC_BYTES 8
#define WIRE_HELLO_BYTES 1024
#define WIRE_NOTE_BYTES  512
#define WIRE_HEX_LEN     64
#define WIRE_PROGRAM_MAX 32
#define WIRE_ADDR_MAX    64
#define WIRE_FACTS_MAX   768
#define WIRE_TEXT_MAX    456
#define WIRE_KEY_BYTES   16
#define WIRE_RANKS_MAX   1024 /* of a ring over TCP, whose rank 0 holds a connection to each */

/* The first thing a rank sends to rank 0. */
struct hello {
    uint32_t version; /* of this protocol; the fields up to `program` never move */
    int rank, n_ranks;
    int ring_port;                  /* where it listens for the rank before it */
    char program[WIRE_PROGRAM_MAX]; /* REPERF_VERSION */
    char token[WIRE_HEX_LEN + 1];   /* SHA-256 of REPERF_JOB */
    char network[WIRE_HEX_LEN + 1]; /* SHA-256 of what all ranks must agree on */
    char ring_addr[WIRE_ADDR_MAX];  /* "" : the one that rank 0 sees */
    char facts[WIRE_FACTS_MAX];     /* the same for people: "model=resnet50 batch=4 ..." */
};

enum note_kind {
    NOTE_WELCOME =
        1,        /* rank: the next one's; port and text: where its ring listens; key: the job's */
    NOTE_RING,    /* rank: who sends; number: the rank it is meant for; key: the job's */
    NOTE_BEAT,    /* number: operations begun */
    NOTE_REPORT,  /* to rank 0. rank: the one that failed; text: why */
    NOTE_VERDICT, /* from rank 0: the job is over. The same */
    NOTE_BYE,     /* all is done */
    NOTE_KIND_END
};

struct note {
    enum note_kind kind;
    int rank;
    int port;
    uint64_t number;
    uint8_t key[WIRE_KEY_BYTES];
    char text[WIRE_TEXT_MAX];
};

void hello_encode(const struct hello *hello, uint8_t *ret_bytes);
MUST_CHECK int hello_decode(const uint8_t *bytes, struct hello *ret_hello, struct err *err);

/* False as soon as the first len bytes cannot be those of a hello: a stranger's. */
bool hello_may_be(const uint8_t *bytes, size_t len);

void note_encode(const struct note *note, uint8_t *ret_bytes);
MUST_CHECK int note_decode(const uint8_t *bytes, struct note *ret_note, struct err *err);

/* What two ranks disagree about, "" if nothing: "rank 1 has batch=4, rank 0 batch=2". Versions first, then sizes, then the first
   fact that differs. ret_text has WIRE_TEXT_MAX bytes. The tokens are not looked at: another job is not a disagreement. */
void hello_compare(const struct hello *mine, const struct hello *theirs, char *ret_text);
