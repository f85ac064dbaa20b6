package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// DeadLetter is a CloudEvent that the Broker could not deliver, or a verdict in an inbox: also one
// that the Broker never accepted, or whose order node is not known yet.
type DeadLetter struct {
	Namespace string `json:"namespace"`
	// Name is the name of its Kubernetes Event; empty for a verdict in an inbox.
	Name   string      `json:"name,omitempty"`
	Object string      `json:"object"`
	Time   metav1.Time `json:"time"`
	// Waiting: it is a verdict or a wake-up whose effect is missing. The controller sends it again
	// every 2 to 30 seconds, and a look during a probation every 1 to 10 minutes.
	Waiting bool   `json:"waiting"`
	Message string `json:"message"`
	// Replay says whether a person can have it sent again, and whether that was done.
	Replay Replay `json:"replay,omitempty"`
	// Explanation says whether its effect is still missing, and what happens next.
	Explanation string `json:"explanation"`
}

// verdictSuffix ends the types of verdicts.
const verdictSuffix = ".verdict.v1"

// reportPrefix begins the types of the reports about releases. Wake-ups of a ChangeWorkload have
// types of orders.
const reportPrefix = "dev.breakwater.changeworkload."

// Replay is the state of the replay of a dead letter; empty if it needs none.
type Replay string

// The states of a replay.
const (
	// ReplayPossible: the event is sent once, so it is missing until it is replayed.
	ReplayPossible Replay = "Possible"
	// Replayed: the Broker accepted the event again.
	Replayed Replay = "Replayed"
)

// DeadLetters returns the verdicts in the inboxes of releases and the undelivered wake-ups, reports
// and malformed verdicts, waiting ones first. Function deadletter created a Kubernetes Event on the
// object of each of the latter. A report is sent again only if a person replays it, a malformed
// verdict never. flags are those that select the cluster, for the command that replays a report.
func DeadLetters(events []corev1.Event, releases []v1alpha1.ChangeWorkload, batches []v1alpha1.ChangePod, flags string) []DeadLetter {
	var all []DeadLetter
	for i := range releases {
		c := &releases[i]
		for _, v := range c.Status.Inbox {
			all = append(all, DeadLetter{
				Namespace: c.Namespace, Object: "changeworkload/" + c.Name, Time: metav1.NewTime(v.Time.Time), Waiting: true,
				Message:     fmt.Sprintf("verdict %s of stage %s of node %s", v.Verdict, v.Stage, v.NodeID),
				Explanation: "stored in the inbox of the release; the controller sends it again until it is recorded",
			})
		}
	}
	for i := range events {
		e := &events[i]
		if e.Reason != v1alpha1.ReasonEventUndelivered {
			continue
		}
		l := DeadLetter{
			Namespace: e.InvolvedObject.Namespace, Name: e.Name, Time: e.LastTimestamp, Message: e.Message,
			Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
		}
		if l.Replay, l.Explanation = replayOf(e, flags); l.Explanation == "" {
			l.Waiting, l.Explanation = waitsForEvent(e, releases, batches)
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b DeadLetter) int {
		if a.Waiting != b.Waiting {
			if a.Waiting {
				return -1
			}
			return 1
		}
		return b.Time.Compare(a.Time.Time)
	})
	return all
}

// replayOf returns the state of the replay of a stored event, and explains it.
func replayOf(e *corev1.Event, flags string) (Replay, string) {
	switch {
	case e.Annotations[v1alpha1.CloudEventAnnotation] != "":
	case strings.Contains(e.Message, verdictSuffix+" "):
		return "", "a malformed verdict, which is not stored and not sent again; before the timeout of the check, the server is asked; if it answers pass, the pass is recorded, and a fail of stage POST is lost"
	case strings.Contains(e.Message, reportPrefix):
		return "", "a report, which is sent once and was not stored, so it is lost; no release waits for it"
	default:
		return "", ""
	}
	if at := e.Annotations[v1alpha1.ReplayedAnnotation]; at != "" {
		return Replayed, "replayed at " + at
	}
	return ReplayPossible, fmt.Sprintf("a report, which is sent once and for which no release waits; `%s` sends it again", Command("deadletters replay", e.Name, e.Namespace)+flags)
}

// Replayable returns the names of the dead letters that can be replayed and were not.
func Replayable(letters []DeadLetter) (names []string) {
	for _, l := range letters {
		if l.Replay == ReplayPossible {
			names = append(names, l.Name)
		}
	}
	return names
}

// CheckReplay returns the dead letter with the name, or an error that says why it is not replayed. list is the command that
// lists the dead letters.
func CheckReplay(letters []DeadLetter, name, list string) (DeadLetter, error) {
	for _, l := range letters {
		switch {
		case l.Name != name:
		case l.Replay == "":
			return l, fmt.Errorf("%s is not replayed: %s", name, l.Explanation)
		default:
			return l, nil
		}
	}
	return DeadLetter{}, fmt.Errorf("no dead letter has the name %q: `%s` lists the names. Kubernetes deletes Events after an hour", name, list)
}

// waitsForEvent reports whether an object still waits for the effect of a wake-up.
func waitsForEvent(e *corev1.Event, releases []v1alpha1.ChangeWorkload, batches []v1alpha1.ChangePod) (bool, string) {
	const again = "the controller sends it again until its effect is seen or the step has ended"
	o := e.InvolvedObject
	switch o.Kind {
	case "ChangePod":
		for i := range batches {
			if batches[i].UID == o.UID {
				if why := waits(&batches[i]); why != "" {
					return true, "the batch " + why + "; " + again
				}
				if lookWaits(&batches[i], releases, e.LastTimestamp) {
					return true, "the look of function judge during probation is due; the controller sends it again until function judge looked"
				}
				return false, "the batch has ended: nothing is missing"
			}
		}
	case "ChangeWorkload":
		for i := range releases {
			if c := &releases[i]; c.UID == o.UID {
				if orderStepWaits(&c.Status) {
					return true, again
				}
				return false, "no step of the order is due: it is not sent again"
			}
		}
	default:
		return false, "a report about a pod; no release waits for it, and it was not stored"
	}
	return false, "the object was deleted: nothing is missing"
}

// lookWaits reports whether a look during probation is still due. b is the batch of the wake-up of
// function judge, and at is the time of the Event about that wake-up.
func lookWaits(b *v1alpha1.ChangePod, releases []v1alpha1.ChangeWorkload, at metav1.Time) bool {
	return slices.ContainsFunc(releases, func(c v1alpha1.ChangeWorkload) bool {
		p := c.Status.Probation
		return metav1.IsControlledBy(b, &c) && p != nil && p.NextLookTime != nil && !at.Before(p.NextLookTime)
	})
}

// orderStepWaits reports whether function submit still has to act on the step of the order.
// status.orderStep stays after that.
func orderStepWaits(s *v1alpha1.ChangeWorkloadStatus) bool {
	outcome, _ := s.OrderOutcome()
	accepted, judged := s.GetCondition(v1alpha1.ReleaseOrderAccepted), s.GetCondition(v1alpha1.ReleaseOrderJudged)
	switch {
	case s.OrderStep == nil:
		return false
	case s.OrderStep.Name == v1alpha1.OrderStepClose:
		return s.Order.Opened() && !s.Order.ClosingDone()
	case s.Phase == v1alpha1.ReleaseSuccess, s.Phase == v1alpha1.ReleaseFailed && !s.TimedOut(), outcome != v1alpha1.OutcomePending:
		return false
	case !s.Order.Opened():
		return !accepted.IsFalse() // no server is configured, or the release ended without it
	case s.Order.Skipped:
		return false
	}
	stage := v1alpha1.StagePre
	if s.OrderStep.Name == v1alpha1.OrderStepFinish {
		stage = v1alpha1.StagePost
	}
	// For an unjudged order, function submit repeats the call until the server accepts it. After that it does not
	// ask the server for the verdict.
	return !s.OrderVerdictOf(stage).EndsStage() && (!judged.IsFalse() || !s.Order.SubmissionOf(stage).Accepted())
}
