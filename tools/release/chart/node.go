package chart

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// find returns the key and the value of a field of a mapping, or nil.
func find(mapping *yaml.Node, field string) (key, value *yaml.Node) {
	if mapping == nil {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == field {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// lookup returns the value at a path of fields, or nil.
func lookup(node *yaml.Node, path ...string) *yaml.Node {
	for _, field := range path {
		_, node = find(node, field)
	}
	return node
}

// scalar returns the text at a path of fields, or "".
func scalar(node *yaml.Node, path ...string) string {
	if found := lookup(node, path...); found != nil {
		return found.Value
	}
	return ""
}

// last returns the number of the last line of a node without block scalars, counted from 1.
func last(node *yaml.Node) int {
	line := node.Line
	for _, child := range node.Content {
		line = max(line, last(child))
	}
	return line
}

// head returns the index of the first line of the comment above the line with this index.
func head(lines []string, index int) int {
	for index > 0 && strings.HasPrefix(strings.TrimSpace(lines[index-1]), "#") {
		index--
	}
	return index
}

func indent(node *yaml.Node) string { return strings.Repeat(" ", node.Column-1) }

// align indents lines so that the first has the given indentation.
func align(lines []string, spaces int) []string {
	if len(lines) == 0 {
		return nil
	}
	old := len(lines[0]) - len(strings.TrimLeft(lines[0], " "))
	var out []string
	for _, line := range lines {
		if line = strings.TrimRight(line, " "); line != "" {
			line = strings.Repeat(" ", spaces) + line[min(old, len(line)-len(strings.TrimLeft(line, " "))):]
		}
		out = append(out, line)
	}
	return out
}
