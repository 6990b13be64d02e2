/* SPDX-License-Identifier: Apache-2.0 */
/* What the orchestrator and the relays on the nodes say to each other (fleet/stage.h), as bytes; no descriptor here.

   The order is what a node is to have. The orchestrator writes it to the relay's stdin, by SSH: a line "reperf-relay 3 BYTES",
   and BYTES bytes of fields, each ended by a NUL:
     TOKEN                        64 digits, secret of this staging; never in an argv
     PART PARTS                   which share of a shared folder this node reads
     ITEMS FILES                  how many there are; then each item, followed by its files:
     ROOT MARK N                  below the absolute ROOT come N files; a node that sees the file MARK has them beside it; "":
                                  it is not asked
     SIZE MODE HEX PATH           a file; MODE x or -; PATH relative, sorted in its item
   Once the relay is ready, a line says where its stream comes from:
     next PORT ADDRESS [ADDRESS]  from a peer, and it is passed on to that relay
     last                         from a peer
     stream                       the stream follows on stdin, also where a peer was announced and has not come
   The relay answers by lines on its stdout, "WORD A B TEXT" (enum relay_word).

   A connection between two relays begins with the token. The stream is, for each file that one of its readers lacks, the file's
   number in the order (64 bits, little-endian) and its bytes, as many as the order says; then RELAY_END. Digests and names only
   ever travel by SSH: whoever meddles with the TCP stream can break a transfer, and never make a wrong file right. Contents are
   not secret: nothing is encrypted but what goes by SSH. */
#pragma once

#include "base/strbuf.h"
#include "codec/digest.h"

#define RELAY_TOKEN_BYTES 32
#define RELAY_FILES_MAX   2000000
#define RELAY_ITEMS_MAX   256
#define RELAY_NODES_MAX   4096
#define RELAY_ORDER_MAX   (512u << 20)
#define RELAY_LINE_MAX    8192
#define RELAY_PATH_MAX    4096
#define RELAY_HEAD_BYTES  8 /* before each file of the stream */
#define RELAY_END         UINT64_MAX

struct relay_file {
    const char *path;
    uint64_t size_bytes;
    uint8_t sha256[SHA256_BYTES];
    uint32_t item;
    bool is_executable;
};

struct relay_item {
    const char *root;
    const char *mark; /* "": not asked */
    size_t first, n;  /* of its files */
};

struct relay_order {
    uint8_t token[RELAY_TOKEN_BYTES];
    uint64_t part, n_parts;
    struct relay_item *items;
    size_t n_items;
    struct relay_file *files; /* item by item */
    size_t n_files;
};

/* The first line with its line break; false: not one. */
bool relay_order_head(struct str line, uint64_t *ret_bytes);
/* What follows the first line. Strings are borrowed from text, the rest is in the arena. Strict: ERR_PARSE with the field. */
MUST_CHECK int relay_order_parse(struct arena *arena, struct str text,
                                 struct relay_order *ret_order, struct err *err);
/* With the first line. Paths with a control character, or longer than RELAY_PATH_MAX, are ERR_USAGE. */
MUST_CHECK int relay_order_write(const struct relay_order *order, struct strbuf *out,
                                 struct err *err);

enum relay_word {
    RELAY_MISSING,  /* files A to B, inclusive, are missing */
    RELAY_SHARED,   /* item A is visible in place and correct */
    RELAY_READY,    /* all of that was said; listens at port A; B bytes existed and were correct */
    RELAY_TAKEN,    /* a stream begins */
    RELAY_AT,       /* alive; A bytes received */
    RELAY_LOST,     /* the connection to the next relay: TEXT */
    RELAY_FAIL,     /* A is an err_code: TEXT; the relay ends */
    RELAY_COMPLETE, /* all is complete and correct, B bytes existed before; the relay ends */
    RELAY_WORD_COUNT,
};

struct relay_line {
    enum relay_word word;
    uint64_t a, b;
    struct str text;
};

/* False for anything else. */
bool relay_line_parse(struct str line, struct relay_line *ret_line);
void relay_line_write(const struct relay_line *line, struct strbuf *out);
