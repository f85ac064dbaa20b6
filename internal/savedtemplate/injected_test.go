package savedtemplate_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// With what Argo Rollouts adds to the template of a ReplicaSet, the template would be that of a new revision.
func TestTheTemplateOfAReplicaSetIsWithoutWhatArgoRolloutsAdds(t *testing.T) {
	const (
		injected  = `{"labelSelector":{"matchExpressions":[{"key":"rollouts-pod-template-hash","operator":"In","values":["1"]}]},"topologyKey":"kubernetes.io/hostname"}`
		own       = `{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}`
		required  = `"requiredDuringSchedulingIgnoredDuringExecution"`
		preferred = `"preferredDuringSchedulingIgnoredDuringExecution"`
	)
	for name, tc := range map[string]struct{ ephemeral, template, want string }{
		"nothing": {"", `{"metadata":{"labels":{"role":"a"}},"spec":{}}`, `{"metadata":{"labels":{"role":"a"}},"spec":{}}`},
		"labels and annotations": {`{"labels":{"role":"canary"},"annotations":{"note":"new"}}`,
			`{"metadata":{"labels":{"app":"web","role":"canary"},"annotations":{"note":"new","own":"1"}},"spec":{}}`,
			`{"metadata":{"labels":{"app":"web"},"annotations":{"own":"1"}},"spec":{}}`},
		"all annotations": {`{"annotations":{"note":"new"}}`, `{"metadata":{"annotations":{"note":"new"}},"spec":{}}`, `{"metadata":{"annotations":{}},"spec":{}}`},
		"a required term": {"", `{"metadata":{},"spec":{"affinity":{"podAntiAffinity":{` + required + `:[` + injected + `]}}}}`, `{"metadata":{},"spec":{}}`},
		"a preferred term": {"", `{"metadata":{},"spec":{"affinity":{"podAntiAffinity":{` + preferred + `:[{"weight":1,"podAffinityTerm":` + injected + `}]}}}}`,
			`{"metadata":{},"spec":{}}`},
		"a term beside others": {"", `{"metadata":{},"spec":{"affinity":{"nodeAffinity":{},"podAntiAffinity":{` + required + `:[` + own + `,` + injected + `]}}}}`,
			`{"metadata":{},"spec":{"affinity":{"nodeAffinity":{},"podAntiAffinity":{` + required + `:[` + own + `]}}}}`},
		"the only term of the anti-affinity": {"", `{"metadata":{},"spec":{"affinity":{"nodeAffinity":{},"podAntiAffinity":{` + required + `:[` + injected + `]}}}}`,
			`{"metadata":{},"spec":{"affinity":{"nodeAffinity":{}}}}`},
		"an affinity of the user": {"", `{"metadata":{},"spec":{"affinity":{"podAntiAffinity":{}}}}`, `{"metadata":{},"spec":{"affinity":{"podAntiAffinity":{}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := &workload.Workload{Kind: rollout, ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u1"}}
			template, want := decoded(t, tc.template), decoded(t, tc.want)
			set := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"template": template}}}
			set.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(w, rollout.GroupVersionKind)})
			set.SetAnnotations(map[string]string{"rollout.argoproj.io/ephemeral-metadata": tc.ephemeral})
			got, err := savedtemplate.FromReplicaSets([]unstructured.Unstructured{set}, w)
			if err != nil || len(got) != 1 {
				t.Fatal(got, err)
			}
			if diff := cmp.Diff(want, decoded(t, string(got[0].Raw))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func decoded(t *testing.T, raw string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(raw), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
