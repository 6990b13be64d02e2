/* SPDX-License-Identifier: Apache-2.0 */
/* pack.json: every key once, no other, each of its form. */
#include "base/base.h"

#include "data/pack.h"

#include "base/vec.h"
#include "core/json_in.h"

#define TEXT_BYTES_MAX 256
#define NAME_BYTES_MAX 64

enum field {
    F_SCHEMA_VERSION,
    F_DATASET,
    F_SYNTHETIC,
    F_KIND,
    F_SPLIT,
    F_N_SAMPLES,
    F_N_CLASSES,
    F_SOURCE_SHA256,
    F_RECIPE,
    F_SAMPLE_ORDER_SHA256,
    F_SHARDS,
    F_COUNT
};

static const char *const FIELDS[F_COUNT] = {
    "schema_version", "dataset", "synthetic",           "kind",   "split", "n_samples", "n_classes",
    "source_sha256",  "recipe",  "sample_order_sha256", "shards",
};

enum shard_field { S_NAME, S_BYTES, S_SAMPLES, S_SHA256, S_COUNT };

static const char *const SHARD_FIELDS[S_COUNT] = {"name", "bytes", "samples", "sha256"};

static const char *const KINDS[] = {
    [SHARD_CLASSES] = "classes", [SHARD_SEGMENTS] = "segments", [SHARD_TOKENS] = "tokens"};

const char *shard_kind_name(enum shard_kind kind)
{
    return KINDS[kind];
}

/* The next key of an object whose keys are known: its index, or n_names where the object has ended. */
struct known_keys {
    const char *const *names;
    int n_names;
    unsigned seen; /* bit i: names[i] */
};
static int next_key(struct json_in *in, struct arena *arena, struct known_keys *keys, int *ret_idx,
                    struct err *err)
{
    struct str key;
    bool has_more = false;
    int64_t n_seen = keys->seen != 0 ? 1 : 0;
    if (json_in_more(in, '}', &n_seen, &has_more, err) < 0) {
        return -1;
    }
    *ret_idx = keys->n_names;
    for (int i = 0; !has_more && i < keys->n_names; i++) {
        if ((keys->seen & (1U << i)) == 0) {
            return err_set(err, ERR_PARSE, "byte %zu: key %s is missing", in->at, keys->names[i]);
        }
    }
    if (!has_more) {
        return 0;
    }
    if (json_in_text(in, arena, TEXT_BYTES_MAX, &key, err) < 0 ||
        json_in_expect(in, ':', err) < 0) {
        return -1;
    }
    for (int i = 0; i < keys->n_names; i++) {
        if (!str_eq_z(key, keys->names[i])) {
            continue;
        }
        if ((keys->seen & (1U << i)) != 0) {
            return err_set(err, ERR_PARSE, "byte %zu: key %s occurs twice", in->at, keys->names[i]);
        }
        keys->seen |= 1U << i;
        *ret_idx = i;
        return 0;
    }
    return err_set(err, ERR_PARSE, "byte %zu: unknown key %.*s", in->at, STR_ARG(key));
}

/* 64 hexadecimal digits in lower case. */
static int read_digest(struct json_in *in, struct arena *arena, char *ret_hex, struct err *err)
{
    struct str text;
    if (json_in_text(in, arena, TEXT_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    if (text.len != SHA256_HEX_LEN || strspn(text.ptr, "0123456789abcdef") != SHA256_HEX_LEN) {
        return err_set(err, ERR_PARSE, "byte %zu: expected 64 hexadecimal digits", in->at);
    }
    memcpy(ret_hex, text.ptr, SHA256_HEX_LEN + 1);
    return 0;
}

/* Names go into metric lines and paths. */
static int read_name(struct json_in *in, struct arena *arena, const char **ret_name,
                     struct err *err)
{
    struct str text;
    if (json_in_text(in, arena, NAME_BYTES_MAX, &text, err) < 0) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
        text.len = is_plain ? text.len : 0;
    }
    if (text.len == 0) {
        return err_set(err, ERR_PARSE,
                       "byte %zu: expected a name of letters, digits, dots, dashes and underscores",
                       in->at);
    }
    *ret_name = text.ptr;
    return 0;
}

static int read_shard(struct json_in *in, struct arena *arena, int64_t idx,
                      struct pack_shard *shard, struct err *err)
{
    char expected[16];
    struct known_keys keys = {.names = SHARD_FIELDS, .n_names = S_COUNT};
    int field = 0;
    snprintf(expected, sizeof(expected), SHARD_NAME, (unsigned)idx);
    if (json_in_expect(in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        int result = -1;
        if (next_key(in, arena, &keys, &field, err) < 0) {
            return -1;
        }
        switch ((enum shard_field)field) {
        case S_NAME:
            result = read_name(in, arena, &shard->name, err);
            break;
        case S_BYTES:
            result = json_in_whole(in, INT64_MAX, &shard->bytes, err);
            break;
        case S_SAMPLES:
            result = json_in_whole(in, UINT32_MAX, &shard->n_samples, err);
            break;
        case S_SHA256:
            result = read_digest(in, arena, shard->sha256, err);
            break;
        case S_COUNT:
            return strcmp(shard->name, expected) == 0
                       ? 0
                       : err_set(err, ERR_PARSE, "byte %zu: shard %" PRId64 " is %s, expected %s",
                                 in->at, idx, shard->name, expected);
        }
        if (result < 0) {
            return -1;
        }
    }
}

static int read_shards(struct json_in *in, struct pack *pack, struct err *err)
{
    struct {
        struct pack_shard *items;
        size_t n;
        size_t n_max;
    } found = {0};
    int64_t n_seen = 0;
    bool has_more = false;
    int result = json_in_expect(in, '[', err);
    while (result == 0 && (result = json_in_more(in, ']', &n_seen, &has_more, err)) == 0) {
        struct pack_shard shard = {.fd = -1};
        if (!has_more) {
            break;
        }
        if (n_seen > PACK_SHARDS_MAX) {
            result = err_set(err, ERR_PARSE, "more than %d shards", PACK_SHARDS_MAX);
        } else if ((result = read_shard(in, &pack->arena, n_seen - 1, &shard, err)) == 0) {
            VEC_PUSH(&found, shard);
        }
    }
    arena_adopt(&pack->arena, found.items);
    if (result == 0) {
        pack->shards = found.items;
        pack->n_shards = (int64_t)found.n;
    }
    return result;
}

static int read_kind(struct json_in *in, struct pack *pack, struct err *err)
{
    const char *name = NULL;
    if (read_name(in, &pack->arena, &name, err) < 0) {
        return -1;
    }
    for (unsigned kind = SHARD_CLASSES; kind <= SHARD_TOKENS; kind++) {
        if (strcmp(name, KINDS[kind]) == 0) {
            pack->kind = (enum shard_kind)kind;
            return 0;
        }
    }
    return err_set(err, ERR_PARSE, "byte %zu: kind %s, expected classes, segments or tokens",
                   in->at, name);
}

/* recipe may be any value: it is for people and for reperf-pack. */
static int read_field(struct json_in *in, struct pack *pack, enum field field, struct err *err)
{
    int64_t version = 0;
    char ignored[SHA256_HEX_LEN + 1];
    switch (field) {
    case F_SCHEMA_VERSION:
        if (json_in_whole(in, INT32_MAX, &version, err) < 0) {
            return -1;
        }
        return version == 1
                   ? 0
                   : err_set(err, ERR_PARSE, "schema_version %" PRId64 ", expected 1", version);
    case F_DATASET:
        return read_name(in, &pack->arena, &pack->dataset, err);
    case F_SYNTHETIC:
        return json_in_bool(in, &pack->is_synthetic, err);
    case F_KIND:
        return read_kind(in, pack, err);
    case F_SPLIT:
        return read_name(in, &pack->arena, &pack->split, err);
    case F_N_SAMPLES:
        return json_in_whole(in, PACK_SAMPLES_MAX, &pack->n_samples, err);
    case F_N_CLASSES:
        return json_in_null(in) ? 0 : json_in_whole(in, PACK_CLASSES_MAX, &pack->n_classes, err);
    case F_SOURCE_SHA256:
        return json_in_null(in) ? 0 : read_digest(in, &pack->arena, pack->source_sha256, err);
    case F_RECIPE:
        return json_in_skip(in, &pack->arena, err);
    case F_SAMPLE_ORDER_SHA256:
        return read_digest(in, &pack->arena, ignored, err);
    case F_SHARDS:
        return read_shards(in, pack, err);
    case F_COUNT:
        break;
    }
    ASSERT(field < F_COUNT);
    return -1;
}

/* Checks the keys against each other. */
static int check_counts(struct pack *pack, struct err *err)
{
    int64_t n_samples = 0;
    for (int64_t i = 0; i < pack->n_shards; i++) {
        pack->shards[i].first_sample = n_samples;
        n_samples += pack->shards[i].n_samples; /* at most 1e5 times 2^32 */
    }
    if (n_samples != pack->n_samples || n_samples == 0) {
        return err_set(err, ERR_PARSE,
                       "n_samples is %" PRId64 ", the shards have %" PRId64
                       "; expected the same and more than 0",
                       pack->n_samples, n_samples);
    }
    int64_t max = pack->kind == SHARD_CLASSES    ? PACK_CLASSES_MAX
                  : pack->kind == SHARD_SEGMENTS ? PACK_IGNORED
                                                 : 0;
    int64_t min = pack->kind == SHARD_TOKENS ? 0 : 1;
    if (pack->n_classes < min || pack->n_classes > max) {
        return err_set(err, ERR_PARSE,
                       "n_classes is %" PRId64 ", expected %" PRId64 " to %" PRId64
                       " (null for tokens)",
                       pack->n_classes, min, max);
    }
    return 0;
}

int pack_parse(struct pack *pack, struct str text, struct err *err)
{
    struct json_in in = {.text = text};
    struct known_keys keys = {.names = FIELDS, .n_names = F_COUNT};
    if (json_in_expect(&in, '{', err) < 0) {
        return -1;
    }
    for (;;) {
        int field = 0;
        if (next_key(&in, &pack->arena, &keys, &field, err) < 0) {
            return -1;
        }
        if (field == F_COUNT) {
            return json_in_end(&in, err) < 0 ? -1 : check_counts(pack, err);
        }
        if (read_field(&in, pack, (enum field)field, err) < 0) {
            return err_wrap(err, "%s", FIELDS[field]);
        }
    }
}
