package commands

import (
	"regexp"
	"slices"
	"strings"
)

// prompt begins the line of a command in a block with output.
const prompt = "$ "

// programs are the words that begin a command. No other word does.
var programs = []string{
	"asciinema", "ask", "base64", "bash", "cd", "cosign", "curl", "date", "export", "git", "go", "head", "helm",
	"jq", "judge", "kind", "ko", "kubectl", "make", "mv", "openssl", "sha256sum", "tar", "uninstall.sh",
}

var (
	assignment = regexp.MustCompile(`^\w+=`)
	// A file of the repository that is run.
	script   = regexp.MustCompile(`^(\.\./|\./|bin/|hack/)\w`)
	function = regexp.MustCompile(`^\w+\(\)`)
	fence    = regexp.MustCompile("^\\s*```(\\w*)")
	// A code span may continue on the next line.
	span = regexp.MustCompile("`([^`\n]+(?:\n[^`\n]+)?)`")
)

// block is a part of a page without an empty line: a block of code, or the code span of a sentence.
type block struct {
	// line is the number of its first line.
	line   int
	text   string
	inline bool
}

// beginsCommand reports whether a line begins with a program, an assignment or a function.
func beginsCommand(line string) bool {
	first, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return isProgram(first) || assignment.MatchString(first) || function.MatchString(first)
}

func isProgram(word string) bool { return slices.Contains(programs, word) || script.MatchString(word) }

// blocks returns the blocks of code of a page, and its code spans that begin with a program.
func blocks(page string) []block {
	var found []block
	lines := strings.Split(page, "\n")
	code := make([]bool, len(lines)) // whether a line is code
	fenced, skipped, after := false, false, true
	for i, line := range lines {
		empty := strings.TrimSpace(line) == ""
		if m := fence.FindStringSubmatch(line); m != nil {
			fenced, after = !fenced, true
			skipped = fenced && !slices.Contains([]string{"", "bash", "console", "sh", "shell"}, m[1])
			lines[i], code[i] = "", true
			continue
		}
		code[i] = fenced || !empty && after && strings.HasPrefix(line, "    ")
		if skipped {
			lines[i] = ""
		} else if code[i] && !empty {
			if i == 0 || !code[i-1] || strings.TrimSpace(lines[i-1]) == "" {
				found = append(found, block{line: i + 1})
			}
			last := &found[len(found)-1]
			last.text += line + "\n"
		}
		after = empty || code[i] // a code block follows an empty line
	}
	for i := range found {
		found[i].text = dedent(found[i].text)
	}
	return append(found, spans(lines, code)...)
}

func spans(lines []string, code []bool) (found []block) {
	text := slices.Clone(lines)
	for i := range text {
		if code[i] {
			text[i] = ""
		}
	}
	page := strings.Join(text, "\n")
	for _, m := range span.FindAllStringSubmatchIndex(page, -1) {
		body := strings.Join(strings.Fields(page[m[2]:m[3]]), " ")
		if first, _, several := strings.Cut(body, " "); several && isProgram(first) {
			found = append(found, block{line: 1 + strings.Count(page[:m[0]], "\n"), text: body + "\n", inline: true})
		}
	}
	return found
}

// dedent removes the indentation that all lines have.
func dedent(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	common := len(lines[0])
	for _, line := range lines {
		common = min(common, len(line)-len(strings.TrimLeft(line, " ")))
	}
	for i := range lines {
		lines[i] = lines[i][common:]
	}
	return strings.Join(lines, "\n") + "\n"
}

// script returns the commands of a block, and keeps the numbers of lines: the output becomes empty lines.
func (b block) script() string {
	lines := strings.Split(b.text, "\n")
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, prompt) }) {
		return b.text
	}
	continued := false
	for i, line := range lines {
		command, ok := strings.CutPrefix(line, prompt)
		if !ok && !continued {
			command = ""
		}
		lines[i] = command
		continued = strings.HasSuffix(command, `\`)
	}
	return strings.Join(lines, "\n")
}
