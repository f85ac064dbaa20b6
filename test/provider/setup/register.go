package setup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/test/provider"
)

// Object is an object to register at /v1/{Kind} of the centre.
type Object struct {
	Kind string
	Body any
}

// WebObjects returns permission set web, which is granted, and sets wrong and
// typo, which are denied.
func WebObjects() []Object {
	meta := func(name string) api.Meta { return api.Meta{Name: name, Owner: Owner} }
	anyPod := []api.PodPattern{{Namespace: "*"}}
	return []Object{
		{"providers", Provider()},
		{"permissions", api.Permission{Meta: meta("orders-db"), Provider: "double", Parameters: map[string]string{"name": "orders-db"}}},
		{"permissions", api.Permission{Meta: meta("no-such-table"), Provider: "double", Parameters: map[string]string{"name": "no-such-table", "wrong": "true"}}},
		{"permissions", api.Permission{Meta: meta("typo-db"), Provider: "double", Parameters: map[string]string{"name": "typo-db", "wrong": "true"}}},
		{"permissionsets", api.PermissionSet{Meta: meta("web"), Permissions: []string{"orders-db"}, Pods: anyPod}},
		{"permissionsets", api.PermissionSet{Meta: meta("wrong"), Permissions: []string{"no-such-table"}, Pods: anyPod}},
		{"permissionsets", api.PermissionSet{Meta: meta("typo"), Permissions: []string{"typo-db"}, Pods: anyPod}},
	}
}

// Register registers objects. It replaces existing ones, which an earlier run may have
// changed.
func (c *Cluster) Register(ctx context.Context, objects ...Object) error {
	for _, o := range objects {
		status, raw, err := c.Do(ctx, http.MethodPost, c.Centre+"/v1/"+o.Kind, c.Token, o.Body)
		if err == nil && status == http.StatusConflict {
			err = c.Replace(ctx, o, o.name())
		} else if err == nil && status != http.StatusCreated {
			err = errors.New("not created")
		}
		if err != nil {
			return fmt.Errorf("register %+v: %d %s: %w", o.Body, status, raw, err)
		}
	}
	return nil
}

// name returns the name of the object.
func (o Object) name() string {
	var named struct{ Name string }
	if raw, err := json.Marshal(o.Body); err != nil || json.Unmarshal(raw, &named) != nil {
		return ""
	}
	return named.Name
}

// Replace replaces an existing object.
func (c *Cluster) Replace(ctx context.Context, o Object, name string) error {
	url := c.Centre + "/v1/" + o.Kind + "/" + name
	status, raw, err := c.Do(ctx, http.MethodGet, url, c.Token, nil)
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("read %s: %d %s: %w", name, status, raw, err)
	}
	var current struct {
		Version int64 `json:"version"`
	}
	if err := json.Unmarshal(raw, &current); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	status, raw, err = c.Do(ctx, http.MethodPut, url, c.Token, o.Body, "If-Match", strconv.Quote(strconv.FormatInt(current.Version, 10)))
	if err != nil || status != http.StatusOK {
		return fmt.Errorf("replace %s: %d %s: %w", name, status, raw, err)
	}
	return nil
}

// SetFaults sets the faults of the double.
func (c *Cluster) SetFaults(ctx context.Context, f provider.Faults) error {
	status, raw, err := c.Do(ctx, http.MethodPut, c.Double+"/faults", "", f)
	if err != nil || status >= http.StatusBadRequest {
		return fmt.Errorf("set faults: %d %s: %w", status, raw, err)
	}
	return nil
}

// ProviderStats reads the stats of the double.
func (c *Cluster) ProviderStats(ctx context.Context) (provider.Stats, error) {
	var b provider.Stats
	_, raw, err := c.Do(ctx, http.MethodGet, c.Double+"/stats", "", nil)
	if err != nil {
		return b, err
	}
	return b, json.Unmarshal(raw, &b)
}

// Do sends a request. It trusts the certificates of ConfigMap permission-ca. It retries
// connection errors for 20 s, because a Service may get a pod later than the Deployment.
func (c *Cluster) Do(ctx context.Context, method, url, token string, body any, header ...string) (int, []byte, error) {
	var last error
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		status, raw, err := c.doOnce(ctx, method, url, token, body, header)
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

func (c *Cluster) doOnce(ctx context.Context, method, url, token string, body any, header []string) (int, []byte, error) {
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
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	raw, err = io.ReadAll(res.Body)
	return res.StatusCode, raw, err
}
