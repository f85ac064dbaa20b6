package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/kubectl"
)

const (
	// shop is the namespace of the sample shop; its Prometheus finds pods only there.
	shop       = "demo-shop"
	monitoring = "monitoring"
	// history is the age of the old pods at the release: the judge does not compare their
	// first minute.
	history = 2 * time.Minute
)

// judgeMetrics shows a release that fails 7 % of its requests. Function judge finds it in the
// metrics of a real Prometheus, and a rollback ends it.
func (s *steps) judgeMetrics(ctx context.Context) (err error) {
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, s.removeShop(last))
	}()
	return inOrder(ctx, s.removeShop, s.buildPlugin, s.installShop, s.configureJudge, s.releaseFailingRequests, s.rollBack)
}

// buildPlugin builds the kubectl plugin and adds its folder to PATH.
func (s *steps) buildPlugin(ctx context.Context) error {
	folder, err := filepath.Abs("bin")
	if err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", folder+"/", "./cmd/kubectl-breakwater").CombinedOutput(); err != nil {
		return fmt.Errorf("build the kubectl plugin: %w\n%s", err, out)
	}
	return os.Setenv("PATH", folder+string(os.PathListSeparator)+os.Getenv("PATH"))
}

func (s *steps) installShop(ctx context.Context) error {
	s.title("A judge without a server")
	s.explain("Breakwater can also judge by the metrics of Prometheus. The demo installs a Prometheus and\n" +
		"a sample shop: service front with four pods, which calls catalogue, and 40 requests per second.")
	if err := s.all(ctx,
		[]string{"apply", "-f", "test/shop/config/110-prometheus.yaml"},
		[]string{"create", "namespace", shop},
		[]string{"label", "namespace", shop, v1alpha1.NamespaceLabel + "=" + v1alpha1.NamespaceEnabled},
	); err != nil {
		return err
	}
	command := []string{"ko", "apply", "--sbom=none", "-f", "config/100-shop.yaml", "--", "-n", shop}
	s.print("\n%s$ cd test/shop; %s%s\n", s.bold, strings.Join(command, " "), s.plain)
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = "test/shop"
	var output bytes.Buffer // shown only after an error
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	return s.all(ctx,
		[]string{"wait", "deployments", "--all", "-n", shop, "--for=condition=Available", waitTimeout},
		[]string{"rollout", "status", "deployment", "front", "-n", shop, waitTimeout},
		[]string{"rollout", "status", "deployment", "prometheus", "-n", monitoring, waitTimeout},
	)
}

func (s *steps) configureJudge(ctx context.Context) error {
	s.title("A MetricCheck")
	s.explain("A MetricCheck makes function judge compare new and old pods at each release of the namespace.\n" +
		"It needs no query: the judge knows the usual metrics. ConfigMap config-judge has the URL of\n" +
		"Prometheus.")
	if err := s.all(ctx,
		[]string{"wait", "changeworkloads", "--all", "-n", shop, "--for=condition=Succeeded", waitTimeout},
		[]string{"apply", "-n", shop, "-f", manifests + "metriccheck.yaml"},
	); err != nil {
		return err
	}
	s.explain("(Waiting until the pods have run for two minutes, so that there is something to compare with.)")
	return until(ctx, "the pods of front are two minutes old", 2*history, func(ctx context.Context) (bool, error) {
		pods, err := s.kube.CoreV1().Pods(shop).List(ctx, metav1.ListOptions{LabelSelector: "app=front"})
		if err != nil {
			return false, err
		}
		for i := range pods.Items {
			if time.Since(pods.Items[i].CreationTimestamp.Time) < history {
				return false, nil
			}
		}
		return len(pods.Items) == 4, nil
	})
}

func (s *steps) releaseFailingRequests(ctx context.Context) error {
	s.title("A release that fails 7 % of its requests")
	s.explain("Nothing is scripted: the new version really fails them. The judge looks at the new pods every\n" +
		"20 s, for four minutes at most, and fails them when the difference is certain:")
	if err := s.all(ctx,
		[]string{"patch", "deployment", "front", "-n", shop, "--patch-file", "test/shop/config/front-v2.yaml"},
		[]string{"wait", "deployment", "front", "-n", shop, "--for=jsonpath={.spec.paused}=true", "--timeout=300s"},
	); err != nil {
		return errors.Join(err, s.showCause(ctx))
	}
	s.explain("The release is held. The reason, and what can be done:")
	r, err := s.kubectl(ctx, "breakwater", "explain", "deployment/front", "-n", shop)
	if err != nil {
		return err
	}
	if !strings.Contains(r.Stdout, "of new pods against") {
		return fmt.Errorf("the release was held for another reason: %s", r.Stdout)
	}
	return s.denied(ctx, "deployment front is suspended", "set", "env", "deployment/front", "-n", shop, "VERSION=3")
}

// showCause shows why a step may have failed: what it created is removed at the end of the chapter.
func (s *steps) showCause(ctx context.Context) error {
	return s.all(ctx,
		[]string{"breakwater", "explain", "deployment/front", "-n", shop},
		[]string{"get", "events", "-n", shop, "--field-selector", "type=Warning", "--sort-by", ".metadata.creationTimestamp"},
	)
}

func (s *steps) rollBack(ctx context.Context) error {
	s.title("A rollback")
	s.explain("The template of the version that succeeded last was saved, and is admitted during the suspension:")
	if err := s.all(ctx,
		[]string{"breakwater", "rollback", "deployment/front", "-n", shop},
		[]string{"rollout", "status", "deployment", "front", "-n", shop, "--timeout=300s"},
	); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "breakwater", "get", "deployment/front", "-n", shop)
	return err
}

// removeShop removes what the chapter created, also in a run that was interrupted.
func (s *steps) removeShop(ctx context.Context) error {
	for _, args := range [][]string{
		{"delete", "namespace", shop, monitoring, "--ignore-not-found", waitTimeout},
		{"delete", "clusterrole,clusterrolebinding", "monitoring-prometheus", "--ignore-not-found"},
	} {
		if r, err := (kubectl.Kubectl{}).Run(ctx, args...); err != nil || r.Code != 0 {
			return fmt.Errorf("clean up: %w\n%s", err, r)
		}
	}
	return nil
}
