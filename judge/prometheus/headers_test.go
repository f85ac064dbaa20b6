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
