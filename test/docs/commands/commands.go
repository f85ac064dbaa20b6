package commands

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// NotRead are pages whose commands are not read: the first has commands of earlier versions, the
// second only names tests.
var NotRead = []string{"CHANGELOG.md", "docs/promises.md"}

// Command is a command of a page: a statement of the shell, which may have pipes and substitutions.
type Command struct {
	Page string
	Line int
	// Text is the command as on the page, with continued lines joined.
	Text string
	// Source is the command with its lines.
	Source string
	// Inline is whether it is a code span.
	Inline bool
	// Calls are the programs that the command calls, in order.
	Calls []Call
}

// Call is a call of a program.
type Call struct {
	// Args are the program and its arguments without quotes. Values of variables and the output of
	// commands are unknown: `$name` and `$(…)` are kept.
	Args []string
	// Stdin is the text of a here-document.
	Stdin string
}

func (c Command) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// placeholder is a word in angle brackets, which the shell would read as redirections.
var placeholder = regexp.MustCompile(`<([a-zA-Z][a-zA-Z -]*)>`)

// Of returns the commands of a page, and the first lines of its other blocks of code.
func Of(name, page string) (all []Command, other []string, err error) {
	for _, b := range blocks(page) {
		first, _, _ := strings.Cut(strings.TrimPrefix(b.text, prompt), "\n")
		if !beginsCommand(first) {
			other = append(other, first)
			continue
		}
		commands, err := b.commands(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", name, b.line, err)
		}
		all = append(all, commands...)
	}
	return all, other, nil
}

func (b block) commands(page string) ([]Command, error) {
	script := b.script()
	// Underscores keep the offsets.
	parsed := placeholder.ReplaceAllStringFunc(script, func(p string) string {
		return "_" + strings.ReplaceAll(p[1:len(p)-1], " ", "_") + "_"
	})
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(parsed), "")
	if err != nil {
		return nil, fmt.Errorf("parse %q: %w", script, err)
	}
	var all []Command
	for _, s := range file.Stmts {
		calls, err := callsOf(s)
		if err != nil {
			return nil, err
		}
		source := script[s.Pos().Offset():s.End().Offset()]
		text := strings.Join(strings.Fields(strings.ReplaceAll(source, "\\\n", " ")), " ")
		all = append(all, Command{Page: page, Line: b.line + int(s.Pos().Line()) - 1, Text: text, Source: source, Inline: b.inline, Calls: calls})
	}
	return all, nil
}

// callsOf returns the calls of a statement and of the statements in it.
func callsOf(stmt *syntax.Stmt) (all []Call, err error) {
	syntax.Walk(stmt, func(n syntax.Node) bool {
		s, ok := n.(*syntax.Stmt)
		if !ok {
			return true
		}
		var c Call
		for _, r := range s.Redirs {
			if r.Hdoc != nil {
				c.Stdin, err = literal(r.Hdoc, err)
			}
		}
		if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			for _, w := range call.Args {
				var arg string
				arg, err = literal(w, err)
				c.Args = append(c.Args, arg)
			}
			all = append(all, c)
		}
		return true
	})
	return all, err
}

// literal returns a word without quotes, or the earlier error.
func literal(w *syntax.Word, earlier error) (string, error) {
	if earlier != nil {
		return "", earlier
	}
	return expand.Literal(&expand.Config{
		Env: expand.FuncEnviron(func(name string) string { return "$" + name }),
		CmdSubst: func(w io.Writer, _ *syntax.CmdSubst) error {
			_, err := io.WriteString(w, "$(…)")
			return err
		},
	}, w)
}
