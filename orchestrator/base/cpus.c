/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cpus.h"

#include <sched.h>

#define CPUS_MAX 16384

size_t cpus_usable(void)
{
    cpu_set_t *set = CPU_ALLOC(CPUS_MAX);
    size_t size = CPU_ALLOC_SIZE(CPUS_MAX);
    size_t n = set && sched_getaffinity(0, size, set) == 0 ? (size_t)CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    return n;
}
