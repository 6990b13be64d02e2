/* SPDX-License-Identifier: Apache-2.0 */
/* The variables by which docker's and podman's clients find their engine: a job has to start where its image was brought. */
#pragma once

#define ENGINE_ENV                                                                                 \
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",     \
        "CONTAINER_HOST", "CONTAINER_CONNECTION", "CONTAINERS_CONF", "XDG_CONFIG_HOME",            \
        "XDG_DATA_HOME"
