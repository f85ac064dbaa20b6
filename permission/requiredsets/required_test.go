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

// ownerAnnotation is the annotation in the owner chain.
type ownerAnnotation struct {
	value string
	err   error
}

func (a ownerAnnotation) Annotation(context.Context, string, []metav1.OwnerReference, string) (string, bool, error) {
	return a.value, a.value != "", a.err
}

func namespaceWith(value string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{podmeta.Label: podmeta.LabelEnabled}}}
	if value != "" {
		n.Annotations = map[string]string{podmeta.PermissionSetAnnotation: value}
	}
	return n
}

func TestTheNearestAnnotationTakesPrecedence(t *testing.T) {
	none, before := namespaceWith(""), namespaceWith("")
	before.Labels = nil
	for name, tc := range map[string]struct {
		pod          map[string]string
		owner        ownerAnnotation
		cached, live *corev1.Namespace
		value        string
		source       Source
		fails        bool
		reads        int
	}{
		"no annotation":                                         {cached: none, live: none},
		"annotation of the pod":                                 {pod: namespaceWith("a").Annotations, owner: ownerAnnotation{value: "b"}, cached: namespaceWith("c"), value: "a", source: FromPod},
		"annotation of the workload":                            {owner: ownerAnnotation{value: "b"}, cached: namespaceWith("c"), value: "b", source: FromOwner},
		"annotation of the namespace":                           {cached: namespaceWith("c"), live: namespaceWith("c"), value: "c", source: FromNamespace},
		"annotation of a namespace missing in the cache":        {live: namespaceWith("c"), value: "c", source: FromNamespace, reads: 1},
		"no annotation of a namespace missing in the cache":     {live: none, reads: 1},
		"namespace not yet enabled in the cache":                {cached: before, live: namespaceWith("c"), value: "c", source: FromNamespace, reads: 1},
		"unknown namespace":                                     {fails: true, reads: 1},
		"error reading the workload":                            {owner: ownerAnnotation{err: errors.New("timeout")}, cached: namespaceWith("c"), fails: true},
		"annotation of the pod, namespace missing in the cache": {pod: namespaceWith("a").Annotations, live: namespaceWith("c"), value: "a", source: FromPod},
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
