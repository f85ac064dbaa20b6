package altershield

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// FuzzVerify signs a body and verifies another: only a request whose signed text is the
// same, and is signed with the same token within the skew, is accepted.
func FuzzVerify(f *testing.F) {
	f.Add("1700000000000", []byte(`{"a":1}`), "token", "1700000000000", []byte("{\"a\":\r\n1}"), "token", int64(0))
	f.Add("1700000000000", []byte(`{"a":1}`), "token", "170000000000", []byte(`0{"a":1}`), "token", int64(300_000))
	f.Add("1700000000000", []byte(`a&token=b`), "c", "1700000000000", []byte(`a`), "b&token=c", int64(-300_001))
	f.Add("9223372036854775807", []byte(nil), "", "-9223372036854775808", []byte(nil), "", int64(1))
	f.Fuzz(func(t *testing.T, timestamp string, body []byte, token, gotTimestamp string, gotBody []byte, gotToken string, skewMillis int64) {
		const prefix, platform = "X-OpsCloud-", "breakwater"
		now := time.UnixMilli(1700000000000)
		header := http.Header{}
		header.Set(prefix+HeaderPlatform, platform)
		header.Set(prefix+HeaderTimestamp, gotTimestamp)
		header.Set(prefix+HeaderSign, Sign(timestamp, body, token))
		err := Verify(header, prefix, platform, gotBody, gotToken, now, 0)
		same := signedText(timestamp, body, token) == signedText(gotTimestamp, gotBody, gotToken)
		var auth *AuthError
		switch {
		case err == nil && (!same || gotToken == "" || gotTimestamp == ""):
			t.Errorf("accepted: signed %q, received %q", signedText(timestamp, body, token), signedText(gotTimestamp, gotBody, gotToken))
		case err != nil && !errors.As(err, &auth):
			t.Errorf("%T: %v", err, err)
		case errors.As(err, &auth) && same && auth.Reason == AuthBadSignature:
			t.Errorf("rejected %q: %v", gotTimestamp, err)
		}
		if auth != nil && auth.Reason == AuthBadSignature && err.Error() != Verify(header, prefix, platform, []byte("x"), "another token", now, 0).Error() {
			t.Errorf("the error depends on the body or the token: %v", err)
		}

		signed, at := http.Header{}, now.Add(time.Duration(skewMillis%1_000_000)*time.Millisecond)
		SignHeader(signed, prefix, platform, body, token, at)
		err = Verify(signed, prefix, platform, body, token, now, 0)
		if want := token != "" && now.Sub(at).Abs() <= DefaultMaxSkew; (err == nil) != want {
			t.Errorf("signed %s from now with token %q: %v", at.Sub(now), token, err)
		}
	})
}

// signedText is the text that the server hashes.
func signedText(timestamp string, body []byte, token string) string {
	return timestamp + strings.NewReplacer("\r", "", "\n", "").Replace(string(body)) + "&token=" + token
}

// FuzzDecodeAnswer decodes answers of the server. Only an envelope with success is
// accepted, and the length of everything that is kept of an answer is limited.
func FuzzDecodeAnswer(f *testing.F) {
	f.Add([]byte(`{"success":true,"resultCode":"000","msg":"ok","domain":{"orderId":"o","nodeId":"n","url":"http://a/b","skipCheck":true}}`))
	f.Add([]byte(`{"success":true,"domain":{"nodeId":"n","finished":true,"verdict":{"verdict":"pass","allFinish":false,"rules":[null,{"verdict":"FAIL","msg":1e9}]}}}`))
	f.Add([]byte(`{"success":false,"resultCode":"` + strings.Repeat("1", 5000) + `","msg":"` + strings.Repeat("变", 2000) + `"}`))
	f.Add([]byte(`{"success":true,"domain":{"nodeId":"` + strings.Repeat("n", 5000) + `"}}`))
	f.Add([]byte(`{"Success":true,"success":null,"domain":null}`))
	f.Add([]byte(`<html>502 Bad Gateway</html>`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		for _, domain := range []any{nil, &orderDomain{}, &nodeDomain{}, &progressDomain{}, &releaseDomain{}} {
			err := Decode("action", answer, domain)
			if err != nil {
				checkAnswerError(t, err)
				continue
			}
			var e envelope
			if json.Unmarshal(answer, &e) != nil || e.Success == nil || !*e.Success || len(answer) > maxAnswer {
				t.Fatalf("accepted as a success: %q", answer)
			}
			if node, ok := domain.(*nodeDomain); ok {
				if err := checkNode("action", node.NodeID); (err == nil) != (node.NodeID != "" && len(node.NodeID) <= maxNodeID) {
					t.Errorf("node %q: %v", node.NodeID, err)
				} else if err != nil {
					checkAnswerError(t, err)
				}
			}
			if release, ok := domain.(*releaseDomain); ok {
				a := release.answer()
				if len(a.Verdict) > maxWord || len(a.Message) > maxMessage || !utf8.ValidString(a.Verdict+a.Message) {
					t.Errorf("not bounded: %+v", a)
				}
			}
		}
	})
}

// maxErrorText is how long the text of an error may be, in bytes: errors are stored in
// the status of objects.
const maxErrorText = 2048

func checkAnswerError(t *testing.T, err error) {
	t.Helper()
	var result *ResultError
	var callErr *CallError
	switch {
	case errors.As(err, &result):
	case errors.As(err, &callErr) && callErr.Kind == KindMalformed && callErr.MaybeReceived:
	default:
		t.Errorf("%T: %v", err, err)
	}
	if text := err.Error(); len(text) > maxErrorText || !utf8.ValidString(text) || bytes.ContainsRune([]byte(text), 0) {
		t.Errorf("an error of %d bytes: %.200q", len(text), text)
	}
}
