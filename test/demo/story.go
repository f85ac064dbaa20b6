package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
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
		s.whatIsThere, s.theJudge, s.theNamespace, s.aGoodRelease, s.aBadRelease, s.aRefusal, s.aRepair, s.toZeroAgain, s.permissions,
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
	var said bytes.Buffer // much of it, and of no interest unless it goes wrong
	if err := judge.Install(ctx, s.kube, &said); err != nil {
		return fmt.Errorf("%w\n%s", err, said.String())
	}
	s.print("(it runs)\n")
	if err := s.judge.Reset(ctx); err != nil {
		return err
	}
	s.say("Breakwater is told about it:")
	server, err := judge.Configured(ctx, s.kube)
	if err != nil {
		return err
	}
	if server != "" && server != judge.URL {
		return fmt.Errorf("another server is configured, and this would replace it: %s", server)
	}
	for _, p := range judge.ConfigurePatches() {
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

// whereToLook ends the story.
func (s *story) whereToLook(took time.Duration) error {
	s.title("Where to look next")
	s.say(fmt.Sprintf("Everything came as it was told, in %s. The cluster stays up, and so do the\n"+
		"namespaces %s and %s. No server is configured any more.", took.Round(time.Second), demo, shops))
	for _, line := range []string{
		"export KUBECONFIG=" + os.Getenv("KUBECONFIG"),
		"kubectl -n " + demo + " get changeworkloads,changepods",
		"kubectl -n " + demo + " get changeworkloads -o yaml",
		"kubectl -n " + demo + " get events --sort-by=.lastTimestamp",
		"kubectl -n " + shops + " get events --sort-by=.lastTimestamp",
		"kubectl -n " + system + " get pods,ksvc,broker,trigger",
		"kubectl -n " + system + " get opsconfiginfo -o wide",
		"kubectl get eventtypes -A",
		"make down     # removes the cluster",
	} {
		s.print("  %s\n", line)
	}
	return nil
}
