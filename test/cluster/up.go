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

// up brings the cluster up, or shows that it is up: one without Knative stays so until it
// is brought down.
func (c *cluster) up(ctx context.Context, nodes int, withoutKnative bool) error {
	if _, err := c.version(kubernetes); err != nil {
		return err
	}
	if c.repair(ctx) {
		c.say("already up")
		return c.scaleNodes(ctx, nodes)
	}
	if left := c.anythingLeft(); len(left) > 0 {
		c.say("removing what an earlier cluster left: %s", strings.Join(firstArgs(left), ", "))
		if err := c.down(ctx); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(c.in("log"), 0o755); err != nil {
		return err
	}
	tasks := c.bringUp(nodes)
	if withoutKnative {
		tasks = without(tasks, ofKnative...)
		if err := writeFile(c.withoutKnative(), nil, 0o644); err != nil {
			return err
		}
	}
	if err := runGraph(ctx, c.progress, tasks); err != nil {
		return fmt.Errorf("%w\nlogs: %s; \"up\" starts anew, \"down\" removes what is there", err, c.in("log"))
	}
	data, err := json.Marshal(map[string]any{"since": c.now().UTC().Format(time.RFC3339)})
	if err != nil {
		return err
	}
	if err := writeFile(c.ready(), data, 0o644); err != nil {
		return err
	}
	c.say("up: export KUBECONFIG=%s", c.adminKubeconfig())
	return nil
}

// ofKnative are the tasks that only Knative needs.
var ofKnative = []string{"Knative images", "Knative manifests", "build traefik", "ingress", "Knative Ready"}

// bringUp is the order of things. Builds are heavy: they take turns, in the order in which
// the rest needs them, while what is built already starts.
func (c *cluster) bringUp(nodes int) []task {
	plain := func(f func() error) func(context.Context) error {
		return func(context.Context) error { return f() }
	}
	build := func(f family, needs ...string) task {
		return task{name: "build " + f.name, needs: needs, heavy: true, run: func(ctx context.Context) error { return c.build(ctx, f) }}
	}
	return []task{
		{name: "packages", run: c.installPackages},
		{name: "trim the cache", run: c.trimCache},
		{name: "note the host's settings", needs: []string{"packages", "trim the cache"}, run: plain(c.markHost)},
		{name: "network namespace", needs: []string{"note the host's settings"}, run: c.makeNamespace},
		{name: "cgroups", needs: []string{"note the host's settings"}, run: plain(c.makeCgroups)},
		{name: "certificates", needs: []string{"packages"}, run: plain(c.makePKI)},
		{name: "registry", needs: []string{"network namespace", "cgroups"}, run: c.startRegistry},
		{name: "base images", needs: []string{"registry"}, run: c.pushBaseImages},
		{name: "containerd", needs: []string{"network namespace", "cgroups"}, run: c.startContainerd},
		build(etcd, "trim the cache"),
		build(kubernetes, "build etcd"),
		{name: "etcd", needs: []string{"build etcd", "network namespace", "cgroups"}, run: c.startEtcd},
		{name: "API server", needs: []string{"build kubernetes", "etcd", "certificates"}, run: c.startAPIServer},
		{name: "controllers", needs: []string{"API server"}, run: c.startControllers},
		{name: "kubelet", needs: []string{"API server", "containerd"}, run: c.startKubelet},
		{name: "users", needs: []string{"API server"}, run: c.bindUsers},
		build(ko, "build kubernetes"),
		{name: "Knative images", needs: []string{"build ko", "base images"}, heavy: true, run: c.resolveKnative},
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

// bindUsers makes the user of measurements a cluster-admin by RBAC, and not by its group.
func (c *cluster) bindUsers(ctx context.Context) error {
	return c.apply(ctx, "breakwater-users", []byte(userBindings))
}

const userBindings = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: breakwater-load}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "breakwater:load"}]
`

// repair reports whether a complete cluster runs. When some of its processes have ended it
// starts those again; when that does not help, the caller begins anew.
func (c *cluster) repair(ctx context.Context) bool {
	if _, err := os.Stat(c.ready()); err != nil || !c.namespaceWorks(ctx) {
		return false
	}
	var dead []process
	alive, tell := 0, c.now()
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
		c.say("%s has ended; starting it again", p.Name)
		if err := c.start(ctx, p); err != nil {
			c.say("%v", err)
			return false
		}
	}
	// Patience: to begin anew costs all that is in the cluster, and a busy machine is slow.
	err := waiting{what: "healthy cluster", deadline: 2 * time.Minute}.until(ctx, func(ctx context.Context) error {
		err := c.healthy(ctx)
		if err != nil && c.now().After(tell) {
			c.say("waiting for a healthy cluster: %v", err)
			tell = c.now().Add(15 * time.Second)
		}
		return err
	})
	if err != nil {
		c.say("%v", err)
	}
	return err == nil
}

// healthy asks the parts that others depend on.
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
