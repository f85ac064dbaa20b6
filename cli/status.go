package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/text"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// statusAnswer is the answer of status.
type statusAnswer struct {
	Namespace string `json:"namespace"`
	Workload  string `json:"workload"`
	Version   string `json:"version,omitempty"`
	Attempt   int64  `json:"attempt"`
	diagnosis.ReleaseState
	Counts v1alpha1.PodCounts `json:"counts"`
}

func (a *app) statusCommand() *cobra.Command {
	var format string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "status KIND/NAME",
		Short: "Wait until a release passed, failed or is held, for CI",
		Long: `Wait until the current release of a workload passed, failed or is held, and print its state.

Exit code 0: it passed. 1: it is held or failed, the workload is not judged, or an error. 2: it still
ran at --timeout, its state could not be read, or the webhook had not seen the pod template.`,
		Example: "  kubectl apply -f web.yaml && kubectl breakwater status deployment/web --timeout 10m",
		Args:    oneArgument(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout < 0 {
				return fmt.Errorf("--timeout %s is negative: write a duration like 10m, or 0 to print the state now", timeout)
			}
			c, err := a.clients()
			if err != nil {
				return err
			}
			answer, err := a.awaitRelease(cmd.Context(), c, args[0], timeout)
			if err != nil {
				return err
			}
			if err := printAs(a.Out, format, answer, []string{answer.Workload}, func(w io.Writer) error {
				_, err := fmt.Fprintln(w, lineOf(answer, a.paint()))
				return err
			}); err != nil {
				return err
			}
			return exitOf(answer, timeout, c.command("explain", answer.Workload, answer.Namespace))
		},
	}
	outputFlag(c, &format)
	c.Flags().DurationVar(&timeout, "timeout", 10*time.Minute, "How long to wait for the end of the release; 0 does not wait")
	return c
}

// lineOf returns the answer for people.
func lineOf(answer statusAnswer, paint diagnosis.Paint) string {
	subject := fmt.Sprintf("%s: release %s attempt %d", answer.Workload, answer.Version, answer.Attempt)
	if answer.State == diagnosis.StateNotJudged || answer.Version == "" {
		subject = answer.Workload
	}
	return fmt.Sprintf("%s is %s (%s): %s", subject, paint(string(answer.State), answer.State), answer.Reason, text.OneLine(answer.Message))
}

// exitOf returns the exit code of a state as an error. explain is the command that explains the state.
func exitOf(answer statusAnswer, timeout time.Duration, explain string) error {
	switch answer.State {
	case diagnosis.StatePassed:
		return nil
	case diagnosis.StateRunning:
		return exitError{exitTimeout, fmt.Sprintf("the release of %s had not ended after %s", answer.Workload, timeout)}
	case diagnosis.StateNotJudged:
		return exitError{exitNo, fmt.Sprintf("Breakwater does not judge %s: `%s` says why", answer.Workload, explain)}
	default:
		return exitError{exitNo, fmt.Sprintf("the release did not pass: `%s` says why, and the ways out", explain)}
	}
}

// awaitRelease waits until the current release of the workload has ended. It prints each new
// state to stderr.
func (a *app) awaitRelease(ctx context.Context, c *clients, argument string, timeout time.Duration) (statusAnswer, error) {
	if timeout == 0 {
		_, _, in, err := c.currentInputOf(ctx, argument, "status", "")
		return answerOf(in.CurrentRelease(), in), err
	}
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var awaited v1alpha1.Release
	var answer statusAnswer
	last, begin := "", time.Now()
	err := a.follow(wait, c, c.namespace, func() (bool, error) {
		_, t, in, err := c.currentInputOf(wait, argument, "status", "")
		if err != nil {
			return false, err
		}
		argument = t.String()
		if awaited == (v1alpha1.Release{}) {
			awaited = in.CurrentRelease()
		}
		answer = answerOf(awaited, in)
		answer.ReleaseState = answer.After(time.Since(begin))
		if answer.State.EndsWait() {
			return true, nil
		}
		w, err := workload.FromUnstructured(t.kind(), t.object)
		if err != nil {
			return false, err
		}
		pods := max(w.Replicas, answer.Counts.Pods) // those of the counts exist
		if release := in.Find(awaited); release != nil && release.Status.RolledOutPods > 0 {
			pods = answer.Counts.Pods // later pods are not judged
		}
		if line := fmt.Sprintf("%s %s: %d of %d pods passed", answer.State, answer.Reason, answer.Counts.Passed, pods); line != last {
			last = line
			_, _ = fmt.Fprintln(a.ErrOut, line)
		}
		if awaited == (v1alpha1.Release{}) {
			return false, errNoRelease
		}
		return false, nil
	})
	switch {
	case ctx.Err() != nil:
		return answer, errors.New("interrupted")
	case wait.Err() == nil:
		return answer, err
	case answer.Workload == "":
		return answer, exitError{exitTimeout, fmt.Sprintf("the state of %s could not be read within %s: %v", argument, timeout, err)}
	case err != nil && !errors.Is(err, errNoRelease):
		answer.Message += fmt.Sprintf("; the last read failed: %v", err)
	}
	return answer, nil
}

// errNoRelease makes follow read again after a second: no release or batch changes while the workload has none.
var errNoRelease = errors.New("the workload has no release yet")

func answerOf(awaited v1alpha1.Release, in diagnosis.Input) statusAnswer {
	answer := statusAnswer{
		Namespace: in.Namespace, Workload: in.Kind + "/" + in.Name, Version: awaited.Version, Attempt: awaited.Attempt,
		ReleaseState: in.StateOf(awaited),
	}
	if c := in.Find(awaited); c != nil {
		answer.Counts = c.Status.Counts
	}
	return answer
}
