/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "log/launcher.h"

#define PROCESSES_MAX 10000000

/* Sources: mpirun(1), horovodrun --help; NVIDIA/nccl src/transport/net_ib.cc, net_socket.cc, src/init.cc at v2.21. */
const char *const LAUNCHER_LITERALS[] = {" -np ", "NCCL INFO ", "nfini", NULL};

static bool says(struct str text, const char *words)
{
    return str_find(text, str_of(words)) >= 0;
}

static void take_processes(struct launcher_seen *seen, struct str text)
{
    int64_t at = str_find(text, STR_LIT(" -np "));
    struct str rest = at >= 0 ? str_sub(text, (size_t)at + 5, SIZE_MAX) : STR_EMPTY;
    struct str word;
    int64_t n;
    if (str_next(&rest, ' ', &word) && str_to_i64(word, 1, PROCESSES_MAX, &n, ERR_IGNORED) == 0) {
        seen->n_processes = n > seen->n_processes ? n : seen->n_processes;
    }
}

/* "node01:41021:41040 [0] NCCL INFO Using network Socket": node01. */
static struct str host_of(struct str before)
{
    struct str who = STR_EMPTY;
    struct str word;
    while (str_next(&before, ' ', &word)) {
        who = word.len && word.ptr[0] != '[' ? word : who;
    }
    return str_next(&who, ':', &word) ? word : STR_EMPTY;
}

static void note_first(int64_t *at, bool is, int64_t line)
{
    *at = is && *at == 0 ? line : *at;
}

static void take_nccl(struct launcher_seen *seen, struct str text, int64_t line)
{
    size_t at = (size_t)str_find(text, STR_LIT("NCCL INFO "));
    struct str host = host_of(str_sub(text, 0, at));
    struct str words = str_sub(text, at, SIZE_MAX);
    if (host.len > 0 && host.len < LAUNCH_HOST_BYTES) {
        seen->has_hosts = seen->has_hosts || (*seen->host && !str_eq_z(host, seen->host));
        memcpy(seen->host, host.ptr, *seen->host ? 0 : host.len);
    }
    note_first(&seen->socket_line, says(words, "via NET/Socket"), line);
    note_first(&seen->using_line, says(words, "Using network Socket"), line);
    note_first(&seen->absent_line, says(words, "NET/IB : No device found"), line);
    note_first(&seen->named_line,
               says(words, "NET/IB : Using") || says(words, "NCCL_IB_HCA set") ||
                   says(words, "NCCL_NET set by environment to IB"),
               line);
}

void launcher_look(struct launcher_seen *seen, struct str text, int64_t line)
{
    if (says(text, "NCCL INFO ")) {
        take_nccl(seen, text, line);
        return;
    }
    take_processes(seen, text);
    note_first(&seen->named_line, says(text, "nfiniband") || says(text, "nfiniBand"), line);
}

struct str launcher_doubt(struct arena *arena, const struct launcher_seen *seen)
{
    int64_t other = seen->absent_line ? seen->absent_line : seen->named_line;
    int64_t socket = seen->socket_line ? seen->socket_line : seen->has_hosts ? seen->using_line : 0;
    if (!socket || !other) {
        return STR_EMPTY;
    }
    return str_printf(
        arena, "NCCL spoke over sockets (line %" PRId64 "), and %s (line %" PRId64 ")", socket,
        seen->absent_line ? "found no InfiniBand device" : "InfiniBand is named", other);
}
