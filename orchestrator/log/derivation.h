/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOG_DERIVATION_H
#define LOG_DERIVATION_H

/* The version of how a result follows from logs and rules. A run freezes the number in force (lock/lock.json) and states it in
   result.json; replay derives by that number, so a sealed archive keeps its verdict whatever later versions change. 1: archives that
   state none. 2: result.json states it. 3: time_weighted_mean takes each rank's intervals from that rank alone. 4: a log is judged by
   the causes of log/series.h. 5: a run's log that states other ranks, nodes, batch, precision or model than its plan does not count.
   6: facts are of one run of a log; a run without its beginning is incomplete. 7: more ways to break off, gaps and lines that are cut
   are seen. 8: the last line of a run that reached its end may stand off the grid; the last epoch of one is as long as the others. 9: a
   loss that is no number counts wherever it stands; a format's first_by alone decides whether a run's first lines are missing. */
enum {
    DERIVATION_FIRST = 1,
    DERIVATION_RANK_INTERVALS = 3,
    DERIVATION_WHOLE = 4,
    DERIVATION_IDENTITY = 5,
    DERIVATION_RUNS = 6,
    DERIVATION_GAPS = 7,
    DERIVATION_ENDS = 8,
    DERIVATION_LOSSES = 9,
    DERIVATION_NOW = 9
};

#endif
