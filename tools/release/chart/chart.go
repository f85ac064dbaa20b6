package chart

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

// Manifest is a file of a part. Its images have digests.
type Manifest struct{ Name, Text string }

// Part is a part that one switch of the values installs.
type Part struct {
	Name      string
	Manifests []Manifest
}

// Options describe the chart.
type Options struct {
	// Version is that of the release, such as v0.1.0.
	Version string
	// Registry is the prefix of the images in the manifests.
	Registry string
	Parts    []Part
}

// File is a file of the chart, below its folder.
type File struct{ Name, Content string }

const (
	folder = "breakwater"
	// namespaceFile is the same object in each part.
	namespaceFile = "000-namespace.yaml"
)

//go:embed helpers.tpl
var helpers string

//go:embed notes.txt
var notes string

// Files returns the files of the chart.
func Files(o Options) ([]File, error) {
	v := newValues(o)
	var templates []File
	var namespace string
	for _, p := range o.Parts {
		for _, m := range p.Manifests {
			if m.Name == namespaceFile {
				namespace = wrap("or"+switches(o.Parts), escape(m.Text))
				continue
			}
			text, err := v.template(o, p.Name, m.Text)
			if err != nil {
				return nil, fmt.Errorf("%s/%s: %w", p.Name, m.Name, err)
			}
			templates = append(templates, File{"templates/" + p.Name + "/" + m.Name, wrap(".Values."+p.Name+".enabled", text)})
		}
	}
	text := v.text()
	schema, err := schema(text)
	if err != nil {
		return nil, err
	}
	files := append([]File{
		{"Chart.yaml", fmt.Sprintf(chartFile, strings.TrimPrefix(o.Version, "v"), o.Version)},
		{"values.yaml", text}, {"values.schema.json", schema},
		{"templates/_helpers.tpl", helpers}, {"templates/NOTES.txt", notes}, {"templates/namespace.yaml", namespace},
	}, templates...)
	for i := range files {
		files[i].Name = folder + "/" + files[i].Name
	}
	return files, nil
}

const chartFile = `apiVersion: v2
name: breakwater
description: Guards the pods of an application - judged releases, budgets for deletions, permissions before a start.
type: application
version: %s
appVersion: %s
# config/core needs 1.31, and its processes say so; the other parts need 1.30.
kubeVersion: ">=1.30.0-0"
home: https://github.com/breakwater-dev/breakwater
sources:
  - https://github.com/breakwater-dev/breakwater
`

func switches(parts []Part) string {
	var out strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&out, " .Values.%s.enabled", p.Name)
	}
	return out.String()
}

func wrap(condition, text string) string {
	return "{{- if " + condition + " }}\n" + strings.TrimSpace(text) + "\n{{- end }}\n"
}

var braces = regexp.MustCompile(`\{\{|\}\}`)

// escape makes braces in a manifest literal for the template engine.
func escape(text string) string {
	return braces.ReplaceAllStringFunc(text, func(found string) string { return `{{ "` + found + `" }}` })
}
