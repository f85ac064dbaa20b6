package budget

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

func TestTheReplicasOfAJob(t *testing.T) {
	kind := schema.GroupKind{Group: "batch", Kind: "Job"}
	conditions := func(types ...string) map[string]any {
		all := []any{map[string]any{"type": "Suspended", "status": "False"}}
		for _, of := range types {
			all = append(all, map[string]any{"type": of, "status": "True"})
		}
		return map[string]any{"conditions": all}
	}
	for name, tc := range map[string]struct {
		spec, status map[string]any
		want         int32
	}{
		"parallelism":                        {map[string]any{"parallelism": int64(5)}, nil, 5},
		"fewer completions than parallelism": {map[string]any{"parallelism": int64(5), "completions": int64(3)}, nil, 3},
		"fewer completions are left":         {map[string]any{"parallelism": int64(5), "completions": int64(6)}, map[string]any{"succeeded": int64(4)}, 2},
		"more completions are left":          {map[string]any{"parallelism": int64(5), "completions": int64(20)}, map[string]any{"succeeded": int64(4)}, 5},
		"all completed":                      {map[string]any{"parallelism": int64(5), "completions": int64(3)}, map[string]any{"succeeded": int64(3)}, 0},
		"complete":                           {map[string]any{"parallelism": int64(5)}, conditions("SuccessCriteriaMet", "Complete"), 0},
		"failed":                             {map[string]any{"parallelism": int64(5), "completions": int64(5)}, conditions("Failed"), 0},
		"its pods are being terminated":      {map[string]any{"parallelism": int64(5)}, conditions("FailureTarget"), 5},
		"suspended":                          {map[string]any{"parallelism": int64(5), "suspend": true}, nil, 0},
		"not suspended":                      {map[string]any{"parallelism": int64(5), "suspend": false}, nil, 5},
		"a work queue of which a pod has succeeded": {map[string]any{"parallelism": int64(5)}, map[string]any{"succeeded": int64(1), "active": int64(2)}, 5},
		"indexes have failed and the others are left": {map[string]any{"parallelism": int64(5), "completions": int64(8), "completionMode": "Indexed", "backoffLimitPerIndex": int64(1)},
			map[string]any{"succeeded": int64(2), "completedIndexes": "0,2", "failedIndexes": "1,3-5"}, 2},
		"indexes have failed and more than the parallelism are left": {map[string]any{"parallelism": int64(5), "completions": int64(20)},
			map[string]any{"failedIndexes": "1,3-5"}, 5},
		"all indexes have succeeded or failed": {map[string]any{"parallelism": int64(5), "completions": int64(3)},
			map[string]any{"succeeded": int64(1), "failedIndexes": "0,2"}, 0},
		"completions was lowered, and the status has higher indexes": {map[string]any{"parallelism": int64(5), "completions": int64(5), "completionMode": "Indexed"},
			map[string]any{"succeeded": int64(6), "completedIndexes": "0,5-9"}, 4},
		"failed indexes that are invalid": {map[string]any{"parallelism": int64(5), "completions": int64(5)},
			map[string]any{"succeeded": int64(1), "failedIndexes": "some"}, 4},
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

func TestTheReplicasOfABroadcastJob(t *testing.T) {
	ofStatus := func(desired, active, succeeded, failed int64, conditions ...any) map[string]any {
		return map[string]any{"desired": desired, "active": active, "succeeded": succeeded, "failed": failed, "conditions": conditions}
	}
	is := func(condition, status string) any { return map[string]any{"type": condition, "status": status} }
	for name, tc := range map[string]struct {
		parallelism any
		status      map[string]any
		want        int32
	}{
		"a pod on each node":                   {nil, ofStatus(10, 10, 0, 0), 10},
		"no pod yet":                           {nil, ofStatus(10, 0, 0, 0), 10},
		"parallelism":                          {int64(2), ofStatus(10, 2, 0, 0), 2},
		"parallelism, after a pod was deleted": {int64(2), ofStatus(10, 1, 0, 0), 2},
		"parallelism, some have ended":         {int64(2), ofStatus(10, 2, 5, 1), 2},
		// One of the failed pods may be deleted: its node still wants a pod.
		"a pod has failed":                    {nil, ofStatus(10, 9, 0, 1), 10},
		"complete":                            {nil, ofStatus(10, 0, 10, 0, is("Complete", "True")), 0},
		"failed while pods run":               {int64(2), ofStatus(10, 1, 0, 1, is("Failed", "True")), 0},
		"another condition":                   {int64(2), ofStatus(10, 2, 0, 0, is("Failed", "False"), is("Ready", "True")), 2},
		"a percentage":                        {"25%", ofStatus(10, 3, 0, 0), 3},
		"a percentage above 100":              {"200%", ofStatus(10, 10, 0, 0), 10},
		"a parallelism that is no percentage": {"some", ofStatus(10, 0, 0, 0), 10},
		"a negative percentage":               {"-50%", ofStatus(10, 0, 0, 0), 0},
		"a lowered parallelism":               {int64(1), ofStatus(3, 3, 0, 0), 3},
		"a pod of a node that it leaves":      {nil, ofStatus(9, 10, 0, 0), 9},
	} {
		t.Run(name, func(t *testing.T) {
			spec := map[string]any{}
			if tc.parallelism != nil {
				spec["parallelism"] = tc.parallelism
			}
			o := &unstructured.Unstructured{Object: map[string]any{"spec": spec, "status": tc.status}}
			got, err := readReplicas(t.Context(), nil, "broadcastjobs", broadcastJob, o)
			if err != nil || ptr.Deref(got.wanted, -1) != tc.want || !got.ofPods {
				t.Fatalf("got %d (%+v), %v, want %d", ptr.Deref(got.wanted, -1), got, err, tc.want)
			}
		})
	}
}

func TestHowManyIndexesATextHas(t *testing.T) {
	for text, want := range map[string]int64{
		"":                   0,
		"0":                  1,
		"1,3-5":              4,
		"0-9":                10,
		"3-3,7":              2,
		"8-12":               2, // completions is 10
		"12-14":              0,
		"2147483647":         0,
		"1,99999999999":      0,
		"a":                  0,
		"1,b":                0,
		"1,,3":               0,
		"1-":                 0,
		"-1":                 0,
		"5-3":                0,
		"1-3-5":              0,
		"1, 3":               0,
		"0-9223372036854775": 0,
	} {
		if got := countIndexes(text, 10); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
