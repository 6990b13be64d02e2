#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# rooms.sh ROOM...: "ROOM:TEST" for each unit test of reperf, where ROOM is the last of those given that the test includes, itself or by a header of
# this folder. Tests of reperf-pack (test_prep_*), of the workloads (test_wl_*) and of the emulator (test_emu_*) are not listed.
cd "$(dirname "$0")" || exit 1
awk -v rooms="$*" '
    BEGIN { n = split(rooms, room); for (i = 1; i <= n; i++) rank[room[i]] = i }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        split($0, part, "\"")
        split(part[2], place, "/")
        at = place[1] in rank ? rank[place[1]] : 0
        if (at > highest[FILENAME]) highest[FILENAME] = at
        sub(/^tests\/unit\//, "", part[2])
        if (part[2] !~ /\//) helpers[FILENAME] = helpers[FILENAME] " ./" part[2]
    }
    function room_of(file,   at, list, i, m, sub_at) {
        at = highest[file]
        m = split(helpers[file], list, " ")
        for (i = 1; i <= m; i++) if (list[i] != file && (sub_at = room_of(list[i])) > at) at = sub_at
        return at
    }
    END { for (i = 1; i < ARGC; i++) if (ARGV[i] ~ /\.c$/ && ARGV[i] !~ /^..test_(prep|wl|emu)_/) print room[room_of(ARGV[i])] ":" substr(ARGV[i], 3, length(ARGV[i]) - 4) }
' ./*.h ./*.c
