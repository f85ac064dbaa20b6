package changeworkload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"knative.dev/pkg/controller"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/deadline"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxAnnouncementText and maxAnnouncementUser are the limits of the schema in
	// bytes.
	maxAnnouncementText = 1024
	maxAnnouncementUser = 512
	// maxDelivered bounds the delivered announcements that are not removed yet. An
	// evicted one is sent once more, with the same id.
	maxDelivered = 20000
)

// announceChanges derives status.announcements: without those that the Broker has
// accepted, and with the changes of state of this decision. They are part of the write
// of the state, so no event of it is lost.
func announceChanges(in Input, next *v1alpha1.ChangeWorkload, d Decision) {
	st, old := &next.Status, in.ChangeWorkload.Status.Phase
	st.Announcements = slices.DeleteFunc(slices.Clone(st.Announcements), func(a v1alpha1.Announcement) bool {
		return in.DeliveredAnnouncements[announcementData(next, a).ID()]
	})
	if len(st.Announcements) == 0 {
		st.Announcements = nil
	}
	if st.Phase == old || d.Reason == v1alpha1.ReasonBaseline {
		return
	}
	add := func(verb events.Verb, reason, message, user string) {
		st.Announce(v1alpha1.Announcement{
			Verb: string(verb), Phase: st.Phase, EntryTimeUnix: st.EntryTimeUnix, Reason: reason,
			Message: text.Truncate(message, maxAnnouncementText), User: text.Truncate(user, maxAnnouncementUser),
		})
	}
	if old == v1alpha1.ReleaseInit {
		add(events.VerbStarted, d.Reason, d.Detail, "")
		if b := bypassOf(in); b != nil {
			add(events.VerbBypassed, b.Kind.Reason(), d.Detail, b.User)
		}
	}
	withoutPods := st.Phase == v1alpha1.ReleaseSuccess && !succeedsWithPods(in, d.Pods)
	switch st.Phase {
	case v1alpha1.ReleaseSuccess:
		if withoutPods && st.SucceededWithoutPods {
			return
		}
		add(events.VerbSucceeded, d.Reason, d.Detail, "")
	case v1alpha1.ReleaseSuspend:
		add(events.VerbSuspended, d.Reason, d.Detail, "")
	case v1alpha1.ReleaseFailed:
		add(events.VerbFailed, d.Reason, d.Detail, "")
	case v1alpha1.ReleaseInit, v1alpha1.ReleaseRunning, v1alpha1.ReleaseNoNewBatch:
		return // progress is sent without an announcement
	}
	st.SucceededWithoutPods = withoutPods
}

// announce sends the stored announcements that the Broker has not accepted, at growing
// intervals. It returns when to try again.
func (r *Reconciler) announce(ctx context.Context, c *v1alpha1.ChangeWorkload) (time.Duration, error) {
	var again time.Duration
	for _, a := range c.Status.Announcements {
		data := announcementData(c, a)
		id := data.ID()
		if _, delivered := r.delivered.Get(id); delivered {
			continue // its removal is not written yet
		}
		key := "announcement/" + id
		due, next := r.wakeups.TakeDue(key)
		again = deadline.ShorterWait(again, next)
		if !due {
			continue
		}
		e, err := newEvent(data)
		if err != nil {
			return 0, err
		}
		r.sender.SendAndConfirm(ctx, e, func() {
			r.delivered.Add(id, struct{}{})
			r.wakeups.Done(key)
			r.enqueue(keyOf(c))
		})
	}
	return again, nil
}

// deliveredAnnouncements returns the ids of those announcements that the Broker has
// accepted.
func (r *Reconciler) deliveredAnnouncements(c *v1alpha1.ChangeWorkload) map[string]bool {
	var out map[string]bool
	for _, a := range c.Status.Announcements {
		id := announcementData(c, a).ID()
		if _, delivered := r.delivered.Get(id); delivered {
			if out == nil {
				out = map[string]bool{}
			}
			out[id] = true
		}
	}
	return out
}

// announcementData returns the data of the event of an announcement.
func announcementData(c *v1alpha1.ChangeWorkload, a v1alpha1.Announcement) events.ChangeWorkload {
	d := dataOf(c, events.Verb(a.Verb))
	d.Status, d.EntryTimeUnix, d.Reason, d.Message, d.User = a.Phase, a.EntryTimeUnix, a.Reason, a.Message, a.User
	return d
}

// dataOf returns the data of an event about a release.
func dataOf(c *v1alpha1.ChangeWorkload, verb events.Verb) events.ChangeWorkload {
	return events.ChangeWorkload{
		Verb: verb, Namespace: c.Namespace, Name: c.Name, UID: c.UID,
		Workload: events.Workload{
			APIVersion: c.Spec.WorkloadRef.APIVersion, Kind: c.Spec.WorkloadRef.Kind, Name: c.Spec.WorkloadRef.Name,
		},
		Version: c.Spec.Reversion, Attempt: c.Spec.Attempt, OrderID: c.Spec.OrderID, AppName: c.Spec.AppName, Status: c.Status.Phase,
		EntryTimeUnix: c.Status.EntryTimeUnix, Counts: c.Status.Counts,
	}
}

func newEvent(d events.ChangeWorkload) (event.Event, error) {
	e, err := events.New(d)
	if err != nil {
		return event.Event{}, controller.NewPermanentError(fmt.Errorf("build the event of ChangeWorkload %s/%s: %w", d.Namespace, d.Name, err))
	}
	return e, nil
}
