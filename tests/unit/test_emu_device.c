/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA emulator itself: whether it detects faults. What it computes is held by the kernels that run on it. */
#include "unit.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emu.h"
#include "probe.h"

#define OK(call) assert_int_equal(call, cudaSuccess)

#ifdef __SANITIZE_ADDRESS__
#define HAS_ASAN 1
#else
#define HAS_ASAN 0
#endif

static float *on_device(int n)
{
    float host[1024];
    void *ptr = NULL;
    for (int i = 0; i < n; i++) {
        host[i] = (float)i;
    }
    OK(cudaMalloc(&ptr, (size_t)n * sizeof(float)));
    OK(cudaMemcpy(ptr, host, (size_t)n * sizeof(float), cudaMemcpyHostToDevice));
    return ptr;
}

static void to_host(float *host, const float *device, int n)
{
    OK(cudaMemcpy(host, device, (size_t)n * sizeof(float), cudaMemcpyDeviceToHost));
}

TEST(test_barrier)
{
    float *x = on_device(256);
    float *y = on_device(256);
    float with[256];
    int n_wrong_without = 0;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        emu_seed(seed);
        probe_reverse(x, y, true, NULL);
        to_host(with, y, 256);
        for (int i = 0; i < 256; i++) {
            assert_true(with[i] == (float)(255 - i));
        }
        probe_reverse(x, y, false, NULL);
        to_host(with, y, 256);
        for (int i = 0; i < 256; i++) {
            n_wrong_without += !(with[i] == (float)(255 - i));
        }
    }
    assert_true(n_wrong_without > 3 * 64);
    OK(cudaFree(x));
    OK(cudaFree(y));
}

/* What the child wrote on stderr before the emulator, ASan or UBSan ended it, or its own message. */
static char *dies(enum probe_fault fault, char *text, size_t text_bytes)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], 2);
        (void)signal(SIGSEGV, SIG_DFL);
        float *x = on_device(60);
        probe_faulty(fault, x, 60, 32, 32 * sizeof(float), NULL);
        cudaError_t error = cudaDeviceSynchronize();
        _exit(error == cudaSuccess ? 0 : 3);
    }
    (void)close(ends[1]);
    size_t n = 0;
    ssize_t got = 0;
    char chunk[512];
    while ((got = read(ends[0], chunk, sizeof(chunk))) > 0) {
        size_t more = (size_t)got < text_bytes - 1 - n ? (size_t)got : text_bytes - 1 - n;
        memcpy(text + n, chunk, more);
        n += more;
    }
    text[n] = '\0';
    (void)close(ends[0]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        (void)snprintf(text, text_bytes, "nothing was noticed");
    }
    return text;
}

TEST(test_faults)
{
    const struct {
        enum probe_fault fault;
        const char *message;
        bool needs_asan;
    } rows[] = {
        {PROBE_NONE, "nothing was noticed", false},
        {PROBE_PAST_END, HAS_ASAN ? "AddressSanitizer" : "wrote 0 bytes past the end", false},
        {PROBE_SHARED_PAST_END, "AddressSanitizer: heap-buffer-overflow", true},
        {PROBE_BARRIER_DIVERGES, "wait at different barriers", false},
        {PROBE_SHUFFLE_MISSES, "__shfl_sync: mask ffffffff names lane 3, which is not there",
         false},
        {PROBE_MASK_WITHOUT_SELF, "does not hold the calling lane", false},
        {PROBE_MISALIGNED, "misaligned address", true},
        {PROBE_TRAP, "__trap()", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[8192];
        if (rows[i].needs_asan && !HAS_ASAN) {
            continue;
        }
        if (strstr(dies(rows[i].fault, text, sizeof(text)), rows[i].message) == NULL &&
            !(rows[i].fault == PROBE_SHUFFLE_MISSES && strstr(text, "hangs: lane") != NULL)) {
            fail_msg("fault %d: expected \"%s\", found: %s", (int)rows[i].fault, rows[i].message,
                     text);
        }
    }
}

TEST(test_limits)
{
    float *x = on_device(60);
    float got[60];
    const struct {
        int n_threads;
        size_t shared_bytes;
        cudaError_t error;
    } rows[] = {
        {32, 128, cudaSuccess},
        {1025, 4104, cudaErrorInvalidConfiguration},
        {0, 128, cudaErrorInvalidConfiguration},
        {32, 48 * 1024, cudaSuccess},
        {32, 48 * 1024 + 4, cudaErrorInvalidConfiguration},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        probe_faulty(PROBE_NONE, x, 60, rows[i].n_threads, rows[i].shared_bytes, NULL);
        assert_int_equal(cudaGetLastError(), rows[i].error);
    }
    assert_int_equal(probe_allow_shared(228 * 1024), cudaErrorInvalidValue);
    OK(probe_allow_shared(227 * 1024));
    (void)cudaGetLastError();
    probe_faulty(PROBE_NONE, x, 60, 32, 227 * 1024, NULL);
    OK(cudaGetLastError());
    to_host(got, x, 60);
    assert_true(isnan(got[0]) && isnan(got[31])); /* shared memory was poisoned */
    assert_true(got[32] == 32.0f);
    OK(cudaFree(x));
}

TEST(test_out_of_reach)
{
    float *x = on_device(60);
    float host = 0.0f;
    assert_int_equal(cudaMemcpy(x + 59, &host, 8, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaMemcpy(&host, &host, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    assert_int_equal(cudaFree(x + 1), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(2);
        (void)signal(SIGSEGV, SIG_DFL);
        _exit(*(volatile float *)x == 0.0f ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) > 1);
    OK(cudaFree(x));
}
