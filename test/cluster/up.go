// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// up starts the cluster, or reports that it is up. A cluster without Knative
// stays without it until "down".
func (c *cluster) up(ctx context.Context, nodes int, withoutKnative bool) error {
	if _, err := c.version(kubernetes); err != nil {
		return err
	}
	if c.repair(ctx) {
		c.printf("already up")
		if err := c.makeVolume(ctx); err != nil { // clusters of older versions lack it
			return err
		}
		return c.scaleNodes(ctx, nodes)
	}
	if left := c.leftovers(); len(left) > 0 {
		c.printf("removing leftovers of an earlier cluster: %s", strings.Join(firstArgs(left), ", "))
		if err := c.down(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.in("log"), 0o755); err != nil {
		return err
	}
	tasks := c.bringUp(nodes)
	if withoutKnative {
		tasks = without(tasks, knativeTasks...)
		if err := writeFile(c.withoutKnativeFile(), nil, 0o644); err != nil {
			return err
		}
	}
	if err := runGraph(ctx, c.progress, tasks); err != nil {
		return fmt.Errorf("%w\nlogs: %s; run make up to start again or make down to clean up", err, c.in("log"))
	}
	data, err := json.Marshal(map[string]any{"since": c.now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	if err := writeFile(c.readyFile(), data, 0o644); err != nil {
		return err
	}
	c.printf("up: export KUBECONFIG=%s", c.adminKubeconfig())
	return nil
}

// knativeTasks are the names of the tasks that only Knative needs.
var knativeTasks = []string{"Knative images", "Knative manifests", "build traefik", "ingress", "Knative Ready"}

// bringUp returns the tasks of "up". Builds are heavy and run one at a time, in
// the order in which other tasks need them, while built programs already start.
func (c *cluster) bringUp(nodes int) []task {
	plain := func(f func() error) func(context.Context) error {
		return func(context.Context) error { return f() }
	}
	build := c.buildTask
	return []task{
		{name: "packages", run: c.installPackages},
		{name: "trim cache", run: c.trimCache},
		{name: "record host settings", needs: []string{"packages", "trim cache"}, run: plain(c.markHost)},
		{name: "network namespace", needs: []string{"record host settings"}, run: c.makeNamespace},
		{name: "cgroups", needs: []string{"record host settings"}, run: plain(c.makeCgroups)},
		{name: "certificates", needs: []string{"packages"}, run: plain(c.makePKI)},
		{name: "registry", needs: []string{"network namespace", "cgroups"}, run: c.startRegistry},
		{name: "base images", needs: []string{"registry"}, run: c.pushBaseImages},
		{name: "CNI plugins", needs: []string{"packages"}, run: c.makeCNIPlugins},
		{name: "containerd", needs: []string{"network namespace", "cgroups", "CNI plugins"}, run: c.startContainerd},
		build(etcd, "trim cache"),
		build(kubernetes, "build etcd"),
		{name: "etcd", needs: []string{"build etcd", "network namespace", "cgroups"}, run: c.startEtcd},
		{name: "API server", needs: []string{"build kubernetes", "etcd", "certificates"}, run: c.startAPIServer},
		{name: "controllers", needs: []string{"API server"}, run: c.startControllers},
		{name: "kubelet", needs: []string{"API server", "containerd"}, run: c.startKubelet},
		{name: "users", needs: []string{"API server"}, run: c.bindUsers},
		{name: "volume", needs: []string{"API server"}, run: c.makeVolume},
		build(ko, "build kubernetes"),
		{name: "Knative images", needs: []string{"build ko", "base images"}, heavy: true, takes: c.buildTime(knative), run: c.resolveKnative},
		{name: "Knative manifests", needs: []string{"Knative images", "controllers"}, run: c.applyKnative},
		build(coredns, "Knative images"),
		{name: "DNS", needs: []string{"build coredns", "API server"}, run: c.startDNS},
		build(kwok, "build coredns"),
		{name: "simulated nodes", needs: []string{"build kwok", "controllers"}, run: func(ctx context.Context) error {
			if err := c.startKwok(ctx); err != nil {
				return err
			}
			return c.scaleNodes(ctx, nodes)
		}},
		build(traefik, "build kwok"),
		{name: "node Ready", needs: []string{"kubelet", "base images"}, run: c.awaitNode},
		{name: "ingress", needs: []string{"build traefik", "Knative manifests"}, run: c.startIngress},
		{name: "Knative Ready", needs: []string{"Knative manifests", "DNS", "node Ready"}, run: c.awaitKnative},
	}
}

// bindUsers makes user "load" a cluster-admin by RBAC, not by its group, and lets the CNI plugin
// write annotations of pods.
func (c *cluster) bindUsers(ctx context.Context) error {
	return c.apply(ctx, "breakwater-users", []byte(userBindings))
}

const userBindings = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: breakwater-load}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "breakwater:load"}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: breakwater-announce}
rules: [{apiGroups: [""], resources: [pods/status], verbs: [patch]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: breakwater-announce}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: breakwater-announce}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + announcer + `}]
`

// repair reports whether a complete cluster is running. It restarts processes
// that have ended; if the cluster does not become healthy, the caller replaces
// it.
func (c *cluster) repair(ctx context.Context) bool {
	if _, err := os.Stat(c.readyFile()); err != nil || !c.namespaceWorks(ctx) {
		return false
	}
	var dead []process
	alive, nextMessage := 0, c.now()
	for _, p := range c.processes() {
		if p.running() {
			alive++
		} else {
			dead = append(dead, p)
		}
	}
	if alive == 0 {
		return false
	}
	for _, p := range dead {
		c.printf("%s is not running; restarting it", p.Name)
		if err := c.start(ctx, p); err != nil {
			c.printf("%v", err)
			return false
		}
	}
	// Wait long: a replacement loses all objects of the cluster, and a busy machine is slow.
	err := waiting{what: "the cluster to be healthy", deadline: 2 * time.Minute}.until(ctx, func(ctx context.Context) error {
		err := c.healthy(ctx)
		if err != nil && c.now().After(nextMessage) {
			c.printf("waiting for a healthy cluster: %v", err)
			nextMessage = c.now().Add(15 * time.Second)
		}
		return err
	})
	if err != nil {
		c.printf("%v", err)
	}
	return err == nil
}

// healthy checks the API server, the node and Knative.
func (c *cluster) healthy(ctx context.Context) error {
	if err := c.get(ctx, "/readyz", nil); err != nil {
		return err
	}
	var n node
	if err := c.get(ctx, "/api/v1/nodes/"+c.nodeName(), &n); err != nil {
		return err
	}
	if !n.ready() {
		return fmt.Errorf("node is not Ready: %s", n.message())
	}
	if !c.hasKnative() {
		return nil
	}
	return c.deploymentsReady(ctx)
}
