package deletionflow

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testingclock "k8s.io/utils/clock/testing"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/client/clientset/versioned/fake"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/events/eventstest"
)

const skew = 5 * time.Second

var zero = time.Unix(1<<30, 0)

func newFlow(limit int64, change func(*v1alpha1.PodDeletionFlowControl)) *v1alpha1.PodDeletionFlowControl {
	f := &v1alpha1.PodDeletionFlowControl{
		ObjectMeta: metav1.ObjectMeta{Name: "cluster", Generation: 3},
		Spec:       v1alpha1.PodDeletionFlowControlSpec{LimitRules: []v1alpha1.LimitRule{{Interval: "10m", Limit: limit}}},
	}
	if change != nil {
		change(f)
	}
	return f
}

func counted(n int64) func(*v1alpha1.PodDeletionFlowControl) {
	return func(f *v1alpha1.PodDeletionFlowControl) {
		committed := metav1.NewMicroTime(zero)
		f.Status.Buckets = []v1alpha1.DeletionCell{{Start: zero.Unix(), End: zero.Unix() + 1, Count: n}}
		f.Status.CommittedTime = &committed
	}
}

// reconcileOnce reconciles once and returns the status, the recorded Events and the
// delay of the next reconciliation.
func reconcileOnce(t *testing.T, f *v1alpha1.PodDeletionFlowControl, after time.Duration, conflict bool) (v1alpha1.PodDeletionFlowControlStatus, []string, time.Duration) {
	t.Helper()
	return reconcileAndSend(t, f, after, conflict, &eventstest.Recorder{})
}

// reconcileAndSend is reconcileOnce with a sender of CloudEvents.
func reconcileAndSend(t *testing.T, f *v1alpha1.PodDeletionFlowControl, after time.Duration, conflict bool, sent *eventstest.Recorder) (v1alpha1.PodDeletionFlowControlStatus, []string, time.Duration) {
	t.Helper()
	return reconcileWith(t, f, fakeClock{testingclock.NewFakePassiveClock(zero.Add(after)), nil}, conflict, sent)
}

// fakeClock is a clock whose check returns wrong.
type fakeClock struct {
	*testingclock.FakePassiveClock
	wrong error
}

func (c fakeClock) Check(context.Context) error { return c.wrong }

// reconcileWith is reconcileAndSend with a clock.
func reconcileWith(t *testing.T, f *v1alpha1.PodDeletionFlowControl, now fakeClock, conflict bool, sent *eventstest.Recorder) (v1alpha1.PodDeletionFlowControlStatus, []string, time.Duration) {
	t.Helper()
	client, recorded := fake.NewSimpleClientset(f), record.NewFakeRecorder(10)
	if conflict {
		client.PrependReactor("update", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrs.NewConflict(v1alpha1.Resource("poddeletionflowcontrols"), f.Name, errors.New("changed"))
		})
	}
	r := &Reconciler{client: client.PolicyV1alpha1(), clock: now, skew: skew, sender: sent}
	err := r.ReconcileKind(controller.WithEventRecorder(context.Background(), recorded), f)
	requeue, wait := controller.IsRequeueKey(err)
	if err != nil && !requeue {
		t.Fatal(err)
	}
	close(recorded.Events)
	var said []string
	for e := range recorded.Events {
		said = append(said, e)
	}
	stored, err := client.PolicyV1alpha1().PodDeletionFlowControls().Get(t.Context(), f.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return stored.Status, said, wait
}

func TestOpeningAndClosingRecordOneEventEach(t *testing.T) {
	f := newFlow(3, counted(3))
	status, recorded, wait := reconcileOnce(t, f, time.Second, false)
	f.Status = status
	room := zero.Add(611 * time.Second)
	if !isOpen(f) || status.Deleted != 3 || status.RoomTime == nil || !status.RoomTime.Time.Equal(room) || status.ObservedGeneration != 3 {
		t.Errorf("%+v", status)
	}
	if len(recorded) != 1 || !strings.Contains(recorded[0], "Warning LimitHit the breaker is open: 3 deletions in 10m (limit 3)") {
		t.Errorf("Events %q", recorded)
	}
	if wait != refreshInterval {
		t.Errorf("next in %s", wait)
	}
	if status, recorded, wait = reconcileOnce(t, f, 600*time.Second, false); len(recorded) > 0 || wait != 11*time.Second {
		t.Errorf("while it is open: Events %q, next in %s", recorded, wait)
	}
	f.Status = status
	status, recorded, wait = reconcileOnce(t, f, 611*time.Second, false)
	f.Status = status
	if isOpen(f) || status.RoomTime != nil || status.Deleted != 0 || len(status.Buckets) != 1 {
		t.Errorf("%+v", status)
	}
	if len(recorded) != 1 || !strings.Contains(recorded[0], "Normal WithinLimit") || wait != 0 {
		t.Errorf("Events %q, next in %s", recorded, wait)
	}
}

func TestRaisingTheLimitClosesTheBreaker(t *testing.T) {
	f := newFlow(3, counted(3))
	f.Status, _, _ = reconcileOnce(t, f, time.Second, false)
	f.Spec.LimitRules[0].Limit = 4
	status, recorded, wait := reconcileOnce(t, f, 2*time.Second, false)
	f.Status = status
	if isOpen(f) || status.Deleted != 3 || len(recorded) != 1 || wait != refreshInterval {
		t.Errorf("%+v, Events %q, next in %s", status, recorded, wait)
	}
}

func TestALimitOfZeroIsAlwaysOpen(t *testing.T) {
	f := newFlow(0, nil)
	status, recorded, wait := reconcileOnce(t, f, 0, false)
	f.Status = status
	if !isOpen(f) || status.RoomTime != nil || len(recorded) != 1 || wait != 0 {
		t.Errorf("%+v, Events %q, next in %s", status, recorded, wait)
	}
}

func TestAnInvalidRuleIsNamed(t *testing.T) {
	f := newFlow(3, func(f *v1alpha1.PodDeletionFlowControl) { f.Spec.LimitRules[0].Interval = "soon" })
	_, recorded, _ := reconcileOnce(t, f, 0, false)
	if len(recorded) != 1 || !strings.Contains(recorded[0], "InvalidRule") || !strings.Contains(recorded[0], "spec.limitRules[0].interval") {
		t.Errorf("Events %q", recorded)
	}
}

func TestNoEventIsRecordedBeforeTheStatusIsWritten(t *testing.T) {
	status, recorded, wait := reconcileOnce(t, newFlow(3, counted(3)), time.Second, true)
	if len(recorded) > 0 || wait != minInterval || len(status.Conditions) > 0 {
		t.Errorf("Events %q, next in %s: %+v", recorded, wait, status)
	}
}

func TestACorrectionOfTheCommittedTimeRecordsAnEventAndKeepsCounts(t *testing.T) {
	f := newFlow(9, counted(3))
	ahead := metav1.NewMicroTime(zero.Add(time.Hour))
	f.Status.CommittedTime = &ahead
	status, recorded, _ := reconcileOnce(t, f, time.Second, false)
	if !status.CommittedTime.Time.Equal(zero.Add(time.Second)) || status.Deleted != 3 {
		t.Errorf("%+v", status)
	}
	if len(recorded) != 1 || !strings.Contains(recorded[0], v1alpha1.ReasonCommittedTimeCorrected) {
		t.Errorf("Events %q", recorded)
	}
}

// A correction by a clock that is behind would lift the limit: the deletions would be out of their windows.
func TestAWrongClockCorrectsNoCommittedTime(t *testing.T) {
	f := newFlow(3, counted(3))
	behind := fakeClock{testingclock.NewFakePassiveClock(zero.Add(-time.Hour)), errors.New("behind")}
	status, recorded, wait := reconcileWith(t, f, behind, false, &eventstest.Recorder{})
	if wait != recheckInterval {
		t.Errorf("the clock is compared again after %s", wait)
	}
	if !status.CommittedTime.Time.Equal(zero) || status.Buckets[0].Start != zero.Unix() {
		t.Errorf("deletions at %s were moved: %+v", zero, status)
	}
	if strings.Contains(strings.Join(recorded, ""), v1alpha1.ReasonCommittedTimeCorrected) {
		t.Errorf("Events %q", recorded)
	}
	if f.Status = status; !isOpen(f) {
		t.Errorf("the breaker is not open: %+v", status)
	}
}

func TestOpeningAndClosingSendOneCloudEventEach(t *testing.T) {
	f, sent := newFlow(3, counted(3)), &eventstest.Recorder{}
	f.UID = "uid"
	f.Status, _, _ = reconcileAndSend(t, f, time.Second, false, sent)
	f.Status, _, _ = reconcileAndSend(t, f, 2*time.Second, false, sent)
	opened := sent.Sent()
	if len(opened) != 1 {
		t.Fatalf("opening sent %v", opened)
	}
	d, err := events.ParseDeletionFlow(opened[0])
	since := f.GetStatus().GetCondition(v1alpha1.FlowControlOpen).LastTransitionTime.Inner.Unix()
	if err != nil || !d.Open || d.Deleted != 3 || d.SinceUnix != since || d.RoomUnix != zero.Add(611*time.Second).Unix() || d.Reason != v1alpha1.ReasonLimitHit {
		t.Errorf("%+v, %v", d, err)
	}
	sent.Reset()
	reconcileAndSend(t, f, 611*time.Second, true, sent) // not written, so not sent
	if early := sent.Sent(); len(early) > 0 {
		t.Errorf("sent before it was written: %v", early)
	}
	f.Status, _, _ = reconcileAndSend(t, f, 611*time.Second, false, sent)
	closed := sent.Sent()
	if len(closed) != 1 {
		t.Fatalf("closing sent %v", closed)
	}
	if d, err := events.ParseDeletionFlow(closed[0]); err != nil || d.Open || d.Name != "cluster" || d.Reason != v1alpha1.ReasonWithinLimit {
		t.Errorf("%+v, %v", d, err)
	}
}
