package generatedbudget

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap/zaptest"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
)

// crds is an API server with versions of kinds and their objects.
type crds struct {
	*customWorkloads
	client  *dynamicfake.FakeDynamicClient
	has     atomic.Pointer[map[string]bool]
	fails   atomic.Bool
	changes chan types.NamespacedName
}

func newCRDs(t *testing.T, objects ...runtime.Object) *crds {
	t.Helper()
	list := map[schema.GroupVersionResource]string{}
	for _, k := range customKinds() {
		for _, v := range k.versions {
			list[schema.GroupVersionResource{Group: k.group, Version: v.name, Resource: k.resource}] = k.kind + "List"
		}
	}
	c := &crds{client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), list, objects...), changes: make(chan types.NamespacedName, 100)}
	c.customWorkloads = newCustomWorkloads(c.client, zaptest.NewLogger(t).Sugar(), func(gvr schema.GroupVersionResource) (bool, error) {
		if c.fails.Load() {
			return false, errors.New("unreachable")
		}
		return (*c.has.Load())[gvr.Resource+"/"+gvr.Version], nil
	})
	c.changed = func(key types.NamespacedName) { c.changes <- key }
	c.has.Store(&map[string]bool{})
	return c
}

func (c *crds) serve(names ...string) {
	has := map[string]bool{}
	for _, name := range names {
		has[name] = true
	}
	c.has.Store(&has)
}

func (c *crds) next(t *testing.T) types.NamespacedName {
	t.Helper()
	select {
	case key := <-c.changes:
		return key
	case <-time.After(10 * time.Second):
		t.Fatal("no key was queued")
		return types.NamespacedName{}
	}
}

// watching waits until a kind is watched: the fake client loses changes between
// the list and the watch.
func (c *crds) watching(t *testing.T, resource string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return slices.ContainsFunc(c.client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", resource) }), nil
	})
	if err != nil {
		t.Fatalf("%s are not watched: %v", resource, err)
	}
}

func TestAKindIsWatchedWhileItsCRDExists(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCRDs(t, object(cloneSet, "v1alpha1", "web", within(int64(2), "updateStrategy", "maxUnavailable")))
	c.converge(ctx)
	if w := c.get(cloneSet, "ns", "web"); w != nil || c.Get(cloneSet.groupKind()) != nil {
		t.Fatal("a kind without a CRD is watched")
	}
	c.serve("clonesets/v1alpha1")
	c.converge(ctx)
	if key := c.next(t); key != keyOf(cloneSet, "ns", "web") {
		t.Errorf("queued %s", key)
	}
	w := c.get(cloneSet, "ns", "web")
	if w == nil || w.strategyMaxUnavailable == nil || w.strategyMaxUnavailable.IntValue() != 2 {
		t.Fatalf("%+v", w)
	}
	var all []string
	c.enqueueAll("ns", func(key types.NamespacedName) { all = append(all, key.String()) })
	c.enqueueAll("another", func(key types.NamespacedName) { all = append(all, key.String()) })
	if diff := cmp.Diff([]string{"ns/CloneSet/web"}, all); diff != "" {
		t.Error(diff)
	}
	c.watching(t, "clonesets")
	gvr := schema.GroupVersionResource{Group: kruise, Version: "v1alpha1", Resource: "clonesets"}
	if err := c.client.Tracker().Update(gvr, object(cloneSet, "v1alpha1", "web", within(int64(5), "updateStrategy", "maxUnavailable")), "ns"); err != nil {
		t.Fatal(err)
	}
	c.next(t)
	if w := c.get(cloneSet, "ns", "web"); w.strategyMaxUnavailable.IntValue() != 5 {
		t.Errorf("the change was not observed: %+v", w.strategyMaxUnavailable)
	}
	if err := c.client.Tracker().Delete(gvr, "ns", "web"); err != nil {
		t.Fatal(err)
	}
	c.next(t)
	if w := c.get(cloneSet, "ns", "web"); w != nil {
		t.Errorf("the workload still exists: %+v", w)
	}
}

// The handler of PodDisruptionBudgets reads the workloads that it enqueues, and waits if a change of the kinds waits for it.
func TestKindsCanChangeWhileWorkloadsAreEnqueued(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCRDs(t, object(cloneSet, "v1alpha1", "web", nil))
	c.serve("clonesets/v1alpha1")
	c.converge(ctx)
	c.next(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.enqueueAll("ns", func(types.NamespacedName) { c.converge(ctx) })
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the kinds cannot change until all workloads are enqueued")
	}
}

func TestTheNewestServedVersionIsWatched(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCRDs(t)
	version := func() string {
		s, _ := c.Kind(advancedStatefulSet.groupKind())
		return s.version.name
	}
	for _, step := range []struct {
		served []string
		fails  bool
		want   string
	}{
		{[]string{"statefulsets/v1alpha1"}, false, "v1alpha1"},
		{[]string{"statefulsets/v1alpha1", "statefulsets/v1beta1"}, false, "v1beta1"},
		{nil, true, "v1beta1"}, // an unknown version does not change the watch
		{nil, false, ""},
	} {
		c.serve(step.served...)
		c.fails.Store(step.fails)
		c.converge(ctx)
		if got := version(); got != step.want {
			t.Errorf("served %q: %q is watched, want %q", step.served, got, step.want)
		}
	}
}

// Reads are safe while informers start and stop.
func TestWorkloadsCanBeReadWhileKindsChange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCRDs(t, object(unitedDeployment, "v1alpha1", "web", nil))
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 20 {
			if i%2 == 0 {
				c.serve("uniteddeployments/v1alpha1")
			} else {
				c.serve()
			}
			c.converge(ctx)
		}
	}()
	err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		c.get(unitedDeployment, "ns", "web")
		c.enqueueAll("", func(types.NamespacedName) {})
		select {
		case <-done:
			return true, nil
		default:
			return false, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.serve("uniteddeployments/v1alpha1")
	c.converge(ctx)
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
		return c.get(unitedDeployment, "ns", "web") != nil, nil
	}); err != nil {
		t.Fatal(err)
	}
}
