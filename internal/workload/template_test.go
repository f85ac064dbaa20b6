package workload_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/breakwater-dev/breakwater/internal/workload"
)

// template returns a pod template with fields of its spec and of its container.
func template(spec, container string) string {
	return `{"metadata":{"labels":{"app":"web"}},"spec":{` + spec + `"containers":[{"name":"c","image":"a:1"` + container + `}]}}`
}

var pairs = map[string]struct {
	a, b string
	same bool
}{
	"the same": {template("", ""), template("", ""), true},
	"the order of fields": {
		`{"spec":{"hostname":"h","nodeName":"n"}}`, `{"spec":{"nodeName":"n","hostname":"h"}}`, true,
	},
	"null metadata.creationTimestamp": {
		`{"spec":{}}`, `{"metadata":{"creationTimestamp":null},"spec":{}}`, true,
	},
	"resources {}":          {template("", ""), template("", `,"resources":{}`), true},
	"resources null":        {template("", `,"resources":{}`), template("", `,"resources":null`), true},
	"an empty list":         {template("", ""), template(`"tolerations":[],`, `,"command":[],"env":null`), true},
	"an empty map":          {template("", ""), template(`"nodeSelector":{},`, ""), true},
	"a default of Go":       {template("", ""), template(`"hostNetwork":false,"hostname":"",`, `,"tty":false`), true},
	"cpu 1000m and 1":       {resources(`"1000m"`), resources(`"1"`), true},
	"cpu 1 without quotes":  {resources(`1`), resources(`"1"`), true},
	"cpu 0.5 and 500m":      {resources(`"0.5"`), resources(`"500m"`), true},
	"1024Mi and 1Gi":        {resources(`"1024Mi"`), resources(`"1Gi"`), true},
	"cpu 1 and 2":           {resources(`"1"`), resources(`"2"`), false},
	"another image":         {template("", ""), strings.ReplaceAll(template("", ""), "a:1", "a:2"), false},
	"another label":         {template("", ""), strings.ReplaceAll(template("", ""), "web", "db"), false},
	"a label that is empty": {template("", ""), strings.ReplaceAll(template("", ""), `"app":"web"`, `"app":"web","x":""`), false},
	"a list of one empty object": {
		template("", ""), template(`"tolerations":[{}],`, ""), false,
	},
	"a pointer to false": {template("", ""), template(`"enableServiceLinks":false,`, ""), false},
	"namespaceSelector {}, which selects all namespaces": {
		template(affinity(""), ""), template(affinity(`,"namespaceSelector":{}`), ""), false,
	},
	"namespaceSelector null": {
		template(affinity(""), ""), template(affinity(`,"namespaceSelector":null`), ""), true,
	},
	"a field of a newer Kubernetes": {template("", ""), template(`"tomorrow":1,`, ""), false},
	"its value":                     {template(`"tomorrow":1,`, ""), template(`"tomorrow":2,`, ""), false},
	"its value in a container":      {template("", `,"tomorrow":{"a":1}`), template("", `,"tomorrow":{"a":2}`), false},
	"a field in the source of a volume": {
		template(`"volumes":[{"name":"v","emptyDir":{}}],`, ""), template(`"volumes":[{"name":"v","emptyDir":{"tomorrow":0}}],`, ""), false,
	},
	"resources {} beside a field of a newer Kubernetes": {
		template(`"tomorrow":1,`, ""), template(`"tomorrow":1,`, `,"resources":{}`), true,
	},
	"a null field of a newer Kubernetes": {template("", ""), template(`"tomorrow":null,`, ""), true},
	"a field in capitals, which Kubernetes does not know": {
		`{"spec":{"hostname":"a"}}`, `{"spec":{"hostname":"a","HOSTNAME":"b"}}`, false,
	},
	"a field in lower case, which does not hide the known one": {
		`{"spec":{"nodeName":"a","nodename":"x"}}`, `{"spec":{"nodeName":"b","nodename":"x"}}`, false,
	},
	"no template, and an empty one": {``, `{}`, true},
}

func resources(quantity string) string {
	return template("", `,"resources":{"limits":{"cpu":`+quantity+`}}`)
}

func affinity(term string) string {
	return `"affinity":{"podAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"k"` + term + `}]}},`
}

func TestTemplatesAreComparedByTheirMeaning(t *testing.T) {
	for name, tc := range pairs {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]string{{tc.a, tc.b}, {tc.b, tc.a}} {
				got, err := workload.SameTemplate(json.RawMessage(pair[0]), json.RawMessage(pair[1]))
				if err != nil || got != tc.same {
					t.Errorf("SameTemplate(%s, %s) = %v, %v, want %v", pair[0], pair[1], got, err, tc.same)
				}
			}
		})
	}
}

// A pod's release is found by the version of its template: a template without a change
// must not get another version.
func TestTemplatesWithTheSameMeaningHaveTheSameVersion(t *testing.T) {
	for name, tc := range pairs {
		if !tc.same || tc.a == "" {
			continue
		}
		if a, b := versionOf(t, tc.a), versionOf(t, tc.b); a != b {
			t.Errorf("%s: versions %s and %s", name, a, b)
		}
	}
}

func TestAnInvalidTemplateIsAnError(t *testing.T) {
	for _, invalid := range []string{`[]`, `{"spec":{"containers":1}}`, `{`} {
		for _, pair := range [][2]string{{invalid, `{}`}, {`{}`, invalid}} {
			if same, err := workload.SameTemplate(json.RawMessage(pair[0]), json.RawMessage(pair[1])); same || err == nil {
				t.Errorf("SameTemplate(%s, %s) = %v, %v", pair[0], pair[1], same, err)
			}
		}
	}
}

// Releases, saved templates and pods are found by versions that an earlier Breakwater
// stored.
func TestAnUpgradeKeepsVersions(t *testing.T) {
	defaulted := `{"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"a:1",
		"imagePullPolicy":"IfNotPresent","resources":{"limits":{"memory":"128Mi"},"requests":{"cpu":"500m"}},
		"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],
		"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},
		"terminationGracePeriodSeconds":30,"volumes":[{"name":"v","emptyDir":{}}]}}`
	for template, want := range map[string]string{
		defaulted:        "25ec832153cfce51354aed24660b8b82",
		template("", ""): "66d22d899f97c8c59da631a5a8681cbc",
	} {
		if got := versionOf(t, template); got != want {
			t.Errorf("version %s, want %s, of %s", got, want, template)
		}
	}
}

func versionOf(t *testing.T, template string) string {
	t.Helper()
	var typed corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(template), &typed); err != nil {
		t.Fatal(err)
	}
	version, err := workload.Version(workload.Deployment, &typed)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// A custom kind can keep fields that Kubernetes does not know, such as nodename.
func TestAFieldInAnotherCaseIsNotRead(t *testing.T) {
	w, err := workload.Read(workload.Deployment, []byte(`{"spec":{"template":{"spec":{"nodeName":"a","nodename":"b"}},"templatE":{}}}`))
	if err != nil || w.Template.Spec.NodeName != "a" {
		t.Errorf("nodeName %q, %v", w.Template.Spec.NodeName, err)
	}
}
