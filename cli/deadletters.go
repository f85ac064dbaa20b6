package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func (a *app) deadlettersCommand() *cobra.Command {
	var format string
	var all bool
	c := &cobra.Command{
		Use:   "deadletters",
		Short: "List CloudEvents that could not be delivered and verdicts in an inbox, and what became of them",
		Long: `List CloudEvents that could not be delivered and verdicts in an inbox, and what became of them. An inbox also has verdicts
that the Broker did not accept, or whose order node is not known yet.

The controller sends a verdict that is stored in an inbox, and a wake-up without an effect, again every 2
to 30 seconds (a look during a probation: every 1 to 10 minutes). WAITING true means that its effect is still
missing. A malformed verdict, or one that a full inbox does not take, is not sent again: before the timeout of
the check, the server is asked; if it answers pass, the pass is recorded. A fail of stage POST is lost.
A report is sent once, and no release waits for it: the function that did not accept it, report or notify,
misses it until it is replayed. REPLAY Possible means that it is stored, and that command replay sends it
again; -o name prints the names of these. Kubernetes deletes the Events of wake-ups, and those that store reports, after an hour.

Not listed are verdicts of other judges than the server, which their judge sends again, and events above
the limit of function deadletter, which are only counted.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, namespace, err := a.listClients(all)
			if err != nil {
				return err
			}
			letters, _, err := c.deadLetters(cmd.Context(), namespace)
			if err != nil {
				return err
			}
			return a.printDeadLetters(format, letters)
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List those of all namespaces")
	c.AddCommand(a.replayCommand())
	return c
}

// deadLetters returns the dead letters of a namespace, and the Kubernetes Events by name.
func (c *clients) deadLetters(ctx context.Context, namespace string) ([]diagnosis.DeadLetter, map[string]corev1.Event, error) {
	events, err := c.kube.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.ReasonEventUndelivered})
	if err != nil {
		return nil, nil, c.listError("Events", "change", namespace, err)
	}
	releases, err := c.breakwater.AppV1alpha1().ChangeWorkloads(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, c.listError("releases", "change", namespace, err)
	}
	batches, err := c.breakwater.AppV1alpha1().ChangePods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, c.listError("batches", "change", namespace, err)
	}
	byName := map[string]corev1.Event{}
	for _, e := range events.Items {
		byName[e.Name] = e
	}
	return diagnosis.DeadLetters(events.Items, releases.Items, batches.Items, c.flags), byName, nil
}

func (a *app) printDeadLetters(format string, letters []diagnosis.DeadLetter) error {
	var rows [][]string
	now := time.Now()
	for _, l := range letters {
		rows = append(rows, []string{l.Namespace, l.Name, l.Object, fmt.Sprint(l.Waiting), string(l.Replay), age(l.Time.Time, now), l.Message + ": " + l.Explanation})
	}
	return printAs(a.Out, format, map[string]any{"deadLetters": list(letters)}, diagnosis.Replayable(letters), func(w io.Writer) error {
		if len(rows) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, "No dead letters.")
			return err
		}
		return table(w, []string{"NAMESPACE", "NAME", "OBJECT", "WAITING", "REPLAY", "AGE", "MESSAGE"}, rows)
	})
}
