package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	double "github.com/breakwater-dev/breakwater/test/altershield"
	"github.com/breakwater-dev/breakwater/test/e2e/judge"
)

const (
	// demo is the namespace of the story. It stays for looking around.
	demo   = "demo"
	system = v1alpha1.SystemNamespace

	manifests = "test/demo/manifests/"
	// within is how long a release may take, the functions starting from zero.
	within = "--timeout=180s"
	// cleanUpTime is how long putting things back may take.
	cleanUpTime = 20 * time.Second

	verdictText = "error rate is 7 per cent, 1 is allowed"
)

// story is what is told.
type story struct {
	*teller
	kube  kubernetes.Interface
	judge *judge.Judge
}

// tell tells it, and ends at the first thing that is not as it says.
func (s *story) tell(ctx context.Context) error {
	began := time.Now()
	for _, chapter := range []func(context.Context) error{
		s.whatIsThere, s.theJudge, s.theNamespace, s.aGoodRelease, s.aBadRelease, s.aRefusal, s.aRepair, s.toZeroAgain,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
	}
	return s.whereToLook(time.Since(began))
}

func (s *story) whatIsThere(ctx context.Context) error {
	s.title("What is there")
	s.say("Breakwater runs. Its settings are objects, the two of the AlterShield Operator among them:")
	if _, err := s.kubectl(ctx, "get", "opsconfiginfo", "-n", system); err != nil {
		return err
	}
	s.say("A controller and two webhooks always run. So does callback, which the outside may call\n" +
		"at any time. The functions submit, verdict, report and deadletter run only while there is\n" +
		"something for them to do. (Waiting until they are at zero.)")
	if err := s.awaitZero(ctx); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "get", "pods", "-n", system)
	return err
}

func (s *story) theJudge(ctx context.Context) error {
	s.title("A judge")
	s.say("Somebody has to judge releases: an AlterShield server. Here it is a double of one, which\n" +
		"speaks its protocol. It is built, and installed beside Breakwater:")
	s.print("\n%s$ %s%s\n", s.bold, strings.Join(judge.Command(), " "), s.plain)
	if err := judge.Install(ctx, s.kube, discard{}); err != nil {
		return err
	}
	s.print("(it runs)\n")
	if err := s.judge.Reset(ctx); err != nil {
		return err
	}
	s.say("Breakwater is told about it:")
	if server, err := judge.Configured(ctx, s.kube); err != nil || server != "" && server != judge.URL {
		return errors.Join(err, fmt.Errorf("another server is configured: %s", server))
	}
	for _, p := range judge.On() {
		if _, err := s.kubectl(ctx, "patch", p.Kind, p.Name, "-n", system, "--type", "merge", "-p", p.Body); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) theNamespace(ctx context.Context) error {
	s.title("A namespace that is guarded")
	s.say("Nothing is guarded that did not ask for it. A label on the namespace asks:")
	return s.all(ctx,
		[]string{"delete", "namespace", demo, "--ignore-not-found"},
		[]string{"create", "namespace", demo},
		[]string{"label", "namespace", demo, v1alpha1.NamespaceLabel + "=" + v1alpha1.NamespaceEnabled},
	)
}

// all types one command after the other.
func (s *story) all(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

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
	err := s.judge.Says(ctx, demo, double.CheckRule{
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
	r, err := s.try(ctx, "patch", "deployment", "web", "-n", demo, "--type", "merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"test":"test"}}}}}`)
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
	if err := s.judge.Says(ctx, demo); err != nil {
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
	if _, err := s.kubectl(ctx, "wait", "deployment", "web", "-n", demo,
		`--for=jsonpath={.metadata.labels.altershield\.defense\.antgroup\.com/defense-status}=processed`, within); err != nil {
		return err
	}
	return s.onlyOneIsLeft(ctx, release)
}

// discard is where the words of a build go that nobody wants to read.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// whereToLook ends the story.
func (s *story) whereToLook(took time.Duration) error {
	s.title("Where to look next")
	s.say(fmt.Sprintf("Everything came as it was told, in %s. The cluster stays up, and so does the\n"+
		"namespace %s. No server is configured any more.", took.Round(time.Second), demo))
	for _, line := range []string{
		"export KUBECONFIG=" + os.Getenv("KUBECONFIG"),
		"kubectl -n " + demo + " get changeworkloads,changepods",
		"kubectl -n " + demo + " get changeworkloads -o yaml",
		"kubectl -n " + demo + " get events --sort-by=.lastTimestamp",
		"kubectl -n " + system + " get pods,ksvc,broker,trigger",
		"kubectl -n " + system + " get opsconfiginfo -o wide",
		"kubectl get eventtypes -A",
		"make down     # removes the cluster",
	} {
		s.print("  %s\n", line)
	}
	return nil
}
