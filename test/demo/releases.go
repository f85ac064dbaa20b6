package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershielddouble"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

// releases shows a good release, a bad one and its repair, judged by a server.
func (s *steps) releases(ctx context.Context) error {
	return s.withServer(ctx, s.showInstallation, s.installServer, s.createNamespace, s.goodRelease, s.badRelease, s.denial, s.repair, s.scaleToZero)
}

// withServer runs steps one after the other, of which one configures the server. It removes the
// configuration at the end.
func (s *steps) withServer(ctx context.Context, steps ...func(context.Context) error) (err error) {
	defer func() {
		// Remove the configuration even if the context has ended.
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
		defer cancel()
		err = errors.Join(err, serverdouble.Unconfigure(last, s.kube))
	}()
	return inOrder(ctx, steps...)
}

func (s *steps) goodRelease(ctx context.Context) error {
	s.title("A good release")
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v1.yaml"}); err != nil {
		return err
	}
	s.explain("Each Ready pod gets a ChangePod, and the server judges it. The first event starts the\n" +
		"functions from zero.")
	release, err := s.release(ctx, demo, "deployment")
	if err != nil {
		return err
	}
	if err := s.await(ctx, demo, release, "condition=Succeeded"); err != nil {
		return err
	}
	return s.all(ctx,
		[]string{"get", "changeworkloads", "-n", demo},
		[]string{"get", "changepods", "-n", demo},
		[]string{"get", "pods", "-n", system},
	)
}

func (s *steps) badRelease(ctx context.Context) error {
	s.title("A bad release")
	s.explain("The server is configured to fail the third pod of the next release with the message\n" +
		"\"" + verdictText + "\".")
	third := int64(2) // the server counts from 0
	err := s.double.SetChecks(ctx, demo, double.CheckRule{
		Match: double.Match{Step: "BATCH", BatchNo: &third, Stage: double.Post},
		Then:  double.Behaviour{Verdict: "fail", Rules: []double.Rule{{Name: "error rate", Verdict: "FAIL", Msg: verdictText}}},
	})
	if err != nil {
		return err
	}
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v2.yaml"}); err != nil {
		return err
	}
	release, err := s.release(ctx, demo, "deployment")
	if err != nil {
		return err
	}
	if err := s.await(ctx, demo, release, "jsonpath={.status.status}=Suspend"); err != nil {
		return err
	}
	s.explain("The server sent the verdict, and the rollout is held: some pods are new, the others\n" +
		"are unchanged and still running.")
	if err := s.all(ctx,
		[]string{"get", "changepods", "-n", demo, "-l", v1alpha1.VersionKey + "=" + versionOf(release)},
		[]string{"get", "pods", "-n", demo, "-L", "pod-template-hash", "--field-selector", "status.phase=Running"},
	); err != nil {
		return err
	}
	return s.showReason(ctx, release)
}

// showReason shows the reason for the suspension and checks it.
func (s *steps) showReason(ctx context.Context, release string) error {
	s.explain("The reason, and the time of the suspension (the label, in Unix seconds):")
	r, err := s.kubectl(ctx, "get", "changeworkload", release, "-n", demo, "-o",
		`jsonpath={range .status.defenseCheckFailPods[*]}{.pod}: {.message}{"\n"}{end}`)
	if err != nil {
		return err
	}
	if strings.Count(r.Stdout, "\n") != 1 || !strings.Contains(r.Stdout, verdictText) {
		return fmt.Errorf("the release was suspended for another reason: %q", r.Stdout)
	}
	r, err = s.kubectl(ctx, "get", "deployment", "web", "-n", demo, "-o",
		"custom-columns=NAME:.metadata.name,NEW:.status.updatedReplicas,OF:.spec.replicas,PAUSED:.spec.paused,"+
			`SUSPEND:.metadata.labels.altershield\.defense\.antgroup\.com/suspend`)
	if err != nil {
		return err
	}
	if !strings.Contains(r.Stdout, "true") {
		return fmt.Errorf("the rollout is not held: %s", r.Stdout)
	}
	return nil
}

func (s *steps) denial(ctx context.Context) error {
	s.title("The next release is denied")
	r, err := s.try(ctx, nextRelease()...)
	if err != nil {
		return err
	}
	const message = "deployment web is suspended"
	want := "Error from server (" + message + `): admission webhook "vdeployment.kb.io" denied the request: ` + message
	if r.Code == 0 || r.Errors() != want {
		return fmt.Errorf("the expected denial is: %s", want)
	}
	s.explain("Scaling is still allowed, so that a held workload can follow its load:")
	return s.all(ctx, []string{"scale", "deployment", "web", "-n", demo, "--replicas=5"})
}

func (s *steps) repair(ctx context.Context) error {
	s.title("The repair")
	s.explain("An update with the label ignored-suspend is a repair. It is admitted once, the rollout\n" +
		"continues, and the server, which now passes all checks, judges every pod of it.")
	if err := s.double.SetChecks(ctx, demo); err != nil {
		return err
	}
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v3.yaml"}); err != nil {
		return err
	}
	if err := s.all(ctx, []string{"get", "changeworkloads", "-n", demo}); err != nil {
		return err
	}
	release, err := s.release(ctx, demo, "deployment")
	if err != nil {
		return err
	}
	if err := s.await(ctx, demo, release, "condition=Succeeded"); err != nil {
		return err
	}
	s.explain("The suspension has ended, and the objects of earlier releases are deleted:")
	if err := s.awaitOnlyOne(ctx, release); err != nil {
		return err
	}
	s.explain("The release that was denied is now admitted:")
	if _, err := s.kubectl(ctx, nextRelease()...); err != nil {
		return err
	}
	if release, err = s.release(ctx, demo, "deployment"); err != nil {
		return err
	}
	return s.await(ctx, demo, release, "condition=Succeeded")
}

// nextRelease is the command of an ordinary release, without the repair label.
func nextRelease() []string {
	return []string{"patch", "deployment", "web", "-n", demo, "--type", "merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"test":"test"}}}}}`}
}
