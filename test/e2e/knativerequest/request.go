// Package knativerequest asks which Revision of a Knative Service answers. The Service has the image
// of the AlterShield double.
package knativerequest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Target is where requests to a Service go.
type Target struct {
	url string
	// Host is the name of the Service.
	Host string
}

// To returns the Target of a Service behind the ingress of the embedded cluster.
func To(ctx context.Context, kube kubernetes.Interface, namespace, service string) (Target, error) {
	ingress, err := kube.CoreV1().Services("breakwater-ingress").Get(ctx, "private", metav1.GetOptions{})
	if err != nil {
		return Target{}, fmt.Errorf("find the ingress of the cluster: %w", err)
	}
	return Target{url: "http://" + ingress.Spec.ClusterIP + "/double/health", Host: service + "." + namespace + ".svc.cluster.local"}, nil
}

// Ask sends a request, and returns the Revision that answers it.
func (t Target) Ask(ctx context.Context, timeout time.Duration) (revision string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url, nil)
	if err != nil {
		return "", err
	}
	request.Host = t.Host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	var body struct{ Revision string }
	if err := json.Unmarshal(raw, &body); response.StatusCode != http.StatusOK || err != nil {
		return "", fmt.Errorf("status %d, %q", response.StatusCode, raw)
	}
	return body.Revision, nil
}
