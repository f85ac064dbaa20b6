package admissiontest

import (
	"sync"
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

// environment is the CEL environment of Kubernetes 1.30, limited to what Kubernetes 1.29 supports.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(ext.StringsVersion(2)), ext.Sets(),
		cel.ASTValidators(cel.ValidateHomogeneousAggregateLiterals()),
		cel.Variable("request", cel.DynType), cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType),
	)
})

// programs are the compiled expressions: tests evaluate the conditions of a manifest hundreds of times.
var programs = struct {
	sync.Mutex
	of map[string]cel.Program
}{of: map[string]cel.Program{}}

// maxPrograms is more than the manifests have. A fuzz test evaluates ever new expressions.
const maxPrograms = 200

// program compiles an expression.
func program(t *testing.T, expression string) cel.Program {
	t.Helper()
	programs.Lock()
	defer programs.Unlock()
	if p, ok := programs.of[expression]; ok {
		return p
	}
	env, err := environment()
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(expression)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	if ast.OutputType() != cel.BoolType {
		t.Fatalf("expression %q has type %v, want bool", expression, ast.OutputType())
	}
	p, err := env.Program(ast, cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostLimit(callLimit))
	if err != nil {
		t.Fatal(err)
	}
	if len(programs.of) == maxPrograms {
		clear(programs.of)
	}
	programs.of[expression] = p
	return p
}
