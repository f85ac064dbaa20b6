package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func (a *app) treeCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:     "tree [KIND/NAME]",
		Short:   "Draw workloads with their releases, batches and pods",
		Example: "  kubectl breakwater tree deployment/web -w",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clients()
			if err != nil {
				return err
			}
			show := func(ctx context.Context, w io.Writer) error { return a.showTree(ctx, c, args, w) }
			if watch {
				return a.watch(cmd.Context(), c, c.namespace, show)
			}
			return show(cmd.Context(), a.Out)
		},
	}
	watchFlag(c, &watch)
	return c
}

func (a *app) showTree(ctx context.Context, c *clients, args []string, w io.Writer) error {
	if len(args) == 0 {
		var err error
		if args, err = c.workloadsWithReleases(ctx); err != nil {
			return err
		}
		if len(args) == 0 {
			_, err := fmt.Fprintf(a.ErrOut, "No releases found in namespace %s.\n", c.namespace)
			return err
		}
	}
	for _, argument := range args {
		_, f, err := c.inputOf(ctx, argument)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, diagnosis.Tree(f, a.paint())); err != nil {
			return err
		}
	}
	return nil
}

// workloadsWithReleases returns the workloads of the namespace that have a release, as
// arguments.
func (c *clients) workloadsWithReleases(ctx context.Context) ([]string, error) {
	list, err := c.breakwater.AppV1alpha1().ChangeWorkloads(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the releases: %w", err)
	}
	owners := map[types.UID]string{} // one release for each workload
	for _, r := range list.Items {
		owners[r.Spec.WorkloadRef.UID] = "changeworkload/" + r.Name
	}
	return slices.Sorted(maps.Values(owners)), nil
}
