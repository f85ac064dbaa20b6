// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

var errNotUp = errors.New("the cluster is not up: run make up")

// status prints processes, health and paths. It returns an error if the cluster
// is not up, and prints nothing if it has no process.
func (c *cluster) status(ctx context.Context, out io.Writer) error {
	line := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%-26s %s\n", name, fmt.Sprintf(format, args...))
	}
	up, all := true, c.processes()
	if len(all) == 0 {
		return errNotUp
	}
	for _, p := range all {
		if p.running() {
			line(p.Name, "running, pid %d, log %s", p.PID, c.log(p.Name))
		} else {
			line(p.Name, "ENDED, log %s", c.log(p.Name))
			up = false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := c.healthy(ctx); err != nil {
		line("health", "%v", err)
		up = false
	} else {
		parts := map[bool]string{true: "API server, node %s and Knative are ready", false: "API server and node %s are ready; without Knative"}
		line("health", parts[c.hasKnative()], c.nodeName())
	}
	if simulated, err := c.simulatedNodes(ctx); err == nil {
		line("nodes", "1 real, %d simulated", len(simulated))
	}
	for _, f := range families {
		if v, err := c.version(f); err == nil {
			line(f.name, "%s", v)
		}
	}
	line("kubeconfig", "%s", c.adminKubeconfig())
	line("registry", "%s inside, %s from the host", registryInside, c.registryHost())
	line("ingress", "http://%s:8080 public, http://%s:8081 inside", c.nodeAddress, c.nodeAddress)
	line("audit log", "%s", c.auditLog())
	line("network namespace", "%s (present: %v)", c.netnsPath(), c.namespaceFileExists())
	line("state", "%s", c.state)
	line("cache", "%s", c.cache)
	if !up {
		return errNotUp
	}
	return nil
}
