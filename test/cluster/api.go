// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// direct never uses a proxy: the addresses exist only on this machine.
var direct = &http.Client{Transport: &http.Transport{}, Timeout: 5 * time.Second}

var errNotFound = errors.New("not found")

// get reads one path of the API as admin. The tool needs few reads and leaves
// the rest to kubectl: a client library would triple the first build time.
func (c *cluster) get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

func (c *cluster) call(ctx context.Context, method, path string, body, into any) error {
	client, err := c.apiClient()
	if err != nil {
		return err
	}
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.apiServer()+path, reader)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "breakwater-cluster")
	req.Header.Set("Content-Type", "application/json")
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	switch {
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", path, errNotFound)
	case res.StatusCode >= 300:
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, lastLines(string(data), 3))
	case into == nil:
		return nil
	}
	return json.Unmarshal(data, into)
}

// apiClient reads the certificates at first use, because "up" creates them.
func (c *cluster) apiClient() (*http.Client, error) {
	c.clientMu.Lock()
	defer c.clientMu.Unlock()
	if c.client != nil {
		return c.client, nil
	}
	cert, err := tls.LoadX509KeyPair(c.pki("admin.crt"), c.pki("admin.key"))
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(c.pki("ca.crt"))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: pool}}
	c.client = &http.Client{Transport: transport, Timeout: 10 * time.Second}
	return c.client, nil
}

// forgetClient makes the next call read the certificates again.
func (c *cluster) forgetClient() {
	c.clientMu.Lock()
	defer c.clientMu.Unlock()
	c.client = nil
}

// kubectl runs as admin against the cluster.
func (c *cluster) kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	env := append(cleanEnv(os.Environ()), "KUBECONFIG="+c.adminKubeconfig(), "HOME="+c.cached("home"))
	return runWith(ctx, env, bytes.NewReader(stdin), c.binary(kubernetes, "kubectl"), args...)
}

// apply uses server-side apply, which keeps the ConfigMap keys of other field
// managers.
func (c *cluster) apply(ctx context.Context, manager string, manifest []byte) error {
	_, err := c.kubectl(ctx, manifest, "apply", "--server-side", "--force-conflicts", "--field-manager="+manager, "-f", "-")
	return err
}
