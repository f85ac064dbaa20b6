//go:build controlplane

package protection

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestANamespaceIsLabeledWhileItHasABudget(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	label := func() string {
		return n.get(t, "namespace", n.name, `{.metadata.labels.policy\.breakwater\.dev/guarded}`)
	}
	n.apply(t, budgetManifest("maxUnavailable: 0"))
	if got := label(); got != "true" {
		t.Errorf("after the first budget: %q", got)
	}
	n.run(t, "label", "namespace", n.name, "policy.breakwater.dev/guarded-")
	n.await(t, "the label is restored", func() error {
		if got := label(); got != "true" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
	n.run(t, "delete", "pub", "web")
	n.await(t, "the label is removed", func() error {
		if got := label(); got != "" {
			return fmt.Errorf("got %q", got)
		}
		return nil
	})
}

func TestASelectorWithFieldValueIsRejectedWithAHint(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	r := n.Try(t, `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {selector: {matchExpressions: [{key: app, operator: In, value: foo}]}, maxUnavailable: 1}}`, "apply", "-f", "-")
	if r.Code == 0 || !strings.Contains(r.Stderr, "spec.selector.matchExpressions[0].values") {
		t.Errorf("got:\n%s", r)
	}
}

func TestABudgetWithAnAnnotationOfOpenKruiseIsDenied(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.apply(t, budgetManifest("maxUnavailable: 0"))
	for _, annotation := range []string{"kruise.io/pub-protect-operations=DELETE", "pub.kruise.io/protect-total-replicas=3"} {
		r := n.try(t, "annotate", "pub", "web", annotation)
		if r.Code == 0 || !strings.Contains(r.Stderr, "the annotation has no effect: remove it") {
			t.Errorf("%s:\n%s", annotation, r)
		}
	}
	n.run(t, "annotate", "pub", "web", "team=a")
}

func TestTheAPIVersionOfATargetMayOmitTheVersion(t *testing.T) {
	t.Parallel()
	for _, apiVersion := range []string{"apps", "apps/v1"} {
		t.Run(apiVersion, func(t *testing.T) {
			t.Parallel()
			n := newNamespace(t)
			n.applyWithBudget(t, deploymentManifest(2, "{}"), `{apiVersion: policy.kruise.io/v1alpha1, kind: PodUnavailableBudget, metadata: {name: web},
 spec: {targetRef: {apiVersion: `+apiVersion+`, kind: Deployment, name: web}, maxUnavailable: 0}}`)
			n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
		})
	}
}

func TestABudgetInShadowModeAllowsAndRecordsAnEvent(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	n.applyWithBudget(t, deploymentManifest(3, "{}"), budgetManifest("minAvailable: 3, shadow: true"))
	name := n.podNames(t)[0]
	r := n.try(t, "delete", "pod", name)
	if r.Code != 0 || !strings.Contains(r.Stderr, "allowed in shadow mode") {
		t.Errorf("got:\n%s", r)
	}
	n.await(t, "an Event reports the denial", func() error {
		if got := n.eventMessages(t, n.name, "reason=DisruptionWouldBeDenied"); got == "" {
			return errors.New("no Event")
		}
		return nil
	})
}

// OpenKruise's API has version v1beta1 with two more fields.
func TestABudgetOfVersionV1beta1IsGuarded(t *testing.T) {
	t.Parallel()
	n := newNamespace(t)
	beta := func(spec string) string {
		return strings.Replace(budgetManifest(spec), "policy.kruise.io/v1alpha1", "policy.kruise.io/v1beta1", 1)
	}
	n.applyWithBudget(t, deploymentManifest(2, "{}"), beta("maxUnavailable: 0"))
	n.checkDenied(t, budgetDenial, "delete", "pod", n.podNames(t)[0])
	for field, spec := range map[string]string{
		"spec.protectTotalReplicas": "maxUnavailable: 0, protectTotalReplicas: 3",
		"spec.ignoredPodSelector":   "maxUnavailable: 0, ignoredPodSelector: {matchLabels: {force-deletable: 'true'}}",
	} {
		for version, manifest := range map[string]string{"v1beta1": beta(spec), "v1alpha1": budgetManifest(spec)} {
			// The API server would prune these fields for clients that do not ask for field validation.
			r := n.Try(t, manifest, "apply", "--validate=false", "-f", "-")
			if r.Code == 0 || !strings.Contains(r.Stderr, field) || !strings.Contains(r.Stderr, "remove the field") {
				t.Errorf("%s in %s:\n%s", field, version, r)
			}
		}
	}
}
