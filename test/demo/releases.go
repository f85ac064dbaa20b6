package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershield"
)

func (s *story) aGoodRelease(ctx context.Context) error {
	s.title("A good release")
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v1.yaml"}); err != nil {
		return err
	}
	s.say("Each pod that is Ready becomes a ChangePod, and goes before the judge. The first event\n" +
		"wakes the functions from zero.")
	release, err := s.release(ctx)
	if err != nil {
		return err
	}
	if err := s.await(ctx, release, "condition=Succeeded"); err != nil {
		return err
	}
	return s.all(ctx,
		[]string{"get", "changeworkloads", "-n", demo},
		[]string{"get", "changepods", "-n", demo},
		[]string{"get", "pods", "-n", system},
	)
}

func (s *story) aBadRelease(ctx context.Context) error {
	s.title("A bad release")
	s.say("The judge is told to find something wrong with the third pod of the next release:\n" +
		"\"" + verdictText + "\".")
	third := int64(2) // the server counts from 0
	err := s.judge.SetChecks(ctx, demo, double.CheckRule{
		Match: double.Match{Step: "BATCH", BatchNo: &third, Stage: double.Post},
		Then:  double.Behaviour{Verdict: "fail", Rules: []double.Rule{{Name: "error rate", Verdict: "FAIL", Msg: verdictText}}},
	})
	if err != nil {
		return err
	}
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v2.yaml"}); err != nil {
		return err
	}
	release, err := s.release(ctx)
	if err != nil {
		return err
	}
	if err := s.await(ctx, release, "jsonpath={.status.status}=Suspend"); err != nil {
		return err
	}
	s.say("The verdict came back. The roll-out stands still: some pods are new, the others are\n" +
		"as they were, and all of them serve.")
	if err := s.all(ctx,
		[]string{"get", "changepods", "-n", demo, "-l", v1alpha1.VersionKey + "=" + versionOf(release)},
		[]string{"get", "pods", "-n", demo, "-L", "pod-template-hash"},
	); err != nil {
		return err
	}
	return s.theReason(ctx, release)
}

// theReason shows the reason for the suspension, and that it is the right one.
func (s *story) theReason(ctx context.Context, release string) error {
	s.say("Why, and since when (the label is the time in seconds):")
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
		return fmt.Errorf("the roll-out is not held: %s", r.Stdout)
	}
	return nil
}

func (s *story) aRefusal(ctx context.Context) error {
	s.title("The next release is refused")
	r, err := s.try(ctx, nextRelease()...)
	if err != nil {
		return err
	}
	const words = "deployment web is suspended"
	want := "Error from server (" + words + `): admission webhook "vdeployment.kb.io" denied the request: ` + words
	if r.Code == 0 || strings.TrimSpace(r.Stderr) != want {
		return fmt.Errorf("the refusal should have been: %s", want)
	}
	s.say("Scaling still works, so that a held release never stands in the way of its load:")
	return s.all(ctx, []string{"scale", "deployment", "web", "-n", demo, "--replicas=5"})
}

func (s *story) aRepair(ctx context.Context) error {
	s.title("The repair")
	s.say("A Deployment with the label ignored-suspend is the repair. It is admitted once, the\n" +
		"roll-out goes on, and the judge, who is content again, looks at every pod of it.")
	if err := s.judge.SetChecks(ctx, demo); err != nil {
		return err
	}
	if err := s.all(ctx, []string{"apply", "-n", demo, "-f", manifests + "v3.yaml"}); err != nil {
		return err
	}
	if err := s.all(ctx, []string{"get", "changeworkloads", "-n", demo}); err != nil {
		return err
	}
	release, err := s.release(ctx)
	if err != nil {
		return err
	}
	if err := s.await(ctx, release, "condition=Succeeded"); err != nil {
		return err
	}
	s.say("The suspension is over, and what came before the repair is gone:")
	if err := s.onlyOneIsLeft(ctx, release); err != nil {
		return err
	}
	s.say("The release that was refused is welcome now:")
	if _, err := s.kubectl(ctx, nextRelease()...); err != nil {
		return err
	}
	if release, err = s.release(ctx); err != nil {
		return err
	}
	return s.await(ctx, release, "condition=Succeeded")
}

// nextRelease is what a person types who knows nothing of the trouble.
func nextRelease() []string {
	return []string{"patch", "deployment", "web", "-n", demo, "--type", "merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"test":"test"}}}}}`}
}
