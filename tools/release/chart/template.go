package chart

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// edit replaces the lines from first to last, counted from 0. If last is less than first, it inserts
// before first.
type edit struct {
	first, last int
	text        string
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// template returns the template of a manifest, and adds what it replaces to the values.
func (v *values) template(o Options, part, text string) (string, error) {
	var out []string
	for _, document := range separator.Split(text, -1) {
		edited, err := v.document(part, document)
		if err != nil {
			return "", err
		}
		out = append(out, strings.TrimSpace(edited))
	}
	return strings.ReplaceAll(strings.Join(out, "\n---\n"), o.Registry+"/", "{{ .Values.image.registry }}/"), nil
}

func (v *values) document(part, text string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(text), &root); err != nil {
		return "", err
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(root.Content) == 0 {
		return escape(text), nil
	}
	object := root.Content[0]
	name := scalar(object, "metadata", "name")
	var edits []edit
	var err error
	switch api := scalar(object, "apiVersion"); scalar(object, "kind") {
	case "ConfigMap":
		if part == monitoring {
			break
		}
		edits, err = v.configMap(part, name, object, lines)
	case "Deployment":
		edits, err = v.process(part, name, object, lines, "breakwater.pod")
	case "Service":
		if strings.HasPrefix(api, "serving.knative.dev/") {
			edits, err = v.process(part, name, object, lines, "breakwater.pullSecrets")
		}
	case "PersistentVolumeClaim":
		edits, err = v.claim(part, name, object, lines)
	case "CustomResourceDefinition":
		edits, err = crd(object)
	case "PodMonitor", "PrometheusRule":
		edits, err = monitoringLabels(object)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return apply(lines, edits), nil
}

// configMap moves the data, except the example, to the values.
func (v *values) configMap(part, name string, object *yaml.Node, lines []string) ([]edit, error) {
	key, data := find(object, "data")
	if data == nil {
		return nil, nil
	}
	if object.Content[len(object.Content)-2] != key {
		return nil, errors.New("data is not its last field")
	}
	end := len(lines)
	for i := 0; i < len(data.Content); i += 2 {
		if data.Content[i].Value != "_example" {
			continue
		}
		if i != len(data.Content)-2 {
			return nil, errors.New("_example is not its last key")
		}
		end = head(lines, data.Content[i].Line-1)
	}
	v.addSettings(part, name, lines[key.Line:end])
	return []edit{{key.Line, end - 1, fmt.Sprintf(
		"{{- with index .Values.%s.settings %q }}\n  {{- toYaml . | nindent 2 }}\n{{- end }}", part, name)}}, nil
}

// process moves replicas, the minimal scale and the resources of a process to the values. The include replaces the nodeSelector.
func (v *values) process(part, name string, object *yaml.Node, lines []string, include string) ([]edit, error) {
	spec := lookup(object, "spec", "template", "spec")
	key, containers := find(spec, "containers")
	if containers == nil || len(containers.Content) != 1 {
		return nil, errors.New("it has not exactly one container")
	}
	path := fmt.Sprintf("index .Values.%s.processes %q", part, name)
	included := edit{key.Line - 1, key.Line - 2, fmt.Sprintf("%s{{- include %q . | nindent %d }}", indent(key), include, key.Column-1)}
	if key, selector := find(spec, "nodeSelector"); selector != nil {
		included.first, included.last = key.Line-1, last(selector)-1
	}
	edits := []edit{included}
	var moved []string
	if key, count := find(lookup(object, "spec"), "replicas"); count != nil {
		moved = append(moved, lines[head(lines, key.Line-1):key.Line]...)
		edits = append(edits, edit{key.Line - 1, key.Line - 1, fmt.Sprintf("%sreplicas: {{ %s \"replicas\" }}", indent(key), path)})
	}
	const minScale = "autoscaling.knative.dev/min-scale"
	if key, scale := find(lookup(object, "spec", "template", "metadata", "annotations"), minScale); scale != nil {
		moved = append(moved, align(lines[head(lines, key.Line-1):key.Line-1], 2)...)
		moved = append(moved, "  minScale: "+scale.Value)
		edits = append(edits, edit{key.Line - 1, key.Line - 1, fmt.Sprintf("%s%s: {{ %s \"minScale\" | quote }}", indent(key), minScale, path)})
	}
	key, resources := find(containers.Content[0], "resources")
	if resources == nil {
		return nil, errors.New("it has no resources")
	}
	end := last(resources)
	moved = append(moved, align(lines[key.Line-1:end], 2)...)
	edits = append(edits, edit{key.Line, end - 1, fmt.Sprintf("%s  {{- toYaml (%s \"resources\") | nindent %d }}", indent(key), path, key.Column+1)})
	v.addProcess(part, name, align(moved, 4))
	if _, env := find(containers.Content[0], "env"); env != nil {
		edits = append(edits, initContainerImage(env)...)
	}
	return edits, nil
}

// initContainerImage lets a value replace the image of the init container of part permission.
func initContainerImage(env *yaml.Node) []edit {
	for _, item := range env.Content {
		if _, name := find(item, "name"); name != nil && name.Value == "INIT_ACTION_CLIENT_IMAGE" {
			key, value := find(item, "value")
			return []edit{{key.Line - 1, key.Line - 1, fmt.Sprintf("%svalue: {{ with .Values.permission.initContainerImage }}{{ . | quote }}{{ else }}%s{{ end }}", indent(key), value.Value)}}
		}
	}
	return nil
}

// claim moves the size and the class of a volume to the values.
func (v *values) claim(part, name string, object *yaml.Node, lines []string) ([]edit, error) {
	spec := lookup(object, "spec")
	resources, _ := find(spec, "resources")
	storage, _ := find(lookup(spec, "resources", "requests"), "storage")
	if storage == nil {
		return nil, errors.New("it has no size")
	}
	path := fmt.Sprintf("index .Values.%s.volumes %q", part, name)
	v.addVolume(part, name, append(align(lines[head(lines, storage.Line-1):storage.Line], 6),
		"      # The default StorageClass of the cluster, if it is empty.", `      storageClassName: ""`))
	return []edit{
		{resources.Line - 1, resources.Line - 2, fmt.Sprintf("%s{{- with %s \"storageClassName\" }}\n%[1]sstorageClassName: {{ . }}\n%[1]s{{- end }}", indent(resources), path)},
		{storage.Line - 1, storage.Line - 1, fmt.Sprintf("%sstorage: {{ %s \"storage\" }}", indent(storage), path)},
	}, nil
}

// crd lets Helm keep the CRD, and with it every object of its kind. If crds.keep is false, the CRD has no labels: they would
// deny its deletion after Helm has deleted the webhook.
func crd(object *yaml.Node) ([]edit, error) {
	metadata := lookup(object, "metadata")
	key, annotations := find(metadata, "annotations")
	if annotations == nil {
		return nil, errors.New("it has no annotations")
	}
	edits := []edit{{key.Line, key.Line - 1, "    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}"}}
	if key, labels := find(metadata, "labels"); labels != nil {
		edits = append(edits, edit{key.Line - 1, key.Line - 2, "  {{- if .Values.crds.keep }}"}, edit{last(labels), last(labels) - 1, "  {{- end }}"})
	}
	return edits, nil
}

// monitoringLabels adds the labels by which a Prometheus selects the object.
func monitoringLabels(object *yaml.Node) ([]edit, error) {
	key, labels := find(lookup(object, "metadata"), "labels")
	if labels == nil {
		return nil, errors.New("it has no labels")
	}
	return []edit{{key.Line, key.Line - 1, "    {{- with .Values.monitoring.labels }}\n    {{- toYaml . | nindent 4 }}\n    {{- end }}"}}, nil
}

// apply applies edits, which do not overlap, and escapes all other lines.
func apply(lines []string, edits []edit) string {
	before, skipped := map[int]string{}, map[int]bool{}
	for _, e := range edits {
		before[e.first] = e.text
		for i := e.first; i <= e.last; i++ {
			skipped[i] = true
		}
	}
	var out []string
	for i := 0; i <= len(lines); i++ {
		if text, ok := before[i]; ok {
			out = append(out, text)
		}
		if i < len(lines) && !skipped[i] {
			out = append(out, escape(lines[i]))
		}
	}
	return strings.Join(out, "\n")
}
