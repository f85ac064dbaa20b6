package v1alpha1

import "testing"

func TestAReleaseIsARollback(t *testing.T) {
	at := func(attempt string, more ...string) map[string]string {
		m := map[string]string{VersionKey: "a", AttemptAnnotation: attempt}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        bool
	}{
		"when Breakwater made it":                         {at("4", RollbackAnnotation, `{"attempt":4}`), true},
		"when a person went back while it was suspended":  {at("4", BypassAnnotation, `{"kind":"rollback","attempt":4}`), true},
		"not when it is a repair":                         {at("4", BypassAnnotation, `{"kind":"repair","attempt":4}`), false},
		"not when the record is of an attempt before":     {at("5", RollbackAnnotation, `{"attempt":4}`), false},
		"not when the record cannot be read":              {at("4", RollbackAnnotation, `{"attempt":"4"}`), false},
		"not when there is no record":                     {at("4"), false},
		"not when the release itself is not known":        {map[string]string{RollbackAnnotation: `{"attempt":0}`}, false},
		"when a bypass of an attempt before is there too": {at("4", RollbackAnnotation, `{"attempt":4}`, BypassAnnotation, `{"kind":"repair","attempt":3}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsRollback(tc.annotations); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
