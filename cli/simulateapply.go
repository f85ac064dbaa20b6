package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
)

// noLastApplied is the warning about an object from which kubectl apply removes no field.
const noLastApplied = "annotation " + corev1.LastAppliedConfigAnnotation + " is missing, so kubectl apply removes no field: use --server-side if the object is applied server-side"

// applyFlags are the flags of kubectl apply that change its requests.
type applyFlags struct {
	serverSide     bool
	forceConflicts bool
	fieldManager   string
}

func (a *app) simulateApply() *cobra.Command {
	var files resource.FilenameOptions
	var flags applyFlags
	c := a.simulation(&cobra.Command{
		Use: "apply -f FILE...", Short: "Would the manifests be applied?", Args: cobra.NoArgs,
		Long: `Would the manifests be applied? The dry run sends what kubectl apply with the same flags sends.

Without --server-side an object that does not exist is created. Another one gets a patch, which also
removes the fields that are in annotation kubectl.kubernetes.io/last-applied-configuration and not in the
manifest. With --server-side the manifest is sent as a server-side apply of --field-manager: a field of
another manager is a conflict, unless --force-conflicts. As for kubectl apply, unknown fields are errors.

No release check is made in a dry run; a warning says so.`,
		Example: "  kubectl breakwater simulate apply -f web.yaml\n  kustomize build . | kubectl breakwater simulate apply -f -\n" +
			"  kubectl breakwater simulate apply --server-side --field-manager kustomize-controller --force-conflicts -f web.yaml",
	}, func(ctx context.Context, c *clients, _ []string, collect func() []string) (all []simulated, err error) {
		if len(files.Filenames) == 0 {
			return nil, errors.New("no manifest: write -f FILE, a folder, a URL, or - for stdin")
		}
		if flags.forceConflicts && !flags.serverSide {
			return nil, errors.New("--force-conflicts has an effect only with --server-side: add it")
		}
		// As for kubectl apply, a manifest of another namespace than that of -n is an error.
		_, enforced, err := a.flags.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return nil, fmt.Errorf("read the namespace: %w", err)
		}
		infos, err := resource.NewBuilder(a.flags).Unstructured().NamespaceParam(c.namespace).DefaultNamespace().
			FilenameParam(enforced, &files).Flatten().Do().Infos()
		if err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if len(infos) == 0 {
			return nil, errors.New("no manifest is in the files of -f")
		}
		for _, info := range infos {
			var client dynamic.ResourceInterface = c.dynamic.Resource(info.Mapping.Resource)
			if info.Namespaced() {
				client = c.dynamic.Resource(info.Mapping.Resource).Namespace(info.Namespace)
			}
			collect()
			warnings, err := flags.dryRun(ctx, client, info.Object.(*unstructured.Unstructured)) // the builder is Unstructured
			s, err := simulatedOf(strings.ToLower(info.Mapping.GroupVersionKind.Kind)+"/"+info.Name, info.Namespace, err, append(warnings, collect()...))
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
		return all, nil
	})
	c.Flags().StringSliceVarP(&files.Filenames, "filename", "f", nil, "File, folder or URL with manifests; - is stdin")
	c.Flags().BoolVarP(&files.Recursive, "recursive", "R", false, "Read folders recursively")
	c.Flags().BoolVar(&flags.serverSide, "server-side", false, "Simulate kubectl apply --server-side")
	c.Flags().BoolVar(&flags.forceConflicts, "force-conflicts", false, "Simulate kubectl apply --server-side --force-conflicts")
	c.Flags().StringVar(&flags.fieldManager, "field-manager", "", "Field manager; that of kubectl apply if empty")
	return c
}

// dryRun makes a dry run of the request that kubectl apply sends for a manifest, and returns warnings
// about it. kubectl apply also lets the API server reject unknown fields.
func (f applyFlags) dryRun(ctx context.Context, client dynamic.ResourceInterface, manifest *unstructured.Unstructured) (warnings []string, err error) {
	name, dryRun := manifest.GetName(), []string{metav1.DryRunAll}
	if f.serverSide {
		raw, err := manifest.MarshalJSON()
		if err != nil {
			return nil, err
		}
		_, err = client.Patch(ctx, name, types.ApplyPatchType, raw, metav1.PatchOptions{
			DryRun: dryRun, FieldManager: cmp.Or(f.fieldManager, "kubectl"), FieldValidation: metav1.FieldValidationStrict, Force: &f.forceConflicts,
		})
		return nil, err
	}
	manager := cmp.Or(f.fieldManager, "kubectl-client-side-apply")
	modified, err := withLastApplied(manifest)
	if err != nil {
		return nil, err
	}
	live, err := client.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = client.Create(ctx, modified, metav1.CreateOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
		return nil, err
	} else if err != nil {
		return nil, err
	}
	if live.GetAnnotations()[corev1.LastAppliedConfigAnnotation] == "" {
		warnings = append(warnings, noLastApplied)
	}
	patchType, patch, err := applyPatch(live, modified)
	if err != nil || string(patch) == "{}" { // kubectl apply sends no empty patch
		return warnings, err
	}
	_, err = client.Patch(ctx, name, patchType, patch, metav1.PatchOptions{DryRun: dryRun, FieldManager: manager, FieldValidation: metav1.FieldValidationStrict})
	return warnings, err
}

// withLastApplied returns the manifest with the annotation of kubectl apply, which has the manifest
// itself.
func withLastApplied(manifest *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	modified := manifest.DeepCopy()
	annotations := map[string]string{} // empty, and not absent, as kubectl writes it
	for key, value := range manifest.GetAnnotations() {
		if key != corev1.LastAppliedConfigAnnotation {
			annotations[key] = value
		}
	}
	modified.SetAnnotations(annotations)
	raw, err := modified.MarshalJSON()
	if err != nil {
		return nil, err
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(raw)
	modified.SetAnnotations(annotations)
	return modified, nil
}

// applyPatch returns the patch of kubectl apply: what differs between the live object and the manifest,
// without live fields that were never applied. Kinds of Kubernetes get a strategic merge patch, others
// a JSON merge patch.
func applyPatch(live, manifest *unstructured.Unstructured) (types.PatchType, []byte, error) {
	current, err := live.MarshalJSON()
	if err != nil {
		return "", nil, err
	}
	modified, err := manifest.MarshalJSON()
	if err != nil {
		return "", nil, err
	}
	original := []byte(live.GetAnnotations()[corev1.LastAppliedConfigAnnotation])
	typed, err := scheme.Scheme.New(manifest.GroupVersionKind())
	if runtime.IsNotRegisteredError(err) {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(original, modified, current)
		return types.MergePatchType, patch, err
	} else if err != nil {
		return "", nil, err
	}
	fields, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return "", nil, err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(original, modified, current, fields, true)
	return types.StrategicMergePatchType, patch, err
}
