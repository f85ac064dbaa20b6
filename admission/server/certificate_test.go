package server

import (
	"testing"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	certresources "knative.dev/pkg/webhook/certificates/resources"

	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

func TestACertificateIsParsedOnceForEachStateOfItsSecret(t *testing.T) {
	index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	c := &certificate{secrets: corelisters.NewSecretLister(index), name: "certs"}
	if _, err := c.get(); err == nil {
		t.Error("there is no Secret, and no error")
	}
	serials := map[string]bool{}
	for range 2 {
		secret, err := certresources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, "webhook")
		if err != nil {
			t.Fatal(err)
		}
		if err := index.Update(secret); err != nil {
			t.Fatal(err)
		}
		first, err := c.get()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := c.get(); err != nil || again != first {
			t.Errorf("the unchanged Secret was parsed again, %v", err)
		}
		serials[first.Leaf.SerialNumber.String()] = true
	}
	if len(serials) != 2 {
		t.Error("the certificate of a changed Secret was not read")
	}
	empty, err := certresources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	empty.Data = nil
	if err := index.Update(empty); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := c.get(); err == nil {
			t.Error("the Secret is empty, and there is no error")
		}
	}
}
