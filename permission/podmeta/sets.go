package podmeta

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxSets is how many sets one pod may request.
const MaxSets = 16

// ParseSets parses the value of PermissionSetAnnotation. It ignores spaces and duplicates.
// An empty value requests no set and overrides the workload and the namespace.
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
		errs = append(errs, fmt.Errorf("%d permission sets: at most %d are allowed", len(sets), MaxSets))
	}
	return sets, errors.Join(errs...)
}
