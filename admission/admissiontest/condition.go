package admissiontest

import (
	"maps"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// callLimit is the CEL cost limit of one expression in the API server.
const callLimit = 1_000_000

// Matches evaluates the matchConditions of a webhook. An evaluation error fails the
// test: in the API server, failurePolicy would decide the request.
func Matches(t *testing.T, conditions []admissionregistrationv1.MatchCondition, vars map[string]any) bool {
	t.Helper()
	matches := true
	for _, condition := range conditions {
		value, details, err := program(t, condition.Expression).Eval(vars)
		if err != nil {
			t.Fatalf("%s: %v", condition.Name, err)
		}
		if cost := details.ActualCost(); cost == nil || *cost > callLimit/1000 {
			t.Errorf("condition %s costs %v, more than %d", condition.Name, cost, callLimit/1000)
		}
		matches = matches && value == types.True
	}
	return matches
}

// Validates evaluates the variables and the validations of a policy, whose matchConditions
// match. An evaluation error fails the test, as in Matches.
func Validates(t *testing.T, policy admissionregistrationv1.ValidatingAdmissionPolicySpec, vars map[string]any) bool {
	t.Helper()
	variables := map[string]any{}
	all := maps.Clone(vars)
	all["variables"] = variables
	for _, v := range policy.Variables {
		value, _, err := compile(t, v.Expression, nil).Eval(all)
		if err != nil {
			t.Fatalf("variable %s: %v", v.Name, err)
		}
		variables[v.Name] = value
	}
	valid := true
	for _, v := range policy.Validations {
		value, _, err := program(t, v.Expression).Eval(all)
		if err != nil {
			t.Fatalf("%s: %v", v.Expression, err)
		}
		valid = valid && value == types.True
	}
	return valid
}

// program compiles an expression that must be a condition.
func program(t *testing.T, expression string) cel.Program {
	t.Helper()
	return compile(t, expression, cel.BoolType)
}

// compile compiles an expression with the CEL environment of Kubernetes 1.30, limited
// to what Kubernetes 1.29 supports. The type nil permits every type.
func compile(t *testing.T, expression string, want *cel.Type) cel.Program {
	t.Helper()
	env, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()),
		cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
		cel.Variable("params", cel.DynType), cel.Variable("variables", cel.DynType),
	)
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	if want != nil && ast.OutputType() != want {
		t.Fatalf("expression %q has type %v, want %v", expression, ast.OutputType(), want)
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(callLimit))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
