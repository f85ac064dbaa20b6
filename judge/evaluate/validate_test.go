package evaluate

import (
	"regexp"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

func TestTheAPIServerAcceptsTheFalsePositiveRatesOfFiles(t *testing.T) {
	documents := builder.Manifests[apiextensionsv1.CustomResourceDefinition](t, "../../config/core/104-crd-metricchecks.yaml")
	schema := documents[1].Spec.Versions[0].Schema.OpenAPIV3Schema // after the header of the file
	rule := schema.Properties["spec"].Properties["maxFalsePositiveRate"].XValidations[0].Rule
	match := regexp.MustCompile(`^self\.matches\('(.+)'\)$`).FindStringSubmatch(rule)
	if match == nil {
		t.Fatalf("rule %s has no pattern", rule)
	}
	pattern := regexp.MustCompile(match[1])
	for rate, want := range map[string]bool{
		"0%": false, "0.0%": false, "0.00%": false, "0.01%": true, "0.5%": true, "1%": true, "1.0%": true, "1.5%": true, "9%": true, "10%": true,
		"19.99%": true, "20%": true, "20.0%": true, "20.1%": false, "21%": false, "100%": false, "1": false, "-1%": false,
	} {
		if got := pattern.MatchString(rate); got != want {
			t.Errorf("the API server accepts %s: %t, want %t", rate, got, want)
		}
		if err := Validate(Defaulted(v1alpha1.MetricCheckSpec{MaxFalsePositiveRate: rate})); (err == nil) != want {
			t.Errorf("a file with %s: %v, want accepted: %t", rate, err, want)
		}
	}
}

func TestCausedByCallersIsAllowedOnlyForARatio(t *testing.T) {
	for kind, want := range map[v1alpha1.MetricKind]bool{v1alpha1.KindRatio: true, v1alpha1.KindCounter: false} {
		m := v1alpha1.Metric{Name: "wrong-requests", Kind: kind, Query: `app_replies_total{{{pods}}}`, CausedByCallers: true}
		if want {
			m.Bad = `app_replies_total{code=~"4..",{{pods}}}`
		}
		if err := Validate(Defaulted(v1alpha1.MetricCheckSpec{Metrics: []v1alpha1.Metric{m}})); (err == nil) != want {
			t.Errorf("%s: %v, want accepted: %t", kind, err, want)
		}
	}
}
