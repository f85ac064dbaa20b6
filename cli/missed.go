package cli

import (
	"context"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/savedtemplate"
	"github.com/breakwater-dev/breakwater/internal/workload"
)

// missed returns the version of the target's pod template if the webhook has not seen it, else "". The
// annotations are then those of the template before.
//
// Another version than that of the annotations does not prove it: the webhook and the plugin may know
// different fields of a template. So the saved template of the version must differ, too.
func (c *clients) missed(ctx context.Context, t target) (string, error) {
	written, known := v1alpha1.ReleaseOf(t.object.GetAnnotations())
	if !known {
		return "", nil
	}
	w, err := workload.FromUnstructured(t.kind(), t.object)
	if err != nil {
		return "", err
	}
	version, err := workload.Version(w.Kind, &w.Template)
	if err != nil || version == written.Version {
		return "", err
	}
	all, err := savedtemplate.List(ctx, c.kube, w)
	if err != nil {
		return "", err
	}
	saved, ok := savedtemplate.Find(all, written.Version)
	if !ok {
		return "", nil
	}
	template, err := saved.PodTemplate(w.Kind)
	if err != nil {
		return "", err
	}
	if of, err := workload.Version(w.Kind, template); err != nil || of == version {
		return "", err
	}
	return version, nil
}
