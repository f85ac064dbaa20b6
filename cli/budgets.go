package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

// budgetsAnswer is the output of command budgets.
type budgetsAnswer struct {
	Budgets      []v1alpha1.PodUnavailableBudget   `json:"budgets"`
	FlowControls []v1alpha1.PodDeletionFlowControl `json:"flowControls"`
	// Note says why FlowControls is empty if flow controls may exist.
	Note string `json:"note,omitempty"`
}

func (a *app) budgetsCommand() *cobra.Command {
	var format string
	var all bool
	c := &cobra.Command{
		Use:   "budgets",
		Short: "List budgets and flow controls with what they allow now",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, namespace, err := a.listClients(all)
			if err != nil {
				return err
			}
			budgets, err := c.breakwater.PolicyV1alpha1().PodUnavailableBudgets(namespace).List(cmd.Context(), metav1.ListOptions{})
			if err != nil {
				return c.listError("budgets", "protection", namespace, err)
			}
			controls, err := c.breakwater.PolicyV1alpha1().PodDeletionFlowControls().List(cmd.Context(), metav1.ListOptions{})
			answer := budgetsAnswer{Budgets: budgets.Items}
			switch {
			case err == nil:
				answer.FlowControls = controls.Items
			case apierrors.IsForbidden(err): // flow controls are cluster-scoped
				answer.Note = "Flow controls are not shown: you may not list poddeletionflowcontrols."
			default:
				return c.listError("flow controls", "protection", "", err)
			}
			return a.printBudgets(format, answer)
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List the budgets of all namespaces")
	return c
}

func (a *app) printBudgets(format string, g budgetsAnswer) error {
	g.Budgets, g.FlowControls = list(g.Budgets), list(g.FlowControls)
	if g.Note != "" {
		_, _ = fmt.Fprintln(a.ErrOut, g.Note)
	}
	var names []string
	var budgets, controls [][]string
	now, paint := time.Now(), a.paint()
	for i := range g.Budgets {
		b := &g.Budgets[i]
		names = append(names, "podunavailablebudget.policy.kruise.io/"+b.Name)
		e, s := diagnosis.ExplainBudget(b), b.Status
		budgets = append(budgets, []string{b.Namespace, b.Name, fmt.Sprint(s.UnavailableAllowed), fmt.Sprint(s.CurrentAvailable),
			fmt.Sprint(s.DesiredAvailable), fmt.Sprint(s.TotalReplicas), paint(e.Reason, e.State), age(b.CreationTimestamp.Time, now)})
	}
	for i := range g.FlowControls {
		f := &g.FlowControls[i]
		names = append(names, "poddeletionflowcontrol.policy.kruise.io/"+f.Name)
		e := diagnosis.ExplainFlowControl(f)
		controls = append(controls, []string{f.Name, fmt.Sprint(f.Status.Deleted), paint(e.Reason, e.State), age(f.CreationTimestamp.Time, now)})
	}
	return printAs(a.Out, format, g, names, func(w io.Writer) error {
		if len(budgets)+len(controls) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, "No budgets and no flow controls found.")
			return err
		}
		if len(budgets) > 0 {
			if err := table(w, []string{"NAMESPACE", "BUDGET", "ALLOWED", "CURRENT", "DESIRED", "TOTAL", "STATE", "AGE"}, budgets); err != nil {
				return err
			}
		}
		if len(controls) == 0 {
			return nil
		}
		if len(budgets) > 0 {
			_, _ = fmt.Fprintln(w)
		}
		return table(w, []string{"FLOW CONTROL", "DELETED", "STATE", "AGE"}, controls)
	})
}
