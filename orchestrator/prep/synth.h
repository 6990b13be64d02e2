/* SPDX-License-Identifier: Apache-2.0 */
/* A synthetic dataset, written as exactly the archives that are fetched for the original: same names, same layout, real JPEG,
   PNG, HDF5 and TFRecord files, labels that fit the pictures; generated from a seed. The same bytes for the same versions of
   the libraries, whatever the number of threads. */
#ifndef PREP_SYNTH_H
#define PREP_SYNTH_H

#include "codec/digest.h"
#include "report/dataset.h"

#define SYNTH_SAMPLES_MAX 4000000

struct synth_opts {
    const struct dataset *dataset;
    const char *folder;       /* is made if missing */
    const int64_t *n_samples; /* of each split of the synthetic dataset */
    int64_t seed;
    size_t n_threads;
    bool (*should_stop)(void);
};

struct synth_file {
    struct str name;
    struct digest_value value;
};

struct synth_result {
    struct synth_file *files; /* in the arena */
    size_t n_files;
};

MUST_CHECK int synth_write(struct arena *arena, const struct synth_opts *opts,
                           struct synth_result *ret_result, struct err *err);

#endif
