/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/container.h"

#include "report/shell_text.h"

#define BYTES_MAX  (1LL << 53)
#define LIMITS_MIN LIMIT_UNLIMITED

/* ---- words ---- */

static bool is_printable(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        unsigned char c = (unsigned char)s.ptr[idx];
        if (c <= ' ' || c == 0x7f) {
            return false;
        }
    }
    return s.len > 0;
}

/* No character that a shell would replace. */
static bool is_literal(struct str s)
{
    return str_find(s, STR_LIT("$")) < 0 && str_find(s, STR_LIT("`")) < 0;
}

bool container_is_path(struct str s)
{
    return is_printable(s) && is_literal(s) && s.ptr[0] == '/';
}

bool container_is_device(struct str s)
{
    for (size_t idx = 0; idx < s.len; idx++) {
        if (strchr("\"\\*?[,", s.ptr[idx])) {
            return false;
        }
    }
    return container_is_path(s);
}

bool container_is_cap(struct str s)
{
    return is_identifier(s);
}

bool container_is_security(struct str s)
{
    return is_printable(s) && is_literal(s) && s.ptr[0] != '-';
}

bool container_is_env(struct str s)
{
    struct str name, value;
    for (size_t idx = 0; idx < s.len; idx++) {
        unsigned char c = (unsigned char)s.ptr[idx];
        if (c < ' ' || c == 0x7f) {
            return false;
        }
    }
    return is_literal(s) && shell_assignment(s, &name, &value);
}

bool container_is_cpuset(struct str s)
{
    bool was_digit = false;
    for (size_t idx = 0; idx < s.len; idx++) {
        bool has_digit = is_digit(s.ptr[idx]);
        if (!has_digit && (!was_digit || (s.ptr[idx] != '-' && s.ptr[idx] != ','))) {
            return false;
        }
        was_digit = has_digit;
    }
    return was_digit;
}

/* ---- as JSON ---- */

struct list {
    const char *key;
    size_t items_at, n_at; /* offsets of a struct str * and its size_t */
    bool (*is_valid)(struct str s);
    const char *what;
};

#define LIST(name, check, text)                                                                    \
    {                                                                                              \
#name, offsetof(struct container_flags, name), offsetof(struct container_flags, n_##name), \
            check, text                                                                            \
    }

static const struct list LISTS[] = {
    LIST(devices, container_is_device, "an absolute path"),
    LIST(caps, container_is_cap, "the name of a capability"),
    LIST(security, container_is_security, "a security option"),
    LIST(env, container_is_env, "NAME=VALUE"),
    LIST(not_understood, NULL, NULL),
};

static struct str **items_of(const struct container_flags *flags, const struct list *list)
{
    return (struct str **)(void *)((char *)(uintptr_t)flags + list->items_at);
}

static size_t *n_of(const struct container_flags *flags, const struct list *list)
{
    return (size_t *)(void *)((char *)(uintptr_t)flags + list->n_at);
}

void container_flags_encode(struct json_out *out, const char *key,
                            const struct container_flags *flags)
{
    jw_object(out, key);
    jw_i64(out, "shm_bytes", flags->shm_bytes);
    jw_i64(out, "memlock_bytes", flags->memlock_bytes);
    jw_i64(out, "stack_bytes", flags->stack_bytes);
    jw_i64(out, "n_files", flags->n_files);
    jw_i64(out, "n_processes", flags->n_processes);
    jw_i64(out, "memory_bytes", flags->memory_bytes);
    jw_bool(out, "is_host_net", flags->is_host_net);
    jw_bool(out, "is_host_ipc", flags->is_host_ipc);
    jw_bool(out, "is_host_pid", flags->is_host_pid);
    jw_bool(out, "is_privileged", flags->is_privileged);
    jw_bool(out, "wants_gpus", flags->wants_gpus);
    jw_str(out, "cpuset", flags->cpuset);
    jw_str(out, "workdir", flags->workdir);
    for (size_t idx = 0; idx < ARRAY_LEN(LISTS); idx++) {
        jw_array(out, LISTS[idx].key);
        for (size_t item = 0; item < *n_of(flags, &LISTS[idx]); item++) {
            jw_str(out, NULL, (*items_of(flags, &LISTS[idx]))[item]);
        }
        jw_end_array(out);
    }
    jw_end_object(out);
}

static int decode_list(const struct json *at, struct arena *arena, const struct list *list,
                       struct container_flags *flags, struct err *err)
{
    struct json member, item;
    size_t idx = 0;
    if (json_member(at, list->key, &member, err) < 0 ||
        json_str_list(&member, arena, CONTAINER_LIST_MAX, items_of(flags, list), n_of(flags, list),
                      err) < 0) {
        return -1;
    }
    if (!list->is_valid) {
        return 0;
    }
    for (bool more = json_first(&member, &item); more; more = json_next(&item)) {
        struct str word = (*items_of(flags, list))[idx++];
        if (!list->is_valid(word)) {
            return json_fail(&item, err, "expected %s, found \"%.*s\"", list->what,
                             (int)(word.len < 80 ? word.len : 80), word.ptr);
        }
    }
    return 0;
}

static int check_word(const struct json *at, const char *key, struct str word,
                      bool (*is_valid)(struct str s), struct err *err)
{
    struct json member;
    if (!word.ptr || is_valid(word)) {
        return 0;
    }
    return json_find(at, key, &member) ? json_fail(&member, err, "not a valid value: \"%.*s\"",
                                                   (int)(word.len < 80 ? word.len : 80), word.ptr)
                                       : 0;
}

#define NUMBER(key, min)                                                                           \
    {                                                                                              \
#key, JSON_I64, JSON_REQUIRED, offsetof(struct container_flags, key), min, BYTES_MAX       \
    }
#define CLAIM(key)                                                                                 \
    {                                                                                              \
#key, JSON_BOOL, JSON_REQUIRED, offsetof(struct container_flags, key), 0, 0                \
    }
#define WORD(key)                                                                                  \
    {                                                                                              \
#key, JSON_STR, JSON_REQUIRED | JSON_NULLABLE, offsetof(struct container_flags, key), 0, 0 \
    }
#define ANY(key)                                                                                   \
    {                                                                                              \
#key, JSON_ANY, JSON_REQUIRED, 0, 0, 0                                                     \
    }

int container_flags_decode(const struct json *at, struct arena *arena,
                           struct container_flags *ret_flags, struct err *err)
{
    static const struct json_field FIELDS[] = {
        NUMBER(shm_bytes, 0),
        NUMBER(memlock_bytes, LIMITS_MIN),
        NUMBER(stack_bytes, LIMITS_MIN),
        NUMBER(n_files, LIMITS_MIN),
        NUMBER(n_processes, LIMITS_MIN),
        NUMBER(memory_bytes, 0),
        CLAIM(is_host_net),
        CLAIM(is_host_ipc),
        CLAIM(is_host_pid),
        CLAIM(is_privileged),
        CLAIM(wants_gpus),
        WORD(cpuset),
        WORD(workdir),
        ANY(devices),
        ANY(caps),
        ANY(security),
        ANY(env),
        ANY(not_understood),
    };
    struct container_flags flags = {0};
    if (json_decode(at, arena, FIELDS, ARRAY_LEN(FIELDS), &flags, err) < 0 ||
        check_word(at, "cpuset", flags.cpuset, container_is_cpuset, err) < 0 ||
        check_word(at, "workdir", flags.workdir, container_is_path, err) < 0) {
        return -1;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(LISTS); idx++) {
        if (decode_list(at, arena, &LISTS[idx], &flags, err) < 0) {
            return -1;
        }
    }
    *ret_flags = flags;
    return 0;
}
