package broker

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	duckv1 "knative.dev/pkg/apis/duck/v1"
)

// ConfigName is the name of the ConfigMap, in the system namespace, that references
// the Broker.
const ConfigName = "config-broker"

// The keys of the ConfigMap.
const (
	keyAPIVersion = "apiVersion"
	keyKind       = "kind"
	keyNamespace  = "namespace"
	keyName       = "name"
)

// parse returns the reference: a Broker of any class, or any other addressable
// object. The error names the key.
func parse(cm *corev1.ConfigMap) (duckv1.KReference, error) {
	if len(cm.Data) == 0 {
		return duckv1.KReference{}, errAbsent()
	}
	ref := duckv1.KReference{
		APIVersion: cm.Data[keyAPIVersion],
		Kind:       cm.Data[keyKind],
		Namespace:  cm.Data[keyNamespace],
		Name:       cm.Data[keyName],
	}
	var errs []error
	for _, f := range []struct {
		key, value string
		check      func(string) []string
	}{
		{keyAPIVersion, ref.APIVersion, validation.IsQualifiedName},
		{keyKind, ref.Kind, validation.IsCIdentifier},
		{keyNamespace, ref.Namespace, validation.IsDNS1123Label},
		{keyName, ref.Name, validation.IsDNS1123Subdomain},
	} {
		for _, why := range f.check(f.value) {
			errs = append(errs, fmt.Errorf("ConfigMap %s: %s %q: %s", ConfigName, f.key, f.value, why))
		}
	}
	return ref, errors.Join(errs...)
}

func errAbsent() error { return fmt.Errorf("ConfigMap %s: absent or empty", ConfigName) }
