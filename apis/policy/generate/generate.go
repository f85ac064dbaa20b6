// Package generate decides which budgets follow from the annotations of a
// workload and of its namespace. It is pure.
package generate

import (
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// Annotations of a workload, or of a namespace for all its workloads.
const (
	// PUB and PDB, with the value "true", ask for a PodUnavailableBudget and for
	// a PodDisruptionBudget. On a workload "false" overrules its namespace.
	PUB = "policy.kruise.io/generate-pub"
	PDB = "policy.kruise.io/generate-pdb"
	// These, after one of the two, say how many.
	maxUnavailable = "-maxUnavailable"
	minAvailable   = "-minAvailable"
)

// Default is what counts where neither annotations nor the strategy say a value.
var Default = intstr.FromString("25%")

// Limits is what a generated budget says; one of the two is set.
type Limits struct {
	MaxUnavailable, MinAvailable *intstr.IntOrString
}

// value is what an annotation has to look like.
var value = regexp.MustCompile(`^([0-9]{1,9}|(100|[0-9]{1,2})%)$`)

// Decide returns the limits of the budget of a kind (PUB or PDB), nil where none
// is asked for. What the workload says goes before what its namespace says; then
// comes the strategy's maxUnavailable, then Default. A value that is none is an
// error: what there is stays.
func Decide(kind string, workload, namespace map[string]string, strategy *intstr.IntOrString) (*Limits, error) {
	asked, ok := workload[kind]
	if !ok {
		asked = namespace[kind]
	}
	if asked != "true" {
		return nil, nil
	}
	for _, from := range []map[string]string{workload, namespace} {
		limits, err := said(kind, from)
		if limits != nil || err != nil {
			return limits, err
		}
	}
	if strategy != nil && *strategy != intstr.FromInt32(0) {
		return &Limits{MaxUnavailable: strategy}, nil
	}
	return &Limits{MaxUnavailable: &Default}, nil
}

// said reads the values of an object's annotations.
func said(kind string, annotations map[string]string) (*Limits, error) {
	most, hasMost := annotations[kind+maxUnavailable]
	least, hasLeast := annotations[kind+minAvailable]
	if hasMost && hasLeast {
		return nil, fmt.Errorf("annotations %s and %s exclude each other", kind+maxUnavailable, kind+minAvailable)
	}
	if !hasMost && !hasLeast {
		return nil, nil
	}
	key, text := kind+maxUnavailable, most
	if hasLeast {
		key, text = kind+minAvailable, least
	}
	if !value.MatchString(text) {
		return nil, fmt.Errorf("annotation %s is %q: write a number from 0, or a per cent from 0%% to 100%%", key, text)
	}
	parsed := intstr.Parse(text)
	if hasLeast {
		return &Limits{MinAvailable: &parsed}, nil
	}
	return &Limits{MaxUnavailable: &parsed}, nil
}
