package leaderelection

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	clientelection "k8s.io/client-go/tools/leaderelection"
	"knative.dev/pkg/leaderelection"

	"github.com/breakwater-dev/breakwater/test/builder"
)

// processesOf are the processes of each part that have Leases.
var processesOf = map[string][]string{
	"core":       {"controller", "webhook"},
	"protection": {"protection-controller", "protection-webhook"},
	"permission": {"permission-controller", "permission-webhook"},
}

func TestRolesNameTheLeasesOfTheirProcess(t *testing.T) {
	for part, processes := range processesOf {
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

// The goal of docs/performance.md: an idle Breakwater makes at most 150 writes per minute. Each
// Lease is renewed once in each retry-period, and nothing else is written. The rest is a margin.
func TestTheLeasesAreRenewedAtMost130TimesPerMinute(t *testing.T) {
	renewals := 0.0
	for part, processes := range processesOf {
		c := installedConfig(t, part)
		renewals += float64(int(c.Buckets)*len(processes)) * time.Minute.Seconds() / c.RetryPeriod.Seconds()
	}
	if renewals > 130 {
		t.Errorf("%.0f renewals per minute", renewals)
	}
}

// The page names the times that follow from config-protection-leader-election.
func TestThePageHasTheTimesOfTheControllersLease(t *testing.T) {
	raw, err := os.ReadFile("../../docs/protection/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	page, period := strings.Join(strings.Fields(string(raw)), " "), installedConfig(t, "protection").RetryPeriod.Seconds()
	const catchUp = 10 // seconds: see ControllerLeases
	for _, text := range []string{
		fmt.Sprintf("the Lease that the controller renews every %g s.", period),
		fmt.Sprintf("%d to %g s after it renews its Lease", catchUp, catchUp+period),
		fmt.Sprintf("| until %d to %g s after the next renewal |", catchUp, catchUp+period),
		fmt.Sprintf("| for %d to %g s. While another replica", catchUp, catchUp+period),
	} {
		if !strings.Contains(page, text) {
			t.Errorf("the page does not have %q", text)
		}
	}
}

// Requests are denied if protection-controller does not renew its Lease for
// CONTROLLER_LEASE_TIMEOUT, at least 30 s: another replica has taken over before that.
func TestALeaseIsTakenOverInTime(t *testing.T) {
	for part, most := range map[string]time.Duration{"core": 31 * time.Second, "protection": 30 * time.Second, "permission": 30 * time.Second} {
		c := installedConfig(t, part)
		retry := time.Duration(float64(c.RetryPeriod) * (1 + clientelection.JitterFactor))
		if takeover := c.LeaseDuration + retry; takeover > most {
			t.Errorf("%s: a replica takes over after up to %s, want at most %s", part, takeover, most)
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
