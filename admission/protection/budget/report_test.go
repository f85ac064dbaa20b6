package budget

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"

	"github.com/breakwater-dev/breakwater/admission/protection/denialevents"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
)

func TestADenialSendsACloudEventThatDescribesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		shadow, dryRun bool
		allowed        int32
		sent           int
	}{
		"a denial":                {sent: 1},
		"a denial in shadow mode": {shadow: true},
		"the denial of a dry run": {dryRun: true},
		"an allowed request":      {allowed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBudget("web", tc.allowed, func(b *v1alpha1.PodUnavailableBudget) { b.Spec.Shadow = tc.shadow })
			fx := newFixture(t, chains{}, []*v1alpha1.PodUnavailableBudget{b})
			var sent eventstest.Recorder
			fx.guard.Denials = denialevents.New(&sent, clock.RealClock{})
			req := deletion(t, newPod(func(p *corev1.Pod) { p.OwnerReferences = nil }))
			req.UserInfo.Username, req.DryRun = "jane", new(tc.dryRun)
			fx.ask(t, req)
			all := sent.Sent()
			if len(all) != tc.sent {
				t.Fatalf("sent %v", all)
			}
			for _, e := range all {
				d, err := events.ParseDeletionDenied(e)
				if err != nil {
					t.Fatal(err)
				}
				if d.DeniedBy.Name != "web" || d.DeniedBy.UID != b.UID || d.Operation != "DELETE" || d.Namespace != "ns" || d.Object != "web-1-a" ||
					d.User != "jane" || d.Reason != v1alpha1.ReasonDisruptionDenied || d.Message == "" {
					t.Errorf("%+v", d)
				}
			}
		})
	}
}

// The request of a deletecollection has no name.
func TestTheCloudEventOfADeniedDeletionOfAControllerNamesTheController(t *testing.T) {
	fx := newFixture(t, living, []*v1alpha1.PodUnavailableBudget{newBudget("web", 0, nil)}, newPod(nil))
	var sent eventstest.Recorder
	fx.guard.Denials = denialevents.New(&sent, clock.RealClock{})
	req := ofReplicaSet(t)
	req.Name, req.UserInfo.Username = "", "jane"
	fx.ask(t, req)
	all := sent.Sent()
	if len(all) != 1 {
		t.Fatalf("sent %v", all)
	}
	if d, err := events.ParseDeletionDenied(all[0]); err != nil || d.Object != "web-1" {
		t.Errorf("%+v, %v", d, err)
	}
}
