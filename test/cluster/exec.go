// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// koEnv is what ko needs to build on our base image and push to our registry. Its cache
// holds one binary per import path, so each working tree has its own.
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

// execInside replaces this process by a command in the namespace: same working folder,
// same terminal, its signals and its exit code are the command's. There, Services have
// their addresses and names: the cluster's DNS is /etc/resolv.conf, in a mount namespace
// that ends with the command.
func (c *cluster) execInside(command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("exec needs a command: exec -- kubectl get pods -A")
	}
	if !c.namespaceFileExists() {
		return fmt.Errorf("the cluster is not up")
	}
	path := filepath.Dir(c.binary(kubernetes, "kubectl")) + ":" + filepath.Dir(c.binary(ko, "ko")) + ":" + os.Getenv("PATH")
	env := append(c.koEnv(), "KUBECONFIG="+c.adminKubeconfig(), "PATH="+path)
	env = append(env, "GOPROXY=off") // there is no way to it: say so at once when a module is missing
	script := `mount --bind "$0" /etc/resolv.conf && exec "$@"`
	args := c.inside("unshare", "--mount", "--propagation=private", "--", "/bin/sh", "-c", script, c.in("resolv.conf"))
	c.used(c.koCache())
	nsenter, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(nsenter, append(args, command...), env)
}
