// Package base is the base image of all images of Breakwater.
package base

import (
	"archive/tar"
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// nonRoot is the user of every process; the manifests name it, too.
	nonRoot = 65532
	// certificates is where Go looks for root certificates first.
	certificates = "etc/ssl/certs/ca-certificates.crt"
)

// Platforms are those of the images of a release. ko.yaml has the same, for images that are built from a checkout.
var Platforms = []string{"linux/amd64", "linux/arm64"}

// New returns the base image for the platforms: root certificates, a user and /tmp. It is made
// here, not pulled, so that it needs no other registry and is reproducible: the certificates are
// those of a pinned Go module.
func New(platforms []string) (v1.ImageIndex, error) {
	layer, err := newLayer()
	if err != nil {
		return nil, err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, name := range platforms {
		platform, err := v1.ParsePlatform(name)
		if err != nil {
			return nil, fmt.Errorf("platform %q: %w", name, err)
		}
		image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		if image, err = mutate.AppendLayers(image, layer); err != nil {
			return nil, err
		}
		file, err := image.ConfigFile()
		if err != nil {
			return nil, err
		}
		file = file.DeepCopy()
		file.OS, file.Architecture, file.Variant = platform.OS, platform.Architecture, platform.Variant
		file.Config = v1.Config{
			User: fmt.Sprintf("%d:%d", nonRoot, nonRoot), WorkingDir: "/",
			Env: []string{"PATH=/usr/bin:/bin", "SSL_CERT_FILE=/" + certificates, "HOME=/tmp"},
		}
		if image, err = mutate.ConfigFile(image, file); err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

func newLayer() (v1.Layer, error) {
	var roots bytes.Buffer
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, entry := range []struct {
		name    string
		mode    int64
		content string
	}{
		{"etc/", 0o755, ""},
		{"etc/passwd", 0o644, fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:%d:%d:nonroot:/tmp:/sbin/nologin\n", nonRoot, nonRoot)},
		{"etc/group", 0o644, fmt.Sprintf("root:x:0:\nnonroot:x:%d:\n", nonRoot)},
		{"etc/ssl/", 0o755, ""},
		{"etc/ssl/certs/", 0o755, ""},
		{certificates, 0o644, roots.String()},
		{"tmp/", 0o1777, ""},
	} {
		header := &tar.Header{Name: entry.name, Mode: entry.mode, Size: int64(len(entry.content)), Typeflag: tar.TypeReg, Format: tar.FormatPAX}
		if strings.HasSuffix(entry.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := io.WriteString(w, entry.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
}

// Certificates is the module with the root certificates, and its version.
func Certificates() string {
	const module = "golang.org/x/crypto/x509roots/fallback"
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range build.Deps {
			if dep.Path == module {
				return module + "@" + dep.Version
			}
		}
	}
	return module
}
