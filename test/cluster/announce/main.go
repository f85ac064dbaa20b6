// SPDX-License-Identifier: Apache-2.0

// Command announce is a CNI plugin that follows the plugin that sets up the network of a pod. It
// writes the addresses of the pod into an annotation before a container of the pod starts, as
// Calico does. If the API server does not take them in time, the pod starts without.
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
	"strings"
	"time"
)

// timeout bounds the request: the sandbox of the pod waits for it.
const timeout = time.Second

// config is the configuration of the plugin, with the result of the previous one.
type config struct {
	CNIVersion string          `json:"cniVersion"`
	PrevResult json.RawMessage `json:"prevResult"`
	// Server is the URL of the API server; the others are files.
	Server      string `json:"server"`
	CA          string `json:"ca"`
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
	// Annotation is the key of the annotation.
	Annotation string `json:"annotation"`
}

func main() {
	if err := run(os.Getenv("CNI_COMMAND"), os.Getenv("CNI_ARGS"), os.Stdin, os.Stdout, os.Stderr); err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"cniVersion": "1.0.0", "code": 100, "msg": err.Error()})
		os.Exit(1)
	}
}

func run(command, args string, in io.Reader, out, log io.Writer) error {
	switch command {
	case "VERSION":
		return json.NewEncoder(out).Encode(map[string]any{"cniVersion": "1.0.0", "supportedVersions": []string{"0.4.0", "1.0.0"}})
	case "ADD":
	default:
		return nil // the annotation ends with the pod
	}
	var c config
	if err := json.NewDecoder(in).Decode(&c); err != nil {
		return fmt.Errorf("read the configuration: %w", err)
	}
	if len(c.PrevResult) == 0 {
		return errors.New("there is no result of a previous plugin")
	}
	if err := announce(c, args); err != nil {
		_, _ = fmt.Fprintf(log, "announce the addresses of pod %s: %v\n", args, err)
	}
	_, err := out.Write(c.PrevResult)
	return err
}

// announce writes the annotation of the pod.
func announce(c config, args string) error {
	url, patch, err := request(c, args)
	if err != nil {
		return err
	}
	client, err := newClient(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(patch))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
		return fmt.Errorf("the API server answered %s: %s", answer.Status, body)
	}
	return nil
}

// request returns the URL and the patch for the pod in the arguments of the runtime.
func request(c config, args string) (url string, patch []byte, err error) {
	pod := map[string]string{}
	for item := range strings.SplitSeq(args, ";") {
		key, value, _ := strings.Cut(item, "=")
		pod[key] = value
	}
	namespace, name, uid := pod["K8S_POD_NAMESPACE"], pod["K8S_POD_NAME"], pod["K8S_POD_UID"]
	if namespace == "" || name == "" || uid == "" {
		return "", nil, fmt.Errorf("arguments %q do not name a pod", args)
	}
	var result struct {
		IPs []struct {
			Address string `json:"address"`
		} `json:"ips"`
	}
	if err := json.Unmarshal(c.PrevResult, &result); err != nil {
		return "", nil, fmt.Errorf("read the result of the previous plugin: %w", err)
	}
	var ips []string
	for _, ip := range result.IPs {
		address, _, _ := strings.Cut(ip.Address, "/")
		ips = append(ips, address)
	}
	if len(ips) == 0 {
		return "", nil, errors.New("the previous plugin has assigned no address")
	}
	patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]string{c.Annotation: strings.Join(ips, ",")},
	}})
	return c.Server + "/api/v1/namespaces/" + namespace + "/pods/" + name + "/status", patch, err
}

func newClient(c config) (*http.Client, error) {
	certificate, err := tls.LoadX509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(c.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", c.CA)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, Certificates: []tls.Certificate{certificate},
	}}}, nil
}
