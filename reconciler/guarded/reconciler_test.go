package guarded

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	listers "github.com/breakwater-dev/breakwater/client/listers/policy/v1alpha1"
)

func newNamespace(name, label string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if label != "" {
		n.Labels = map[string]string{v1alpha1.GuardedLabel: label}
	}
	return n
}

func TestTheLabelIsThereWhileThereIsABudget(t *testing.T) {
	terminating := newNamespace("ns", "")
	terminating.DeletionTimestamp = ptr.To(metav1.Now())
	for _, tc := range []struct {
		name      string
		namespace *corev1.Namespace
		budgets   bool
		want      deed
	}{
		{"the first budget", newNamespace("ns", ""), true, set},
		{"more budgets", newNamespace("ns", "true"), true, keep},
		{"somebody wrote another value", newNamespace("ns", "no"), true, set},
		{"no budget any more", newNamespace("ns", "true"), false, remove},
		{"never a budget", newNamespace("ns", ""), false, keep},
		{"a namespace that is never guarded", newNamespace("kube-system", ""), true, keep},
		{"a namespace that ends", terminating, true, keep},
	} {
		if got := decide(tc.namespace, tc.budgets); got != tc.want {
			t.Errorf("%s: got %v", tc.name, got)
		}
	}
}

// The label goes only when the API server knows no budget either.
func TestABudgetThatTheCacheDoesNotHaveKeepsTheLabel(t *testing.T) {
	b := &v1alpha1.PodUnavailableBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"}}
	for _, exists := range []bool{true, false} {
		client := fake.NewSimpleClientset()
		if exists {
			client = fake.NewSimpleClientset(b)
		}
		n := newNamespace("ns", "true")
		kube := kubefake.NewClientset(n)
		r := &Reconciler{
			Namespaces: kube.CoreV1().Namespaces(), Client: client.PolicyV1alpha1(),
			Lister: listers.NewPodUnavailableBudgetLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})),
		}
		if err := r.ReconcileKind(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		after, err := kube.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if labelled(after) != exists {
			t.Errorf("a budget exists %v: labels %v", exists, after.Labels)
		}
	}
}
