package podpermission

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/metric/noop"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/eventrecorder"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/podmeta"
	"github.com/breakwater-dev/breakwater/permission/requiredsets"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// fakeCentre answers revocations.
type fakeCentre struct {
	CentreState
	requests []api.RevokeRequest
}

func (c *fakeCentre) Revoke(_ context.Context, r api.RevokeRequest) (api.RevokeResult, error) {
	c.requests = append(c.requests, r)
	return c.RevokeResult, c.Err
}

type eventSink struct{ types []string }

func (s *eventSink) Send(_ context.Context, e cloudevents.Event) { s.types = append(s.types, e.Type()) }

// noOwners finds no annotation.
type noOwners struct{}

func (noOwners) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return "", false, nil
}

type fixture struct {
	*Reconciler
	kube     *fake.Clientset
	centre   *fakeCentre
	sink     *eventSink
	recorder *record.FakeRecorder
	clock    *testingclock.FakePassiveClock
}

func newFixture(t *testing.T, p *corev1.Pod, namespace *corev1.Namespace) *fixture {
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
	w := &fixture{kube: fake.NewClientset(p, namespace), centre: &fakeCentre{}, sink: &eventSink{}, recorder: record.NewFakeRecorder(100), clock: testingclock.NewFakePassiveClock(zero)}
	reporter := newReporter(w.recorder, w.sink, noop.Meter{})
	w.Reconciler = &Reconciler{
		kube: w.kube, pods: corelisters.NewPodLister(index(p)), nodes: corelisters.NewNodeLister(index()), namespaces: corelisters.NewNamespaceLister(index(namespace)),
		centre: w.centre, settings: settings.Default, clock: w.clock, recorder: w.recorder, reporter: reporter, ownersWithoutSets: newOwnersWithoutSets(w.clock), ownersReads: newOwnersReads(), retries: newRetries(), unsentLetGo: newUnsentLetGoPods(), uninjected: newUninjectedPods(), leaks: newLeakTracker(w.recorder),
	}
	w.requiredSets = requiredsets.Resolver{Owners: noOwners{}, Namespaces: w.namespaces, Client: w.kube.CoreV1().Namespaces()}
	if err := w.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	return w
}

// reconcile reconciles the pod and returns whether it has the finalizer and is requeued.
func (w *fixture) reconcile(t *testing.T) (protected, requeued bool) {
	t.Helper()
	err := w.Reconcile(t.Context(), "default/web")
	requeued, _ = controller.IsRequeueKey(err)
	if err != nil && !requeued {
		t.Fatal(err)
	}
	p, err := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return podmeta.HasFinalizer(p), requeued
}

func (w *fixture) events() string {
	var all []string
	for {
		select {
		case e := <-w.recorder.Events:
			all = append(all, e)
		default:
			return strings.Join(all, "\n")
		}
	}
}

func TestAPodWithTheInitContainerGetsTheFinalizerAndKeepsOthers(t *testing.T) {
	w := newFixture(t, pod(func(p *corev1.Pod) { p.Finalizers = []string{"another/finalizer"} }), nil)
	if protected, _ := w.reconcile(t); !protected {
		t.Error("the pod has no finalizer")
	}
	p, _ := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if len(p.Finalizers) != 2 {
		t.Errorf("finalizers %v", p.Finalizers)
	}
	if len(w.centre.requests) > 0 {
		t.Error("the centre was called")
	}
}

func TestAPodThatEndedIsRevokedAndLosesTheFinalizer(t *testing.T) {
	w := newFixture(t, pod(phase(corev1.PodSucceeded), func(p *corev1.Pod) { p.Finalizers = append(p.Finalizers, "another/finalizer") }), nil)
	w.centre.CentreState = applications(api.Revoking)
	if protected, requeued := w.reconcile(t); !protected || !requeued {
		t.Errorf("while Revoking: protected %v, requeued %v", protected, requeued)
	}
	w.centre.CentreState = applications(api.Revoked)
	if protected, requeued := w.reconcile(t); protected || requeued {
		t.Errorf("when Revoked: protected %v, requeued %v", protected, requeued)
	}
	p, _ := w.kube.CoreV1().Pods("default").Get(t.Context(), "web", metav1.GetOptions{})
	if len(p.Finalizers) != 1 {
		t.Errorf("finalizers %v", p.Finalizers)
	}
	if got := w.centre.requests[0]; got.Cluster != "default" || got.PodUID != "uid" || got.KeepIPs != nil {
		t.Errorf("revoke request %+v", got)
	}
	if len(w.sink.types) != 1 || !strings.Contains(w.sink.types[0], "permission.revoked") {
		t.Errorf("sent %v", w.sink.types)
	}
}

func TestAResultIsReportedOnceWhileTheFinalizerCannotBeRemoved(t *testing.T) {
	w := newFixture(t, pod(phase(corev1.PodSucceeded)), nil)
	w.centre.CentreState = applications(api.Revoked)
	denials := 2
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		denials--
		return denials >= 0, nil, errors.New("failed calling webhook")
	})
	for range 2 {
		if err := w.Reconcile(t.Context(), "default/web"); err == nil {
			t.Error("the denial is no error")
		}
		if events := w.events(); !strings.Contains(events, "FinalizerNotWritten") || !strings.Contains(events, "failed calling webhook") {
			t.Errorf("events %q", events)
		}
	}
	if protected, requeued := w.reconcile(t); protected || requeued {
		t.Errorf("protected %v, requeued %v", protected, requeued)
	}
	if len(w.sink.types) != 1 {
		t.Errorf("sent %v", w.sink.types)
	}
}

func TestEachResultIsReportedOnceWhileTheFinalizerCannotBeRemoved(t *testing.T) {
	of := func(state api.State) CentreState {
		return CentreState{RevokeResult: api.RevokeResult{Items: []api.Application{
			{ID: "a", State: api.Revoked, ApplicationRequest: api.ApplicationRequest{Set: "a"}},
			{ID: "b", State: state, ApplicationRequest: api.ApplicationRequest{Set: "b"}},
		}}}
	}
	w := newFixture(t, pod(phase(corev1.PodSucceeded)), nil)
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("failed calling webhook")
	})
	w.centre.CentreState = of(api.Revoking)
	w.reconcile(t)
	w.clock.SetTime(zero.Add(5 * time.Minute))
	for _, state := range []api.State{api.Revoking, api.Revoked, api.Revoking, api.Revoked} {
		w.centre.CentreState = of(state)
		if err := w.Reconcile(t.Context(), "default/web"); err == nil {
			t.Error("the denial is no error")
		}
	}
	if diff := cmp.Diff([]string{events.TypePermissionRevoked, events.TypePermissionLeaked, events.TypePermissionRevoked}, w.sink.types); diff != "" {
		t.Error(diff)
	}
}

func TestAChangedResultIsReportedWhileTheFinalizerCannotBeRemoved(t *testing.T) {
	w := newFixture(t, pod(phase(corev1.PodSucceeded)), nil)
	w.centre.CentreState = CentreState{Err: errors.New("connection refused")}
	w.reconcile(t)
	w.clock.SetTime(zero.Add(5 * time.Minute))
	denied := false
	w.kube.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		first := !denied
		denied = true
		return first, nil, errors.New("failed calling webhook")
	})
	if err := w.Reconcile(t.Context(), "default/web"); err == nil {
		t.Error("the denial is no error")
	}
	w.centre.CentreState = applications(api.Revoked)
	if protected, requeued := w.reconcile(t); protected || requeued {
		t.Errorf("protected %v, requeued %v", protected, requeued)
	}
	if len(w.sink.types) != 2 || !strings.Contains(w.sink.types[0], "permission.leaked") || !strings.Contains(w.sink.types[1], "permission.revoked") {
		t.Errorf("sent %v", w.sink.types)
	}
}

func TestAtTheDeadlineTheFinalizerIsRemovedAndTheLeakIsReported(t *testing.T) {
	for name, state := range map[string]CentreState{
		"the centre is unreachable":   {Err: errors.New("connection refused")},
		"the provider hangs":          applications(api.Revoking),
		"the grant cannot be revoked": applications(api.Leaked),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, pod(phase(corev1.PodFailed)), nil)
			w.centre.CentreState = state
			if state.Err != nil || state.Items[0].State == api.Revoking {
				if protected, requeued := w.reconcile(t); !protected || !requeued {
					t.Errorf("before the deadline: protected %v, requeued %v", protected, requeued)
				}
				w.clock.SetTime(zero.Add(5 * time.Minute))
			}
			if protected, requeued := w.reconcile(t); protected || requeued {
				t.Errorf("protected %v, requeued %v", protected, requeued)
			}
			if events := w.events(); !strings.Contains(events, podmeta.ReasonPermissionLeaked) {
				t.Errorf("events %q", events)
			}
			if len(w.sink.types) != 1 || !strings.Contains(w.sink.types[0], "permission.leaked") {
				t.Errorf("sent %v", w.sink.types)
			}
			// The centre already knows applications that it reports as leaked.
			want := int64(1)
			if state.Err == nil && state.Items[0].State == api.Leaked {
				want = 0
			}
			if got := w.unsentLetGo.count(); got != want {
				t.Errorf("%d unsent pods, want %d", got, want)
			}
		})
	}
}

// A centre that lost its store, or that has another name for the cluster, has no
// application of the pod.
func TestAnAuthorizedPodWithoutApplicationsIsLeaked(t *testing.T) {
	authorized := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: podmeta.ConditionInjected, Status: corev1.ConditionTrue}, {Type: podmeta.ConditionAuthorized, Status: corev1.ConditionTrue}}
	}
	trimmed, err := trimPod(pod(phase(corev1.PodFailed), authorized))
	if err != nil {
		t.Fatal(err)
	}
	w := newFixture(t, trimmed.(*corev1.Pod), nil)
	if protected, requeued := w.reconcile(t); !protected || !requeued {
		t.Errorf("before the deadline: protected %v, requeued %v", protected, requeued)
	}
	w.clock.SetTime(zero.Add(5 * time.Minute))
	if protected, _ := w.reconcile(t); protected {
		t.Error("the finalizer is not removed at the deadline")
	}
	if events := w.events(); !strings.Contains(events, "has no application of the pod") {
		t.Errorf("events %q", events)
	}
	if len(w.sink.types) != 1 || !strings.Contains(w.sink.types[0], "permission.leaked") {
		t.Errorf("sent %v", w.sink.types)
	}
}

// An application that was never granted is Revoked without a call.
func TestAPodWithGrantsUnderAnotherNameIsNotReportedAsRevoked(t *testing.T) {
	w := newFixture(t, pod(phase(corev1.PodFailed)), nil)
	w.centre.CentreState = applications(api.Revoked)
	w.centre.OtherNames = []api.OtherName{{Cluster: "c1", HasOrAwaitsGrant: true}}
	if protected, requeued := w.reconcile(t); !protected || !requeued {
		t.Errorf("before the deadline: protected %v, requeued %v", protected, requeued)
	}
	w.clock.SetTime(zero.Add(5 * time.Minute))
	if protected, _ := w.reconcile(t); protected {
		t.Error("the finalizer is not removed at the deadline")
	}
	if events := w.events(); strings.Contains(events, podmeta.ReasonPermissionRevoked) || !strings.Contains(events, podmeta.ReasonPermissionLeaked) {
		t.Errorf("events %q, want only a leak", events)
	}
}

func TestAPodWithoutTheInitContainerIsReported(t *testing.T) {
	enabled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default",
		Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}, Annotations: map[string]string{podmeta.PermissionSetAnnotation: "web"}}}
	w := newFixture(t, pod(withoutInitContainer), enabled)
	if protected, _ := w.reconcile(t); protected {
		t.Error("the pod has the finalizer")
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

func TestAPodWithAnAddressOfALeakedGrantIsReported(t *testing.T) {
	w := newFixture(t, pod(), nil)
	leaked := api.Application{ID: "app", ApplicationRequest: api.ApplicationRequest{Namespace: "shop", Pod: "old", PodUID: "old", PodIPs: []string{"10.0.0.1"}},
		Permissions: []api.ApplicationPermission{{Permission: "orders-db", Owner: "team-db", State: api.Leaked, Message: "cannot connect to the provider"}}}
	w.leaks.byIP["10.0.0.1"] = leaked
	w.reconcile(t)
	w.reconcile(t)
	events := w.events()
	const want = "address 10.0.0.1 belonged to pod shop/old, whose permissions are not revoked; this pod can use them, except those of node-scoped providers: permission orders-db: cannot connect to the provider (ask team-db)"
	if strings.Count(events, podmeta.ReasonLeakedPermissionOnPodIP) != 1 || !strings.Contains(events, want) {
		t.Errorf("events %q, want one with %q", events, want)
	}
	if addresses, holders := w.leaks.counts(); addresses != 1 || holders != 1 {
		t.Errorf("%d addresses, %d holders", addresses, holders)
	}
	w.clock.SetTime(zero.Add(eventrecorder.RepeatAfter))
	w.reconcile(t)
	w.reconcile(t)
	if events := w.events(); strings.Count(events, podmeta.ReasonLeakedPermissionOnPodIP) != 1 {
		t.Errorf("events %q before the API server deletes the first one, want a second one", events)
	}
	delete(w.leaks.byIP, "10.0.0.1")
	w.reconcile(t)
	if _, holders := w.leaks.counts(); holders != 0 {
		t.Errorf("%d holders after the revocation", holders)
	}
}

// leakedApplications lists leaked applications.
type leakedApplications []api.Application

func (l leakedApplications) Each(_ context.Context, _ url.Values, visit func(api.Application)) error {
	for _, app := range l {
		visit(app)
	}
	return nil
}

// All pods with hostNetwork of a node have its address. The permissions of such a pod are for the node.
func TestALeakOfAPodWithHostNetworkIsNotReportedAtOtherPodsOfItsNode(t *testing.T) {
	for name, tc := range map[string]struct {
		hostNetwork bool
		want        int64
	}{
		"a pod with hostNetwork":    {true, 0},
		"a pod without hostNetwork": {false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, pod(), nil)
			leaked := api.Application{ID: "app", ApplicationRequest: api.ApplicationRequest{Namespace: "shop", Pod: "old", PodUID: "old", PodIPs: []string{"10.0.0.1"}, HostNetwork: tc.hostNetwork}}
			if err := w.leaks.refresh(t.Context(), leakedApplications{leaked}, "default"); err != nil {
				t.Fatal(err)
			}
			w.reconcile(t)
			if addresses, holders := w.leaks.counts(); addresses != tc.want || holders != tc.want {
				t.Errorf("%d addresses, %d holders, want %d", addresses, holders, tc.want)
			}
			if events := w.events(); strings.Count(events, podmeta.ReasonLeakedPermissionOnPodIP) != int(tc.want) {
				t.Errorf("events %q, want %d", events, tc.want)
			}
		})
	}
}

func TestOnlyTheLeaderActs(t *testing.T) {
	w := newFixture(t, pod(withoutFinalizer), nil)
	w.Demote(reconciler.UniversalBucket())
	if err := w.Reconcile(t.Context(), "default/web"); !controller.IsSkipKey(err) {
		t.Errorf("%v", err)
	}
}

// A replica may lead again, and then reports what it remembers.
func TestAReplicaThatDoesNotLeadForgetsADeletedPod(t *testing.T) {
	enabled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default",
		Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}, Annotations: map[string]string{podmeta.PermissionSetAnnotation: "web"}}}
	w := newFixture(t, pod(withoutInitContainer), enabled)
	w.leaks.byIP["10.0.0.1"] = api.Application{ID: "app", ApplicationRequest: api.ApplicationRequest{Namespace: "shop", Pod: "old", PodUID: "old", PodIPs: []string{"10.0.0.1"}}}
	w.reconcile(t)
	if _, holders := w.leaks.counts(); holders != 1 || w.uninjected.counts()[podmeta.ReasonPermissionNotInjected] != 1 {
		t.Fatalf("before the deletion: %d holders, uninjected %v", holders, w.uninjected.counts())
	}
	w.Demote(reconciler.UniversalBucket())
	w.pods = corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}))
	if err := w.Reconcile(t.Context(), "default/web"); err != nil && !controller.IsSkipKey(err) {
		t.Fatal(err)
	}
	if err := w.Promote(reconciler.UniversalBucket(), func(reconciler.Bucket, types.NamespacedName) {}); err != nil {
		t.Fatal(err)
	}
	if _, holders := w.leaks.counts(); holders != 0 || w.uninjected.counts()[podmeta.ReasonPermissionNotInjected] != 0 {
		t.Errorf("after the deletion: %d holders, uninjected %v", holders, w.uninjected.counts())
	}
}
