package generatedbudget

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// ConfigName is the ConfigMap of the system namespace that says what counts
// where neither annotations nor a strategy say a value.
const ConfigName = "config-protection-generate"

// Its keys: at most one of them. A policy of the API server (config/protection)
// refuses what does not read.
const (
	maxUnavailableKey = "max-unavailable"
	minAvailableKey   = "min-available"
	exampleKey        = "_example"
)

// DefaultOf reads the ConfigMap.
func ParseDefault(data map[string]string) (Limits, error) {
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if key != maxUnavailableKey && key != minAvailableKey && key != exampleKey {
			return Limits{}, fmt.Errorf("ConfigMap %s: there is no key %s; write %s or %s", ConfigName, key, maxUnavailableKey, minAvailableKey)
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
