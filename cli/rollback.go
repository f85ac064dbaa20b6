package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
)

func (a *app) rollbackCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "rollback KIND/NAME [--to VERSION]",
		Short: "Roll back to a version that succeeded",
		Long: `Roll back to a version that succeeded, by default the newest one that is not current. It needs
no manifest: the templates of successful versions are saved. A suspended workload admits it.`,
		Example: "  kubectl breakwater rollback deployment/web\n  kubectl breakwater rollback deployment/web --to 3b41f0c2",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.clients()
			if err != nil {
				return err
			}
			t, err := c.workload(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.rollback(cmd.Context(), c, t, to)
		},
	}
	c.Flags().StringVar(&to, "to", "", "The version, or its first characters")
	return c
}

func (a *app) rollback(ctx context.Context, c *clients, t target, to string) error {
	o := t.object
	list, err := c.kube.AppsV1().ControllerRevisions(o.GetNamespace()).List(ctx, metav1.ListOptions{LabelSelector: savedtemplate.Selector(o.GetUID()).String()})
	if err != nil {
		return fmt.Errorf("list the saved templates of %s: %w", t, err)
	}
	missed, err := c.missed(ctx, t)
	if err != nil {
		return err
	}
	written, _ := v1alpha1.ReleaseOf(o.GetAnnotations())
	saved, err := selectTemplate(savedtemplate.ReadAll(list.Items, o.GetUID()), cmp.Or(missed, written.Version), to)
	if err != nil {
		return fmt.Errorf("roll back %s: %w", t, err)
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.GetUID()},
		{"op": "replace", "path": "/spec/template", "value": saved.Template},
	})
	if err != nil {
		return err
	}
	after, err := c.dynamic.Resource(t.resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("roll back %s to %s: %w", t, saved.Release.Version, err)
	}
	return a.printReleased(t, after)
}

// selectTemplate selects the saved template of the version that begins with to. If to is
// empty, it selects the newest template of another version than the current one. all is
// sorted, latest attempt first.
func selectTemplate(all []savedtemplate.Saved, current, to string) (savedtemplate.Saved, error) {
	var found []savedtemplate.Saved
	var versions, matching []string
	for _, s := range all {
		if s.Release.Version == current {
			continue
		}
		versions = append(versions, s.Release.Version)
		if strings.HasPrefix(s.Release.Version, to) {
			found, matching = append(found, s), append(matching, s.Release.Version)
		}
	}
	switch {
	case len(versions) == 0:
		return savedtemplate.Saved{}, fmt.Errorf("no other version has succeeded, so none is saved")
	case len(found) == 0 && strings.HasPrefix(current, to):
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is the current version: use one of %s", to, strings.Join(versions, ", "))
	case len(found) == 0:
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is not a saved version: use one of %s", to, strings.Join(versions, ", "))
	case to != "" && len(found) > 1:
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is a prefix of several versions (%s): write more characters of the version", to, strings.Join(matching, ", "))
	}
	return found[0], nil
}
