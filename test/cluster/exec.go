// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// koEnv is the environment with which ko builds on our base image and pushes to
// our registry. ko caches one binary per import path, so each working tree has
// its own cache.
func (c *cluster) koEnv() []string {
	return append(cleanEnv(os.Environ()),
		"KO_DOCKER_REPO="+registryInside,
		"KO_DEFAULTBASEIMAGE="+registryInside+"/base:latest",
		"KOCACHE="+c.koCache(),
		"CGO_ENABLED=0",
	)
}

func (c *cluster) koCache() string {
	tree := sha256.Sum256([]byte(c.source))
	return c.cached("ko", fmt.Sprintf("%x", tree[:4]))
}

// execInside replaces this process by a command in the network namespace, with
// the same working folder and terminal. The command reaches Services by address
// and name: its mount namespace has the cluster's DNS in /etc/resolv.conf.
func (c *cluster) execInside(command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("exec needs a command, for example: exec -- kubectl get pods -A")
	}
	if !c.namespaceFileExists() {
		return errNotUp
	}
	path := []string{c.binary(kubernetes, ""), c.binary(ko, ""), c.binary(kn, ""), os.Getenv("PATH")}
	env := append(c.koEnv(), "KUBECONFIG="+c.adminKubeconfig(), "PATH="+strings.Join(path, ":"))
	env = append(env, "GOPROXY=off") // unreachable: fail at once if a module is missing
	script := `mount --bind "$0" /etc/resolv.conf && exec "$@"`
	args := c.inside("unshare", "--mount", "--propagation=private", "--", "/bin/sh", "-c", script, c.in("resolv.conf"))
	c.used(c.koCache())
	nsenter, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(nsenter, append(args, command...), env)
}
