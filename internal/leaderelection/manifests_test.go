package leaderelection

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"knative.dev/pkg/leaderelection"

	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestRolesNameTheLeasesOfTheirProcess(t *testing.T) {
	for part, processes := range map[string][]string{
		"core":       {"controller", "webhook"},
		"protection": {"protection-controller", "protection-webhook"},
		"permission": {"permission-controller", "permission-webhook"},
	} {
		t.Run(part, func(t *testing.T) {
			want, buckets := map[string][]string{}, installedBuckets(t, part)
			for _, component := range processes {
				for i := range buckets {
					want[component] = append(want[component], LeaseName(component, i, buckets))
				}
			}
			if diff := cmp.Diff(want, namedLeases(t, part)); diff != "" {
				t.Errorf("Leases (-needed +named by Roles):\n%s", diff)
			}
		})
	}
}

// files are the manifests of a part.
func files(t *testing.T, part string) []string {
	t.Helper()
	all, err := filepath.Glob("../../config/" + part + "/*.yaml")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	return all
}

// installedBuckets is the number of buckets in the ConfigMap of a part.
func installedBuckets(t *testing.T, part string) uint32 {
	t.Helper()
	for _, file := range files(t, part) {
		for _, cm := range builder.Manifests[corev1.ConfigMap](t, file) {
			if cm.Kind != "ConfigMap" || !strings.HasSuffix(cm.Name, "-leader-election") {
				continue
			}
			config, err := leaderelection.NewConfigFromMap(cm.Data)
			if err != nil {
				t.Fatal(err)
			}
			return config.Buckets
		}
	}
	t.Fatal("no ConfigMap of leader election")
	return 0
}

// namedLeases are the Leases that the Roles of a part allow to update, by Role.
func namedLeases(t *testing.T, part string) map[string][]string {
	t.Helper()
	named := map[string][]string{}
	for _, file := range files(t, part) {
		for _, role := range builder.Manifests[rbacv1.Role](t, file) {
			for _, rule := range role.Rules {
				if role.Kind == "Role" && slices.Contains(rule.Resources, "leases") && slices.Contains(rule.Verbs, "update") {
					named[role.Name] = append(named[role.Name], rule.ResourceNames...)
				}
			}
		}
	}
	return named
}
