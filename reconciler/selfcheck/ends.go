package selfcheck

import (
	"slices"
	"strings"
)

// confirmed returns the findings of two consecutive checks: a single one may
// come from the renewal of a certificate or a stale cache.
func confirmed(before, now []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(now), func(f Finding) bool { return !slices.ContainsFunc(before, f.same) })
}

// without returns those of findings that are not in others.
func without(findings, others []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(findings), func(f Finding) bool { return slices.ContainsFunc(others, f.same) })
}

// same reports whether two findings are equal, ignoring messages. One guard may
// have findings for several namespaces.
func (f Finding) same(g Finding) bool {
	return f.Reason == g.Reason && f.Object == g.Object && f.Namespace == g.Namespace
}

// onePerReason returns one finding for each object and reason, whatever the namespaces.
func onePerReason(all []Finding) (unique []Finding) {
	for _, f := range all {
		f.Namespace = ""
		if !slices.ContainsFunc(unique, f.same) {
			unique = append(unique, f)
		}
	}
	return unique
}

// kept returns the findings of missing that may not have ended. missing has the findings that this
// check did not find again. A finding may not have ended if the check could not see whether it has, or
// if the check has an unconfirmed finding of the same object. An unconfirmed finding of another
// namespace does not count.
func (in Input) kept(missing, unconfirmed []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(missing), func(f Finding) bool {
		return !in.unknown(f) && !slices.ContainsFunc(unconfirmed, f.overlaps)
	})
}

// overlaps reports whether two findings are of the same object and not of two different namespaces.
func (f Finding) overlaps(g Finding) bool {
	return f.Object == g.Object && (f.Namespace == g.Namespace || f.Namespace == "" || g.Namespace == "")
}

// unknown reports whether the check could not see if the finding has ended.
func (in Input) unknown(f Finding) bool {
	return in.unread(f.Object) || f.Reason == ReasonCABundleStale && len(in.Served) == 0
}

// required reports whether an object is among those that were checked. It is false for a webhook
// that is not required now.
func (in Input) required(object string) bool {
	return object == in.Service ||
		slices.ContainsFunc(in.Entries, func(e Entry) bool { return e.Webhook == object }) ||
		slices.ContainsFunc(in.Policies, func(p Policy) bool { return p.Name == object }) ||
		slices.ContainsFunc(in.Schemas, func(s Schema) bool { return s.Name == object })
}

// ended returns the Event reason and message for the end of a finding. The findings that are left
// are all confirmed. It is silent as long as another namespace has the same finding.
func (in Input) ended(f Finding, left []Finding) (reason, message string, report bool) {
	var others []string
	for _, g := range left {
		if g.Object == f.Object && !slices.Contains(others, g.Reason) {
			others = append(others, g.Reason)
		}
	}
	message = f.Object + ": no longer " + f.Reason
	switch {
	case slices.Contains(others, f.Reason):
		return "", "", false
	case len(others) > 0:
		return ReasonFindingEnded, message + "; still " + strings.Join(others, ", "), true
	case !in.required(f.Object):
		return ReasonFindingEnded, message + "; it is not required now", true
	}
	return ReasonGuardEnforced, message, true
}
