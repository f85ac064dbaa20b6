package v1alpha1

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"knative.dev/pkg/apis"
)

// maxLimitRules equals maxItems of the schema.
const maxLimitRules = 8

// Validate rejects flow controls that are valid for the schema but not useful.
// Every message names the field and what to write.
func (f *PodDeletionFlowControl) Validate(ctx context.Context) *apis.FieldError {
	if apis.IsInDelete(ctx) || apis.IsInStatusUpdate(ctx) {
		return nil
	}
	return f.Spec.Validate(ctx).ViaField("spec").Also(f.validateClosed())
}

// Validate implements apis.Validatable.
func (s *PodDeletionFlowControlSpec) Validate(context.Context) *apis.FieldError {
	return validateRules(s.LimitRules).Also(validateWhiteList(s.WhiteListSelector)).
		Also(validateSelector(s.NamespaceSelector, "namespaceSelector"))
}

func validateRules(rules []LimitRule) (all *apis.FieldError) {
	switch {
	case len(rules) == 0:
		return &apis.FieldError{Message: "no rule", Paths: []string{"limitRules"},
			Details: `write at least one, for example {interval: 10m, limit: 100}`}
	case len(rules) > maxLimitRules:
		return &apis.FieldError{Message: fmt.Sprintf("%d rules", len(rules)), Paths: []string{"limitRules"},
			Details: fmt.Sprintf("keep at most %d", maxLimitRules)}
	}
	first := map[time.Duration]int{}
	for i, rule := range rules {
		interval, err := rule.validate()
		all = all.Also(err.ViaFieldIndex("limitRules", i))
		if before, twice := first[interval]; twice && err == nil {
			all = all.Also((&apis.FieldError{
				Message: fmt.Sprintf("%s is the interval of limitRules[%d] too", rule.Interval, before), Paths: []string{"interval"},
				Details: "keep the one with the lower limit",
			}).ViaFieldIndex("limitRules", i))
		}
		first[interval] = i
	}
	return all
}

func (r LimitRule) validate() (time.Duration, *apis.FieldError) {
	interval, err := ParseInterval(r.Interval)
	switch {
	case err != nil:
		return 0, &apis.FieldError{Message: fmt.Sprintf("%q is not a duration", r.Interval), Paths: []string{"interval"},
			Details: "write a number and a unit, for example 30s, 10m, 1h30m or 1d"}
	case interval < MinInterval || interval > MaxInterval:
		return 0, &apis.FieldError{Message: fmt.Sprintf("%s is not between 10s and 30d", r.Interval), Paths: []string{"interval"},
			Details: "write an interval in that range"}
	case r.Limit < 0:
		return interval, &apis.FieldError{Message: fmt.Sprintf("%d is less than 0", r.Limit), Paths: []string{"limit"},
			Details: "write the maximum number of deletions per interval; 0 denies all"}
	default:
		return interval, nil
	}
}

func validateWhiteList(s *metav1.LabelSelector) *apis.FieldError {
	if s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0 {
		return &apis.FieldError{Message: "an empty selector selects every pod: nothing would be counted", Paths: []string{"whiteListSelector"},
			Details: "name labels or remove the field; for a trial, write shadow: true"}
	}
	return validateSelector(s, "whiteListSelector")
}

func validateSelector(s *metav1.LabelSelector, name string) (all *apis.FieldError) {
	if s == nil {
		return nil
	}
	for _, err := range metav1validation.ValidateLabelSelector(s, metav1validation.LabelSelectorValidationOptions{}, field.NewPath(name)) {
		all = all.Also(&apis.FieldError{Message: err.ErrorBody(), Paths: []string{err.Field}})
	}
	return all
}

func (f *PodDeletionFlowControl) validateClosed() *apis.FieldError {
	raw, ok := f.Annotations[ClosedAnnotation]
	if !ok {
		return nil
	}
	if _, err := time.Parse(time.RFC3339, raw); err != nil {
		return &apis.FieldError{Message: fmt.Sprintf("%q is not a time", raw), Paths: []string{"metadata.annotations[" + ClosedAnnotation + "]"},
			Details: "write the time from which deletions count again, as printed by $(date -u +%FT%TZ)"}
	}
	return nil
}

// ClosedTime returns when a person closed the breaker, or zero.
func (f *PodDeletionFlowControl) ClosedTime() time.Time {
	t, err := time.Parse(time.RFC3339, f.Annotations[ClosedAnnotation])
	if err != nil {
		return time.Time{}
	}
	return t
}
