/* SPDX-License-Identifier: Apache-2.0 */
/* What a report's cases require of the machines they run on: from their launch (container flags), their pins (CUDA of the image)
   and the machines that the report names. Pure. */
#pragma once

#include "report/inventory.h"
#include "report/report.h"

#define WANTS_MAX 256

enum want_kind {
    WANT_NODES,      /* number: of the largest case */
    WANT_GPUS,       /* number: per node */
    WANT_GPU_MODEL,  /* text */
    WANT_GPU_MEMORY, /* number: GB as the vendor counts them */
    WANT_CUDA,       /* text: of the image */
    WANT_SHM,        /* number: bytes */
    WANT_MEMLOCK,    /* number: bytes or LIMIT_UNLIMITED */
    WANT_STACK,      /* number: bytes or LIMIT_UNLIMITED */
    WANT_NOFILE,     /* number or LIMIT_UNLIMITED */
    WANT_DEVICE,     /* text: path of a device file */
    WANT_IB_DEVICE, /* that the containers of a case on several nodes get InfiniBand where the node has it */
    WANT_INFINIBAND, /* number: Gbit/s, 0 if the report names no rate; text: as printed */
    WANT_DISK,       /* number: bytes */
    /* What the published numbers were measured on: another model can run, but its numbers are not comparable. */
    WANT_CPU,
    WANT_CORES,
    WANT_MEMORY, /* number: GB */
    WANT_OS,
    WANT_DRIVER,
    WANT_KIND_COUNT,
};

struct want {
    enum want_kind kind;
    struct str text;
    int64_t number;
    struct str image; /* of WANT_CUDA: whose CUDA it is, or NULL */
    struct str of;    /* the first case that asks for it, or what else does so */
    size_t n_cases;   /* that ask for the same, or for a smaller number */
};

struct wants {
    struct want items[WANTS_MAX];
    size_t n;
};

/* Of numbers the largest is kept (LIMIT_UNLIMITED exceeds all), of texts each distinct one. */
MUST_CHECK int wants_add(struct wants *wants, struct want want, struct err *err);
MUST_CHECK int wants_of_case(struct arena *arena, const struct inventory *inventory,
                             struct wants *wants, const struct report_case *c, struct err *err);

/* The oldest driver that runs programs built with this CUDA ("10.1", "11", "11.2"); NULL: not known here. */
const char *cuda_needs_driver(struct str cuda);
/* Whether a driver runs an image built with this CUDA; true where either is not known. */
bool driver_runs_cuda(struct str driver, struct str cuda);
/* The oldest CUDA whose compiler supports this compute capability ("7.0"); NULL: not known here. */
const char *capability_needs_cuda(struct str capability);
/* By their numbers, part by part: "450.80.02" < "525.60.13"; <0, 0, >0. */
int version_cmp(struct str a, struct str b);
