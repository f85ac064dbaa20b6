package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/test/e2e/serverdouble"
)

const (
	// demo is the namespace of the releases. It is kept for inspection.
	demo   = "demo"
	system = v1alpha1.SystemNamespace

	manifests = "test/demo/manifests/"
	// waitTimeout is the time limit of a release, including the start of the
	// functions.
	waitTimeout = "--timeout=180s"
	// cleanUpTime is the time limit of removing the server configuration.
	cleanUpTime = 20 * time.Second

	verdictText = "7 per cent of requests fail, 1 is allowed"
)

// steps runs the steps of the demo in order.
type steps struct {
	*printer
	kube   kubernetes.Interface
	double *serverdouble.Client
}

// run shows the chapters and returns the first error.
func (s *steps) run(ctx context.Context, chapters []chapter) error {
	began := time.Now()
	for _, c := range chapters {
		if err := c.show(s, ctx); err != nil {
			return err
		}
	}
	s.printNextCommands(chapters, time.Since(began))
	return nil
}

// inOrder runs steps one after the other.
func inOrder(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *steps) showInstallation(ctx context.Context) error {
	s.title("The installation")
	s.explain("Breakwater is installed. Its settings are objects, including the two of the AlterShield Operator:")
	if _, err := s.kubectl(ctx, "get", "opsconfiginfo", "-n", system); err != nil {
		return err
	}
	s.explain("The controllers and webhooks of the three parts, the callback function, the services\n" +
		"openapi and init-action-server and the permission centre always run. The functions\n" +
		"submit, verdict, report, deadletter and judge run only while there are events for them.\n" +
		"(Waiting until the first four are scaled to zero.)")
	if err := s.awaitZero(ctx); err != nil {
		return err
	}
	_, err := s.kubectl(ctx, "get", "pods", "-n", system)
	return err
}

func (s *steps) installServer(ctx context.Context) error {
	s.title("The server")
	s.explain("An AlterShield server judges releases. The demo uses a test double with the same\n" +
		"protocol. It builds the double and installs it in the cluster:")
	s.print("\n%s$ %s%s\n", s.bold, strings.Join(serverdouble.Command(), " "), s.plain)
	var output bytes.Buffer // shown only after an error
	if err := serverdouble.Install(ctx, s.kube, &output); err != nil {
		return fmt.Errorf("%w\n%s", err, output.String())
	}
	s.print("(it is running)\n")
	if err := s.double.Reset(ctx); err != nil {
		return err
	}
	s.explain("Breakwater gets the URL of the server:")
	server, err := serverdouble.Configured(ctx, s.kube)
	if err != nil {
		return err
	}
	if server != "" && server != serverdouble.URL {
		return fmt.Errorf("another server is configured: %s; the demo would replace it", server)
	}
	for _, p := range serverdouble.ConfigurePatches() {
		if _, err := s.kubectl(ctx, "patch", p.Kind, p.Name, "-n", system, "--type", "merge", "-p", p.Body); err != nil {
			return err
		}
	}
	return nil
}

func (s *steps) createNamespace(ctx context.Context) error {
	s.title("A namespace that is opted in")
	s.explain("Breakwater judges only the releases of namespaces with this label:")
	return s.all(ctx,
		[]string{"delete", "namespace", demo, "--ignore-not-found"},
		[]string{"create", "namespace", demo},
		[]string{"label", "namespace", demo, v1alpha1.NamespaceLabel + "=" + v1alpha1.NamespaceEnabled},
	)
}

// all runs the commands one after the other.
func (s *steps) all(ctx context.Context, commands ...[]string) error {
	for _, args := range commands {
		if _, err := s.kubectl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// printNextCommands prints commands for inspection.
func (s *steps) printNextCommands(chapters []chapter, took time.Duration) {
	s.title("Next commands")
	s.explain(fmt.Sprintf("All steps succeeded in %s. The cluster is kept, for example for these commands:", took.Round(time.Second)))
	lines := []string{"KUBECONFIG=$(make -s kubeconfig) && export KUBECONFIG && kubectl config current-context     # prints breakwater"}
	for _, c := range chapters {
		lines = append(lines, c.next...)
	}
	lines = append(lines,
		"kubectl -n "+system+" get pods,ksvc,broker,trigger",
		"kubectl -n "+system+" get opsconfiginfo -o wide",
		"make down     # removes the cluster",
	)
	for _, line := range lines {
		s.print("  %s\n", line)
	}
}
