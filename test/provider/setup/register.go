package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// Object is what is registered at the centre: /v1/Kind.
type Object struct {
	Kind string
	Body any
}

// Web are set "web", which is granted, and set "wrong", which is denied.
func Web() []Object {
	meta := func(name string) api.Meta { return api.Meta{Name: name, Owner: Owner} }
	return []Object{
		{"providers", Provider()},
		{"permissions", api.Permission{Meta: meta("orders-db"), Provider: "double", Parameters: map[string]string{"name": "orders-db"}}},
		{"permissions", api.Permission{Meta: meta("no-such-table"), Provider: "double", Parameters: map[string]string{"name": "no-such-table", "wrong": "true"}}},
		{"permissionsets", api.PermissionSet{Meta: meta("web"), Permissions: []string{"orders-db"}}},
		{"permissionsets", api.PermissionSet{Meta: meta("wrong"), Permissions: []string{"no-such-table"}}},
	}
}

// Register registers objects; one that is there already stays as it is.
func (c *Cluster) Register(ctx context.Context, objects ...Object) error {
	for _, o := range objects {
		status, raw, err := Ask(ctx, http.MethodPost, c.Centre+"/v1/"+o.Kind, c.Token, o.Body)
		if err != nil || (status != http.StatusCreated && status != http.StatusConflict) {
			return fmt.Errorf("register %+v: %d %s: %w", o.Body, status, raw, err)
		}
	}
	return nil
}

// Ask sends a request; a connection that is refused is tried again for a while:
// the Service learns of a pod a moment after the Deployment does.
func Ask(ctx context.Context, method, url, token string, body any) (int, []byte, error) {
	var last error
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		status, raw, err := askOnce(ctx, method, url, token, body)
		if err == nil {
			return status, raw, nil
		}
		last = err
		select {
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	return 0, nil, last
}

func askOnce(ctx context.Context, method, url, token string, body any) (int, []byte, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err = io.ReadAll(res.Body)
	return res.StatusCode, raw, err
}
