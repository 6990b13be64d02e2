#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: workloads
# Every kernel's PTX for sm_90, in make test-all: operations in two orders of threads, networks and optimisers; what only several ranks call is listed.
. "$(dirname "$0")/ptx_lib.sh"
all_of 90
tap_done
