package generatedbudget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultLimitsOfTheCluster(t *testing.T) {
	for name, tc := range map[string]struct {
		data  map[string]string
		want  *Limits
		fails bool
	}{
		"nothing":               {nil, most("25%"), false},
		"only the example":      {map[string]string{"_example": "max-unavailable: 1"}, most("25%"), false},
		"a percentage":          {map[string]string{"max-unavailable": "10%"}, most("10%"), false},
		"a number":              {map[string]string{"max-unavailable": "1"}, most("1"), false},
		"a minimum":             {map[string]string{"min-available": "80%"}, least("80%"), false},
		"both":                  {map[string]string{"min-available": "80%", "max-unavailable": "1"}, nil, true},
		"a word":                {map[string]string{"max-unavailable": "few"}, nil, true},
		"more than 100 percent": {map[string]string{"max-unavailable": "120%"}, nil, true},
		"a number below 0":      {map[string]string{"min-available": "-1"}, nil, true},
		"an empty value":        {map[string]string{"max-unavailable": ""}, nil, true},
		"an unknown key":        {map[string]string{"maxUnavailable": "1"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseDefault(tc.data)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v, want error %v", err, tc.fails)
			}
			if tc.fails {
				return
			}
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
