package deletion

import (
	"context"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
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
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/budget"
	"github.com/breakwater-dev/breakwater/admission/protection/deletionflow"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	budgetrules "github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
	"github.com/breakwater-dev/breakwater/internal/ownerchain"
	"github.com/breakwater-dev/breakwater/internal/podlist"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/fakestore"
)

// noOwners are the owners of pods without one.
type noOwners struct{}

func (noOwners) Chain(context.Context, string, []metav1.OwnerReference, bool) (budgetrules.Chain, error) {
	return nil, nil
}

func (noOwners) SelectorOf(context.Context, string, []metav1.OwnerReference) (ownerchain.Selection, error) {
	return ownerchain.Selection{TerminatingOrGone: true}, nil
}

func (noOwners) RevisionsWithTraffic(context.Context, string, string, bool) ([]string, error) {
	return nil, nil
}

// rightTime is a clock that is never wrong.
type rightTime struct{ clock.RealClock }

func (rightTime) SkewError() error { return nil }

// fixture is an API server, and a replica of the webhook with its caches.
type fixture struct {
	handler Handler
	client  *fake.Clientset
	reader  *metric.ManualReader
}

// newFixture returns a fixture with namespace shop, its pods web-1 and web-2, the budget
// and the flow control; nil is none. The cached flow control is not updated.
func newFixture(t *testing.T, b *v1alpha1.PodUnavailableBudget, stored, cached *v1alpha1.PodDeletionFlowControl, pdbs ...*policyv1.PodDisruptionBudget) *fixture {
	t.Helper()
	fx := &fixture{client: fake.NewSimpleClientset(), reader: metric.NewManualReader()}
	fakestore.CompareAndSwap(fx.client, "podunavailablebudgets")
	fakestore.CompareAndSwap(fx.client, "poddeletionflowcontrols")
	budgets, flows, disruptions, namespaces := newIndex(), newIndex(), newIndex(), newIndex()
	add := func(index cache.Indexer, o any) {
		if err := index.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	track := func(o runtime.Object) {
		if err := fx.client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	if b != nil {
		add(budgets, b)
		track(b.DeepCopy())
	}
	if stored != nil {
		add(flows, cached)
		track(stored)
	}
	add(namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
	kube := kubefake.NewClientset(newPod("web-1"), newPod("web-2"))
	for _, p := range pdbs {
		add(disruptions, p)
		if err := kube.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	client, references := fx.client.PolicyV1alpha1(), budget.NewChargeReferences()
	budgetLister, flowLister := listers.NewPodUnavailableBudgetLister(budgets), listers.NewPodDeletionFlowControlLister(flows)
	guard := budget.Guard{
		Budgets: budgetLister, Client: client, Pods: kube.CoreV1(), PodLists: podlist.ForDeletions(kube.CoreV1()), Owners: noOwners{},
		Namespaces: budget.Namespaces{Lister: corev1listers.NewNamespaceLister(namespaces), Client: kube.CoreV1()},
		PDBs:       budget.PodDisruptionBudgets{Lister: policylisters.NewPodDisruptionBudgetLister(disruptions), Client: kube.PolicyV1()},
		Commit:     budget.NewCommitter(budgetLister, client, references, nil),
		Recorder:   record.NewFakeRecorder(1000), Recent: budget.NewRecentDeletions(), References: references, FailsClosed: func() bool { return true },
	}
	fx.handler = Handler{
		Budgets: guard,
		FlowControl: deletionflow.Guard{
			FlowControls: flowLister, Pods: kube.CoreV1(), Namespaces: corev1listers.NewNamespaceLister(namespaces), PDBs: guard.PDBs,
			Commit: deletionflow.NewCommitter(flowLister, client, clock.RealClock{}, deletionwindow.DefaultSkew, nil),
			Clock:  rightTime{}, Recorder: record.NewFakeRecorder(1000),
		},
		ConfigurationExists: func() bool { return true },
		Requests:            admission.NewRequests(metric.NewMeterProvider(metric.WithReader(fx.reader)).Meter("test")),
	}
	return fx
}

func newIndex() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// state is what the objects have stored.
type state struct {
	charged int
	counted int64
}

func (fx *fixture) state(t *testing.T) (s state) {
	t.Helper()
	budgets, err := fx.client.PolicyV1alpha1().PodUnavailableBudgets("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range budgets.Items {
		s.charged += len(b.Status.DeletedPods)
	}
	flows, err := fx.client.PolicyV1alpha1().PodDeletionFlowControls().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range flows.Items {
		for _, b := range f.Status.Buckets {
			s.counted += b.Count
		}
	}
	return s
}

// budgetWrites is how often a budget was written.
func (fx *fixture) budgetWrites() (n int) {
	for _, a := range fx.client.Actions() {
		if a.GetVerb() == "update" && a.GetResource().Resource == "podunavailablebudgets" {
			n++
		}
	}
	return n
}

// decisions are the decisions that the metric counts, by webhook.
func (fx *fixture) decisions(t *testing.T) map[string]string {
	t.Helper()
	var collected metricdata.ResourceMetrics
	if err := fx.reader.Collect(t.Context(), &collected); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, scope := range collected.ScopeMetrics {
		for _, m := range scope.Metrics {
			for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
				webhook, _ := p.Attributes.Value("webhook")
				decision, _ := p.Attributes.Value("decision")
				found[webhook.AsString()] += decision.AsString()
			}
		}
	}
	return found
}

func newBudget(allowed int32, shadow bool) *v1alpha1.PodUnavailableBudget {
	b := &v1alpha1.PodUnavailableBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-budget", Generation: 1, ResourceVersion: "1"},
		Spec: v1alpha1.PodUnavailableBudgetSpec{
			Selector:       &v1alpha1.PodSelector{MatchLabels: map[string]string{"app": "web"}},
			MaxUnavailable: new(intstr.FromInt32(1)), Shadow: shadow,
		},
	}
	b.Status.ObservedGeneration, b.Status.UnavailableAllowed = 1, allowed
	return b
}

func newFlow(version string, limit int64, shadow bool) *v1alpha1.PodDeletionFlowControl {
	return &v1alpha1.PodDeletionFlowControl{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster", ResourceVersion: version},
		Spec:       v1alpha1.PodDeletionFlowControlSpec{LimitRules: []v1alpha1.LimitRule{{Interval: "10m", Limit: limit}}, Shadow: shadow},
	}
}

// newPod returns an available pod.
func newPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-" + name), ResourceVersion: "5", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "node"},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
}

func newRequest(op admissionv1.Operation, sub, name string, dryRun bool) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "request", Operation: op, SubResource: sub, Namespace: "shop", Name: name, DryRun: new(dryRun),
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
	}
}

func deletion(t *testing.T, name string, dryRun bool) *admissionv1.AdmissionRequest {
	req := newRequest(admissionv1.Delete, "", name, dryRun)
	req.OldObject = builder.Raw(t, newPod(name))
	return req
}

// eviction returns a request as kubectl drain sends it: a dry run is in its body only.
func eviction(t *testing.T, name string, dryRun bool) *admissionv1.AdmissionRequest {
	req := newRequest(admissionv1.Create, "eviction", name, false)
	body := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	if dryRun {
		body.DeleteOptions = &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	}
	req.Object = builder.Raw(t, body)
	return req
}

// afterRefunds waits until refunds have ended, in the fake time of synctest.
func afterRefunds() { time.Sleep(time.Minute) }
