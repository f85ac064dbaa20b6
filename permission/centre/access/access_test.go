package access

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"
	clocktest "k8s.io/utils/clock/testing"
)

func TestRolesAuthorizeOwnersAdminsAndClusters(t *testing.T) {
	roles := Roles{Admins: []string{"platform"}, Clusters: []Cluster{{Name: "c1", Users: []string{"server"}}, {Name: "c2", Groups: []string{"c2-components"}}}}
	admin, owner, server := User{"alice", []string{"platform"}}, User{"olga", []string{"team-a"}}, User{Name: "server"}
	second, stranger := User{"other", []string{"c2-components"}}, User{Name: "stranger"}
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"an admin may act as admin":                     {roles.MayAdmin(admin, "x"), true},
		"an owner is not an admin":                      {roles.MayAdmin(owner, "x"), false},
		"an owner group may change its objects":         {roles.MayActAsOwner(owner, "team-a", "x"), true},
		"an owner user may change its objects":          {roles.MayActAsOwner(owner, "olga", "x"), true},
		"an owner may not change objects of others":     {roles.MayActAsOwner(owner, "team-b", "x"), false},
		"a component is not an owner":                   {roles.MayActAsOwner(server, "team-a", "x"), false},
		"a component may act for its cluster":           {roles.MayActFor(server, "c1"), true},
		"a component may not act for another":           {roles.MayActFor(server, "c2"), false},
		"a component group may act for its cluster":     {roles.MayActFor(second, "c2"), true},
		"an owner may not act for a cluster":            {roles.MayActFor(owner, "c1"), false},
		"an owner may view an application":              {roles.MayView(owner, "c1", []string{"team-b", "team-a"}), true},
		"a component may view its cluster":              {roles.MayView(server, "c1", []string{"team-a"}), true},
		"another user may not view":                     {roles.MayView(stranger, "c1", []string{"team-a"}), false},
		"the only owner may revoke":                     {roles.MayRevoke(owner, "c1", []string{"team-a"}), true},
		"one of two owners may not revoke":              {roles.MayRevoke(owner, "c1", []string{"team-a", "team-b"}), false},
		"a component may revoke in its cluster":         {roles.MayRevoke(server, "c1", []string{"team-a", "team-b"}), true},
		"a component may not revoke in another":         {roles.MayRevoke(server, "c2", []string{"team-a"}), false},
		"an empty user owns nothing":                    {roles.MayActAsOwner(User{}, "team-a", "x"), false},
		"an admin may act for every cluster":            {roles.MayActFor(admin, "c9"), true},
		"a user named like a group is not in it":        {roles.MayActFor(User{Name: "c2-components"}, "c2"), false},
		"a group named like a component user is not it": {roles.MayActFor(User{"x", []string{"server"}}, "c1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if (tc.err == nil) != tc.want {
				t.Errorf("%v", tc.err)
			}
		})
	}
}

func TestAClusterTokenIsReviewedForTheAudience(t *testing.T) {
	reviews := 0
	client := fake.NewClientset()
	client.PrependReactor("create", "tokenreviews", func(a clienttest.Action) (bool, runtime.Object, error) {
		reviews++
		r := a.(clienttest.CreateAction).GetObject().(*authentication.TokenReview).DeepCopy()
		if diff := cmp.Diff([]string{"permission-centre"}, r.Spec.Audiences); diff != "" {
			t.Error(diff)
		}
		r.Status.User = authentication.UserInfo{Username: "system:serviceaccount:n:s", Groups: []string{"g"}}
		switch r.Spec.Token {
		case "good":
			r.Status.Authenticated, r.Status.Audiences = true, r.Spec.Audiences
		case "other-audience":
			// The response of an authenticator without support for audiences.
			r.Status.Authenticated = true
		case "error":
			return true, nil, errors.New("the API server is unreachable")
		}
		return true, r, nil
	})
	clock := clocktest.NewFakePassiveClock(time.Now())
	k := NewKubernetes(client, "permission-centre", clock)
	for range 2 {
		user, ok, err := k.Authenticate(t.Context(), "good")
		if err != nil || !ok || user.Name != "system:serviceaccount:n:s" {
			t.Fatalf("%+v %v %v", user, ok, err)
		}
	}
	if reviews != 1 {
		t.Errorf("%d reviews within a minute, want 1", reviews)
	}
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	_, _, _ = k.Authenticate(t.Context(), "good")
	if reviews != 2 {
		t.Errorf("%d reviews after two minutes, want 2", reviews)
	}
	for _, token := range []string{"bad", "other-audience"} {
		if user, ok, err := k.Authenticate(t.Context(), token); ok || err != nil {
			t.Errorf("%s: %+v %v %v", token, user, ok, err)
		}
	}
	if _, ok, err := k.Authenticate(t.Context(), "error"); ok || err == nil {
		t.Errorf("unreachable API server: %v %v", ok, err)
	}
}

func TestAStaticTokenMustMatchAndItsFileIsReloaded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write := func(text string, age time.Duration) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write("- {token: short, user: x}", time.Hour)
	if _, err := NewStatic(path); err == nil || strings.Contains(err.Error(), "short,") {
		t.Errorf("short token: %v", err)
	}
	write("- {token: 0123456789abcdef, user: alice, groups: [g]}", time.Minute)
	s, err := NewStatic(path)
	if err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]bool{"0123456789abcdef": true, "0123456789abcde": false, "0123456789abcdef0": false, "": false} {
		if user, ok, err := s.Authenticate(t.Context(), token); ok != want || err != nil || ok && user.Name != "alice" {
			t.Errorf("%q: %+v %v %v", token, user, ok, err)
		}
	}
	write("- {token: another-0123456789, user: bob}", 0)
	if _, ok, _ := s.Authenticate(t.Context(), "0123456789abcdef"); ok {
		t.Error("a removed token is still accepted")
	}
	if user, ok, _ := s.Authenticate(t.Context(), "another-0123456789"); !ok || user.Name != "bob" {
		t.Error("an added token is not accepted")
	}
}

// issuer is a fake OIDC issuer.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"RS256"}})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []any{map[string]any{"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())}}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// sign returns a signed token.
func (i *issuer) sign(t *testing.T, claims map[string]any) string {
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

func TestAnOIDCTokenIsAcceptedOnlyIfAllClaimsAreValid(t *testing.T) {
	ours, theirs := newIssuer(t), newIssuer(t)
	o, err := NewOIDC(t.Context(), OIDCConfig{Issuer: ours.URL, ClientID: "permission-centre", UsernameClaim: "email", Prefix: "corp:"})
	if err != nil {
		t.Fatal(err)
	}
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": ours.URL, "aud": "permission-centre", "sub": "1", "email": "olga", "groups": []string{"team-a"}, "exp": time.Now().Add(time.Hour).Unix()}
		for k, v := range change {
			c[k] = v
		}
		return c
	}
	user, ok, err := o.Authenticate(t.Context(), ours.sign(t, claims(nil)))
	if diff := cmp.Diff(User{"corp:olga", []string{"corp:team-a"}}, user); diff != "" || !ok || err != nil {
		t.Errorf("%v %v %s", ok, err, diff)
	}
	for name, token := range map[string]string{
		"expired":        ours.sign(t, claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})),
		"other audience": ours.sign(t, claims(map[string]any{"aud": "other"})),
		"other issuer":   ours.sign(t, claims(map[string]any{"iss": theirs.URL})),
		"other key":      theirs.sign(t, claims(nil)),
		"empty name":     ours.sign(t, claims(map[string]any{"email": ""})),
		"not a JWT":      "0123456789abcdef",
	} {
		if user, ok, err := o.Authenticate(t.Context(), token); ok || err != nil {
			t.Errorf("%s: %+v %v %v", name, user, ok, err)
		}
	}
}
