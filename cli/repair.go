package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

func (a *app) repairCommand() *cobra.Command {
	var images []string
	var patch string
	var again bool
	c := &cobra.Command{
		Use:   "repair KIND/NAME (--image CONTAINER=IMAGE | --patch PATCH)",
		Short: "Release a repair of a suspended workload",
		Long: `Release a repair of a suspended workload: change its pod template and mark the change as the
repair. A suspension allows one repair, unless --again is set. The repair is judged as any release.`,
		Example: "  kubectl breakwater repair deployment/web --image app=registry.example/web:1.2.1\n" +
			`  kubectl breakwater repair deployment/web --patch '{"spec":{"template":{"spec":{"priorityClassName":"high"}}}}'`,
		Args: oneArgument(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(images) == 0) == (patch == "") {
				return errors.New("write what the repair changes: either --image CONTAINER=IMAGE or --patch PATCH (a merge patch, JSON or YAML)")
			}
			return a.patchWorkload(cmd.Context(), args[0], again, func(o *unstructured.Unstructured) (map[string]any, error) {
				change, err := repairOf(o, images, patch)
				if err != nil {
					return nil, err
				}
				if v1alpha1.SuspensionOf(o.GetLabels()) == "" {
					return nil, errors.New("the workload is not suspended, so it needs no repair: release the change as usual, for example with kubectl set image")
				}
				return change, nil
			})
		},
	}
	c.Flags().StringSliceVar(&images, "image", nil, "CONTAINER=IMAGE: the new image of a container; repeat it for several")
	c.Flags().StringVar(&patch, "patch", "", "Merge patch of the workload, JSON or YAML")
	c.Flags().BoolVar(&again, "again", false, "Allow another repair of the same suspension")
	return c
}

// repairOf returns the merge patch of the flags of repair.
func repairOf(o *unstructured.Unstructured, images []string, patch string) (map[string]any, error) {
	if patch == "" {
		return withImages(o, images)
	}
	change := map[string]any{}
	if err := yaml.Unmarshal([]byte(patch), &change); err != nil {
		return nil, fmt.Errorf("read --patch: %w: write a merge patch of the workload, JSON or YAML", err)
	}
	if change == nil { // null
		change = map[string]any{}
	}
	return change, nil
}

func (a *app) retryCommand() *cobra.Command {
	var again bool
	c := &cobra.Command{
		Use:   "retry KIND/NAME",
		Short: "Restart the pods in a new release, as kubectl rollout restart",
		Long: `Restart the pods in a new release: write the time into annotation
kubectl.kubernetes.io/restartedAt of the pod template, as kubectl rollout restart. That is a new
version of the workload: its pods replace the old ones and are judged. With the update strategy
OnDelete they do when you delete the old ones. On a suspended workload it is the repair, for a fault
outside of the template: a suspension allows one repair, unless --again is set.`,
		Args: oneArgument(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.patchWorkload(cmd.Context(), args[0], again, func(*unstructured.Unstructured) (map[string]any, error) {
				return map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
					"annotations": map[string]any{"kubectl.kubernetes.io/restartedAt": time.Now().Format(time.RFC3339)},
				}}}}, nil
			})
		},
	}
	c.Flags().BoolVar(&again, "again", false, "Allow another repair of the same suspension")
	return c
}

// patchWorkload patches a workload, as the repair if it is suspended. change returns the merge
// patch for the object as it is now; a rollout changes the object's status all the time.
func (a *app) patchWorkload(ctx context.Context, argument string, again bool, change func(*unstructured.Unstructured) (map[string]any, error)) error {
	c, err := a.clients()
	if err != nil {
		return err
	}
	prepare := func() (target, []byte, error) {
		t, err := c.workload(ctx, argument)
		if err != nil {
			return t, nil, err
		}
		patch, err := change(t.object)
		if err != nil {
			return t, nil, err
		}
		raw, err := completed(patch, t.object)
		if err != nil {
			return t, nil, err
		}
		if err := checkChange(t, raw); err != nil {
			return t, nil, err
		}
		return t, raw, c.checkOptedIn(ctx, t)
	}
	if again {
		// A change that releases nothing must not leave another repair allowed: the next change of the template that has the
		// label would be admitted as it.
		t, _, err := prepare()
		if err != nil {
			return err
		}
		if err := c.allowRepair(ctx, t); err != nil {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		t, raw, err := prepare()
		if err != nil {
			return err
		}
		after, err := c.dynamic.Resource(t.resource).Namespace(t.object.GetNamespace()).
			Patch(ctx, t.object.GetName(), types.MergePatchType, raw, metav1.PatchOptions{})
		if err != nil {
			return fmt.Errorf("%s was not released: %w", t, err)
		}
		return a.printReleased(c, t, after, "release")
	})
}

// allowRepair removes the bypass annotation of an earlier repair. The webhook requires a
// separate update for this.
func (c *clients) allowRepair(ctx context.Context, t target) error {
	remove := fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, v1alpha1.BypassAnnotation)
	if _, err := c.dynamic.Resource(t.resource).Namespace(t.object.GetNamespace()).
		Patch(ctx, t.object.GetName(), types.MergePatchType, []byte(remove), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("another repair of %s was not allowed: %w", t, err)
	}
	return nil
}

// completed returns the patch of a release as JSON. It has the resourceVersion of the object
// and, if the object is suspended, the label of a repair.
func completed(patch map[string]any, o *unstructured.Unstructured) ([]byte, error) {
	err := unstructured.SetNestedField(patch, o.GetResourceVersion(), "metadata", "resourceVersion")
	if v1alpha1.SuspensionOf(o.GetLabels()) != "" {
		err = errors.Join(err, unstructured.SetNestedField(patch, "true", "metadata", "labels", v1alpha1.IgnoredSuspendLabel))
	}
	if err != nil {
		return nil, fmt.Errorf("read --patch: %w: metadata and its labels must be maps", err)
	}
	return json.Marshal(patch)
}

// checkChange returns an error if a merge patch of a workload releases nothing. It compares the templates as the webhook does.
func checkChange(t target, patch []byte) error {
	before, err := t.object.MarshalJSON()
	if err != nil {
		return err
	}
	raw, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		return fmt.Errorf("apply the merge patch to %s: %w", t, err)
	}
	var after unstructured.Unstructured
	if err := after.UnmarshalJSON(raw); err != nil {
		return fmt.Errorf("apply the merge patch to %s: %w", t, err)
	}
	var templates [2]json.RawMessage
	for i, o := range []*unstructured.Unstructured{t.object, &after} {
		template, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "template") // a spec of another type has none
		if templates[i], err = json.Marshal(template); err != nil {
			return err
		}
		if templates[i], err = t.kind().ReleaseTemplate(templates[i]); err != nil {
			return fmt.Errorf("apply the merge patch to %s: %w", t, err)
		}
	}
	same, err := workload.SameTemplate(templates[0], templates[1])
	switch {
	case err != nil:
		return fmt.Errorf("apply the merge patch to %s: %w", t, err)
	case same && t.kind().Revisions == workload.KnativeRevisions:
		return fmt.Errorf("the change leaves the pod template of %s as it is, except for its name or scale: it releases nothing", t)
	case same:
		return fmt.Errorf("the change leaves the pod template of %s as it is: it releases nothing", t)
	}
	return nil
}

// printReleased prints the release that a change began. action is what the change does if it is not a repair.
func (a *app) printReleased(c *clients, t target, after *unstructured.Unstructured, action string) error {
	before, _ := v1alpha1.ReleaseOf(t.object.GetAnnotations())
	now, known := v1alpha1.ReleaseOf(after.GetAnnotations())
	if !known || now == before {
		_, err := fmt.Fprintf(a.Out, "%s changed, and no release has begun yet: `%s` says why\n", t, c.command("explain", t.String(), t.object.GetNamespace()))
		return err
	}
	if v1alpha1.CurrentBypassOf(after.GetLabels(), after.GetAnnotations()).UsesRepair() {
		action = "repair of the suspension: release"
	}
	_, err := fmt.Fprintf(a.Out, "%s: %s %s attempt %d; `%s` waits for its end\n",
		t, action, now.Version, now.Attempt, c.command("status", t.String(), t.object.GetNamespace()))
	return err
}

// withImages returns the merge patch that sets images.
func withImages(o *unstructured.Unstructured, images []string) (map[string]any, error) {
	change := map[string]any{}
	for _, image := range images {
		name, value, ok := strings.Cut(image, "=")
		if !ok || name == "" || value == "" {
			return nil, fmt.Errorf("--image %q: write CONTAINER=IMAGE, for example app=registry.example/web:1.2.1", image)
		}
		if err := setImage(change, o, name, value); err != nil {
			return nil, err
		}
	}
	return change, nil
}

// setImage sets the image of a container in a merge patch of a workload. A merge patch replaces the list of
// containers, so it contains all of them.
func setImage(change map[string]any, o *unstructured.Unstructured, name, image string) error {
	var names []string
	for _, list := range []string{"containers", "initContainers"} {
		path := []string{"spec", "template", "spec", list}
		containers, exists, err := unstructured.NestedSlice(change, path...)
		if !exists {
			containers, _, err = unstructured.NestedSlice(o.Object, path...)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", strings.Join(path, "."), err)
		}
		found := false
		for i := range containers {
			var c corev1.Container
			fields, _ := containers[i].(map[string]any)
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &c); err != nil {
				return fmt.Errorf("read container %d: %w", i, err)
			}
			names = append(names, c.Name)
			if c.Name == name {
				fields["image"], found = image, true
			}
		}
		if found {
			return unstructured.SetNestedSlice(change, containers, path...)
		}
	}
	return fmt.Errorf("--image %s=%s: the pod template has no container %s, only %s", name, image, name, strings.Join(names, ", "))
}
