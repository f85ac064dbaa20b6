package evaluate

import (
	"testing"

	"github.com/google/cel-go/cel"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
)

// acceptsSelector reports whether the API server accepts a workloadSelector.
func acceptsSelector(t *testing.T) func(*metav1.LabelSelector) bool {
	t.Helper()
	rules := metricCheckSchema(t).Properties["spec"].Properties["workloadSelector"].XValidations
	env, err := cel.NewEnv(cel.Variable("self", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	return func(s *metav1.LabelSelector) bool {
		t.Helper()
		self, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			ast, issues := env.Compile(rule.Rule)
			if issues.Err() != nil {
				t.Fatal(issues.Err())
			}
			program, err := env.Program(ast)
			if err != nil {
				t.Fatal(err)
			}
			result, _, err := program.Eval(map[string]any{"self": self})
			if err != nil {
				t.Fatal(err)
			}
			if result.Value() != true {
				return false
			}
		}
		return true
	}
}

// It would select no workload, and nothing would say so.
func TestASelectorThatSelectsNothingIsRejected(t *testing.T) {
	accepts := acceptsSelector(t)
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "tier", Operator: metav1.LabelSelectorOpExists}, {Key: "app", Operator: operator, Values: values},
		}}
	}
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"an empty selector":               {&metav1.LabelSelector{}, true},
		"labels":                          {&metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, true},
		"In with values":                  {expression(metav1.LabelSelectorOpIn, "web", "shop"), true},
		"In without values":               {expression(metav1.LabelSelectorOpIn), false},
		"NotIn with a value":              {expression(metav1.LabelSelectorOpNotIn, "web"), true},
		"NotIn without values":            {expression(metav1.LabelSelectorOpNotIn), false},
		"Exists":                          {expression(metav1.LabelSelectorOpExists), true},
		"Exists with a value":             {expression(metav1.LabelSelectorOpExists, "web"), false},
		"DoesNotExist":                    {expression(metav1.LabelSelectorOpDoesNotExist), true},
		"an operator of another language": {expression("Equals", "web"), false},
	} {
		if got := accepts(tc.selector); got != tc.want {
			t.Errorf("%s: the API server accepts it: %t, want %t", name, got, tc.want)
		}
		if err := Validate(Defaulted(v1alpha1.MetricCheckSpec{WorkloadSelector: tc.selector})); (err == nil) != tc.want {
			t.Errorf("%s: a file with it: %v, want accepted: %t", name, err, tc.want)
		}
	}
}
