//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"knative.dev/pkg/apis"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/judge/prometheus"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/knativerequest"
	"github.com/breakwater-dev/breakwater/test/freeport"
)

// bad is the marker of a release of which 7 % of the requests fail.
const bad = "bad"

// exported is the label of pods whose requests the exporter shows.
const exported = "exported"

// restartsKey is an annotation of exported pods: how often their containers have restarted.
const restartsKey = "test.breakwater.dev/restarts"

// lookTimeout is the time limit of a release of three pods that are watched for a minute
// each.
const lookTimeout = 6 * time.Minute

// metricCheck judges by the requests that the exporter of the tests shows.
const metricCheck = `
apiVersion: judge.breakwater.dev/v1alpha1
kind: MetricCheck
metadata: {name: web}
spec:
  analysisDuration: 1m
  defaultMetrics: None
  callers: None
  metrics:
    - name: http-errors
      kind: Ratio
      query: e2e_requests_total{{{pods}}}
      bad: e2e_errors_total{{{pods}}}
`

// probationCheck compares restarts, and passes a release without a verdict. The analysis is longer than
// the spec waits before it ends it.
const probationCheck = `
apiVersion: judge.breakwater.dev/v1alpha1
kind: MetricCheck
metadata: {name: web}
spec: {analysisDuration: 20m, insufficientDataPolicy: Pass, callers: None, probation: 2m}
`

// probationTimeout is the time limit until the only look of probationCheck has an effect.
const probationTimeout = 2*time.Minute + rolloutTimeout

// metricSpecs run function judge with a real Prometheus (startPrometheus). Most watch pods
// for a minute, one after the other. Their first versions are created here: other specs run
// until the pods are old enough. begin waits for two of the first versions, which are ready long
// before the others, and begins what needs time before its spec: requests and a release.
func metricSpecs(t *testing.T, e *environment) (begin func() []spec) {
	t.Helper()
	e.startPrometheus(t)
	revision, late := e.shopRevision(t), e.restartsNamespace(t)
	failing, good, missing := e.metricsNamespace(t), e.metricsNamespace(t), e.metricsNamespace(t)
	return func() []spec {
		late.releaseWithProbation(t)
		requests := revision.sendWith(t, "web", knativerequest.Target.Buy)
		return []spec{
			{"a Revision of which 30 % of the requests fail is held by the requests that queue-proxy counts, and loses its traffic", failingRevision(revision, requests)},
			{"a release of which 7 % of the requests fail is held, with the reason", failingRequests(failing)},
			{"a good release passes by its metrics", goodRequests(good)},
			{"a release without data is held", withoutData(missing)},
			{"a late fail during probation suspends the workload, and a rollback is admitted", failDuringProbation(late)},
		}
	}
}

// metricsNamespace has a Deployment of three pods, which are replaced one by one.
func (e *environment) metricsNamespace(t *testing.T) *namespace {
	t.Helper()
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 3, builder.Simulated, func(d *appsv1.Deployment) {
		d.Spec.Template.Labels[exported] = "true"
		d.Spec.MinReadySeconds = 20
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxSurge: new(intstr.FromInt32(1)), MaxUnavailable: new(intstr.FromInt32(0))}
	}))
	return n
}

// comparedAge is the age of old pods from which they are compared: the judge leaves out their
// first minute, and one of its cells of 15 s may have begun then.
const comparedAge = 75 * time.Second

// awaitFirstVersion waits until new pods can be compared with those of the first version.
func (n *namespace) awaitFirstVersion(t *testing.T) {
	t.Helper()
	await(t, rolloutTimeout, "the first version runs", func(ctx context.Context) error {
		d, err := n.kube.AppsV1().Deployments(n.name).Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas < 3 {
			err = fmt.Errorf("%d of 3 pods are available", d.Status.AvailableReplicas)
		}
		return err
	})
	await(t, lookTimeout, "the pods of the first version are old enough to be compared with", func(ctx context.Context) error {
		pods, err := n.kube.CoreV1().Pods(n.name).List(ctx, metav1.ListOptions{LabelSelector: exported})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if age := time.Since(pods.Items[i].CreationTimestamp.Time); age < comparedAge {
				return fmt.Errorf("pod %s is %s old", pods.Items[i].Name, age)
			}
		}
		return nil
	})
	// The first version has no old pods to be compared with, so it is not judged.
	n.kubectl.Require(t, metricCheck, "apply", "-f", "-")
}

func failingRequests(n *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, _ *environment) {
		n.awaitFirstVersion(t)
		n.release(t, "web", bad)
		c := n.awaitPhase(t, lookTimeout, "web", v1alpha1.ReleaseSuspend)
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); !strings.Contains(cond.Message, "metrics: http-errors: ") || !strings.Contains(cond.Message, " % of new pods against ") {
			t.Errorf("the message is %q", cond.Message)
		}
		n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
		if out := n.run(t, "describe", "changeworkload", c.Name); !strings.Contains(out, "http-errors") {
			t.Errorf("kubectl describe does not explain the fail:\n%s", out)
		}
		n.checkDenied(t, "web", "patch", "deployment", "web", "--type", "merge", "-p", releaseOf("v3"))
	}
}

func goodRequests(n *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, _ *environment) {
		n.awaitFirstVersion(t)
		n.release(t, "web", "v2")
		c := n.awaitPhase(t, lookTimeout, "web", v1alpha1.ReleaseSuccess)
		if cond := c.Status.GetCondition(v1alpha1.ReleaseJudged); !cond.IsTrue() || c.Status.Counts.Passed != 3 {
			t.Errorf("condition Judged is %+v, counts %+v", cond, c.Status.Counts)
		}
	}
}

func withoutData(n *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, _ *environment) {
		n.awaitFirstVersion(t)
		missing := strings.ReplaceAll(metricCheck, "e2e_", "e2e_missing_")
		n.kubectl.Require(t, missing, "apply", "-f", "-")
		n.release(t, "web", "v2")
		await(t, lookTimeout, "the release waits for a person, with the reason", func(ctx context.Context) error {
			c, err := n.current(ctx, "web")
			if err != nil {
				return err
			}
			cond := c.Status.GetCondition(apis.ConditionSucceeded)
			if cond == nil || !cond.IsUnknown() || cond.Reason != v1alpha1.ReasonHeldUnjudged || !strings.Contains(cond.Message, "metrics: ") {
				return fmt.Errorf("condition Succeeded is %+v", cond)
			}
			return nil
		})
	}
}

// restartsNamespace has a Deployment of one pod, of which the exporter shows the restarts.
func (e *environment) restartsNamespace(t *testing.T) *namespace {
	t.Helper()
	n := e.optedInNamespace(t)
	n.create(t, builder.Deployment("web", 1, builder.Simulated, func(d *appsv1.Deployment) { d.Spec.Template.Labels[exported] = "true" }))
	return n
}

// releaseWithProbation begins the release of the second version.
func (n *namespace) releaseWithProbation(t *testing.T) {
	t.Helper()
	n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
	n.applyManifest(t, probationCheck)
	n.release(t, "web", "v2")
}

// failDuringProbation: the pod of a release restarts again and again after its success. The deletion
// of the MetricCheck ends the analysis; its probation is already in the batch. The test waits for the samples
// that the look compares. It has those from before the success when it deletes the MetricCheck, and those from
// after the success long before the look is due.
func failDuringProbation(n *namespace) func(*testing.T, *environment) {
	return func(t *testing.T, e *environment) {
		pod := n.awaitBatch(t, rolloutTimeout, "web", 1, "exists", exists).Spec.PodInfos[0].Pod
		n.awaitRestarts(t, e, pod, 0, 2*prometheus.Step)
		n.run(t, "delete", "metriccheck", "web")
		n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
		n.applyManifest(t, probationCheck)
		n.run(t, "annotate", "pod", pod, restartsKey+"=2")
		n.awaitRestarts(t, e, pod, 2, 0)

		c := n.awaitPhase(t, probationTimeout, "web", v1alpha1.ReleaseSuspend)
		const reason = "restarts again and again"
		if p := c.Status.Probation; p == nil || p.Looks != 1 || p.NextLookTime != nil || !strings.Contains(p.Message, reason) {
			t.Errorf("probation %+v, want one look with %q", p, reason)
		}
		if cond := c.Status.GetCondition(apis.ConditionSucceeded); !strings.Contains(cond.Message, reason) {
			t.Errorf("the message is %q", cond.Message)
		}
		n.awaitDeployment(t, shortTimeout, "web", "is suspended", isSuspended)
		n.checkDenied(t, "web", "patch", "deployment", "web", "--type", "merge", "-p", releaseOf("v3"))
		n.release(t, "web", "v1")
		n.awaitEvent(t, "web", v1alpha1.ReasonRollbackAdmitted, "rollback")
		n.awaitPhase(t, rolloutTimeout, "web", v1alpha1.ReleaseSuccess)
		n.awaitDeployment(t, shortTimeout, "web", "is not suspended", isNotSuspended)
	}
}

// awaitRestarts waits until Prometheus has a sample of the restarts of a pod, at least so old.
func (n *namespace) awaitRestarts(t *testing.T, e *environment, pod string, want float64, age time.Duration) {
	t.Helper()
	query := fmt.Sprintf("kube_pod_container_status_restarts_total{namespace=%q,pod=%q}", n.name, pod)
	e.awaitSample(t, query, age, func(got float64) bool { return got == want })
}

// awaitSample waits until Prometheus has one series of a query, with a wanted sample that is at least so old.
func (e *environment) awaitSample(t *testing.T, query string, age time.Duration, wanted func(float64) bool) {
	t.Helper()
	reader, err := prometheus.New(e.prometheus, prometheus.DefaultTimeout, nil)
	if err != nil {
		t.Fatal(err)
	}
	await(t, rolloutTimeout, fmt.Sprintf("Prometheus has a sample of %s that is %s old", query, age), func(ctx context.Context) error {
		until := time.Now().Add(-age)
		series, err := reader.Range(ctx, query, until.Add(-time.Minute), until, prometheus.Step)
		if err != nil {
			return err
		}
		if len(series) != 1 {
			return fmt.Errorf("%d series", len(series))
		}
		if got := series[0].Points[len(series[0].Points)-1].V; !wanted(got) {
			return fmt.Errorf("its value is %v", got)
		}
		return nil
	})
}

// prometheusConfig scrapes the exporter of the tests, and queue-proxy as in docs/judge/metrics.md. Debian's
// package has no discovery for Kubernetes: podPorts replaces it.
const prometheusConfig = `
global: {scrape_interval: 2s}
scrape_configs:
- {job_name: e2e, honor_labels: true, static_configs: [{targets: ['%s']}]}
- job_name: knative-queue-proxy
  http_sd_configs: [{url: 'http://%s', refresh_interval: 2s}]
  relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_container_port_name], regex: http-usermetric, action: keep}
  - {source_labels: [__meta_kubernetes_namespace], target_label: namespace}
  - {source_labels: [__meta_kubernetes_pod_name], target_label: pod}
`

// startPrometheus starts Debian's Prometheus with an exporter of the tests, and makes
// function judge ask it.
func (e *environment) startPrometheus(t *testing.T) {
	t.Helper()
	if _, err := e.kube.RbacV1().ClusterRoles().Get(t.Context(), "breakwater-function-judge", metav1.GetOptions{}); apierrs.IsNotFound(err) {
		t.Fatal("config/judge is not installed: run `make up`")
	}
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Fatal("Debian's package prometheus is not installed: apt-get install --no-install-recommends prometheus")
	}
	host := e.nodeAddress(t)
	port, err := freeport.FindOn(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	address := net.JoinHostPort(host, strconv.Itoa(port))
	dir := t.TempDir()
	config := fmt.Sprintf(prometheusConfig, serve(t, host, e.exporter(t)), serve(t, host, e.podPorts()))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	cmd := exec.CommandContext(ctx, program, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() })
	await(t, shortTimeout, "Prometheus is ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/-/ready", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("status %s", response.Status)
		}
		return nil
	})
	e.prometheus = "http://" + address
	e.setConfigMap(t, v1alpha1.SystemNamespace, "config-judge", map[string]string{"prometheus-url": e.prometheus})
}

// nodeAddress returns an address of this host that pods can reach.
func (e *environment) nodeAddress(t *testing.T) string {
	t.Helper()
	endpoints, err := e.kube.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || len(endpoints.Endpoints) == 0 {
		t.Fatalf("get the address of the API server: %v", err)
	}
	return endpoints.Endpoints[0].Addresses[0]
}

// serve serves a handler and returns its address.
func serve(t *testing.T, host string, handler http.Handler) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }() // ends with Close
	t.Cleanup(func() { _ = server.Close() })
	return l.Addr().String()
}

// exporter shows the counters of the exported pods: 50 requests per second since their
// creation, of which 0.2 % fail, or 7 % if the release is bad, and their restarts. It reads a
// cache, so that no scrape waits for the API server.
func (e *environment) exporter(t *testing.T) http.Handler {
	t.Helper()
	factory := informers.NewSharedInformerFactoryWithOptions(e.kube, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = exported }))
	lister := factory.Core().V1().Pods().Lister()
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	factory.WaitForCacheSync(t.Context().Done())
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		pods, err := lister.List(labels.Everything())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		for _, p := range pods {
			requests, share := 50*time.Since(p.CreationTimestamp.Time).Seconds(), 0.002
			if p.Annotations[builder.Marker] == bad {
				share = 0.07
			}
			_, _ = fmt.Fprintf(w, "e2e_requests_total{namespace=%q,pod=%q} %d\n", p.Namespace, p.Name, int(requests))
			_, _ = fmt.Fprintf(w, "e2e_errors_total{namespace=%q,pod=%q} %d\n", p.Namespace, p.Name, int(requests*share))
			_, _ = fmt.Fprintf(w, "kube_pod_created{namespace=%q,pod=%q} %d\n", p.Namespace, p.Name, p.CreationTimestamp.Unix())
			_, _ = fmt.Fprintf(w, "kube_pod_container_status_restarts_total{namespace=%q,pod=%q} %s\n", p.Namespace, p.Name, cmp.Or(p.Annotations[restartsKey], "0"))
		}
	})
}
