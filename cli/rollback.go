package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func (a *app) rollbackCommand() *cobra.Command {
	var to string
	c := &cobra.Command{
		Use:   "rollback KIND/NAME [--to VERSION]",
		Short: "Roll back to a version that succeeded",
		Long: `Roll back to a version that succeeded, by default the newest one that is not current and has not failed
since. It needs no manifest: the templates of successful versions are saved. A suspended workload admits it.`,
		Example: "  kubectl breakwater rollback deployment/web\n  kubectl breakwater rollback deployment/web --to 3b41f0c2",
		Args:    oneArgument(cobra.ExactArgs(1)),
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
	all, err := c.saved(ctx, t)
	if err != nil {
		return err
	}
	releases, err := c.releasesOf(ctx, t)
	if err != nil {
		return err
	}
	missed, err := c.missed(ctx, t, releases)
	if err != nil {
		return err
	}
	failed := savedtemplate.FailedVersions(releases)
	written, _ := v1alpha1.ReleaseOf(o.GetAnnotations())
	saved, err := selectTemplate(all, cmp.Or(missed, written.Version), to, func(v string) bool { return failed[v] })
	if err != nil {
		return fmt.Errorf("%s was not rolled back: %w", t, err)
	}
	patch, err := rollbackPatch(o, t.kind(), saved)
	if err != nil {
		return err
	}
	after, err := c.dynamic.Resource(t.resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("%s was not rolled back to %s: %w", t, saved.Release.Version, err)
	}
	return a.printReleased(c, t, after, "rolled back to version")
}

// rollbackPatch returns the JSON patch that writes a saved template to a workload.
func rollbackPatch(o *unstructured.Unstructured, kind workload.Kind, saved savedtemplate.Saved) ([]byte, error) {
	live, _, _ := unstructured.NestedMap(o.Object, "spec", "template") // a workload has one
	current, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	template, err := kind.WithScalingOf(saved.Template, current)
	if err != nil {
		return nil, err
	}
	return json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": o.GetUID()},
		{"op": "replace", "path": "/spec/template", "value": template},
	})
}

// selectTemplate selects the saved template of the version that begins with to. If to is
// empty, it selects the newest template of another version than the current one. A version that
// failed since it succeeded is not selected: a suspended workload does not admit it. all is
// sorted, latest attempt first.
func selectTemplate(all []savedtemplate.Saved, current, to string, failed func(version string) bool) (savedtemplate.Saved, error) {
	var found savedtemplate.Saved
	var good, bad, matching []string
	for _, s := range all {
		version := s.Release.Version
		switch {
		case version == current:
			continue
		case failed(version):
			bad = append(bad, version)
		default:
			good = append(good, version)
		}
		if strings.HasPrefix(version, to) {
			found, matching = s, append(matching, version)
		}
	}
	switch {
	case len(good) == 0 && len(bad) > 0:
		return savedtemplate.Saved{}, fmt.Errorf("the other versions failed since they succeeded: %s", strings.Join(bad, ", "))
	case len(good) == 0:
		return savedtemplate.Saved{}, fmt.Errorf("no other version has succeeded, so none is saved")
	case to == "":
		found, _ = savedtemplate.Newest(all, current, failed)
	case len(matching) == 0 && strings.HasPrefix(current, to):
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is the current version: use one of %s", to, strings.Join(good, ", "))
	case len(matching) == 0:
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is not a saved version: use one of %s", to, strings.Join(good, ", "))
	case len(matching) > 1:
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is a prefix of several versions (%s): write more characters of the version", to, strings.Join(matching, ", "))
	case failed(found.Release.Version):
		return savedtemplate.Saved{}, fmt.Errorf("--to %s is a version that failed since it succeeded: use one of %s", to, strings.Join(good, ", "))
	}
	return found, nil
}
