package v1alpha1

import "testing"

func TestAReleaseIsARollbackIfARecordHasItsAttempt(t *testing.T) {
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
		"if Breakwater rolled back":                    {at("4", RollbackAnnotation, `{"attempt":4}`), true},
		"if a person rolled back a suspended workload": {at("4", BypassAnnotation, `{"kind":"rollback","attempt":4}`), true},
		"not if it is a repair":                        {at("4", BypassAnnotation, `{"kind":"repair","attempt":4}`), false},
		"not if the value has an earlier attempt":      {at("5", RollbackAnnotation, `{"attempt":4}`), false},
		"not if the value is malformed":                {at("4", RollbackAnnotation, `{"attempt":"4"}`), false},
		"not without the annotation":                   {at("4"), false},
		"not if the release is unknown":                {map[string]string{RollbackAnnotation: `{"attempt":0}`}, false},
		"if the bypass has an earlier attempt":         {at("4", RollbackAnnotation, `{"attempt":4}`, BypassAnnotation, `{"kind":"repair","attempt":3}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsRollback(tc.annotations); got != tc.want {
				t.Errorf("IsRollback = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestTheBypassOfAnEarlierSuspensionIsNotTheCurrentOne(t *testing.T) {
	frozen := map[string]string{SuspendLabel: "true"}
	for name, tc := range map[string]struct {
		labels map[string]string
		bypass string
		want   bool
	}{
		"of this suspension":                                 {frozen, `{"suspend":"true"}`, true},
		"of a suspension with another value":                 {frozen, `{"suspend":"1700000000"}`, false},
		"of an earlier suspension with this value":           {frozen, `{"suspend":"true","ended":true}`, false},
		"the workload is not suspended":                      {nil, `{"suspend":"true"}`, false},
		"the workload is not suspended, the value was empty": {nil, `{"suspend":""}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CurrentBypassOf(tc.labels, map[string]string{BypassAnnotation: tc.bypass}); (got != nil) != tc.want {
				t.Errorf("current: %v, want %t", got, tc.want)
			}
		})
	}
}
