// Package generatedbudget decides which budgets follow from the annotations of a
// workload and of its namespace. It is pure.
package generatedbudget

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations of a workload, or of a namespace for all its workloads.
const (
	// PUB and PDB, with the value "true", ask for a PodUnavailableBudget and for
	// a PodDisruptionBudget. On a workload "false" overrules its namespace.
	PUBAnnotation = "policy.kruise.io/generate-pub"
	PDBAnnotation = "policy.kruise.io/generate-pdb"
	// These, after one of the two, say how many.
	maxUnavailableSuffix = "-maxUnavailable"
	minAvailableSuffix   = "-minAvailable"
)

// Limits is what a generated budget says; one of the two is set.
type Limits struct {
	MaxUnavailable, MinAvailable *intstr.IntOrString
}

// value is what an annotation has to look like.
var valuePattern = regexp.MustCompile(`^([0-9]{1,9}|(100|[0-9]{1,2})%)$`)

// Decide returns the limits of the budget of a kind (PUB or PDB), nil where none
// is asked for. What the workload says goes before what its namespace says; then
// comes the strategy's maxUnavailable, then what the cluster says. A value that is
// none is an error: what there is stays.
func Decide(kind string, workload, namespace map[string]string, strategy *intstr.IntOrString, cluster Limits) (*Limits, error) {
	asked, ok := workload[kind]
	if !ok {
		asked = namespace[kind]
	}
	if asked != "true" {
		return nil, nil
	}
	for _, from := range []map[string]string{workload, namespace} {
		limits, err := parseLimits(from, "annotation ", kind+maxUnavailableSuffix, kind+minAvailableSuffix)
		if limits != nil || err != nil {
			return limits, err
		}
	}
	if strategy != nil && *strategy != intstr.FromInt32(0) {
		return &Limits{MaxUnavailable: strategy}, nil
	}
	return &cluster, nil
}

// read reads the two values, of which there may be one; nil for none.
func parseLimits(from map[string]string, what, mostKey, leastKey string) (*Limits, error) {
	most, hasMost := from[mostKey]
	least, hasLeast := from[leastKey]
	if hasMost && hasLeast {
		return nil, fmt.Errorf("%s%s and %s exclude each other", what, mostKey, leastKey)
	}
	if !hasMost && !hasLeast {
		return nil, nil
	}
	key, text := mostKey, most
	if hasLeast {
		key, text = leastKey, least
	}
	if !valuePattern.MatchString(text) {
		return nil, fmt.Errorf("%s%s is %q: write a number from 0, or a per cent from 0%% to 100%%", what, key, text)
	}
	parsed := intstr.Parse(text)
	if hasLeast {
		return &Limits{MinAvailable: &parsed}, nil
	}
	return &Limits{MaxUnavailable: &parsed}, nil
}

// Annotations returns those that mean something here; all others, of which some
// hold a copy of the whole object, need not be cached.
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
