// Package oidcissuer is a fake OIDC issuer with one RSA key.
package oidcissuer

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// Issuer is an issuer on the loopback interface.
type Issuer struct {
	*httptest.Server
	// Down: requests are answered 503. NoKeys: only those for the keys are.
	Down, NoKeys atomic.Bool
	// Requests is the number of requests.
	Requests atomic.Int64
	// KeysURL is jwks_uri of the discovery document; it must be set before a request.
	KeysURL string
	key     *rsa.PrivateKey
}

// New starts an issuer that serves plain HTTP.
func New(t testing.TB) *Issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key}
	i.Server = httptest.NewServer(i)
	i.KeysURL = i.URL + "/keys"
	t.Cleanup(i.Close)
	return i
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.Requests.Add(1)
	keys := r.URL.Path == "/keys"
	switch {
	case i.Down.Load(), keys && i.NoKeys.Load():
		http.Error(w, "the issuer is down", http.StatusServiceUnavailable)
	case keys:
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.key.E)).Bytes())}}})
	default:
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.KeysURL, "id_token_signing_alg_values_supported": []string{"RS256"}})
	}
}

// Claims returns the claims of a valid token, with changes.
func (i *Issuer) Claims(change map[string]any) map[string]any {
	c := map[string]any{"iss": i.URL, "aud": "permission-centre", "sub": "1", "email": "olga", "groups": []string{"team-a"},
		"exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range change {
		c[name] = value
	}
	return c
}

// Sign returns a signed token.
func (i *Issuer) Sign(t testing.TB, claims map[string]any) string {
	t.Helper()
	encode := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	signed := encode(map[string]any{"alg": "RS256", "kid": "1"}) + "." + encode(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}
