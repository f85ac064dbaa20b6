// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debianPackages maps each package to a file that it brings: the check that it is there.
var debianPackages = [][2]string{
	{"containerd", "/usr/bin/containerd"},
	{"runc", "/usr/sbin/runc"},
	{"containernetworking-plugins", "/usr/lib/cni/ptp"},
	{"nftables", "/usr/sbin/nft"},
	{"conntrack", "/usr/sbin/conntrack"}, // kube-proxy clears stale UDP entries with it
	{"busybox-static", "/bin/busybox"},
	{"iproute2", "/sbin/ip"},
	{"util-linux", "/usr/bin/nsenter"},
	{"mount", "/bin/mount"}, // kubelet mounts Secrets with it
	{"ca-certificates", caBundle},
}

const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// installPackages asks apt for what is missing.
func (c *cluster) installPackages(ctx context.Context) error {
	missing := missingPackages(func(path string) bool { _, err := os.Stat(path); return err == nil })
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("missing %s, and there is no apt-get to install them with", strings.Join(missing, ", "))
	}
	c.say("   apt-get install %s", strings.Join(missing, " "))
	return install(ctx, missing)
}

func missingPackages(exists func(path string) bool) []string {
	var missing []string
	for _, p := range debianPackages {
		if !exists(p[1]) {
			missing = append(missing, p[0])
		}
	}
	return missing
}

// install fetches an index only when apt does not know the packages, as on a fresh CI image.
func install(ctx context.Context, packages []string) error {
	const patience = "DPkg::Lock::Timeout=120" // another apt may run, as on a machine that has just started
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	command := append([]string{"install", "-y", "--no-install-recommends", "-o", patience}, packages...)
	if _, err := runWith(ctx, env, nil, "apt-get", command...); err == nil {
		return nil
	}
	if _, err := runWith(ctx, env, nil, "apt-get", "update"); err != nil {
		return err
	}
	_, err := runWith(ctx, env, nil, "apt-get", command...)
	return err
}
