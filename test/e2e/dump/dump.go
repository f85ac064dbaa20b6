// Package dump writes the state of a failed test: the objects and Events of its
// namespaces, and the logs of Breakwater.
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

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/faultinjection"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// kinds are the kinds that Write reads in a namespace.
const kinds = "deployments,replicasets,pods,changeworkloads,changepods"

// folder is the folder of a dump and the errors of writing it.
type folder struct {
	path string
	errs []error
}

// Write creates a folder and writes the state into it. It continues after an
// error and returns all errors.
func Write(ctx context.Context, kube kubernetes.Interface, path string, since time.Time, namespaces ...string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("write the state: %w", err)
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
	f.command(ctx, "eventing.txt", "get", "pods", "-n", faultinjection.Eventing, "-o", "wide")
	for _, from := range []string{v1alpha1.SystemNamespace, serverdouble.Namespace, faultinjection.Eventing} {
		pods, err := kube.CoreV1().Pods(from).List(ctx, metav1.ListOptions{})
		if err != nil {
			f.errs = append(f.errs, fmt.Errorf("write the logs: %w", err))
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
		f.errs = append(f.errs, fmt.Errorf("write the state: %w", err))
	}
}

func (f *folder) command(ctx context.Context, file string, args ...string) {
	r, err := kubectl.Kubectl{}.Run(ctx, args...)
	if err != nil {
		f.errs = append(f.errs, fmt.Errorf("write the state: %w", err))
		return
	}
	f.write(file, []byte(r.String()))
}

// logs writes the logs of a pod's containers since a time, including containers
// before a restart.
func (f *folder) logs(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod, since time.Time) {
	for _, status := range pod.Status.ContainerStatuses {
		for _, previous := range []bool{false, true} {
			if previous && status.RestartCount == 0 {
				continue
			}
			raw, err := kube.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
				Container: status.Name, Previous: previous,
				SinceTime: new(metav1.NewTime(since)), LimitBytes: new(int64(1 << 20)),
			}).DoRaw(ctx)
			if err != nil {
				raw = []byte(err.Error())
			}
			f.write(fmt.Sprintf("log-%s-%s-%t.txt", pod.Name, status.Name, previous), raw)
		}
	}
}
