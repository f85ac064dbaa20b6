// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// debianPackages lists each package with one of its files. If the file exists, the
// package is installed.
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
	{"prometheus", prometheusProgram}, // for pods, see prometheusimage.go
}

const caBundle = "/etc/ssl/certs/ca-certificates.crt"

// installPackages installs missing packages with apt-get.
func (c *cluster) installPackages(ctx context.Context) error {
	missing := missingPackages(func(path string) bool { _, err := os.Stat(path); return err == nil })
	if len(missing) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("packages %s are missing and apt-get is not available", strings.Join(missing, ", "))
	}
	c.printf("   apt-get install %s", strings.Join(missing, " "))
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

// install updates the index only if apt does not know the packages, as on a new
// CI image.
func install(ctx context.Context, packages []string) error {
	const lockTimeout = "DPkg::Lock::Timeout=120" // another apt may run, for example after boot
	// At this run level Debian's package scripts do not start the services.
	env := append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1")
	command := append([]string{"install", "-y", "--no-install-recommends", "-o", lockTimeout}, packages...)
	if _, err := runWith(ctx, env, nil, "apt-get", command...); err == nil {
		return nil
	}
	if _, err := runWith(ctx, env, nil, "apt-get", "update"); err != nil {
		return err
	}
	_, err := runWith(ctx, env, nil, "apt-get", command...)
	return err
}
