/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces and InfiniBand ports. Source: sysfs-class-net and sysfs-class-infiniband in the kernel's ABI documents. */
#include "base/base.h"

#include "node/facts.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <unistd.h>

#define NET           "/sys/class/net"
#define IB            "/sys/class/infiniband"
#define TYPE_LOOPBACK "772"
#define TEXT_MAX      (64u << 10)

static const char *key_of(struct facts *facts, const char *name, const char *what)
{
    return arena_printf(&facts->arena, "net.%s.%s", name, what);
}

static void say_kind(struct facts *facts, const char *name, const char *folder)
{
    char text[FACTS_TEXT];
    ssize_t len =
        readlink(arena_printf(&facts->arena, "%s/device/driver", folder), text, sizeof(text) - 1);
    const char *kind = "virtual";
    if (len > 0) {
        text[len] = '\0';
        const char *slash = strrchr(text, '/');
        facts_put(facts, key_of(facts, name, "driver"), slash ? slash + 1 : text);
        kind = "physical";
    } else if (fs_is_dir(arena_printf(&facts->arena, "%s/bridge", folder))) {
        kind = "bridge";
    } else if (fs_is_dir(arena_printf(&facts->arena, "%s/bonding", folder))) {
        kind = "bond";
    } else if (facts_line(arena_printf(&facts->arena, "%s/type", folder), text) &&
               strcmp(text, TYPE_LOOPBACK) == 0) {
        kind = "loopback";
    }
    facts_put(facts, key_of(facts, name, "kind"), kind);
}

static const char *addresses_of(struct facts *facts, const struct ifaddrs *all, const char *name)
{
    CLEANUP(strbuf) struct strbuf text = STRBUF(TEXT_MAX);
    for (const struct ifaddrs *at = all; at; at = at->ifa_next) {
        char address[INET6_ADDRSTRLEN];
        const void *bytes = NULL;
        int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
        if (strcmp(at->ifa_name, name) != 0) {
            continue;
        }
        if (family == AF_INET) {
            bytes = &((const struct sockaddr_in *)(const void *)at->ifa_addr)->sin_addr;
        } else if (family == AF_INET6) {
            bytes = &((const struct sockaddr_in6 *)(const void *)at->ifa_addr)->sin6_addr;
        }
        if (bytes && inet_ntop(family, bytes, address, sizeof(address))) {
            strbuf_printf(&text, "%s%s", text.len ? " " : "", address);
        }
    }
    return str_z(&facts->arena, strbuf_str(&text));
}

static void say_interface(struct facts *facts, const struct ifaddrs *all, const char *name)
{
    static const char *const FILES[][2] = {
        {"index", "ifindex"}, {"state", "operstate"}, {"mtu", "mtu"}, {"numa", "device/numa_node"}};
    const char *folder = arena_printf(&facts->arena, NET "/%s", name);
    char speed[FACTS_TEXT];
    if (!fs_exists(arena_printf(&facts->arena, "%s/ifindex", folder))) {
        return;
    }
    for (size_t idx = 0; idx < ARRAY_LEN(FILES); idx++) {
        const char *path = arena_printf(&facts->arena, "%s/%s", folder, FILES[idx][1]);
        if (access(path, R_OK) == 0) {
            facts_file(facts, key_of(facts, name, FILES[idx][0]), path);
        }
    }
    (void)facts_line(arena_printf(&facts->arena, "%s/speed", folder), speed);
    facts_say(facts, key_of(facts, name, "speed_mbit"), speed[0] == '-' ? "" : speed,
              "it does not say");
    say_kind(facts, name, folder);
    facts_put(facts, key_of(facts, name, "address"), addresses_of(facts, all, name));
}

static void say_infiniband(struct facts *facts)
{
    struct fs_names devices = facts_names(facts, IB, "");
    size_t n = 0;
    for (size_t at = 0; at < devices.n; at++) {
        const char *folder = arena_printf(&facts->arena, IB "/%s/ports", devices.items[at]);
        struct fs_names ports = facts_names(facts, folder, "");
        for (size_t idx = 0; idx < ports.n; idx++) {
            static const char *const WHAT[] = {"state", "rate", "link_layer"};
            for (size_t what = 0; what < ARRAY_LEN(WHAT); what++) {
                facts_file(
                    facts,
                    arena_printf(&facts->arena, "ib.%s.%s.%s", devices.items[at], ports.items[idx],
                                 WHAT[what]),
                    arena_printf(&facts->arena, "%s/%s/%s", folder, ports.items[idx], WHAT[what]));
            }
            n++;
        }
    }
    facts_printf(facts, "ib.ports", "%zu", n);
    facts_put(facts, "ib.device", fs_is_dir("/dev/infiniband") ? "1" : "0");
}

void facts_of_network(struct facts *facts)
{
    struct fs_names names = facts_names(facts, NET, "");
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) < 0) {
        all = NULL;
    }
    for (size_t idx = 0; idx < names.n; idx++) {
        say_interface(facts, all, names.items[idx]);
    }
    if (all) {
        freeifaddrs(all);
    }
    say_infiniband(facts);
}
