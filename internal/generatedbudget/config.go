package generatedbudget

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConfigName is the ConfigMap of the system namespace with the default limits of
// generated budgets.
const ConfigName = "config-protection-generate"

// Keys of the ConfigMap, of which at most one limit may be set. A
// ValidatingAdmissionPolicy (config/protection) denies invalid values.
const (
	maxUnavailableKey = "max-unavailable"
	minAvailableKey   = "min-available"
	exampleKey        = "_example"
)

// ParseDefault parses the ConfigMap; without a value the default is 25 %.
func ParseDefault(data map[string]string) (Limits, error) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key != maxUnavailableKey && key != minAvailableKey && key != exampleKey {
			return Limits{}, fmt.Errorf("ConfigMap %s: unknown key %s; write %s or %s", ConfigName, key, maxUnavailableKey, minAvailableKey)
		}
	}
	limits, err := parseLimits(data, "ConfigMap "+ConfigName+": ", maxUnavailableKey, minAvailableKey)
	if err != nil {
		return Limits{}, err
	}
	if limits == nil {
		quarter := intstr.FromString("25%")
		limits = &Limits{MaxUnavailable: &quarter}
	}
	return *limits, nil
}
