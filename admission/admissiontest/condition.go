package admissiontest

import (
	"os"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// callLimit is what one expression may cost in the API server.
const callLimit = 1_000_000

// Matches evaluates all conditions of a webhook. An error is a failure: it would
// refuse a request, or let it past, depending on failurePolicy.
func Matches(t *testing.T, conditions []admissionregistrationv1.MatchCondition, vars map[string]any) bool {
	t.Helper()
	matches := true
	for _, condition := range conditions {
		value, details, err := program(t, condition.Expression).Eval(vars)
		if err != nil {
			t.Fatalf("%s: %v", condition.Name, err)
		}
		if cost := details.ActualCost(); cost == nil || *cost > callLimit/1000 {
			t.Errorf("%s costs %v, which is not cheap", condition.Name, cost)
		}
		matches = matches && value == types.True
	}
	return matches
}

// program compiles as the API server of Kubernetes 1.30 does for expressions
// that its predecessor has to understand too.
func program(t *testing.T, expression string) cel.Program {
	t.Helper()
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()),
		cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
	)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("is a %v, not a bool", ast.OutputType())
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(callLimit))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Manifests reads the documents of a file, all of one type.
func Manifests[T any](t *testing.T, path string) []T {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for _, doc := range strings.Split(string(raw), "\n---\n") {
		var one T
		if err := yaml.Unmarshal([]byte(doc), &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}
