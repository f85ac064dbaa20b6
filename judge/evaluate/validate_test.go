package evaluate

import (
	"regexp"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/builder"
)

// metricCheckSchema returns the schema in the CRD of MetricChecks.
func metricCheckSchema(t *testing.T) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	documents := builder.Manifests[apiextensionsv1.CustomResourceDefinition](t, "../../config/core/104-crd-metricchecks.yaml")
	return documents[1].Spec.Versions[0].Schema.OpenAPIV3Schema // after the header of the file
}

func TestTheAPIServerAcceptsTheFalsePositiveRatesOfFiles(t *testing.T) {
	rule := metricCheckSchema(t).Properties["spec"].Properties["maxFalsePositiveRate"].XValidations[0].Rule
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

func TestEachDurationThatTheCRDAcceptsCanBeParsed(t *testing.T) {
	patterns := 0
	for _, r := range metricCheckSchema(t).Properties["spec"].XValidations {
		for _, match := range regexp.MustCompile(`\.matches\('(.+?)'\)`).FindAllStringSubmatch(r.Rule, -1) {
			patterns++
			for duration, want := range map[string]bool{
				"0": true, "0s": true, "5m": true, "1h30m": true, "1.5h2ms": true, "24h0m0s": true, "259200000ms": true, "10us10ns": true,
				"99999h99999h99999h99999h99999h9m": true, "999999999s999999999s999999999s9s": true, "1.99999999999999999999999999999h": true,
				"60000000000ns": true, "86400000000us": true, "999999999999999us999999999s99999h": true, "9999999999s": false, "9999999999999999us": false,
				"": false, "5": false, "5 m": false, "1d": false, "-5m": false, ".5m": false, "1..5m": false, "1.5.5m": false, "9999999999h": false, "9999999999999999999s": false,
			} {
				_, err := time.ParseDuration(duration)
				if got := regexp.MustCompile(match[1]).MatchString(duration); got != want || got && err != nil {
					t.Errorf("%s matches %q: %t, want %t; %v", match[1], duration, got, want, err)
				}
			}
		}
	}
	if patterns != 4 {
		t.Errorf("%d patterns", patterns)
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
