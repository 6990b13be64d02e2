#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Room: store
# images/: every Dockerfile is checked as far as possible without building it (no registry is reachable where this is tested): what it starts from is what
# image.json says, nothing is "latest", what is fetched is pinned, what is copied is there. And reperf reads every image.json.
# shellcheck source=tests/tap_lib.sh disable=SC1091
source "$(dirname "$0")/../tap_lib.sh"

field() { jq -r --arg key "$2" 'if has($key) then .[$key] else error end | if . == null then "" else . end' "$1"; } # FILE KEY
lines() { sed -e '/^#/d' -e ':a' -e '/\\$/{N;s/\\\n/ /;ba' -e '}' "$1"; }                                                                     # FILE: one instruction a line
argument() { lines "$1" | sed -n "s/^ARG $2=//p" | head -n 1; }                                                                                # FILE NAME

problems() { # FOLDER: one line a problem
    local dir=$1 file="$1/Dockerfile" json="$1/image.json" base want name value word text
    text=$(lines "$file")
    want=$(field "$json" base)
    [ -n "$want" ] || want="$(field "$json" name):$(field "$json" tag)"
    base=$(argument "$file" BASE)
    [ "$base" = "$want" ] || echo "starts from $base, image.json says $want"
    printf '%s\n' "$text" | grep -E '^FROM' | grep -vE '^FROM \$\{BASE\}( AS [a-z]+)?$' | sed 's/^/not from BASE: /'
    printf '%s\n' "$text" | grep -nE ':latest|@latest|FROM [^ :@$]+( |$)' | sed 's/^/latest: /'
    printf '%s\n' "$text" | grep -vE '^(FROM|ARG|RUN|COPY|WORKDIR|ENTRYPOINT|ENV) |^$' | sed 's/^/an instruction nobody knows: /'
    # git clone URL DIR && git -C DIR checkout ${PIN}, PIN being a commit, or a release where the file says why.
    while read -r value; do
        name=$(sed -nE 's/.*git -C [^ ]+ checkout \$\{([A-Z]+)\}.*/\1/p' <<<"$value")
        [ -n "$name" ] || { echo "a clone without a commit: $value"; continue; }
        word=$(argument "$file" "$name")
        if [[ "$word" =~ ^v[0-9]+(\.[0-9]+)+$ ]]; then
            grep -q "$name is the released tag .* a tag may be moved" "$file" || echo "$name is a tag, and the file does not say why"
        elif grep -q "$name is the branch that the report names: no commit of it was published" "$file"; then
            :
        elif [[ ! "$word" =~ ^[0-9a-f]{40}$ ]]; then
            echo "$name=$word is no commit"
        fi
    done < <(printf '%s\n' "$text" | grep -oE 'git clone .*')
    # pip install takes requirements files of a pinned clone, folders, checked files, and NAME==VERSION.
    while read -r value; do
        for word in $value; do
            word=${word//\"/}
            case $word in
            -r | -e | -f | --no-cache-dir | --no-deps | --require-hashes | --no-build-isolation | --break-system-packages | --target | /opt | /usr/local/lib/python3.11/dist-packages | /tmp/in/requirements.lock | /workspace/* | \$\{PADDLE_INDEX\}) ;;
            git+https://*@\$\{*\})
                name=${word##*@??} && name=${name%?}
                [[ "$(argument "$file" "$name")" =~ ^[0-9a-f]{40}$ ]] || echo "pip install of $word, which is no commit"
                ;;
            *==*) ;;
            *) echo "pip install of something unpinned: $word" ;;
            esac
        done
    done < <(printf '%s\n' "$text" | grep -oE 'pip install [^&]*' | sed 's/pip install //')
    printf '%s\n' "$text" | grep -E '(curl|wget) ' | grep -vE 'sha256sum -c' | sed 's/^/a download that is not checked: /'
    printf '%s\n' "$text" | grep 'MMCV_WITH_OPS=1' | grep -v 'FORCE_CUDA=1' | sed 's/^/operators of mmcv for a CPU alone, where no GPU is in sight: /'
    while read -r value; do
        for word in $value; do
            [ -e "$ROOT/$word" ] || echo "copies $word, which is not in the repository"
        done
    done < <(printf '%s\n' "$text" | sed -nE 's/^COPY ([^-].*) [^ ]+$/\1/p')
    [ "$(field "$json" dockerfile)" = true ] || echo "image.json says that there is no Dockerfile"
    grep -q "Never built here\|Built here once" "$file" || echo "does not say whether it was ever built"
}

n=0
for dir in images/*/; do
    dir=${dir%/}
    if [ -e "$dir/Dockerfile" ]; then
        is "$(problems "$dir")" "" "${dir#images/}: its Dockerfile agrees with image.json, and pins what it fetches"
    else
        is "$(field "$dir/image.json" dockerfile)" false "${dir#images/}: is pulled as it is"
    fi
    n=$((n + 1))
    # Offline, and not in the store: reperf's message shows that it has read image.json.
    exits 4 "${dir#images/}: not in the store" "$REPERF" fetch --offline "image:${dir#images/}"
    like "$(cat "$T/err")" "$(field "$dir/image.json" replacement | cut -c1-40)" "${dir#images/}: what to use instead is stated"
done
is "$n" 38 "images of the reports, and our own"
for stack in $(/usr/bin/python3 -c '
import glob, json
for path in glob.glob("manifests/reports/*.json"):
    for stack in json.load(open(path))["stacks"]:
        for image in [stack["image"]] + [r.get("image") for p in ("smoke", "full") for r in stack.get(p, [])]:
            if image: print(image)' | sort -u); do
    ok "$([ -e "images/$stack/image.json" ]; echo $?)" "$stack, which a report needs, is described"
done

# The check can fail.
planted() { # NAME SED-SCRIPT
    rm -rf "$T/planted"
    cp -R images/mmseg-0.11.0 "$T/planted"
    sed -E "$2" images/mmseg-0.11.0/Dockerfile >"$T/planted/Dockerfile"
    ok "$([ -n "$(problems "$T/planted")" ]; echo $?)" "seen: $1"
}
planted "another base" 's/20.06-py3/20.07-py3/'
planted "latest" 's#^FROM .*#FROM ubuntu:latest#'
planted "a short commit" 's/^(ARG MMSEG=.{10}).*/\1/'
planted "a branch" 's/^ARG MMSEG=.*/ARG MMSEG=master/'
planted "a clone without a checkout" 's/^ && git -C .workspace.mmcv.*//'
planted "operators without CUDA" 's/ FORCE_CUDA=1//'
planted "an unpinned package" 's/pip install --no-cache-dir/pip install numpy --no-cache-dir/'
# shellcheck disable=SC2016 # for the Dockerfile
planted "a package of no commit" 's#^WORKDIR.*#ARG X=master\nRUN pip install git+https://example.org/x.git@${X}#'
planted "a download without a check" 's/^WORKDIR.*/RUN curl -O https:\/\/example.org\/x/'
planted "a copy of nothing" 's/^WORKDIR.*/COPY no-such-file \/x/'

# --- what apt says to each Dockerfile's packages, without installing any ------------------------------------
if ! command -v apt-get >/dev/null; then
    skip "what the Dockerfiles install" "no apt-get"
    tap_done
fi
asked() { # DOCKERFILE: the packages of each apt-get install on a line of its own, as apt is given them
    lines "$1" | grep -oE "apt-get install -y [^&]*" | sed "s/apt-get install -y//; s/--no-install-recommends//; s/'//g"
    sed 's/^#.*//' "${1%Dockerfile}system.in" 2>/dev/null | xargs
}
# As NVIDIA's repository has them: two versions of each, and what belongs together in one version needs just that. Of all other packages there is one version.
for version in 9.10.1.4-1 9.10.2.21-1 9.26.0.51-1; do
    for cuda in 12 13; do
        printf 'Package: libcudnn9-%s\nVersion: %s\nArchitecture: amd64\nFilename: none\nSize: 1\n%s\n' "cuda-$cuda" $version "" "headers-cuda-$cuda" $version "" \
            "dev-cuda-$cuda" $version "Depends: libcudnn9-cuda-$cuda (= $version), libcudnn9-headers-cuda-$cuda (= $version)
"
    done
done >"$T/nvidia"
for file in images/*/Dockerfile; do asked "$file"; done | tr ' ' '\n' | grep -v '^libcudnn9\|^$' | sort -u |
    sed 's/.*/Package: &\nVersion: 1\nArchitecture: amd64\nFilename: none\nSize: 1\n/' >"$T/others"
mkdir -p "$T/repository" "$T/apt/lists/partial" "$T/apt/archives/partial" "$T/apt/parts"
cat "$T/nvidia" "$T/others" >"$T/repository/Packages"
: >"$T/apt/status"
echo "deb [trusted=yes] file:$T/repository ./" >"$T/apt/sources.list"
apt=(apt-get -q -o APT::Architecture=amd64 -o "Dir::State=$T/apt" -o "Dir::State::status=$T/apt/status" -o "Dir::Cache=$T/apt" -o "Dir::Etc::sourcelist=$T/apt/sources.list"
    -o "Dir::Etc::sourceparts=$T/apt/parts" -o "Dir::Etc::preferencesparts=$T/apt/parts" -o Dir::Etc::preferences=/dev/null -o Acquire::Languages=none -o APT::Sandbox::User=root)
exits 0 "a repository with NVIDIA's dependencies" "${apt[@]}" update
# shellcheck disable=SC2317 # run by exits
resolves() { # DOCKERFILE: status 0 if apt finds a way for each of its lines
    local line
    while read -r line; do
        # shellcheck disable=SC2086 # each word is a package
        [ -z "$line" ] || "${apt[@]}" -s install --no-install-recommends $line || return 1
    done < <(asked "$1")
}
n=0
for file in images/*/Dockerfile; do
    [ -n "$(asked "$file")" ] || continue
    exits 0 "$(basename "${file%/Dockerfile}"): apt finds all that it asks for" resolves "$file"
    n=$((n + 1))
done
succeeds "$n Dockerfiles ask apt" test "$n" -gt 10
sed "s/ 'libcudnn9-\(cuda\|headers\)[^']*'//g" images/reperf-cuda12/Dockerfile >"$T/Dockerfile"
tells 1 'libcudnn9-dev-cuda-12 : Depends: libcudnn9-cuda-12 \(= 9.10.2.21-1\)' "seen: a pin of the -dev package alone, in apt's own words" resolves "$T/Dockerfile"
tap_done
