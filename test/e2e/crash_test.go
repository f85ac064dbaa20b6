//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// kill kills every running pod of a part. A function is waited for: at zero
// there is nothing to kill.
//
// On the embedded cluster, whose processes are this machine's, each process of
// the pods gets SIGKILL. Elsewhere the pods are deleted without a grace period,
// which is nearly as rude: they get SIGTERM and a second.
func (e *environment) kill(t *testing.T, p part) {
	t.Helper()
	await(t, rollout, p.String()+" runs and is killed", func(ctx context.Context) error {
		pods, err := e.pods(ctx, p)
		if err != nil {
			return err
		}
		killed := 0
		for i := range pods {
			if pods[i].Status.Phase != corev1.PodRunning {
				continue
			}
			how, err := e.killPod(ctx, &pods[i])
			if err != nil {
				return err
			}
			killed++
			t.Logf("%s %s: %s", time.Now().Format("15:04:05.000"), pods[i].Name, how)
		}
		if killed == 0 {
			return fmt.Errorf("%d pods, none of them runs", len(pods))
		}
		return nil
	})
}

func (e *environment) killPod(ctx context.Context, pod *corev1.Pod) (how string, err error) {
	pids, err := processes(pod)
	if err != nil {
		return "", err
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return "", fmt.Errorf("kill process %d of pod %s: %w", pid, pod.Name, err)
		}
	}
	if len(pids) > 0 {
		return fmt.Sprintf("SIGKILL to %d processes", len(pids)), nil
	}
	err = e.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	if apierrs.IsNotFound(err) {
		err = nil
	}
	return "deleted", err
}

// processes finds the processes of a pod's containers on this machine: those
// in a control group that has the id of one of them.
func processes(pod *corev1.Pod) ([]int, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, path := range groups {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		if !inContainerOf(pod, string(raw)) {
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
