package diagnosis

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// DeadLetter is a CloudEvent that the Broker could not deliver.
type DeadLetter struct {
	Namespace string      `json:"namespace"`
	Object    string      `json:"object"`
	Time      metav1.Time `json:"time"`
	// Waiting: its effect is still missing. Breakwater sends it again every 2 to 30 seconds.
	Waiting bool   `json:"waiting"`
	Message string `json:"message"`
	// Explanation says whether its effect is still missing, and what happens next.
	Explanation string `json:"explanation"`
}

// reportPrefix begins the types of the reports about releases. Wake-ups of a ChangeWorkload have
// types of orders.
const reportPrefix = "dev.breakwater.changeworkload."

const sentOnce = "a report to the server; it is sent once, so it is lost, and no release waits for it"

// DeadLetters returns the undelivered events, waiting events first. Verdicts are in the inbox
// of their release. The others are wake-ups and reports: function deadletter created a Kubernetes
// Event on the object of each. A report is not sent again.
func DeadLetters(events []corev1.Event, releases []v1alpha1.ChangeWorkload, batches []v1alpha1.ChangePod) []DeadLetter {
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
			Namespace: e.InvolvedObject.Namespace, Time: e.LastTimestamp, Message: e.Message,
			Object: strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name,
		}
		l.Waiting, l.Explanation = waitsForEvent(e.InvolvedObject, releases, batches)
		if strings.Contains(e.Message, reportPrefix) {
			l.Waiting, l.Explanation = false, sentOnce
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

// waitsForEvent reports whether an object still waits for the effect of a wake-up.
func waitsForEvent(o corev1.ObjectReference, releases []v1alpha1.ChangeWorkload, batches []v1alpha1.ChangePod) (bool, string) {
	const again = "the controller sends it again until its effect is seen, at most until the timeout of the step"
	switch o.Kind {
	case "ChangePod":
		for i := range batches {
			if batches[i].UID == o.UID {
				if why := waits(&batches[i]); why != "" {
					return true, "the batch " + why + "; " + again
				}
				return false, "the batch has ended: nothing is missing"
			}
		}
	case "ChangeWorkload":
		for i := range releases {
			if c := &releases[i]; c.UID == o.UID {
				if c.Status.OrderStep != nil || len(c.Status.Announcements) > 0 {
					return true, again
				}
				return false, "no step of the release is due: nothing is missing"
			}
		}
	default:
		return false, sentOnce
	}
	return false, "the object was deleted: nothing is missing"
}
