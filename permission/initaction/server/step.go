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

	"github.com/breakwater-dev/breakwater/permission/api"
	"github.com/breakwater-dev/breakwater/permission/settings"
)

// Step is taken before the permissions of a pod are asked for. It may be taken
// many times for one pod, so doing it twice has to be doing it once.
type Step interface {
	// Name is for people.
	Name() string
	// Take takes the step; an error is a failure, which is tried again.
	Run(ctx context.Context, pod api.ApplicationRequest) error
}

// CMDB registers the pod's addresses in a configuration database:
//
//	PUT <cmdb-url>/v1/records/{ip}
//
// with the pod as JSON, for each address. Where no cmdb-url is configured it
// does nothing.
type CMDB struct {
	Settings func() settings.Settings
	HTTP     *http.Client
}

var _ Step = CMDB{}

// Name implements Step.
func (CMDB) Name() string { return "CMDB" }

// Take implements Step.
func (s CMDB) Run(ctx context.Context, pod api.ApplicationRequest) error {
	base := s.Settings().CMDBURL
	if base == "" {
		return nil
	}
	raw, err := json.Marshal(pod)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
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
	res, err := s.HTTP.Do(req)
	if err != nil {
		var outer *url.Error
		if errors.As(err, &outer) {
			err = outer.Err // without the address
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so that the connection is used again
	if res.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("the CMDB answered %d", res.StatusCode)
	}
	return nil
}
