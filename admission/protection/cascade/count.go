package cascade

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// count is the number of objects of a kind.
type count struct {
	one, many string
	n         int64
	// more: not all objects were read, so there may be more than n.
	more bool
}

// describe formats the counts that are not 0.
func describe(all ...count) string {
	var parts []string
	for _, c := range all {
		if c.n == 0 {
			continue
		}
		noun, least := c.many, ""
		if c.n == 1 {
			noun = c.one
		}
		if c.more {
			least = "at least "
		}
		parts = append(parts, fmt.Sprintf("%s%d %s", least, c.n, noun))
	}
	return strings.Join(parts, " and ")
}

// bound reports whether a PersistentVolumeClaim has a volume, whose data could be lost. The
// data of a terminating one is lost anyway.
func bound(c *corev1.PersistentVolumeClaim) bool {
	return c.DeletionTimestamp == nil && c.Status.Phase == corev1.ClaimBound
}

// servedResource returns the resource by which the objects of a CRD can be listed;
// false if no version is served.
func servedResource(crd *apiextensionsv1.CustomResourceDefinition) (schema.GroupVersionResource, bool) {
	found := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (found == "" || v.Storage) {
			found = v.Name
		}
	}
	return schema.GroupVersionResource{Group: crd.Spec.Group, Version: found, Resource: crd.Spec.Names.Plural}, found != ""
}
