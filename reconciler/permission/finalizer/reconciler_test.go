package finalizer

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// centre answers a revocation.
type centre struct {
	CentreState
	asked []api.RevokeRequest
}

func (c *centre) Revoke(_ context.Context, r api.RevokeRequest) ([]api.Application, error) {
	c.asked = append(c.asked, r)
	return c.Applications, c.Err
}

type sent struct{ types []string }

func (s *sent) Send(_ context.Context, e cloudevents.Event) { s.types = append(s.types, e.Type()) }

// nobody owns pods.
type nobody struct{}

func (nobody) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "", false, nil
}

type world struct {
	*Reconciler
	kube   *fake.Clientset
	centre *centre
	sent   *sent
	told   *record.FakeRecorder
	clock  *testingclock.FakePassiveClock
}

func newWorld(t *testing.T, p *corev1.Pod, namespace *corev1.Namespace) *world {
	t.Helper()
	index := func(objects ...any) cache.Indexer {
		i := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, o := range objects {
			if err := i.Add(o); err != nil {
				t.Fatal(err)
			}
		}
		return i
	}
	if namespace == nil {
		namespace = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	}
	w := &world{kube: fake.NewClientset(p, namespace), centre: &centre{}, sent: &sent{}, told: record.NewFakeRecorder(100), clock: testingclock.NewFakePassiveClock(zero)}
	tell := newReporter(w.told, w.sent, noop.Meter{})
	w.Reconciler = &Reconciler{
		kube: w.kube, pods: corelisters.NewPodLister(index(p)), nodes: corelisters.NewNodeLister(index()), namespaces: corelisters.NewNamespaceLister(index(namespace)),
		centre: w.centre, settings: settings.Default, clock: w.clock, recorder: w.told, reporter: tell, retries: newRetries(), unreported: newUnreportedPods(), uninjected: newUninjectedPods(), leaks: newLeakTracker(w.told),
	}
	w.requiredSets = requiredsets.Resolver{Owners: nobody{}, Namespaces: w.namespaces, Client: w.kube.CoreV1().Namespaces()}
	if err := w.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return w
}

// look reconciles, and says whether the pod has the finalizer and is looked at again.
func (w *world) look(t *testing.T) (protected, again bool) {
	t.Helper()
	err := w.Reconcile(t.Context(), "default/web")
	again, _ = controller.IsRequeueKey(err)
	if err != nil && !again {
		t.Fatal(err)
	}
	p, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return podmeta.HasFinalizer(p), again
}

func (w *world) events() string {
	var all []string
	for {
		select {
		case e := <-w.told.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

func TestAPodWithTheInitContainerGetsTheFinalizerAndKeepsOthers(t *testing.T) {
	w := newWorld(t, pod(func(p *corev1.Pod) { p.Finalizers = []string{"another/finalizer"} }), nil)
	if protected, _ := w.look(t); !protected {
		t.Error("it has no finalizer")
	}
	p, _ := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if len(p.Finalizers) != 2 {
		t.Errorf("finalizers %v", p.Finalizers)
	}
	if len(w.centre.asked) > 0 {
		t.Error("the centre was asked")
	}
}

func TestAPodThatEndedIsRevokedAndReleased(t *testing.T) {
	w := newWorld(t, pod(phase(corev1.PodSucceeded), func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "another/finalizer") }), nil)
	w.centre.CentreState = apps(api.Revoking)
	if protected, again := w.look(t); !protected || !again {
		t.Errorf("while it is being revoked: protected %v, again %v", protected, again)
	}
	w.centre.CentreState = apps(api.Revoked)
	if protected, again := w.look(t); protected || again {
		t.Errorf("when it is revoked: protected %v, again %v", protected, again)
	}
	p, _ := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if len(p.Finalizers) != 1 {
		t.Errorf("finalizers %v", p.Finalizers)
	}
	if got := w.centre.asked[0]; got.Cluster != "default" || got.PodUID != "uid" || got.KeepIPs != nil {
		t.Errorf("asked %+v", got)
	}
	if len(w.sent.types) != 1 || !strings.Contains(w.sent.types[0], "permission.revoked") {
		t.Errorf("sent %v", w.sent.types)
	}
}

func TestAPodIsReleasedAtTheDeadlineAndTheLeakIsTold(t *testing.T) {
	for name, proof := range map[string]CentreState{
		"the centre is down":      {Err: errors.New("connection refused")},
		"the provider hangs":      apps(api.Revoking),
		"it cannot be taken back": apps(api.Leaked),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, pod(phase(corev1.PodFailed)), nil)
			w.centre.CentreState = proof
			if proof.Err != nil || proof.Applications[0].State == api.Revoking {
				if protected, again := w.look(t); !protected || !again {
					t.Errorf("before the deadline: protected %v, again %v", protected, again)
				}
				w.clock.SetTime(zero.Add(5 * time.Minute))
			}
			if protected, again := w.look(t); protected || again {
				t.Errorf("protected %v, again %v", protected, again)
			}
			if told := w.events(); !strings.Contains(told, podmeta.ReasonPermissionLeaked) {
				t.Errorf("told %q", told)
			}
			if len(w.sent.types) != 1 || !strings.Contains(w.sent.types[0], "permission.leaked") {
				t.Errorf("sent %v", w.sent.types)
			}
			// What the centre calls leaked itself is in its books already.
			want := int64(1)
			if proof.Err == nil && proof.Applications[0].State == api.Leaked {
				want = 0
			}
			if got := w.unreported.count(); got != want {
				t.Errorf("the centre is to hear of %d pods, want %d", got, want)
			}
		})
	}
}

func TestAPodThatWasLetInWithoutTheInitContainerIsFound(t *testing.T) {
	enabled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default",
		Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}, Annotations: map[string]string{podmeta.SetAnnotation: "web"}}}
	w := newWorld(t, pod(plain), enabled)
	if protected, _ := w.look(t); protected {
		t.Error("it has the finalizer")
	}
	p, _ := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	c := podmeta.Condition(p, podmeta.ConditionInjected)
	if c == nil || c.Status != corev1.ConditionFalse || c.Reason != podmeta.ReasonPermissionNotInjected {
		t.Errorf("condition %+v", c)
	}
	if w.uninjected.counts()[podmeta.ReasonPermissionNotInjected] != 1 || !strings.Contains(w.events(), podmeta.ReasonPermissionNotInjected) {
		t.Errorf("counts %v", w.uninjected.counts())
	}
}

func TestAnAddressThatComesBackWhileAGrantHoldsForItIsTold(t *testing.T) {
	w := newWorld(t, pod(), nil)
	leaked := api.Application{ID: "app", ApplicationRequest: api.ApplicationRequest{Namespace: "shop", Pod: "old", PodUID: "old", PodIPs: []string{"10.0.0.1"}},
		Permissions: []api.ApplicationPermission{{Permission: "orders-db", Owner: "team-db", State: api.Leaked}}}
	w.leaks.byIP["10.0.0.1"] = leaked
	w.look(t)
	w.look(t)
	told := w.events()
	if strings.Count(told, podmeta.ReasonLeakedPermissionOnPodIP) != 1 || !strings.Contains(told, "orders-db") || !strings.Contains(told, "team-db") {
		t.Errorf("told %q", told)
	}
	if addresses, holders := w.leaks.counts(); addresses != 1 || holders != 1 {
		t.Errorf("%d addresses, %d holders", addresses, holders)
	}
	delete(w.leaks.byIP, "10.0.0.1")
	w.look(t)
	if _, holders := w.leaks.counts(); holders != 0 {
		t.Errorf("%d holders after it was healed", holders)
	}
}

func TestOnlyTheLeaderActs(t *testing.T) {
	w := newWorld(t, pod(bare), nil)
	w.Demote(reconciler.UniversalBucket())
	if err := w.Reconcile(t.Context(), "default/web"); !controller.IsSkipKey(err) {
		t.Errorf("%v", err)
	}
}
