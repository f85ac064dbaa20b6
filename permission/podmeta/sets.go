package podmeta

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxSets is how many sets one pod may ask for.
const MaxSets = 16

// ParseSets reads the value of SetAnnotation. Spaces and doublets mean nothing;
// an empty value asks for none, which turns off what a workload or a namespace
// asks for.
func ParseSets(value string) ([]string, error) {
	var sets []string
	var errs []error
	for name := range strings.SplitSeq(value, ",") {
		name = strings.TrimSpace(name)
		if name == "" || slices.Contains(sets, name) {
			continue
		}
		for _, why := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, fmt.Errorf("permission set %q: %s", name, why))
		}
		sets = append(sets, name)
	}
	if len(sets) > MaxSets {
		errs = append(errs, fmt.Errorf("%d permission sets: at most %d can be asked for", len(sets), MaxSets))
	}
	return sets, errors.Join(errs...)
}
