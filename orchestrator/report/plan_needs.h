/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan's steps lack, what its cases need from the store, and what their authors left open; parts of report/plan.h's struct
   plan. */
#pragma once

#include "base/str.h"

struct missing_pin { /* what its authors did not pin although a run of the step needs it */
    struct str stack;
    struct str what; /* "image digest", "source commit of URL" */
};

/* What a step lacks before it can run. */
struct step_need {
    enum err_code cause;
    struct str what;
    struct str command; /* that provides it, as one would type it; NULL: none does */
    /* What `reperf data fetch` provides, or `reperf data lock` if is_lock; or NULL. */
    struct str artifact;
    bool is_lock;
    bool needs_login;               /* available to registered users only */
    bool is_here;                   /* in the store, packed: nobody need be asked for it */
    const struct plan_need *stored; /* what the store has of it; not kept */
};

enum need_state { NEED_ABSENT, NEED_PARTIAL, NEED_READY };

struct plan_need {   /* what a run of the cases' stacks needs from the store */
    struct str kind; /* "dataset", "image", "source" */
    struct str name;
    enum need_state state;
    int64_t download_bytes; /* still to be fetched; -1: its authors did not say */
    int64_t disk_bytes;     /* of archives and tree, estimated; -1: likewise */
    int64_t least_download_bytes, least_disk_bytes; /* of its files whose size is stated */
    int64_t n_unpinned; /* files without any digest; of an image: 1 if its tag is not locked */
    bool needs_login;
    const struct plan_need *from; /* what it is made from, where neither is here; else NULL */
};

extern const char *const NEED_STATE_NAMES[NEED_READY + 1];
