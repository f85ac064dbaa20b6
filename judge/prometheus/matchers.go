package prometheus

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Matcher is one condition on a label.
type Matcher struct {
	Label, Op, Value string
	pattern          *regexp.Regexp
}

// Matches reports whether the value of the label fulfils the condition.
func (m Matcher) Matches(labels map[string]string) bool {
	v := labels[m.Label]
	switch m.Op {
	case "=":
		return v == m.Value
	case "!=":
		return v != m.Value
	case "=~":
		return m.pattern.MatchString(v)
	default:
		return !m.pattern.MatchString(v)
	}
}

// String returns the matcher in PromQL.
func (m Matcher) String() string { return m.Label + m.Op + strconv.Quote(m.Value) }

// Matchers is the text between the braces of a selector, parsed.
type Matchers []Matcher

// Match reports whether all conditions are fulfilled.
func (ms Matchers) Match(labels map[string]string) bool {
	for _, m := range ms {
		if !m.Matches(labels) {
			return false
		}
	}
	return true
}

// String returns the matchers in PromQL, without braces.
func (ms Matchers) String() string {
	parts := make([]string, len(ms))
	for i, m := range ms {
		parts[i] = m.String()
	}
	return strings.Join(parts, ",")
}

var matcherPattern = regexp.MustCompile(`^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `)\s*(,|$)`)

// ParseMatchers parses the text between the braces of a selector, with or without the
// braces.
func ParseMatchers(text string) (Matchers, error) {
	rest := strings.TrimSpace(text)
	if strings.HasPrefix(rest, "{") && strings.HasSuffix(rest, "}") {
		rest = rest[1 : len(rest)-1]
	}
	var out Matchers
	for strings.TrimSpace(rest) != "" {
		groups := matcherPattern.FindStringSubmatch(rest)
		if groups == nil {
			return nil, fmt.Errorf("matcher %q: want label=\"value\" conditions separated by commas, not %q", text, strings.TrimSpace(rest))
		}
		value, err := unquote(groups[3])
		if err != nil {
			return nil, fmt.Errorf("matcher %q: value %s: %w", text, groups[3], err)
		}
		m := Matcher{Label: groups[1], Op: groups[2], Value: value}
		if strings.HasSuffix(m.Op, "~") {
			if m.pattern, err = regexp.Compile("^(?s:" + value + ")$"); err != nil {
				return nil, fmt.Errorf("matcher %q: %w", text, err)
			}
		}
		out = append(out, m)
		rest = rest[len(groups[0]):]
	}
	return out, nil
}

func unquote(quoted string) (string, error) {
	if quoted[0] == '\'' {
		inner := strings.ReplaceAll(quoted[1:len(quoted)-1], `\'`, `'`)
		quoted = `"` + strings.ReplaceAll(inner, `"`, `\"`) + `"`
	}
	return strconv.Unquote(quoted)
}

// Selector is a plain selector: a name and matchers.
type Selector struct {
	Name     string
	Matchers Matchers
}

var selectorPattern = regexp.MustCompile(`^\s*([a-zA-Z_:][a-zA-Z0-9_:]*)?\s*(\{.*\})?\s*$`)

// ParseSelector parses an expression that is a plain selector. It returns false for any
// other expression.
func ParseSelector(expression string) (Selector, bool) {
	groups := selectorPattern.FindStringSubmatch(expression)
	if groups == nil || groups[1] == "" && groups[2] == "" {
		return Selector{}, false
	}
	matchers, err := ParseMatchers(groups[2])
	if err != nil {
		return Selector{}, false
	}
	return Selector{Name: groups[1], Matchers: matchers}, true
}

// Union returns a matcher that matches what a or b matches, if both have the same
// conditions except for the values of one label, with = or =~.
func Union(a, b Matchers) (Matchers, bool) {
	if len(a) != len(b) {
		return nil, false
	}
	out := append(Matchers{}, a...)
	differ := -1
	for i := range a {
		if a[i].Label != b[i].Label {
			return nil, false
		}
		if a[i].Op == b[i].Op && a[i].Value == b[i].Value {
			continue
		}
		if differ >= 0 || strings.HasPrefix(a[i].Op, "!") || strings.HasPrefix(b[i].Op, "!") {
			return nil, false
		}
		differ = i
	}
	if differ < 0 {
		return out, true
	}
	value := alternative(a[differ]) + "|" + alternative(b[differ])
	pattern, err := regexp.Compile("^(?s:" + value + ")$")
	if err != nil {
		return nil, false
	}
	out[differ] = Matcher{Label: a[differ].Label, Op: "=~", Value: value, pattern: pattern}
	return out, true
}

// OrEmpty returns the condition extended so that series without the label fulfil it, too. A
// negative condition stays as it is.
func (m Matcher) OrEmpty() Matcher {
	if m.Matches(nil) || strings.HasPrefix(m.Op, "!") {
		return m
	}
	value := "(?:" + alternative(m) + ")?"
	pattern, err := regexp.Compile("^(?s:" + value + ")$")
	if err != nil {
		return m
	}
	return Matcher{Label: m.Label, Op: "=~", Value: value, pattern: pattern}
}

func alternative(m Matcher) string {
	if m.Op == "=" {
		return regexp.QuoteMeta(m.Value)
	}
	return m.Value
}
