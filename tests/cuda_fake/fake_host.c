/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "tests/cuda_fake/fake.h"

#include <limits.h>
#include <unistd.h>

#include "base/arena.h"
#include "core/half.h"
#include "emu.h"

/* The libraries beside the program, build/MODE/fake for build/MODE/emu/PROGRAM, unless others are named. */
__attribute__((constructor)) static void name_libraries(void)
{
    static const char *const NAMES[] = {"REPERF_CUDNN_DIR", "REPERF_CUBLAS_DIR"};
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[len < 0 ? 0 : len] = '\0';
    char *slash = strrchr(program, '/');
    for (size_t i = 0; i < ARRAY_LEN(NAMES) && slash; i++) {
        (void)setenv(NAMES[i],
                     arena_printf(&arena, "%.*s/../fake", (int)(slash - program), program), 0);
    }
}

void fake_enqueue(void *stream, const char *name, void (*fn)(void *), void *closure,
                  void (*drop)(void *))
{
    const struct emu_dim one = {1, 1, 1};
    emu_launch(name, name, &one, &one, 0, stream, fn, closure, drop);
}

void fake_die(const char *what)
{
    (void)fprintf(stderr, "made-up library: %s\n", what);
    abort();
}

float fake_half_to_float(uint16_t bits)
{
    return half_to_float(bits);
}

uint16_t fake_half_from_float(float value)
{
    return half_from_float(value);
}
