/* SPDX-License-Identifier: Apache-2.0 */
/* The check inside a container, by inside.sh. */
#include "base/base.h"

#include "fleet/runtime_impl.h"

#include "base/embed.h"

EMBED(inside_sh, "orchestrator/fleet/inside.sh");

static void add_number(struct argv_words *words, const char *name, int64_t value)
{
    if (value != 0) {
        words_addf(words, "%s=%lld", name, (long long)value);
    }
}

int runtime_inside_check(struct arena *arena, const struct container_flags *flags, bool is_required,
                         const char *const *argv, const char *const **ret_argv, struct err *err)
{
    struct argv_words words;
    words_init(&words, arena);
    words_add(&words, "/bin/sh");
    words_add(&words, "-c");
    words_add(&words, embedded_body(EMBEDDED(inside_sh)).ptr);
    words_add(&words, "reperf-inside");
    if (is_required) {
        words_add(&words, "required");
    }
    add_number(&words, "shm", flags->shm_bytes);
    add_number(&words, "memlock", flags->memlock_bytes);
    add_number(&words, "stack", flags->stack_bytes);
    add_number(&words, "files", flags->n_files);
    add_number(&words, "procs", flags->n_processes);
    add_number(&words, "memory", flags->memory_bytes);
    if (flags->is_host_net) {
        words_add(&words, "net");
    }
    if (flags->wants_gpus) {
        words_add(&words, "gpus");
    }
    for (size_t idx = 0; idx < flags->n_devices; idx++) {
        /* HOST:INSIDE:RIGHTS */
        struct str rest = flags->devices[idx], host, inside;
        (void)str_next(&rest, ':', &host);
        inside = rest.ptr && rest.len && rest.ptr[0] == '/' && str_next(&rest, ':', &inside)
                     ? inside
                     : host;
        words_addf(&words, "device=%.*s", STR_ARG(inside));
    }
    words_add(&words, "--");
    words_add_all(&words, argv);
    return words_end(&words, ret_argv, err);
}
