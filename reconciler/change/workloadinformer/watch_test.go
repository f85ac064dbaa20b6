package workloadinformer

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	fakedynamic "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/configmap"
	_ "knative.dev/pkg/injection/clients/dynamicclient/fake"
	rtesting "knative.dev/pkg/reconciler/testing"

	_ "knative.dev/pkg/client/injection/kube/client/fake"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/wiring"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

var cloneSets = schema.GroupVersionResource{Group: "apps.kruise.io", Version: "v1alpha1", Resource: "clonesets"}

const cloneSetKind = `- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, revisions: ControllerRevision}`

func object(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind}}
	u.SetNamespace("default")
	u.SetName(name)
	return u
}

// fixture is a running Watch.
type fixture struct {
	watch *Watch
	cm    *configmap.ManualWatcher
	clock *testingclock.FakePassiveClock
	mu    sync.Mutex
	// served are the kinds that the API server has.
	served map[string]bool
	// emitted are the Events, seen the workloads that the handler received.
	emitted, seen []string
}

func start(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	t.Setenv("SYSTEM_NAMESPACE", "altershieldoperator-system")
	ctx, _ := rtesting.SetupFakeContext(t)
	x := &fixture{watch: newWatch(ctx), cm: &configmap.ManualWatcher{}, clock: testingclock.NewFakePassiveClock(time.Now()), served: map[string]bool{}}
	x.watch.clock = x.clock
	lists := map[schema.GroupVersionResource]string{cloneSets: "CloneSetList"}
	for _, k := range workload.BuiltIn() {
		lists[k.GroupVersionResource()] = k.Kind + "List"
	}
	x.watch.client = fakedynamic.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists, objects...)
	x.watch.discoveryInterval = 5 * time.Millisecond
	x.watch.served = func(k workload.Kind) (bool, error) {
		x.mu.Lock()
		defer x.mu.Unlock()
		return x.served[k.Kind], nil
	}
	x.watch.event = func(reason, message string) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.emitted = append(x.emitted, reason+" "+message)
	}
	x.watch.Follow(x.cm)
	err := x.watch.Handle(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		x.mu.Lock()
		defer x.mu.Unlock()
		w, _ := wiring.Object[*workload.Workload](obj)
		x.seen = append(x.seen, w.Kind.Kind+"/"+w.Name)
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop, over := make(chan struct{}), make(chan struct{})
	go func() { defer close(over); x.watch.Run(stop) }()
	t.Cleanup(func() { close(stop); <-over })
	x.await(t, "the watch to sync", x.watch.HasSynced)
	return x
}

func (x *fixture) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 2*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		x.mu.Lock()
		defer x.mu.Unlock()
		t.Fatalf("timed out waiting for %s; Events %q, seen %q", what, x.emitted, x.seen)
	}
}

func (x *fixture) serve(kind string, yes bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.served[kind] = yes
}

func (x *fixture) configure(kinds string) {
	x.cm.OnChange(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: workload.ConfigMapName}, Data: map[string]string{workload.KindsKey: kinds},
	})
}

func (x *fixture) has(kind, name string) func() bool {
	return func() bool {
		return x.watch.Get(schema.ParseGroupKind(kind), "default", name) != nil
	}
}

func (x *fixture) sees(what string) func() bool {
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return slices.Contains(x.seen, what)
	}
}

func (x *fixture) emits(reason string) func() bool {
	return func() bool { return x.count(reason) > 0 }
}

// count returns how many Events have a reason.
func (x *fixture) count(reason string) (n int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, s := range x.emitted {
		if strings.HasPrefix(s, reason+" ") {
			n++
		}
	}
	return n
}

func (x *fixture) says(text string) func() bool {
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		return slices.ContainsFunc(x.emitted, func(s string) bool { return strings.HasSuffix(s, text) })
	}
}

func not(f func() bool) func() bool { return func() bool { return !f() } }

func TestTheBuiltInKindsAreWatchedWithoutAConfiguration(t *testing.T) {
	x := start(t, object("apps/v1", "Deployment", "d"), object("apps/v1", "StatefulSet", "s"), object("apps/v1", "DaemonSet", "a"))
	for _, what := range []string{"Deployment/d", "StatefulSet/s", "DaemonSet/a"} {
		x.await(t, what, x.sees(what))
	}
	var got []string
	for _, w := range x.watch.All() {
		got = append(got, w.Name)
	}
	if diff := cmp.Diff([]string{"a", "d", "s"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnAddedKindIsWatchedWhenTheAPIServerHasIt(t *testing.T) {
	x := start(t, object("apps.kruise.io/v1alpha1", "CloneSet", "c"))
	x.configure(cloneSetKind)
	x.await(t, "an Event that the kind is missing", x.emits(ReasonKindMissing))
	if x.has("CloneSet.apps.kruise.io", "c")() {
		t.Fatal("a kind that the API server does not have is watched")
	}
	x.serve("CloneSet", true)
	x.await(t, "the kind's objects", x.has("CloneSet.apps.kruise.io", "c"))
	x.await(t, "the handler to receive the object", x.sees("CloneSet/c"))
	if k, ok := x.watch.Kind("apps.kruise.io/v1beta1", "CloneSet"); !ok || k.Resource != "clonesets" {
		t.Errorf("another version of the group is kind %v, %v", k, ok)
	}
}

// A cluster without Knative Serving has no Knative Services, and nothing has to be configured for
// one with it.
func TestAnOptionalKindIsWatchedWhileTheAPIServerHasIt(t *testing.T) {
	service, deployment := object("serving.knative.dev/v1", "Service", "web"), object("apps/v1", "Deployment", "web-00001-deployment")
	service.SetUID("s")
	deployment.SetLabels(map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "s"})
	deployment.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", UID: "r", Controller: new(true),
	}})
	x := start(t, service, deployment, object("apps/v1", "Deployment", "other"))
	x.await(t, "the Deployments", x.has("Deployment.apps", "other"))
	of := x.watch.Get(workload.Deployment.GroupKind(), "default", "web-00001-deployment")
	if _, ok := x.watch.ServiceOf(of); ok {
		t.Error("a Service that is not watched is found")
	}
	x.serve("Service", true)
	x.await(t, "the Service", x.sees("Service/web"))
	found := x.watch.Get(workload.KnativeService.GroupKind(), "default", "web")
	if ref, ok := x.watch.ServiceOf(of); !ok || ref.Name != "web" || ref.UID != "s" || ref.APIVersion != "serving.knative.dev/v1" {
		t.Errorf("of Service %+v, %t", ref, ok)
	}
	if own := x.watch.Deployments(found); len(own) != 1 || own[0] != of {
		t.Errorf("%d Deployments", len(own))
	}
	x.serve("Service", false)
	x.await(t, "the end of the kind", not(x.has("Service.serving.knative.dev", "web")))
	if x.emits("Kind")() {
		t.Error("a missing optional kind is reported")
	}
}

func TestARemovedKindIsNoLongerWatched(t *testing.T) {
	for name, end := range map[string]func(*fixture){
		"removed from the list": func(x *fixture) { x.configure("") },
		"CRD deleted":           func(x *fixture) { x.serve("CloneSet", false) },
	} {
		t.Run(name, func(t *testing.T) {
			x := start(t, object("apps.kruise.io/v1alpha1", "CloneSet", "c"), object("apps/v1", "Deployment", "d"))
			x.serve("CloneSet", true)
			x.configure(cloneSetKind)
			x.await(t, "the kind's objects", x.has("CloneSet.apps.kruise.io", "c"))
			end(x)
			x.await(t, "the end of the kind", not(x.has("CloneSet.apps.kruise.io", "c")))
			if !x.has("Deployment.apps", "d")() {
				t.Error("a built-in kind is no longer watched")
			}
		})
	}
}

func TestAChangedKindIsWatchedAgain(t *testing.T) {
	x := start(t, object("apps.kruise.io/v1alpha1", "CloneSet", "c"))
	x.serve("CloneSet", true)
	x.configure(cloneSetKind)
	x.await(t, "the kind's objects", x.has("CloneSet.apps.kruise.io", "c"))
	x.configure(`- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet, revisions: ControllerRevision, pause: spec.updateStrategy.paused}`)
	x.await(t, "the new path", func() bool {
		w := x.watch.Get(schema.ParseGroupKind("CloneSet.apps.kruise.io"), "default", "c")
		return w != nil && len(w.Kind.PauseField.Path) == 3
	})
}

func TestAnInvalidListKeepsTheLastValidOne(t *testing.T) {
	x := start(t, object("apps.kruise.io/v1alpha1", "CloneSet", "c"))
	x.serve("CloneSet", true)
	x.configure(cloneSetKind)
	x.await(t, "the kind's objects", x.has("CloneSet.apps.kruise.io", "c"))
	x.configure(`- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}`)
	x.await(t, "an Event that names the field", x.emits(ReasonKindsInvalid+" kinds[0].revisions:"))
	x.await(t, "an Event that says what is watched", x.says("the kinds of the last valid list until it restarts, and then only the built-in kinds)"))
	if !x.has("CloneSet.apps.kruise.io", "c")() {
		t.Error("after a malformed list the kind is no longer watched")
	}
}

// A controller that restarts while the list is invalid has no last valid list.
func TestAnInvalidListAtTheStartIsNotReportedAsThePreviousOne(t *testing.T) {
	x := start(t)
	x.configure(`- {apiVersion: apps.kruise.io/v1alpha1, kind: CloneSet}`)
	x.await(t, "an Event that says what is watched", x.says("(only the built-in kinds are watched)"))
}

func TestAWorkloadIsFoundByItsOwnReferenceOnly(t *testing.T) {
	u := object("apps/v1", "Deployment", "d")
	u.SetUID("1")
	x := start(t, u)
	x.await(t, "the Deployment", x.has("Deployment.apps", "d"))
	for name, tc := range map[string]struct {
		ref  v1alpha1.WorkloadRef
		want bool
	}{
		"the same":                       {v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "1"}, true},
		"another version of its group":   {v1alpha1.WorkloadRef{APIVersion: "apps/v1beta1", Kind: "Deployment", Name: "d", UID: "1"}, true},
		"an earlier one of the name":     {v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "d", UID: "0"}, false},
		"another kind":                   {v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "d", UID: "1"}, false},
		"the kind's name in other hands": {v1alpha1.WorkloadRef{APIVersion: "example.com/v1", Kind: "Deployment", Name: "d", UID: "1"}, false},
	} {
		if got := x.watch.Find("default", tc.ref) != nil; got != tc.want {
			t.Errorf("%s: found %v", name, got)
		}
	}
}
