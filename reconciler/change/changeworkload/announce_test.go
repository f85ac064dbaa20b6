package changeworkload

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/resend"
)

// verbs returns the verbs of the announcements.
func verbs(c *v1alpha1.ChangeWorkload) string {
	var out []string
	for _, a := range c.Status.Announcements {
		out = append(out, a.Verb)
	}
	return strings.Join(out, " ")
}

func TestAChangeOfStateIsAnnouncedWithTheWriteOfTheState(t *testing.T) {
	const running, success, suspend = v1alpha1.ReleaseRunning, v1alpha1.ReleaseSuccess, v1alpha1.ReleaseSuspend
	for name, tc := range map[string]struct {
		in   Input
		want string
	}{
		"it begins":                      {release(2, starting(1)), "started"},
		"it begins and ends":             {release(1, finished(1, 1), judged(1, "pass"), complete1), "started succeeded"},
		"a repair begins":                {release(2, starting(1), repairs), "started bypassed"},
		"its order is not accepted yet":  {release(1, starting(1), withServer), ""},
		"it succeeds":                    {release(1, finished(1, 1), judged(1, "pass"), complete1, was(running)), "succeeded"},
		"it fails":                       {release(1, finished(1, 1), judged(1, "fail"), was(running)), "suspended"},
		"it is superseded":               {release(1, finished(1, 1), newer, was(running)), "failed"},
		"a person overrules its fail":    {release(2, onceFailed(1), finished(1, 1), judged(1, "fail"), person("pass"), held, was(suspend)), ""},
		"nothing changes":                {release(1, finished(1, 1), judged(1, "pass"), complete1, was(success)), ""},
		"it is the baseline":             {release(1, func(in *Input) { in.ChangeWorkload.Spec.Attempt = 0 }), ""},
		"an earlier one is not sent yet": {release(1, finished(1, 1), judged(1, "fail"), was(running), announcing("started")), "started suspended"},
		"an earlier one was accepted":    {release(1, finished(1, 1), judged(1, "fail"), was(running), announcing("started"), deliveredAll), "suspended"},
		"the last one was accepted":      {release(1, finished(1, 1), judged(1, "pass"), complete1, was(success), announcing("succeeded"), deliveredAll), ""},
		"the Broker accepts none, for a long time": {release(1, finished(1, 1), judged(1, "fail"), was(running),
			announcing(slices.Repeat([]string{"suspended"}, v1alpha1.MaxAnnouncements)...)), strings.TrimSpace(strings.Repeat("suspended ", v1alpha1.MaxAnnouncements))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verbs(written(tc.in)); got != tc.want {
				t.Errorf("announced %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAnAnnouncementHasTheOrderOfItsRelease(t *testing.T) {
	c := release(1).ChangeWorkload
	c.Spec.OrderID, c.Spec.AppName = "order", "shop"
	if d := announcementData(c, v1alpha1.Announcement{Verb: "suspended"}); d.OrderID != "order" || d.AppName != "shop" {
		t.Errorf("got %+v", d)
	}
}

func TestASupersededSuccessKeepsItsCountsWhenItsEventWasAccepted(t *testing.T) {
	in := release(1, finished(1, 1), judged(1, "pass"), complete1, was(v1alpha1.ReleaseRunning))
	in.ChangeWorkload = written(in)
	newer(&in)
	deliveredAll(&in)
	in.Pods = nil // are deleted
	next, kind := nextStatus(in, Decide(in))
	if kind != announced || len(next.Status.Announcements) != 0 || next.Status.Counts.Passed != 1 {
		t.Errorf("difference %d: %q are announced, counts %+v", kind, verbs(next), next.Status.Counts)
	}
}

// announcing adds announcements that are not sent yet, of different times.
func announcing(verbs ...string) func(*Input) {
	return func(in *Input) {
		for i, verb := range verbs {
			in.ChangeWorkload.Status.Announce(v1alpha1.Announcement{Verb: verb, EntryTimeUnix: t0.Unix() - int64(len(verbs)-i)})
		}
	}
}

// deliveredAll: the Broker has accepted all announcements.
func deliveredAll(in *Input) {
	in.DeliveredAnnouncements = map[string]bool{}
	for _, a := range in.ChangeWorkload.Status.Announcements {
		in.DeliveredAnnouncements[announcementData(in.ChangeWorkload, a).ID()] = true
	}
}

// outbox is a Broker that accepts events later, or never.
type outbox struct {
	sent     []string
	accepted []func()
}

func (o *outbox) Send(_ context.Context, e cloudevents.Event) { o.sent = append(o.sent, e.Type()) }
func (o *outbox) SendAndConfirm(_ context.Context, e cloudevents.Event, accepted func()) {
	o.sent, o.accepted = append(o.sent, e.Type()), append(o.accepted, accepted)
}

func TestAnAnnouncementIsSentUntilTheBrokerAcceptsIt(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(t0)
	broker, enqueued := &outbox{}, []types.NamespacedName{}
	r := &Reconciler{sender: broker, wakeups: resend.New(clock), delivered: lru.New(10),
		enqueue: func(k types.NamespacedName) { enqueued = append(enqueued, k) }}
	in := release(1, announcing("started", "suspended"), was(v1alpha1.ReleaseSuspend))
	c := in.ChangeWorkload
	c.Namespace, c.UID, c.Spec.Reversion = "default", "u", strings.Repeat("0", 32)
	c.Spec.WorkloadRef = v1alpha1.WorkloadRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "a"}

	send := func() time.Duration {
		again, err := r.announce(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return again
	}
	next := send()
	send()
	if len(broker.sent) != 2 || next == 0 {
		t.Fatalf("sent %q, next in %s", broker.sent, next)
	}
	broker.accepted[1]()
	clock.SetTime(t0.Add(next))
	send()
	if got := broker.sent[2:]; !slices.Equal(got, []string{"dev.breakwater.changeworkload.started.v1"}) {
		t.Errorf("sent %q after the second was accepted", got)
	}
	if !slices.Equal(enqueued, []types.NamespacedName{keyOf(c)}) {
		t.Errorf("enqueued %v", enqueued)
	}
	in.DeliveredAnnouncements = r.deliveredAnnouncements(c)
	if got := verbs(derive(in, Decide(in))); got != "started" {
		t.Errorf("%q remain", got)
	}
}

// KEDA starts a pod, and deletes it before it has a verdict.
func TestASuccessWithoutPodsIsAnnouncedOnce(t *testing.T) {
	in := release(0, complete1, recorded)
	for n := 1; n <= 10; n++ {
		for _, o := range []func(*Input){
			after(time.Duration(2*n) * time.Minute), scaledTo(1), finished(n, n), judged(n, ""), recorded,
			after(time.Duration(2*n+1) * time.Minute), scaledTo(0), recorded,
		} {
			o(&in)
		}
	}
	if got := verbs(in.ChangeWorkload); got != "started succeeded" {
		t.Errorf("announced %q", got)
	}
	for _, o := range []func(*Input){scaledTo(1), finished(11, 11), recorded, judged(11, "pass"), recorded} {
		o(&in)
	}
	var got []string
	for _, a := range in.ChangeWorkload.Status.Announcements {
		got = append(got, a.Verb+" "+a.Reason)
	}
	want := []string{"started NoVerdict", "succeeded NoVerdict", "succeeded AllPodsPassed"}
	if !slices.Equal(got, want) {
		t.Errorf("announced %q, want %q", got, want)
	}
}

// Otherwise consumers would keep the last result before it.
func TestASuccessWithoutPodsIsAnnouncedAfterAnotherResult(t *testing.T) {
	noConditions := func(in *Input) { in.ChangeWorkload.Status.Conditions = nil } // the time of a transition is that of the test
	for name, tc := range map[string]struct {
		between []func(*Input)
		want    string
	}{
		"nothing":               {nil, "started succeeded"},
		"its pod has a verdict": {[]func(*Input){finished(1, 1), judged(1, ""), recorded, person("pass"), recorded}, "started succeeded succeeded"},
		"it timed out":          {[]func(*Input){starting(1), recorded, noConditions, judgedSince(time.Minute), after(26 * time.Hour), recorded}, "started succeeded failed succeeded"},
		"its pod is unjudged and fails, until the policy is Pass": {[]func(*Input){noVerdict(v1alpha1.NoVerdictFail), finished(1, 1), recorded, judged(1, "done"), recorded,
			noVerdict(v1alpha1.NoVerdictPass)}, "started succeeded suspended succeeded"},
	} {
		t.Run(name, func(t *testing.T) {
			in := release(0, complete1, recorded)
			options := append([]func(*Input){after(time.Minute), scaledTo(1), recorded}, tc.between...)
			for _, o := range append(options, func(in *Input) { in.Now = in.Now.Add(time.Minute) }, scaledTo(0), recorded) {
				o(&in)
			}
			if got := verbs(in.ChangeWorkload); got != tc.want {
				t.Errorf("announced %q, want %q", got, tc.want)
			}
		})
	}
}
