package verdict

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// Action is what a verdict leads to, and a metric label.
type Action string

// The actions.
const (
	// Store: the verdict has a higher precedence than the stored one.
	Store Action = "stored"
	// AskRetrieve: the verdict is a pass without rules. The server sends the same
	// for a check that runs, timed out or crashed, so retrieve has to confirm it.
	AskRetrieve Action = "ask-retrieve"
	// Unchanged: the stored verdict has the same or a higher precedence.
	Unchanged Action = "unchanged"
	// UnknownNode: the verdict is for a node that the status does not have, such as that of a
	// start whose answer was lost.
	UnknownNode Action = "unknown-node"
	// OtherObject: the object was replaced by a later one of the same name.
	OtherObject Action = "other-object"
	// NotAsked: the batch does not have the judge.
	NotAsked Action = "not-asked"
)

// Input has everything that a decision depends on.
type Input struct {
	// Batch is the current ChangePod.
	Batch *v1alpha1.ChangePod
	// Received is the received verdict.
	Received events.ChangePodVerdict
	// Retrieved is the answer to retrieve, for a pass without rules.
	Retrieved Retrieved
	// Now is the time of storing the verdict.
	Now time.Time
}

// Decision is an action with the lists to store. For actions other than Store the
// lists are unchanged.
type Decision struct {
	Action     Action
	Verdicts   []v1alpha1.StageVerdict
	PodResults []v1alpha1.PodSummary
}

// Decide returns the action for a verdict.
//
// A verdict replaces only one of lower precedence (see Precedence), so the order and the
// number of deliveries do not matter: a late fail replaces a pass, and only a person
// can overrule a fail.
func Decide(in Input) Decision {
	status := in.Batch.Status
	unchanged := Decision{Verdicts: status.Verdicts, PodResults: status.PodResults}
	received := in.Received
	switch {
	case received.UID != in.Batch.UID:
		unchanged.Action = OtherObject
		return unchanged
	case !status.HasNode(received.NodeID):
		unchanged.Action = UnknownNode
		return unchanged
	}

	next, action := compare(status.VerdictOf(received.Stage), v1alpha1.StageVerdict{
		Stage:           received.Stage,
		Verdict:         received.Verdict,
		UnconfirmedPass: received.WithoutRules,
		Message:         received.Message,
		NodeID:          received.NodeID,
		Time:            metav1.NewMicroTime(in.Now),
	}, in.Retrieved)
	if action == AskRetrieve {
		unchanged.Action = AskRetrieve
		return unchanged
	}
	results, changed := mergeResults(in.Batch, received)
	decision := Decision{Action: Unchanged, Verdicts: status.Verdicts, PodResults: results}
	if action == Store {
		decision.Verdicts = withVerdict(status.Verdicts, next)
		changed = true
	}
	if changed {
		decision.Action = Store
	}
	return decision
}

// Retrieved is the answer to retrieve.
type Retrieved string

// The answers to retrieve.
const (
	// NotRetrieved: retrieve was not called.
	NotRetrieved Retrieved = ""
	// RetrievedNothing: retrieve was not answered, or with an error.
	RetrievedNothing Retrieved = "nothing"
	// RetrievedPass: the check passed.
	RetrievedPass Retrieved = "pass"
	// RetrievedOther: the check runs, failed, timed out or crashed. Retrieve does not
	// distinguish these.
	RetrievedOther Retrieved = "other"
)

// compare compares the received verdict of a stage with the stored one. It returns
// the verdict to store and the action.
func compare(old *v1alpha1.StageVerdict, received v1alpha1.StageVerdict, answer Retrieved) (v1alpha1.StageVerdict, Action) {
	received.UnconfirmedPass = received.Unconfirmed() && answer != RetrievedPass
	switch {
	case received.UnconfirmedPass && answer == NotRetrieved && old.Precedence() <= v1alpha1.PrecedenceUnconfirmedPass:
		return received, AskRetrieve
	case received.Precedence() > old.Precedence():
		received.Contradicted = received.UnconfirmedPass && answer == RetrievedOther
		return received, Store
	case received.UnconfirmedPass && old.Unconfirmed() && !old.Contradicted && answer == RetrievedOther:
		contradicted := *old
		contradicted.Contradicted = true
		return contradicted, Store
	default:
		return received, Unchanged
	}
}

// withVerdict returns a copy of the list with verdict v for its stage.
func withVerdict(verdicts []v1alpha1.StageVerdict, v v1alpha1.StageVerdict) []v1alpha1.StageVerdict {
	out := slices.DeleteFunc(slices.Clone(verdicts), func(old v1alpha1.StageVerdict) bool { return old.Stage == v.Stage })
	return append(out, v)
}
