package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap/zaptest"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// revision has the pods of a Revision of Knative Serving: its ReplicaSet wants ofSet pods, its
// Deployment wanted, and exist are there, of which ready are Ready.
type revision struct {
	name                        string
	wanted, ofSet, exist, ready int32
}

func (r revision) objects(offset int) []runtime.Object {
	deployment, set := r.name+"-deployment", r.name+"-deployment-5"
	all := []runtime.Object{
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: deployment, UID: types.UID("uid-" + deployment), OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: r.name, UID: types.UID("uid-" + r.name), Controller: new(true)}}},
			Spec: appsv1.DeploymentSpec{Replicas: &r.wanted}},
		&appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: set, UID: types.UID("uid-" + set), OwnerReferences: controlledBy("Deployment", deployment)},
			Spec: appsv1.ReplicaSetSpec{Replicas: &r.ofSet}},
	}
	for i := range r.exist {
		all = append(all, newPod(offset+int(i), controlledBy("ReplicaSet", set), func(p *corev1.Pod) {
			if i >= r.ready {
				p.Status.Conditions = nil
			}
		}))
	}
	return all
}

// knativeServiceWeb returns the Service web, whose requests go to these Revisions.
func knativeServiceWeb(revisions ...string) *unstructured.Unstructured {
	var traffic []any
	for i, name := range revisions {
		share := int64(1)
		if i == 0 {
			share = int64(101 - len(revisions))
		}
		traffic = append(traffic, map[string]any{"revisionName": name, "percent": share})
	}
	o := newOwner(workload.KnativeService.GroupVersionKind, "web", nil, map[string]any{"status": map[string]any{"traffic": traffic}})
	return o
}

func ofKnativeService(limit func(*v1alpha1.PodUnavailableBudgetSpec)) *v1alpha1.PodUnavailableBudget {
	return newBudget(func(b *v1alpha1.PodUnavailableBudget) {
		b.Spec = v1alpha1.PodUnavailableBudgetSpec{TargetRef: &v1alpha1.TargetRef{APIVersion: "serving.knative.dev/v1", Kind: "Service", Name: "web"}}
		limit(&b.Spec)
	})
}

func minAvailable(n int32) func(*v1alpha1.PodUnavailableBudgetSpec) {
	return func(s *v1alpha1.PodUnavailableBudgetSpec) { s.MinAvailable = new(intstr.FromInt32(n)) }
}

func maxUnavailable(n int32) func(*v1alpha1.PodUnavailableBudgetSpec) {
	return func(s *v1alpha1.PodUnavailableBudgetSpec) { s.MaxUnavailable = new(intstr.FromInt32(n)) }
}

// The autoscaler lowers the replicas of a Deployment, and its pods are deleted because of that.
// A pod that is killed leaves the replicas as they are.
func TestTheNumbersOfABudgetOfAKnativeService(t *testing.T) {
	for name, tc := range map[string]struct {
		limit                          func(*v1alpha1.PodUnavailableBudgetSpec)
		traffic                        []string
		revisions                      []revision
		total, desired, current, allow int32
	}{
		"pods of a Revision without traffic do not count": {minAvailable(2), []string{"web-1"}, []revision{{"web-1", 2, 2, 2, 2}, {"web-2", 2, 2, 2, 2}}, 2, 2, 2, 0},
		"the Revisions that share the traffic count":      {minAvailable(3), []string{"web-1", "web-2"}, []revision{{"web-1", 2, 2, 2, 2}, {"web-2", 2, 2, 2, 2}}, 4, 3, 4, 1},
		"a pod was killed":                   {maxUnavailable(1), []string{"web-1"}, []revision{{"web-1", 3, 3, 2, 2}}, 3, 2, 2, 0},
		"its successor is not Ready":         {maxUnavailable(1), []string{"web-1"}, []revision{{"web-1", 3, 3, 3, 2}}, 3, 2, 2, 0},
		"all pods of a Revision are lost":    {maxUnavailable(1), []string{"web-1", "web-2"}, []revision{{"web-1", 3, 3, 3, 3}, {"web-2", 2, 2, 0, 0}}, 5, 4, 3, 0},
		"all pods of all Revisions are lost": {maxUnavailable(1), []string{"web-1"}, []revision{{"web-1", 3, 3, 0, 0}}, 3, 2, 0, 0},
		"the autoscaler scales down":         {maxUnavailable(0), []string{"web-1"}, []revision{{"web-1", 1, 3, 3, 3}}, 1, 1, 3, 1},
		"its ReplicaSet follows":             {maxUnavailable(0), []string{"web-1"}, []revision{{"web-1", 1, 1, 3, 3}}, 1, 1, 3, 2},
		"it has scaled down":                 {maxUnavailable(0), []string{"web-1"}, []revision{{"web-1", 1, 1, 1, 1}}, 1, 1, 1, 0},
		"below minAvailable":                 {minAvailable(3), []string{"web-1"}, []revision{{"web-1", 1, 1, 3, 3}}, 1, 1, 3, 2},
		"the autoscaler scales to zero":      {minAvailable(2), []string{"web-1"}, []revision{{"web-1", 0, 0, 2, 2}}, 0, 0, 2, 2},
		"it has scaled to zero":              {minAvailable(2), []string{"web-1"}, []revision{{"web-1", 0, 0, 0, 0}}, 0, 0, 0, 0},
		"the first pod after zero":           {minAvailable(2), []string{"web-1"}, []revision{{"web-1", 1, 1, 1, 1}}, 1, 1, 1, 0},
		"the autoscaler scales up":           {minAvailable(2), []string{"web-1"}, []revision{{"web-1", 5, 5, 5, 2}}, 5, 2, 2, 0},
		"no Revision has traffic":            {minAvailable(2), nil, []revision{{"web-1", 2, 2, 2, 2}}, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			for i, r := range tc.revisions {
				objects = append(objects, r.objects(10*i)...)
			}
			w := newFixture(t, ofKnativeService(tc.limit), objects...)
			w.withOwners(t, []*unstructured.Unstructured{knativeServiceWeb(tc.traffic...)}, nil)
			s := w.reconcile(t)
			if s.TotalReplicas != tc.total || s.DesiredAvailable != tc.desired || s.CurrentAvailable != tc.current || s.UnavailableAllowed != tc.allow {
				t.Errorf("total %d, desired %d, current %d, allowed %d; want %d, %d, %d, %d",
					s.TotalReplicas, s.DesiredAvailable, s.CurrentAvailable, s.UnavailableAllowed, tc.total, tc.desired, tc.current, tc.allow)
			}
			if c := s.GetCondition(v1alpha1.BudgetSynced); !c.IsTrue() {
				t.Errorf("%+v", c)
			}
		})
	}
}

func TestABudgetWhoseKnativeServiceCannotBeReadAllowsNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		synced bool
	}{
		"the Service does not exist": {nil, true},
		"the API server does not serve the kind": {apierrs.NewGenericServerResponse(404, "get", schema.GroupResource{Resource: "services"}, "web",
			"404 page not found", 0, true), true},
		"reading it is forbidden": {apierrs.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("no permission")), false},
		"the API server fails":    {apierrs.NewInternalError(errors.New("unavailable")), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, ofKnativeService(minAvailable(1)), revision{"web-1", 2, 2, 2, 2}.objects(0)...)
			if tc.err != nil {
				client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
				client.PrependReactor("get", "services", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
				w.owners.client = client
			}
			s := w.reconcile(t)
			if c := s.GetCondition(v1alpha1.BudgetSynced); c.IsTrue() != tc.synced || s.UnavailableAllowed != 0 {
				t.Errorf("allowed %d: %+v", s.UnavailableAllowed, c)
			}
		})
	}
}

// services is a watch of Knative Services on an API server that may have the kind.
type services struct {
	*knativeServices
	has     atomic.Bool
	fails   atomic.Bool
	changes chan string
	client  *dynamicfake.FakeDynamicClient
}

func newServices(t *testing.T, objects ...runtime.Object) *services {
	t.Helper()
	gvr := workload.KnativeService.GroupVersionResource()
	s := &services{changes: make(chan string, 100), client: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(
		runtime.NewScheme(), map[schema.GroupVersionResource]string{gvr: "ServiceList"}, objects...)}
	s.knativeServices = newKnativeServices(s.client, zaptest.NewLogger(t).Sugar(), func() (bool, error) {
		if s.fails.Load() {
			return false, errors.New("unreachable")
		}
		return s.has.Load(), nil
	})
	s.changed = func(namespace, name string) { s.changes <- namespace + "/" + name }
	return s
}

func (s *services) await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) { return holds(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (s *services) serves(name string, want ...string) func() bool {
	return func() bool {
		got, ok := s.get("ns", name)
		return ok && slices.Equal(got, want)
	}
}

func TestKnativeServicesAreWatchedWhileTheAPIServerHasThem(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newServices(t, knativeServiceWeb("web-1"))
	s.converge(ctx)
	if _, ok := s.get("ns", "web"); ok || len(s.client.Actions()) > 0 {
		t.Fatalf("read without Serving: %v", s.client.Actions())
	}
	s.has.Store(true)
	s.converge(ctx)
	s.await(t, "the Service is cached", s.serves("web", "web-1"))
	s.await(t, "the kind is watched", func() bool {
		return slices.ContainsFunc(s.client.Actions(), func(a clienttesting.Action) bool { return a.Matches("watch", "services") })
	})
	if got := <-s.changes; got != "ns/web" {
		t.Errorf("got %s", got)
	}
	s.fails.Store(true)
	s.converge(ctx)
	s.await(t, "it stays while discovery fails", s.serves("web", "web-1"))
	s.fails.Store(false)

	// Other changes enqueue nothing: the next change in the channel is that of the traffic.
	web := s.client.Resource(workload.KnativeService.GroupVersionResource()).Namespace("ns")
	for i, u := range []*unstructured.Unstructured{knativeServiceWeb("web-1"), knativeServiceWeb("web-2", "web-1")} {
		u.SetLabels(map[string]string{"change": fmt.Sprint(i)})
		if _, err := web.Update(ctx, u, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.await(t, "the traffic moves", s.serves("web", "web-1", "web-2"))
	if got := <-s.changes; got != "ns/web" {
		t.Errorf("got %s", got)
	}
	if err := web.Delete(ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the Service is gone", func() bool { _, ok := s.get("ns", "web"); return !ok })
	if got := <-s.changes; got != "ns/web" || len(s.changes) > 0 {
		t.Errorf("got %s, and %d more", got, len(s.changes))
	}
	s.has.Store(false)
	s.converge(ctx)
	if s.Get(knativeServiceKind) != nil {
		t.Error("watched after Serving was uninstalled")
	}
}

// A Service that is watched needs no resync, and is not read.
func TestABudgetFollowsTheWatchOfItsKnativeService(t *testing.T) {
	s := newServices(t, knativeServiceWeb("web-1"))
	s.has.Store(true)
	s.converge(t.Context())
	s.await(t, "the Service is cached", s.serves("web", "web-1"))
	w := newFixture(t, ofKnativeService(minAvailable(1)), revision{"web-1", 2, 2, 0, 0}.objects(0)...)
	w.owners.services = s.knativeServices
	again, wait := controller.IsRequeueKey(w.ReconcileKind(t.Context(), w.live(t)))
	if !again || wait != watchedResync {
		t.Errorf("reconciled again %t after %s", again, wait)
	}
	if total := w.live(t).Status.TotalReplicas; total != 2 {
		t.Errorf("total %d", total)
	}
	if n := len(w.owners.client.(*dynamicfake.FakeDynamicClient).Actions()); n != 0 {
		t.Errorf("%d reads", n)
	}
}

func TestAChangeOfTrafficEnqueuesTheBudgetsOfTheKnativeService(t *testing.T) {
	named := func(name, apiVersion, target string) *v1alpha1.PodUnavailableBudget {
		b := ofKnativeService(minAvailable(1))
		b.Name, b.Spec.TargetRef.APIVersion, b.Spec.TargetRef.Name = name, apiVersion, target
		return b
	}
	index := budgetIndex(t, []*v1alpha1.PodUnavailableBudget{
		named("a", "serving.knative.dev/v1", "web"), named("b", "serving.knative.dev", "web"), named("c", "serving.knative.dev/v1", "db"), named("d", "v1", "web"),
	})
	var got []string
	for _, b := range (affectedBudgets{budgets: index}).ofService("ns", "web") {
		got = append(got, b.Name)
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("got %v", got)
	}
}

// A ClusterRole may permit to read the owners of a Revision.
func TestTheOwnersOfARevisionHaveNoReplicas(t *testing.T) {
	kind := func(name string) schema.GroupVersionKind {
		return workload.KnativeService.GroupVersion().WithKind(name)
	}
	w := newFixture(t, newBudget(nil), revision{"web-1", 2, 2, 2, 2}.objects(0)...)
	w.withOwners(t, []*unstructured.Unstructured{knativeServiceWeb("web-1"),
		newOwner(kind("Configuration"), "web-configuration", ownedBy(kind("Service"), "web"), nil),
		newOwner(kind("Revision"), "web-1", ownedBy(kind("Configuration"), "web-configuration"), nil)}, nil)
	w.owners.mapper = newMapper(kind("Revision"), kind("Configuration"), kind("Service"))
	if s := w.reconcile(t); s.TotalReplicas != 2 || s.CurrentAvailable != 2 {
		t.Errorf("total %d, current %d", s.TotalReplicas, s.CurrentAvailable)
	}
	var read []string
	for _, a := range w.owners.client.(*dynamicfake.FakeDynamicClient).Actions() {
		read = append(read, a.GetResource().Resource+a.GetSubresource())
	}
	if want := []string{"revisions", "configurations", "services"}; !slices.Equal(read, want) {
		t.Errorf("read %v, want %v", read, want)
	}
}
