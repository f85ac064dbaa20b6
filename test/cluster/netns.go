// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
)

// makeNamespace creates the network namespace and a link pair to the host.
//
// No packet leaves it: only the address range of Services has a route, and
// forwarding is off for the host's link. The route exists because the kernel
// needs one before kube-proxy's rules rewrite the address.
func (c *cluster) makeNamespace(ctx context.Context) error {
	if err := c.addressFree(); err != nil {
		return err
	}
	steps := [][]string{
		{"ip", "netns", "add", c.name},
		{"ip", "link", "add", c.hostLink, "type", "veth", "peer", "name", c.clusterLink, "netns", c.name},
		{"ip", "addr", "add", c.hostAddress + linkBits, "dev", c.hostLink},
		{"ip", "link", "set", c.hostLink, "up"},
		c.inside("ip", "link", "set", "lo", "up"),
		c.inside("ip", "addr", "add", c.nodeAddress+linkBits, "dev", c.clusterLink),
		c.inside("ip", "link", "set", c.clusterLink, "up"),
		c.inside("ip", "route", "add", serviceCIDR, "via", c.hostAddress),
		// /proc/sys/net shows the values of the namespace of the process that opens it.
		c.inside("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"),
	}
	for _, s := range steps {
		if _, err := run(ctx, s[0], s[1:]...); err != nil {
			return err
		}
	}
	forwarding := "/proc/sys/net/ipv4/conf/" + c.hostLink + "/forwarding"
	if err := os.WriteFile(forwarding, []byte("0"), 0o644); err != nil {
		return fmt.Errorf("stop forwarding from %s: %w", c.hostLink, err)
	}
	return nil
}

// addressFree returns an error if an interface has the address, for example
// that of another instance.
func (c *cluster) addressFree() error {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return err
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.Contains(net.ParseIP(c.nodeAddress)) {
			return fmt.Errorf("address %s is in %s, which this machine already uses: choose another BREAKWATER_NAME", c.nodeAddress, n)
		}
	}
	return nil
}

// inside prefixes a command so that it runs in the namespace. It uses nsenter,
// because "ip netns exec" mounts another /sys, in which kubelet finds no
// cgroups.
func (c *cluster) inside(command ...string) []string {
	return append([]string{"nsenter", "--net=" + c.netnsPath(), "--"}, command...)
}

// removeNamespace deletes the namespace with its links and nft rules.
func (c *cluster) removeNamespace(ctx context.Context) error {
	var errs []error
	if linkExists(c.hostLink) {
		if _, err := run(ctx, "ip", "link", "del", c.hostLink); err != nil {
			errs = append(errs, err)
		}
	}
	if c.namespaceFileExists() {
		if _, err := run(ctx, "ip", "netns", "del", c.name); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func linkExists(name string) bool {
	_, err := os.Stat("/sys/class/net/" + name)
	return err == nil
}

func (c *cluster) namespaceFileExists() bool {
	_, err := os.Stat(c.netnsPath())
	return err == nil
}

// namespaceWorks reports whether the namespace is mounted on its file; a
// leftover file has no mount.
func (c *cluster) namespaceWorks(ctx context.Context) bool {
	command := c.inside("true")
	return c.namespaceFileExists() && exec.CommandContext(ctx, command[0], command[1:]...).Run() == nil
}
