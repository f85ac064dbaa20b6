package denialevents

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
)

func denial(uid types.UID, pod string) events.DeletionDenied {
	return events.DeletionDenied{
		DeniedBy:  events.Denier{APIVersion: "policy.kruise.io/v1alpha1", Kind: "PodUnavailableBudget", Namespace: "shop", Name: "web", UID: uid},
		Operation: "DELETE", Namespace: "shop", Object: pod, User: "jane", Reason: "DisruptionDenied",
	}
}

func TestOneCloudEventPerGuardAndPeriod(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1_767_323_045, 0))
	var sent eventstest.Recorder
	one, two := New(&sent, clock), New(&sent, clock)
	for range 100 {
		one.Publish(t.Context(), denial("a", "web-1"))
		one.Publish(t.Context(), denial("b", "web-2"))
	}
	two.Publish(t.Context(), denial("a", "web-3"))
	clock.SetTime(clock.Now().Add(events.DenialPeriod))
	one.Publish(t.Context(), denial("a", "web-4"))

	var ids []string
	for _, e := range sent.Sent() {
		ids = append(ids, e.ID())
	}
	want := []string{"a/1767323040/denied", "b/1767323040/denied", "a/1767323040/denied", "a/1767323100/denied"}
	if len(ids) != len(want) {
		t.Fatalf("sent %q, want %q", ids, want)
	}
	for i := range want {
		if ids[i] != want[i] {
			t.Errorf("sent %q, want %q", ids[i], want[i])
		}
	}
}

func TestANilPublisherDoesNothing(t *testing.T) {
	var none *Publisher
	none.Publish(t.Context(), denial("a", "web-1")) // does not panic
}
