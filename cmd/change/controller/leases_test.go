package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"knative.dev/pkg/leaderelection"
	"sigs.k8s.io/yaml"
)

// leases are the names of the Leases that knative.dev/pkg makes of queues, with
// as many buckets as are installed.
func leases(t *testing.T, queues map[string]bool) []string {
	t.Helper()
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(manifest(t, "202-config-leader-election.yaml"), &cm); err != nil {
		t.Fatal(err)
	}
	config, err := leaderelection.NewConfigFromMap(cm.Data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for queue := range queues {
		for i := range config.Buckets {
			names = append(names, strings.ToLower(fmt.Sprintf("%s.%s.%02d-of-%02d", component, queue, i, config.Buckets)))
		}
	}
	slices.Sort(names)
	return names
}

// named are the Leases that the Role lets the controller renew.
func named(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, document := range strings.Split(string(manifest(t, "110-controller-rbac.yaml")), "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			if slices.Contains(rule.Resources, "leases") && slices.Contains(rule.Verbs, "update") {
				names = append(names, rule.ResourceNames...)
			}
		}
	}
	slices.Sort(names)
	return names
}

func manifest(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "config", "core", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
