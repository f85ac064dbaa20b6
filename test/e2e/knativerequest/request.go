// Package knativerequest asks which Revision of a Knative Service answers. The Service has the image
// of the AlterShield double, or that of the sample shop.
package knativerequest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
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
	return Target{url: "http://" + ingress.Spec.ClusterIP, Host: service + "." + namespace + ".svc.cluster.local"}, nil
}

// Ask sends a request to the double, and returns the Revision that answers it.
func (t Target) Ask(ctx context.Context, timeout time.Duration) (revision string, err error) {
	answer, err := t.get(ctx, timeout, "/double/health")
	if err != nil {
		return "", err
	}
	var body struct{ Revision string }
	if err := json.Unmarshal(answer.body, &body); answer.status != http.StatusOK || err != nil {
		return "", answer.unexpected()
	}
	return body.Revision, nil
}

// Buy sends a request to the sample shop, and returns the Revision that answers it, with an error of the
// shop or without.
func (t Target) Buy(ctx context.Context, timeout time.Duration) (revision string, err error) {
	answer, err := t.get(ctx, timeout, "/buy?id=1")
	if err != nil {
		return "", err
	}
	// The shop names its pod, which Serving names after the Deployment of the Revision.
	revision, _, found := strings.Cut(answer.header.Get("Shop-Pod"), "-deployment-")
	if !found {
		return "", answer.unexpected()
	}
	return revision, nil
}

type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) unexpected() error { return fmt.Errorf("status %d, %q", a.status, a.body) }

func (t Target) get(ctx context.Context, timeout time.Duration, path string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+path, nil)
	if err != nil {
		return answer{}, err
	}
	request.Host = t.Host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }() // the body was read
	raw, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, raw}, err
}
