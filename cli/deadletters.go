package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func (a *app) deadlettersCommand() *cobra.Command {
	var format string
	var all bool
	c := &cobra.Command{
		Use:   "deadletters",
		Short: "List CloudEvents that could not be delivered, and what became of them",
		Long: `List CloudEvents that could not be delivered, and what became of them.

No event is lost for good, because all state is in objects: the controller sends a verdict of the
inbox, and a wake-up without an effect, again every 2 to 30 seconds. WAITING true means that the event
has no effect yet. Kubernetes deletes the Events of wake-ups after an hour.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect()
			if err != nil {
				return err
			}
			namespace := c.namespace
			if all {
				namespace = metav1.NamespaceAll
			}
			events, err := c.kube.CoreV1().Events(namespace).List(cmd.Context(), metav1.ListOptions{FieldSelector: "reason=" + v1alpha1.ReasonEventUndelivered})
			if err != nil {
				return fmt.Errorf("list the Events: %w", err)
			}
			releases, err := c.breakwater.AppV1alpha1().ChangeWorkloads(namespace).List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("list the releases: %w", err)
			}
			batches, err := c.breakwater.AppV1alpha1().ChangePods(namespace).List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return fmt.Errorf("list the batches: %w", err)
			}
			return a.printDeadLetters(format, diagnosis.DeadLetters(events.Items, releases.Items, batches.Items))
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List those of all namespaces")
	return c
}

func (a *app) printDeadLetters(format string, letters []diagnosis.DeadLetter) error {
	var names []string
	var rows [][]string
	now := time.Now()
	for _, l := range letters {
		names = append(names, l.Object)
		rows = append(rows, []string{l.Namespace, l.Object, fmt.Sprint(l.Waiting), age(l.Time.Time, now), l.Message + ": " + l.Explanation})
	}
	return a.print(format, map[string]any{"deadLetters": letters}, names, func(w io.Writer) error {
		if len(rows) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, "No dead letters.")
			return err
		}
		return table(w, []string{"NAMESPACE", "OBJECT", "WAITING", "AGE", "MESSAGE"}, rows)
	})
}
