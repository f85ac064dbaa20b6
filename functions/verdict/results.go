package verdict

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxDerived is the maximum number of results that are derived from a failed
	// batch. The object must not exceed 1.5 MiB; the verdict of the stage applies to
	// the other pods nevertheless.
	maxDerived = 1000
	// maxMessageBytes is the maximum size of the messages of all derived results together.
	maxMessageBytes = 128 << 10
)

// mergeResults merges a verdict into podResults and reports whether they changed.
// Only pods of the batch count.
//
// The verdict of the stage applies to pods without a result of their own. If it is a fail,
// results are derived for these pods, to show which pods failed and why. A fail of the stage
// without any failed pod fails all pods, even those with a received pass. A result of a person
// stays. A pod cannot pass before stage POST, so in stage PRE only fails are stored.
func mergeResults(batch *v1alpha1.ChangePod, received events.ChangePodVerdict) ([]v1alpha1.PodSummary, bool) {
	results := slices.Clone(batch.Status.PodResults)
	changed := false
	failed := false
	for _, info := range batch.Spec.PodInfos {
		result := resultOf(received, info)
		if result == nil || (received.Stage == v1alpha1.StagePre && v1alpha1.ParseVerdict(result.Verdict) != v1alpha1.OutcomeFail) {
			continue
		}
		failed = failed || v1alpha1.ParseVerdict(result.Verdict) == v1alpha1.OutcomeFail
		changed = setResult(&results, info, result.Verdict, result.Message) || changed
	}
	if v1alpha1.ParseVerdict(received.Verdict) != v1alpha1.OutcomeFail {
		return results, changed
	}
	message := text.Truncate(received.Message, maxMessageBytes/max(1, min(len(batch.Spec.PodInfos), maxDerived)))
	derived := 0
	for _, info := range batch.Spec.PodInfos {
		if derived == maxDerived {
			break
		}
		if failed && resultOf(received, info) != nil {
			continue
		}
		derived++
		changed = setResult(&results, info, received.Verdict, message) || changed
	}
	return results, changed
}

// resultOf returns the received result of a pod, or nil.
func resultOf(received events.ChangePodVerdict, info v1alpha1.PodSummary) *v1alpha1.PodSummary {
	for i, r := range received.PodResults {
		if r.Pod == info.Pod && (r.UID == "" || r.UID == info.UID) {
			return &received.PodResults[i]
		}
	}
	return nil
}

// setResult sets the result of a pod and reports whether it did. It keeps a result of a person
// (without Source) and a result of the same or a higher precedence.
func setResult(results *[]v1alpha1.PodSummary, info v1alpha1.PodSummary, verdict, message string) bool {
	info.Verdict, info.Message, info.Source = verdict, message, v1alpha1.SourceServer
	i := slices.IndexFunc(*results, func(r v1alpha1.PodSummary) bool { return r.Pod == info.Pod })
	if i < 0 {
		*results = append(*results, info)
		return true
	}
	old := (*results)[i]
	if old.Source != v1alpha1.SourceServer || v1alpha1.PrecedenceOf(verdict, false) <= v1alpha1.PrecedenceOf(old.Verdict, false) {
		return false
	}
	(*results)[i] = info
	return true
}
