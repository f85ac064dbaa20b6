package selfcheck

import "testing"

func TestAFindingThatIsMissingIsKeptWhileItsObjectHasAnUnconfirmedOne(t *testing.T) {
	finding := func(object, namespace, reason string) Finding {
		return Finding{Object: object, Namespace: namespace, Reason: reason}
	}
	labels := finding("w", "old", ReasonNamespaceNotLabeled)
	for name, tc := range map[string]struct {
		missing, unconfirmed Finding
		want                 bool
	}{
		"another reason of the object":           {finding("w", "", ReasonNoEndpoints), finding("w", "", ReasonGuardMissing), true},
		"the whole object, missing: a namespace": {labels, finding("w", "", ReasonGuardMissing), true},
		"a namespace, missing: the whole object": {finding("w", "", ReasonNoEndpoints), finding("w", "new", ReasonNamespaceNotLabeled), true},
		"another namespace":                      {labels, finding("w", "new", ReasonNamespaceNotLabeled), false},
		"another object":                         {labels, finding("v", "old", ReasonNamespaceNotLabeled), false},
		"the same namespace, for another reason": {labels, finding("w", "old", ReasonNoEndpoints), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Input{}).kept([]Finding{tc.missing}, []Finding{tc.unconfirmed}); (len(got) == 1) != tc.want {
				t.Errorf("kept %v, want %t", got, tc.want)
			}
		})
	}
}
