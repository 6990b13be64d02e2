/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/container.h"

#include "codec/json_table.h"
#include "report/shell_text.h"

#define BYTES_MAX (1LL << 53)

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

#define FLAGS struct container_flags
static const struct json_form DEVICE = {.is_valid = container_is_device,
                                        .what = "an absolute path"};
static const struct json_form CAP = {.is_valid = container_is_cap,
                                     .what = "the name of a capability"};
static const struct json_form SECURITY = {.is_valid = container_is_security,
                                          .what = "a security option"};
static const struct json_form ENV = {.is_valid = container_is_env, .what = "NAME=VALUE"};
static const struct json_form CPUSET = {.is_valid = container_is_cpuset, .what = "a list of CPUs"};
static const struct json_form FOLDER = {
    .is_valid = container_is_path, .what = "an absolute path", .pattern = "^/"};
const struct json_field CONTAINER_FLAGS_ROWS[CONTAINER_FLAGS_N] = {
    ROW("shm_bytes", FLAGS, shm_bytes, JSON_REQUIRED),
    ROW("memlock_bytes", FLAGS, memlock_bytes, JSON_REQUIRED, .min = LIMIT_UNLIMITED,
        .max = BYTES_MAX),
    ROW("stack_bytes", FLAGS, stack_bytes, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("n_files", FLAGS, n_files, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("n_processes", FLAGS, n_processes, JSON_REQUIRED, .min = LIMIT_UNLIMITED, .max = BYTES_MAX),
    ROW("memory_bytes", FLAGS, memory_bytes, JSON_REQUIRED),
    ROW("is_host_net", FLAGS, is_host_net, JSON_REQUIRED),
    ROW("is_host_ipc", FLAGS, is_host_ipc, JSON_REQUIRED),
    ROW("is_host_pid", FLAGS, is_host_pid, JSON_REQUIRED),
    ROW("is_privileged", FLAGS, is_privileged, JSON_REQUIRED),
    ROW("wants_gpus", FLAGS, wants_gpus, JSON_REQUIRED),
    ROW("cpuset", FLAGS, cpuset, JSON_REQUIRED | JSON_NULLABLE, .form = &CPUSET),
    ROW("workdir", FLAGS, workdir, JSON_REQUIRED | JSON_NULLABLE, .form = &FOLDER),
    ROW_STRS("devices", FLAGS, devices, n_devices, JSON_REQUIRED, .max = CONTAINER_LIST_MAX,
             .form = &DEVICE),
    ROW_STRS("caps", FLAGS, caps, n_caps, JSON_REQUIRED, .max = CONTAINER_LIST_MAX, .form = &CAP),
    ROW_STRS("security", FLAGS, security, n_security, JSON_REQUIRED, .max = CONTAINER_LIST_MAX,
             .form = &SECURITY),
    ROW_STRS("env", FLAGS, env, n_env, JSON_REQUIRED, .max = CONTAINER_LIST_MAX, .form = &ENV),
    ROW_STRS("not_understood", FLAGS, not_understood, n_not_understood, JSON_REQUIRED,
             .max = CONTAINER_LIST_MAX),
};
