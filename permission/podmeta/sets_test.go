package podmeta

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSets(t *testing.T) {
	var many []string
	for i := range MaxSets + 1 {
		many = append(many, fmt.Sprintf("s%d", i))
	}
	for name, tc := range map[string]struct {
		value string
		want  []string
		wrong string
	}{
		"one":          {value: "web", want: []string{"web"}},
		"two in order": {value: "web, audit", want: []string{"web", "audit"}},
		"duplicates":   {value: "web,web,,", want: []string{"web"}},
		"none":         {value: " "},
		"invalid name": {value: "web,Not_A_Name", want: []string{"web", "Not_A_Name"}, wrong: `"Not_A_Name"`},
		"too many":     {value: strings.Join(many, ","), want: many, wrong: "at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseSets(tc.value)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if (err != nil) != (tc.wrong != "") || (err != nil && !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("error %v, want %q", err, tc.wrong)
			}
		})
	}
}
