//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/judge"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// dumps is where a failed test leaves what it saw, from this folder.
const dumps = "../../bin/e2e"

// kinds are what is kept of the namespace of a failed test.
const kinds = "deployments,replicasets,pods,changeworkloads,changepods"

// dump keeps the state of a namespace, and what the parts of Breakwater said
// meanwhile.
func (e *environment) dump(ctx context.Context, t *testing.T, namespace string, since time.Time) {
	dir := filepath.Join(dumps, regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(t.Name(), "-"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Log("keep the state:", err)
		return
	}
	keep := func(file string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o644); err != nil {
			t.Log("keep the state:", err)
		}
	}
	commands := map[string][]string{
		"objects.txt":       {"get", kinds, "-n", namespace, "-o", "wide"},
		"objects.yaml":      {"get", kinds, "-n", namespace, "-o", "yaml"},
		"events.txt":        {"get", "events", "-n", namespace, "--sort-by=.lastTimestamp"},
		"system.txt":        {"get", "pods,ksvc,broker,trigger,opsconfiginfo", "-n", v1alpha1.SystemNamespace, "-o", "wide"},
		"system-events.txt": {"get", "events", "-n", v1alpha1.SystemNamespace, "--sort-by=.lastTimestamp"},
		"eventing.txt":      {"get", "pods", "-n", "knative-eventing", "-o", "wide"},
	}
	for file, args := range commands {
		r, err := kubectl.Kubectl{}.Run(ctx, args...)
		if err != nil {
			t.Log("keep the state:", err)
			continue
		}
		keep(file, []byte(r.String()))
	}
	for _, from := range []string{v1alpha1.SystemNamespace, judge.Namespace, "knative-eventing"} {
		pods, err := e.kube.CoreV1().Pods(from).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Log("keep the logs:", err)
			continue
		}
		for i := range pods.Items {
			e.dumpLogs(ctx, &pods.Items[i], since, keep)
		}
	}
	t.Logf("the state of the failed test is in %s", dir)
}

// dumpLogs keeps what the containers of a pod have said since a time, those
// before a restart included.
func (e *environment) dumpLogs(ctx context.Context, pod *corev1.Pod, since time.Time, keep func(string, []byte)) {
	for _, status := range pod.Status.ContainerStatuses {
		for _, previous := range []bool{false, true} {
			if previous && status.RestartCount == 0 {
				continue
			}
			raw, err := e.kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: status.Name, Previous: previous,
				SinceTime: ptr.To(metav1.NewTime(since)), LimitBytes: ptr.To[int64](1 << 20),
			}).DoRaw(ctx)
			if err != nil {
				raw = []byte(err.Error())
			}
			keep(fmt.Sprintf("log-%s-%s-%t.txt", pod.Name, status.Name, previous), raw)
		}
	}
}
