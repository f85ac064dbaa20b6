package deletionflow

import (
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// Breaker is the state of a flow control at a time.
type Breaker struct {
	// Open reports whether a limit is reached or a rule is invalid. Exceeded is the limit
	// that is reached, RoomTime the time when a deletion is within it again; zero is never,
	// because the limit is 0.
	Open     bool
	Exceeded deletionwindow.Usage
	RoomTime time.Time
	// Deleted is the number of deletions in the longest window.
	Deleted int64
	// Median is the median of the seven windows before that of Exceeded.
	Median int64
	// Suspected is the suspected cause of the deletions.
	Suspected Cause
	// Err says which rule is invalid.
	Err error
	// Shadow reports whether the flow control is in shadow mode, so that it denies nothing.
	Shadow bool
}

// BreakerOf decides whether the breaker of a flow control is open, and why.
func BreakerOf(f *v1alpha1.PodDeletionFlowControl, local time.Time, skew time.Duration) Breaker {
	b := Breaker{Shadow: f.Spec.Shadow}
	policy, err := deletionwindow.ParsePolicy(f, skew)
	if err != nil {
		b.Open, b.Err = true, err
		return b
	}
	state := deletionwindow.StateOf(&f.Status)
	for _, u := range policy.Usages(state, local) {
		b.Deleted = u.Used
	}
	b.Exceeded, b.RoomTime, b.Open = policy.Exceeded(state, local, 1)
	if b.Open {
		b.Median = deletionwindow.Median(state, b.Exceeded.Rule, local)
		b.Suspected = suspectedCause(f.Status.Shares)
	}
	return b
}

// Ratio is the number of deletions in the window of Exceeded divided by Median; 0 if
// Median is 0.
func (b Breaker) Ratio() float64 {
	if b.Median == 0 {
		return 0
	}
	return float64(b.Exceeded.Used) / float64(b.Median)
}

// Message explains why the breaker is open.
func (b Breaker) Message(of *v1alpha1.DeletionShares) string {
	text, is, are := "", "is", "are"
	if b.Shadow {
		text, is, are = "shadow mode: ", "would be", "would be"
	}
	if b.Err != nil {
		return text + "every deletion that counts " + is + " denied: " + b.Err.Error()
	}
	text += fmt.Sprintf("%d deletions in %s (limit %d)", b.Exceeded.Used, b.Exceeded.Rule.Text, b.Exceeded.Rule.Limit)
	if b.Median > 0 {
		text += fmt.Sprintf(", %.1f times the median of the seven windows before", b.Ratio())
	}
	if b.RoomTime.IsZero() {
		text += "; no deletion " + is + " allowed until the limit is raised"
	} else {
		text += "; deletions " + are + " allowed again at " + b.RoomTime.UTC().Format(time.RFC3339)
	}
	return text + attribution(b.Suspected, of)
}

// attribution names the suspected cause and the largest shares.
func attribution(suspected Cause, of *v1alpha1.DeletionShares) string {
	if of == nil || of.Total == 0 {
		return ""
	}
	text := "; suspected: " + string(suspected)
	for _, by := range []struct {
		word string
		all  []v1alpha1.DeletionShare
	}{{"by", of.Users}, {"of", of.Owners}, {"in namespace", of.Namespaces}} {
		if len(by.all) > 0 {
			text += fmt.Sprintf(", %d%% %s %s", min(100, 100*by.all[0].Count/of.Total), by.word, by.all[0].Name)
		}
	}
	return text
}

// CorrectCommittedTime sets a committed time that is too far in the future to local. It returns the
// corrected status, or nil if no correction is needed.
func CorrectCommittedTime(f *v1alpha1.PodDeletionFlowControl, local time.Time, skew time.Duration) *v1alpha1.PodDeletionFlowControlStatus {
	policy, err := deletionwindow.ParsePolicy(f, skew)
	if err != nil {
		return nil
	}
	state, ahead := policy.CorrectCommitted(deletionwindow.StateOf(&f.Status), local)
	if !ahead {
		return nil
	}
	next := f.Status.DeepCopy()
	state.Store(next)
	return next
}
