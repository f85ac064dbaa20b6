package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
	"github.com/breakwater-dev/breakwater/internal/text"
)

func (a *app) explainCommand() *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "explain KIND/NAME",
		Short: "Say why a request is denied, or why an object waits or is stuck, and the ways out",
		Long: `Say why a request is denied, or why an object waits or is stuck, and the ways out.

KIND is a kind of workload, changeworkload, changepod, pod, podunavailablebudget (pub) or
poddeletionflowcontrol (pdfc). A changeworkload must be the current release of its workload, and a
changepod a batch of it.`,
		Example: "  kubectl breakwater explain deployment/web\n  kubectl breakwater explain pod/web-0",
		Args:    oneArgument(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clients()
			if err != nil {
				return err
			}
			t, err := c.target(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e, isOther, err := explainOther(t)
			if err != nil {
				return err
			}
			if !isOther {
				if e, err = c.explain(cmd.Context(), args[0]); err != nil {
					return err
				}
			}
			return a.printExplanation(format, e, c.flags)
		},
	}
	outputFlag(c, &format)
	return c
}

// explain explains the state of the workload of an argument.
func (c *clients) explain(ctx context.Context, argument string) (diagnosis.Explanation, error) {
	_, t, in, err := c.currentInputOf(ctx, argument, "explain", "")
	if err != nil {
		return diagnosis.Explanation{}, err
	}
	if in.LastSucceeded() == nil {
		if in.Saved, err = c.saved(ctx, t); err != nil {
			return diagnosis.Explanation{}, err
		}
	}
	return diagnosis.Explain(in), nil
}

// printExplanation prints an explanation; its commands get the flags that select the cluster.
func (a *app) printExplanation(format string, e diagnosis.Explanation, flags string) error {
	e.Why, e.WaysOut = list(e.Why), list(e.WaysOut)
	for i, way := range e.WaysOut {
		if way.Command != "" {
			e.WaysOut[i].Command += flags
		}
	}
	return printAs(a.Out, format, e, []string{e.Subject}, func(w io.Writer) error { return writeExplanation(w, e, a.paint()) })
}

func writeExplanation(w io.Writer, e diagnosis.Explanation, paint diagnosis.Paint) error {
	if _, err := fmt.Fprintf(w, "%s is %s (%s)\n", e.Subject, paint(string(e.State), e.State), e.Reason); err != nil {
		return err
	}
	for _, why := range e.Why {
		if _, err := fmt.Fprintln(w, "  "+text.OneLine(why)); err != nil {
			return err
		}
	}
	if len(e.WaysOut) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(w, "Ways out:"); err != nil {
		return err
	}
	for _, way := range e.WaysOut {
		line := "  " + way.Do
		if way.Command != "" {
			line += "\n    " + way.Command
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}
