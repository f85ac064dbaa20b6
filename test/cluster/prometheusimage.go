// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// prometheusProgram is the program of Debian's package.
const prometheusProgram = "/usr/bin/prometheus"

// sharedObjects are the C library and its loader, the only ones that Debian's
// prometheus uses. One pattern of each pair exists on a machine.
var sharedObjects = []string{"/lib/*-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}

// prometheusImage is Debian's prometheus under the name of the image that most
// manifests use.
func prometheusImage(certificates []byte) (baseImage, error) {
	files := append(baseFiles(certificates), file{name: "prometheus/", mode: 0o1777, dir: true})
	paths := []string{prometheusProgram}
	for _, pattern := range sharedObjects {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return baseImage{}, err
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return baseImage{}, fmt.Errorf("image of prometheus: %w", err)
		}
		files = append(files, file{name: strings.TrimPrefix(path, "/"), mode: 0o755, data: data})
	}
	config := v1.Config{User: "65534:65534", WorkingDir: "/prometheus", Env: []string{"SSL_CERT_FILE=" + caBundle},
		Entrypoint: []string{prometheusProgram}, Cmd: []string{"--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"}}
	return baseImage{files, config}, nil
}
