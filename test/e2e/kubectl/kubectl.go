// Package kubectl runs kubectl with the cluster of KUBECONFIG, for requirements
// that are commands.
package kubectl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// Kubectl runs commands. The zero value uses KUBECONFIG.
type Kubectl struct {
	// kubeconfig replaces KUBECONFIG, unless empty.
	kubeconfig string
}

// Result is the result of a command.
type Result struct {
	// Args are the arguments of kubectl.
	Args   []string
	Stdout string
	Stderr string
	// Code is the exit code.
	Code int
}

// In returns a Kubectl with a default namespace, as after `kubectl config
// set-context --current --namespace`. Its kubeconfig is a file in dir.
func In(namespace, dir string) (Kubectl, error) {
	config, err := clientcmd.NewDefaultClientConfigLoadingRules().Load()
	if err != nil {
		return Kubectl{}, fmt.Errorf("read the kubeconfig: %w", err)
	}
	current, ok := config.Contexts[config.CurrentContext]
	if !ok {
		return Kubectl{}, errors.New("the kubeconfig has no current context: set KUBECONFIG")
	}
	current.Namespace = namespace
	// Paths of certificates are relative to the file that names them.
	if err := clientcmd.ResolveLocalPaths(config); err != nil {
		return Kubectl{}, fmt.Errorf("resolve the paths of the kubeconfig: %w", err)
	}
	path := filepath.Join(dir, "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return Kubectl{}, fmt.Errorf("write %s: %w", path, err)
	}
	return Kubectl{kubeconfig: path}, nil
}

// Config is the path of the kubeconfig that commands use.
func (k Kubectl) Config() string {
	if k.kubeconfig == "" {
		return os.Getenv("KUBECONFIG")
	}
	return k.kubeconfig
}

// Run runs a command. It returns an error when kubectl cannot be run; an exit
// code other than 0 is not an error.
func (k Kubectl) Run(ctx context.Context, args ...string) (Result, error) {
	return k.RunWithInput(ctx, "", args...)
}

// Output runs a command with stdin and returns its stdout. An exit code other than 0 is an error.
func (k Kubectl) Output(ctx context.Context, stdin string, args ...string) (string, error) {
	r, err := k.RunWithInput(ctx, stdin, args...)
	if err == nil && r.Code != 0 {
		err = errors.New(r.String())
	}
	return r.Stdout, err
}

// RunWithInput runs a command with stdin, for `kubectl apply -f -`.
func (k Kubectl) RunWithInput(ctx context.Context, stdin string, args ...string) (Result, error) {
	for {
		r, err := k.once(ctx, stdin, args)
		if err != nil || !withoutConditions(r) {
			return r, err
		}
	}
}

// withoutConditions reports whether `kubectl wait` failed because status.conditions of a new CRD is
// null. It should wait until there are conditions.
func withoutConditions(r Result) bool {
	return r.Args[0] == "wait" && r.Code != 0 && strings.Contains(r.Stderr, ".status.conditions accessor error: <nil>")
}

func (k Kubectl) once(ctx context.Context, stdin string, args []string) (Result, error) {
	cmd := exec.CommandContext(ctx, "kubectl", args...)
	cmd.Stdin = strings.NewReader(stdin)
	cmd.Env = os.Environ()
	if k.kubeconfig != "" {
		cmd.Env = append(cmd.Env, "KUBECONFIG="+k.kubeconfig)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return Result{}, fmt.Errorf("run kubectl %s: %w", strings.Join(args, " "), err)
	}
	return Result{Args: args, Stdout: stdout.String(), Stderr: stderr.String(), Code: cmd.ProcessState.ExitCode()}, nil
}

// warning is how kubectl begins the line of a warning of the API server.
const warning = "Warning: "

// Errors returns stderr without warnings.
func (r Result) Errors() string {
	var lines []string
	for line := range strings.Lines(r.Stderr) {
		if !strings.HasPrefix(line, warning) {
			lines = append(lines, line)
		}
	}
	return strings.TrimSpace(strings.Join(lines, ""))
}

// Warnings returns the warnings on stderr.
func (r Result) Warnings() (all []string) {
	for line := range strings.Lines(r.Stderr) {
		if text, ok := strings.CutPrefix(line, warning); ok {
			all = append(all, strings.TrimSpace(text))
		}
	}
	return all
}

// String returns the command and its output.
func (r Result) String() string {
	return fmt.Sprintf("$ kubectl %s\n%s%s(exit code %d)", strings.Join(r.Args, " "), r.Stdout, r.Stderr, r.Code)
}
