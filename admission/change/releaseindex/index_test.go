package releaseindex

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"knative.dev/pkg/apis"
	duckv1 "knative.dev/pkg/apis/duck/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func newHistory(t *testing.T, cached, stored *v1alpha1.ChangeWorkload) (*Index, *fake.Clientset) {
	t.Helper()
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	client := fake.NewSimpleClientset()
	if cached != nil {
		trimmed, err := Trim(cached.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		if err := index.Add(trimmed); err != nil {
			t.Fatal(err)
		}
	}
	if stored != nil {
		if err := client.Tracker().Add(stored); err != nil {
			t.Fatal(err)
		}
	}
	return &Index{
		Lister: listers.NewChangeWorkloadLister(index), Client: client.AppV1alpha1(), Revisions: kubefake.NewClientset().AppsV1(),
	}, client
}

func TestAVersionSucceeded(t *testing.T) {
	d := builder.StoredDeployment()
	in := func(phase v1alpha1.ReleasePhase) *v1alpha1.ChangeWorkload {
		return builder.ChangeWorkload(d, 1, phase)
	}
	change := func(f func(*v1alpha1.ChangeWorkload)) *v1alpha1.ChangeWorkload {
		c := in(v1alpha1.ReleaseSuccess)
		f(c)
		return c
	}
	judged := func(reason string) *v1alpha1.ChangeWorkload {
		return change(func(c *v1alpha1.ChangeWorkload) {
			c.Status.Conditions = duckv1.Conditions{{Type: apis.ConditionSucceeded, Status: corev1.ConditionTrue}, {Type: v1alpha1.ReleaseJudged, Status: corev1.ConditionFalse, Reason: reason}}
		})
	}
	for name, tc := range map[string]struct {
		cached, stored *v1alpha1.ChangeWorkload
		want           bool
	}{
		"not when it was applied at 0 replicas":              {cached: judged(v1alpha1.ReasonNoVerdict), stored: judged(v1alpha1.ReasonNoVerdict)},
		"when it was scaled to 0 after its pods were judged": {cached: judged(v1alpha1.ReasonVerdictReceived), want: true},
		"when its pods passed without a verdict":             {cached: judged(v1alpha1.ReasonPassedUnjudged), want: true},
		"when it is a baseline":                              {cached: judged(v1alpha1.ReasonBaseline), want: true},
		"succeeded in the cache":                             {cached: in(v1alpha1.ReleaseSuccess), want: true},
		"when the cache does not have it yet":                {stored: in(v1alpha1.ReleaseSuccess), want: true},
		"when the cached state is still Running":             {cached: in(v1alpha1.ReleaseRunning), stored: in(v1alpha1.ReleaseSuccess), want: true},
		"not when there is none":                             {},
		"not when it was suspended":                          {cached: in(v1alpha1.ReleaseSuspend), stored: in(v1alpha1.ReleaseSuspend)},
		"not when it was that of an earlier Deployment":      {stored: change(func(c *v1alpha1.ChangeWorkload) { c.Spec.WorkloadRef.UID = "earlier" })},
		"not when it was that of a workload of another kind": {stored: change(func(c *v1alpha1.ChangeWorkload) { c.Spec.WorkloadRef.Kind = "StatefulSet" })},
		"not when it is another version of a shortened name": {stored: change(func(c *v1alpha1.ChangeWorkload) { c.Spec.Reversion = "other" })},
		"not when it is terminating":                         {stored: change(func(c *v1alpha1.ChangeWorkload) { c.DeletionTimestamp = &metav1.Time{}; c.Finalizers = []string{"a"} })},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := newHistory(t, tc.cached, tc.stored)
			got, err := h.Succeeded(t.Context(), builder.Workload(t, d), builder.Version(d))
			if err != nil {
				t.Fatal(err)
			}
			if got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestACachedSuccessNeedsNoRequest(t *testing.T) {
	d := builder.StoredDeployment()
	h, client := newHistory(t, builder.ChangeWorkload(d, 1, v1alpha1.ReleaseSuccess), nil)
	if ok, err := h.Succeeded(t.Context(), builder.Workload(t, d), builder.Version(d)); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if n := len(client.Actions()); n > 0 {
		t.Errorf("asked %d times", n)
	}
}

func TestAnErrorOfTheAPIServerIsReturned(t *testing.T) {
	h, client := newHistory(t, nil, nil)
	client.PrependReactor("get", "changeworkloads", func(clientgotesting.Action) (bool, runtime.Object, error) {
		return true, nil, context.DeadlineExceeded
	})
	if _, err := h.Succeeded(t.Context(), builder.Workload(t, builder.StoredDeployment()), "v"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestTheReleasesOfADeploymentAreItsOwn(t *testing.T) {
	d := builder.StoredDeployment()
	own := builder.ChangeWorkload(d, 1, v1alpha1.ReleaseSuccess)
	h, _ := newHistory(t, own, nil)
	if diff := cmp.Diff([]*v1alpha1.ChangeWorkload{own}, h.Releases(builder.Workload(t, d))); diff != "" {
		t.Error(diff)
	}
	d.UID = "another"
	if got := h.Releases(builder.Workload(t, d)); len(got) > 0 {
		t.Errorf("got %v", got)
	}
}

func TestTrimRemovesUnusedFields(t *testing.T) {
	c := builder.ChangeWorkload(builder.StoredDeployment(), 1, v1alpha1.ReleaseSuspend)
	c.ManagedFields = make([]metav1.ManagedFieldsEntry, 3)
	c.Status.DefenseCheckFailPods = make([]v1alpha1.PodSummary, 1000)
	c.Status.DefenseCheckPassPods = make([]v1alpha1.PodSummary, 100)
	want := builder.ChangeWorkload(builder.StoredDeployment(), 1, v1alpha1.ReleaseSuspend)
	want.Status.DefenseCheckFailPods = make([]v1alpha1.PodSummary, maxFailedPods)
	got, err := Trim(c)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTrimReturnsTombstonesUnchanged(t *testing.T) {
	gone := cache.DeletedFinalStateUnknown{Key: "default/gone"}
	if got, err := Trim(gone); err != nil || got != any(gone) {
		t.Errorf("got %v, %v", got, err)
	}
}
