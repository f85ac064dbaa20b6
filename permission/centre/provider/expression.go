package provider

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// costLimit bounds the CEL cost of one evaluation, to about some milliseconds.
const costLimit = 100_000

// requestEnv has the variables of a request, responseEnv those of a response.
var (
	requestEnv = sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(ext.Strings(), ext.Encoders(),
			cel.Variable("ip", cel.StringType), cel.Variable("ips", cel.ListType(cel.StringType)),
			cel.Variable("parameters", cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable("pod", cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable("key", cel.StringType), cel.Variable("kept", cel.MapType(cel.StringType, cel.DynType)))
	})
	responseEnv = sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(ext.Strings(),
			cel.Variable("status", cel.IntType), cel.Variable("body", cel.DynType),
			cel.Variable("headers", cel.MapType(cel.StringType, cel.StringType)))
	})
)

// expression is a compiled CEL expression.
type expression struct {
	text    string
	program cel.Program
}

// compile compiles an expression. Its type must be one of types, or any type if
// types is empty.
func compile(env func() (*cel.Env, error), text string, types ...*cel.Type) (*expression, error) {
	e, err := env()
	if err != nil {
		return nil, err
	}
	ast, issues := e.Compile(text)
	if issues.Err() != nil {
		return nil, fmt.Errorf("%q: %w", text, issues.Err())
	}
	fits := len(types) == 0 || ast.OutputType().IsExactType(cel.DynType)
	for _, t := range types {
		fits = fits || ast.OutputType().IsExactType(t)
	}
	if !fits {
		return nil, fmt.Errorf("%q has type %s; must be %s", text, ast.OutputType(), types[0])
	}
	program, err := e.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &expression{text: text, program: program}, nil
}

// value evaluates the expression to a JSON value.
func (e *expression) value(ctx context.Context, vars map[string]any) (any, error) {
	out, _, err := e.program.ContextEval(ctx, vars)
	if err != nil {
		// The CEL error may quote parameters or the response.
		return nil, fmt.Errorf("expression %s cannot be evaluated", e.text)
	}
	return toJSON(out)
}

// string evaluates the expression to a string.
func (e *expression) string(ctx context.Context, vars map[string]any) (string, error) {
	v, err := e.value(ctx, vars)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case nil, map[string]any, []any:
		return "", fmt.Errorf("expression %s is not a string, number or bool", e.text)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	default:
		return fmt.Sprint(v), nil
	}
}

// holds reports whether a condition is true. A missing condition, or one that
// cannot be evaluated, is false.
func (e *expression) holds(ctx context.Context, vars map[string]any) bool {
	if e == nil {
		return false
	}
	v, err := e.value(ctx, vars)
	b, ok := v.(bool)
	return err == nil && ok && b
}
