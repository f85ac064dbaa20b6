package centre

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// openAPIRouter finds operations in the OpenAPI document.
var openAPIRouter = sync.OnceValues(func() (routers.Router, error) {
	text, err := os.ReadFile("rest/openapi.json")
	if err != nil {
		return nil, err
	}
	document, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(document)
})

// validate validates a request and its response against the OpenAPI document. All
// tests of this package use it.
func validate(t testing.TB, r *http.Request, sent []byte, answer *http.Response, got []byte) {
	t.Helper()
	router, err := openAPIRouter()
	if err != nil {
		t.Fatal(err)
	}
	request := r.Clone(t.Context())
	request.Body = io.NopCloser(bytes.NewReader(sent))
	if len(sent) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	route, parameters, err := router.FindRoute(request)
	if err != nil {
		t.Fatalf("%s %s is not in the OpenAPI document: %v", r.Method, r.URL.Path, err)
	}
	input := &openapi3filter.RequestValidationInput{Request: request, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, ExcludeReadOnlyValidations: true, IncludeResponseStatus: true}}
	if answer.StatusCode < 300 {
		// A rejected request may be invalid.
		if err := openapi3filter.ValidateRequest(t.Context(), input); err != nil {
			t.Errorf("the request is not valid against the OpenAPI document: %v", err)
		}
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{RequestValidationInput: input,
		Status: answer.StatusCode, Header: answer.Header, Body: io.NopCloser(bytes.NewReader(got)), Options: input.Options})
	if err != nil {
		t.Errorf("the response is not valid against the OpenAPI document: %v", err)
	}
}

func TestTheOpenAPIDocumentIsServedAndHasEveryRoute(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	response, err := http.Get(w.url + "/v1/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	served, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	documented := map[string]bool{}
	for path, item := range served.Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
		}
	}
	for _, route := range w.centre.server.Routes() {
		if route != "GET /v1/openapi.json" && !documented[route] {
			t.Errorf("route %s is not in the OpenAPI document", route)
		}
		delete(documented, route)
	}
	for route := range documented {
		t.Errorf("route %s is documented but not served", route)
	}
}
