// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// file is one entry of an image's only layer.
type file struct {
	name string
	mode int64
	data []byte
	link string
	dir  bool
}

// baseImage describes one of our images before it is assembled.
type baseImage struct {
	files  []file
	config v1.Config
}

// pushBaseImages assembles and pushes the base images, which cannot be pulled
// here.
func (c *cluster) pushBaseImages(ctx context.Context) error {
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		return err
	}
	certificates, err := os.ReadFile(caBundle)
	if err != nil {
		return err
	}
	static := v1.Config{User: "65532:65532", WorkingDir: "/", Env: []string{"PATH=/usr/bin:/bin", "SSL_CERT_FILE=" + caBundle, "HOME=/tmp"}}
	shell := v1.Config{Cmd: []string{"sh"}, Env: []string{"PATH=/bin"}}
	images := map[string]baseImage{
		"base:latest":            {baseFiles(certificates), static},
		pauseTag(busybox):        pauseImage(busybox),
		"library/busybox:latest": {busyboxFiles(ctx, busybox, certificates), shell},
	}
	if images["prom/prometheus:latest"], err = prometheusImage(certificates); err != nil {
		return err
	}
	for ref, i := range images {
		img, err := assemble(i.files, i.config)
		if err != nil {
			return fmt.Errorf("%s: %w", ref, err)
		}
		if err := c.push(ctx, ref, img); err != nil {
			return err
		}
	}
	return nil
}

// pauseImage keeps a Pod's namespaces open. It uses busybox, which needs less
// memory than a Go program.
func pauseImage(busybox []byte) baseImage {
	command := []string{"/bin/busybox", "sleep", "2147483647"}
	return baseImage{[]file{{name: "bin/busybox", mode: 0o755, data: busybox}}, v1.Config{User: "65535:65535", Entrypoint: command}}
}

// pauseTag is a hash of the content, because containerd keeps images between
// clusters and does not pull a known tag again.
func pauseTag(busybox []byte) string {
	sum := sha256.New()
	sum.Write(busybox)
	_, _ = fmt.Fprint(sum, pauseImage(nil))
	return fmt.Sprintf("pause:%x", sum.Sum(nil)[:6])
}

// baseFiles are the files that a static Go program needs: users, certificates,
// /tmp.
func baseFiles(certificates []byte) []file {
	return []file{
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/root:/sbin/nologin\nnobody:x:65534:65534:nobody:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\nnobody:x:65534:\nnonroot:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: certificates},
		{name: "tmp/", mode: 0o1777, dir: true},
	}
}

// busyboxFiles adds a link for each applet, as the official busybox image does.
func busyboxFiles(ctx context.Context, busybox, certificates []byte) []file {
	files := append(baseFiles(certificates), file{name: "bin/busybox", mode: 0o755, data: busybox})
	applets, err := run(ctx, "/bin/busybox", "--list")
	if err != nil {
		applets = "sh\nsleep\necho\ncat\nls\nwget\nnc\ntrue\nfalse\n"
	}
	for _, a := range bytes.Fields([]byte(applets)) {
		if string(a) != "busybox" {
			files = append(files, file{name: "bin/" + string(a), mode: 0o777, link: "busybox"})
		}
	}
	return files
}

// assemble builds an image. It is deterministic: the same files result in the same
// digest.
func assemble(files []file, config v1.Config) (v1.Image, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg}
		switch {
		case f.dir:
			h.Typeflag = tar.TypeDir
		case f.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.link
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(buffer.Bytes())), nil })
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	cf, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cf = cf.DeepCopy()
	cf.OS, cf.Architecture, cf.Config = "linux", goarch, config
	return mutate.ConfigFile(img, cf)
}

// push uploads an image to the cluster's registry, from the host.
func (c *cluster) push(ctx context.Context, ref string, img v1.Image) error {
	tag, err := name.NewTag(c.registryHost()+"/"+ref, name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, img, remote.WithContext(ctx), remote.WithTransport(direct.Transport)); err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	return nil
}

// inRegistry reports whether the cluster's registry has an image reference of a
// pod.
func (c *cluster) inRegistry(ctx context.Context, ref string) bool {
	parsed, err := name.ParseReference(ref, name.Insecure)
	if err != nil {
		return false
	}
	seen, err := name.ParseReference(c.registryHost()+"/"+parsed.Context().RepositoryStr()+separator(parsed)+parsed.Identifier(), name.Insecure)
	if err != nil {
		return false
	}
	_, err = remote.Head(seen, remote.WithContext(ctx), remote.WithTransport(direct.Transport))
	return err == nil
}

func separator(r name.Reference) string {
	if _, ok := r.(name.Digest); ok {
		return "@"
	}
	return ":"
}
