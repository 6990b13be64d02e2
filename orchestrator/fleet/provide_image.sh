# shellcheck shell=sh disable=SC1007,SC2086
# SPDX-License-Identifier: Apache-2.0
# $1 engine, $2 and $3 ids that it may be known by or "", $4 REGISTRY/NAME@sha256:... or "", $5 tries. Prints "there ID" or "pulled ID";
# status 3: not there, and no registry to get it from; 127: no engine; else its last lines say why. A registry that is pinned by digest
# needs no certificate of its own for podman: what comes is checked against the digest.
# An engine on this machine is not reached over a network: it would look for the folders that are mounted where it is. A pull that was silent
# ('deadline exceeded') waited for long enough.

engine=$1 ref=$4 tries=$5
command -v "$engine" >/dev/null 2>&1 || { echo "$engine: not found on this node"; exit 127; }
at= from=
if [ "$engine" = podman ]; then
  at=$CONTAINER_HOST from=CONTAINER_HOST
  [ -n "$at" ] || [ -z "$CONTAINER_CONNECTION" ] || {
    from=CONTAINER_CONNECTION
    at=$(podman system connection list --format '{{.URI}} {{.Name}}' 2>/dev/null | while read -r uri name; do [ "${name%\*}" != "$CONTAINER_CONNECTION" ] || echo "$uri"; done)
  }
elif [ -n "$DOCKER_HOST" ]; then
  at=$DOCKER_HOST from=DOCKER_HOST
elif [ -n "$DOCKER_CONTEXT" ] || grep -qs currentContext "${DOCKER_CONFIG:-$HOME/.docker}/config.json"; then
  at=$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null)
  from="docker's context"
fi
case $at in '' | unix:* | fd:* | /*) ;; *) echo "the engine at $at ($from) would look for this run's folders on its own machine: use one on a unix socket here, or that machine as a node by ssh"; exit 1 ;; esac
show() { case $2 in sha256:*) echo "$1 $2" ;; *) echo "$1 sha256:$2" ;; esac; }
ask() { id=$("$engine" image inspect --format '{{.Id}}' "$1" 2>/dev/null); }
for name in "$2" "$3" "$4"; do
  [ -n "$name" ] && ask "$name" && { show there "$id"; exit 0; }
done
format='{{.Server.Version}}' insecure=
[ "$engine" != podman ] || { format='{{.Client.Version}}' insecure=--tls-verify=false; }
out=$("$engine" version --format "$format" 2>&1) || { printf '%s\n' "$out"; exit 1; }
[ -n "$ref" ] || exit 3
n=1
until out=$("$engine" pull --quiet $insecure "$ref" 2>&1); do
  case $out in
  *'deadline exceeded'* | *Client.Timeout*) n=$tries ;;
  *refused* | *imeout* | *'connection reset'* | *EOF* | *'no route'* | *unreachable* | *toomanyrequests* | *'imed out'*) ;;
  *) n=$tries ;;
  esac
  [ "$n" -lt "$tries" ] || { printf '%s\n' "$out" | tail -n 3; exit 1; }
  sleep $n
  n=$((n + 1))
done
ask "$ref" || { echo "$ref was pulled and is not there"; exit 1; }
show pulled "$id"
