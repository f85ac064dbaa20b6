package workload_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

func TestTheSelectorOfPods(t *testing.T) {
	web := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	for name, tc := range map[string]struct {
		object string
		want   *metav1.LabelSelector
		err    bool
	}{
		"labels": {`{"spec": {"selector": {"matchLabels": {"app": "web"}}}}`, web, false},
		"expressions": {`{"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}}`,
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpExists}}}, false},
		"of a ReplicationController":      {`{"kind": "ReplicationController", "spec": {"selector": {"app": "web"}}}`, web, false},
		"empty":                           {`{"spec": {"selector": {}}}`, &metav1.LabelSelector{}, false},
		"absent":                          {`{"spec": {}}`, nil, false},
		"no spec":                         {`{}`, nil, false},
		"null":                            {`{"spec": {"selector": null}}`, nil, false},
		"null, a ReplicationController":   {`{"kind": "ReplicationController", "spec": {"selector": null}}`, nil, false},
		"a text":                          {`{"spec": {"selector": "app=web"}}`, nil, true},
		"labels that are no map":          {`{"spec": {"selector": {"matchLabels": "app=web"}}}`, nil, true},
		"a map of labels of another kind": {`{"spec": {"selector": {"app": "web"}}}`, &metav1.LabelSelector{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var object map[string]any
			if err := json.Unmarshal([]byte(tc.object), &object); err != nil {
				t.Fatal(err)
			}
			got, err := workload.PodSelector(object)
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.err {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
}
