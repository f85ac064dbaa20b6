package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// runMain is the environment variable with which the test binary runs the plugin.
const runMain = "BREAKWATER_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// startMain starts the plugin. interrupt sends it a SIGINT, and checks that the plugin ends.
func startMain(t *testing.T, args ...string) (stdin io.Writer, interrupt func()) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	command := exec.CommandContext(ctx, os.Args[0], append(args, "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir())...)
	command.Env = append(os.Environ(), runMain+"=true")
	stdin, err := command.StdinPipe() // Wait closes it
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return stdin, func() {
		if err := command.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		_ = command.Wait()
		if got := command.ProcessState.ExitCode(); ctx.Err() != nil || got != 1 || !strings.Contains(stderr.String(), "interrupted") {
			t.Errorf("exit code %d, %v, %s", got, ctx.Err(), stderr.String())
		}
	}
}

// client-go reads the kinds of the cluster without the context of the command.
func TestTheFirstInterruptEndsAPluginThatReadsDiscovery(t *testing.T) {
	called, end := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-end
	}))
	defer server.Close()
	defer close(end) // before Close, which waits for the handler
	_, interrupt := startMain(t, "get", "deployment/web", "--server", server.URL)
	select {
	case <-called:
		interrupt()
	case <-time.After(time.Minute):
		t.Error("the plugin did not read the kinds of the cluster")
	}
}

// io.Reader and the manifests of -f - are read without the context of the command.
func TestTheFirstInterruptEndsAPluginThatReadsStdin(t *testing.T) {
	stdin, interrupt := startMain(t, "simulate", "apply", "-f", "-", "--server", "http://127.0.0.1:1")
	// More than a pipe holds, so the write ends when the plugin reads.
	if _, err := stdin.Write(bytes.Repeat([]byte("\n"), 1<<20+1)); err != nil {
		t.Fatal(err)
	}
	interrupt()
}

// A kubeconfig with auth-provider "oidc" works, and the removed providers name their successor.
func TestTheAuthProvidersOfKubectlAreKnown(t *testing.T) {
	for name, want := range map[string]string{
		"oidc":  "",
		"gcp":   "The gcp auth plugin has been removed",
		"azure": "The azure auth plugin has been removed",
	} {
		_, err := rest.GetAuthProvider("", &api.AuthProviderConfig{Name: name, Config: map[string]string{"idp-issuer-url": "https://issuer.example.com", "client-id": "kubectl"}}, nil)
		if got := fmt.Sprint(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
