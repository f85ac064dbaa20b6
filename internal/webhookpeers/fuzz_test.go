package webhookpeers

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admission/v1"
)

// answering answers each request with a status and a body, and counts what is read.
type answering struct {
	status int
	body   io.Reader
	read   int
	closed bool
}

func (a *answering) Do(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Status: http.StatusText(a.status), Body: a}, nil
}

func (a *answering) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.read += n
	return n, err
}

func (a *answering) Close() error {
	a.closed = true
	return nil
}

// FuzzSendReview reads answers of a webhook. Only an AdmissionReview with the UID of the
// request is an answer, and no more than the limit is read and reported.
func FuzzSendReview(f *testing.F) {
	f.Add(uint16(200), []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","response":{"uid":"uid","allowed":true,"patch":"W10=","patchType":"JSONPatch","warnings":["w"]}}`), uint16(0))
	f.Add(uint16(200), []byte(`{"response":{"uid":"uid","allowed":false,"status":{"code":403,"message":"no"}}}`), uint16(40000))
	f.Add(uint16(200), []byte(`{"response":{"uid":"another","allowed":true}}`), uint16(0))
	f.Add(uint16(200), []byte(`{"response":{"uid":"uid","allowed":true,"status":{"code":`+strings.Repeat("9", 20_000)+`}}}`), uint16(0))
	f.Add(uint16(503), []byte(`{"response":{"uid":"uid","allowed":true}}`), uint16(0))
	f.Fuzz(func(t *testing.T, status uint16, body []byte, padding uint16) {
		a := &answering{status: int(status), body: io.MultiReader(bytes.NewReader(body), strings.NewReader(strings.Repeat(strings.Repeat(" ", 64), int(padding))))}
		response, err := SendReview(t.Context(), a, "https://webhook.invalid/", http.Header{}, &admissionv1.AdmissionRequest{UID: "uid"})
		switch {
		case (response == nil) != (err != nil):
			t.Errorf("response %v, error %v", response, err)
		case err == nil && (response.UID != "uid" || status != http.StatusOK || len(body)+64*int(padding) > maxResponseBytes):
			t.Errorf("accepted: status %d, %+v", status, response)
		case err != nil && (len(err.Error()) > 1024 || !utf8.ValidString(err.Error())):
			t.Errorf("an error of %d bytes: %.200q", len(err.Error()), err)
		}
		if a.read > maxResponseBytes+1 || !a.closed {
			t.Errorf("read %d bytes, closed %t", a.read, a.closed)
		}
	})
}
