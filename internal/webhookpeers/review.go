package webhookpeers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// maxResponseBytes is how much of a response is read.
	maxResponseBytes = 1 << 20
	// maxErrorBytes is how much of a decoding error is reported.
	maxErrorBytes = 256
)

// Doer sends requests, as an http.Client does.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// SendReview sends an AdmissionReview to the webhook at url, as the API server
// does, with additional headers.
func SendReview(ctx context.Context, by Doer, url string, header http.Header, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		return nil, fmt.Errorf("encode AdmissionReview: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("create request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		req.Header[name] = values
	}
	res, err := by.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(http.MaxBytesReader(nil, res.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("read response of the webhook: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("webhook answered %s", res.Status)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil {
		// encoding/json quotes numbers of any length.
		return nil, fmt.Errorf("decode response of the webhook: %s", text.Truncate(err.Error(), maxErrorBytes))
	}
	if review.Response == nil || review.Response.UID != request.UID {
		return nil, errors.New("response of the webhook does not match the request")
	}
	return review.Response, nil
}
