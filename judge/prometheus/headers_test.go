package prometheus

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHeadersAreNamesAndValuesWithoutCredentials(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want http.Header
		err  string // empty for none
	}{
		"none":                    {text: "", want: http.Header{}},
		"the tenant of Mimir":     {text: "X-Scope-OrgID: team-a|team-b\n", want: http.Header{"X-Scope-Orgid": {"team-a|team-b"}}},
		"two, with an empty line": {text: "AccountID: 1\n\nProjectID:2", want: http.Header{"Accountid": {"1"}, "Projectid": {"2"}}},
		"the namespace":           {text: "X-Namespace: {{namespace}}", want: http.Header{"X-Namespace": {"{{namespace}}"}}},
		"a wrong placeholder":     {text: "X-Namespace: {{ namespace }}", err: "header X-Namespace: the only placeholder is {{namespace}}"},
		"a value with colons":     {text: "X-Filter: a:b", want: http.Header{"X-Filter": {"a:b"}}},
		"no value":                {text: "X-Scope-OrgID:", err: "line 1: write a name and a value"},
		"no colon":                {text: "A: b\nhidden", err: "line 2: write a name and a value"},
		"a space in the name":     {text: "X Scope: hidden", err: "line 1: write a name and a value"},
		"a control character":     {text: "X-Scope: hidden\x00", err: "line 1: write a name and a value"},
		"a token":                 {text: "authorization: Bearer hidden", err: "header Authorization is not allowed"},
		"a cookie":                {text: "Cookie: hidden", err: "header Cookie is not allowed"},
		"a token of a proxy":      {text: "Proxy-Authorization: hidden", err: "header Proxy-Authorization is not allowed"},
		"another host":            {text: "host: hidden", err: "header Host is not allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseHeaders(tc.text)
			if tc.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), tc.err) || strings.Contains(err.Error(), "hidden") {
					t.Errorf("got %v, want %q", err, tc.err)
				}
				return
			}
			if diff := cmp.Diff(tc.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

// recorder is a transport that keeps the last request.
type recorder struct{ last *http.Request }

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	r.last = request
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

func TestAHeaderHasTheNamespaceOfTheRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace string
		values    []string
		want      []string
	}{
		"no placeholder":          {"web", []string{"team-a"}, []string{"team-a"}},
		"the namespace":           {"web", []string{"{{namespace}}"}, []string{"web"}},
		"with other text, twice":  {"web", []string{"a-{{namespace}}|b-{{namespace}}"}, []string{"a-web|b-web"}},
		"several values":          {"web", []string{"{{namespace}}", "b"}, []string{"web", "b"}},
		"a query without release": {"", []string{"{{namespace}}"}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			if tc.namespace != "" {
				ctx = WithNamespace(ctx, tc.namespace)
			}
			request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://p", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Tenant", "of the client")
			next := &recorder{}
			response, err := WithHeaders(http.Header{"X-Tenant": tc.values}, next).RoundTrip(request)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if diff := cmp.Diff(tc.want, next.last.Header["X-Tenant"]); diff != "" || request.Header.Get("X-Tenant") != "of the client" {
				t.Errorf("%s, the request of the client has %q", diff, request.Header["X-Tenant"])
			}
		})
	}
}
