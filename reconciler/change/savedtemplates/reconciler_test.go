package savedtemplates

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/internal/metrics"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/settings"
	"github.com/breakwater-dev/breakwater/internal/workload"
	"github.com/breakwater-dev/breakwater/reconciler/change/liveworkload"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// fixture is one workload with its ChangeWorkload and saved templates.
type fixture struct {
	*Reconciler
	workload *appsv1.Deployment
	change   *v1alpha1.ChangeWorkload
}

// at returns a fixture: the workload has this attempt of the template with the marker,
// and its ChangeWorkload is in the phase.
func at(t *testing.T, marker string, attempt int64, phase v1alpha1.ReleasePhase, reason string, saved ...*appsv1.ControllerRevision) fixture {
	t.Helper()
	d := builder.Deployment("web", 2, builder.Release(marker))
	d.Namespace, d.UID = "default", "u1"
	version, err := workload.Version(workload.Deployment, &d.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	d.Annotations = map[string]string{v1alpha1.VersionKey: version, v1alpha1.AttemptAnnotation: fmt.Sprint(attempt)}
	d.Status = appsv1.DeploymentStatus{Replicas: 2, UpdatedReplicas: 2, AvailableReplicas: 2}
	c := &v1alpha1.ChangeWorkload{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ChangeWorkloadName("web", version), Namespace: "default", UID: "c1", ResourceVersion: "1"},
		Spec: v1alpha1.ChangeWorkloadSpec{Reversion: version, Attempt: attempt,
			WorkloadRef: v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "u1"}},
		Status: v1alpha1.ChangeWorkloadStatus{Phase: phase, Counts: v1alpha1.PodCounts{Pods: 2}},
	}
	c.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Reason: reason}}

	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := namespaces.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "default", Labels: map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}}}); err != nil {
		t.Fatal(err)
	}
	kube := kubefake.NewClientset()
	for _, k := range saved {
		if err := kube.Tracker().Add(k); err != nil {
			t.Fatal(err)
		}
	}
	s := settings.Default()
	s.HistoryLimit = 2
	return fixture{
		Reconciler: &Reconciler{
			kube:   kube,
			client: fake.NewSimpleClientset(c),
			live: &liveworkload.Reader{
				Client:     dynamicfake.NewSimpleDynamicClient(scheme.Scheme, unstructuredOf(t, d)),
				Namespaces: corelisters.NewNamespaceLister(namespaces),
				Kind: func(apiVersion, kind string) (workload.Kind, bool) {
					i := slices.IndexFunc(workload.BuiltIn(), func(k workload.Kind) bool { return k.Is(apiVersion, kind) })
					return workload.BuiltIn()[max(i, 0)], i >= 0
				},
			},
			cached:   func(string, v1alpha1.WorkloadRef) *workload.Workload { return nil },
			settings: func() settings.Settings { return s },
			changes:  metrics.NewCounter(noop.Meter{}, "breakwater_saved_template_changes_total"),
		},
		workload: d,
		change:   c,
	}
}

func unstructuredOf(t *testing.T, d *appsv1.Deployment) *unstructured.Unstructured {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// before returns the saved template of an earlier release.
func before(t *testing.T, version string, attempt int64) *appsv1.ControllerRevision {
	t.Helper()
	w := &workload.Workload{Kind: workload.Deployment, ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "u1"}}
	r, err := savedtemplate.Build(w, v1alpha1.Release{Version: version, Attempt: attempt}, json.RawMessage(`{"spec":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// savedAttempts returns the attempts of the saved templates, the latest first, and
// the name in the status of the ChangeWorkload.
func (w fixture) savedAttempts(ctx context.Context, t *testing.T) (attempts []int64, savedTemplateName string) {
	t.Helper()
	saved, err := savedtemplate.List(ctx, w.kube, &workload.Workload{ObjectMeta: metav1.ObjectMeta{Namespace: "default", UID: "u1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range saved {
		attempts = append(attempts, k.Release.Attempt)
	}
	c, err := w.client.AppV1alpha1().ChangeWorkloads("default").Get(ctx, w.change.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return attempts, c.Status.SavedTemplateName
}

func TestASuccessIsSavedAndTheOldestPruned(t *testing.T) {
	w := at(t, "v3", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed, before(t, "a", 1), before(t, "b", 3))
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	attempts, savedTemplateName := w.savedAttempts(t.Context(), t)
	if diff := cmp.Diff([]int64{5, 3}, attempts); diff != "" {
		t.Error(diff)
	}
	if savedTemplateName != w.change.Name {
		t.Errorf("keptAs is %q", savedTemplateName)
	}
	list, err := w.kube.AppsV1().ControllerRevisions("default").Get(t.Context(), savedTemplateName, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	k, _ := savedtemplate.Read(list, "u1")
	template, err := k.PodTemplate(workload.Deployment)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&w.workload.Spec.Template, template); diff != "" {
		t.Error(diff)
	}
}

func TestABaselineWithoutAvailablePodsCostsNoRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		cached *workload.Workload
		reads  bool
	}{
		"not cached":          {nil, true},
		"at zero replicas":    {&workload.Workload{Complete: true}, false},
		"not available":       {&workload.Workload{Replicas: 2}, false},
		"with available pods": {&workload.Workload{Replicas: 2, Complete: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := at(t, "v1", 0, v1alpha1.ReleaseSuccess, v1alpha1.ReasonBaseline)
			w.cached = func(string, v1alpha1.WorkloadRef) *workload.Workload { return tc.cached }
			err := w.ReconcileKind(t.Context(), w.change)
			requests := len(w.live.Client.(*dynamicfake.FakeDynamicClient).Actions())
			if again, _ := controller.IsRequeueKey(err); (requests > 0) != tc.reads || !again && !tc.reads {
				t.Errorf("%d requests, %v", requests, err)
			}
		})
	}
}

func TestAVersionThatSucceedsAgainIsTheNewest(t *testing.T) {
	w := at(t, "v1", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
	version := w.change.Spec.Reversion
	if err := w.kube.(*kubefake.Clientset).Tracker().Add(before(t, version, 1)); err != nil {
		t.Fatal(err)
	}
	if err := w.kube.(*kubefake.Clientset).Tracker().Add(before(t, "b", 3)); err != nil {
		t.Fatal(err)
	}
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	attempts, _ := w.savedAttempts(t.Context(), t)
	if diff := cmp.Diff([]int64{5, 3}, attempts); diff != "" {
		t.Error(diff)
	}
}

func TestTheTemplateOfAFailedVersionIsDeleted(t *testing.T) {
	w := at(t, "v1", 5, v1alpha1.ReleaseSuspend, v1alpha1.ReasonCheckFailed, before(t, "b", 3))
	if err := w.kube.(*kubefake.Clientset).Tracker().Add(before(t, w.change.Spec.Reversion, 1)); err != nil {
		t.Fatal(err)
	}
	w.change.Status.SavedTemplateName = w.change.Name
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	attempts, savedTemplateName := w.savedAttempts(t.Context(), t)
	if diff := cmp.Diff([]int64{3}, attempts); diff != "" || savedTemplateName != "" {
		t.Error(diff, savedTemplateName)
	}
}

// A release fails late, and its own template was never saved: a newer release replaced it before. The template that an
// earlier attempt saved is still there.
func TestTheTemplateOfAnEarlierAttemptOfAFailedVersionIsDeleted(t *testing.T) {
	w := at(t, "v4", 4, v1alpha1.ReleaseFailed, v1alpha1.ReasonCheckFailed, before(t, "v1", 1), before(t, "b", 2))
	w.change.Spec.Reversion, w.change.Spec.Attempt = "v1", 3
	w.change.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	if attempts, _ := w.savedAttempts(t.Context(), t); !cmp.Equal(attempts, []int64{2}) {
		t.Errorf("the templates of attempts %v stay", attempts)
	}
}

func TestAReleaseThatIsNoLongerCurrentIsNotSaved(t *testing.T) {
	w := at(t, "v1", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
	w.change.Spec.Attempt = 4
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	if attempts, savedTemplateName := w.savedAttempts(t.Context(), t); len(attempts) > 0 || savedTemplateName != "" {
		t.Errorf("saved %v as %q", attempts, savedTemplateName)
	}
}

func TestAWorkloadWithAnotherUIDIsIgnored(t *testing.T) {
	w := at(t, "v1", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
	w.change.Spec.WorkloadRef.UID = "u0"
	if err := w.ReconcileKind(t.Context(), w.change); err != nil {
		t.Fatal(err)
	}
	if attempts, _ := w.savedAttempts(t.Context(), t); len(attempts) > 0 {
		t.Errorf("saved %v", attempts)
	}
}

func TestATakenNameIsRetried(t *testing.T) {
	w := at(t, "v1", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
	old := before(t, w.change.Spec.Reversion, 1)
	old.OwnerReferences[0].UID, old.Labels[savedtemplate.WorkloadUIDLabel] = "u0", "u0"
	if err := w.kube.(*kubefake.Clientset).Tracker().Add(old); err != nil {
		t.Fatal(err)
	}
	err := w.ReconcileKind(t.Context(), w.change)
	if again, _ := controller.IsRequeueKey(err); !again {
		t.Errorf("got %v", err)
	}
	if _, savedTemplateName := w.savedAttempts(t.Context(), t); savedTemplateName != "" {
		t.Errorf("status names saved template %q", savedTemplateName)
	}
}

// The garbage collector removed the owner, because the earlier workload was deleted with --cascade=orphan.
func TestAnOrphanedTemplateOfTheNameIsReplaced(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*appsv1.ControllerRevision)
		replaced bool
	}{
		"of an earlier workload":       {func(k *appsv1.ControllerRevision) { k.Labels[savedtemplate.WorkloadUIDLabel] = "u0" }, true},
		"of this workload":             {func(*appsv1.ControllerRevision) {}, true},
		"without the label, by a user": {func(k *appsv1.ControllerRevision) { k.Labels = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := at(t, "v1", 5, v1alpha1.ReleaseSuccess, v1alpha1.ReasonAllPodsPassed)
			orphan := before(t, w.change.Spec.Reversion, 1)
			orphan.OwnerReferences = nil
			tc.change(orphan)
			if err := w.kube.(*kubefake.Clientset).Tracker().Add(orphan); err != nil {
				t.Fatal(err)
			}
			if again, _ := controller.IsRequeueKey(w.ReconcileKind(t.Context(), w.change)); !again {
				t.Error("not reconciled again")
			}
			err := w.ReconcileKind(t.Context(), w.change)
			attempts, savedTemplateName := w.savedAttempts(t.Context(), t)
			if replaced := err == nil && cmp.Equal(attempts, []int64{5}) && savedTemplateName == w.change.Name; replaced != tc.replaced {
				t.Errorf("saved %v as %q: %v", attempts, savedTemplateName, err)
			}
		})
	}
}
