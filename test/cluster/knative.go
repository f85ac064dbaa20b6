// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

//go:embed manifests/knative-settings.yaml
var knativeSettings string

// knativeFiles are the manifests taken from the modules' zips. They omit
// manifests with external images, autoscaling of webhooks (there is no metrics
// API), and Eventing's sinks and sources, which Breakwater does not use. The
// CRDs of the latter stay, because the controller watches them.
//
// Module zips contain no symbolic links, so Serving's networking CRDs come from
// knative.dev/networking.
var knativeFiles = []struct{ module, pattern string }{
	{"knative.dev/eventing", "config/core/*.yaml"},
	{"knative.dev/eventing", "config/core/configmaps/*.yaml"},
	{"knative.dev/eventing", "config/core/resources/*.yaml"},
	{"knative.dev/eventing", "config/core/roles/*.yaml"},
	{"knative.dev/eventing", "config/core/webhooks/*.yaml"},
	{"knative.dev/eventing", "config/core/deployments/controller.yaml"},
	{"knative.dev/eventing", "config/core/deployments/webhook.yaml"},
	{"knative.dev/eventing", "config/core/deployments/pingsource-mt-adapter.yaml"}, // replicas 0
	// eventing-controller waits for two ConfigMaps of this folder.
	{"knative.dev/eventing", "third_party/eventing-integrations-latest/*.yaml"},
	{"knative.dev/eventing", "config/channels/in-memory-channel/*.yaml"},
	{"knative.dev/eventing", "config/channels/in-memory-channel/*/*.yaml"},
	{"knative.dev/eventing", "config/brokers/mt-channel-broker/roles/*.yaml"},
	{"knative.dev/eventing", "config/brokers/mt-channel-broker/deployments/broker-*.yaml"},
	{"knative.dev/eventing", "config/brokers/mt-channel-broker/deployments/controller.yaml"},
	{"knative.dev/networking", "config/*.yaml"},
	{"knative.dev/caching", "config/image.yaml"},
	{"knative.dev/serving", "config/core/*.yaml"},
	{"knative.dev/serving", "config/core/configmaps/*.yaml"},
	{"knative.dev/serving", "config/core/300-resources/*.yaml"},
	{"knative.dev/serving", "config/core/200-roles/*.yaml"},
	{"knative.dev/serving", "config/core/webhooks/*.yaml"},
	{"knative.dev/serving", "config/core/deployments/activator.yaml"},
	{"knative.dev/serving", "config/core/deployments/autoscaler.yaml"},
	{"knative.dev/serving", "config/core/deployments/controller.yaml"},
	{"knative.dev/serving", "config/core/deployments/webhook.yaml"},
}

// resolved is the path of ko's cached output: manifests with images in our
// registry. The path contains a hash of the pinned versions and of
// knativeFiles.
func (c *cluster) resolved() (string, error) {
	key, err := c.key(knative)
	if err != nil {
		return "", err
	}
	list := sha256.Sum256(fmt.Append(nil, knativeFiles))
	return c.cached("knative", fmt.Sprintf("%s-%x.yaml", key, list[:4])), nil
}

// resolveKnative builds and pushes Knative's images, once per version.
func (c *cluster) resolveKnative(ctx context.Context) error {
	path, err := c.resolved()
	if err != nil {
		return err
	}
	if data, err := os.ReadFile(path); err == nil && c.allInRegistry(ctx, string(data)) {
		c.used(path)
		return nil
	}
	manifests, err := c.gatherKnative(ctx)
	if err != nil {
		return err
	}
	// Compile first on the host: the namespace cannot download modules.
	packages := regexp.MustCompile(`ko://([^\s"]+)`).FindAllStringSubmatch(manifests, -1)
	build := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", os.DevNull}
	for _, p := range packages {
		build = append(build, p[1])
	}
	if _, err := c.goCommand(ctx, knative, build...); err != nil {
		return err
	}
	source := c.in("knative", "source.yaml")
	if err := writeFile(source, []byte(manifests), 0o644); err != nil {
		return err
	}
	command := c.inside("nice", c.binary(ko, "ko"), "resolve", "--sbom=none", "--preserve-import-paths", "-f", source)
	env := append(c.koEnv(), "KOCACHE="+c.in("knative", "ko"), "GOFLAGS=-mod=readonly", "GOPROXY=off", "GOWORK=off", "KO_CONFIG_PATH="+c.moduleDir(knative))
	out, err := runWith(ctx, env, nil, "env", append([]string{"--chdir=" + c.moduleDir(knative)}, command...)...)
	if err != nil {
		return err
	}
	return writeFile(path, []byte(out), 0o644)
}

func (c *cluster) gatherKnative(ctx context.Context) (string, error) {
	var all strings.Builder
	for _, k := range knativeFiles {
		module, err := c.moduleCache(ctx, knative, k.module)
		if err != nil {
			return "", err
		}
		files, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(k.pattern)))
		if err != nil {
			return "", fmt.Errorf("%s: %w", k.pattern, err)
		}
		if len(files) == 0 {
			return "", fmt.Errorf("no file matches %s in module %s", k.pattern, k.module)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&all, "\n---\n%s\n", data)
		}
	}
	return all.String(), nil
}

func (c *cluster) allInRegistry(ctx context.Context, manifests string) bool {
	images := regexp.MustCompile(regexp.QuoteMeta(registryInside)+`/[^\s"']+`).FindAllString(manifests, -1)
	for _, i := range images {
		if !c.inRegistry(ctx, i) {
			return false
		}
	}
	return len(images) > 0
}

// applyKnative applies CRDs and namespaces first, because the other objects
// need them.
func (c *cluster) applyKnative(ctx context.Context) error {
	path, err := c.resolved()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	first, rest := splitFoundation(reduceResources(string(data)))
	if err := c.apply(ctx, "breakwater-knative", []byte(first)); err != nil {
		return err
	}
	if _, err := c.kubectl(ctx, nil, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"); err != nil {
		return err
	}
	if err := c.apply(ctx, "breakwater-knative", []byte(rest)); err != nil {
		return err
	}
	// Serving's webhook validates the settings and may be unreachable at first.
	return waiting{what: "Knative to accept its settings", deadline: 2 * time.Minute, every: time.Second}.until(ctx, func(ctx context.Context) error {
		return c.apply(ctx, "breakwater-settings", []byte(strings.ReplaceAll(knativeSettings, "NODE_ADDRESS", c.nodeAddress)))
	})
}

var foundation = regexp.MustCompile(`(?m)^kind: (CustomResourceDefinition|Namespace)\s*$`)

// splitFoundation separates CRDs and namespaces from the documents that need
// them.
func splitFoundation(manifests string) (first, rest string) {
	var before, after strings.Builder
	for _, doc := range regexp.MustCompile(`(?m)^---.*$`).Split(manifests, -1) {
		if foundation.MatchString(doc) {
			before.WriteString("---\n" + doc)
		} else if strings.TrimSpace(doc) != "" {
			after.WriteString("---\n" + doc)
		}
	}
	return before.String(), after.String()
}

// awaitKnative waits for the Deployments, and then until the webhooks admit one
// object of each kind that the tests create, in a dry run.
func (c *cluster) awaitKnative(ctx context.Context) error {
	w := waiting{what: "Knative Deployments to be available", log: c.log("kubelet"), deadline: 3 * time.Minute, every: 250 * time.Millisecond, alive: c.check("kubelet")}
	if err := w.until(ctx, c.deploymentsReady); err != nil {
		return err
	}
	w = waiting{what: "Knative webhooks to answer", log: c.log("kube-apiserver"), deadline: time.Minute, every: 250 * time.Millisecond}
	return w.until(ctx, func(ctx context.Context) error {
		_, err := c.kubectl(ctx, []byte(knativeProbe), "create", "--dry-run=server", "-f", "-")
		return err
	})
}

const knativeProbe = `apiVersion: serving.knative.dev/v1
kind: Service
metadata: {name: breakwater-probe, namespace: default}
spec: {template: {spec: {containers: [{image: "localhost:5000/base:latest"}]}}}
---
apiVersion: eventing.knative.dev/v1
kind: Broker
metadata: {name: breakwater-probe, namespace: default}
---
apiVersion: messaging.knative.dev/v1
kind: InMemoryChannel
metadata: {name: breakwater-probe, namespace: default}
`

func (c *cluster) hasKnative() bool {
	_, err := os.Stat(c.withoutKnativeFile())
	return err != nil
}

func (c *cluster) deploymentsReady(ctx context.Context) error {
	var late []string
	for _, ns := range []string{"knative-eventing", "knative-serving"} {
		var list struct {
			Items []struct {
				Metadata struct{ Name string }
				Spec     struct{ Replicas int }
				Status   struct{ AvailableReplicas int }
			}
		}
		if err := c.get(ctx, "/apis/apps/v1/namespaces/"+ns+"/deployments", &list); err != nil {
			return err
		}
		if len(list.Items) == 0 {
			return fmt.Errorf("no Deployments in %s", ns)
		}
		for _, d := range list.Items {
			if d.Status.AvailableReplicas < d.Spec.Replicas {
				late = append(late, d.Metadata.Name)
			}
		}
	}
	if len(late) > 0 {
		return fmt.Errorf("not available: %s", strings.Join(late, ", "))
	}
	return nil
}
