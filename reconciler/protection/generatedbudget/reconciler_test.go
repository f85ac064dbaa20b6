package generatedbudget

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	kubefake "k8s.io/client-go/kubernetes/fake"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	"knative.dev/pkg/reconciler"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/generatedbudget"
)

// ofRevision makes a Deployment that of a Revision of the Knative Service web.
func ofRevision(d *appsv1.Deployment) {
	d.Labels = map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/serviceUID": "uid-service"}
	d.OwnerReferences = []metav1.OwnerReference{{APIVersion: "serving.knative.dev/v1", Kind: "Revision", Name: "web-00001", UID: "uid-revision", Controller: ptr.To(true)}}
}

// writes reconciles the Deployment web and returns the writes: apply or delete, the resource, the
// limit.
func writes(t *testing.T, change func(*appsv1.Deployment), annotations map[string]string, namespace map[string]string, exists ...runtime.Object) (done []string, events int) {
	t.Helper()
	index := map[string]cache.Indexer{}
	for _, kind := range []string{"ns", "d", "s", "pub", "pdb"} {
		index[kind] = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	}
	add := func(kind string, o any) {
		if err := index[kind].Add(o); err != nil {
			t.Fatal(err)
		}
	}
	add("ns", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Annotations: namespace}})
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "uid-web", Annotations: annotations},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(2))}}},
	}
	if change != nil {
		change(d)
	}
	add("d", d)
	for _, o := range exists {
		kind := "pub"
		if _, ok := o.(*policyv1.PodDisruptionBudget); ok {
			kind = "pdb"
		}
		add(kind, o)
	}
	kube, policies, recorder := kubefake.NewClientset(), fake.NewSimpleClientset(), record.NewFakeRecorder(5)
	note := func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch a := action.(type) {
		case clienttesting.PatchAction:
			var d document
			if err := json.Unmarshal(a.GetPatch(), &d); err != nil {
				t.Fatal(err)
			}
			done = append(done, strings.Join([]string{"apply", a.GetResource().Resource, a.GetName(), limit(d.Spec)}, " "))
		case clienttesting.DeleteAction:
			done = append(done, "delete "+a.GetResource().Resource+" "+a.GetName())
		}
		return true, nil, nil
	}
	kube.PrependReactor("*", "*", note)
	policies.PrependReactor("*", "*", note)
	r := &Reconciler{
		workloads: workloads{appslisters.NewDeploymentLister(index["d"]), appslisters.NewStatefulSetLister(index["s"]), &customWorkloads{}},
		defaults: func() generatedbudget.Limits {
			return generatedbudget.Limits{MaxUnavailable: ptr.To(intstr.FromString("25%"))}
		},
		namespaces: corelisters.NewNamespaceLister(index["ns"]), budgets: listers.NewPodUnavailableBudgetLister(index["pub"]),
		pdbs: policylisters.NewPodDisruptionBudgetLister(index["pdb"]), kube: kube, policies: policies, recorder: recorder,
	}
	if err := r.Promote(reconciler.UniversalBucket(), nil); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), keyOf(deployment, "ns", "web").String()); err != nil {
		t.Fatal(err)
	}
	return done, len(recorder.Events)
}

func limit(s spec) string {
	if s.MaxUnavailable != nil {
		return "max " + s.MaxUnavailable.String()
	}
	return "min " + s.MinAvailable.String()
}

func owned(uid types.UID) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ns", Name: "deployment-web", UID: "uid-generated"}
	if uid != "" {
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: uid, Controller: ptr.To(true)}}
	}
	return m
}

func pub(uid types.UID, most int32) *v1alpha1.PodUnavailableBudget {
	return &v1alpha1.PodUnavailableBudget{ObjectMeta: owned(uid), Spec: v1alpha1.PodUnavailableBudgetSpec{
		TargetRef: &v1alpha1.TargetRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "web"}, MaxUnavailable: ptr.To(intstr.FromInt32(most))}}
}

func TestGeneratedBudgets(t *testing.T) {
	on := map[string]string{generatedbudget.PUBAnnotation: "true"}
	for _, tc := range []struct {
		name                   string
		deployment             func(*appsv1.Deployment)
		annotations, namespace map[string]string
		exists                 []runtime.Object
		want                   []string
		events                 int
	}{
		{name: "without an annotation"},
		{name: "with an annotation", annotations: on, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "both", annotations: map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PDBAnnotation: "true", generatedbudget.PDBAnnotation + "-minAvailable": "1"},
			want: []string{"apply podunavailablebudgets deployment-web max 2", "apply poddisruptionbudgets deployment-web min 1"}},
		{name: "by the namespace", namespace: on, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "of a Revision", deployment: ofRevision, annotations: on, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "of a Revision, by the namespace", deployment: ofRevision, namespace: on},
		{name: "of a Revision, by the namespace before", deployment: ofRevision, namespace: on, exists: []runtime.Object{pub("uid-web", 2)},
			want: []string{"delete podunavailablebudgets deployment-web"}},
		{name: "the budget exists", annotations: on, exists: []runtime.Object{pub("uid-web", 2)}},
		{name: "the budget was edited", annotations: on, exists: []runtime.Object{pub("uid-web", 9)}, want: []string{"apply podunavailablebudgets deployment-web max 2"}},
		{name: "the annotation was removed", exists: []runtime.Object{pub("uid-web", 2)}, want: []string{"delete podunavailablebudgets deployment-web"}},
		{name: "a budget of another owner is kept", exists: []runtime.Object{pub("", 2)}},
		{name: "a budget of another owner has the name", annotations: on, exists: []runtime.Object{pub("", 2)}, events: 1},
		{name: "a budget of a replaced Deployment", annotations: on, exists: []runtime.Object{pub("uid-before", 2)}, events: 1},
		{name: "an invalid limit changes nothing", annotations: map[string]string{generatedbudget.PUBAnnotation: "true", generatedbudget.PUBAnnotation + "-maxUnavailable": "few"},
			exists: []runtime.Object{pub("uid-web", 2)}, events: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			done, events := writes(t, tc.deployment, tc.annotations, tc.namespace, tc.exists...)
			if diff := cmp.Diff(tc.want, done); diff != "" {
				t.Error(diff)
			}
			if events != tc.events {
				t.Errorf("%d Events, want %d", events, tc.events)
			}
		})
	}
}
