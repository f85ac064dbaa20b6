package judge

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/evaluate"
)

// ParseCheck parses the YAML or JSON of a MetricCheck, with the rules of the CRD.
func ParseCheck(text []byte) (v1alpha1.MetricCheckSpec, error) {
	var check v1alpha1.MetricCheck
	if err := yaml.UnmarshalStrict(text, &check); err != nil {
		return check.Spec, fmt.Errorf("parse MetricCheck: %w", err)
	}
	if check.Kind != "MetricCheck" || check.APIVersion != v1alpha1.SchemeGroupVersion.String() {
		return check.Spec, fmt.Errorf("apiVersion and kind are %q and %q, want %q and %q",
			check.APIVersion, check.Kind, v1alpha1.SchemeGroupVersion, "MetricCheck")
	}
	spec := evaluate.Defaulted(check.Spec)
	return spec, evaluate.Validate(spec)
}

// ParseTime parses RFC 3339 or Unix seconds.
func ParseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	var seconds float64
	var rest string
	if n, _ := fmt.Sscanf(text, "%g%s", &seconds, &rest); n != 1 || seconds <= 0 || seconds > 1e11 {
		return time.Time{}, fmt.Errorf("time %q: want RFC 3339, for example 2026-01-31T12:00:00Z, or Unix seconds", text)
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
}
