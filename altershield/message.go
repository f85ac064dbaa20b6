package altershield

import (
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// compose tells a person why: the failing rules that nobody ignored, in the
// server's order, each as `name: msg (url)`. The whole has at most 1024 bytes
// and valid UTF-8; when not all rules fit, it says how many are left out.
func compose(outcome v1alpha1.Outcome, rules []Rule) string {
	if outcome == v1alpha1.OutcomePass {
		return ""
	}
	var parts []string
	for _, r := range rules {
		if strings.EqualFold(r.Verdict, "FAIL") && !r.Ignored {
			parts = append(parts, describe(r))
		}
	}
	return join(parts, maxMessage)
}

func describe(r Rule) string {
	name := firstOf(r.Name, r.ControlKey, r.ExternalRuleID, "a rule")
	out := name + ": " + firstOf(r.Msg, "failed")
	if r.URL != "" {
		out += " (" + r.URL + ")"
	}
	return strings.ToValidUTF8(out, "\uFFFD")
}

// join puts as many parts as fit into limit bytes; the first is cut if need be.
func join(parts []string, limit int) string {
	out := ""
	for i, part := range parts {
		next := part
		if i > 0 {
			next = out + "; " + part
		}
		rest := ""
		if left := len(parts) - i - 1; left > 0 {
			rest = fmt.Sprintf("; and %d more", left)
		}
		if i == 0 {
			next = text.Truncate(next, limit-len(rest))
		}
		if len(next)+len(rest) > limit {
			// Room for this suffix was kept when the part before was taken.
			return out + fmt.Sprintf("; and %d more", len(parts)-i)
		}
		out = next
	}
	return out
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
