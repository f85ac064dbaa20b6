//go:build controlplane

package change

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	admission "github.com/breakwater-dev/breakwater/admission/change"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// replicas is the number of pods of the workloads of real controllers.
const replicas = 6

// checkReleases takes a workload of 6 pods with marker v1 through every way out of a
// suspension. No request of its controller's user may be denied, and only releases may
// increment the attempt.
func (w target) checkReleases(t *testing.T, user string) {
	t.Helper()
	w.awaitPhase(t, v1alpha1.ReleaseSuccess, 1)

	w.mustPatch(t, releaseOf("v2"))
	w.judge(t, w.awaitBatch(t, 2), "unpass")
	w.awaitHeld(t)
	w.awaitPhase(t, v1alpha1.ReleaseSuspend, 2)
	if n := w.updatedPods(t, "v2"); n == 0 || n >= replicas {
		t.Errorf("%d pods of %d have the held version", n, replicas)
	}
	denied := w.kind.LowerKind() + " web is suspended"
	if err := w.patch(t.Context(), releaseOf("v3")); err == nil || !strings.Contains(err.Error(), denied) {
		t.Errorf("the next release: %v, want %q", err, denied)
	}
	w.mustPatch(t, repairOf("v3"))
	w.checkComplete(t, "v3", 3)

	w.mustPatch(t, releaseOf("v4"))
	w.judge(t, w.awaitBatch(t, 4), "unpass")
	w.awaitHeld(t)
	w.mustPatch(t, releaseOf("v3"))
	w.checkComplete(t, "v3", 5)

	w.mustPatch(t, releaseOf("v5"))
	w.judge(t, w.awaitBatch(t, 6), "unpass")
	w.awaitHeld(t)
	w.requestRollback(t, 6)
	w.checkComplete(t, "v3", 7)
	w.checkNotDenied(t, user)
}

// requestRollback requests the rollback of an attempt to the last saved template.
func (w target) requestRollback(t *testing.T, attempt int64) {
	t.Helper()
	me, err := w.Kube.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := json.Marshal(v1alpha1.RollbackRequest{User: me.Status.UserInfo.Username, Time: metav1.Now(), Attempt: attempt})
	if err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{v1alpha1.RollbackRequestAnnotation: string(request)}}})
	if err != nil {
		t.Fatal(err)
	}
	w.mustPatch(t, string(patch))
}

// checkComplete waits until an attempt succeeded and its template is saved, and fails unless
// each pod has its version and was judged, and nothing is held.
func (w target) checkComplete(t *testing.T, marker string, attempt int64) {
	t.Helper()
	c := w.awaitSaved(t, attempt)
	w.awaitResumed(t)
	if n := w.updatedPods(t, marker); n != replicas || c.Status.Counts.Pods < replicas {
		t.Errorf("attempt %d: %d pods have its version and %d are in batches, want %d", attempt, n, c.Status.Counts.Pods, replicas)
	}
}

// checkNotDenied fails if an update by the user was denied.
func (w target) checkNotDenied(t *testing.T, user string) {
	t.Helper()
	list, err := w.Kube.CoreV1().Events(w.namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if e := &list.Items[i]; e.Reason == v1alpha1.ReasonReleaseDenied && strings.Contains(e.Message, user) {
			t.Errorf("denied %d times: %s", e.Count, e.Message)
		}
	}
}

// kinds configures the kinds of OpenKruise and Argo Rollouts. Their webhooks are generated, and
// the permissions are aggregated to the controller's.
const kinds = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: breakwater-kinds, labels: {breakwater.dev/controller: "true"}}
rules:
- {apiGroups: [apps.kruise.io], resources: [clonesets, statefulsets], verbs: [get, list, watch, patch]}
- {apiGroups: [apps.kruise.io], resources: [clonesets/finalizers, statefulsets/finalizers], verbs: [update]}
- {apiGroups: [argoproj.io], resources: [rollouts], verbs: [get, list, watch, patch]}
- {apiGroups: [argoproj.io], resources: [rollouts/finalizers], verbs: [update]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: config-workloads, namespace: altershieldoperator-system}
data:
  kinds: |
    - apiVersion: apps.kruise.io/v1alpha1
      kind: CloneSet
      revisions: ControllerRevision
      pause: spec.updateStrategy.paused
    - apiVersion: apps.kruise.io/v1beta1
      kind: StatefulSet
      revisions: ControllerRevision
      pause: spec.updateStrategy.rollingUpdate.paused
    - {apiVersion: argoproj.io/v1alpha1, kind: Rollout, revisions: ReplicaSet}
`

func configureKinds(t *testing.T) {
	t.Helper()
	kubectl(t, kinds, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// object parses a manifest.
func object(t *testing.T, manifest string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// awaitKind waits until the API server has a kind.
func (f fixture) awaitKind(t *testing.T, kind workload.Kind) {
	t.Helper()
	await(t, "the API server has "+kind.Resource, func(ctx context.Context) error {
		_, err := f.Dynamic.Resource(kind.GroupVersionResource()).List(ctx, metav1.ListOptions{})
		return err
	})
}

// awaitWebhooks waits until the API server calls the generated webhooks for an object of a kind, which it does a moment after
// their configurations were written.
func (f fixture) awaitWebhooks(t *testing.T, kind workload.Kind, o map[string]any) {
	t.Helper()
	validating := "v" + kind.LowerKind() + "." + kind.Group + ".kb.io"
	object := &unstructured.Unstructured{Object: o}
	object.SetGroupVersionKind(kind.GroupVersionKind)
	await(t, "webhook "+validating, func(ctx context.Context) error {
		config, err := f.Kube.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, admission.Generated, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(config.Webhooks, func(w admissionregistrationv1.ValidatingWebhook) bool {
			return w.Name == validating && len(w.ClientConfig.CABundle) > 0
		}) {
			return errors.New("not generated")
		}
		mutated, err := f.Dynamic.Resource(kind.GroupVersionResource()).Namespace(f.namespace).
			Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		if mutated.GetLabels()[v1alpha1.VersionKey] == "" {
			return errors.New("an object gets no version")
		}
		return nil
	})
}
