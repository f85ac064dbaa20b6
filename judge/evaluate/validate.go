package evaluate

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// Validate validates a defaulted check by the rules of its CRD, for files that no API
// server has validated.
func Validate(check v1alpha1.MetricCheckSpec) error {
	for _, d := range []struct {
		field            string
		value, low, high time.Duration
	}{
		{"analysisDuration", check.AnalysisDuration.Duration, time.Minute, 24 * time.Hour},
		{"warmUp", check.WarmUp.Duration, 0, check.AnalysisDuration.Duration - 1},
	} {
		if d.value < d.low || d.value > d.high {
			return fmt.Errorf("spec.%s is %s, want %s to %s", d.field, d.value, d.low, d.high)
		}
	}
	if p := check.Probation; p != nil && (p.Duration < time.Minute || p.Duration > 72*time.Hour) {
		return fmt.Errorf("spec.probation is %s, want 1m to 72h", p.Duration)
	}
	if _, err := metav1.LabelSelectorAsSelector(check.WorkloadSelector); err != nil {
		return fmt.Errorf("spec.workloadSelector: %w", err)
	}
	if rate, err := percent(check.MaxFalsePositiveRate); err != nil || rate <= 0 || rate > 0.2 {
		return fmt.Errorf("spec.maxFalsePositiveRate is %q, want above 0%%, at most 20%%", check.MaxFalsePositiveRate)
	}
	if err := oneOf("insufficientDataPolicy", check.InsufficientDataPolicy, v1alpha1.InsufficientDataHold, v1alpha1.InsufficientDataPass, v1alpha1.InsufficientDataFail); err != nil {
		return err
	}
	if err := oneOf("defaultMetrics", check.DefaultMetrics, v1alpha1.Discover, v1alpha1.DiscoverNone); err != nil {
		return err
	}
	if err := oneOf("callers", check.Callers, v1alpha1.Discover, v1alpha1.DiscoverNone); err != nil {
		return err
	}
	if check.DefaultMetrics == v1alpha1.DiscoverNone && len(check.Metrics) == 0 {
		return fmt.Errorf("spec.metrics must not be empty if defaultMetrics is None")
	}
	names := map[string]bool{}
	for i, m := range check.Metrics {
		if err := validateMetric(m); err != nil {
			return fmt.Errorf("spec.metrics[%d]%w", i, err)
		}
		if names[m.Name] {
			return fmt.Errorf("spec.metrics[%d].name %q is used twice", i, m.Name)
		}
		names[m.Name] = true
	}
	return nil
}

func oneOf[T ~string](field string, value T, allowed ...T) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return fmt.Errorf("spec.%s is %q, want one of %v", field, value, allowed)
}

func validateMetric(m v1alpha1.Metric) error {
	if m.Name == "" {
		return fmt.Errorf(".name is required")
	}
	switch m.Kind {
	case v1alpha1.KindRatio, v1alpha1.KindLatency, v1alpha1.KindGauge, v1alpha1.KindCounter:
	default:
		return fmt.Errorf(".kind is %q, want Ratio, Latency, Gauge or Counter", m.Kind)
	}
	if (m.Kind == v1alpha1.KindRatio) != (m.Bad != "") {
		return fmt.Errorf(".bad is required for kind Ratio and allowed only there")
	}
	if m.CausedByCallers && m.Kind != v1alpha1.KindRatio {
		return fmt.Errorf(".causedByCallers is allowed only for kind Ratio")
	}
	if !strings.Contains(m.Query, "{{pods}}") || m.Bad != "" && !strings.Contains(m.Bad, "{{pods}}") {
		return fmt.Errorf(".query and .bad must contain {{pods}} between the braces of their selectors")
	}
	switch m.Direction {
	case v1alpha1.DirectionHigher, v1alpha1.DirectionLower, v1alpha1.DirectionEither:
	default:
		return fmt.Errorf(".direction is %q, want Higher, Lower or Either", m.Direction)
	}
	if m.Weight != v1alpha1.WeightAlone && m.Weight != v1alpha1.WeightWithOthers {
		return fmt.Errorf(".weight is %q, want Alone or WithOthers", m.Weight)
	}
	if m.MinimumData != nil && *m.MinimumData < 1 {
		return fmt.Errorf(".minimumData is %d, want at least 1", *m.MinimumData)
	}
	if _, _, err := change(m.SmallestChange); err != nil {
		return fmt.Errorf(".%w", err)
	}
	return nil
}
