// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// announcer is the user who announces the addresses of pods, announcement the annotation.
	announcer    = "breakwater-announce"
	announcement = "test.breakwater.dev/pod-ips"
	// packagedPlugins is the folder of the CNI plugins of Debian.
	packagedPlugins = "/usr/lib/cni"
)

// makeCNIPlugins makes a folder with links to the packaged plugins that the cluster uses, and
// with plugin announce.
func (c *cluster) makeCNIPlugins(ctx context.Context) error {
	folder := c.in("cni-plugins")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, name := range []string{"host-local", "loopback", "ptp"} {
		link := filepath.Join(folder, name)
		if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(filepath.Join(packagedPlugins, name), link); err != nil {
			return err
		}
	}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	_, err := runWith(ctx, env, nil, "nice", "go", "-C", c.source, "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(folder, "announce"), "./announce")
	return err
}
