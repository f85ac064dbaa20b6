package provider

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
)

// costLimit bounds the evaluation of one expression: a few thousand steps are
// a millisecond.
const costLimit = 100_000

// Expressions are over a request's content, or over an answer.
var (
	requestEnv = sync.OnceValues(func() (*cel.Env, error) {
		return cel.NewEnv(ext.Strings(), ext.Encoders(),
			cel.Variable("ip", cel.StringType), cel.Variable("ips", cel.ListType(cel.StringType)),
			cel.Variable("parameters", cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable("pod", cel.MapType(cel.StringType, cel.StringType)),
			cel.Variable("key", cel.StringType), cel.Variable("kept", cel.MapType(cel.StringType, cel.DynType)))
	})
	answerEnv = sync.OnceValues(func() (*cel.Env, error) {
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

// compile compiles an expression; types are those it may have, any when none
// is given.
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
		return nil, fmt.Errorf("%q gives %s, but %s is needed", text, ast.OutputType(), types[0])
	}
	program, err := e.Program(ast, cel.CostLimit(costLimit), cel.InterruptCheckFrequency(100))
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	return &expression{text: text, program: program}, nil
}

// value evaluates to a value that JSON can hold.
func (e *expression) value(ctx context.Context, vars map[string]any) (any, error) {
	out, _, err := e.program.ContextEval(ctx, vars)
	if err != nil {
		// Its text may quote what it was over.
		return nil, fmt.Errorf("the expression %s has no value here", e.text)
	}
	return native(out)
}

// string evaluates to a text.
func (e *expression) string(ctx context.Context, vars map[string]any) (string, error) {
	v, err := e.value(ctx, vars)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case nil, map[string]any, []any:
		return "", fmt.Errorf("the expression %s is no text here", e.text)
	default:
		return strings.Trim(fmt.Sprint(v), `"`), nil
	}
}

// holds says whether a condition is true; none, or one that has no value, is not.
func (e *expression) holds(ctx context.Context, vars map[string]any) bool {
	if e == nil {
		return false
	}
	v, err := e.value(ctx, vars)
	b, ok := v.(bool)
	return err == nil && ok && b
}
