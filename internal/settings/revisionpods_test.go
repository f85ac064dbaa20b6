package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestThePodsThatARevisionIsJudgedBy(t *testing.T) {
	byDefault := RevisionPods{Window: 10 * time.Minute}
	for name, tc := range map[string]struct {
		content string
		enable  bool
		want    RevisionPods
	}{
		"not enabled": {"3", false, byDefault},
		"a number":    {"3", true, RevisionPods{Count: 3}},
		"a duration":  {"1h", true, RevisionPods{Window: time.Hour}},
		"invalid":     {"none", true, byDefault},
	} {
		t.Run(name, func(t *testing.T) {
			s := FromObjects([]*v1alpha1.OpsConfigInfo{{
				ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: v1alpha1.SystemNamespace},
				Spec:       v1alpha1.OpsConfigInfoSpec{Type: v1alpha1.ConfigRevisionPods, Content: tc.content, Enable: tc.enable},
			}})
			if diff := cmp.Diff(tc.want, s.RevisionPods); diff != "" {
				t.Error(diff)
			}
		})
	}
}
