package rest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/centre/store"
)

func newContext(method, target, body string) echo.Context {
	return echo.New().NewContext(httptest.NewRequest(method, target, strings.NewReader(body)), httptest.NewRecorder())
}

// FuzzDecode reads bodies of all kinds. A body that is accepted is one JSON value that
// encodes to the same object; an error is a 400 that names the field.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`{"cluster":"c1","namespace":"ns","pod":"web-0","podUID":"uid","podIPs":["10.0.0.1","fd00::1"],"set":"web"}`,
		`{"cluster":"c1","namespace":"ns","pod":"web-0","podUID":"uid","podIPs":["010.0.0.1"],"nodeIPs":["fe80::1%eth0"],"set":"web"}`,
		`{"name":"p","owner":"team","type":"http","endpoint":"https://p.example.com","rateLimit":{"perSecond":1e308},"http":{"grant":{"body":{"a":["${ip}",null]}}}}`,
		`{"name":"p","provider":"p","parameters":{"\u0000":"\ud800"}}`,
		`{"name":"s","permissions":["a","a"],"pods":[{"namespace":"["}],"version":1.5}`,
		`{"observed":"2026-01-01T00:00:00Z","pods":[{"uid":"u\u0000","ips":[]}],"through":"\u0000"}`,
		`{"cluster":"c1","podUID":"u","keepIPs":["x"],"letGo":1}`,
		`{"name":"a"}}`, `{"name":"a"}]`, `{"name":"a"}{}`, `{"n\"ame\n":1}`, `{"":1}`, ``, `null`, `{"name":"` + strings.Repeat("a", 5000) + `","permissions":7}`,
	} {
		for kind := range uint8(6) {
			f.Add(kind, body)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, body string) {
		switch kind % 6 {
		case 0:
			if r, ok := checkDecode[api.ApplicationRequest](t, body); ok {
				checkRequest(t, r)
			}
		case 1:
			checkDecode[api.Provider](t, body)
		case 2:
			checkDecode[api.Permission](t, body)
		case 3:
			checkDecode[api.PermissionSet](t, body)
		case 4:
			checkDecode[api.RevokeRequest](t, body)
		case 5:
			checkDecode[api.PodReport](t, body)
		}
	})
}

func checkDecode[T any](t *testing.T, body string) (o T, accepted bool) {
	t.Helper()
	if err := decode(newContext(http.MethodPost, "/", body), &o); err != nil {
		checkBadRequest(t, err)
		return o, false
	}
	if !json.Valid([]byte(body)) {
		t.Errorf("accepted: %q", body)
	}
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var content any
	if err := json.Unmarshal(raw, &content); err != nil || strings.ContainsRune(fmt.Sprint(content), 0) {
		t.Errorf("NUL reaches the store: %q, %v", content, err)
	}
	var again T
	if err := decode(newContext(http.MethodPost, "/", string(raw)), &again); err != nil || !cmp.Equal(o, again) {
		t.Errorf("%s is read as %s: %v", raw, cmp.Diff(o, again), err)
	}
	return o, true
}

// checkBadRequest checks that an error is an answer that names the field.
func checkBadRequest(t *testing.T, err error) {
	t.Helper()
	var own apiError
	if !errors.As(err, &own) {
		t.Fatalf("%T: %v", err, err)
	}
	status, answer := toAPIError(err)
	if status != http.StatusBadRequest || answer.Field == "" || !strings.HasPrefix(answer.Message, answer.Field+": ") ||
		len(answer.Message) > 1024 || !utf8.ValidString(answer.Message) {
		t.Errorf("status %d, an error of %d bytes: %.300q", status, len(answer.Message), answer)
	}
}

// checkRequest checks that an accepted request has values that the store can index.
func checkRequest(t *testing.T, r api.ApplicationRequest) {
	t.Helper()
	if err := validateRequest(r); err != nil {
		checkBadRequest(t, err)
		return
	}
	for _, value := range []string{r.Cluster, r.Namespace, r.Pod, r.PodUID, r.Set} {
		if value == "" {
			t.Errorf("accepted: %+v", r)
		}
	}
	for _, value := range []string{r.Cluster, r.Namespace, r.Pod, r.PodUID, r.Set, r.Node, r.ServiceAccount} {
		checkStorable(t, value)
	}
	for _, ip := range append(r.PodIPs, r.NodeIPs...) {
		if a, err := netip.ParseAddr(ip); err != nil || a.String() != ip || a.Zone() != "" {
			t.Errorf("address %q", ip)
		}
	}
}

// checkStorable checks that PostgreSQL accepts a value: it has no NUL and no invalid
// UTF-8. Otherwise the centre would answer 503.
func checkStorable(t *testing.T, value string) {
	t.Helper()
	if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		t.Errorf("%d bytes reach the store: %.100q", len(value), value)
	}
}

// FuzzQuery reads the query of a list. The token of a page continues after it, and an
// error is a 400 that names the parameter.
func FuzzQuery(f *testing.F) {
	f.Add("limit=500&continue=d2ViLTA&search=web", "web-0", uint16(500))
	f.Add("limit=0&continue=%", "a\x00b", uint16(1))
	f.Add("search=%00&continue=AA", "\xff", uint16(7))
	f.Add("wait=60s&version=9223372036854775808", "名", uint16(0))
	f.Add("wait=2562047h47m16.854775807s&version=-1", "", uint16(0))
	f.Add("limit=1&limit=2&continue="+strings.Repeat("A", 8000), strings.Repeat("n", 253), uint16(3))
	f.Fuzz(func(t *testing.T, query, last string, limit uint16) {
		if _, err := url.ParseQuery(query); err == nil {
			c := newContext(http.MethodGet, "/", "")
			c.Request().URL.RawQuery = query
			err := storableQuery(func(c echo.Context) error {
				p, err := page(c)
				if err != nil {
					return err
				}
				if p.Limit < 1 || p.Limit > 500 {
					t.Errorf("limit %d", p.Limit)
				}
				checkStorable(t, p.After)
				checkStorable(t, p.Search)
				checkStorable(t, c.QueryParam("cluster"))
				return nil
			})(c)
			if err != nil {
				checkBadRequest(t, err)
			}
			if wait, _, err := parseWait(c); err != nil {
				checkBadRequest(t, err)
			} else if wait < 0 || wait > maxWait {
				t.Errorf("wait %s", wait)
			}
		}
		if last == "" || strings.ContainsRune(last, 0) || !utf8.ValidString(last) || len(last) > 253 {
			return // no name
		}
		c := newContext(http.MethodGet, "/?continue="+url.QueryEscape(continueToken(int(limit), int(limit), last)), "")
		if p, err := page(c); err != nil || p.After != last {
			t.Errorf("continue after %q is %q, %v", last, p.After, err)
		}
	})
}

// FuzzIfMatch reads If-Match. The ETag of a version is read as that version, any other
// text is no version of an object.
func FuzzIfMatch(f *testing.F) {
	f.Add(`"7"`, int64(7))
	f.Add(`W/"7"`, int64(-1))
	f.Add(`*`, int64(9223372036854775807))
	f.Add(`"""+0007"`, int64(0))
	f.Add("\"7\", \"8\"", int64(1))
	f.Fuzz(func(t *testing.T, header string, version int64) {
		c := newContext(http.MethodPut, "/", "")
		setETag(c, version)
		c.Request().Header.Set("If-Match", c.Response().Header().Get("ETag"))
		if got, err := ifMatch(c); err != nil || got != version {
			t.Errorf("version %d is read as %d, %v", version, got, err)
		}
		c.Request().Header["If-Match"] = []string{header}
		got, err := ifMatch(c)
		status := http.StatusOK
		if err != nil {
			status, _ = toAPIError(err)
		}
		setETag(c, got)
		switch {
		case err == nil && strings.TrimLeft(strings.Trim(header, `"`), "+-0") != strings.TrimLeft(strings.Trim(c.Response().Header().Get("ETag"), `"`), "-0"):
			t.Errorf("%q is read as %d", header, got)
		case err != nil && header == "" && status != http.StatusPreconditionRequired,
			err != nil && header != "" && (status != http.StatusPreconditionFailed || !errors.Is(err, store.ErrConflict)):
			t.Errorf("%q: status %d, %v", header, status, err)
		}
	})
}
