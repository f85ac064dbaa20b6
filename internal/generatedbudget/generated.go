// Package generatedbudget decides which budgets follow from the annotations of a
// workload and of its namespace. It is pure.
package generatedbudget

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations of a workload, or of a namespace for all its workloads.
const (
	// PUBAnnotation and PDBAnnotation, with the value "true", ask for a
	// PodUnavailableBudget and a PodDisruptionBudget. "false" on a workload
	// overrides its namespace.
	PUBAnnotation = "policy.kruise.io/generate-pub"
	PDBAnnotation = "policy.kruise.io/generate-pdb"
	// Suffixes of both annotations for the limit.
	maxUnavailableSuffix = "-maxUnavailable"
	minAvailableSuffix   = "-minAvailable"
)

// Limits are the limits of a generated budget; exactly one is set.
type Limits struct {
	MaxUnavailable, MinAvailable *intstr.IntOrString
}

// valuePattern matches a valid limit.
var valuePattern = regexp.MustCompile(`^([0-9]{1,9}|(100|[0-9]{1,2})%)$`)

// Decide decides the limits of the budget that an annotation (PUBAnnotation or PDBAnnotation)
// asks for; nil if no budget is requested. Sources are the annotations that apply to the workload, its
// own first and those of its namespace last: the first that has the annotation counts, and the first
// that has a limit. Without a limit the strategy's maxUnavailable counts if it is not 0, then the cluster's default. An
// invalid value is an error, and the existing budget stays.
func Decide(annotation string, sources []map[string]string, strategyMaxUnavailable *intstr.IntOrString, cluster Limits) (*Limits, error) {
	asks := slices.IndexFunc(sources, func(from map[string]string) bool { _, ok := from[annotation]; return ok })
	if asks < 0 || sources[asks][annotation] != "true" {
		return nil, nil
	}
	for _, from := range sources {
		limits, err := parseLimits(from, "annotation ", annotation+maxUnavailableSuffix, annotation+minAvailableSuffix)
		if limits != nil || err != nil {
			return limits, err
		}
	}
	if strategyMaxUnavailable != nil && !isZero(*strategyMaxUnavailable) {
		// Kubernetes accepts "005%", and the CRD of budgets does not.
		limit := *strategyMaxUnavailable
		limit.StrVal = strings.TrimLeft(limit.StrVal, "0")
		return &Limits{MaxUnavailable: &limit}, nil
	}
	return &cluster, nil
}

// isZero reports whether a number or a percentage is 0, such as "00%".
func isZero(v intstr.IntOrString) bool {
	rest := strings.TrimLeft(v.String(), "0")
	return rest == "" || rest == "%"
}

// parseLimits parses the two values, of which at most one may be set; nil for none.
func parseLimits(from map[string]string, prefix, maxKey, minKey string) (*Limits, error) {
	maximum, hasMaximum := from[maxKey]
	minimum, hasMinimum := from[minKey]
	if hasMaximum && hasMinimum {
		return nil, fmt.Errorf("%s%s and %s exclude each other", prefix, maxKey, minKey)
	}
	if !hasMaximum && !hasMinimum {
		return nil, nil
	}
	key, text := maxKey, maximum
	if hasMinimum {
		key, text = minKey, minimum
	}
	if !valuePattern.MatchString(text) {
		return nil, fmt.Errorf("%s%s is %q: write a number from 0, or a percentage from 0%% to 100%%", prefix, key, text)
	}
	parsed := intstr.Parse(text)
	if hasMinimum {
		return &Limits{MinAvailable: &parsed}, nil
	}
	return &Limits{MaxUnavailable: &parsed}, nil
}

// FilterAnnotations returns the annotations that Decide reads. The others, of which
// some contain the whole object, need not be cached.
func FilterAnnotations(all map[string]string) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if strings.HasPrefix(key, PUBAnnotation) || strings.HasPrefix(key, PDBAnnotation) {
			if kept == nil {
				kept = map[string]string{}
			}
			kept[key] = value
		}
	}
	return kept
}
