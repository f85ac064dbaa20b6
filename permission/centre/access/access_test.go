package access

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authentication "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttest "k8s.io/client-go/testing"
	"k8s.io/utils/clock"
	clocktest "k8s.io/utils/clock/testing"

	"github.com/breakwater-dev/breakwater/test/oidcissuer"
)

func TestRolesAuthorizeOwnersAdminsAndClusters(t *testing.T) {
	roles := Roles{Admins: []string{"platform"}, Registrants: []string{"team-a", "server"}, Clusters: []ClusterComponents{{Name: "c1", Users: []string{"server"}}, {Name: "c2", Groups: []string{"c2-components"}}}}
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
		"an admin may register":                         {roles.MayRegister(admin, "x"), true},
		"a registrant may register":                     {roles.MayRegister(server, "x"), true},
		"a member of a registrant group may register":   {roles.MayRegister(owner, "x"), true},
		"another user may not register":                 {roles.MayRegister(stranger, "x"), false},
		"nobody is a registrant by default":             {Roles{}.MayRegister(server, "x"), false},
		"a registrant * is everybody":                   {Roles{Registrants: []string{"*"}}.MayRegister(stranger, "x"), true},
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

// The API server also rejects a valid token while it cannot read the ServiceAccount or pod of it.
func TestATokenThatWasRejectedIsReviewedAgainSoon(t *testing.T) {
	client, accepts := fake.NewClientset(), false
	client.PrependReactor("create", "tokenreviews", func(a clienttest.Action) (bool, runtime.Object, error) {
		r := a.(clienttest.CreateAction).GetObject().(*authentication.TokenReview).DeepCopy()
		r.Status = authentication.TokenReviewStatus{Error: "service account token has been invalidated"}
		if accepts {
			r.Status = authentication.TokenReviewStatus{Authenticated: true, Audiences: r.Spec.Audiences, User: authentication.UserInfo{Username: "u"}}
		}
		return true, r, nil
	})
	clock := clocktest.NewFakePassiveClock(time.Now())
	k := NewKubernetes(client, "permission-centre", clock)
	for _, tc := range []struct{ accepts, want bool }{{}, {accepts: true, want: true}} {
		accepts = tc.accepts
		if _, ok, err := k.Authenticate(t.Context(), "token"); ok != tc.want || err != nil {
			t.Errorf("the API server accepts the token: %t; accepted: %t, %v", accepts, ok, err)
		}
		clock.SetTime(clock.Now().Add(rejectedTTL + time.Second))
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

func newOIDC(t *testing.T, issuer *oidcissuer.Issuer, c clock.PassiveClock) *OIDC {
	t.Helper()
	return NewOIDC(OIDCConfig{Issuer: issuer.URL, AllowHTTP: true, ClientID: "permission-centre", UsernameClaim: "email", Prefix: "corp:"}, c)
}

func TestAnOIDCTokenIsAcceptedOnlyIfAllClaimsAreValid(t *testing.T) {
	ours, theirs := oidcissuer.New(t), oidcissuer.New(t)
	o := newOIDC(t, ours, clock.RealClock{})
	if err := o.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	user, ok, err := o.Authenticate(t.Context(), ours.Sign(t, ours.Claims(nil)))
	if diff := cmp.Diff(User{"corp:olga", []string{"corp:team-a"}}, user); diff != "" || !ok || err != nil {
		t.Errorf("%v %v %s", ok, err, diff)
	}
	for name, token := range map[string]string{
		"expired":        ours.Sign(t, ours.Claims(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()})),
		"other audience": ours.Sign(t, ours.Claims(map[string]any{"aud": "other"})),
		"other issuer":   ours.Sign(t, ours.Claims(map[string]any{"iss": theirs.URL})),
		"other key":      theirs.Sign(t, ours.Claims(nil)),
		"empty name":     ours.Sign(t, ours.Claims(map[string]any{"email": ""})),
		"not a JWT":      "0123456789abcdef",
	} {
		if user, ok, err := o.Authenticate(t.Context(), token); ok || err != nil {
			t.Errorf("%s: %+v %v %v", name, user, ok, err)
		}
	}
}

// Otherwise whoever creates ServiceAccounts in another cluster has the names of components and admins of the centre's.
func TestAnIssuerGivesNoReservedName(t *testing.T) {
	issuer := oidcissuer.New(t)
	const admin = "system:serviceaccount:altershieldoperator-system:permission-centre-admin"
	for name, tc := range map[string]struct {
		prefix string
		claims map[string]any
		want   string
	}{
		"a reserved user":                         {"", map[string]any{"email": admin}, admin},
		"a reserved group":                        {"", map[string]any{"groups": []string{"team-a", "system:masters"}}, "system:masters"},
		"another user":                            {"", map[string]any{"email": "systems"}, ""},
		"a reserved user with a prefix":           {"b:", map[string]any{"email": admin}, ""},
		"a prefix that makes a reserved user":     {"system:serviceaccount:altershieldoperator-system:", map[string]any{"email": "permission-centre-admin"}, admin},
		"a prefix that is part of a reserved one": {"sys", map[string]any{"email": "team-a", "groups": []string{"tem:masters"}}, "system:masters"},
		"a reserved group with a prefix":          {"b:", map[string]any{"groups": []string{"system:masters"}}, ""},
	} {
		o := NewOIDC(OIDCConfig{Issuer: issuer.URL, AllowHTTP: true, ClientID: "permission-centre", UsernameClaim: "email", Prefix: tc.prefix}, clock.RealClock{})
		if err := o.Discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		user, ok, err := o.Authenticate(t.Context(), issuer.Sign(t, issuer.Claims(tc.claims)))
		var reserved ReservedName
		if errors.As(err, &reserved); ok != (tc.want == "") || ok != (err == nil) || reserved.Name != tc.want {
			t.Errorf("%s: %+v %v %v, want ReservedName %q", name, user, ok, err, tc.want)
		}
	}
}

func TestATokenOfAnUnreachableIssuerIsRejectedUnlessItsKeyIsKnown(t *testing.T) {
	issuer := oidcissuer.New(t)
	issuer.NoKeys.Store(true)
	now := clocktest.NewFakePassiveClock(time.Now())
	o := newOIDC(t, issuer, now)
	token := issuer.Sign(t, issuer.Claims(nil))
	rejected := func(state string) {
		t.Helper()
		var unreachable IssuerUnreachable
		if _, ok, err := o.Authenticate(t.Context(), token); ok || !errors.As(err, &unreachable) || unreachable.Issuer != issuer.URL {
			t.Errorf("%s: %v %v, want IssuerUnreachable", state, ok, err)
		}
	}
	accepted := func(state string) {
		t.Helper()
		if _, ok, err := o.Authenticate(t.Context(), token); !ok || err != nil {
			t.Errorf("%s: %v %v, want the user", state, ok, err)
		}
	}
	rejected("before the discovery")
	if err := o.Discover(t.Context()); err == nil || o.Failure() == nil {
		t.Errorf("discovery without keys: %v, failure %v", err, o.Failure())
	}
	rejected("without keys")
	now.SetTime(now.Now().Add(issuerPause))
	issuer.NoKeys.Store(false)
	if err := o.Discover(t.Context()); err != nil || o.Failure() != nil {
		t.Errorf("discovery with keys: %v, failure %v", err, o.Failure())
	}
	issuer.NoKeys.Store(true)
	rejected("keys not read again")
	issuer.NoKeys.Store(false)
	before := issuer.Requests.Load()
	for range 10 {
		rejected("right after a failed request")
	}
	if sent := issuer.Requests.Load() - before; sent != 0 {
		t.Errorf("%d requests within %s after a failed one, want 0", sent, issuerPause)
	}
	now.SetTime(now.Now().Add(issuerPause))
	// The library may still return the result of its last read of the keys, which failed.
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		_, ok, _ := o.Authenticate(ctx, token)
		return ok, nil
	})
	if err != nil {
		t.Errorf("keys read again: %v", err)
	}
	issuer.Down.Store(true)
	accepted("unreachable with a known key")
	if _, ok, err := o.Authenticate(t.Context(), oidcissuer.New(t).Sign(t, map[string]any{"iss": "https://other.example"})); ok || err != nil {
		t.Errorf("a token of another issuer: %v %v, want no error", ok, err)
	}
}

func TestAnIssuerNeedsTLSUnlessHTTPIsAllowed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.yaml")
	for name, tc := range map[string]struct{ item, want string }{
		"https":             {"{issuer: 'https://issuer.example', clientID: c}", ""},
		"http":              {"{issuer: 'http://issuer.example', clientID: c}", `oidc[0].issuer: "http://issuer.example" has no TLS`},
		"the fix":           {"{issuer: 'http://issuer.example', clientID: c}", "set allowHTTP: true"},
		"a reserved prefix": {"{issuer: 'https://issuer.example', clientID: c, prefix: 'system:serviceaccount:'}", "prefix: \"system:serviceaccount:\" begins with system:"},
		"allowed http":      {"{issuer: 'http://issuer.example', clientID: c, allowHTTP: true}", ""},
		"not a URL":         {"{issuer: issuer.example, clientID: c}", "oidc[0].issuer: "},
		"no audience":       {"{issuer: 'https://issuer.example'}", "oidc[0].clientID: required"},
		"unknown field":     {"{issuer: 'https://issuer.example', clientID: c, allowHttps: true}", "allowHttps"},
	} {
		if err := os.WriteFile(path, []byte("oidc: ["+tc.item+"]"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadConfig(path); (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestKeysAreNotReadWithoutTLS(t *testing.T) {
	issuer := oidcissuer.New(t)
	secure := httptest.NewTLSServer(issuer)
	t.Cleanup(secure.Close)
	o := NewOIDC(OIDCConfig{Issuer: secure.URL, ClientID: "permission-centre"}, clock.RealClock{})
	o.requests.base = secure.Client().Transport
	issuer.URL = secure.URL
	if err := o.Discover(t.Context()); !errors.Is(err, errNoTLS) {
		t.Errorf("jwks_uri %s: %v, want %v", issuer.KeysURL, err, errNoTLS)
	}
	issuer.KeysURL = secure.URL + "/keys"
	if err := NewOIDC(o.config, clock.RealClock{}).Discover(t.Context()); err == nil {
		t.Error("a certificate of an unknown authority is accepted")
	}
	o = NewOIDC(o.config, clock.RealClock{})
	o.requests.base = secure.Client().Transport
	if err := o.Discover(t.Context()); err != nil {
		t.Errorf("jwks_uri %s: %v", issuer.KeysURL, err)
	}
}
