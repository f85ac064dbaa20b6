package monitoring

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const systemNamespace = "altershieldoperator-system"

// monitor has the fields of a PodMonitor that select what Prometheus scrapes.
type monitor struct {
	metav1.ObjectMeta `json:"metadata"`
	Kind              string
	Spec              struct {
		Selector            metav1.LabelSelector
		NamespaceSelector   struct{ MatchNames []string }
		PodMetricsEndpoints []struct{ Port string }
	}
}

// scrapes counts how often monitors scrape a pod.
func scrapes(t *testing.T, monitors []monitor, pod corev1.PodTemplateSpec) (n int) {
	t.Helper()
	for _, m := range monitors {
		selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
		if err != nil {
			t.Fatalf("PodMonitor %s: %v", m.Name, err)
		}
		if !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		for _, e := range m.Spec.PodMetricsEndpoints {
			for _, c := range pod.Spec.Containers {
				for _, p := range c.Ports {
					if p.Name == e.Port {
						n++
					}
				}
			}
		}
	}
	return n
}

// manifests calls read for each object of files.
func manifests(t *testing.T, pattern string, read func(file string, meta metav1.TypeMeta, text []byte)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for text := range strings.SplitSeq(string(raw), "\n---") {
			var meta metav1.TypeMeta
			if err := yaml.Unmarshal([]byte(text), &meta); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			read(file, meta, []byte(text))
		}
	}
}

func podMonitors(t *testing.T) (all []monitor) {
	t.Helper()
	manifests(t, "config/monitoring/*.yaml", func(file string, meta metav1.TypeMeta, text []byte) {
		switch meta.Kind {
		case "ServiceMonitor":
			t.Errorf("%s: the test does not read ServiceMonitors", file)
		case "PodMonitor":
			var m monitor
			if err := yaml.Unmarshal(text, &m); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if names := m.Spec.NamespaceSelector.MatchNames; m.Namespace != systemNamespace || len(names) > 0 {
				t.Errorf("%s: PodMonitor %s selects pods of %v, want its namespace %s", file, m.Name, names, systemNamespace)
			}
			all = append(all, m)
		}
	})
	return all
}

func TestEachProcessIsScrapedOnce(t *testing.T) {
	monitors := podMonitors(t)
	// The functions are Knative Services. They scale to zero, so they push their metrics.
	want := map[string]int{"Deployment": 1, "Service": 0}
	processes, used := map[string]int{}, map[string]bool{}
	manifests(t, "config/*/[0-9]*.yaml", func(file string, meta metav1.TypeMeta, text []byte) {
		times, known := want[meta.Kind]
		if !known || meta.APIVersion == "v1" {
			return
		}
		var process appsv1.Deployment
		if err := yaml.Unmarshal(text, &process); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		processes[meta.Kind]++
		if got := scrapes(t, monitors, process.Spec.Template); got != times {
			t.Errorf("%s: %s %s is scraped %d times, want %d", file, meta.Kind, process.Name, got, times)
		}
		for _, c := range process.Spec.Template.Spec.Containers {
			for _, p := range c.Ports {
				used[p.Name] = true
			}
		}
	})
	if processes["Deployment"] < 9 || processes["Service"] < 6 {
		t.Errorf("%v processes, want at least 9 Deployments and 6 functions", processes)
	}
	for _, m := range monitors {
		for _, e := range m.Spec.PodMetricsEndpoints {
			if !used[e.Port] {
				t.Errorf("PodMonitor %s scrapes port %s, which no process has", m.Name, e.Port)
			}
		}
	}
}

// Webhooks and controllers are Knative's: their library does not name the instance. Other processes name it themselves.
func TestEachWebhookAndControllerNamesItsReplicaInMetrics(t *testing.T) {
	found := 0
	manifests(t, "config/*/[0-9]*.yaml", func(file string, meta metav1.TypeMeta, text []byte) {
		if meta.Kind != "Deployment" {
			return
		}
		var process appsv1.Deployment
		if err := yaml.Unmarshal(text, &process); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, c := range process.Spec.Template.Spec.Containers {
			index := map[string]int{}
			for i, e := range c.Env {
				index[e.Name] = i
			}
			if _, knative := index["CONFIG_OBSERVABILITY_NAME"]; !knative {
				continue
			}
			found++
			// Kubernetes replaces only variables that precede.
			i, set := index["OTEL_RESOURCE_ATTRIBUTES"]
			pod, named := index["POD_NAME"]
			if !set || c.Env[i].Value != "service.instance.id=$(POD_NAME)" || !named || pod > i {
				t.Errorf("%s: OTEL_RESOURCE_ATTRIBUTES does not name the pod", file)
			}
		}
	})
	if found < 6 {
		t.Errorf("%d webhooks and controllers, want at least 6", found)
	}
}

// Serving's names of the label and the ports are those of a Revision's pod.
func TestQueueProxyOfEachRevisionIsScrapedOnce(t *testing.T) {
	var monitors []monitor
	manifests(t, "config/samples/knative-podmonitor.yaml", func(file string, _ metav1.TypeMeta, text []byte) {
		var m monitor
		if err := yaml.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		monitors = append(monitors, m)
	})
	ports := []corev1.ContainerPort{{Name: "http-autometric", ContainerPort: 9090}, {Name: "http-usermetric", ContainerPort: 9091}, {Name: "queue-port", ContainerPort: 8012}}
	pod := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"serving.knative.dev/service": "web", "serving.knative.dev/revision": "web-00001"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "user-container"}, {Name: "queue-proxy", Ports: ports}}},
	}
	if n := scrapes(t, monitors, pod); n != 1 {
		t.Errorf("queue-proxy is scraped %d times, want once", n)
	}
}
