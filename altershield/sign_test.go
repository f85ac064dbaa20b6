package altershield

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"
)

func TestSignFitsTheVectorsOfTheProtocol(t *testing.T) {
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

func TestSignLeavesLineEndsOut(t *testing.T) {
	if Sign("1", []byte("{\r\n\"a\":\n1}\n"), "t") != Sign("1", []byte(`{"a":1}`), "t") {
		t.Error("CR and LF count")
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
		"a signed body is believed":                 {header: signedAt(now, nil)},
		"so is one of five minutes ago":             {header: signedAt(now.Add(-5*time.Minute), nil)},
		"and one of a clock five minutes ahead":     {header: signedAt(now.Add(5*time.Minute), nil)},
		"and one with line ends":                    {header: signedAt(now, nil), body: []byte("{\"a\":\r\n1}")},
		"an older one is not":                       {header: signedAt(now.Add(-5*time.Minute-time.Millisecond), nil), want: AuthSkew},
		"nor one from the future":                   {header: signedAt(now.Add(6*time.Minute), nil), want: AuthSkew},
		"another body is not":                       {header: signedAt(now, nil), body: []byte(`{"a":2}`), want: AuthBadSignature},
		"another token is not":                      {header: signedAt(now, nil), token: "other", want: AuthBadSignature},
		"no token believes nobody":                  {header: signedAt(now, nil), token: "-", want: AuthNoToken},
		"another timestamp is not":                  {header: signedAt(now, set(prefix+HeaderTimestamp, "1700000000001")), want: AuthBadSignature},
		"a signature in lower case is not":          {header: signedAt(now, set(prefix+HeaderSign, "m38wru7h")), want: AuthBadSignature},
		"another platform is not":                   {header: signedAt(now, set(prefix+HeaderPlatform, "other")), want: AuthPlatform},
		"no platform is not":                        {header: signedAt(now, set(prefix+HeaderPlatform, "")), want: AuthNoHeader},
		"no timestamp is not":                       {header: signedAt(now, set(prefix+HeaderTimestamp, "")), want: AuthNoHeader},
		"no signature is not":                       {header: signedAt(now, set(prefix+HeaderSign, "")), want: AuthNoHeader},
		"a timestamp that is no number is not":      {header: signedAt(now, set(prefix+HeaderTimestamp, "now")), want: AuthTimestamp},
		"nor the least that is one":                 {header: signedAt(now, set(prefix+HeaderTimestamp, strconv.Itoa(math.MinInt64))), want: AuthSkew},
		"nor the greatest":                          {header: signedAt(now, set(prefix+HeaderTimestamp, strconv.Itoa(math.MaxInt64))), want: AuthSkew},
		"headers under another prefix do not count": {header: other(signedAt(now, nil), prefix), want: AuthNoHeader},
	} {
		t.Run(name, func(t *testing.T) {
			given, with := body, token
			if tc.body != nil {
				given = tc.body
			}
			if tc.token != "" {
				with = tc.token
			}
			if with == "-" {
				with = ""
			}
			err := Verify(tc.header, prefix, platform, given, with, now, 0)
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
