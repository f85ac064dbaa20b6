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
)

// largest is how many bytes of an answer are read.
const maxResponseBytes = 1 << 20

// Doer sends requests, as an http.Client does.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// Ask asks the webhook at a URL as the API server does, with more headers if
// there are any.
func SendReview(ctx context.Context, by Doer, url string, header http.Header, request *admissionv1.AdmissionRequest) (*admissionv1.AdmissionResponse, error) {
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "AdmissionReview"},
		Request:  request,
	})
	if err != nil {
		return nil, fmt.Errorf("write the review: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("ask the webhook: %w", err)
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
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the webhook answered %s", res.Status)
	}
	var review admissionv1.AdmissionReview
	if err := json.Unmarshal(raw, &review); err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if review.Response == nil || review.Response.UID != request.UID {
		return nil, errors.New("the webhook answered something else")
	}
	return review.Response, nil
}
