package altershield

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/text"
)

// compose returns the failed rules that are not ignored, in the server's order,
// each as `name: msg (url)`. The message has at most 1024 bytes of valid UTF-8
// and ends with the number of omitted rules, if any.
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
	name := cmp.Or(r.Name, r.ControlKey, r.ExternalRuleID, "a rule")
	out := name + ": " + cmp.Or(r.Msg, "failed")
	if r.URL != "" {
		out += " (" + r.URL + ")"
	}
	return strings.ToValidUTF8(out, "\uFFFD")
}

// join joins as many parts as fit into limit bytes; it truncates the first if
// necessary.
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
			// The previous part was added with space for this suffix.
			return out + fmt.Sprintf("; and %d more", len(parts)-i)
		}
		out = next
	}
	return out
}
