package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// maxResults is how many results the inbox of a ChangeWorkload can hold.
const maxResults = 100

// boundedResults keeps of each summary what a judge says: pod, UID, verdict
// and message, the message cut. Whoever reads the event finds the rest on the
// ChangePod. A judge cannot set Source, by which a person's word is told.
func boundedResults(results []v1alpha1.PodSummary, limit int) []v1alpha1.PodSummary {
	var out []v1alpha1.PodSummary
	for _, r := range results {
		out = append(out, v1alpha1.PodSummary{
			Pod:     r.Pod,
			UID:     r.UID,
			Verdict: r.Verdict,
			Message: text.Truncate(r.Message, limit),
		})
	}
	return out
}

// agrees says that a result counts as the verdict of the stage does.
func agrees(r v1alpha1.PodSummary, stage string) bool {
	return v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.ParseVerdict(stage)
}

// essential returns the results that do not agree with the verdict of the
// stage, and of those that do the first: pods that are not named are meant by
// the stage, but a fail that names nobody is meant for all.
func essential(results []v1alpha1.PodSummary, stage string) []v1alpha1.PodSummary {
	found := false
	return slices.DeleteFunc(slices.Clone(results), func(r v1alpha1.PodSummary) bool {
		again := found && agrees(r, stage)
		found = found || agrees(r, stage)
		return again
	})
}

// hashResults returns 16 hexadecimal characters for what results say beyond
// the verdict of the stage, whatever their order and messages, and nothing
// where they say no more. It is the same for the essential ones alone.
func hashResults(results []v1alpha1.PodSummary, stage string) string {
	var said []string
	for _, r := range results {
		if !agrees(r, stage) {
			said = append(said, fmt.Sprintf("%q %q", r.Pod, r.Verdict))
		}
	}
	if len(said) == 0 {
		return ""
	}
	if len(said) < len(results) {
		said = append(said, "others agree")
	}
	slices.Sort(said)
	return hash(strings.Join(said, "\n"))
}

// segment returns a word that came from outside as a part of an id: as it is
// where it is plain, and as a hash, marked by a tilde, where it is not.
func segment(word string) string {
	if plain(word) {
		return word
	}
	return "~" + hash(word)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// checkVerdict checks the fields that both forms of a verdict have.
func checkVerdict(c *checker, v ExternalVerdict) {
	c.required("bizExecOrderId", v.BizExecOrderID, maxOrderID)
	c.required("nodeId", v.NodeID, maxNodeID)
	c.stage(v.Stage)
	c.optional("verdict", v.Verdict, maxWord)
	c.optional("message", v.Message, MaxText)
	if len(v.PodResults) > maxResults {
		c.invalid("podResults", len(v.PodResults), fmt.Sprintf("at most %d", maxResults))
	}
	seen := make(map[string]bool, len(v.PodResults))
	for i, r := range v.PodResults {
		at := fmt.Sprintf("podResults[%d].", i)
		c.name(at+"pod", r.Pod)
		c.optional(at+"uid", string(r.UID), maxUID)
		c.optional(at+"verdict", r.Verdict, maxWord)
		c.optional(at+"message", r.Message, MaxText)
		if seen[r.Pod] {
			c.invalid(at+"pod", r.Pod, "must be there only once")
		}
		seen[r.Pod] = true
	}
}
