package leaderelection

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clientelection "k8s.io/client-go/tools/leaderelection"
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
			want, buckets := map[string][]string{}, installedConfig(t, part).Buckets
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

// The page names the times of a takeover, which follow from config-leader-election.
func TestThePageHasTheTimesOfATakeover(t *testing.T) {
	raw, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	page, c := string(raw), installedConfig(t, "core")
	lease, least := c.LeaseDuration.Seconds(), c.RetryPeriod.Seconds()
	most := least * (1 + clientelection.JitterFactor)
	for _, row := range []string{
		fmt.Sprintf("| after 0 to %[2]g s: it gives up its Leases, and the other tries every %[1]g to %[2]g s |\n", least, most),
		fmt.Sprintf("| after %g to %g s: `lease-duration` (%[1]g s), and up to %[3]g s until the next try of the other |\n", lease, lease+most, most),
	} {
		if !strings.Contains(page, row) {
			t.Errorf("the page does not have %q", row)
		}
	}
}

// installedConfig is the ConfigMap of a part.
func installedConfig(t *testing.T, part string) *leaderelection.Config {
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
			return config
		}
	}
	t.Fatal("no ConfigMap of leader election")
	return nil
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
