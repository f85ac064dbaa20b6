package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/cli/diagnosis"
)

func (a *app) treeCommand() *cobra.Command {
	var watch bool
	c := &cobra.Command{
		Use:     "tree [KIND/NAME]",
		Short:   "Draw workloads with their releases, batches and pods",
		Example: "  kubectl breakwater tree deployment/web -w",
		Args:    oneArgument(cobra.MaximumNArgs(1)),
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
	inputs, err := c.treeInputs(ctx, args)
	if err != nil {
		return err
	}
	if len(inputs) == 0 {
		_, err := fmt.Fprintf(a.ErrOut, "No releases found in namespace %s.\n", c.namespace)
		return err
	}
	for _, in := range inputs {
		if _, err := io.WriteString(w, diagnosis.Tree(in, a.paint())); err != nil {
			return err
		}
	}
	return nil
}

// treeInputs gathers the releases of the workloads of arguments; without arguments, of the workloads of the namespace
// that have a release.
func (c *clients) treeInputs(ctx context.Context, args []string) (inputs []diagnosis.Input, err error) {
	if len(args) == 0 {
		return c.inputsOfNamespace(ctx)
	}
	for _, argument := range args {
		in, err := c.inputOf(ctx, argument)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// inputsOfNamespace gathers the releases of the workloads of the namespace that have a release. It leaves out deleted
// workloads, whose release a finalizer may keep.
func (c *clients) inputsOfNamespace(ctx context.Context) (inputs []diagnosis.Input, err error) {
	releases, err := c.listReleases(ctx, c.namespace, "")
	if err != nil {
		return nil, err
	}
	batches, err := c.listBatches(ctx, c.namespace, "")
	if err != nil {
		return nil, err
	}
	owners := map[types.UID]v1alpha1.WorkloadRef{}
	for _, r := range releases {
		if r.DeletionTimestamp == nil {
			owners[r.Spec.WorkloadRef.UID] = r.Spec.WorkloadRef
		}
	}
	for _, o := range slices.SortedFunc(maps.Values(owners), func(a, b v1alpha1.WorkloadRef) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.UID, b.UID))
	}) {
		kind := kindOf(schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)).Argument()
		t, err := c.target(ctx, kind+"/"+o.Name)
		if errors.As(err, new(argumentError)) || err == nil && t.object.GetUID() != o.UID {
			continue
		}
		var in diagnosis.Input
		if err == nil {
			in, err = c.inputFrom(ctx, t, releases, batches)
		}
		if isFinal(err) {
			in, err = diagnosis.Input{Kind: kind, Namespace: c.namespace, Name: o.Name, Unreadable: err}, nil
		}
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}
