package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
)

// template is a string with ${expression} placeholders.
type template struct {
	// parts are the literal parts; expressions[i] follows parts[i].
	parts       []string
	expressions []*expression
}

// parseTemplate parses a template. $${ stands for a literal ${.
func parseTemplate(env func() (*cel.Env, error), text string) (*template, error) {
	t := &template{}
	var plain strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if strings.HasSuffix(before, "$") && found {
			plain.WriteString(strings.TrimSuffix(before, "$") + "${")
			text = rest
			continue
		}
		plain.WriteString(before)
		if !found {
			t.parts = append(t.parts, plain.String())
			return t, nil
		}
		end := endOfExpression(rest)
		if end < 0 {
			return nil, fmt.Errorf("%q: ${ has no closing }", text)
		}
		e, err := compile(env, rest[:end])
		if err != nil {
			return nil, err
		}
		t.parts, t.expressions = append(t.parts, plain.String()), append(t.expressions, e)
		plain.Reset()
		text = rest[end+1:]
	}
}

// endOfExpression returns the index of the closing brace of an expression; it
// skips maps and strings.
func endOfExpression(text string) int {
	depth, quote := 0, rune(0)
	escaped := false
	for i, r := range text {
		switch {
		case escaped:
			escaped = false
		case quote != 0:
			escaped = r == '\\'
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '{':
			depth++
		case r == '}' && depth > 0:
			depth--
		case r == '}':
			return i
		}
	}
	return -1
}

// text renders the template; escape is applied to each value.
func (t *template) text(ctx context.Context, vars map[string]any, escape func(string) string) (string, error) {
	var b strings.Builder
	for i, part := range t.parts {
		b.WriteString(part)
		if i < len(t.expressions) {
			v, err := t.expressions[i].string(ctx, vars)
			if err != nil {
				return "", err
			}
			b.WriteString(escape(v))
		}
	}
	return b.String(), nil
}

// value renders the template; a template of one expression keeps its type.
func (t *template) value(ctx context.Context, vars map[string]any) (any, error) {
	if len(t.expressions) == 1 && t.parts[0] == "" && t.parts[1] == "" {
		return t.expressions[0].value(ctx, vars)
	}
	return t.text(ctx, vars, func(s string) string { return s })
}

// body renders a JSON value whose strings are templates.
type body func(ctx context.Context, vars map[string]any) (any, error)

// parseBody parses the templates of a JSON value.
func parseBody(env func() (*cel.Env, error), v any) (body, error) {
	switch v := v.(type) {
	case string:
		t, err := parseTemplate(env, v)
		if err != nil {
			return nil, err
		}
		return t.value, nil
	case []any:
		items := make([]body, len(v))
		for i, item := range v {
			var err error
			if items[i], err = parseBody(env, item); err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
		}
		return func(ctx context.Context, vars map[string]any) (any, error) {
			out := make([]any, len(items))
			for i, item := range items {
				var err error
				if out[i], err = item(ctx, vars); err != nil {
					return nil, err
				}
			}
			return out, nil
		}, nil
	case map[string]any:
		fields := map[string]body{}
		for name, field := range v {
			var err error
			if fields[name], err = parseBody(env, field); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		return func(ctx context.Context, vars map[string]any) (any, error) {
			out := map[string]any{}
			for name, field := range fields {
				var err error
				if out[name], err = field(ctx, vars); err != nil {
					return nil, err
				}
			}
			return out, nil
		}, nil
	default:
		return func(context.Context, map[string]any) (any, error) { return v, nil }, nil
	}
}
