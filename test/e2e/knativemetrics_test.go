//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	judgev1alpha1 "github.com/breakwater-dev/breakwater/apis/judge/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// defaultCheck compares the default metrics with the default settings.
const defaultCheck = `{"apiVersion":"judge.breakwater.dev/v1alpha1","kind":"MetricCheck","metadata":{"name":"web"},"spec":{}}`

// shopTemplate is the template of a Service of the sample shop's front, with the environment of its container.
func shopTemplate(image, env string) string {
	return fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"autoscaling.knative.dev/min-scale":"1"}},
"spec":{"enableServiceLinks":false,"containers":[{"image":%q,"env":[%s]}]}}}}`, image, env)
}

// thirtyPercent makes the shop answer 30 % of its requests with status 500.
const thirtyPercent = `{"name":"SHOP_FAULT","value":"errors"},{"name":"SHOP_FAULT_STRENGTH","value":"strong"}`

// shopRevision has a Knative Service of the sample shop, of which queue-proxy shows the requests.
func (e *environment) shopRevision(t *testing.T) *namespace {
	t.Helper()
	n := e.optedInNamespace(t)
	n.applyManifest(t, strings.Replace(shopTemplate(buildShop(t), ""), "{", `{"apiVersion":"serving.knative.dev/v1","kind":"Service","metadata":{"name":"web"},`, 1))
	return n
}

// buildShop builds the image of the sample shop, and returns its reference.
func buildShop(t *testing.T) string {
	t.Helper()
	root := filepath.Join("..", "..")
	config, err := filepath.Abs(filepath.Join(root, "ko.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "ko", "build", "--sbom=none", "./cmd/shop")
	cmd.Dir = filepath.Join(root, "test", "shop")
	cmd.Env = append(os.Environ(), "KO_CONFIG_PATH="+config)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	image, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	return strings.TrimSpace(string(image))
}

// podPorts lists the ports of the containers of the Revisions of these tests, with the labels of Prometheus'
// discovery for Kubernetes (role pod).
func (e *environment) podPorts() http.Handler {
	type target struct {
		Targets []string          `json:"targets"`
		Labels  map[string]string `json:"labels"`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pods, err := e.kube.CoreV1().Pods(metav1.NamespaceAll).List(r.Context(), metav1.ListOptions{LabelSelector: "serving.knative.dev/revision"})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		all := []target{}
		for i := range pods.Items {
			p := &pods.Items[i]
			if p.Namespace == system || p.Status.Phase != corev1.PodRunning {
				continue
			}
			for _, c := range p.Spec.Containers {
				for _, port := range c.Ports {
					all = append(all, target{[]string{net.JoinHostPort(p.Status.PodIP, strconv.Itoa(int(port.ContainerPort)))}, map[string]string{
						"__meta_kubernetes_namespace": p.Namespace, "__meta_kubernetes_pod_name": p.Name,
						"__meta_kubernetes_pod_container_port_name": port.Name,
					}})
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all)
	})
}

// failingRevision: a Revision gets all requests as soon as it is Ready, and answers 30 % of them with an error. The
// judge sees it in the requests that its queue-proxy counts, by default metrics alone. It compares them with the
// few requests of the old Revision before: 7 % of errors would need more of them.
func failingRevision(n *namespace, requests *knativeRequests) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		kind := workload.KnativeService
		n.awaitSavedTemplate(t, kind, "web", 1)
		good := n.revisionOf(t, 1)
		requests.awaitOnly(t, good)
		e.awaitSample(t, fmt.Sprintf("sum(kn_serving_invocation_duration_seconds_count{namespace=%q,pod=~%q})", n.name, good+"-.+"), comparedAge,
			func(counted float64) bool { return counted > 0 })
		n.applyManifest(t, defaultCheck)

		n.patchKnative(t, shopTemplate(n.imageOf(t, "web"), thirtyPercent))
		c := n.awaitAttempt(t, lookTimeout, kind, "web", 2, v1alpha1.ReleaseSuspend)
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); !strings.Contains(cond.Message, "metrics: knative-") {
			t.Errorf("the message is %q", cond.Message)
		}
		n.awaitTraffic(t, good)
		requests.awaitOnly(t, good)
		t.Log(requests.shareOf(n.revisionOf(t, 2)))
		n.checkQueueProxyMetrics(t, c.Name)
		denied := n.try(t, "patch", kind.Argument(), "web", "--type=merge", "-p", releaseOf("v3"))
		if denied.Code == 0 || !strings.Contains(denied.Stderr, "service web is suspended") {
			t.Errorf("the next release: %+v", denied)
		}
	}
}

// imageOf returns the image of a Knative Service.
func (n *namespace) imageOf(t *testing.T, name string) string {
	t.Helper()
	return n.run(t, "get", workload.KnativeService.Argument(), name, "-o", "jsonpath={.spec.template.spec.containers[0].image}")
}

// checkQueueProxyMetrics checks that errors and latency of the first batch were compared, and nothing else, and
// that the errors failed it. The message of the release names the latency if that failed, too.
func (n *namespace) checkQueueProxyMetrics(t *testing.T, release string) {
	t.Helper()
	batch, err := n.change.ChangePods(n.name).Get(t.Context(), v1alpha1.ChangePodName(release, 1), metav1.GetOptions{})
	if err != nil || batch.Status.MetricRecord == nil {
		t.Fatalf("the batch has no record: %v", err)
	}
	compared := map[string]judgev1alpha1.Verdict{}
	for _, m := range batch.Status.MetricRecord.Metrics {
		compared[m.Name] = m.Verdict
		t.Logf("%s: %s, %s (%s)", m.Name, m.Verdict, m.Reason, m.Message)
	}
	if _, latency := compared["knative-latency"]; compared["knative-errors"] != judgev1alpha1.VerdictFail || !latency || len(compared) != 2 {
		t.Errorf("compared are %v, want knative-errors, which fails, and knative-latency", compared)
	}
}
