package namespacelabel

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktest "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
)

func newNamespace(name, label string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		n.Labels = map[string]string{v1alpha1.HasBudgetLabel: label}
	}
	return n
}

func TestTheLabelFollowsTheBudgets(t *testing.T) {
	terminating := newNamespace("ns", "")
	terminating.DeletionTimestamp = new(metav1.Now())
	for _, tc := range []struct {
		name      string
		namespace *corev1.Namespace
		budgets   bool
		unused    time.Duration
		want      action
	}{
		{"the first budget", newNamespace("ns", ""), true, 0, setLabel},
		{"more budgets", newNamespace("ns", "true"), true, 0, keepLabel},
		{"another value of the label", newNamespace("ns", "no"), true, 0, setLabel},
		{"no budget", newNamespace("ns", "true"), false, 0, waitToRemove},
		{"no budget for less than the delay", newNamespace("ns", "true"), false, removalDelay - 1, waitToRemove},
		{"no budget for the delay", newNamespace("ns", "true"), false, removalDelay, removeLabel},
		{"never a budget", newNamespace("ns", ""), false, 0, keepLabel},
		{"a namespace that is exempt", newNamespace("kube-system", ""), true, 0, keepLabel},
		{"an exempt namespace with the label", newNamespace("kube-system", "true"), true, removalDelay, removeLabel},
		{"a terminating namespace", terminating, true, 0, keepLabel},
	} {
		if got := decide(tc.namespace, tc.budgets, tc.unused); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

// fixture has a namespace with the label, and budgets in the API server and in
// the cache.
type fixture struct {
	*Reconciler
	namespace *corev1.Namespace
	kube      *kubefake.Clientset
	policy    *fake.Clientset
	cached    cache.Indexer
	clock     *clocktest.FakePassiveClock
}

func newFixture() *fixture {
	w := &fixture{namespace: newNamespace("ns", "true"), policy: fake.NewSimpleClientset(),
		cached: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), clock: clocktest.NewFakePassiveClock(time.Unix(1e9, 0))}
	w.namespace.UID, w.namespace.ResourceVersion = "uid", "7"
	w.kube = kubefake.NewClientset(w.namespace)
	w.restart()
	return w
}

// restart resets the state of the process.
func (w *fixture) restart() {
	w.Reconciler = &Reconciler{Namespaces: w.kube.CoreV1().Namespaces(), Client: w.policy.PolicyV1alpha1(),
		Lister: listers.NewPodUnavailableBudgetLister(w.cached), Clock: w.clock}
}

func (w *fixture) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// reconcileOnce reconciles and returns the delay of the next reconciliation and whether
// the namespace has the label.
func (w *fixture) reconcileOnce(t *testing.T) (again time.Duration, label bool) {
	t.Helper()
	err := w.ReconcileKind(t.Context(), w.namespace)
	requeue, again := controller.IsRequeueKey(err)
	if err != nil && !requeue {
		t.Fatal(err)
	}
	n, err := w.kube.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return again, hasLabel(n)
}

func (w *fixture) want(t *testing.T, again time.Duration, label bool) {
	t.Helper()
	if gotAgain, gotLabel := w.reconcileOnce(t); gotAgain != again || gotLabel != label {
		t.Errorf("next reconciliation in %s, want %s; label %v", gotAgain, again, gotLabel)
	}
}

var budget = &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}

func (w *fixture) cache(t *testing.T, has bool) {
	t.Helper()
	do := w.cached.Delete
	if has {
		do = w.cached.Add
	}
	if err := do(budget); err != nil {
		t.Fatal(err)
	}
}

// The webhook sets the label before the first budget is stored.
func TestTheLabelIsRemovedAfterADelay(t *testing.T) {
	w := newFixture()
	w.want(t, removalDelay, true)
	w.pass(removalDelay - time.Second)
	w.want(t, time.Second, true)
	w.cache(t, true)
	w.want(t, 0, true)
	w.cache(t, false)
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	w.want(t, 0, false)
}

func TestANewLeaderWaitsAgain(t *testing.T) {
	w := newFixture()
	w.want(t, removalDelay, true)
	w.pass(removalDelay - time.Second)
	w.restart()
	w.want(t, removalDelay, true)
	// A process that led before has no newer record.
	w.pass(2 * removalDelay)
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	w.want(t, 0, false)
}

// The record of a deleted namespace is deleted.
func TestRecordsOfDeletedNamespacesAreDropped(t *testing.T) {
	now := time.Unix(1e9, 0)
	var i unusedLabels
	i.unusedFor("gone", now)
	i.unusedFor("there", now.Add(removalDelay))
	i.unusedFor("another", now.Add(2*removalDelay))
	i.forget("another")
	if _, there := i.since["there"]; len(i.since) != 1 || !there {
		t.Errorf("records are %v", i.since)
	}
}

// The label is removed only when the API server has no budget either.
func TestALiveReadOfBudgetsKeepsTheLabel(t *testing.T) {
	w := newFixture()
	w.want(t, removalDelay, true)
	if err := w.policy.Tracker().Add(budget); err != nil {
		t.Fatal(err)
	}
	w.pass(removalDelay)
	w.want(t, removalDelay, true)
	w.want(t, removalDelay, true)
}

// The API server answers 404 after the deletion of the CRD. A webhook that starts then does not become Ready, so
// every deletion in a namespace that keeps the label would be denied.
func TestTheLabelIsRemovedAfterTheDeletionOfTheCRD(t *testing.T) {
	w := newFixture()
	w.policy.PrependReactor("list", "podunavailablebudgets", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewGenericServerResponse(http.StatusNotFound, "list", v1alpha1.Resource("podunavailablebudgets"), "", "404 page not found", 0, true)
	})
	w.cache(t, true)
	w.want(t, 0, true)
	w.cache(t, false)
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	w.want(t, 0, false)
}

func TestTheLabelStaysWhileTheBudgetsCannotBeListed(t *testing.T) {
	w := newFixture()
	w.policy.PrependReactor("list", "podunavailablebudgets", func(kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrs.NewServiceUnavailable("the API server starts")
	})
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	if err := w.ReconcileKind(t.Context(), w.namespace); !apierrs.IsServiceUnavailable(err) {
		t.Errorf("the error is %v", err)
	}
	if n, err := w.kube.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{}); err != nil || !hasLabel(n) {
		t.Errorf("the label was removed, or %v", err)
	}
}

// A label that is set again after its removal is kept for the whole delay.
func TestALabelThatIsSetAgainIsKeptForTheWholeDelay(t *testing.T) {
	w := newFixture()
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	w.want(t, 0, false)
	w.want(t, removalDelay, false) // the cache may be old
}

func TestRemovingTheLabelUsesAnOptimisticLock(t *testing.T) {
	w := newFixture()
	w.want(t, removalDelay, true)
	w.pass(removalDelay)
	w.kube.PrependReactor("patch", "namespaces", func(a kubetesting.Action) (bool, runtime.Object, error) {
		if patch := string(a.(kubetesting.PatchAction).GetPatch()); !strings.Contains(patch, `"resourceVersion":"7"`) {
			t.Errorf("the patch has no resourceVersion: %s", patch)
		}
		return true, nil, apierrs.NewConflict(corev1.Resource("namespaces"), "ns", errors.New("the object was changed"))
	})
	w.want(t, conflictRetry, true)
}
