// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// localNodes is the number of simulated nodes of runControlPlane.
const localNodes = 10

// runControlPlane runs etcd, the API server, controller manager, scheduler and
// kwok on a loopback address until stdin or ctx ends. It needs no root. Webhooks
// are called through a proxy that the caller serves. When everything is Ready, it
// prints one line of JSON: the paths that the caller needs.
func (c *cluster) runControlPlane(ctx context.Context, dir string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the control plane needs Linux, not %s", runtime.GOOS)
	}
	address, err := freeLoopback(ctx)
	if err != nil {
		return err
	}
	if c.state, err = filepath.Abs(dir); err != nil {
		return err
	}
	c.controlPlaneOnly = true
	c.instance = instance{name: "controlplane", loopback: address, nodeAddress: address}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	defer c.endProcesses()
	if err := runGraph(ctx, c.progress, c.localTasks()); err != nil {
		return err
	}
	ready, err := json.Marshal(map[string]string{
		"kubeconfig": c.adminKubeconfig(), "proxy": c.webhookProxy(), "kubectl": c.binary(kubernetes, "kubectl"),
	})
	if err != nil {
		return err
	}
	fmt.Println(string(ready))
	<-ctx.Done()
	return nil
}

func (c *cluster) localTasks() []task {
	build := func(f family, needs ...string) task {
		return task{name: "build " + f.name, needs: needs, heavy: true, run: func(ctx context.Context) error { return c.build(ctx, f) }}
	}
	return []task{
		{name: "certificates", run: func(context.Context) error { return c.makePKI() }},
		build(etcd),
		build(kubernetes, "build etcd"),
		build(kwok, "build kubernetes"),
		{name: "etcd", needs: []string{"build etcd"}, run: c.startEtcd},
		{name: "API server", needs: []string{"build kubernetes", "etcd", "certificates"}, run: c.startAPIServer},
		{name: "controllers", needs: []string{"API server"}, run: c.startControllers},
		{name: "simulated nodes", needs: []string{"build kwok", "API server"}, run: func(ctx context.Context) error {
			if err := c.startKwok(ctx); err != nil {
				return err
			}
			return c.scaleNodes(ctx, localNodes)
		}},
	}
}

// endProcesses kills the processes of runControlPlane, whose data is temporary.
func (c *cluster) endProcesses() {
	for _, p := range c.processes() {
		for p.running() {
			_ = signalTo(p.PID, syscall.SIGKILL)
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// freeLoopback returns a loopback address whose ports are free. Each control
// plane has its own address, so that all can use the same ports.
func freeLoopback(ctx context.Context) (string, error) {
	var last error
	for range 20 {
		address := fmt.Sprintf("127.%d.%d.%d", 64+rand.IntN(64), rand.IntN(256), 1+rand.IntN(254))
		if last = portsFree(ctx, address, "2379", "2380", "2381", "6443", "10257", "10259"); last == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("find a free loopback address: %w", last)
}

func portsFree(ctx context.Context, address string, ports ...string) error {
	for _, port := range ports {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(address, port))
		if err != nil {
			return err
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// webhookProxy is the Unix socket of the proxy through which the API server calls
// webhooks.
func (c *cluster) webhookProxy() string { return c.in("webhooks.sock") }

// flagsByClusterKind returns the flags of the API server that depend on the kind of
// cluster.
func (c *cluster) flagsByClusterKind() ([]string, error) {
	if !c.controlPlaneOnly {
		return []string{"--bind-address=0.0.0.0"}, nil
	}
	config := fmt.Sprintf(egressSelector, c.webhookProxy())
	return []string{
		"--bind-address=" + c.loopback, "--egress-selector-config-file=" + c.in("egress-selector.yaml"),
		"--endpoint-reconciler-type=none", // Endpoints cannot have a loopback address
	}, writeFile(c.in("egress-selector.yaml"), []byte(config), 0o644)
}

const egressSelector = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection: {proxyProtocol: HTTPConnect, transport: {uds: {udsName: %s}}}
`
