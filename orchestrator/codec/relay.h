/* SPDX-License-Identifier: Apache-2.0 */
/* What the orchestrator and the relays on the nodes say to each other (fleet/stage.h), as bytes; no descriptor here.

   The order: what a node is to have, from the orchestrator by SSH on the relay's stdin. Lines:
     reperf-relay 1
     token HEX64                  secret of this staging; never in an argv, never on the wire
     part N OF                    which share of a shared folder this node reads
     item ROOT                    absolute folder; what follows is below it
     mark NAME HEX64 FOLDER       the node sees FOLDER where FOLDER/NAME holds the 64 digits (0 or 1 an item)
     file SIZE MODE HEX64 PATH    MODE x or -; PATH relative, sorted in its item
     end
   The answers: lines on the relay's stdout, "reperf-relay: WORD A B TEXT" (enum relay_word). Digests and names therefore only ever
   travel by SSH: whoever meddles with the TCP stream can break a transfer, and never make a wrong file right.

   The stream, over TCP: the server's nonce (32 bytes); the client's nonce and proof (64); the server's proof (32); then frames:
   a header of RELAY_HEADER_BYTES and a body. A proof is HMAC-SHA256(token, role, both nonces). Nothing is encrypted. */
#ifndef CODEC_RELAY_H
#define CODEC_RELAY_H

#include "base/strbuf.h"
#include "codec/digest.h"

#define RELAY_TOKEN_BYTES  32
#define RELAY_NONCE_BYTES  32
#define RELAY_PROOF_BYTES  SHA256_BYTES
#define RELAY_HEADER_BYTES 24
#define RELAY_BLOCK_BYTES  (1u << 20) /* the longest body */
#define RELAY_FILES_MAX    2000000
#define RELAY_ITEMS_MAX    256
#define RELAY_HOPS_MAX     4096
#define RELAY_ORDER_MAX    (512u << 20)
#define RELAY_LINE_MAX     8192
#define RELAY_PATH_MAX     4096
#define RELAY_MARK_HEX     64
#define RELAY_FOLDER       ".reperf-partial" /* below an item's root: what has come in part */

/* ---- the order ---- */

struct relay_file {
    const char *path;
    uint64_t size_bytes;
    uint8_t sha256[SHA256_BYTES];
    uint32_t item;
    bool is_executable;
};

struct relay_item {
    const char *root;
    const char *mark_name, *mark_hex, *mark_folder; /* all NULL: not asked */
    size_t first, n;                                /* of its files */
};

struct relay_order {
    uint8_t token[RELAY_TOKEN_BYTES];
    uint32_t part, n_parts;
    struct relay_item *items;
    size_t n_items;
    struct relay_file *files; /* item by item */
    size_t n_files;
};

/* Everything is in the arena. Strict: ERR_PARSE with the line. */
MUST_CHECK int relay_order_parse(struct arena *arena, struct str text,
                                 struct relay_order *ret_order, struct err *err);
/* Paths with a line break, or longer than RELAY_PATH_MAX, are ERR_USAGE. */
MUST_CHECK int relay_order_write(const struct relay_order *order, struct strbuf *out,
                                 struct err *err);
/* Relative, no empty part, no "." and "..", no control bytes. */
bool relay_path_is_safe(struct str path);

/* ---- the answers ---- */

enum relay_word {
    RELAY_STATE,    /* a new list of missing files begins */
    RELAY_MISSING,  /* files A to B, inclusive, are missing */
    RELAY_PARTIAL,  /* file A exists up to byte B */
    RELAY_SHARED,   /* item A is visible in place and correct */
    RELAY_READY,    /* listens at port A; B bytes existed and were correct */
    RELAY_TAKEN,    /* a stream begins */
    RELAY_DONE,     /* file A is complete and correct */
    RELAY_BAD,      /* file A had another digest, and was dropped */
    RELAY_AT,       /* alive; A bytes received */
    RELAY_LOST,     /* the connection to node A: TEXT */
    RELAY_FULL,     /* A bytes needed, B free: TEXT is where */
    RELAY_FAIL,     /* A is an err_code: TEXT; the relay ends */
    RELAY_COMPLETE, /* all is complete and correct, B bytes; the relay ends */
    RELAY_WORD_COUNT,
};

struct relay_line {
    enum relay_word word;
    uint64_t a, b;
    struct str text;
};

/* False for any other line: login shells print messages. */
bool relay_line_parse(struct str line, struct relay_line *ret_line);
void relay_line_write(const struct relay_line *line, struct strbuf *out);

/* ---- the stream ---- */

enum relay_kind {
    RELAY_CHAIN = 1, /* body: the hops after the receiver, to which it connects */
    RELAY_DATA,      /* body: bytes of a file from an offset on; in order within a file */
    RELAY_END,       /* no body: everything was sent */
};

struct relay_frame {
    enum relay_kind kind;
    uint32_t file; /* index into the order */
    uint32_t len;  /* of the body */
    uint64_t offset;
};

void relay_frame_encode(const struct relay_frame *frame, uint8_t *ret_header);
/* ERR_INTEGRITY for a header that no relay of ours sends. */
MUST_CHECK int relay_frame_decode(const uint8_t *header, struct relay_frame *ret_frame,
                                  struct err *err);

struct relay_hop {
    uint32_t node; /* the orchestrator's number for it */
    uint16_t port;
    const char *address[2]; /* tried in turn; the second may be NULL */
};

/* One line a hop: "NODE PORT ADDRESS [ADDRESS]". */
MUST_CHECK int relay_hops_parse(struct arena *arena, struct str text, struct relay_hop **ret_hops,
                                size_t *ret_n, struct err *err);
void relay_hops_write(const struct relay_hop *hops, size_t n, struct strbuf *out);

enum relay_role { RELAY_CLIENT = 'c', RELAY_SERVER = 's' };
MUST_CHECK int relay_proof(const uint8_t *token, enum relay_role role, const uint8_t *server_nonce,
                           const uint8_t *client_nonce, uint8_t *ret_proof, struct err *err);
/* In constant time. */
bool relay_proof_is(const uint8_t *proof, const uint8_t *wanted);

#endif
