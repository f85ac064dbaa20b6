package verdict

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
)

// Outcome is what is done with a verdict; it serves as a metric label.
type Outcome string

// The outcomes.
const (
	// Store: the verdict tells more than what is there.
	Store Outcome = "stored"
	// AskRetrieve: a pass came with no rule. The server calls a check that
	// timed out or threw back in the same way, so it is asked again.
	AskRetrieve Outcome = "ask-retrieve"
	// Unchanged: what is there says as much or more.
	Unchanged Outcome = "unchanged"
	// OldNode: the verdict is for a start that was repeated.
	OldNode Outcome = "old-node"
	// OtherObject: the ChangePod is a later one of the same name.
	OtherObject Outcome = "other-object"
)

// Input is all that a decision depends on.
type Input struct {
	// Pod is the ChangePod as it is now.
	Pod *v1alpha1.ChangePod
	// Said is the verdict that came.
	Said events.ChangePodVerdict
	// Asked says that retrieve was asked about a pass with no rule, Confirmed
	// that it said pass.
	Asked, Confirmed bool
	// Now is the time at which a verdict is stored.
	Now time.Time
}

// Decision is what has to be done. Verdicts and PodResults are the whole lists
// as they have to be after Store, and as they are after anything else.
type Decision struct {
	Outcome    Outcome
	Verdicts   []v1alpha1.StageVerdict
	PodResults []v1alpha1.PodSummary
}

// Decide says what becomes of a verdict.
//
// Words have ranks (see rank) and a word replaces only a lower one. So the
// order and the number of deliveries do not matter: a late fail wins over a
// pass, and nothing but a person wins over a fail.
func Decide(in Input) Decision {
	status := in.Pod.Status
	keep := Decision{Verdicts: status.Verdicts, PodResults: status.PodResults}
	said := in.Said
	switch {
	case said.UID != in.Pod.UID:
		keep.Outcome = OtherObject
		return keep
	case status.ChangePodID == "" || said.NodeID != status.ChangePodID:
		keep.Outcome = OldNode
		return keep
	}

	next, outcome := weigh(status.VerdictOf(said.Stage), v1alpha1.StageVerdict{
		Stage:    said.Stage,
		Verdict:  said.Verdict,
		Unjudged: said.Unjudged,
		Message:  said.Message,
		NodeID:   said.NodeID,
		Time:     metav1.NewMicroTime(in.Now),
	}, in.Asked, in.Confirmed)
	if outcome == AskRetrieve {
		keep.Outcome = AskRetrieve
		return keep
	}
	results, changed := mergeResults(in.Pod, said)
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

// weigh says whether a word replaces what is known of its stage, and as what.
func weigh(old *v1alpha1.StageVerdict, said v1alpha1.StageVerdict, asked, confirmed bool) (v1alpha1.StageVerdict, Outcome) {
	said.Unjudged = said.Unjudged && v1alpha1.ParseVerdict(said.Verdict) == v1alpha1.OutcomePass
	if said.Unjudged && !asked && rankOf(old) < rankUnjudged {
		return said, AskRetrieve
	}
	said.Unjudged = said.Unjudged && !confirmed
	if rankOf(&said) > rankOf(old) {
		return said, Store
	}
	return said, Unchanged
}

// rank orders what is known of a stage.
type rank int

const (
	rankNothing rank = iota
	// rankNone is a word that is no verdict.
	rankNone
	// rankUnjudged is a pass that nobody stands behind.
	rankUnjudged
	rankPass
	rankFail
)

func rankOf(v *v1alpha1.StageVerdict) rank {
	if v == nil {
		return rankNothing
	}
	if v.Unjudged {
		return rankUnjudged
	}
	return rankOfWord(v.Verdict)
}

func rankOfWord(word string) rank {
	switch v1alpha1.ParseVerdict(word) {
	case v1alpha1.OutcomeFail:
		return rankFail
	case v1alpha1.OutcomePass:
		return rankPass
	default:
		return rankNone
	}
}

// withVerdict returns a new list in which the stage's verdict is v.
func withVerdict(verdicts []v1alpha1.StageVerdict, v v1alpha1.StageVerdict) []v1alpha1.StageVerdict {
	out := slices.DeleteFunc(slices.Clone(verdicts), func(old v1alpha1.StageVerdict) bool { return old.Stage == v.Stage })
	return append(out, v)
}
