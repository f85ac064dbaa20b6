package budget

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/podlist"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/fakestore"
)

// chains are the owner chains of objects, by the name of the first owner. A live read
// returns the live chain, if there is one, instead of the remembered one.
type chains struct {
	remembered, live map[string]budget.Chain
	// selections are the pods that the nearest owner selects.
	selections map[string]ownerchain.Selection
	// cachedTraffic and traffic are the Revisions of a Knative Service that get requests, by
	// its name: in the cache and now.
	cachedTraffic, traffic map[string][]string
}

func (c chains) RevisionsWithTraffic(_ context.Context, _, service string, live bool) ([]string, error) {
	if live {
		return c.traffic[service], nil
	}
	return c.cachedTraffic[service], nil
}

func (c chains) SelectorOf(_ context.Context, _ string, refs []metav1.OwnerReference) (ownerchain.Selection, error) {
	ref := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: refs})
	if ref == nil {
		return ownerchain.Selection{TerminatingOrGone: true}, nil
	}
	return c.selections[ref.Name], nil
}

func (c chains) Chain(_ context.Context, _ string, refs []metav1.OwnerReference, live bool) (budget.Chain, error) {
	ref := metav1.GetControllerOf(&metav1.ObjectMeta{OwnerReferences: refs})
	if ref == nil {
		return nil, nil
	}
	if chain, ok := c.live[ref.Name]; ok && live {
		return chain, nil
	}
	return c.remembered[ref.Name], nil
}

type fixture struct {
	guard  Guard
	client *fake.Clientset
	kube   *kubefake.Clientset
	events *record.FakeRecorder
}

// newFixture returns a fixture with these budgets, pods and PodDisruptionBudgets.
func newFixture(t *testing.T, above chains, budgets []*v1alpha1.PodUnavailableBudget, objects ...runtime.Object) *fixture {
	t.Helper()
	fx := &fixture{client: fake.NewSimpleClientset(), events: record.NewFakeRecorder(1000)}
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, b := range budgets {
		if err := index.Add(b.DeepCopy()); err != nil {
			t.Fatal(err)
		}
		if err := fx.client.Tracker().Add(b.DeepCopy()); err != nil {
			t.Fatal(err)
		}
	}
	pdbs := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *policyv1.PodDisruptionBudget:
			err = pdbs.Add(o)
		case *corev1.Namespace:
			err = namespaces.Add(o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fakestore.CompareAndSwap(fx.client, "podunavailablebudgets")
	kube := kubefake.NewClientset(objects...)
	fx.kube = kube
	lister, client := listers.NewPodUnavailableBudgetLister(index), fx.client.PolicyV1alpha1()
	reliance := NewChargeReferences()
	fx.guard = Guard{
		Budgets: lister, Client: client, Pods: kube.CoreV1(), PodLists: podlist.ForDeletions(kube.CoreV1()), Owners: above,
		Namespaces: Namespaces{Lister: corev1listers.NewNamespaceLister(namespaces), Client: kube.CoreV1()},
		PDBs:       PodDisruptionBudgets{Lister: policylisters.NewPodDisruptionBudgetLister(pdbs), Client: kube.PolicyV1()},
		Commit:     NewCommitter(lister, client, reliance, nil),
		Recorder:   fx.events, Recent: NewRecentDeletions(), References: reliance, Replica: "replica-1", FailsClosed: func() bool { return true },
	}
	return fx
}

// budget returns the present budget.
func (fx *fixture) budget(t *testing.T, name string) *v1alpha1.PodUnavailableBudget {
	t.Helper()
	b, err := fx.client.PolicyV1alpha1().PodUnavailableBudgets("ns").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (fx *fixture) ask(t *testing.T, req *admissionv1.AdmissionRequest) admission.Answer {
	t.Helper()
	return fx.guard.Admit(t.Context(), req)
}

func newBudget(name string, allowed int32, change func(*v1alpha1.PodUnavailableBudget)) *v1alpha1.PodUnavailableBudget {
	b := &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector:       &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}},
			MaxUnavailable: new(intstr.FromInt32(1)),
		},
	}
	b.Status.ObservedGeneration, b.Status.UnavailableAllowed = 1, allowed
	if change != nil {
		change(b)
	}
	return b
}

// newPod returns an available pod of ReplicaSet web-1.
func newPod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "web-1-a", UID: "uid-a", ResourceVersion: "5", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-1", UID: "uid-rs", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func request(op admissionv1.Operation, sub string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "request", Operation: op, SubResource: sub, Namespace: "ns", Name: "web-1-a",
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
}

func deletion(t *testing.T, p *corev1.Pod) *admissionv1.AdmissionRequest {
	req := request(admissionv1.Delete, "")
	req.OldObject = builder.Raw(t, p)
	return req
}

func eviction(t *testing.T, options *metav1.DeleteOptions) *admissionv1.AdmissionRequest {
	req := request(admissionv1.Create, "eviction")
	req.Object = builder.Raw(t, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: req.Name}, DeleteOptions: options})
	return req
}

func updating(t *testing.T, sub string, before, after *corev1.Pod) *admissionv1.AdmissionRequest {
	req := request(admissionv1.Update, sub)
	req.OldObject, req.Object = builder.Raw(t, before), builder.Raw(t, after)
	return req
}
