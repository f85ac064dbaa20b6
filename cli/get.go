package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func (a *app) getCommand() *cobra.Command {
	var format string
	var all, watch bool
	c := &cobra.Command{
		Use:     "get [KIND/NAME]",
		Short:   "List releases with their state and pods",
		Example: "  kubectl breakwater get -A\n  kubectl breakwater get deployment/web -o json",
		Args:    oneArgument(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return fmt.Errorf("-A lists the releases of all namespaces: leave it or %s out", args[0])
			}
			c, namespace, err := a.listClients(all)
			if err != nil {
				return err
			}
			where := ""
			if !all && len(args) == 0 {
				where = " in namespace " + namespace + "; -A lists all namespaces"
			}
			none := fmt.Sprintf("No releases found%s. `%s` says why a workload has none.", where,
				c.command("explain", cmp.Or(strings.Join(args, ""), "KIND/NAME"), cmp.Or(namespace, "NAMESPACE")))
			show := func(ctx context.Context, w io.Writer) error {
				releases, err := c.releases(ctx, namespace, args)
				if err != nil {
					return err
				}
				return a.printReleases(w, format, releases, all, none)
			}
			if watch {
				return a.watch(cmd.Context(), c, namespace, show)
			}
			return show(cmd.Context(), a.Out)
		},
	}
	outputFlag(c, &format)
	c.Flags().BoolVarP(&all, "all-namespaces", "A", false, "List the releases of all namespaces")
	watchFlag(c, &watch)
	return c
}

// releases lists the releases of a namespace, or those of the workload of an argument.
func (c *clients) releases(ctx context.Context, namespace string, args []string) ([]v1alpha1.ChangeWorkload, error) {
	if len(args) > 0 {
		in, err := c.inputOf(ctx, args[0])
		return in.Releases, err
	}
	return c.listReleases(ctx, namespace, "")
}

// printReleases prints releases, or none to stderr if there are none.
func (a *app) printReleases(out io.Writer, format string, releases []v1alpha1.ChangeWorkload, all bool, none string) error {
	slices.SortFunc(releases, func(a, b v1alpha1.ChangeWorkload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Spec.WorkloadRef.Name, b.Spec.WorkloadRef.Name), cmp.Compare(b.Spec.Attempt, a.Spec.Attempt))
	})
	answer := v1alpha1.ChangeWorkloadList{Items: list(releases)}
	answer.APIVersion, answer.Kind = v1alpha1.SchemeGroupVersion.String(), "ChangeWorkloadList"
	var names []string
	var rows [][]string
	now, paint := time.Now(), a.paint()
	for i := range releases {
		c := &releases[i]
		c.APIVersion, c.Kind = answer.APIVersion, "ChangeWorkload"
		names = append(names, "changeworkload.app.ops.cloud.alipay.com/"+c.Name)
		state := diagnosis.StateOf(c.Release(), c.Release(), c)
		n := c.Status.Counts
		row := []string{
			kindOf(schema.FromAPIVersionAndKind(c.Spec.WorkloadRef.APIVersion, c.Spec.WorkloadRef.Kind)).Argument() + "/" + c.Spec.WorkloadRef.Name, c.Spec.Reversion, fmt.Sprint(c.Spec.Attempt),
			paint(string(state.State), state.State), state.Reason, fmt.Sprintf("%d/%d", n.Passed, n.Pods), fmt.Sprint(n.Failed), age(c.CreationTimestamp.Time, now),
		}
		if all {
			row = append([]string{c.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	return printAs(out, format, answer, names, func(w io.Writer) error {
		if len(rows) == 0 {
			_, err := fmt.Fprintln(a.ErrOut, none)
			return err
		}
		header := []string{"WORKLOAD", "VERSION", "ATTEMPT", "STATE", "REASON", "PASSED", "FAILED", "AGE"}
		if all {
			header = append([]string{"NAMESPACE"}, header...)
		}
		return table(w, header, rows)
	})
}
