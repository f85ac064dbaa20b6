package altershield

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestSignMatchesTheProtocolsTestVectors(t *testing.T) {
	for want, tc := range map[string]struct{ timestamp, body, token string }{
		"M38WRU7HVU9NPVW0GJEC64VWRGFLG2TC8ZRQHOYJUAG=": {"1700000000000", `{"a":1}`, "altershield-operator"},
		"HLKS5W1W0ULX1PLH_2ZSNO8VLGVDNXOGC7ND1DKXKHE=": {"1700000000", `{"a":1}`, "123"},
		"X2VGF-VHUJAEICUVIQKLXSOFF7MJC6Y62JJLFCKKZWG=": {"1700000000000", `{"msg":"变更"}`, "altershield-operator"},
		"3EWMK_DLEDOYCCZXIIIV9-CNRKRFQ1TFHYUU6XDCFOG=": {"1700000000002", `{}`, "t"},
	} {
		if got := Sign(tc.timestamp, []byte(tc.body), tc.token); got != want {
			t.Errorf("%+v: got %s, want %s", tc, got, want)
		}
	}
}

func TestSignIgnoresLineEnds(t *testing.T) {
	if Sign("1", []byte("{\r\n\"a\":\n1}\n"), "t") != Sign("1", []byte(`{"a":1}`), "t") {
		t.Error("CR and LF change the signature")
	}
}

func TestVerify(t *testing.T) {
	now := time.UnixMilli(1700000000000)
	const token, platform, prefix = "token", "breakwater", "X-OpsCloud-"
	body := []byte(`{"a":1}`)
	signedAt := func(at time.Time, change func(http.Header)) http.Header {
		h := http.Header{}
		SignHeader(h, prefix, platform, body, token, at)
		if change != nil {
			change(h)
		}
		return h
	}
	for name, tc := range map[string]struct {
		header http.Header
		body   []byte
		token  string
		want   AuthReason
	}{
		"valid":                       {header: signedAt(now, nil)},
		"five minutes old":            {header: signedAt(now.Add(-5*time.Minute), nil)},
		"five minutes in the future":  {header: signedAt(now.Add(5*time.Minute), nil)},
		"line ends in the body":       {header: signedAt(now, nil), body: []byte("{\"a\":\r\n1}")},
		"over five minutes old":       {header: signedAt(now.Add(-5*time.Minute-time.Millisecond), nil), want: AuthSkew},
		"six minutes in the future":   {header: signedAt(now.Add(6*time.Minute), nil), want: AuthSkew},
		"another body":                {header: signedAt(now, nil), body: []byte(`{"a":2}`), want: AuthBadSignature},
		"another token":               {header: signedAt(now, nil), token: "other", want: AuthBadSignature},
		"no token is configured":      {header: signedAt(now, nil), token: "-", want: AuthNoToken},
		"another timestamp":           {header: signedAt(now, set(prefix+HeaderTimestamp, "1700000000001")), want: AuthBadSignature},
		"signature in lower case":     {header: signedAt(now, set(prefix+HeaderSign, "m38wru7h")), want: AuthBadSignature},
		"another platform":            {header: signedAt(now, set(prefix+HeaderPlatform, "other")), want: AuthPlatform},
		"no platform":                 {header: signedAt(now, set(prefix+HeaderPlatform, "")), want: AuthNoHeader},
		"no timestamp":                {header: signedAt(now, set(prefix+HeaderTimestamp, "")), want: AuthNoHeader},
		"no signature":                {header: signedAt(now, set(prefix+HeaderSign, "")), want: AuthNoHeader},
		"timestamp is not a number":   {header: signedAt(now, set(prefix+HeaderTimestamp, "now")), want: AuthTimestamp},
		"smallest timestamp":          {header: signedAt(now, set(prefix+HeaderTimestamp, strconv.Itoa(math.MinInt64))), want: AuthSkew},
		"greatest timestamp":          {header: signedAt(now, set(prefix+HeaderTimestamp, strconv.Itoa(math.MaxInt64))), want: AuthSkew},
		"headers with another prefix": {header: other(signedAt(now, nil), prefix), want: AuthNoHeader},
	} {
		t.Run(name, func(t *testing.T) {
			gotBody, gotToken := body, token
			if tc.body != nil {
				gotBody = tc.body
			}
			if tc.token != "" {
				gotToken = tc.token
			}
			if gotToken == "-" {
				gotToken = ""
			}
			err := Verify(tc.header, prefix, platform, gotBody, gotToken, now, 0)
			var auth *AuthError
			if tc.want == "" && err != nil || tc.want != "" && (!errors.As(err, &auth) || auth.Reason != tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func set(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }

func other(h http.Header, prefix string) http.Header {
	out := http.Header{}
	for _, name := range []string{HeaderPlatform, HeaderTimestamp, HeaderSign} {
		out.Set("X-Other-"+name, h.Get(prefix+name))
	}
	return out
}
