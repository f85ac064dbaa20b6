package deletionflow

import (
	"context"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kubefake "k8s.io/client-go/kubernetes/fake"
	corev1listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/metadata"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/fakestore"
)

const skew = 5 * time.Second

// zero is the start of a cell of every length.
var zero = time.Unix(1<<30, 0)

// skewedClock is a clock that may be wrong.
type skewedClock struct {
	*testingclock.FakePassiveClock
	off error
}

func (c *skewedClock) SkewError() error { return c.off }

// blocking refuses evictions with its status, if any.
type blocking struct{ refusal *metav1.Status }

func (b *blocking) Blocking(context.Context, *corev1.Pod) (*metav1.Status, error) {
	return b.refusal, nil
}

// fixture is an API server, and the webhook with its caches.
type fixture struct {
	guard  Guard
	client *fake.Clientset
	kube   *kubefake.Clientset
	events *record.FakeRecorder
	clock  *skewedClock
	pdbs   *blocking
	// flows and namespaces are caches.
	flows, namespaces cache.Indexer
}

// newFixture returns a fixture with these objects. The caches are not updated.
func newFixture(t *testing.T, objects ...runtime.Object) *fixture {
	t.Helper()
	fx := &fixture{
		events: record.NewFakeRecorder(1000), pdbs: &blocking{},
		clock:      &skewedClock{FakePassiveClock: testingclock.NewFakePassiveClock(zero)},
		flows:      cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
		namespaces: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}),
	}
	var ours, theirs []runtime.Object
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *v1alpha1.PodDeletionFlowControl:
			ours = append(ours, o)
			err = fx.flows.Add(o)
		case *corev1.Namespace:
			err = fx.namespaces.Add(o)
		default:
			theirs = append(theirs, o)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	fx.kube, fx.client = kubefake.NewClientset(theirs...), fake.NewSimpleClientset(ours...)
	fakestore.CompareAndSwap(fx.client, "poddeletionflowcontrols")
	lister, client := listers.NewPodDeletionFlowControlLister(fx.flows), fx.client.PolicyV1alpha1()
	fx.guard = Guard{
		FlowControls: lister, Pods: fx.kube.CoreV1(), Objects: metadataOf(t, theirs...), Namespaces: corev1listers.NewNamespaceLister(fx.namespaces), PDBs: fx.pdbs,
		Commit: NewCommitter(lister, client, fx.clock, skew, nil), Clock: fx.clock, Recorder: fx.events,
	}
	return fx
}

// metadataOf returns a client for the metadata of these objects.
func metadataOf(t testing.TB, objects ...runtime.Object) metadata.Interface {
	t.Helper()
	known := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(known); err != nil {
		t.Fatal(err)
	}
	var parts []runtime.Object
	for _, o := range objects {
		if p, ok := o.(*corev1.Pod); ok {
			parts = append(parts, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: p.ObjectMeta})
		}
	}
	return metadatafake.NewSimpleMetadataClient(known, parts...)
}

func (fx *fixture) ask(t *testing.T, req *admissionv1.AdmissionRequest) admission.Answer {
	t.Helper()
	return fx.guard.Admit(t.Context(), req)
}

// updateCache updates the cache of flow controls.
func (fx *fixture) updateCache(t *testing.T) {
	t.Helper()
	list, err := fx.client.PolicyV1alpha1().PodDeletionFlowControls().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if err := fx.flows.Update(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}

// counted is how many deletions a flow control has counted.
func (fx *fixture) counted(t *testing.T, name string) (n int64) {
	t.Helper()
	f, err := fx.client.PolicyV1alpha1().PodDeletionFlowControls().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range f.Status.Buckets {
		n += b.Count
	}
	return n
}

func newFlow(name string, limit int64, change func(*v1alpha1.PodDeletionFlowControl)) *v1alpha1.PodDeletionFlowControl {
	f := &v1alpha1.PodDeletionFlowControl{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1"},
		Spec:       v1alpha1.PodDeletionFlowControlSpec{LimitRules: []v1alpha1.LimitRule{{Interval: "10m", Limit: limit}}},
	}
	if change != nil {
		change(f)
	}
	return f
}

func newNamespace(change func(*corev1.Namespace)) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid-shop", Labels: map[string]string{"env": "prod"}}}
	if change != nil {
		change(n)
	}
	return n
}

// newPod returns an available pod of Deployment web.
func newPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web", "pod-template-hash": "5d4f"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5d4f", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "node"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

func newRequest(op admissionv1.Operation, resource, name string) *admissionv1.AdmissionRequest {
	return &admissionv1.AdmissionRequest{
		UID: "request", Operation: op, Namespace: "shop", Name: name, UserInfo: authenticationv1.UserInfo{Username: "ann"},
		Resource: metav1.GroupVersionResource{Version: "v1", Resource: resource},
	}
}

func deletion(t *testing.T, p *corev1.Pod) *admissionv1.AdmissionRequest {
	req := newRequest(admissionv1.Delete, "pods", p.Name)
	req.OldObject = builder.Raw(t, p)
	return req
}

func ofNamespace(t *testing.T, n *corev1.Namespace) *admissionv1.AdmissionRequest {
	req := newRequest(admissionv1.Delete, "namespaces", n.Name)
	req.OldObject = builder.Raw(t, n)
	return req
}

func eviction(t *testing.T, name string, options *metav1.DeleteOptions) *admissionv1.AdmissionRequest {
	req := newRequest(admissionv1.Create, "pods", name)
	req.SubResource = "eviction"
	req.Object = builder.Raw(t, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, DeleteOptions: options})
	return req
}
