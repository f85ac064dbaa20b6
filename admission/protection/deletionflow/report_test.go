package deletionflow

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
)

func TestADenialSendsACloudEventThatDescribesIt(t *testing.T) {
	pod, shop := newPod("a", nil), newNamespace(nil)
	dry := deletion(t, pod)
	dry.DryRun = new(true)
	for name, tc := range map[string]struct {
		req    *admissionv1.AdmissionRequest
		limit  int64
		shadow bool
		want   []string
	}{
		"a deletion":       {req: deletion(t, pod), want: []string{"DELETE shop/a by ann"}},
		"an eviction":      {req: eviction(t, "a", nil), want: []string{"EVICT shop/a by ann"}},
		"a namespace":      {req: ofNamespace(t, shop), want: []string{"DELETE /shop by ann"}},
		"a dry run":        {req: dry},
		"a dry eviction":   {req: eviction(t, "a", &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})},
		"in shadow mode":   {req: deletion(t, pod), shadow: true},
		"within the limit": {req: deletion(t, pod), limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newFixture(t, pod, shop, newFlow("cluster", tc.limit, func(f *v1alpha1.PodDeletionFlowControl) { f.UID, f.Spec.Shadow = "uid-flow", tc.shadow }))
			var sent eventstest.Recorder
			fx.guard.Denials = denialevents.New(&sent, clock.RealClock{})
			fx.ask(t, tc.req)
			var got []string
			for _, e := range sent.Sent() {
				d, err := events.ParseDeletionDenied(e)
				if err != nil {
					t.Fatal(err)
				}
				if d.DeniedBy.Kind != "PodDeletionFlowControl" || d.DeniedBy.Name != "cluster" || d.Reason != v1alpha1.ReasonDeletionDenied {
					t.Errorf("%+v", d)
				}
				got = append(got, d.Operation+" "+d.Namespace+"/"+d.Object+" by "+d.User)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
