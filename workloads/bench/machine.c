/* SPDX-License-Identifier: Apache-2.0 */
/* The machine on which a bench ran, for its result. */
#include "base/base.h"

#include "bench/bench.h"

#include "base/fs.h"

#include <sys/utsname.h>
#include <unistd.h>

#define NOTE_BYTES_MAX (1 << 20)

double bench_peak_flops(const struct bench_opts *opts, const struct peak *peak)
{
    bool is_amp = strcmp(opts->precision, "amp") == 0;
    bool is_tf32 = opts->has_tf32 && peak->tf32_flops_per_s > 0.0;
    return is_amp    ? peak->half_flops_per_s
           : is_tf32 ? peak->tf32_flops_per_s
                     : peak->float_flops_per_s;
}

static void put_or_null(struct json_out *out, const char *key, struct str text)
{
    json_out_key(out, key);
    if (text.ptr) {
        json_out_text(out, text);
    } else {
        strbuf_add_z(out->buf, "null");
        out->needs_comma = true;
    }
}

/* One note: a line of names, a line of values, as `nvidia-smi --format=csv` writes them. */
static void put_note(struct json_out *out, const struct bench *bench, const char *when)
{
    struct err unsaid = {0};
    struct str text = STR_EMPTY;
    struct str names = STR_EMPTY;
    struct str values = STR_EMPTY;
    struct str name;
    struct str value;
    const char *path = arena_printf(bench->arena, "%s/environment/%s.log", bench->folder, when);
    if (fs_read(bench->arena, path, NOTE_BYTES_MAX, &text, &unsaid) < 0 ||
        !str_next(&text, '\n', &names) || !str_next(&text, '\n', &values)) {
        return;
    }
    json_out_open(out, '{');
    json_out_put_text(out, "when", when);
    while (names.ptr && values.ptr && str_next(&names, ',', &name) &&
           str_next(&values, ',', &value)) {
        json_out_put_text(out, str_z(bench->arena, str_trim(name)),
                          str_z(bench->arena, str_trim(value)));
    }
    json_out_close(out, '}');
}

void bench_put_machine(struct json_out *out, const struct bench *bench)
{
    static const char *const notes[] = {"gpu-before", "gpu-ready", "gpu-after"};
    struct utsname name;
    json_out_key(out, "machine");
    json_out_open(out, '{');
    if (uname(&name) == 0) {
        json_out_put_text(out, "kernel", name.release);
        json_out_put_text(out, "processor", name.machine);
    }
    json_out_put_i64(out, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    put_or_null(out, "gpu", bench->gpu);
    put_or_null(out, "driver", bench->driver);
    put_or_null(out, "cuda", bench->cuda);
    put_or_null(out, "libraries", bench->libraries);
    json_out_key(out, "gpu_states"); /* environment/ has them as nvidia-smi wrote them */
    json_out_open(out, '[');
    for (size_t i = 0; i < ARRAY_LEN(notes) && bench->knows_clocks; i++) {
        put_note(out, bench, notes[i]);
    }
    json_out_close(out, ']');
    json_out_close(out, '}');
}
