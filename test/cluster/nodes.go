// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"
)

// node has the fields of a Node that the tool reads.
type node struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Status struct {
		Conditions []struct {
			Type, Status, Message string
		} `json:"conditions"`
	} `json:"status"`
}

func (n node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True"
		}
	}
	return false
}

func (n node) message() string {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Message
		}
	}
	return "no Ready condition yet"
}

// startKwok simulates the nodes that carry its annotation, and the Pods on them.
func (c *cluster) startKwok(ctx context.Context) error {
	stages, err := c.kwokStages(ctx)
	if err != nil {
		return err
	}
	return c.start(ctx, process{Name: "kwok", Command: []string{c.binary(kwok, "kwok"),
		"--kubeconfig=" + c.kubeconfig("kwok"), "--config=" + stages,
		"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
		"--node-ip=" + c.nodeAddress, "--cidr=10.2.0.0/16", "--node-lease-duration-seconds=40",
	}})
}

// kwokStages returns the path of the joined stages of kwok's default
// installation: a node becomes Ready; a Pod runs, completes and is deleted.
func (c *cluster) kwokStages(ctx context.Context) (string, error) {
	key, err := c.key(kwok)
	if err != nil {
		return "", err
	}
	path := c.cached("bin", key+"-stages.yaml")
	if _, err := os.Stat(path); err == nil {
		c.used(path)
		return path, nil
	}
	module, err := c.moduleCache(ctx, kwok, kwok.module)
	if err != nil {
		return "", err
	}
	var joined strings.Builder
	for _, dir := range []string{"node/fast", "node/heartbeat-with-lease", "pod/fast"} {
		files, _ := filepath.Glob(filepath.Join(module, "kustomize", "stage", filepath.FromSlash(dir), "*.yaml"))
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			if strings.Contains(string(data), "kind: Stage") {
				joined.WriteString("---\n" + string(data) + "\n")
			}
		}
	}
	if joined.Len() == 0 {
		return "", fmt.Errorf("no stages in %s", module)
	}
	return path, writeFile(path, []byte(joined.String()), 0o644)
}

// scaleNodes creates simulated nodes or removes the last ones until there are
// count.
func (c *cluster) scaleNodes(ctx context.Context, count int) error {
	have, err := c.simulatedNodes(ctx)
	if err != nil {
		return err
	}
	want := map[string]bool{}
	for i := range count {
		name := fmt.Sprintf("simulated-%04d", i)
		want[name] = true
		if _, ok := have[name]; !ok {
			if err := c.call(ctx, http.MethodPost, "/api/v1/nodes", simulatedNode(name), nil); err != nil {
				return err
			}
		}
	}
	for name := range have {
		if !want[name] {
			if err := c.call(ctx, http.MethodDelete, "/api/v1/nodes/"+name, nil, nil); err != nil && !errors.Is(err, errNotFound) {
				return err
			}
		}
	}
	deadline := time.Minute + time.Duration(count)*100*time.Millisecond
	return waiting{what: fmt.Sprintf("%d simulated nodes to be Ready", count), log: c.log("kwok"), deadline: deadline, every: 300 * time.Millisecond, alive: c.check("kwok")}.
		until(ctx, func(ctx context.Context) error {
			now, err := c.simulatedNodes(ctx)
			if err != nil {
				return err
			}
			var late []string
			for name, n := range now {
				if !n.ready() {
					late = append(late, name)
				}
			}
			if len(now) != count || len(late) > 0 {
				sort.Strings(late)
				return fmt.Errorf("%d nodes exist, not Ready: %s", len(now), strings.Join(firstArgs(late), ", "))
			}
			return nil
		})
}

func (c *cluster) simulatedNodes(ctx context.Context) (map[string]node, error) {
	var list struct{ Items []node }
	if err := c.get(ctx, "/api/v1/nodes?labelSelector=type%3Dkwok", &list); err != nil {
		return nil, err
	}
	nodes := map[string]node{}
	for _, n := range list.Items {
		nodes[n.Metadata.Name] = n
	}
	return nodes, nil
}

// simulatedNode is tainted, because its Pods have no containers. Only Pods of
// scale tests tolerate the taint.
func simulatedNode(name string) map[string]any {
	room := map[string]string{"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "100Gi"}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]string{"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
			"labels": map[string]string{"type": "kwok", "kubernetes.io/hostname": name, "kubernetes.io/role": "agent",
				"kubernetes.io/os": "linux", "kubernetes.io/arch": goarch},
		},
		"spec": map[string]any{
			"taints": []map[string]string{{"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}},
		},
		"status": map[string]any{"capacity": room, "allocatable": room, "phase": "Running"},
	}
}
