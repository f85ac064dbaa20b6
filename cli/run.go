// Package cli is the kubectl plugin `kubectl breakwater`: a file for each command or pair of
// commands. Pure functions, most of them in cli/diagnosis, decide the output from the objects that
// a command reads.
package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// Exit codes of all commands.
const (
	exitOK = 0
	// exitNo: the command succeeded and its answer is no: a release is held or failed, the workload
	// is not judged, a simulated request would be denied or rejected, or a check failed. It is also
	// the code of errors.
	exitNo = 1
	// exitTimeout: at --timeout the release still ran, its state could not be read, or the webhook had not seen the pod
	// template.
	exitTimeout = 2
)

// app has the streams, the version and the flags of all commands.
type app struct {
	genericiooptions.IOStreams
	version string
	flags   *genericclioptions.ConfigFlags
}

// exitError ends the process with a code. Its message is empty if the command has
// already printed its answer.
type exitError struct {
	code    int
	message string
}

func (e exitError) Error() string { return e.message }

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, version string, args []string, streams genericiooptions.IOStreams) int {
	streams.Out, streams.ErrOut = safeWriter{streams.Out}, safeWriter{streams.ErrOut}
	root := New(version, streams)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	if message := err.Error(); message != "" {
		_, _ = fmt.Fprintln(streams.ErrOut, "error: "+message)
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return exit.code
	}
	return exitNo
}

// New returns the root command.
func New(version string, streams genericiooptions.IOStreams) *cobra.Command {
	a := &app{IOStreams: streams, version: version, flags: genericclioptions.NewConfigFlags(true)}
	root := &cobra.Command{
		Use:           "breakwater",
		Short:         "Show, explain and control releases, budgets and permissions of Breakwater",
		SilenceUsage:  true,
		SilenceErrors: true,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl breakwater"},
		// The scripts of the default command complete a program breakwater. kubectl gets the
		// completions from cmd/kubectl-breakwater/kubectl_complete-breakwater.
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	a.flags.AddFlags(root.PersistentFlags())
	root.AddCommand(a.getCommand(), a.treeCommand(), a.statusCommand(), a.explainCommand(), a.approveCommand(), a.rejectCommand(),
		a.repairCommand(), a.retryCommand(), a.rollbackCommand(), a.simulateCommand(), a.budgetsCommand(), a.permissionsCommand(), a.deadlettersCommand(), a.connectCommand(), a.doctorCommand(), a.versionCommand())
	return root
}
