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
}

// The Secret is emptied to force a new certificate, or deleted by mistake. The API server trusts the last certificate until
// its end, and a replica without it would deny requests.
func TestALostSecretStopsNoReplicaThatHasItsCertificate(t *testing.T) {
	secret, err := certresources.MakeSecret(t.Context(), "certs", v1alpha1.SystemNamespace, "webhook")
	if err != nil {
		t.Fatal(err)
	}
	empty := secret.DeepCopy()
	empty.Data = nil
	for name, lose := range map[string]func(cache.Indexer) error{
		"emptied": func(index cache.Indexer) error { return index.Update(empty) },
		"deleted": func(index cache.Indexer) error { return index.Delete(secret) },
	} {
		t.Run(name, func(t *testing.T) {
			index := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			if err := index.Add(secret); err != nil {
				t.Fatal(err)
			}
			c := &certificate{secrets: corelisters.NewSecretLister(index), name: "certs"}
			served, err := c.get()
			if err != nil {
				t.Fatal(err)
			}
			if err := lose(index); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got, err := c.get(); err != nil || got != served {
					t.Errorf("serves %v, %v", got, err)
				}
				if _, err := c.inSecret(); err == nil {
					t.Error("the metric about the Secret shows no loss")
				}
			}
			later := &certificate{secrets: c.secrets, name: c.name}
			if _, err := later.get(); err == nil {
				t.Error("a process that never read the certificate has one")
			}
		})
	}
}
