// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// koEnv is what ko needs to build on our base image and push to our registry.
func (c *cluster) koEnv() []string {
	return append(cleanEnv(os.Environ()),
		"KO_DOCKER_REPO="+registryInside,
		"KO_DEFAULTBASEIMAGE="+registryInside+"/base:latest",
		"KOCACHE="+c.cached("ko"),
		"CGO_ENABLED=0",
	)
}

// execInside replaces this process by a command in the namespace. There, Services have
// their addresses and names: the cluster's DNS is /etc/resolv.conf, in a mount namespace
// that ends with the command.
func (c *cluster) execInside(command []string) error {
	if len(command) == 0 {
		return fmt.Errorf("exec needs a command: exec -- kubectl get pods -A")
	}
	if !namespaceFileExists() {
		return fmt.Errorf("the cluster is not up")
	}
	path := filepath.Dir(c.binary(kubernetes, "kubectl")) + ":" + filepath.Dir(c.binary(ko, "ko")) + ":" + os.Getenv("PATH")
	env := append(c.koEnv(), "KUBECONFIG="+c.adminKubeconfig(), "PATH="+path)
	script := `mount --bind "$0" /etc/resolv.conf && exec "$@"`
	args := inside("unshare", "--mount", "--propagation=private", "--", "/bin/sh", "-c", script, c.in("resolv.conf"))
	nsenter, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return syscall.Exec(nsenter, append(args, command...), env)
}
