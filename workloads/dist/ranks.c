/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include "dist/ranks.h"

#include "base/str.h"
#include "dist/wire.h"

struct family {
    const char *launcher;
    const char *rank, *n_ranks, *local_rank, *n_local_ranks;
};

/* The first one of which rank or size is set is the one that counts. */
static const struct family FAMILIES[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL},
};

struct source {
    ranks_env_fn env;
    void *ctx;
};

static const char *value_of(const struct source *source, const char *name)
{
    return name ? source->env(source->ctx, name) : NULL;
}

/* Leaves *ret_value where the variable is not set. */
static int number(const struct source *source, const char *name, int64_t min, int64_t max,
                  int *ret_value, struct err *err)
{
    const char *text = value_of(source, name);
    int64_t value;
    if (!text) {
        return 0;
    }
    if (str_to_i64(str_of(text), min, max, &value, err) < 0) {
        err->code = ERR_USAGE;
        return err_wrap(err, "environment: %s", name);
    }
    *ret_value = (int)value;
    return 0;
}

/* ---- Slurm's node list ---- */

int ranks_first_host(const char *list, char *ret_host, struct err *err)
{
    size_t len = 0;
    const char *c = list;
    while (*c && *c != ',' && len < RANKS_ADDR_MAX - 1) {
        if (*c != '[') {
            ret_host[len++] = *c++;
            continue;
        }
        const char *close = strchr(c, ']');
        size_t digits = strspn(c + 1, "0123456789");
        if (!close || digits == 0 || !strchr("-,]", c[1 + digits]) ||
            len + digits >= RANKS_ADDR_MAX) {
            return err_set(err, ERR_USAGE, "SLURM_JOB_NODELIST=%.200s: expected a list of hosts",
                           list);
        }
        memcpy(ret_host + len, c + 1, digits);
        len += digits;
        c = close + 1;
    }
    ret_host[len] = '\0';
    bool is_host =
        len > 0 && strspn(ret_host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                    "0123456789.-_") == len;
    if (!is_host || len >= RANKS_ADDR_MAX - 1) {
        return err_set(err, ERR_USAGE, "SLURM_JOB_NODELIST=%.200s: expected a list of hosts", list);
    }
    return 0;
}

/* ---- where rank 0 is ---- */

static int find_master(const struct source *source, struct ranks *ranks, struct err *err)
{
    const char *addr = value_of(source, "MASTER_ADDR");
    const char *nodes = value_of(source, "SLURM_JOB_NODELIST");
    bool is_slurm = strcmp(ranks->launcher, "slurm") == 0;
    bool is_all_local =
        strcmp(ranks->launcher, "openmpi") == 0 && ranks->n_local_ranks == ranks->n_ranks;
    ranks->master_port = RANKS_PORT_DEFAULT;
    if (number(source, "MASTER_PORT", 1, UINT16_MAX, &ranks->master_port, err) < 0) {
        return -1;
    }
    if (addr && addr[0] != '\0') {
        size_t len = strlen(addr);
        if (len >= RANKS_ADDR_MAX || strcspn(addr, " \t\n/") != len) {
            return err_set(err, ERR_USAGE,
                           "environment: MASTER_ADDR=%.100s: expected a host name or address",
                           addr);
        }
        memcpy(ranks->master_addr, addr, len + 1);
        return 0;
    }
    if (is_slurm && nodes) {
        return ranks_first_host(nodes, ranks->master_addr, err);
    }
    if (is_all_local) {
        memcpy(ranks->master_addr, "127.0.0.1", sizeof("127.0.0.1"));
        return 0;
    }
    return err_set(err, ERR_USAGE,
                   "environment: %d ranks by %s, but MASTER_ADDR (where rank 0 listens) is not set",
                   ranks->n_ranks, ranks->launcher);
}

/* ---- who this process is ---- */

static int read_local(const struct source *source, const struct family *family, struct ranks *ranks,
                      struct err *err)
{
    if (number(source, family->n_local_ranks, 1, ranks->n_ranks, &ranks->n_local_ranks, err) < 0) {
        return -1;
    }
    int64_t end = ranks->n_local_ranks > 0 ? ranks->n_local_ranks : ranks->n_ranks;
    return number(source, family->local_rank, 0, end - 1, &ranks->local_rank, err);
}

static int read_family(const struct source *source, const struct family *family, bool is_alone,
                       struct ranks *ret_ranks, struct err *err)
{
    struct ranks ranks = {.launcher = family->launcher, .rank = -1, .n_ranks = 1};
    const char *size_name = family->n_ranks;
    if (strcmp(family->launcher, "slurm") == 0 && value_of(source, "SLURM_STEP_NUM_TASKS")) {
        size_name = "SLURM_STEP_NUM_TASKS"; /* a step may have fewer tasks than its job */
    }
    bool has_rank = value_of(source, family->rank) != NULL;
    bool has_size = value_of(source, size_name) != NULL;
    if (has_rank && !has_size) {
        return err_set(err, ERR_USAGE, "environment: %s without %s", family->rank, size_name);
    }
    if (number(source, size_name, 1, WIRE_RANKS_MAX, &ranks.n_ranks, err) < 0 ||
        number(source, family->rank, 0, ranks.n_ranks - 1, &ranks.rank, err) < 0) {
        return -1;
    }
    if (!has_rank && ranks.n_ranks > 1 && !is_alone) {
        return err_set(err, ERR_USAGE, "environment: %s=%d without %s", size_name, ranks.n_ranks,
                       family->rank);
    }
    ranks.rank = has_rank ? ranks.rank : 0;
    if (read_local(source, family, &ranks, err) < 0) {
        return -1;
    }
    if (ranks.n_ranks > 1 && !is_alone && find_master(source, &ranks, err) < 0) {
        return -1;
    }
    *ret_ranks = ranks;
    return 0;
}

int ranks_read(ranks_env_fn env, void *ctx, bool is_alone, struct ranks *ret_ranks, struct err *err)
{
    const struct source source = {env, ctx};
    for (size_t i = 0; i < ARRAY_LEN(FAMILIES); i++) {
        const struct family *family = &FAMILIES[i];
        /* In the shell of a Slurm allocation there is a number of tasks, but this is none of them. */
        bool is_slurm = strcmp(family->launcher, "slurm") == 0;
        if (value_of(&source, family->rank) || (!is_slurm && value_of(&source, family->n_ranks))) {
            return read_family(&source, family, is_alone, ret_ranks, err);
        }
    }
    *ret_ranks = (struct ranks){.launcher = "none", .n_ranks = 1};
    return 0;
}
