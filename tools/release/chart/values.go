package chart

import (
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// values collects what templates replace, as text with comments.
type values struct {
	registry  string
	parts     []string
	settings  map[string][]string
	processes map[string][]string
	volumes   map[string][]string
}

func newValues(o Options) *values {
	v := &values{registry: o.Registry, settings: map[string][]string{}, processes: map[string][]string{}, volumes: map[string][]string{}}
	for _, p := range o.Parts {
		v.parts = append(v.parts, p.Name)
	}
	return v
}

func (v *values) addSettings(part, configMap string, lines []string) {
	empty := true
	for _, line := range lines {
		line = strings.TrimSpace(line)
		empty = empty && (line == "" || strings.HasPrefix(line, "#"))
	}
	if empty {
		v.settings[part] = append(v.settings[part], fmt.Sprintf("    %s: {}", configMap))
		return
	}
	v.settings[part] = append(v.settings[part], fmt.Sprintf("    %s:", configMap))
	v.settings[part] = append(v.settings[part], align(lines, 6)...)
}

func (v *values) addVolume(part, name string, lines []string) {
	v.volumes[part] = append(v.volumes[part], fmt.Sprintf("    %s:", name))
	v.volumes[part] = append(v.volumes[part], lines...)
}

func (v *values) addProcess(part, name string, lines []string) {
	v.processes[part] = append(v.processes[part], fmt.Sprintf("    %s:", name))
	v.processes[part] = append(v.processes[part], align(lines, 6)...)
}

// The parts that are off by default.
const (
	// monitoring: not every cluster has its CRDs. Its ConfigMap contains no settings.
	monitoring = "monitoring"
	// notify: it does nothing without the address of a webhook.
	notify = "notify"
)

// centreReplicas is the path of the value for the replicas of the permission centre. Its strategy Recreate and
// whether it has a volume, which can be attached to one node only, are no values.
const centreReplicas = "permission.processes.permission-centre.replicas"

// about has the comment of each part: its purpose, what it needs, and what precedes switching it off.
var about = map[string]string{
	"change": `Judged releases. Needs Knative Serving and Eventing. Without Knative, switch part judge off, too.
# Before you switch it off, end held releases, opt all namespaces out and delete the ChangeWorkloads: without the controller,
# held rollouts stay held, and a finalizer keeps ChangeWorkloads (docs/install.md, "Switch a part off").`,
	"protection": "Budgets, flow control and protection from cascading deletion. Not beside an OpenKruise that enforces budgets itself.",
	"permission": `Permissions before a pod starts. Needs a default StorageClass for the permission centre.
# Before you switch it off, stop the workloads that have permissions: their grants are not revoked, and a finalizer keeps their
# pods (docs/install.md, "Switch a part off"). The PersistentVolumeClaim with the record of all grants is kept, unless the
# namespace is deleted: by helm uninstall, or if no other part is on.`,
	"judge":    "A judge that runs in the cluster. Needs part change, from this chart or from its file, and so Knative.",
	notify:     "Messages about releases to a webhook, of Slack for example. Needs part change.",
	monitoring: "PodMonitors, alerts and dashboards. Needs the Prometheus Operator.",
}

// text returns values.yaml.
func (v *values) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, valuesHead, v.registry)
	for _, part := range v.parts {
		fmt.Fprintf(&out, "\n# %s\n%s:\n  enabled: %v\n", about[part], part, part != monitoring && part != notify)
		if part == monitoring {
			out.WriteString("  # Labels of the PodMonitors and PrometheusRules, for a Prometheus that selects by label: for kube-prometheus-stack\n" +
				"  # {release: NAME}, with the name of its Helm release.\n  labels: {}\n")
		}
		if part == "permission" {
			out.WriteString("  # The image of the init container, if nodes cannot pull that of the release. Write the new one before each upgrade.\n  initContainerImage: \"\"\n")
		}
		section(&out, "Data of ConfigMaps, by the name of the ConfigMap. Their key _example lists all keys.", "settings", v.settings[part])
		section(&out, "Deployments and Knative Services.", "processes", v.processes[part])
		if claims := v.volumes[part]; claims != nil {
			section(&out, "PersistentVolumeClaims.", "volumes", claims)
		}
	}
	return out.String()
}

func section(out *strings.Builder, comment, name string, lines []string) {
	if len(lines) == 0 {
		fmt.Fprintf(out, "  %s: {}\n", name)
		return
	}
	fmt.Fprintf(out, "  # %s\n  %s:\n%s\n", comment, name, strings.Join(lines, "\n"))
}

const valuesHead = `# Values of the Helm chart of Breakwater. With these values the chart renders the same objects as
# the files breakwater.yaml, judge.yaml, protection.yaml and permission.yaml of the release. Comments
# inside are those of the manifests. CRDs are templates, so that an upgrade updates them.

image:
  # The prefix of all images. They are pinned by digest, so a mirror must keep the digests.
  registry: %s

# Secrets of namespace altershieldoperator-system with which images are pulled, such as {name: pull}. Pods with permissions
# pull the image of their init container with their own: see "Private registry" in docs/install.md.
imagePullSecrets: []
# For the pods of Deployments.
nodeSelector:
  kubernetes.io/os: linux
# For the pods of Deployments.
tolerations: []

crds:
  # Keep the CRDs, and with them every budget and release, when the chart is uninstalled. With false, those of part
  # protection do not have the label that protects them from deletion while a budget or flow control exists.
  keep: true
`

// schema returns the JSON schema of values: their fields and types, and nothing else.
func schema(values string) (string, error) {
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(values), &root); err != nil {
		return "", fmt.Errorf("values: %w", err)
	}
	s := describe(nil, root.Content[0])
	s["$schema"] = "https://json-schema.org/draft-07/schema#"
	// Helm adds global values.
	s["properties"].(map[string]any)["global"] = map[string]any{"type": "object"}
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	return string(raw) + "\n", nil
}

// describe returns the schema of a value at a path.
func describe(path []string, node *yaml.Node) map[string]any {
	at := strings.Join(path, ".")
	switch {
	case at == "imagePullSecrets" || at == "tolerations":
		return map[string]any{"type": "array", "items": map[string]any{"type": "object"}}
	case at == "monitoring.labels":
		// The manifests have these labels: a key that is rendered twice is an error.
		taken := map[string]any{"app.kubernetes.io/component": false, "app.kubernetes.io/part-of": false}
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}, "properties": taken}
	case at == "nodeSelector", len(path) == 3 && path[1] == "settings":
		return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
	case len(path) == 4 && path[3] == "resources":
		quantities := map[string]any{"type": "object", "additionalProperties": map[string]any{"type": []string{"string", "number"}}}
		return map[string]any{"type": "object", "additionalProperties": false,
			"properties": map[string]any{"requests": quantities, "limits": quantities}}
	case at == centreReplicas:
		return map[string]any{"type": "integer", "minimum": 0, "maximum": 1}
	case node.Kind == yaml.MappingNode:
		properties := map[string]any{}
		for i := 0; i < len(node.Content); i += 2 {
			key, value := node.Content[i], node.Content[i+1]
			property := describe(append(path[:len(path):len(path)], key.Value), value)
			if comment := strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(key.HeadComment, "#"), "\n#", "")); comment != "" {
				property["description"] = comment
			}
			properties[key.Value] = property
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	case node.Tag == "!!bool":
		return map[string]any{"type": "boolean"}
	case node.Tag == "!!int":
		return map[string]any{"type": "integer", "minimum": 0}
	default:
		return map[string]any{"type": "string"}
	}
}
