package budget

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheReplicasOfAJob(t *testing.T) {
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         int32
	}{
		"parallelism":                               {map[string]any{"parallelism": int64(5)}, nil, 5},
		"fewer completions than parallelism":        {map[string]any{"parallelism": int64(5), "completions": int64(3)}, nil, 3},
		"fewer completions are left":                {map[string]any{"parallelism": int64(5), "completions": int64(6)}, map[string]any{"succeeded": int64(4)}, 2},
		"more completions are left":                 {map[string]any{"parallelism": int64(5), "completions": int64(20)}, map[string]any{"succeeded": int64(4)}, 5},
		"all completed":                             {map[string]any{"parallelism": int64(5), "completions": int64(3)}, map[string]any{"succeeded": int64(3)}, 0},
		"suspended":                                 {map[string]any{"parallelism": int64(5), "suspend": true}, nil, 0},
		"not suspended":                             {map[string]any{"parallelism": int64(5), "suspend": false}, nil, 5},
		"a work queue of which a pod has succeeded": {map[string]any{"parallelism": int64(5)}, map[string]any{"succeeded": int64(1), "active": int64(2)}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": tc.spec}}
			if tc.status != nil {
				o.Object["status"] = tc.status
			}
			got, err := readReplicas(t.Context(), nil, "jobs", kind, o)
			if err != nil || got.wanted == nil || *got.wanted != tc.want || !got.ofPods {
				t.Fatalf("got %+v, %v, want %d", got, err, tc.want)
			}
		})
	}
}
