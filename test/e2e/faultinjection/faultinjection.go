// Package faultinjection finds and kills components of the system for tests.
package faultinjection

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
	"github.com/breakwater-dev/breakwater/test/pause"
)

// Eventing is the namespace of Knative Eventing.
const Eventing = "knative-eventing"

// Target is a component of the system that a test disturbs.
type Target struct {
	Namespace string
	// Selector selects its pods.
	Selector string
}

func (t Target) String() string { return t.Namespace + "/" + t.Selector }

// Dispatcher delivers the events of the in-memory channel. Killing it loses the
// events that it holds.
func Dispatcher() Target {
	return Target{Eventing, "messaging.knative.dev/channel=in-memory-channel,messaging.knative.dev/role=dispatcher"}
}

// Ingress receives the events that are sent to the Broker.
func Ingress() Target { return Target{Eventing, "eventing.knative.dev/brokerRole=ingress"} }

// Filter sends events from the channel to functions.
func Filter() Target { return Target{Eventing, "eventing.knative.dev/brokerRole=filter"} }

// Component returns the pods of a Deployment of Breakwater.
func Component(name string) Target {
	return Target{v1alpha1.SystemNamespace,
		"app.kubernetes.io/part-of=breakwater,app.kubernetes.io/component=" + name + ",!serving.knative.dev/service"}
}

// Function returns the pods of a function of Breakwater.
func Function(name string) Target {
	return Target{v1alpha1.SystemNamespace, "serving.knative.dev/service=" + name}
}

// Server returns the pods of the double of the AlterShield server.
func Server() Target { return Target{serverdouble.Namespace, "app.kubernetes.io/name=altershield"} }

// Pods returns the pods of a target that are not terminating.
func (t Target) Pods(ctx context.Context, kube kubernetes.Interface) ([]corev1.Pod, error) {
	list, err := kube.CoreV1().Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: t.Selector})
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			out = append(out, pod)
		}
	}
	return out, nil
}

// Kill kills a pod and returns the method.
//
// On the embedded cluster each process of the pod gets SIGKILL, because its
// processes run on this machine. Otherwise, or when the pod has no process, the
// pod is deleted without a grace period: it gets SIGTERM and one second.
func Kill(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) (how string, err error) {
	killed, err := KillProcesses(pod)
	if err != nil {
		return "", err
	}
	if killed > 0 {
		return fmt.Sprintf("SIGKILL to %d processes", killed), nil
	}
	return "deleted", Delete(ctx, kube, pod)
}

// KillProcesses sends SIGKILL to each process of a pod and returns their
// number. The pod keeps its disk. It needs the embedded cluster.
func KillProcesses(pod *corev1.Pod) (int, error) {
	pids, err := processes(pod)
	if err != nil {
		return 0, err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("kill process %d of pod %s: %w", pid, pod.Name, err)
		}
	}
	return len(pids), nil
}

// KillSandbox kills the sandbox process of a pod. The kubelet creates a sandbox
// with another address and restarts all containers. It needs the embedded
// cluster.
func KillSandbox(pod *corev1.Pod) error {
	pids, err := find(func(groups string) bool {
		return strings.Contains(groups, string(pod.UID)) && !inContainerOf(pod, groups)
	})
	if err != nil {
		return err
	}
	if len(pids) != 1 {
		return fmt.Errorf("pod %s has %d sandbox processes on this machine", pod.Name, len(pids))
	}
	return syscall.Kill(pids[0], syscall.SIGKILL)
}

// Pause stops each process of a pod until resume is called, so requests to the
// pod wait. It needs the embedded cluster.
func Pause(pod *corev1.Pod) (resume func() error, err error) {
	pids, err := processes(pod)
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("pod %s has no processes on this machine", pod.Name)
	}
	each := func(do func(pid int) error) error {
		for _, pid := range pids {
			if err := do(pid); err != nil {
				return fmt.Errorf("pod %s: %w", pod.Name, err)
			}
		}
		return nil
	}
	return func() error { return each(pause.Resume) }, each(pause.Process)
}

// Delete deletes a pod without a grace period. NotFound is not an error.
func Delete(ctx context.Context, kube kubernetes.Interface, pod *corev1.Pod) error {
	err := kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if apierrs.IsNotFound(err) {
		return nil
	}
	return err
}

// processes returns the processes on this machine whose control group has the
// id of a container of the pod.
func processes(pod *corev1.Pod) ([]int, error) {
	return find(func(groups string) bool { return inContainerOf(pod, groups) })
}

// find returns the processes of this machine whose control group matches.
func find(matches func(groups string) bool) ([]int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range groups {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // the process has ended
		}
		if !matches(string(raw)) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

func inContainerOf(pod *corev1.Pod, groups string) bool {
	for _, status := range pod.Status.ContainerStatuses {
		_, id, found := strings.Cut(status.ContainerID, "://")
		if found && len(id) == 64 && strings.Contains(groups, id) && strings.Contains(groups, string(pod.UID)) {
			return true
		}
	}
	return false
}
