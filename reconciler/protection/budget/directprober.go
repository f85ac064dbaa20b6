package budget

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	changev1alpha1 "github.com/breakwater-dev/breakwater/apis/change/v1alpha1"
	"github.com/breakwater-dev/breakwater/apis/policy/v1alpha1"
	"github.com/breakwater-dev/breakwater/internal/budget"
	"github.com/breakwater-dev/breakwater/internal/webhookpeers"
)

// probeTimeout is how long a replica may take to answer a probe.
const probeTimeout = 2 * time.Second

// connectionIdleFor is shorter than the webhook keeps idle connections.
const connectionIdleFor = 30 * time.Second

// directProber probes one replica without the API server.
type directProber struct {
	client *http.Client
	bundle []byte
	path   string
}

func newDirectProber(bundle []byte, path string) (*directProber, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		return nil, errors.New("the caBundle of the webhook configuration has no certificate")
	}
	return &directProber{bundle: bundle, path: path, client: &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		MaxIdleConnsPerHost: 1, // replicaTurns sends one probe at a time to a replica
		IdleConnTimeout:     connectionIdleFor,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, RootCAs: roots,
			ServerName: webhookService + "." + changev1alpha1.SystemNamespace + ".svc",
		},
	}}}, nil
}

// probe sends the request that the API server would send for a dry run.
func (c *directProber) probe(ctx context.Context, at string, b *v1alpha1.PodUnavailableBudget, probe string) (budget.ProbeAnswer, error) {
	target := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: b.Name, Namespace: b.Namespace, UID: b.UID, Generation: b.Generation,
		Annotations: map[string]string{v1alpha1.ProbeAnnotation: probe},
	}}
	object, err := json.Marshal(target)
	if err != nil {
		return budget.ProbeAnswer{}, fmt.Errorf("encode the probe: %w", err)
	}
	gvr := v1alpha1.SchemeGroupVersion.WithResource("podunavailablebudgets")
	answer, err := webhookpeers.SendReview(ctx, c.client, "https://"+at+c.path, nil, &admissionv1.AdmissionRequest{
		UID: types.UID(probe), Operation: admissionv1.Update, Namespace: b.Namespace, Name: b.Name, DryRun: new(true),
		Kind:     metav1.GroupVersionKind{Group: gvr.Group, Version: gvr.Version, Kind: "PodUnavailableBudget"},
		Resource: metav1.GroupVersionResource{Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource},
		Object:   runtime.RawExtension{Raw: object},
	})
	if err != nil {
		return budget.ProbeAnswer{}, fmt.Errorf("probe %s: %w", at, err)
	}
	for _, warning := range answer.Warnings {
		if parsed, ok := budget.ParseProbeAnswer(warning); ok {
			return parsed, nil
		}
	}
	return budget.ProbeAnswer{}, fmt.Errorf("probe %s: the replica does not know the budget", at)
}
