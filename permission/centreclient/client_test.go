package centreclient

import (
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/breakwater-dev/breakwater/internal/servingcert"
	"github.com/breakwater-dev/breakwater/permission/api"
)

func newClient(t *testing.T, serve http.HandlerFunc) *Client {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	return New(Options{URL: func() string { return server.URL + "/" }, TokenFile: file})
}

func TestListReadsAllPages(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" || r.URL.Query().Get("podUID") != "uid" || r.URL.Query().Get("cluster") != "shop" {
			t.Errorf("%s %s", r.URL, r.Header)
		}
		list := api.ApplicationList{Items: []api.Application{{ID: "a"}}, Continue: "more"}
		if r.URL.Query().Get("continue") == "more" {
			list = api.ApplicationList{Items: []api.Application{{ID: "b"}}}
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	all, err := c.ListByPod(t.Context(), "shop", "uid")
	if err != nil || len(all) != 2 || all[1].ID != "b" {
		t.Errorf("%+v %v", all, err)
	}
}

// Otherwise all leaks of a cluster would be in memory at once.
func TestEachVisitsAPageBeforeItRequestsTheNext(t *testing.T) {
	var visited []string
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		list := api.ApplicationList{Items: []api.Application{{ID: "a"}}, Continue: "more"}
		if r.URL.Query().Get("continue") == "more" {
			if len(visited) != 1 {
				t.Errorf("visited %v before the request of the second page", visited)
			}
			list = api.ApplicationList{Items: []api.Application{{ID: "b"}}}
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	if err := c.Each(t.Context(), nil, func(app api.Application) { visited = append(visited, app.ID) }); err != nil || len(visited) != 2 {
		t.Errorf("visited %v, %v", visited, err)
	}
}

func TestListReadsApplicationsOfLargeSets(t *testing.T) {
	const applications = 500
	permissions := make([]api.ApplicationPermission, 50)
	for i := range permissions {
		permissions[i] = api.ApplicationPermission{Permission: fmt.Sprintf("orders-db-%d", i), Provider: "mysql-production", Owner: "team-databases",
			State: api.Leaked, Reason: "ProviderUnreachable", Message: strings.Repeat("m", 200), Calls: 10, Since: time.Unix(1_700_000_000, 0).UTC()}
	}
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			t.Error(err)
		}
		first, _ := strconv.Atoi(r.URL.Query().Get("continue")) // 0 on the first page
		end := min(first+limit, applications)
		var list api.ApplicationList
		for i := first; i < end; i++ {
			list.Items = append(list.Items, api.Application{ID: strconv.Itoa(i), Permissions: permissions})
		}
		if end < applications {
			list.Continue = strconv.Itoa(end)
		}
		_ = json.NewEncoder(w).Encode(list)
	})
	all, err := c.List(t.Context(), url.Values{"state": {"Leaked"}})
	if err != nil || len(all) != applications || all[applications-1].ID != "499" {
		t.Errorf("%d applications, %v, want %d", len(all), err, applications)
	}
}

func TestTheErrorForAResponseThatIsTooLargeSaysSo(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"items":[]%s}`, strings.Repeat(" ", maxResponse))
	})
	if _, err := c.List(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "more than 8 MiB") {
		t.Errorf("%v", err)
	}
}

func TestARequestNamesTheUIDOfTheCluster(t *testing.T) {
	for _, uid := range []string{"", "c1-uid"} {
		c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/applications" || r.URL.Query().Get("clusterUID") != uid {
				t.Errorf("%s, want clusterUID %q", r.URL, uid)
			}
			_, _ = fmt.Fprint(w, "{}")
		})
		c.o.ClusterUID = uid
		if _, err := c.Apply(t.Context(), api.ApplicationRequest{}); err != nil {
			t.Error(err)
		}
	}
}

func TestErrorResponsesAreClassified(t *testing.T) {
	for name, tc := range map[string]struct {
		status     int
		body       string
		notFound   bool
		permanent  bool
		conflict   bool
		retryAfter time.Duration
		message    string
	}{
		"unknown set":           {http.StatusNotFound, `{"reason":"NotFound","message":"there is no permission set web","field":"set"}`, true, true, false, 0, "there is no permission set web"},
		"unknown application":   {http.StatusNotFound, `{"reason":"NotFound","message":"the object does not exist"}`, true, false, false, 0, "does not exist"},
		"wrong URL":             {http.StatusNotFound, `<html>`, false, false, false, 0, "404"},
		"set of other pods":     {http.StatusForbidden, `{"reason":"Forbidden","message":"permission set web does not allow the pod","field":"set"}`, false, true, false, 0, "permission set web does not allow the pod"},
		"user without a right":  {http.StatusForbidden, `{"reason":"Forbidden","message":"the user is not listed under cluster c1"}`, false, false, false, 0, "not listed"},
		"invalid request":       {http.StatusBadRequest, `{"reason":"BadRequest","message":"no"}`, false, true, false, 0, "BadRequest: no"},
		"node without address":  {http.StatusBadRequest, `{"reason":"BadRequest","message":"nodeIPs: required","field":"nodeIPs"}`, false, false, false, 0, "nodeIPs: required"},
		"400 of a TLS server":   {http.StatusBadRequest, "Client sent an HTTP request to an HTTPS server.", false, false, false, 0, "400"},
		"redirect":              {http.StatusMovedPermanently, `{"items":[]}`, false, false, false, 0, "301"},
		"revoking":              {http.StatusConflict, `{"reason":"Conflict","message":"it is Revoking"}`, false, false, true, 0, "Revoking"},
		"rate limited":          {http.StatusTooManyRequests, `{}`, false, false, false, 7 * time.Second, "429"},
		"error page of a proxy": {http.StatusBadGateway, `<html>`, false, false, false, 0, "502"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprint(w, tc.body)
			})
			_, err := c.Apply(t.Context(), api.ApplicationRequest{})
			if err == nil || IsNotFound(err) != tc.notFound || IsPermanent(err) != tc.permanent || IsConflict(err) != tc.conflict || RetryAfter(err) != tc.retryAfter || !strings.Contains(err.Error(), tc.message) {
				t.Errorf("%v: not found %v, permanent %v, conflict %v, retry after %s", err, IsNotFound(err), IsPermanent(err), IsConflict(err), RetryAfter(err))
			}
		})
	}
}

func TestARedirectWithTheSameMethodIsFollowed(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/elsewhere" {
			http.Redirect(w, r, "/elsewhere", http.StatusPermanentRedirect)
			return
		}
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("%s with %q", r.Method, r.Header)
		}
		_, _ = fmt.Fprint(w, `{"id":"a","state":"Granted"}`)
	})
	if app, err := c.Apply(t.Context(), api.ApplicationRequest{}); err != nil || app.ID != "a" {
		t.Errorf("%+v, %v", app, err)
	}
}

// Error messages appear in the status of pods, where users read them.
func TestErrorsContainNeitherAddressNorToken(t *testing.T) {
	c := newClient(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	_, err := c.PermissionSet(t.Context(), "web")
	if err == nil || strings.Contains(err.Error(), "http://") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	var status *StatusError
	if errors.As(err, &status) {
		t.Errorf("%v is a StatusError", err)
	}
}

// The token is for the configured centre, and needs TLS if that has it.
func TestNoRedirectSendsTheTokenOrAPodElsewhere(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		t.Errorf("elsewhere got %s, Authorization %q", body, r.Header.Get("Authorization"))
	}))
	t.Cleanup(elsewhere.Close)
	otherHost := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	redirect := func(to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusPermanentRedirect) }
	}
	secure := httptest.NewTLSServer(redirect(elsewhere.URL))
	t.Cleanup(secure.Close)
	trust := &servingcert.Bundle{}
	trust.Update(map[string]string{"ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))})
	c := newClient(t, redirect(otherHost))
	for name, c := range map[string]*Client{
		"another host": c,
		"without TLS":  New(Options{URL: func() string { return secure.URL }, TokenFile: c.o.TokenFile, Trust: trust}),
	} {
		var status *StatusError
		if _, err := c.Apply(t.Context(), api.ApplicationRequest{Pod: "web"}); !errors.As(err, &status) || status.Status != http.StatusPermanentRedirect {
			t.Errorf("%s: %v, want the redirect as an error", name, err)
		}
	}
}
