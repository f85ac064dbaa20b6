//go:build e2e

package protection

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// guardMetric returns the value of the leader's metric for a reason; an error
// when no replica exports it.
func guardMetric(ctx context.Context, kube kubernetes.Interface, reason string) (string, error) {
	pods, err := kube.CoreV1().Pods(systemNamespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=protection-controller"})
	if err != nil {
		return "", err
	}
	for _, p := range pods.Items {
		if value, err := metric(ctx, kube, p.Name, "breakwater_guard_unenforced{", `reason="`+reason+`"`); err == nil {
			return value, nil
		} // the replica may be terminating
	}
	return "", fmt.Errorf("no controller exports the metric for %s", reason)
}

// metric returns the value of a pod's first metric with the prefix and the label.
func metric(ctx context.Context, kube kubernetes.Interface, pod, prefix, label string) (string, error) {
	values, err := metricValues(ctx, kube, pod, prefix, label)
	if err == nil && len(values) == 0 {
		err = fmt.Errorf("pod %s has no metric %s with %s", pod, prefix, label)
	}
	if err != nil {
		return "", err
	}
	return values[0], nil
}

// metricValues returns the values of a pod's metrics with the prefix and the label.
func metricValues(ctx context.Context, kube kubernetes.Interface, pod, prefix, label string) (values []string, err error) {
	raw, err := kube.CoreV1().Pods(systemNamespace).ProxyGet("http", pod, "9090", "metrics", nil).DoRaw(ctx)
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, prefix) && strings.Contains(line, label) {
			values = append(values, line[strings.LastIndex(line, " ")+1:len(line)-1])
		}
	}
	return values, err
}

func (n *namespace) awaitGuardMetric(t *testing.T, c clients, reason, want string) {
	t.Helper()
	n.await(t, fmt.Sprintf("the metric of %s is %s", reason, want), func() error {
		if got, err := guardMetric(t.Context(), c.kube, reason); err != nil || got != want {
			return fmt.Errorf("got %q: %w", got, err)
		}
		return nil
	})
}

// awaitEvent waits for an Event with a reason since a time.
func (n *namespace) awaitEvent(t *testing.T, c clients, since time.Time, reason, text string) {
	t.Helper()
	n.await(t, "an Event "+reason+" exists", func() error {
		events, err := c.kube.CoreV1().Events(systemNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=" + reason})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if !e.LastTimestamp.Time.Before(since.Truncate(time.Second)) && strings.Contains(e.Message, text) {
				return nil
			}
		}
		return fmt.Errorf("none of %d Events matches", len(events.Items))
	})
}

func TestTheSelfCheckReportsAWebhookThatFailsOpen(t *testing.T) {
	n, c, since := newNamespace(t), connect(t), time.Now()
	n.awaitGuardMetric(t, c, "FailurePolicyIgnore", "0")
	set := func(policy string) []string {
		return []string{"patch", "validatingwebhookconfiguration", "breakwater-protection", "-p",
			`{"webhooks":[{"name":"vpodbudget.kb.io","failurePolicy":"` + policy + `"}]}`}
	}
	n.cleanup(t, set("Fail")...)
	n.run(t, set("Ignore")...)
	n.awaitGuardMetric(t, c, "FailurePolicyIgnore", "1")
	n.awaitEvent(t, c, since, "FailurePolicyIgnore", "vpodbudget.kb.io")
	n.run(t, set("Fail")...)
	n.awaitGuardMetric(t, c, "FailurePolicyIgnore", "0")
	n.awaitEvent(t, c, since, "GuardEnforced", "vpodbudget.kb.io: no longer FailurePolicyIgnore")
}

func TestTheSelfCheckReportsAPolicyThatOnlyWarns(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	n.awaitGuardMetric(t, c, "PolicyNotDenying", "0")
	set := func(actions string) []string {
		return []string{"patch", "validatingadmissionpolicybinding", "breakwater-cascading-deletion-replicas", "--type=merge", "-p",
			`{"spec":{"validationActions":[` + actions + `]}}`}
	}
	n.cleanup(t, set(`"Deny"`)...)
	n.run(t, set(`"Warn"`)...)
	n.awaitGuardMetric(t, c, "PolicyNotDenying", "1")
	n.run(t, set(`"Deny"`)...)
	n.awaitGuardMetric(t, c, "PolicyNotDenying", "0")
}

func TestTheSelfCheckReportsMissingReplicas(t *testing.T) {
	n, c := newNamespace(t), connect(t)
	n.awaitGuardMetric(t, c, "NoEndpoints", "0")
	n.cleanup(t, append(system, "rollout", "status", "deployment", "protection-webhook", "--timeout=60s")...)
	n.cleanup(t, append(system, "scale", "deployment", "protection-webhook", "--replicas=2")...)
	n.run(t, append(system, "scale", "deployment", "protection-webhook", "--replicas=0")...)
	n.awaitGuardMetric(t, c, "NoEndpoints", "1")
	n.run(t, append(system, "scale", "deployment", "protection-webhook", "--replicas=2")...)
	n.awaitGuardMetric(t, c, "NoEndpoints", "0")
}

// The webhook temporarily loses the right to repair the caBundle. Otherwise
// it would repair the caBundle before the self-check runs.
func TestTheSelfCheckReportsAStaleCABundleUntilItIsRepaired(t *testing.T) {
	n, c, since := newNamespace(t), connect(t), time.Now()
	n.applyWithBudget(t, deploymentManifest(2, "{}"), budgetManifest("maxUnavailable: 1"))
	remove, add := rolePatches(t, n)
	damage := func(bundle string) {
		n.run(t, "patch", "validatingwebhookconfiguration", "breakwater-protection", "-p",
			`{"webhooks":[{"name":"vpodbudget.kb.io","clientConfig":{"caBundle":"`+bundle+`"}}]}`)
	}
	bundle := func() string {
		return n.get(t, "validatingwebhookconfiguration", "breakwater-protection",
			`{.webhooks[?(@.name=="vpodbudget.kb.io")].clientConfig.caBundle}`)
	}
	good := bundle()
	other := base64.StdEncoding.EncodeToString([]byte(n.run(t, "get", "configmap", "kube-root-ca.crt", "-o", `jsonpath={.data.ca\.crt}`)))

	n.run(t, "patch", "clusterrole", webhookRole, "--type=json", "-p", remove)
	restored := false
	restore := func() {
		ctx, cancel := context.WithTimeout(context.Background(), shortTimeout)
		defer cancel()
		if restored {
			return
		}
		r, err := n.Run(ctx, "patch", "clusterrole", webhookRole, "--type=json", "-p", add)
		if restored = err == nil && r.Code == 0; !restored {
			t.Errorf("restore the RBAC rule: %v %s", err, r)
		}
	}
	t.Cleanup(restore)
	damage(other)
	n.awaitGuardMetric(t, c, "CABundleStale", "1")
	n.awaitEvent(t, c, since, "CABundleStale", "vpodbudget.kb.io")
	if r := n.try(t, "delete", "pod", n.podNames(t)[0], "--wait=false"); r.Code == 0 {
		t.Error("a covered pod was deleted while the webhook was unreachable")
	}
	restore()
	n.await(t, "the webhook has repaired its caBundle", func() error {
		if bundle() != good {
			return errors.New("the caBundle differs")
		}
		return nil
	})
	n.awaitGuardMetric(t, c, "CABundleStale", "0")

	damage(other) // with the right the webhook repairs it at once
	n.await(t, "the webhook has repaired its caBundle", func() error {
		if bundle() != good {
			return errors.New("the caBundle differs")
		}
		return nil
	})
}

const webhookRole = "breakwater-protection-webhook"

// rolePatches returns the patches that remove and restore the webhook's
// right to patch webhook configurations.
func rolePatches(t *testing.T, n *namespace) (remove, add string) {
	t.Helper()
	rules := strings.Fields(n.run(t, "get", "clusterrole", webhookRole, "-o",
		`go-template={{range .rules}}{{range .resources}}{{.}},{{end}}{{range .verbs}}{{.}},{{end}} {{end}}`))
	for i, rule := range rules {
		if rule == "validatingwebhookconfigurations,patch," {
			path := fmt.Sprintf("/rules/%d", i)
			return `[{"op":"remove","path":"` + path + `"}]`,
				`[{"op":"add","path":"` + path + `","value":` + n.run(t, "get", "clusterrole", webhookRole, "-o", fmt.Sprintf("jsonpath={.rules[%d]}", i)) + `}]`
		}
	}
	t.Fatalf("no rule allows the webhook to patch webhook configurations: %q", rules)
	return "", ""
}
