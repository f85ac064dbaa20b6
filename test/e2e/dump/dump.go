// Package dump keeps what a test saw that failed: the objects of its
// namespaces, Events, and what the parts of Breakwater said meanwhile.
package dump

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/disruption"
	"github.com/breakwater-dev/breakwater/test/e2e/judge"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// kinds are what is kept of a namespace.
const kinds = "deployments,replicasets,pods,changeworkloads,changepods"

// folder collects what could not be kept.
type folder struct {
	path string
	errs []error
}

// Keep writes the state into a folder, which it makes. It keeps what it can;
// the error says what it could not.
func Write(ctx context.Context, kube kubernetes.Interface, path string, since time.Time, namespaces ...string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("keep the state: %w", err)
	}
	f := &folder{path: path}
	for _, n := range namespaces {
		prefix := ""
		if len(namespaces) > 1 {
			prefix = n + "-"
		}
		f.command(ctx, prefix+"objects.txt", "get", kinds, "-n", n, "-o", "wide")
		f.command(ctx, prefix+"objects.yaml", "get", kinds, "-n", n, "-o", "yaml")
		f.command(ctx, prefix+"events.txt", "get", "events", "-n", n, "--sort-by=.lastTimestamp")
	}
	f.command(ctx, "system.txt", "get", "pods,ksvc,broker,trigger,opsconfiginfo", "-n", v1alpha1.SystemNamespace, "-o", "wide")
	f.command(ctx, "system-events.txt", "get", "events", "-n", v1alpha1.SystemNamespace, "--sort-by=.lastTimestamp")
	f.command(ctx, "eventing.txt", "get", "pods", "-n", disruption.Eventing, "-o", "wide")
	for _, from := range []string{v1alpha1.SystemNamespace, judge.Namespace, disruption.Eventing} {
		pods, err := kube.CoreV1().Pods(from).List(ctx, metav1.ListOptions{})
		if err != nil {
			f.errs = append(f.errs, fmt.Errorf("keep the logs: %w", err))
			continue
		}
		for i := range pods.Items {
			f.logs(ctx, kube, &pods.Items[i], since)
		}
	}
	return errors.Join(f.errs...)
}

func (f *folder) write(file string, content []byte) {
	if err := os.WriteFile(filepath.Join(f.path, file), content, 0o644); err != nil {
		f.errs = append(f.errs, fmt.Errorf("keep the state: %w", err))
	}
}

func (f *folder) command(ctx context.Context, file string, args ...string) {
	r, err := kubectl.Kubectl{}.Run(ctx, args...)
	if err != nil {
		f.errs = append(f.errs, fmt.Errorf("keep the state: %w", err))
		return
	}
	f.write(file, []byte(r.String()))
}

// logs keeps what the containers of a pod have said since a time, those before
// a restart included.
func (f *folder) logs(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, since time.Time) {
	for _, status := range pod.Status.ContainerStatuses {
		for _, previous := range []bool{false, true} {
			if previous && status.RestartCount == 0 {
				continue
			}
			raw, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: status.Name, Previous: previous,
				SinceTime: ptr.To(metav1.NewTime(since)), LimitBytes: ptr.To[int64](1 << 20),
			}).DoRaw(ctx)
			if err != nil {
				raw = []byte(err.Error())
			}
			f.write(fmt.Sprintf("log-%s-%s-%t.txt", pod.Name, status.Name, previous), raw)
		}
	}
}
