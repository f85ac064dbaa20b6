package pagedlist

import (
	"bytes"
	"errors"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
)

// maxBytesKey is the key of the maximum size of an answer in a context.
type maxBytesKey struct{}

var errPageTooLarge = errors.New("the page is too large")

// LimitPages makes clients of the configuration stop reading a page that is too large; Each then reads a smaller one.
func LimitPages(config *rest.Config) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{next} })
}

// limited limits the answers to requests whose context has a maximum size.
type limited struct{ http.RoundTripper }

// RoundTrip reads the answer itself: client-go logs an error of its body as unexpected.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	most, ok := r.Context().Value(maxBytesKey{}).(int64)
	if err != nil || !ok {
		return response, err
	}
	stream := response.Body
	defer func() { _ = stream.Close() }() // nothing depends on the error
	body, err := io.ReadAll(io.LimitReader(stream, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(body)) > most {
		return nil, errPageTooLarge
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}
