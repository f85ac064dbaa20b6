package overlays

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEveryObjectMatchesItsSchema(t *testing.T) {
	known := loadKinds(t)
	for name, folder := range folders(t) {
		t.Run(name, func(t *testing.T) {
			for _, u := range render(t, folder) {
				if err := known.check(u); err != nil {
					t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
				}
			}
		})
	}
}

// One wrong field of each kind proves that the validation finds errors.
func TestAWrongFieldIsFound(t *testing.T) {
	known := loadKinds(t)
	for name, tc := range map[string]struct {
		overlay, group, kind string
		path                 []string
		value                any
	}{
		"a Broker's misspelt config":               {"kafka", "eventing.knative.dev", "Broker", []string{"spec", "confg"}, map[string]any{}},
		"a Broker's retry that is not a number":    {"kafka", "eventing.knative.dev", "Broker", []string{"spec", "delivery", "retry"}, "five"},
		"a ConfigMap's value that is not a string": {"kafka", "", "ConfigMap", []string{"data", "default.topic.partitions"}, int64(10)},
		"a Trigger's misspelt filter":              {"rabbitmq", "eventing.knative.dev", "Trigger", []string{"spec", "filter", "attribute"}, map[string]any{}},
		"a queue of an unknown type":               {"rabbitmq", "eventing.knative.dev", "RabbitmqBrokerConfig", []string{"spec", "queueType"}, "stream"},
		"a RabbitMQ's misspelt reference":          {"rabbitmq", "eventing.knative.dev", "RabbitmqBrokerConfig", []string{"spec", "rabbitmqCluster"}, map[string]any{}},
		"a NetworkPolicy's misspelt selector":      {"rabbitmq", "networking.k8s.io", "NetworkPolicy", []string{"spec", "selector"}, map[string]any{}},
		"a function's misspelt concurrency":        {"no-scale-to-zero", "serving.knative.dev", "Service", []string{"spec", "template", "spec", "concurrency"}, int64(5)},
		"a function's concurrency that is text":    {"no-scale-to-zero", "serving.knative.dev", "Service", []string{"spec", "template", "spec", "containerConcurrency"}, "many"},
		"an OpsConfigInfo's misspelt content":      {"strict", "app.ops.cloud.alipay.com", "OpsConfigInfo", []string{"spec", "contents"}, "Hold"},
		"an OpsConfigInfo's enable that is text":   {"shadow", "app.ops.cloud.alipay.com", "OpsConfigInfo", []string{"spec", "enable"}, "yes"},
		"a misspelt list of webhooks":              {"strict", "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", []string{"webhook"}, []any{}},
		"a Deployment's misspelt replicas":         {"core", "apps", "Deployment", []string{"spec", "replica"}, int64(2)},
	} {
		t.Run(name, func(t *testing.T) {
			u := ofKind(render(t, folders(t)[tc.overlay]), tc.group, tc.kind)[0]
			if err := known.check(u); err != nil {
				t.Fatalf("before: %v", err)
			}
			if err := unstructured.SetNestedField(u.Object, tc.value, tc.path...); err != nil {
				t.Fatal(err)
			}
			err := known.check(u)
			if err == nil {
				t.Fatal("no error was found")
			}
			if last := tc.path[len(tc.path)-1]; !strings.Contains(err.Error(), last) && !strings.Contains(err.Error(), tc.path[0]) {
				t.Errorf("%v does not name %s", err, last)
			}
		})
	}
}

// kubectl 1.32 has kustomize 5.5.0, which panics at a patch of several documents that delete objects.
func TestAPatchThatDeletesHasOneDocument(t *testing.T) {
	found := 0
	err := filepath.WalkDir(filepath.Join(config, "overlays"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		text := string(raw)
		if strings.Contains(text, "$patch: delete") {
			found++
			if strings.Contains(text, "\n---\n") {
				t.Errorf("%s has several documents", path)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d patches delete objects, %v", found, err)
	}
}

func TestOverlaysIncludeEveryManifestOfTheirPart(t *testing.T) {
	for part := range based(t) {
		files, err := filepath.Glob(filepath.Join(config, part, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		raw, err := os.ReadFile(filepath.Join(config, part, "Kustomization"))
		if err != nil {
			t.Fatal(err)
		}
		var listed []string
		for line := range strings.Lines(string(raw)) {
			if file, ok := strings.CutPrefix(strings.TrimSpace(line), "- "); ok {
				listed = append(listed, file)
			}
		}
		slices.Sort(files)
		if diff := cmp.Diff(files, listed); diff != "" {
			t.Errorf("run make generate: %s", diff)
		}
	}
}
