//go:build bench

package perf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kelseyhightower/envconfig"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
	"github.com/breakwater-dev/breakwater/test/builder"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

const (
	name    = "web"
	account = "system:serviceaccount:" + v1alpha1.SystemNamespace + ":"
	// benchLabel is a label of all objects that the benchmark creates.
	benchLabel = "test.breakwater.dev/bench"
	// quickPods is the number of pods of a release, and of a run of deletions, of a quick run.
	quickPods = 200
	// pollInterval is the polling interval.
	pollInterval = 100 * time.Millisecond
)

// The results with the default sizes, and those with other sizes.
var (
	fullResults    = results{Page: "../../docs/performance.md", Figures: "../../docs/performance.json"}
	partialResults = results{Page: "../../bin/performance.md", Figures: "../../bin/performance.json"}
)

// options are the environment variables. Results with other than the default
// sizes are not written to docs.
type options struct {
	// AuditLog is the path of the API server's audit log.
	AuditLog string `envconfig:"AUDIT_LOG" required:"true"`
	// Pods is the number of pods of a release, IdlePods that of the idle measurement.
	Pods     int `envconfig:"BENCH_PODS" default:"1000"`
	IdlePods int `envconfig:"BENCH_IDLE_PODS" default:"10000"`
	// Deletions is the number of pods of a run of the measurement of budgets.
	Deletions int `envconfig:"BENCH_DELETIONS" default:"400"`
	// Releases is the number of concurrent releases, Budgets that of budgets with one pod each.
	Releases int `envconfig:"BENCH_RELEASES" default:"100"`
	Budgets  int `envconfig:"BENCH_BUDGETS" default:"1000"`
	// Quick: small sizes, for a run of about five minutes.
	Quick bool `envconfig:"BENCH_QUICK"`
	// Limit is the time limit of each measurement.
	Limit time.Duration `envconfig:"BENCH_LIMIT" default:"40m"`
}

// benchmark has the options of a measurement and the clients of its cluster.
type benchmark struct {
	options
	config *rest.Config
	kube   kubernetes.Interface
	change versioned.Interface
	double *serverdouble.Client
	log    func(string, ...any)
	// idleRate is the CPU that the idle machine uses, in cores.
	idleRate float64
	// podRuns counts the runs that created pods; pod names contain it.
	podRuns int
}

// newBenchmark connects to the cluster and cleans up, now and after the test. An
// interrupt ends the test like its time limit.
func newBenchmark(t *testing.T) (*benchmark, context.Context) {
	t.Helper()
	b := &benchmark{double: serverdouble.New(nil), log: t.Logf}
	if err := envconfig.Process("", &b.options); err != nil {
		t.Fatalf("%v: run make bench", err)
	}
	if b.Quick {
		b.Pods, b.Deletions = quickPods, quickPods
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	b.config = config
	b.kube, b.change = kubernetes.NewForConfigOrDie(config), versioned.NewForConfigOrDie(config)
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithTimeout(ctx, b.Limit)
	t.Cleanup(func() { cancel(); stop() })
	if err := b.cleanUp(ctx); err != nil {
		t.Fatal("clean up after an earlier run:", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		if err := b.cleanUp(ctx); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return b, ctx
}

// cleanUp deletes the objects of a run and waits for their removal, because
// terminating pods would distort the next measurement.
func (b *benchmark) cleanUp(ctx context.Context) error {
	if err := errors.Join(serverdouble.Unconfigure(ctx, b.kube), b.batches(ctx, false)); err != nil {
		return err
	}
	ours := metav1.ListOptions{LabelSelector: benchLabel}
	return b.await(ctx, "the namespaces of an earlier run are removed", func(ctx context.Context) (bool, error) {
		left, err := b.kube.CoreV1().Namespaces().List(ctx, ours)
		if err != nil {
			return false, err
		}
		for i := range left.Items {
			if left.Items[i].DeletionTimestamp != nil {
				continue
			}
			err := b.kube.CoreV1().Namespaces().Delete(ctx, left.Items[i].Name, metav1.DeleteOptions{})
			if err != nil && !apierrs.IsNotFound(err) && !apierrs.IsConflict(err) {
				return false, err
			}
		}
		return len(left.Items) == 0, nil
	})
}

func (b *benchmark) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, pollInterval, true, condition); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// batches turns batches of 10 % on or off.
func (b *benchmark) batches(ctx context.Context, on bool) error {
	patch := fmt.Sprintf(`{"spec":{"enable":%t,"content":"10"}}`, on)
	_, err := b.change.AppV1alpha1().OpsConfigInfoes(v1alpha1.SystemNamespace).Patch(ctx, "branch",
		types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("set batches to %t: %w", on, err)
	}
	return nil
}

// namespace creates a namespace that is not opted in.
func (b *benchmark) namespace(ctx context.Context, name string) error {
	_, err := b.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{benchLabel: "true"}},
	}, metav1.CreateOptions{})
	return err
}

// setOptIn opts a namespace in.
func (b *benchmark) setOptIn(ctx context.Context, namespace string) error {
	return b.label(ctx, namespace, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled)
}

// optIn opts a namespace in and waits for the baseline of its workload.
func (b *benchmark) optIn(ctx context.Context, namespace string) error {
	if err := b.setOptIn(ctx, namespace); err != nil {
		return err
	}
	return b.await(ctx, "the baseline of "+namespace+" is recorded", func(ctx context.Context) (bool, error) {
		c, err := b.release(ctx, namespace)
		return c != nil && c.Status.Phase == v1alpha1.ReleaseSuccess, err
	})
}

// label labels a namespace.
func (b *benchmark) label(ctx context.Context, namespace, key, value string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	_, err := b.kube.CoreV1().Namespaces().Patch(ctx, namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("label %s: %w", namespace, err)
	}
	return nil
}

// deploy creates a Deployment and waits for its pods.
func (b *benchmark) deploy(ctx context.Context, namespace string, pods int, options ...func(*appsv1.Deployment)) error {
	d := builder.Deployment(name, int32(pods), append(options, builder.Simulated)...)
	if _, err := b.kube.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{}); err != nil {
		return err
	}
	return b.complete(ctx, namespace)
}

// complete waits until the rollout is complete.
func (b *benchmark) complete(ctx context.Context, namespace string) error {
	return b.await(ctx, "the rollout in "+namespace+" is complete", func(ctx context.Context) (bool, error) {
		d, err := b.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return rolledOut(d), nil
	})
}

// allComplete waits until the rollouts of that many Deployments with the labels are complete, in one
// namespace or in all.
func (b *benchmark) allComplete(ctx context.Context, namespace, labels string, deployments int) error {
	return b.await(ctx, fmt.Sprintf("%d rollouts are complete", deployments), func(ctx context.Context) (bool, error) {
		list, err := b.kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{LabelSelector: labels, ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		complete := 0
		for i := range list.Items {
			if rolledOut(&list.Items[i]) {
				complete++
			}
		}
		return complete == deployments, nil
	})
}

// elapse waits for the span of a measurement.
func elapse(ctx context.Context, span time.Duration) error {
	select { // the span is the measurement
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func rolledOut(d *appsv1.Deployment) bool {
	s, want := d.Status, *d.Spec.Replicas
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.AvailableReplicas == want && s.Replicas == want
}

// release returns the ChangeWorkload of the current release, or nil.
func (b *benchmark) release(ctx context.Context, namespace string) (*v1alpha1.ChangeWorkload, error) {
	d, err := b.kube.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	current, known := v1alpha1.ReleaseOf(d.Annotations)
	if !known {
		return nil, nil
	}
	c, err := b.change.AppV1alpha1().ChangeWorkloads(namespace).Get(ctx,
		v1alpha1.ChangeWorkloadName(name, current.Version), metav1.GetOptions{})
	if apierrs.IsNotFound(err) || (err == nil && c.Spec.Attempt != current.Attempt) {
		return nil, nil
	}
	return c, err
}

// usage returns the CPU and memory of each component of the system, and the CPU of
// the whole machine.
func (b *benchmark) usage(ctx context.Context) (map[string]usage, error) {
	names := map[string]string{}
	for _, namespace := range []string{v1alpha1.SystemNamespace, faultinjection.Eventing, "knative-serving", serverdouble.Namespace} {
		pods, err := b.kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range pods.Items {
			names[string(pods.Items[i].UID)] = componentOf(&pods.Items[i])
		}
	}
	out, err := processes(names, []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kwok", "traefik", "containerd"})
	if err != nil {
		return nil, err
	}
	whole, err := machineCPU()
	out[machineComponent] = usage{CPU: whole}
	return out, err
}

// componentOf returns the name of the component to which a system pod belongs.
func componentOf(p *corev1.Pod) string {
	for _, label := range []string{functionLabel, "app.kubernetes.io/component"} {
		if value := p.Labels[label]; value != "" && p.Namespace == v1alpha1.SystemNamespace {
			return value
		}
	}
	// <Deployment>-<template>-<pod>
	parts := strings.Split(p.Name, "-")
	return p.Namespace + "/" + strings.Join(parts[:max(1, len(parts)-2)], "-")
}

// bodySize is a line of the API server's metrics.
var bodySize = regexp.MustCompile(`(?m)^apiserver_request_body_size_bytes_sum\{[^}]*resource="(?:changepods|changeworkloads)"[^}]*\} (\S+)$`)

// bytesWritten returns the number of bytes of all requests for our objects.
func (b *benchmark) bytesWritten(ctx context.Context) (sum int64, err error) {
	raw, err := b.kube.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return 0, fmt.Errorf("read the API server's metrics: %w", err)
	}
	for _, found := range bodySize.FindAllSubmatch(raw, -1) {
		n, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return 0, err
		}
		sum += int64(n)
	}
	return sum, nil
}

// machine describes the date and the machine of the measurement.
func machine() string {
	model := "a CPU of unknown model"
	if raw, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if found := regexp.MustCompile(`(?m)^model name\s*: (.*)$`).FindSubmatch(raw); found != nil {
			model = string(found[1])
		}
	}
	load := "?"
	if raw, err := os.ReadFile("/proc/loadavg"); err == nil {
		load, _, _ = strings.Cut(string(raw), " ")
	}
	return fmt.Sprintf("Measured on %s on one machine with %d cores (%s) that ran everything. The load average before the run was %s.",
		time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), model, load)
}

// count returns how often something is repeated, which is less in a quick run.
func (o options) count(full, quick int) int {
	if o.Quick {
		return quick
	}
	return full
}

// results returns the files of the results of this run.
func (o options) results() results {
	if o.Quick || o.Pods != 1000 || o.IdlePods != 10000 || o.Deletions != 400 || o.Releases != 100 || o.Budgets != 1000 {
		return partialResults
	}
	return fullResults
}

// keep writes a section of the results.
func (b *benchmark) keep(t *testing.T, title, body string, measured []figure) {
	t.Helper()
	t.Log("\n" + body)
	if err := b.results().keep(title, body, measured); err != nil {
		t.Error(err)
	}
}
