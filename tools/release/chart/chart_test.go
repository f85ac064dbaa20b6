package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	helm "helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/tools/release/chart"
)

const (
	root     = "../../.."
	registry = "registry.example.com/breakwater"
)

var reference = regexp.MustCompile(`ko://github\.com/breakwater-dev/breakwater/cmd/([a-z0-9/-]+)`)

// parts reads the manifests of the repository, with images as in a release.
func parts(t *testing.T) []chart.Part {
	t.Helper()
	var all []chart.Part
	for folder, name := range map[string]string{"core": "change", "protection": "protection", "permission": "permission", "judge": "judge", "monitoring": "monitoring", "notify": "notify"} {
		files, err := filepath.Glob(filepath.Join(root, "config", folder, "[0-9]*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		p := chart.Part{Name: name}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			text := reference.ReplaceAllStringFunc(string(raw), func(found string) string {
				program := strings.ReplaceAll(reference.FindStringSubmatch(found)[1], "/", "-")
				return registry + "/" + program + "@sha256:" + strings.Repeat("0", 64)
			})
			p.Manifests = append(p.Manifests, chart.Manifest{Name: filepath.Base(file), Text: text})
		}
		if len(files) > 0 {
			all = append(all, p)
		}
	}
	return all
}

func write(t *testing.T) (*helm.Chart, string) {
	t.Helper()
	files, err := chart.Files(chart.Options{Version: "v0.1.0", Registry: registry, Parts: parts(t)})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(f.Content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := loader.Load(filepath.Join(dir, "breakwater"))
	if err != nil {
		t.Fatal(err)
	}
	return c, filepath.Join(dir, "breakwater")
}

// render does what helm template does, and returns the objects.
func render(t *testing.T, c *helm.Chart, values string) (map[string]any, error) {
	t.Helper()
	var given map[string]any
	if err := yaml.Unmarshal([]byte(values), &given); err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, given, chartutil.ReleaseOptions{Name: "breakwater", Namespace: "default"}, chartutil.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	found := map[string]any{}
	for name, text := range rendered {
		if strings.HasSuffix(name, ".yaml") {
			objects(t, found, name, text)
		}
	}
	return found, nil
}

// objects adds the objects of a text.
func objects(t *testing.T, to map[string]any, name, text string) {
	t.Helper()
	for _, document := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var o map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, document)
		}
		if o == nil {
			continue
		}
		m := o["metadata"].(map[string]any)
		to[fmt.Sprint(o["apiVersion"], " ", o["kind"], " ", m["namespace"], "/", m["name"])] = o
	}
}

func TestTheRenderedChartEqualsTheManifests(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, `{monitoring: {enabled: true}, notify: {enabled: true}}`)
	if err != nil {
		t.Fatal(err)
	}
	for _, metadata := range crds(got) {
		delete(metadata["annotations"].(map[string]any), "helm.sh/resource-policy")
	}
	want := map[string]any{}
	for _, p := range parts(t) {
		for _, m := range p.Manifests {
			objects(t, want, m.Name, m.Text)
		}
	}
	if len(want) < 100 {
		t.Fatalf("only %d objects", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("- manifests, + chart:\n%s", diff)
	}
}

// crds returns the metadata of the CRDs.
func crds(objects map[string]any) (all []map[string]any) {
	for key, o := range objects {
		if strings.HasPrefix(key, "apiextensions.k8s.io/v1 CustomResourceDefinition ") {
			all = append(all, o.(map[string]any)["metadata"].(map[string]any))
		}
	}
	return all
}

// Helm may delete the protection webhook first, and then each deletion of a protected CRD is denied.
func TestCRDsThatAreNotKeptAreNotProtectedFromDeletion(t *testing.T) {
	c, _ := write(t)
	for _, keep := range []bool{true, false} {
		got, err := render(t, c, fmt.Sprintf(`{crds: {keep: %t}}`, keep))
		if err != nil {
			t.Fatal(err)
		}
		kept, protected := 0, 0
		for _, metadata := range crds(got) {
			if metadata["annotations"].(map[string]any)["helm.sh/resource-policy"] == "keep" {
				kept++
			}
			if labels, ok := metadata["labels"].(map[string]any); ok && labels["policy.kruise.io/disable-cascading-deletion"] == "true" {
				protected++
			}
		}
		if want := len(crds(got)); keep && (kept != want || protected != 2) || !keep && kept+protected > 0 {
			t.Errorf("keep %t: of %d CRDs %d are kept and %d protected", keep, want, kept, protected)
		}
	}
}

func TestHelmLintFindsNothing(t *testing.T) {
	_, dir := write(t)
	for _, message := range lint.All(dir, nil, "default", true).Messages {
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

func TestValuesChangeWhatTheyName(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, `
image: {registry: mirror.example.com/bw}
imagePullSecrets: [{name: pull}]
nodeSelector: {role: infra}
tolerations: [{key: infra, operator: Exists}]
permission: {enabled: false}
change:
  settings: {config-altershield: {base-url: "http://altershield:8080"}}
  processes: {submit: {minScale: 1}}
protection:
  settings: {config-protection-generate: {max-unavailable: 10%}}
  processes: {protection-webhook: {replicas: 3, resources: {limits: {memory: 1Gi}}}}
`)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"apps/v1 Deployment altershieldoperator-system/protection-webhook":                           `"replicas":3`,
		"v1 ConfigMap altershieldoperator-system/config-altershield":                                 `"base-url":"http://altershield:8080"`,
		"v1 ConfigMap altershieldoperator-system/config-protection-generate":                         `{"max-unavailable":"10%"}`,
		"serving.knative.dev/v1 Service altershieldoperator-system/submit":                           `"autoscaling.knative.dev/min-scale":"1"`,
		"apps/v1 Deployment altershieldoperator-system/controller":                                   `"nodeSelector":{"kubernetes.io/os":"linux","role":"infra"}`,
		"apps/v1 Deployment altershieldoperator-system/webhook":                                      `"tolerations":[{"key":"infra","operator":"Exists"}]`,
		"apps/v1 Deployment altershieldoperator-system/protection-controller":                        `"imagePullSecrets":[{"name":"pull"}]`,
		"serving.knative.dev/v1 Service altershieldoperator-system/callback":                         `"image":"mirror.example.com/bw/change-functions@sha256:`,
		"apiextensions.k8s.io/v1 CustomResourceDefinition <nil>/changepods.app.ops.cloud.alipay.com": `"helm.sh/resource-policy":"keep"`,
	} {
		raw, err := json.Marshal(got[key])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%s has no %s: %s", key, want, raw)
		}
	}
	for key := range got {
		// The EventTypes of all parts are in config/core.
		if strings.Contains(key, "permission") && !strings.Contains(key, " EventType ") {
			t.Errorf("%s is rendered, but its part is disabled", key)
		}
	}
}

func TestTheVolumeOfThePermissionCentreHasASizeAndAClass(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, `{permission: {volumes: {permission-centre: {storage: 10Gi, storageClassName: fast}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	spec := got["v1 PersistentVolumeClaim altershieldoperator-system/permission-centre"].(map[string]any)["spec"]
	want := map[string]any{"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "fast",
		"resources": map[string]any{"requests": map[string]any{"storage": "10Gi"}}}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

func TestAValueReplacesTheImageOfTheInitContainer(t *testing.T) {
	c, _ := write(t)
	for value, want := range map[string]string{"": registry + "/permission-init-action-client@sha256:", "mirror.example.com/client:1": `mirror.example.com/client:1"`} {
		got, err := render(t, c, "permission: {initContainerImage: "+strconv.Quote(value)+"}")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(got["apps/v1 Deployment altershieldoperator-system/permission-webhook"])
		if err != nil {
			t.Fatal(err)
		}
		if want = `"name":"INIT_ACTION_CLIENT_IMAGE","value":"` + want; !bytes.Contains(raw, []byte(want)) {
			t.Errorf("%q: no %s: %s", value, want, raw)
		}
	}
}

// It is the only record of all grants.
func TestNoToolPrunesTheVolumeOfThePermissionCentre(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, "")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"helm.sh/resource-policy": "keep", "argocd.argoproj.io/sync-options": "Prune=false,Delete=false", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
	claim := got["v1 PersistentVolumeClaim altershieldoperator-system/permission-centre"].(map[string]any)
	if diff := cmp.Diff(want, claim["metadata"].(map[string]any)["annotations"]); diff != "" {
		t.Errorf("- want, + got:\n%s", diff)
	}
}

// With the namespace, all parts are deleted.
func TestToolsOfGitOpsKeepTheNamespaceThatTheyRemoveWithOnePart(t *testing.T) {
	namespaces := 0
	for _, p := range parts(t) {
		for _, m := range p.Manifests {
			found := map[string]any{}
			objects(t, found, m.Name, m.Text)
			o, ok := found["v1 Namespace <nil>/altershieldoperator-system"].(map[string]any)
			if !ok {
				continue
			}
			namespaces++
			want := map[string]any{"argocd.argoproj.io/sync-options": "Prune=false,Delete=false", "kustomize.toolkit.fluxcd.io/prune": "disabled"}
			if diff := cmp.Diff(want, o["metadata"].(map[string]any)["annotations"]); diff != "" {
				t.Errorf("%s: - want, + got:\n%s", p.Name, diff)
			}
		}
	}
	if namespaces != 3 {
		t.Errorf("%d parts have the namespace, want 3", namespaces)
	}
}

// A Prometheus may select by label, such as release of kube-prometheus-stack.
func TestMonitorsAndRulesHaveTheLabelsOfTheValues(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, `{monitoring: {enabled: true, labels: {release: prometheus}}}`)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for key, o := range got {
		if !strings.HasPrefix(key, "monitoring.coreos.com/v1 ") {
			continue
		}
		n++
		want := map[string]any{"app.kubernetes.io/part-of": "breakwater", "app.kubernetes.io/component": "monitoring", "release": "prometheus"}
		if diff := cmp.Diff(want, o.(map[string]any)["metadata"].(map[string]any)["labels"]); diff != "" {
			t.Errorf("%s: - want, + got:\n%s", key, diff)
		}
	}
	if n < 2 {
		t.Errorf("only %d PodMonitors and PrometheusRules", n)
	}
}

// docs/install.md names these two switches. Part judge has its own, because part change may be installed with its file.
func TestWithoutChangeAndJudgeNothingNeedsKnative(t *testing.T) {
	c, _ := write(t)
	got, err := render(t, c, `{change: {enabled: false}, judge: {enabled: false}}`)
	if err != nil {
		t.Fatal(err)
	}
	for key := range got {
		if strings.Contains(key, "knative.dev/") {
			t.Errorf("%s is rendered", key)
		}
	}
}

func TestAnInvalidValueIsAnErrorThatNamesIt(t *testing.T) {
	c, _ := write(t)
	for values, want := range map[string]string{
		`{protection: {enabled: "yes"}}`:                                            "enabled",
		`{chnage: {enabled: true}}`:                                                 "chnage",
		`{change: {settings: {config-altershield: {qps: 100}}}}`:                    "qps",
		`{protection: {processes: {protection-webhook: {replicas: -1}}}}`:           "replicas",
		`{protection: {processes: {protection-webhook: {resources: {limit: {}}}}}}`: "limit",
		`{permission: {volumes: {permission-centre: {size: 10Gi}}}}`:                "size",
		// The manifests have these labels.
		`{monitoring: {labels: {app.kubernetes.io/component: metrics}}}`:     "/monitoring/labels/app.kubernetes.io~1component",
		`{monitoring: {labels: {app.kubernetes.io/part-of: observability}}}`: "/monitoring/labels/app.kubernetes.io~1part-of",
		// Its strategy, which no value changes, and its volume are for one replica.
		`{permission: {processes: {permission-centre: {replicas: 2}}}}`: "replicas",
	} {
		if _, err := render(t, c, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", values, err)
		}
	}
}

// Every value has a comment or is a field of a manifest that has one.
func TestTheTopLevelValuesAreDocumented(t *testing.T) {
	_, dir := write(t)
	raw, err := os.ReadFile(filepath.Join(dir, "values.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Properties map[string]struct {
			Description string
			Properties  map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		t.Fatal(err)
	}
	for name, p := range schema.Properties {
		described := p.Description != ""
		for _, q := range p.Properties {
			described = described || q.Description != ""
		}
		if !described && name != "global" {
			t.Errorf("%s has no description", name)
		}
	}
}

// Their finalizers stay, and no process removes them.
func TestThePartsWithFinalizersSayWhatPrecedesSwitchingThemOff(t *testing.T) {
	_, dir := write(t)
	raw, err := os.ReadFile(filepath.Join(dir, "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"change", "permission"} {
		comment := regexp.MustCompile(`(?m)((?:^#.*\n)+)^` + part + `:\n  enabled:`).FindString(string(raw))
		if !strings.Contains(comment, "Before you switch it off") || !strings.Contains(comment, "finalizer") {
			t.Errorf("%s: the comment does not say what precedes switching it off: %q", part, comment)
		}
	}
}

func TestBracesOfManifestsAreLiteral(t *testing.T) {
	files, err := chart.Files(chart.Options{Version: "v0.1.0", Registry: registry, Parts: []chart.Part{{Name: "change", Manifests: []chart.Manifest{
		{Name: "100-rule.yaml", Text: "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\nsummary: \"{{ $value }} pods\"\n"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	var archived []*loader.BufferedFile
	for _, f := range files {
		archived = append(archived, &loader.BufferedFile{Name: strings.TrimPrefix(f.Name, "breakwater/"), Data: []byte(f.Content)})
	}
	c, err := loader.LoadFiles(archived)
	if err != nil {
		t.Fatal(err)
	}
	got, err := render(t, c, "")
	if err != nil {
		t.Fatal(err)
	}
	o, _ := got["v1 Thing <nil>/a"].(map[string]any)
	if o["summary"] != "{{ $value }} pods" {
		t.Errorf("got %v", o)
	}
}
