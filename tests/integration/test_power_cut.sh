#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: run
# The power goes while fetch, run, resume, seal, import, bundle, unpack or lock syncs or renames: the command is killed at that call, and the disk has what it
# had at that moment. A file system on a loop device, whose backing file is copied and mounted again. What had been said before is there, and another try
# heals the rest. After an undisturbed end the power goes, too: nothing is lost then. Fetch is of a data set and of a source.
# make test takes a sample of the calls on the default ext4 and on one without a journal, make test-all each call, and ext4 with data=writeback,
# btrfs and xfs where mkfs for them is here.
# shellcheck disable=SC1091,SC2317,SC2119,SC2015,SC2012,SC2034
# Mounts of its own: a copy of them in another test's namespace would keep a disk alive, and the next mount of its file would be that one.
[ -n "${CUT_MOUNTS-}" ] || ! unshare -m true 2>/dev/null || CUT_MOUNTS=own exec unshare -m "$0" "$@"
# shellcheck source=tests/tap_lib.sh
. "$(dirname "$0")/../tap_lib.sh"
# shellcheck source=tests/integration/fault_commands_lib.sh
. "$(dirname "$0")/fault_commands_lib.sh" # $W is the disk
trap 'umount -l "$W" 2>/dev/null; rm -rf "$T"' EXIT
mkdir "$W"
DISK_MB=96
kinds=(ordered)
in_test_all "the power goes at each call, and on more file systems" && SAMPLES=0 && kinds=(ordered writeback none btrfs xfs)

# --- the disk ----------------------------------------------------------------------------------------
mount_disk() { # KIND FILE
    local options=loop
    case $1 in
        writeback) options=loop,data=writeback ;;
        none) options=loop,noauto_da_alloc ;;
        ordered) options=loop,commit=300,noauto_da_alloc ;; # as late as may be
    esac
    mount -o "$options" "$2" "$W" 2>"$T/err"
}
make_disk() { # KIND FILE
    rm -f "$2"
    case $1 in btrfs | xfs) truncate -s 320M "$2" ;; *) truncate -s "${DISK_MB}M" "$2" ;; esac
    case $1 in
        none) mkfs.ext4 -q -O ^has_journal "$2" ;;
        btrfs | xfs) "mkfs.$1" -q "$2" ;;
        *) mkfs.ext4 -q "$2" ;;
    esac >"$T/err" 2>&1
}
check_disk() { # KIND FILE: what the next start of a machine does
    case $1 in btrfs | xfs) ;; *) e2fsck -fy "$2" >/dev/null 2>&1 ;; esac
    return 0
}
power_cut() { # KIND: what is only in memory is lost
    cp --sparse=always "$T/disk" "$T/cut" && umount -l "$W" && mv "$T/cut" "$T/disk" && check_disk "$1" "$T/disk" && mount_disk "$1" "$T/disk"
}
usable() { # KIND: else why not
    if [ "$(id -u)" -ne 0 ]; then echo "it takes root"; return; fi
    case $1 in btrfs | xfs) command -v "mkfs.$1" >/dev/null || { echo "no mkfs.$1 here"; return; } ;; *) command -v mkfs.ext4 >/dev/null || { echo "no mkfs.ext4 here"; return; } ;; esac
    make_disk "$1" "$T/disk" && mount_disk "$1" "$T/disk" || { echo "no loop device here: $(head -n 1 "$T/err")"; return; }
    umount "$W"
}

# --- the commands --------------------------------------------------------------------------------------
# NAME_said is what a good end said besides.
tiny_dataset 3
few_manifests
git init -q -b main "$T/git" && cp "$T"/in/tree/a/* "$T/git" && git -C "$T/git" add . && git -C "$T/git" commit -qm x
SOURCE="source:file://$T/git@$(git -C "$T/git" rev-parse HEAD)"
on_disk() { export REPERF_STATE="$W/state" REPERF_STORE="$W/store"; }
quiet() { "$@" >"$T/log" 2>&1; }
one_run() { smoke --repeats 1 --name cut; }
run_said() { "$REPERF" status cut; }
seal_before() { one_run && mkdir "$W/sealed"; }
seal() { "$REPERF" seal last -o "$W/sealed/a.tar.zst" --force; }
unpack_again() { [ -e "$W/out" ] || unpack; } # what has the name is whole
bundle_right() { rm -rf "$T/looked" && mkdir "$T/looked" && tar -C "$T/looked" -xf "$W/b" && (cd "$T/looked" && sha256sum --quiet -c SHA256SUMS); }
import_before() { [ -e "$T/carried" ] || { fetch && bundle && mv "$W/b" "$T/carried" && chmod -R u+w "$REPERF_STORE" && rm -rf "$REPERF_STORE"; }; }
lock_before() { fetch; }
lock() { "$REPERF" lock dataset:tiny --offline --locks "$W/new-locks"; }
lock_right() { ls "$W/new-locks"/*/*.json >/dev/null 2>&1 && lock; }

# --- the sweep ------------------------------------------------------------------------------------------
disk_before() { # KIND: as NAME_before left it, and all of that is on it
    umount -l "$W" 2>/dev/null
    cp --sparse=always "$T/before" "$T/disk" && mount_disk "$1" "$T/disk"
}
said() { # what vouches now vouches for what is there
    local tree
    for tree in "$REPERF_STORE"/trees/*/tree.json; do
        [ ! -e "$tree" ] || same_tree "${tree%/*}/tree" || { echo "a tree is said to be whole and is not"; return 1; }
    done
    [ ! -e "$W/out" ] || same_tree "$W/out/tree" || { echo "what was unpacked has its name and is not whole"; return 1; }
    [ ! -e "$W/b" ] || bundle_right || { echo "the bundle has its name and is not whole"; return 1; }
}
heals() { # KIND COMMAND WHAT
    local again=$2
    declare -F "$2_again" >/dev/null && again=$2_again
    quiet said || { bad "$3: a mark outlived what it is for"; return; }
    quiet "$again" || { bad "$3: another try ends $?"; return; }
    quiet "$2_right" || bad "$3: another try does not heal"
}
cut_at() { # KIND COMMAND CALL NUMBER
    disk_before "$1" || { bad "$2: no disk"; return; }
    rm -f "$T/mark" "$T/fake/count"
    REPERF_FAULT_AT="$4" REPERF_FAULT_SIGNAL=9 at_calls "$3" "$2" >"$T/log" 2>&1
    if [ ! -e "$T/mark" ]; then # not so many calls this time: the one before
        [ "$SAMPLES" -eq 0 ] || [ "$4" -le 1 ] || cut_at "$1" "$2" "$3" $(($4 - 1))
        return 0
    fi
    n_cuts=$((n_cuts + 1))
    power_cut "$1" || { bad "$2: no disk after the cut"; return; }
    heals "$1" "$2" "$2, cut at $3 $4"
}
count_calls() { # KIND COMMAND CALL
    disk_before "$1"
    rm -f "$T/mark"
    at_calls "$3" "$2" >"$T/log" 2>&1
    stat -c %s "$T/mark" 2>/dev/null || echo 0
}
sweep() { # KIND COMMAND
    local call n step at n_bad=0 n_cuts=0
    make_disk "$1" "$T/disk" && mount_disk "$1" "$T/disk" && on_disk && "$2_before" >"$T/log" 2>&1
    umount "$W" && mv "$T/disk" "$T/before"
    disk_before "$1"
    quiet "$2" || bad "$2: undisturbed it ends $?"
    power_cut "$1"
    quiet "$2_right" && { ! declare -F "$2_said" >/dev/null || quiet "$2_said"; } || bad "$2: it had ended well, and the power went: not all is there"
    for call in fsync rename; do
        n=$(count_calls "$1" "$2" "$call")
        step=$(stride "$n")
        for ((at = step > 1 ? 1 + turn++ % step : 1; at <= n; at += step ? step : 1)); do cut_at "$1" "$2" "$call" "$at"; done
    done
    umount -l "$W" 2>/dev/null
    [ "$n_cuts" -gt 0 ] || bad "$2: no call was reached"
    ok $((n_bad != 0 || n_cuts == 0)) "$1: $2: $n_cuts power cuts and one at the end, nothing lost, each healed by another try"
}
turn=0
for kind in ${CUT_KINDS:-"${kinds[@]}"}; do
    why=$(usable "$kind")
    if [ -n "$why" ]; then
        skip "the power goes on $kind" "$why"
        continue
    fi
    for command in ${CUT_ONLY:-fetch run resume seal import bundle unpack lock}; do sweep "$kind" "$command"; done
done
tap_done
