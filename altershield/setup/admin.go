package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/breakwater-dev/breakwater/altershield"
	"github.com/breakwater-dev/breakwater/internal/text"
)

const (
	// timeout limits one call, including its answer.
	timeout = 15 * time.Second
	// maxAnswer is the maximum size of an answer, in bytes.
	maxAnswer = 4 << 20
	// pageSize is how many scenes or types are read. The server finds those whose key or name contains
	// the desired one, and only the first page of them is read.
	pageSize = 100
	// defaultCallback is the key of the callback URL of all tenants.
	defaultCallback = "DEFAULT"
	// released is the state of a complete scene.
	released = "RELEASE"
)

// Admin calls the admin API of a server.
type Admin struct {
	url  string
	http *http.Client
}

// NewAdmin returns a client for a server.
func NewAdmin(baseURL string) *Admin {
	return &Admin{url: strings.TrimRight(baseURL, "/"), http: newHTTPClient()}
}

// newHTTPClient returns a client that follows no redirect, because a call may contain a token.
func newHTTPClient() *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// platforms returns the names of all platforms.
func (a *Admin) platforms(ctx context.Context) (names []string, err error) {
	err = a.get(ctx, "/meta/platform/queryAllPlatform", nil, &names)
	return names, err
}

// createSequence creates the sequence of ids, once in a new database. The server answers a repeated
// call with status 500 and nothing else.
func (a *Admin) createSequence(ctx context.Context) error {
	const path = "/meta/platform/createSequence"
	_, err := a.exchange(ctx, http.MethodPost, path, struct{}{})
	if callErr, ok := errors.AsType[*altershield.CallError](err); ok && callErr.Status == http.StatusInternalServerError {
		return nil
	}
	return err
}

// createPlatform creates a platform. Its error does not contain the token.
func (a *Admin) createPlatform(ctx context.Context, name, owner, token string) error {
	const path = "/meta/platform/create"
	answer, err := a.exchange(ctx, http.MethodPost, path, map[string]string{"platformName": name, "owner": owner, "token": token}, token)
	if err != nil {
		return err
	}
	if altershield.Decode(path, answer, nil) == nil {
		return nil
	}
	// An error of Decode has a part of the answer.
	if err := altershield.Decode(path, redact(answer, token), nil); err != nil {
		return err
	}
	return fmt.Errorf("altershield %s: rejected", path) // the token is a name or value that Decode needs
}

// hasType reports whether a type of change exists.
func (a *Admin) hasType(ctx context.Context, category, name string) (bool, error) {
	var found []struct {
		Type string `json:"type"`
	}
	err := a.post(ctx, "/meta/change_type/query", map[string]any{"category": category, "type": name, "pageSize": pageSize}, &found)
	for _, f := range found {
		if f.Type == name {
			return true, err
		}
	}
	return false, err
}

func (a *Admin) createType(ctx context.Context, category, name string) error {
	return a.post(ctx, "/meta/change_type/insert", map[string]string{"type": name, "name": name, "description": name, "category": category}, nil)
}

// scene returns the scene with a key, or nil.
func (a *Admin) scene(ctx context.Context, key string) (*ObservedScene, error) {
	var page []struct {
		ID             string `json:"id"`
		ChangeSceneKey string `json:"changeSceneKey"`
		PlatformName   string `json:"platformName"`
		Generation     string `json:"generation"`
		Status         string `json:"status"`
	}
	query := map[string]any{"changeSceneKey": key, "current": 1, "pageSize": pageSize}
	if err := a.post(ctx, "/meta/change_scene/list", query, &page); err != nil {
		return nil, err
	}
	for _, s := range page {
		if s.ChangeSceneKey == key {
			observed := &ObservedScene{ID: s.ID, Platform: s.PlatformName, Generation: s.Generation, Released: s.Status == released}
			return observed, a.details(ctx, observed)
		}
	}
	return nil, nil
}

// details reads the callback URL and the steps of a scene.
func (a *Admin) details(ctx context.Context, s *ObservedScene) error {
	var domain struct {
		Steps []struct {
			ID       string `json:"id"`
			Key      string `json:"changeKey"`
			Name     string `json:"changeStepName"`
			PreCheck int64  `json:"preCheckTimeout"`
			PostChk  int64  `json:"postCheckTimeout"`
		} `json:"metaChangeInterfaceVOList"`
		Callback map[string]string `json:"callbackConfig"`
	}
	if err := a.get(ctx, "/meta/change_scene/get", url.Values{"id": {s.ID}}, &domain); err != nil {
		return err
	}
	s.Callback = domain.Callback[defaultCallback]
	for _, step := range domain.Steps {
		if step.ID != "" { // others are only displayed
			s.Steps = append(s.Steps, SceneStep{ID: step.ID, Key: step.Key, Name: step.Name,
				Pre: time.Duration(step.PreCheck) * time.Millisecond, Post: time.Duration(step.PostChk) * time.Millisecond})
		}
	}
	return nil
}

// createScene creates a scene, which has its steps then, but neither a callback URL nor our limits.
func (a *Admin) createScene(ctx context.Context, d Desired, s Scene) error {
	scene := map[string]any{
		"name": s.Name, "changeSceneKey": s.Key, "platformName": d.Platform, "owner": d.Owner, "generation": s.Generation,
		"tenantCode": d.Tenant, "serverTenantCode": d.Tenant,
		"changeTargetType": d.TargetType, "effectiveTargetType": d.TargetType, "changeContentType": d.TargetType,
	}
	path := "/meta/change_scene/create/base"
	if s.Generation == Generation2 {
		path = "/meta/change_scene/create/standard"
		scene["changeEffectiveConfig"] = map[string]any{
			"changeGrayModeType": "PIPELINE", "changeGrayEnvType": "ENV",
			"changeProgress": map[string]bool{"enableBatchStep": true, "enableOrderStep": true},
		}
	}
	return a.post(ctx, path, scene, nil)
}

// configureScene sets the callback URL and the time limits of the checks of a scene, and releases it.
func (a *Admin) configureScene(ctx context.Context, existing *ObservedScene, scene Scene) error {
	request := map[string]any{"id": existing.ID}
	if existing.Generation == Generation2 {
		steps := []map[string]any{}
		for _, step := range existing.Steps {
			pre, post := checkTimeoutsOf(existing, step, scene)
			steps = append(steps, map[string]any{
				"id": step.ID, "changeKey": step.Key, "changeStepName": step.Name, "interfaceType": "async",
				"preCheckTimeout": pre.Milliseconds(), "postCheckTimeout": post.Milliseconds(),
			})
		}
		request["callbackFlag"] = "yes"
		request["callbackConfig"] = map[string]any{"callbackConfig": map[string]string{defaultCallback: scene.Callback}}
		request["defenceConfigs"] = steps
	}
	return a.post(ctx, "/meta/change_scene/create2/standard", request, nil)
}

func (a *Admin) get(ctx context.Context, path string, query url.Values, domain any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	answer, err := a.exchange(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return altershield.Decode(path, answer, domain)
}

func (a *Admin) post(ctx context.Context, path string, body, domain any) error {
	answer, err := a.exchange(ctx, http.MethodPost, path, body)
	if err != nil {
		return err
	}
	return altershield.Decode(path, answer, domain)
}

// exchange makes one call and returns the body of its answer. Its error does not contain the secrets of the request.
func (a *Admin) exchange(ctx context.Context, method, path string, body any, secrets ...string) ([]byte, error) {
	var content io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("altershield %s: %w", path, err)
		}
		content = bytes.NewReader(raw)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, content)
	if err != nil {
		return nil, fmt.Errorf("altershield %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	response, err := a.http.Do(request)
	if err != nil {
		return nil, &altershield.CallError{Action: path, Kind: altershield.KindIO, MaybeReceived: true, Err: err}
	}
	defer func() { _ = response.Body.Close() }() // nothing depends on the error
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch {
	case response.StatusCode != http.StatusOK:
		for _, secret := range secrets {
			answer = redact(answer, secret)
		}
		return nil, &altershield.CallError{
			Action: path, Kind: altershield.KindStatus, Status: response.StatusCode, MaybeReceived: true,
			Err: fmt.Errorf("answer %q", text.Truncate(string(answer), 128)),
		}
	case err != nil:
		return nil, &altershield.CallError{Action: path, Kind: altershield.KindIO, MaybeReceived: true, Err: err}
	}
	return answer, nil
}

// redact replaces a secret in an answer, however a string of JSON escapes it.
func redact(answer []byte, secret string) []byte {
	var form strings.Builder
	for _, r := range secret {
		form.WriteString(`(?:\\*` + regexp.QuoteMeta(string(r)) + `|`)
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&form, `\\+u(?i:%04x)`, unit)
		}
		form.WriteString(`)`)
	}
	return regexp.MustCompile(form.String()).ReplaceAll(answer, []byte(altershield.Redacted))
}
