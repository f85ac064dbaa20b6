//go:build bench

package perf

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	versioned "github.com/breakwater-dev/breakwater/client/clientset/versioned"
)

const (
	// manyPods in as many Deployments as a large namespace has.
	manyPods        = 10_000
	manyDeployments = 100
	// idleFor is how long CPU is measured for while nothing happens.
	idleFor = time.Minute
	// manyLimit is for all of them to come up, or to be found.
	manyLimit = 15 * time.Minute
	// targetMiB is what a controller may take with all of them watched.
	targetMiB = 150
)

// TestManyPods measures what pods cost a controller that has nothing to do with
// them yet: in a namespace that is not opted in, and in one that is. It reads
// /proc, so the cluster has to run on this machine. The table is printed;
// docs/scale.md keeps one.
func TestManyPods(t *testing.T) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = 200, 400
	s := &scale{kube: kubernetes.NewForConfigOrDie(config), change: versioned.NewForConfigOrDie(config)}
	ctx := t.Context()
	var table strings.Builder
	table.WriteString("| | controller | RSS | peak | CPU in an idle minute |\n|---|---|---|---|---|\n")
	row := func(when string) {
		for i, c := range s.idle(ctx, t) {
			fmt.Fprintf(&table, "| %s | %d | %d MiB | %d MiB | %.2f s |\n", when, i+1, c.rss, c.peak, c.cpu.Seconds())
			if c.rss >= targetMiB {
				t.Errorf("%s: %d MiB, want less than %d", when, c.rss, targetMiB)
			}
		}
	}
	row("nothing")
	s.fill(ctx, t)
	row(fmt.Sprintf("%d pods, not opted in", manyPods))
	s.optIn(ctx, t)
	row(fmt.Sprintf("%d pods, opted in", manyPods))
	t.Log("\n" + table.String())
}

const crowd = "bench-scale"

type scale struct {
	kube   kubernetes.Interface
	change versioned.Interface
}

// fill makes the pods. They name their node, so that no scheduler is measured.
func (s *scale) fill(ctx context.Context, t *testing.T) {
	t.Helper()
	_, err := s.kube.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: crowd}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.kube.CoreV1().Namespaces().Delete(context.Background(), crowd, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	for i := range manyDeployments {
		d := deployment(crowd)
		d.Name = fmt.Sprintf("web-%d", i)
		labels := map[string]string{"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": d.Name, "app.kubernetes.io/version": "1.2.3"}
		d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		d.Spec.Replicas = ptr.To[int32](manyPods / manyDeployments)
		d.Spec.Template.Labels = labels
		d.Spec.Template.Spec.NodeName = fmt.Sprintf("simulated-%04d", i%10)
		if _, err := s.kube.AppsV1().Deployments(crowd).Create(ctx, d, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.await(ctx, t, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == *d.Spec.Replicas })
}

// optIn opts the namespace in: what runs is a baseline.
func (s *scale) optIn(ctx context.Context, t *testing.T) {
	t.Helper()
	_, err := s.kube.CoreV1().Namespaces().Patch(ctx, crowd, types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, v1alpha1.NamespaceLabel, v1alpha1.NamespaceEnabled), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, manyLimit, true, func(ctx context.Context) (bool, error) {
		list, err := s.change.AppV1alpha1().ChangeWorkloads(crowd).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		done := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == v1alpha1.WorkloadSuccess {
				done++
			}
		}
		return done == manyDeployments, nil
	})
	if err != nil {
		t.Fatalf("not every Deployment has its baseline: %v", err)
	}
}

func (s *scale) await(ctx context.Context, t *testing.T, ready func(*appsv1.Deployment) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 2*time.Second, manyLimit, true, func(ctx context.Context) (bool, error) {
		list, err := s.kube.AppsV1().Deployments(crowd).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for i := range list.Items {
			if !ready(&list.Items[i]) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		t.Fatalf("the pods did not come up: %v", err)
	}
}

// process is one controller.
type process struct {
	// rss and peak are in MiB.
	rss, peak int
	cpu       time.Duration
}

// idle measures the controllers over a minute in which nobody does anything.
func (s *scale) idle(ctx context.Context, t *testing.T) []process {
	t.Helper()
	pids := s.pids(ctx, t)
	before := make([]time.Duration, len(pids))
	for i, pid := range pids {
		before[i] = cpuOf(t, pid)
	}
	select {
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	case <-time.After(idleFor):
	}
	out := make([]process, len(pids))
	for i, pid := range pids {
		out[i] = process{rss: memoryOf(t, pid, "VmRSS"), peak: memoryOf(t, pid, "VmHWM"), cpu: cpuOf(t, pid) - before[i]}
	}
	return out
}

// pids are the controllers' processes on this machine.
func (s *scale) pids(ctx context.Context, t *testing.T) []string {
	t.Helper()
	list, err := s.kube.CoreV1().Pods(v1alpha1.SystemNamespace).List(ctx, metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/part-of=breakwater,app.kubernetes.io/component=controller"})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, pod := range list.Items {
		for _, status := range pod.Status.ContainerStatuses {
			_, id, _ := strings.Cut(status.ContainerID, "://")
			for _, path := range groups {
				if raw, err := os.ReadFile(path); err == nil && id != "" && strings.Contains(string(raw), id) {
					pids = append(pids, filepath.Base(filepath.Dir(path)))
				}
			}
		}
	}
	if len(pids) == 0 {
		t.Fatal("no controller runs on this machine")
	}
	return pids
}

// memoryOf reads a value of /proc/<pid>/status, in MiB.
func memoryOf(t *testing.T, pid, key string) int {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, key+":"); ok {
			kib, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib / 1024
		}
	}
	t.Fatalf("process %s has no %s", pid, key)
	return 0
}

// cpuOf is what a process has used, in user and system mode.
func cpuOf(t *testing.T, pid string) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// The second field is the command in brackets; times are fields 14 and 15,
	// in hundredths of a second.
	_, rest, _ := strings.Cut(string(raw), ") ")
	fields := strings.Fields(rest)
	var ticks int
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
