package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/breakwater-dev/breakwater/internal/httptransport"
	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/redirect"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// cmdbTimeout limits one request to the configuration database.
const cmdbTimeout = 10 * time.Second

// Preparation runs before the permissions of a pod are requested. It may run several times
// for one pod, so it must be idempotent.
type Preparation interface {
	// Name returns the name of the preparation for messages.
	Name() string
	// Run prepares a pod. An error counts as a failure and the preparation is retried.
	Run(ctx context.Context, pod api.ApplicationRequest) error
}

// CMDB registers each of the pod's addresses in a configuration database, with the
// pod as JSON:
//
//	PUT <cmdb-url>/v1/records/{ip}
//
// It does nothing if no cmdb-url is configured.
type CMDB struct {
	settings func() settings.Settings
	http     *http.Client
}

var _ Preparation = CMDB{}

// NewCMDB returns a CMDB with these settings.
func NewCMDB(settings func() settings.Settings) CMDB {
	return CMDB{settings: settings, http: &http.Client{Timeout: cmdbTimeout, Transport: httptransport.New(), CheckRedirect: redirect.KeepMethod}}
}

// Name implements Preparation.
func (CMDB) Name() string { return "CMDB" }

// Run implements Preparation.
func (s CMDB) Run(ctx context.Context, pod api.ApplicationRequest) error {
	base := s.settings().CMDBURL
	if base == "" {
		return nil
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encode the pod: %w", err)
	}
	for _, ip := range pod.PodIPs {
		if err := s.put(ctx, base+"/v1/records/"+url.PathEscape(ip), pod.PodUID+"/"+ip, raw); err != nil {
			return fmt.Errorf("register %s: %w", ip, err)
		}
	}
	return nil
}

func (s CMDB) put(ctx context.Context, address, key string, raw []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, address, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	res, err := s.http.Do(req)
	if err != nil {
		if outer, ok := errors.AsType[*url.Error](err); ok {
			err = outer.Err // removes the URL, because users read the message
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is reused
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the CMDB answered %d", res.StatusCode)
	}
	return nil
}
