/* SPDX-License-Identifier: Apache-2.0 */
/* Memory bandwidth: a[i] = b[i] + s c[i] over arrays of double that are larger than the caches, 24 bytes per element. Source
   of the kernel, the counting and of "each array at least four times the last-level caches": J. D. McCalpin, STREAM,
   https://www.cs.virginia.edu/stream/ref.html, "General rules". */
#include "base/base.h"

#include "node/gauge.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"

#define MEASURE         "memory.triad"
#define CACHE_TIMES     4
#define N_ARRAYS        3
#define LANES           8
#define SHARE_OF_FREE   2         /* of the available memory at most one part in this many */
#define ARRAY_BYTES_MIN (1 << 20) /* in all; with less, the clock would be measured */
#define FALLBACK_BYTES  (INT64_C(256) << 20) /* of an array, if the caches are not known */
#define CACHE_INDEX_MAX 8
#define SMALL_MAX       4096

typedef double lanes
    __attribute__((vector_size(64))); /* a cache line, in whatever registers there are */

struct triad { /* of one worker; the arrays begin on a page */
    lanes *a;
    const lanes *b, *c;
    size_t n; /* of double, whole lanes */
    double s;
};

static void run_triad(void *own)
{
    const struct triad *triad = own;
    lanes *restrict a = triad->a;
    const lanes *restrict b = triad->b;
    const lanes *restrict c = triad->c;
    double s = triad->s;
    for (size_t idx = 0; idx < triad->n / LANES; idx++) {
        a[idx] = b[idx] + s * c[idx];
    }
}

/* First touched here, by the processor that works on it. */
static void *array_of(size_t n, double value)
{
    double *array =
        mmap(NULL, n * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (array == MAP_FAILED) {
        return NULL;
    }
    for (size_t idx = 0; idx < n; idx++) {
        array[idx] = value;
    }
    return array;
}

static void *prepare(void *ctx, size_t worker UNUSED)
{
    static struct triad triad;
    triad = (struct triad){.n = *(const size_t *)ctx, .s = 3};
    triad.a = array_of(triad.n, 0);
    triad.b = array_of(triad.n, 1);
    triad.c = array_of(triad.n, 2);
    return triad.a && triad.b && triad.c ? &triad : NULL;
}

/* ---- how large ---- */

static bool read_file(struct arena *arena, const char *path, struct str *ret_text)
{
    char *text = arena_array(arena, char, SMALL_MAX + 1);
    FILE *file = fopen(path, "re");
    size_t len = file ? fread(text, 1, SMALL_MAX, file) : 0;
    if (file) {
        (void)fclose(file);
    }
    *ret_text = str_trim((struct str){text, len});
    return len > 0;
}

/* "49152K" */
static int64_t bytes_of_size(struct str text)
{
    struct err ignored = {0};
    int64_t number = 0;
    int shift = str_ends(text, STR_LIT("K")) ? 10 : str_ends(text, STR_LIT("M")) ? 20 : 0;
    if (shift) {
        text.len--;
    }
    return str_to_i64(text, 0, INT64_C(1) << 40, &number, &ignored) < 0 ? 0 : number << shift;
}

/* The largest cache of a processor, counted once for all that share it. */
static int64_t last_cache_bytes(struct arena *arena, int cpu)
{
    int64_t most = 0;
    for (int index = 0; index < CACHE_INDEX_MAX; index++) {
        const char *folder =
            arena_printf(arena, "/sys/devices/system/cpu/cpu%d/cache/index%d", cpu, index);
        struct str size = STR_EMPTY, shared = STR_EMPTY, first = STR_EMPTY;
        char own[16];
        int64_t bytes;
        if (!read_file(arena, fs_join(arena, folder, "size"), &size)) {
            break;
        }
        bytes = bytes_of_size(size);
        if (bytes <= most) {
            continue;
        }
        most = bytes;
        (void)read_file(arena, fs_join(arena, folder, "shared_cpu_list"), &shared);
        snprintf(own, sizeof(own), "%d", cpu);
        (void)str_next(&shared, ',', &first);
        shared = first;
        (void)str_next(&shared, '-', &first);
        if (!str_eq_z(first, own)) {
            most = -bytes; /* another's */
        }
        most = most < 0 ? 0 : most;
    }
    return most;
}

static int64_t caches_bytes(const int *cpus, size_t n)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    int64_t sum = 0;
    for (size_t idx = 0; idx < n; idx++) {
        sum += last_cache_bytes(&arena, cpus[idx]);
    }
    return sum;
}

/* 0: not known. */
static int64_t available_bytes(void)
{
    CLEANUP(arena) struct arena arena = ARENA_EMPTY;
    static const struct str KEY = {"MemAvailable:", sizeof("MemAvailable:") - 1};
    struct err ignored = {0};
    struct str rest, line;
    int64_t kb = 0;
    if (!read_file(&arena, "/proc/meminfo", &rest)) {
        return 0;
    }
    while (str_next(&rest, '\n', &line)) {
        if (str_starts(line, KEY)) {
            line = str_trim(str_sub(line, KEY.len, line.len));
            line.len -= str_ends(line, STR_LIT(" kB")) ? 3 : 0;
            return str_to_i64(line, 0, INT64_C(1) << 50, &kb, &ignored) < 0 ? 0 : kb << 10;
        }
    }
    return 0;
}

static int64_t choose_bytes(struct gauge *gauge, int64_t bytes_max, const int *cpus, size_t n)
{
    int64_t caches = caches_bytes(cpus, n);
    int64_t want = caches ? CACHE_TIMES * caches : FALLBACK_BYTES;
    int64_t free_bytes = available_bytes() / SHARE_OF_FREE / N_ARRAYS;
    int64_t bytes = want;
    if (bytes_max && bytes > bytes_max / N_ARRAYS) {
        bytes = bytes_max / N_ARRAYS;
    }
    if (free_bytes && bytes > free_bytes) {
        bytes = free_bytes;
    }
    if (!caches) {
        gauge_note(gauge, MEASURE ": the size of the caches is not known");
    } else if (bytes < want) {
        gauge_note(gauge,
                   MEASURE ": arrays of %" PRId64 " MiB each with caches of %" PRId64
                           " MiB in all: partly the caches' bandwidth",
                   bytes >> 20, caches >> 20);
    }
    return bytes;
}

void gauge_memory(struct gauge *gauge, int64_t bytes_max, size_t n_repeats)
{
    int *cpus = xcalloc(GAUGE_CPUS_MAX, sizeof(*cpus));
    size_t n = team_cpus(cpus, GAUGE_CPUS_MAX);
    int64_t ns[GAUGE_REPEATS_MAX + 1];
    int64_t bytes = choose_bytes(gauge, bytes_max, cpus, n);
    struct err err = {0};
    if (n == 0 || bytes < ARRAY_BYTES_MIN) {
        gauge_lacks(gauge, MEASURE,
                    n ? "less than 1 MiB for an array" : "the processors are not known");
    } else {
        size_t elements = (size_t)bytes / sizeof(lanes) / n * LANES;
        /* One repeat more: the first is a warm-up. */
        struct team team = {.cpus = cpus,
                            .n = n,
                            .n_repeats = n_repeats + 1,
                            .prepare = prepare,
                            .work = run_triad,
                            .ctx = &elements};
        if (team_run(&team, ns, &err) < 0) {
            gauge_lacks(gauge, MEASURE, err.msg);
        } else {
            gauge_add(gauge, &(struct gauge_series){
                                 .measure = MEASURE,
                                 .work = (int64_t)(N_ARRAYS * sizeof(double) * elements * n),
                                 .ns = ns + 1,
                                 .n = n_repeats});
        }
    }
    free(cpus);
}
