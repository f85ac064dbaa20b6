// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// makeNamespace makes the network namespace and a pair of links to the host.
//
// Nothing leaves it: only the address range of Services has a route, and the host does
// not forward what arrives on its end, whatever its own setting is. That route exists
// because the kernel asks for one before kube-proxy's rules may rewrite the address.
func (c *cluster) makeNamespace(ctx context.Context) error {
	steps := [][]string{
		{"ip", "netns", "add", namespace},
		{"ip", "link", "add", hostLink, "type", "veth", "peer", "name", clusterLink, "netns", namespace},
		{"ip", "addr", "add", hostAddress + linkBits, "dev", hostLink},
		{"ip", "link", "set", hostLink, "up"},
		inside("ip", "link", "set", "lo", "up"),
		inside("ip", "addr", "add", nodeAddress+linkBits, "dev", clusterLink),
		inside("ip", "link", "set", clusterLink, "up"),
		inside("ip", "route", "add", serviceCIDR, "via", hostAddress),
		// /proc/sys/net shows the values of the namespace of the process that opens it.
		inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
	}
	for _, s := range steps {
		if _, err := run(ctx, s[0], s[1:]...); err != nil {
			return err
		}
	}
	forwarding := "/proc/sys/net/ipv4/conf/" + hostLink + "/forwarding"
	if err := os.WriteFile(forwarding, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("stop forwarding from %s: %w", hostLink, err)
	}
	return nil
}

// inside prefixes a command so that it runs in the namespace. nsenter and not "ip netns
// exec": the latter mounts another /sys, where kubelet finds no cgroups.
func inside(command ...string) []string {
	return append([]string{"nsenter", "--net=" + netnsPath(), "--"}, command...)
}

// removeNamespace deletes the namespace, and with it its links and nft rules.
func removeNamespace(ctx context.Context) error {
	var errs []error
	if linkExists(hostLink) {
		if _, err := run(ctx, "ip", "link", "del", hostLink); err != nil {
			errs = append(errs, err)
		}
	}
	if namespaceFileExists() {
		if _, err := run(ctx, "ip", "netns", "del", namespace); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func namespaceFileExists() bool {
	_, err := os.Stat(netnsPath())
	return err == nil
}

// namespaceWorks tells a live namespace from a leftover file that nothing is mounted on.
func namespaceWorks(ctx context.Context) bool {
	command := inside("true")
	return namespaceFileExists() && exec.CommandContext(ctx, command[0], command[1:]...).Run() == nil
}
