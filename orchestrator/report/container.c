/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "report/container.h"

#include "codec/json_table.h"
#include "report/shell_text.h"

#define BYTES_MAX (1LL << 53)

bool container_is_path(struct str s)
{
    bool is_plain = s.len > 0 && s.ptr[0] == '/' && str_cspan(s, 0, "$`\x7f") == s.len;
    for (size_t idx = 0; is_plain && idx < s.len; idx++) {
        is_plain = (unsigned char)s.ptr[idx] > ' ';
    }
    return is_plain;
}

/* ---- as JSON ---- */

#define FLAGS struct container_flags
static const struct json_form DEVICE = {.pattern = CONTAINER_DEVICE, .what = "an absolute path"};
static const struct json_form CAP = {.pattern = CONTAINER_CAP, .what = "the name of a capability"};
static const struct json_form SECURITY = {.pattern = CONTAINER_SECURITY,
                                          .what = "a security option"};
static const struct json_form ENV = {.pattern = CONTAINER_ENV, .what = "NAME=VALUE"};
static const struct json_form CPUSET = {.pattern = CONTAINER_CPUSET, .what = "a list of CPUs"};
static const struct json_form FOLDER = {.pattern = CONTAINER_PATH, .what = "an absolute path"};
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
