package deletionflow

import (
	"fmt"
	"time"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/deletioncallers"
	"github.com/breakwater-dev/breakwater/internal/deletionwindow"
)

// State is what follows from a history at a time.
type Breaker struct {
	// Open: a rule is full. By and Room say which, and when it has room again;
	// a zero Room is never, because the limit is 0.
	Open     bool
	Exceeded deletionwindow.Usage
	RoomTime time.Time
	// Deleted is how many deletions the longest window holds.
	Deleted int64
	// Usual is the median of the seven windows before that of By.
	Median int64
	// Suspected is what the deletions look like.
	Suspected deletioncallers.Cause
	// Err says what does not read.
	Err error
}

// StateOf looks at a flow control.
func BreakerOf(f *v1alpha1.PodDeletionFlowControl, local time.Time, skew time.Duration) (s Breaker) {
	terms, err := deletionwindow.ParsePolicy(f, skew)
	if err != nil {
		return Breaker{Open: true, Err: err}
	}
	history := deletionwindow.StateOf(&f.Status)
	for _, u := range terms.Usages(history, local) {
		s.Deleted = u.Used
	}
	s.Exceeded, s.RoomTime, s.Open = terms.Exceeded(history, local, 1)
	if s.Open {
		s.Median = deletionwindow.Median(history, s.Exceeded.Rule, local)
		s.Suspected = deletioncallers.SuspectedCause(f.Status.Shares)
	}
	return s
}

// Ratio is how many times the usual the full window holds; 0: there is no
// usual, because nothing was deleted in the windows before.
func (s Breaker) Ratio() float64 {
	if s.Median == 0 {
		return 0
	}
	return float64(s.Exceeded.Used) / float64(s.Median)
}

// Message says to a person why the breaker is open.
func (s Breaker) Message(of *v1alpha1.DeletionShares) string {
	if s.Err != nil {
		return "nothing is let through: " + s.Err.Error()
	}
	text := fmt.Sprintf("%d deletions in %s, of which the limit is %d", s.Exceeded.Used, s.Exceeded.Rule.Text, s.Exceeded.Rule.Limit)
	if s.Median > 0 {
		text += fmt.Sprintf(", %.1f times the usual", s.Ratio())
	}
	if s.RoomTime.IsZero() {
		text += "; there is no room until the limit is raised"
	} else {
		text += "; there is room again at " + s.RoomTime.UTC().Format(time.RFC3339)
	}
	return text + Attribution(s.Suspected, of)
}

// Attribution says what the deletions look like and who has most of them.
func Attribution(suspected deletioncallers.Cause, of *v1alpha1.DeletionShares) string {
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

// Reset returns the status with a committed time that was too far ahead set to
// now; nil when it is not.
func Reset(f *v1alpha1.PodDeletionFlowControl, local time.Time, skew time.Duration) *v1alpha1.PodDeletionFlowControlStatus {
	terms, err := deletionwindow.ParsePolicy(f, skew)
	if err != nil {
		return nil
	}
	history, ahead := terms.Reset(deletionwindow.StateOf(&f.Status), local)
	if !ahead {
		return nil
	}
	next := f.Status.DeepCopy()
	history.Store(next)
	return next
}
