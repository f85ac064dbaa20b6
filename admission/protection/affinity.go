package protection

import (
	"context"
	"os"

	corev1 "k8s.io/api/core/v1"
	discoverylisters "k8s.io/client-go/listers/discovery/v1"
	secretinformer "knative.dev/pkg/injection/clients/namespacedkube/informers/core/v1/secret"

	"github.com/breakwater-dev/breakwater/admission"
	"github.com/breakwater-dev/breakwater/admission/protection/affinity"
	"github.com/breakwater-dev/breakwater/admission/protection/deletion"
	"github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
)

// forwardEnv is the environment variable that enables affinity, unless it is "false".
const forwardEnv = "FORWARD_REQUESTS"

// withAffinity routes requests that may charge a budget to one replica per namespace.
// That replica decides by flow control too, because only it can refund the charges.
func withAffinity(ctx context.Context, h deletion.Handler, replicas discoverylisters.EndpointSliceLister) admission.Handler {
	if os.Getenv(forwardEnv) == "false" {
		return h
	}
	secrets := secretinformer.Get(ctx).Lister().Secrets(v1alpha1.SystemNamespace)
	return affinity.Forwarder{
		Next: h, Matches: h.Budgets.MayCharge,
		Peers: affinity.NewReplicas(h.Budgets.Replica, ServiceName+"."+v1alpha1.SystemNamespace+".svc", replicas,
			func() (*corev1.Secret, error) { return secrets.Get(SecretName) }),
	}
}
