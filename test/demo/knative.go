package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
)

const (
	// services is the namespace of the Knative Service. It is kept for inspection.
	services = "demo-knative"
	// ksvc is Knative's short name of its Service; kubectl takes "service" as that of Kubernetes.
	ksvc = "ksvc"
	// checkTime is how long the server checks the bad Revision, which gets requests meanwhile.
	checkTime = 5 * time.Second
)

// knativeServices shows a bad Revision of a Knative Service, which loses its traffic, and its
// repair. Requests are sent to the Service until the end.
func (s *steps) knativeServices(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var visitors *load
	defer func() {
		stop()
		visitors.wait()
	}()
	return s.withServer(ctx, s.installServer, s.firstRevision, func(ctx context.Context) (err error) {
		if visitors, err = s.sendRequests(ctx); err != nil {
			return err
		}
		return inOrder(ctx, s.then(visitors, "web-00001"), s.badRevision, s.then(visitors, "web-00001"),
			s.deniedRevision, s.repairedRevision, s.then(visitors, "web-00003"))
	})
}

func (s *steps) firstRevision(ctx context.Context) error {
	s.title("A Knative Service")
	s.explain("Each change of its template is a release. Nothing has to be configured, and the Deployments of\n" +
		"its Revisions are not judged beside it.")
	if err := s.all(ctx,
		[]string{"delete", "namespace", services, "--ignore-not-found"},
		[]string{"create", "namespace", services},
		[]string{"label", "namespace", services, v1alpha1.NamespaceLabel + "=" + v1alpha1.NamespaceEnabled},
	); err != nil {
		return err
	}
	command := []string{"ko", "apply", "--sbom=none", "-f", manifests + "service.yaml", "--", "-n", services}
	s.print("\n%s$ %s%s\n", s.bold, strings.Join(command, " "), s.plain)
	var output bytes.Buffer // shown only after an error
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	if err := s.awaitRevision(ctx, "condition=Succeeded"); err != nil {
		return err
	}
	return s.all(ctx,
		[]string{"wait", ksvc, "web", "-n", services, "--for=condition=Ready", waitTimeout},
		[]string{"get", "changeworkloads", "-n", services},
		[]string{"get", ksvc, "-n", services},
	)
}

func (s *steps) badRevision(ctx context.Context) error {
	s.title("A bad Revision")
	s.explain("The server is configured to check the next Revision for five seconds, and to fail it with the\n" +
		"message \"" + verdictText + "\". Serving sends it all requests as soon as\n" +
		"it is Ready.")
	err := s.double.SetChecks(ctx, services, double.CheckRule{
		Match: double.Match{Step: "BATCH", Stage: double.Post},
		Then: double.Behaviour{
			Verdict: "fail", Rules: []double.Rule{{Name: "error rate", Verdict: "FAIL", Msg: verdictText}},
			Delay: metav1.Duration{Duration: checkTime},
		},
	})
	if err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, nextRevision("v2", "")...); err != nil {
		return err
	}
	if err := s.awaitRevision(ctx, "jsonpath={.status.status}=Suspend"); err != nil {
		return err
	}
	s.explain("The Service is suspended, and the same write has moved the traffic to the last Revision that\n" +
		"passed. The reason, and where the traffic is:")
	r, err := s.kubectl(ctx, "get", "changeworkloads", "-n", services, "-o",
		`jsonpath={range .items[?(@.status.status=="Suspend")]}{.status.conditions[?(@.type=="Held")].message}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if !strings.Contains(r.Stdout, verdictText) || !strings.Contains(r.Stdout, "is at Revision web-00001") {
		return fmt.Errorf("the Service was suspended for another reason, or its traffic was not moved: %q", r.Stdout)
	}
	_, err = s.kubectl(ctx, "get", ksvc, "web", "-n", services, "-o", `jsonpath={.spec.traffic}{"\n"}`)
	return err
}

func (s *steps) deniedRevision(ctx context.Context) error {
	s.title("The next Revision is denied")
	if err := s.denied(ctx, "service web is suspended", nextRevision("v3", "")...); err != nil {
		return err
	}
	s.explain("The failed Revision gets no traffic by hand, either:")
	return s.denied(ctx, "spec.traffic sends requests to a Revision that failed its check",
		"patch", ksvc, "web", "-n", services, "--type", "merge", "-p", `{"spec":{"traffic":[{"latestRevision":true,"percent":100}]}}`)
}

func (s *steps) repairedRevision(ctx context.Context) error {
	s.title("A repair")
	s.explain("With the label ignored-suspend the next Revision is admitted as a repair. It gets traffic when its\n" +
		"release has succeeded. The server passes all checks now.")
	if err := s.double.SetChecks(ctx, services); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, nextRevision("v3", v1alpha1.IgnoredSuspendLabel)...); err != nil {
		return err
	}
	if err := s.awaitRevision(ctx, "condition=Succeeded"); err != nil {
		return err
	}
	s.explain("The suspension has ended, and the former traffic is restored: requests go to the latest Revision.")
	return s.all(ctx,
		[]string{"get", ksvc, "web", "-n", services, "-o", `jsonpath={.spec.traffic}{"\n"}`},
		[]string{"get", "changeworkloads", "-n", services},
		[]string{"get", "revisions", "-n", services},
	)
}

// nextRevision is the command of a release of the Service, with a label unless it is empty.
func nextRevision(value, label string) []string {
	operations := `{"op":"replace","path":"/spec/template/spec/containers/0/env/0/value","value":"` + value + `"}`
	if label != "" {
		operations = `{"op":"add","path":"/metadata/labels/` + strings.ReplaceAll(label, "/", "~1") + `","value":"true"},` + operations
	}
	return []string{"patch", ksvc, "web", "-n", services, "--type", "json", "-p", "[" + operations + "]"}
}

// awaitRevision waits for a condition of the latest release of the Service.
func (s *steps) awaitRevision(ctx context.Context, condition string) error {
	release, err := s.release(ctx, services, ksvc)
	if err != nil {
		return err
	}
	return s.await(ctx, services, release, condition)
}

// then returns a step that waits until only the Revision answers, and prints which Revisions have
// answered since the previous such step.
func (s *steps) then(visitors *load, revision string) func(context.Context) error {
	return func(ctx context.Context) error {
		const last = 20
		earlier := visitors.answered()
		err := until(ctx, "only Revision "+revision+" answers", time.Minute, func(context.Context) (bool, error) {
			return visitors.onlyLast(last, earlier, revision), visitors.failed()
		})
		if err != nil {
			return err
		}
		s.explain(fmt.Sprintf("Requests that were sent to the Service meanwhile: %s. The last %d were all answered by %s.",
			visitors.take(), last, revision))
		return nil
	}
}
