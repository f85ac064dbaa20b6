package namespaceoptin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func namespace(name string, optedIn bool) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if optedIn {
		ns.Labels = map[string]string{v1alpha1.NamespaceLabel: v1alpha1.NamespaceEnabled}
	}
	return ns
}

func TestFilter(t *testing.T) {
	known := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, ns := range []*corev1.Namespace{namespace("in", true), namespace("out", false)} {
		if err := known.Add(ns); err != nil {
			t.Fatal(err)
		}
	}
	filter := Filter(corelisters.NewNamespaceLister(known))
	pod := func(ns string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}}
	}
	tests := map[string]struct {
		obj  any
		want bool
	}{
		"opted-in namespace": {pod("in"), true},
		"other namespace":    {pod("out"), false},
		"unknown namespace":  {pod("unseen"), false},
		"tombstone of an object in an opted-in namespace": {cache.DeletedFinalStateUnknown{Obj: pod("in")}, true},
		"not an object": {"in/p", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := filter(tc.obj); got != tc.want {
				t.Errorf("filter = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestHandler(t *testing.T) {
	tests := map[string]struct {
		before, after *corev1.Namespace
		// want are the names that Handler passes on, wantChange those of ChangeHandler.
		want, wantChange []string
	}{
		"opted-in namespace is created":         {nil, namespace("a", true), []string{"a"}, []string{"a"}},
		"other namespace is created":            {nil, namespace("a", false), nil, nil},
		"namespace is opted in":                 {namespace("a", false), namespace("a", true), []string{"a"}, []string{"a"}},
		"namespace is opted out":                {namespace("a", true), namespace("a", false), nil, []string{"a"}},
		"opted-in namespace is deleted":         {namespace("a", true), nil, nil, []string{"a"}},
		"other namespace is deleted":            {namespace("a", false), nil, nil, nil},
		"other change of an opted-in namespace": {namespace("a", true), namespace("a", true), nil, nil},
		"other change of another namespace":     {namespace("a", false), namespace("a", false), nil, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got, gotChange []string
			for _, h := range []cache.ResourceEventHandler{
				Handler(func(ns string) { got = append(got, ns) }), ChangeHandler(func(ns string) { gotChange = append(gotChange, ns) }),
			} {
				switch {
				case tc.before == nil:
					h.OnAdd(tc.after, true)
				case tc.after == nil:
					h.OnDelete(cache.DeletedFinalStateUnknown{Obj: tc.before})
				default:
					h.OnUpdate(tc.before, tc.after)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error("(-want +got):", diff)
			}
			if diff := cmp.Diff(tc.wantChange, gotChange); diff != "" {
				t.Error("of ChangeHandler (-want +got):", diff)
			}
		})
	}
}
