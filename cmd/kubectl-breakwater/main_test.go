package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// runMain is the environment variable with which the test binary runs the plugin.
const runMain = "BREAKWATER_TEST_RUN_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

// client-go reads the kinds of the cluster without the context of the command.
func TestASecondInterruptEndsAPluginThatReadsDiscovery(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	called := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		called <- struct{}{}
		<-ctx.Done()
	}))
	defer server.Close()
	defer cancel() // before Close, which waits for the handler
	command := exec.CommandContext(ctx, os.Args[0], "get", "deployment/web", "--server", server.URL, "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir())
	command.Env = append(os.Environ(), runMain+"=true")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-called
		for command.Process.Signal(os.Interrupt) == nil { // an error: the plugin has ended
			time.Sleep(100 * time.Millisecond)
		}
	}()
	_ = command.Wait()
	if got := command.ProcessState.String(); ctx.Err() != nil || got != "signal: interrupt" {
		t.Errorf("the plugin ended with %s, %v", got, ctx.Err())
	}
}

// io.Reader and the manifests of -f - are read without the context of the command.
func TestTheFirstInterruptEndsAPluginThatReadsStdin(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, os.Args[0], "simulate", "apply", "-f", "-", "--kubeconfig", os.DevNull, "--cache-dir", t.TempDir())
	command.Env = append(os.Environ(), runMain+"=true")
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	// More than a pipe holds, so the write ends when the plugin reads.
	if _, err := stdin.Write(bytes.Repeat([]byte("\n"), 64<<10+1)); err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if got := command.ProcessState.ExitCode(); ctx.Err() != nil || got != 1 || !strings.Contains(stderr.String(), "interrupted") {
		t.Errorf("exit code %d, %v, %s", got, ctx.Err(), stderr.String())
	}
}
