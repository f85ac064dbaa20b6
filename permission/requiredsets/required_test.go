package requiredsets

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/permission/podmeta"
)

// above is the annotation of an owner.
type above struct {
	value string
	err   error
}

func (a above) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return a.value, a.value != "", a.err
}

func annotated(value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}}}
	if value != "" {
		n.Annotations = map[string]string{podmeta.SetAnnotation: value}
	}
	return n
}

func TestTheNearestAnnotationCounts(t *testing.T) {
	none, before := annotated(""), annotated("")
	before.Labels = nil
	for name, tc := range map[string]struct {
		pod          map[string]string
		owner        above
		cached, live *corev1.Namespace
		value        string
		source       Source
		fails        bool
		reads        int
	}{
		"nobody asks":                        {cached: none, live: none},
		"the pod does":                       {pod: annotated("a").Annotations, owner: above{value: "b"}, cached: annotated("c"), value: "a", source: FromPod},
		"its workload does":                  {owner: above{value: "b"}, cached: annotated("c"), value: "b", source: FromOwner},
		"its namespace does":                 {cached: annotated("c"), live: annotated("c"), value: "c", source: FromNamespace},
		"a namespace that is new does":       {live: annotated("c"), value: "c", source: FromNamespace, reads: 1},
		"a namespace that is new does not":   {live: none, reads: 1},
		"a namespace that is enabled since":  {cached: before, live: annotated("c"), value: "c", source: FromNamespace, reads: 1},
		"there is no such namespace":         {fails: true, reads: 1},
		"the workload cannot be read":        {owner: above{err: errors.New("timeout")}, cached: annotated("c"), fails: true},
		"the pod asks, the namespace is new": {pod: annotated("a").Annotations, live: annotated("c"), value: "a", source: FromPod},
	} {
		t.Run(name, func(t *testing.T) {
			index, kube := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}), fake.NewClientset()
			if tc.cached != nil {
				if err := index.Add(tc.cached); err != nil {
					t.Fatal(err)
				}
			}
			if tc.live != nil {
				kube = fake.NewClientset(tc.live)
			}
			f := Resolver{Owners: tc.owner, Namespaces: corelisters.NewNamespaceLister(index), Client: kube.CoreV1().Namespaces()}
			value, source, err := f.Resolve(t.Context(), "shop", &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tc.pod}})
			if value != tc.value || source != tc.source || (err != nil) != tc.fails {
				t.Errorf("%q of the %s: %v", value, source, err)
			}
			if reads := len(kube.Actions()); reads != tc.reads {
				t.Errorf("%d reads", reads)
			}
		})
	}
}
