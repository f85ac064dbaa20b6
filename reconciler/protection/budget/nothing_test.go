package budget

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	"knative.dev/pkg/apis"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
)

func TestABudgetCoversNothingIfNoWorkloadMatches(t *testing.T) {
	target := func(apiVersion, kind, name string) *v1alpha1.PodUnavailableBudget {
		return newBudget(func(b *v1alpha1.PodUnavailableBudget) {
			b.Spec.Selector, b.Spec.TargetRef = nil, &v1alpha1.TargetRef{APIVersion: apiVersion, Kind: kind, Name: name}
		})
	}
	scaledTo0 := statefulSet("web", 0, nil)
	scaledTo0.Spec.Template.Labels = map[string]string{"app": "web"}
	belowGame := scaledTo0.DeepCopy()
	belowGame.OwnerReferences = ownedBy(gameKind, "web")
	for name, tc := range map[string]struct {
		budget  *v1alpha1.PodUnavailableBudget
		objects []runtime.Object
		owners  []*unstructured.Unstructured
		// want is a part of the message; "" if the budget covers a workload.
		want string
	}{
		"a target":                                         {target("apps", "StatefulSet", "web"), []runtime.Object{statefulSet("web", 2, nil)}, nil, ""},
		"a target with 0 replicas":                         {target("apps", "StatefulSet", "web"), []runtime.Object{scaledTo0}, nil, ""},
		"a target that does not exist":                     {target("apps/v1", "StatefulSet", "webb"), []runtime.Object{scaledTo0}, nil, "there is no StatefulSet webb of apiVersion apps/v1"},
		"a kind that does not exist":                       {target("apps", "Deploymnt", "web"), nil, nil, "does not serve kind Deploymnt of apiVersion apps"},
		"a custom resource without pods":                   {target("example.com", "Game", "web"), nil, []*unstructured.Unstructured{newOwner(gameKind, "web", nil, nil)}, ""},
		"a custom resource does not exist":                 {target("example.com", "Game", "x"), nil, []*unstructured.Unstructured{newOwner(gameKind, "web", nil, nil)}, "there is no Game x"},
		"a Knative Service does not exist":                 {ofKnativeService(minAvailable(1)), nil, nil, "no Knative Service web has traffic"},
		"a Knative Service with 0 replicas":                {ofKnativeService(minAvailable(1)), revision{"web-1", 0, 0, 0, 0}.objects(0), []*unstructured.Unstructured{knativeServiceWeb("web-1")}, ""},
		"a selector of a pod":                              {newBudget(nil), []runtime.Object{newPod(0, nil, nil)}, nil, ""},
		"a selector of a pod that is not Ready":            {newBudget(nil), []runtime.Object{newPod(0, nil, func(p *corev1.Pod) { p.Status.Conditions = nil })}, nil, ""},
		"a selector of 0 replicas":                         {newBudget(nil), []runtime.Object{scaledTo0}, nil, ""},
		"a selector of 0 replicas below a custom resource": {newBudget(nil), []runtime.Object{belowGame}, []*unstructured.Unstructured{newOwner(gameKind, "web", nil, nil)}, ""},
		"a selector of nothing":                            {newBudget(nil), []runtime.Object{statefulSet("db", 2, nil)}, nil, "spec.selector selects no pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, tc.budget, tc.objects...)
			w.withOwners(t, tc.owners, nil)
			c := w.reconcile(t)
			got := c.GetCondition(v1alpha1.BudgetSynced)
			if !got.IsTrue() && tc.want != "" || got.IsTrue() && (got.Message == "") != (tc.want == "") || !strings.Contains(got.Message, tc.want) {
				t.Errorf("got %+v, want %q", got, tc.want)
			}
		})
	}
}

func TestABudgetCoversNothingAfterAMinute(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	synced := func(reason, message string, age time.Duration) *apis.Condition {
		return &apis.Condition{Reason: reason, Message: message, LastTransitionTime: apis.VolatileTime{Inner: metav1.NewTime(now.Add(-age))}}
	}
	for name, tc := range map[string]struct {
		was     *apis.Condition
		changed bool
		reason  string
		wait    time.Duration
	}{
		"a new budget":                {nil, true, v1alpha1.ReasonComputed, time.Minute},
		"it covered a workload":       {synced(v1alpha1.ReasonComputed, "", time.Hour), false, v1alpha1.ReasonComputed, time.Minute},
		"for 20 seconds":              {synced(v1alpha1.ReasonComputed, "cause", 20*time.Second), false, v1alpha1.ReasonComputed, 40 * time.Second},
		"for a minute":                {synced(v1alpha1.ReasonComputed, "cause", time.Minute), false, v1alpha1.ReasonCoversNothing, 0},
		"it has been reported":        {synced(v1alpha1.ReasonCoversNothing, "cause", 0), false, v1alpha1.ReasonCoversNothing, 0},
		"reported, another limit":     {synced(v1alpha1.ReasonCoversNothing, "cause", 0), true, v1alpha1.ReasonCoversNothing, 0},
		"reported with another text":  {synced(v1alpha1.ReasonCoversNothing, "other", time.Hour), false, v1alpha1.ReasonCoversNothing, 0},
		"reported for another target": {synced(v1alpha1.ReasonCoversNothing, "other", time.Hour), true, v1alpha1.ReasonComputed, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			c, wait := decideNothing(tc.was, tc.changed, "cause", now)
			if !c.IsTrue() || c.Reason != tc.reason || c.Message != "cause" || wait != tc.wait {
				t.Errorf("got %+v, wait %s", c, wait)
			}
		})
	}
}

func TestABudgetThatCoversNothingHasOneEventAndStaysSynced(t *testing.T) {
	b := newBudget(nil)
	w, recorded := newFixture(t, b), record.NewFakeRecorder(10)
	reconcileCached := func(cached *v1alpha1.PodUnavailableBudget) *apis.Condition {
		err := w.ReconcileKind(controller.WithEventRecorder(t.Context(), recorded), cached)
		if again, _ := controller.IsRequeueKey(err); err != nil && !again {
			t.Fatal(err)
		}
		w.throttle.forget(types.NamespacedName{Namespace: b.Namespace, Name: b.Name})
		status := w.live(t).Status
		return status.GetCondition(v1alpha1.BudgetSynced)
	}
	reconcile := func() *apis.Condition { return reconcileCached(w.live(t)) }
	if c := reconcile(); c.Reason != v1alpha1.ReasonComputed || len(recorded.Events) != 0 {
		t.Errorf("at first %+v, %d Events", c, len(recorded.Events))
	}
	before := w.live(t)
	for i := range before.Status.Conditions {
		before.Status.Conditions[i].LastTransitionTime.Inner = metav1.NewTime(time.Now().Add(-nothingAfter))
	}
	if _, err := w.client.PolicyV1alpha1().PodUnavailableBudgets("ns").UpdateStatus(t.Context(), before, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reconcile()
	conflicts := 0
	w.client.PrependReactor("update", "podunavailablebudgets", func(clienttesting.Action) (bool, runtime.Object, error) {
		conflicts++
		return conflicts == 1, nil, apierrs.NewConflict(v1alpha1.Resource("podunavailablebudgets"), b.Name, errors.New("changed"))
	})
	for _, cached := range []*v1alpha1.PodUnavailableBudget{before, w.live(t)} {
		if c := reconcileCached(cached); !c.IsTrue() || c.Reason != v1alpha1.ReasonCoversNothing {
			t.Errorf("after a minute %+v", c)
		}
	}
	if len(recorded.Events) != 1 || conflicts != 1 {
		t.Fatalf("%d Events, %d conflicts", len(recorded.Events), conflicts)
	}
	if got, want := <-recorded.Events, "Warning CoversNothing the budget covers no pod: spec.selector selects no pod, and no pod template of a Deployment or StatefulSet; for a workload of another kind with 0 replicas, use spec.targetRef"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := w.index.Add(newPod(0, nil, nil)); err != nil {
		t.Fatal(err)
	}
	if c := reconcile(); c.Reason != v1alpha1.ReasonComputed || c.Message != "" {
		t.Errorf("with a pod %+v", c)
	}
}
