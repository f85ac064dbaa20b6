package generatedbudget

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"
)

type annotations = map[string]string

func most(s string) *Limits  { return &Limits{MaxUnavailable: new(intstr.Parse(s))} }
func least(s string) *Limits { return &Limits{MinAvailable: new(intstr.Parse(s))} }

func TestGeneratedLimits(t *testing.T) {
	on := annotations{PUBAnnotation: "true"}
	for _, tc := range []struct {
		name                          string
		workload, template, namespace annotations
		strategy                      string
		cluster                       *Limits
		want                          *Limits
		fails                         bool
	}{
		{name: "not asked for"},
		{name: "asked for", workload: on, want: most("25%")},
		{name: "asked for, the strategy says", workload: on, strategy: "2", want: most("2")},
		{name: "asked for, the strategy lets none be down", workload: on, strategy: "0", want: most("25%")},
		{name: "asked for, the strategy lets 0 % be down", workload: on, strategy: "0%", want: most("25%")},
		{name: "asked for, the strategy lets 00 % be down", workload: on, strategy: "00%", want: most("25%")},
		{name: "asked for, the cluster says", workload: on, cluster: least("80%"), want: least("80%")},
		{name: "the strategy goes before the cluster", workload: on, strategy: "2", cluster: least("80%"), want: most("2")},
		{name: "the strategy lets none be down, the cluster says", workload: on, strategy: "0", cluster: most("1"), want: most("1")},
		{name: "a strategy of per cents", workload: on, strategy: "30%", want: most("30%")},
		{name: "a strategy of per cents with leading zeros", workload: on, strategy: "005%", want: most("5%")},
		{name: "a strategy of 100 per cent with leading zeros", workload: on, strategy: "0100%", want: most("100%")},
		{name: "a number", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-maxUnavailable": "3"}, strategy: "2", want: most("3")},
		{name: "zero is a number", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-maxUnavailable": "0"}, want: most("0")},
		{name: "a per cent", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-minAvailable": "80%"}, want: least("80%")},
		{name: "a value alone asks for nothing", workload: annotations{PUBAnnotation + "-minAvailable": "80%"}},
		{name: "another word", workload: annotations{PUBAnnotation: "yes"}},
		{name: "the other kind", workload: annotations{PDBAnnotation: "true"}},
		{name: "by the namespace", namespace: on, want: most("25%")},
		{name: "by the namespace, with a value", namespace: annotations{PUBAnnotation: "true", PUBAnnotation + "-minAvailable": "2"}, want: least("2")},
		{name: "by the namespace, the workload says how many", namespace: annotations{PUBAnnotation: "true", PUBAnnotation + "-minAvailable": "2"},
			workload: annotations{PUBAnnotation + "-maxUnavailable": "1"}, want: most("1")},
		{name: "by the namespace, but not this one", namespace: on, workload: annotations{PUBAnnotation: "false"}},
		{name: "by the template", template: on, want: most("25%")},
		{name: "by the template, but not this one", template: on, workload: annotations{PUBAnnotation: "false"}},
		{name: "by the namespace, but not this template", namespace: on, template: annotations{PUBAnnotation: "false"}},
		{name: "by the workload, the template says how many", workload: on, template: annotations{PUBAnnotation: "false", PUBAnnotation + "-minAvailable": "1"},
			namespace: annotations{PUBAnnotation + "-maxUnavailable": "2"}, want: least("1")},
		{name: "both values", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-maxUnavailable": "1", PUBAnnotation + "-minAvailable": "1"}, fails: true},
		{name: "no value", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-maxUnavailable": "some"}, fails: true},
		{name: "too many per cent", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-maxUnavailable": "101%"}, fails: true},
		{name: "a negative number", workload: annotations{PUBAnnotation: "true", PUBAnnotation + "-minAvailable": "-1"}, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var strategy *intstr.IntOrString
			if tc.strategy != "" {
				strategy = new(intstr.Parse(tc.strategy))
			}
			cluster := tc.cluster
			if cluster == nil {
				cluster = most("25%")
			}
			got, err := Decide(PUBAnnotation, []annotations{tc.workload, tc.template, tc.namespace}, strategy, *cluster)
			if (err != nil) != tc.fails {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
