package centre

import (
	"net/http"
	"regexp"
	"strconv"
	"testing"
)

// Any client, also one without a token, chooses the method.
func TestUnknownMethodsOfRequestsShareASeries(t *testing.T) {
	w := newFixture(t, "sqlite:"+t.TempDir()+"/centre.db")
	for i := range 20 {
		request, err := http.NewRequestWithContext(t.Context(), "INVENTED"+strconv.Itoa(i), w.url+"/v1/applications", nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	_, body := w.adminGet("/metrics")
	series := regexp.MustCompile(`_request_duration_seconds_count\{method="(INVENTED|other)`).FindAllString(body, -1)
	if len(series) != 1 {
		t.Errorf("%d series of 20 unknown methods, want 1", len(series))
	}
}

func TestKnownMethodsAreLabels(t *testing.T) {
	for method, want := range map[string]string{
		"GET": "GET", "HEAD": "HEAD", "POST": "POST", "PUT": "PUT", "PATCH": "PATCH", "DELETE": "DELETE", "OPTIONS": "OPTIONS",
		"CONNECT": "other", "TRACE": "other", "get": "other", "": "other",
	} {
		if got := methodLabel(method); got != want {
			t.Errorf("method %q has label %q, want %q", method, got, want)
		}
	}
}
