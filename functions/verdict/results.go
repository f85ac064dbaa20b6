package verdict

import (
	"slices"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/events"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxDerived is how many pods of a failed batch get a result of their own
	// where the server named none. The whole object has to fit into 1.5 MiB;
	// the verdict of the stage means the rest of the batch all the same.
	maxDerived = 1000
	// messageBudget is how many bytes all their messages may have together.
	messageBudget = 128 << 10
)

// mergeResults returns podResults after what was said, and whether anything is
// new. Only pods of the batch count. A pod that was not named is meant by the
// verdict of the stage, which is written down only when that is a fail, so
// that the failed pods can be named with their reason; a pass or a no-verdict
// of the stage needs no entry a pod. A fail of the stage that would leave no
// pod failed fails them all: it must not be talked away by its own details.
//
// Before the change (PRE) no pod can have passed, so only fails are kept.
func mergeResults(pod *v1alpha1.ChangePod, said events.ChangePodVerdict) ([]v1alpha1.PodSummary, bool) {
	results := slices.Clone(pod.Status.PodResults)
	changed := false
	failed := false
	for _, info := range pod.Spec.PodInfos {
		named := namedResult(said, info)
		if named == nil || (said.Stage == v1alpha1.StagePre && rankOfWord(named.Verdict) != rankFail) {
			continue
		}
		failed = failed || rankOfWord(named.Verdict) == rankFail
		changed = put(&results, info, named.Verdict, named.Message) || changed
	}
	if rankOfWord(said.Verdict) != rankFail {
		return results, changed
	}
	message := text.Truncate(said.Message, messageBudget/max(1, min(len(pod.Spec.PodInfos), maxDerived)))
	derived := 0
	for _, info := range pod.Spec.PodInfos {
		if derived == maxDerived {
			break
		}
		if failed && namedResult(said, info) != nil {
			continue
		}
		derived++
		changed = put(&results, info, said.Verdict, message) || changed
	}
	return results, changed
}

// namedResult returns what was said of this very pod, or nil.
func namedResult(said events.ChangePodVerdict, info v1alpha1.PodSummary) *v1alpha1.PodSummary {
	for i, r := range said.PodResults {
		if r.Pod == info.Pod && (r.UID == "" || r.UID == info.UID) {
			return &said.PodResults[i]
		}
	}
	return nil
}

// put writes the word for a pod unless a person has spoken (a result without
// Source) or the server has said as much or more before.
func put(results *[]v1alpha1.PodSummary, info v1alpha1.PodSummary, word, message string) bool {
	info.Verdict, info.Message, info.Source = word, message, v1alpha1.SourceServer
	at := slices.IndexFunc(*results, func(r v1alpha1.PodSummary) bool { return r.Pod == info.Pod })
	if at < 0 {
		*results = append(*results, info)
		return true
	}
	old := (*results)[at]
	if old.Source != v1alpha1.SourceServer || rankOfWord(word) <= rankOfWord(old.Verdict) {
		return false
	}
	(*results)[at] = info
	return true
}
