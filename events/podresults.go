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

// maxResults is the maximum number of results of a verdict in an inbox.
const maxResults = 100

// truncatedResults keeps the fields that the server may set: pod, UID, verdict and
// the truncated message. The ChangePod has the others. It must not set
// Source, with which Breakwater marks the verdicts of the server.
func truncatedResults(results []v1alpha1.PodSummary, limit int) []v1alpha1.PodSummary {
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

// agrees reports whether a result counts the same as the verdict of the stage.
func agrees(r v1alpha1.PodSummary, stage string) bool {
	return v1alpha1.ParseVerdict(r.Verdict) == v1alpha1.ParseVerdict(stage)
}

// withoutRedundant drops the results that agree with the verdict of the stage,
// except the first. The verdict of the stage applies to pods without a result,
// but a fail without any failed pod would apply to all pods.
func withoutRedundant(results []v1alpha1.PodSummary, stage string) []v1alpha1.PodSummary {
	found := false
	return slices.DeleteFunc(slices.Clone(results), func(r v1alpha1.PodSummary) bool {
		redundant := found && agrees(r, stage)
		found = found || agrees(r, stage)
		return redundant
	})
}

// failsOnly returns the results that agree with a fail of the stage: pods without a result fail as well, so no failed pod
// passes. It returns all results if the stage has another verdict.
func failsOnly(results []v1alpha1.PodSummary, stage string) []v1alpha1.PodSummary {
	if v1alpha1.ParseVerdict(stage) != v1alpha1.OutcomeFail {
		return results
	}
	return slices.DeleteFunc(slices.Clone(results), func(r v1alpha1.PodSummary) bool { return !agrees(r, stage) })
}

// withFailsOnly returns a verdict on a batch with failsOnly of its results, and whether this dropped a result.
func withFailsOnly(d Data) (Data, bool) {
	v, isBatch := d.(ChangePodVerdict)
	if !isBatch {
		return d, false
	}
	before := len(v.PodResults)
	v.PodResults = failsOnly(v.PodResults, v.Verdict)
	return v, len(v.PodResults) < before
}

// hashResults returns a hash of 16 hexadecimal characters of the results that
// deviate from the verdict of the stage, or "" if none does. Order, messages and
// redundant results do not change it.
func hashResults(results []v1alpha1.PodSummary, stage string) string {
	var deviating []string
	for _, r := range results {
		if !agrees(r, stage) {
			deviating = append(deviating, fmt.Sprintf("%q %q", r.Pod, r.Verdict))
		}
	}
	if len(deviating) == 0 {
		return ""
	}
	if len(deviating) < len(results) {
		deviating = append(deviating, "others agree")
	}
	slices.Sort(deviating)
	return hash(strings.Join(deviating, "\n"))
}

// segment returns an external value as a part of an id: unchanged if it is
// idSafe, else as a hash with prefix "~".
func segment(value string) string {
	if idSafe(value) {
		return value
	}
	return "~" + hash(value)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}

// checkVerdict checks the fields that all verdicts have.
func checkVerdict(c *checker, v ExternalVerdict) {
	c.required("bizExecOrderId", v.BizExecOrderID, maxOrderID)
	c.required("nodeId", v.NodeID, maxNodeID)
	c.stage(v.Stage)
	c.optional("verdict", v.Verdict, maxShortText)
	c.optional("message", v.Message, MaxText)
	if len(v.PodResults) > maxResults {
		c.invalid("podResults", len(v.PodResults), fmt.Sprintf("at most %d", maxResults))
	}
	seen := make(map[string]bool, len(v.PodResults))
	for i, r := range v.PodResults {
		at := fmt.Sprintf("podResults[%d].", i)
		c.name(at+"pod", r.Pod)
		c.optional(at+"uid", string(r.UID), maxUID)
		c.optional(at+"verdict", r.Verdict, maxShortText)
		c.optional(at+"message", r.Message, MaxText)
		if seen[r.Pod] {
			c.invalid(at+"pod", r.Pod, "must be unique")
		}
		seen[r.Pod] = true
	}
}
