/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts that a node runs for fleet/remote_ssh.c: POSIX /bin/sh, coreutils or busybox. $1 of each is the work folder or empty.
   Each may be run again when nobody heard how it ended. None ever gets data but as $1... or by stdin. */
#ifndef FLEET_REMOTE_SCRIPTS_H
#define FLEET_REMOTE_SCRIPTS_H

/* Exit statuses of all of them; what they print is then the reason. */
#define REMOTE_SCRIPT_FAILED 74

extern const char REMOTE_PRELUDE[]; /* in front of each of the others */
extern const char REMOTE_WRAPPER[]; /* given to REMOTE_START as $5 */

extern const char REMOTE_START
    []; /* WORK ID NONCE SIZE WRAPPER CLEANUP BESIDE; stdin: the job; then as POLL for 1 s */
extern const char REMOTE_POLL[];   /* WORK ID WAIT: prints "STATE[ STATUS] LOG_BYTES" */
extern const char REMOTE_READ[];   /* WORK ID OFFSET SIZE */
extern const char REMOTE_DIGEST[]; /* WORK ID: prints hex, or nothing */
extern const char REMOTE_SIGNAL[]; /* WORK ID NUMBER */
extern const char REMOTE_REAP
    []; /* WORK ID OFFSET SIZE: prints "HEX LOG_BYTES", or - for HEX; then the log from there */
extern const char REMOTE_FORGET[]; /* WORK ID */
extern const char REMOTE_FOLDER[]; /* WORK: prints its path */

/* reperf-node, WORK/bin/reperf-node-SHA256. */
#define REMOTE_NODE_ABSENT 75
extern const char REMOTE_NODE_LAUNCH
    []; /* WORK SHA256 MACHINE: becomes it, or REMOTE_NODE_ABSENT, or the reason why not */
extern const char REMOTE_NODE_PUT[]; /* WORK SHA256 NONCE; stdin: the file */

#endif
