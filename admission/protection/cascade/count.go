package cascade

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// count is how many of something there are, as far as it was counted.
type count struct {
	one, many string
	n         int64
	// more: there are more than n.
	more bool
}

// words says what would go; empty when nothing would.
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
			least = "more than "
		}
		parts = append(parts, fmt.Sprintf("%s%d %s", least, c.n, noun))
	}
	return strings.Join(parts, " and ")
}

// active says whether a pod would be lost: one that has ended, or is going,
// would not.
func active(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

// bound says whether a claim holds a volume, whose data could be lost.
func bound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// served is the resource by which the objects of a CRD can be listed; false
// when none of its versions is served.
func servedResource(crd *apiextensionsv1.CustomResourceDefinition) (schema.GroupVersionResource, bool) {
	found := ""
	for _, v := range crd.Spec.Versions {
		if v.Served && (found == "" || v.Storage) {
			found = v.Name
		}
	}
	return schema.GroupVersionResource{Group: crd.Spec.Group, Version: found, Resource: crd.Spec.Names.Plural}, found != ""
}
