package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

// until waits for a condition that no single kubectl command can wait for.
func until(ctx context.Context, what string, limit time.Duration, holds func(context.Context) (bool, error)) error {
	if err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, limit, true, holds); err != nil {
		return fmt.Errorf("wait until %s: %w", what, err)
	}
	return nil
}

// awaitZero waits until the functions that scale to zero have no pods.
func (s *steps) awaitZero(ctx context.Context) error {
	const selector = "serving.knative.dev/service in (submit,verdict,report,deadletter)"
	return until(ctx, "the functions are scaled to zero", 5*time.Minute, func(ctx context.Context) (bool, error) {
		pods, err := s.kube.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: selector})
		return err == nil && len(pods.Items) == 0, err
	})
}

// release waits for the ChangeWorkload of the latest release of workload web, and returns its name.
func (s *steps) release(ctx context.Context, namespace, resource string) (name string, err error) {
	version := `jsonpath={.metadata.labels.` + strings.ReplaceAll(v1alpha1.VersionKey, ".", `\.`) + `}`
	err = until(ctx, "the release has a ChangeWorkload", time.Minute, func(ctx context.Context) (bool, error) {
		r, err := kubectl.Kubectl{}.Run(ctx, "get", resource, "web", "-n", namespace, "-o", version)
		if err != nil || r.Code != 0 {
			return false, err
		}
		name = v1alpha1.ChangeWorkloadName("web", r.Stdout)
		r, err = kubectl.Kubectl{}.Run(ctx, "get", "changeworkload", name, "-n", namespace)
		return r.Code == 0, err
	})
	return name, err
}

// versionOf reads the version in the name of a ChangeWorkload.
func versionOf(release string) string {
	return release[strings.LastIndex(release, "--x--")+len("--x--"):]
}

// await waits for a condition of a ChangeWorkload, as a CI job does.
func (s *steps) await(ctx context.Context, namespace, release, condition string) error {
	_, err := s.kubectl(ctx, "wait", "changeworkload", release, "-n", namespace, "--for="+condition, waitTimeout)
	return err
}

// awaitOnlyOne waits until one ChangeWorkload is left and the Deployment is no
// longer suspended, and shows them.
func (s *steps) awaitOnlyOne(ctx context.Context, release string) error {
	err := until(ctx, "only the repair is left", time.Minute, func(ctx context.Context) (bool, error) {
		d, err := s.kube.AppsV1().Deployments(demo).Get(ctx, "web", metav1.GetOptions{})
		if err != nil || v1alpha1.SuspensionOf(d.Labels) != "" {
			return false, err
		}
		r, err := kubectl.Kubectl{}.Run(ctx, "get", "changeworkloads", "-n", demo, "-o", "name")
		return strings.Count(r.Stdout, "\n") == 1 && strings.Contains(r.Stdout, release), err
	})
	if err != nil {
		return err
	}
	return s.all(ctx, []string{"get", "changeworkloads", "-n", demo}, []string{"get", "changepods", "-n", demo})
}

// scaleToZero waits until the functions are scaled to zero.
func (s *steps) scaleToZero(ctx context.Context) error {
	s.title("Scale to zero")
	s.explain("No release is in progress. (Waiting until the functions are scaled to zero.)")
	if err := s.awaitZero(ctx); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "get", "pods", "-n", system)
	return err
}
