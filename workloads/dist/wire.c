/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/wire.h"

#include "base/str.h"

static const uint8_t HELLO_MAGIC[WIRE_MAGIC_BYTES] = {'R', 'P', 'R', 'F', 'J', 'O', 'B', '\n'};
static const uint8_t NOTE_MAGIC[WIRE_MAGIC_BYTES] = {'R', 'P', 'R', 'F', 'N', 'O', 'T', '\n'};

/* Offsets of a hello. What stands before AT_PROGRAM + WIRE_PROGRAM_MAX is the same in all versions. */
enum {
    AT_VERSION = 8,
    AT_RANK = 12,
    AT_N_RANKS = 16,
    AT_RING_PORT = 20,
    AT_ZERO = 24,
    AT_PROGRAM = 32,
    AT_TOKEN = 64,
    AT_NETWORK = 128,
    AT_ADDR = 192,
    AT_FACTS = 256,
};
_Static_assert(AT_PROGRAM + WIRE_PROGRAM_MAX == AT_TOKEN, "program fits");
_Static_assert(AT_ADDR + WIRE_ADDR_MAX == AT_FACTS, "address fits");
_Static_assert(AT_FACTS + WIRE_FACTS_MAX == WIRE_HELLO_BYTES, "facts fit");

/* Offsets of a note. */
enum {
    AT_KIND = 8,
    AT_NOTE_RANK = 12,
    AT_PORT = 16,
    AT_NOTE_ZERO = 20,
    AT_NUMBER = 24,
    AT_KEY = 32,
    AT_TEXT = 48
};
#define NOTE_TAIL (WIRE_NOTE_BYTES - AT_TEXT - WIRE_TEXT_MAX)
_Static_assert(NOTE_TAIL == 8, "the last bytes of a note are its end mark");
static const uint8_t NOTE_END[NOTE_TAIL] = {'R', 'P', 'R', 'F', 'E', 'N', 'D', '\n'};

static void put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint32_t get_u32(const uint8_t *from)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value |= (uint32_t)from[i] << (8 * i);
    }
    return value;
}

static uint64_t get_u64(const uint8_t *from)
{
    return (uint64_t)get_u32(from) | (uint64_t)get_u32(from + 4) << 32;
}

/* The buffer is zero: what is left stays so. */
static void put_text(uint8_t *to, size_t size, const char *text)
{
    size_t len = strlen(text);
    ASSERT(len < size);
    memcpy(to, text, len + 1);
}

static int get_text(const uint8_t *from, size_t size, char *ret_text, const char *what,
                    struct err *err)
{
    size_t len = 0;
    for (; len < size && from[len] != 0; len++) {
        if (from[len] < ' ' || from[len] > '~') {
            return err_set(err, ERR_PARSE, "%s: byte %zu is not printable", what, len);
        }
    }
    if (len == size) {
        return err_set(err, ERR_PARSE, "%s: no end within %zu bytes", what, size);
    }
    for (size_t i = len; i < size; i++) {
        if (from[i] != 0) {
            return err_set(err, ERR_PARSE, "%s: byte %zu after its end is not 0", what, i);
        }
    }
    memcpy(ret_text, from, size);
    return 0;
}

static int get_hex(const uint8_t *from, char *ret_hex, const char *what, struct err *err)
{
    for (size_t i = 0; i < WIRE_HEX_LEN; i++) {
        bool is_hex = (from[i] >= '0' && from[i] <= '9') || (from[i] >= 'a' && from[i] <= 'f');
        if (!is_hex) {
            return err_set(err, ERR_PARSE, "%s: byte %zu is no lower-case hex digit", what, i);
        }
    }
    memcpy(ret_hex, from, WIRE_HEX_LEN);
    ret_hex[WIRE_HEX_LEN] = '\0';
    return 0;
}

static int get_int(const uint8_t *from, int64_t max, int *ret_value, const char *what,
                   struct err *err)
{
    uint32_t value = get_u32(from);
    if (value > max) {
        return err_set(err, ERR_PARSE, "%s %" PRIu32 ", expected at most %" PRId64, what, value,
                       max);
    }
    *ret_value = (int)value;
    return 0;
}

/* ---- hello ---- */

void hello_encode(const struct hello *hello, uint8_t *ret_bytes)
{
    memset(ret_bytes, 0, WIRE_HELLO_BYTES);
    memcpy(ret_bytes, HELLO_MAGIC, WIRE_MAGIC_BYTES);
    put_u32(ret_bytes + AT_VERSION, hello->version);
    put_u32(ret_bytes + AT_RANK, (uint32_t)hello->rank);
    put_u32(ret_bytes + AT_N_RANKS, (uint32_t)hello->n_ranks);
    put_u32(ret_bytes + AT_RING_PORT, (uint32_t)hello->ring_port);
    put_text(ret_bytes + AT_PROGRAM, WIRE_PROGRAM_MAX, hello->program);
    memcpy(ret_bytes + AT_TOKEN, hello->token, WIRE_HEX_LEN);
    memcpy(ret_bytes + AT_NETWORK, hello->network, WIRE_HEX_LEN);
    put_text(ret_bytes + AT_ADDR, WIRE_ADDR_MAX, hello->ring_addr);
    put_text(ret_bytes + AT_FACTS, WIRE_FACTS_MAX, hello->facts);
}

bool hello_may_be(const uint8_t *bytes, size_t len)
{
    return memcmp(bytes, HELLO_MAGIC, len < WIRE_MAGIC_BYTES ? len : WIRE_MAGIC_BYTES) == 0;
}

int hello_decode(const uint8_t *bytes, struct hello *ret_hello, struct err *err)
{
    struct hello hello = {0};
    if (!hello_may_be(bytes, WIRE_HELLO_BYTES)) {
        return err_set(err, ERR_PARSE, "magic bytes: not a rank's");
    }
    hello.version = get_u32(bytes + AT_VERSION);
    if (get_int(bytes + AT_RANK, INT32_MAX, &hello.rank, "rank", err) < 0 ||
        get_int(bytes + AT_N_RANKS, INT32_MAX, &hello.n_ranks, "world size", err) < 0 ||
        get_text(bytes + AT_PROGRAM, WIRE_PROGRAM_MAX, hello.program, "program", err) < 0) {
        return -1;
    }
    /* Of another version only what never moves is read: enough for the message. */
    if (hello.version == WIRE_VERSION) {
        if (get_u32(bytes + AT_ZERO) != 0 || get_u32(bytes + AT_ZERO + 4) != 0) {
            return err_set(err, ERR_PARSE, "bytes %d to %d: expected 0", AT_ZERO, AT_PROGRAM - 1);
        }
        if (get_int(bytes + AT_RING_PORT, UINT16_MAX, &hello.ring_port, "port", err) < 0 ||
            get_hex(bytes + AT_TOKEN, hello.token, "token", err) < 0 ||
            get_hex(bytes + AT_NETWORK, hello.network, "network", err) < 0 ||
            get_text(bytes + AT_ADDR, WIRE_ADDR_MAX, hello.ring_addr, "address", err) < 0 ||
            get_text(bytes + AT_FACTS, WIRE_FACTS_MAX, hello.facts, "facts", err) < 0) {
            return -1;
        }
    }
    *ret_hello = hello;
    return 0;
}

/* The first word of the facts that differs, of both; false if all are equal. */
static bool first_difference(const char *a, const char *b, struct str *ret_a, struct str *ret_b)
{
    struct str rest_a = str_of(a);
    struct str rest_b = str_of(b);
    for (;;) {
        bool has_a = str_next(&rest_a, ' ', ret_a);
        bool has_b = str_next(&rest_b, ' ', ret_b);
        *ret_a = has_a ? *ret_a : STR_LIT("nothing more");
        *ret_b = has_b ? *ret_b : STR_LIT("nothing more");
        if (has_a != has_b || !str_eq(*ret_a, *ret_b)) {
            return true;
        }
        if (!has_a) {
            return false;
        }
    }
}

void hello_compare(const struct hello *mine, const struct hello *theirs, char *ret_text)
{
    struct str a;
    struct str b;
    ret_text[0] = '\0';
    if (theirs->version != mine->version) {
        snprintf(ret_text, WIRE_TEXT_MAX,
                 "rank %d speaks version %" PRIu32 " of the rendezvous (reperf-train %s), rank %d "
                 "version %" PRIu32 " (%s)",
                 theirs->rank, theirs->version, theirs->program, mine->rank, mine->version,
                 mine->program);
    } else if (strcmp(theirs->program, mine->program) != 0) {
        snprintf(ret_text, WIRE_TEXT_MAX, "rank %d is reperf-train %s, rank %d %s", theirs->rank,
                 theirs->program, mine->rank, mine->program);
    } else if (theirs->n_ranks != mine->n_ranks) {
        snprintf(ret_text, WIRE_TEXT_MAX, "rank %d has a world size of %d, rank %d one of %d",
                 theirs->rank, theirs->n_ranks, mine->rank, mine->n_ranks);
    } else if (theirs->rank >= mine->n_ranks) {
        snprintf(ret_text, WIRE_TEXT_MAX, "rank %d came to a job of %d ranks", theirs->rank,
                 mine->n_ranks);
    } else if (first_difference(theirs->facts, mine->facts, &a, &b)) {
        snprintf(ret_text, WIRE_TEXT_MAX, "rank %d has %.*s, rank %d %.*s", theirs->rank,
                 (int)(a.len < 160 ? a.len : 160), a.ptr, mine->rank,
                 (int)(b.len < 160 ? b.len : 160), b.ptr);
    } else if (strcmp(theirs->network, mine->network) != 0) {
        snprintf(ret_text, WIRE_TEXT_MAX,
                 "rank %d has another network (digest %.12s) than rank %d (%.12s)", theirs->rank,
                 theirs->network, mine->rank, mine->network);
    }
}

/* ---- note ---- */

void note_encode(const struct note *note, uint8_t *ret_bytes)
{
    memset(ret_bytes, 0, WIRE_NOTE_BYTES);
    memcpy(ret_bytes, NOTE_MAGIC, WIRE_MAGIC_BYTES);
    put_u32(ret_bytes + AT_KIND, (uint32_t)note->kind);
    put_u32(ret_bytes + AT_NOTE_RANK, (uint32_t)note->rank);
    put_u32(ret_bytes + AT_PORT, (uint32_t)note->port);
    put_u32(ret_bytes + AT_NUMBER, (uint32_t)note->number);
    put_u32(ret_bytes + AT_NUMBER + 4, (uint32_t)(note->number >> 32));
    memcpy(ret_bytes + AT_KEY, note->key, WIRE_KEY_BYTES);
    put_text(ret_bytes + AT_TEXT, WIRE_TEXT_MAX, note->text);
    memcpy(ret_bytes + WIRE_NOTE_BYTES - NOTE_TAIL, NOTE_END, NOTE_TAIL);
}

int note_decode(const uint8_t *bytes, struct note *ret_note, struct err *err)
{
    struct note note = {0};
    uint32_t kind = get_u32(bytes + AT_KIND);
    if (memcmp(bytes, NOTE_MAGIC, WIRE_MAGIC_BYTES) != 0 ||
        memcmp(bytes + WIRE_NOTE_BYTES - NOTE_TAIL, NOTE_END, NOTE_TAIL) != 0) {
        return err_set(err, ERR_PARSE, "magic bytes: not a rank's");
    }
    if (kind < NOTE_WELCOME || kind >= NOTE_KIND_END || get_u32(bytes + AT_NOTE_ZERO) != 0) {
        return err_set(err, ERR_PARSE, "note of unknown kind %" PRIu32, kind);
    }
    note.kind = (enum note_kind)kind;
    note.number = get_u64(bytes + AT_NUMBER);
    memcpy(note.key, bytes + AT_KEY, WIRE_KEY_BYTES);
    if (get_int(bytes + AT_NOTE_RANK, WIRE_RANKS_MAX - 1, &note.rank, "rank", err) < 0 ||
        get_int(bytes + AT_PORT, UINT16_MAX, &note.port, "port", err) < 0 ||
        get_text(bytes + AT_TEXT, WIRE_TEXT_MAX, note.text, "text", err) < 0) {
        return -1;
    }
    *ret_note = note;
    return 0;
}
