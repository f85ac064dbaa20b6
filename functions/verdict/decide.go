package verdict

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// Outcome is the action for a verdict, and a metric label.
type Outcome string

// The outcomes.
const (
	// Store: the verdict has a higher rank than the stored one.
	Store Outcome = "stored"
	// AskRetrieve: the verdict is a pass without rules. The server sends the same
	// after a timeout or an error of a check, so retrieve has to confirm it.
	AskRetrieve Outcome = "ask-retrieve"
	// Unchanged: the stored verdict has the same or a higher rank.
	Unchanged Outcome = "unchanged"
	// OldNode: the verdict is for the node of an earlier start.
	OldNode Outcome = "old-node"
	// OtherObject: the object was replaced by a later one of the same name.
	OtherObject Outcome = "other-object"
)

// Input has everything that a decision depends on.
type Input struct {
	// Pod is the current ChangePod.
	Pod *v1alpha1.ChangePod
	// Received is the received verdict.
	Received events.ChangePodVerdict
	// Asked means that retrieve was called for a pass without rules, Confirmed
	// that it returned a pass.
	Asked, Confirmed bool
	// Now is the time of storing the verdict.
	Now time.Time
}

// Decision is an outcome with the lists to store. For outcomes other than Store the
// lists are unchanged.
type Decision struct {
	Outcome    Outcome
	Verdicts   []v1alpha1.StageVerdict
	PodResults []v1alpha1.PodSummary
}

// Decide returns the action for a verdict.
//
// A verdict replaces only one of a lower rank (see rank), so the order and the
// number of deliveries do not matter: a late fail replaces a pass, and only a person
// can overrule a fail.
func Decide(in Input) Decision {
	status := in.Pod.Status
	unchanged := Decision{Verdicts: status.Verdicts, PodResults: status.PodResults}
	received := in.Received
	switch {
	case received.UID != in.Pod.UID:
		unchanged.Outcome = OtherObject
		return unchanged
	case status.ChangePodID == "" || received.NodeID != status.ChangePodID:
		unchanged.Outcome = OldNode
		return unchanged
	}

	next, outcome := compare(status.VerdictOf(received.Stage), v1alpha1.StageVerdict{
		Stage:    received.Stage,
		Verdict:  received.Verdict,
		Unjudged: received.Unjudged,
		Message:  received.Message,
		NodeID:   received.NodeID,
		Time:     metav1.NewMicroTime(in.Now),
	}, in.Asked, in.Confirmed)
	if outcome == AskRetrieve {
		unchanged.Outcome = AskRetrieve
		return unchanged
	}
	results, changed := mergeResults(in.Pod, received)
	decision := Decision{Outcome: Unchanged, Verdicts: status.Verdicts, PodResults: results}
	if outcome == Store {
		decision.Verdicts = withVerdict(status.Verdicts, next)
		changed = true
	}
	if changed {
		decision.Outcome = Store
	}
	return decision
}

// compare compares the received verdict of a stage with the stored one. It returns
// the verdict to store and the outcome.
func compare(old *v1alpha1.StageVerdict, received v1alpha1.StageVerdict, asked, confirmed bool) (v1alpha1.StageVerdict, Outcome) {
	received.Unjudged = received.Unjudged && v1alpha1.ParseVerdict(received.Verdict) == v1alpha1.OutcomePass
	if received.Unjudged && !asked && rankOf(old) < rankUnjudged {
		return received, AskRetrieve
	}
	received.Unjudged = received.Unjudged && !confirmed
	if rankOf(&received) > rankOf(old) {
		return received, Store
	}
	return received, Unchanged
}

// rank is the order of verdicts of a stage.
type rank int

const (
	rankMissing rank = iota
	// rankNoVerdict is a value that is neither pass nor fail.
	rankNoVerdict
	// rankUnjudged is an unconfirmed pass without rules.
	rankUnjudged
	rankPass
	rankFail
)

func rankOf(v *v1alpha1.StageVerdict) rank {
	if v == nil {
		return rankMissing
	}
	if v.Unjudged {
		return rankUnjudged
	}
	return parseRank(v.Verdict)
}

func parseRank(verdict string) rank {
	switch v1alpha1.ParseVerdict(verdict) {
	case v1alpha1.OutcomeFail:
		return rankFail
	case v1alpha1.OutcomePass:
		return rankPass
	default:
		return rankNoVerdict
	}
}

// withVerdict returns a copy of the list with verdict v for its stage.
func withVerdict(verdicts []v1alpha1.StageVerdict, v v1alpha1.StageVerdict) []v1alpha1.StageVerdict {
	out := slices.DeleteFunc(slices.Clone(verdicts), func(old v1alpha1.StageVerdict) bool { return old.Stage == v.Stage })
	return append(out, v)
}
