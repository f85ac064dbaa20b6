package main

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	ociremote "github.com/sigstore/cosign/v3/pkg/oci/remote"
	"github.com/sigstore/sigstore/pkg/signature"
)

// released is what a release wrote.
type released struct {
	dir      string
	files    map[string]string
	registry string
}

// small is a part with the smallest image, so that a test builds it for two platforms in seconds.
const small = `apiVersion: v1
kind: Pod
metadata:
  name: small
  namespace: altershieldoperator-system
spec:
  containers:
    - name: small
      image: ko://github.com/breakwater-dev/breakwater/cmd/permission/init-action-client
`

// clone makes a clone of HEAD in a folder of its own, with part small in a commit that is always
// the same.
func clone(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "clone")
	git := func(args ...string) {
		command := exec.CommandContext(t.Context(), "git", args...)
		command.Env = append(os.Environ(), "GIT_AUTHOR_DATE=2026-11-24T12:00:00Z", "GIT_COMMITTER_DATE=2026-11-24T12:00:00Z",
			"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@example.com", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@example.com")
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	git("clone", "--quiet", "../..", dir)
	if err := os.Mkdir(filepath.Join(dir, "config/small"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config/small/100-small.yaml"), []byte(small), 0o644); err != nil {
		t.Fatal(err)
	}
	git("-C", dir, "add", "config/small")
	git("-C", dir, "-c", "commit.gpgsign=false", "commit", "--quiet", "-m", "small")
	return dir
}

// release runs the program for part small on a clone, with a registry on loopback that was empty.
func release(t *testing.T, program, key string) released {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	r := released{dir: filepath.Join(t.TempDir(), "out"), registry: strings.TrimPrefix(server.URL, "http://") + "/breakwater"}
	command := exec.CommandContext(t.Context(), program, "-root", clone(t), "-version", "v0.1.0", "-parts", "small", "-out", r.dir)
	command.Env = append(os.Environ(), "KO_DOCKER_REPO="+r.registry, "COSIGN_KEY="+key, "COSIGN_PASSWORD=", "GOPROXY=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("release: %v\n%s", err, out)
	}
	r.files = map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		file, _ := filepath.Rel(r.dir, path)
		r.files[file] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAReleaseIsReproducibleSignedAndComplete(t *testing.T) {
	program := filepath.Join(t.TempDir(), "release")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	r, again := release(t, program, newKey(t)), release(t, program, "")

	t.Run("the same commit gives the same images and files", func(t *testing.T) {
		for file, content := range again.files {
			// The name of the registry is in the manifests, and so in their checksums.
			if file == "SHA256SUMS" {
				continue
			}
			want := r.files[file]
			if strings.HasSuffix(file, ".tgz") {
				content, want = unzip(t, content), unzip(t, want)
			}
			if strings.ReplaceAll(content, again.registry, r.registry) != want {
				t.Errorf("%s differs", file)
			}
		}
	})
	t.Run("images have both platforms, an SBOM and a signature", func(t *testing.T) {
		images := strings.Fields(r.files["images.txt"])
		if len(images) != 1 {
			t.Fatalf("got %q", images)
		}
		for _, image := range images {
			checkImage(t, image, []byte(r.files["cosign.pub"]))
		}
	})
	t.Run("manifests name images by digest", func(t *testing.T) {
		text := r.files["small.yaml"]
		found := regexp.MustCompile(`image: (\S+)`).FindAllStringSubmatch(text, -1)
		if len(found) != 1 || strings.Contains(text, "ko://") {
			t.Fatalf("got %q", found)
		}
		for _, m := range found {
			if !strings.Contains(r.files["images.txt"], m[1]) || !strings.Contains(m[1], "@sha256:") {
				t.Errorf("got %s", m[1])
			}
		}
	})
	t.Run("checksums are those of the files, and signed", func(t *testing.T) {
		sums := r.files["SHA256SUMS"]
		for file, content := range r.files {
			if strings.HasPrefix(file, "SHA256SUMS") || file == "cosign.pub" {
				continue
			}
			if line := fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(content)), file); !strings.Contains(sums, line) {
				t.Errorf("SHA256SUMS has no line %s", line)
			}
		}
		verify(t, []byte(r.files["cosign.pub"]), sums, r.files["SHA256SUMS.sig"])
	})
	for _, file := range []string{"breakwater-0.1.0.tgz", "CHANGELOG.md", "uninstall.sh", "sbom/permission-init-action-client-linux-arm64.spdx.json", "sbom/permission-init-action-client-linux-amd64.spdx.json"} {
		if r.files[file] == "" {
			t.Errorf("%s is missing", file)
		}
	}
}

func unzip(t *testing.T, packed string) string {
	t.Helper()
	reader, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// The other platforms are built in the same way, and would need minutes with empty caches.
func TestTheProgramOfThePluginIsReproducible(t *testing.T) {
	build := func() []byte {
		o := options{root: clone(t), version: "v0.1.0", revision: "abc"}
		return must(buildPlugin(t.Context(), o, runtime.GOOS, runtime.GOARCH))
	}
	program := build()
	if !bytes.Equal(program, build()) {
		t.Error("it differs in another clone")
	}
	if !bytes.Contains(program, []byte("v0.1.0")) {
		t.Error("it does not contain its version")
	}
}

// kubectl completes a plugin with a second program. It does not run a script without an extension on Windows.
func TestTheArchiveOfThePluginHasItsCompletionForKubectl(t *testing.T) {
	for system, want := range map[string][]string{
		"linux":   {"kubectl-breakwater", "kubectl_complete-breakwater", "LICENSE"},
		"windows": {"kubectl-breakwater.exe", "LICENSE"},
	} {
		var got []string
		for _, f := range must(pluginFiles(options{root: "../.."}, system, []byte("program"))) {
			got = append(got, f.name)
			if f.name != "LICENSE" && f.mode != 0o755 {
				t.Errorf("%s has mode %o", f.name, f.mode)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", system, got, want)
		}
	}
}

func checkImage(t *testing.T, image string, key []byte) {
	t.Helper()
	digest, err := name.NewDigest(image)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(digest)
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
		tag, err := ociremote.SBOMTag(digest.Context().Digest(m.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(tag); err != nil {
			t.Errorf("%s: SBOM: %v", image, err)
		}
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("%s: platforms are %s", image, got)
	}
	signatures, err := ociremote.Signatures(must(ociremote.SignatureTag(digest)))
	if err != nil {
		t.Fatalf("%s: %v", image, err)
	}
	all, err := signatures.Get()
	if err != nil || len(all) != 1 {
		t.Fatalf("%s: %d signatures, %v", image, len(all), err)
	}
	payload, err := all[0].Payload()
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := all[0].Base64Signature()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(payload), digest.DigestStr()) {
		t.Errorf("%s: the signature is for %s", image, payload)
	}
	verify(t, key, string(payload), encoded)
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func verify(t *testing.T, key []byte, text, encoded string) {
	t.Helper()
	block, _ := pem.Decode(key)
	if block == nil {
		t.Fatal("cosign.pub is no PEM")
	}
	public, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := signature.LoadDefaultVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.VerifySignature(bytes.NewReader(raw), strings.NewReader(text)); err != nil {
		t.Errorf("signature: %v", err)
	}
}

func TestTheChangesOfAVersionAreItsSection(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- new\n\n## [0.1.0] - 2026-12-01\n\n- first\n\n## 0.0.1\n\n- old\n"
	for version, want := range map[string]string{"0.1.0": "- first\n", "0.0.1": "- old\n", "0.2.0": "- new\n"} {
		if got, err := section(changelog, version, "Unreleased"); err != nil || got != want {
			t.Errorf("%s: got %q, %v", version, got, err)
		}
	}
	if _, err := section("# Changelog\n", "1.0.0", "Unreleased"); err == nil {
		t.Error("a missing section is no error")
	}
}

func TestAReleaseHasNoFileOfAnotherRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "v0.1.0")
	if err := newFolder(out); err != nil {
		t.Error("a folder that does not exist:", err)
	}
	if err := newFolder(out); err != nil {
		t.Error("an empty folder:", err)
	}
	if err := os.WriteFile(filepath.Join(out, "SHA256SUMS.sig"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newFolder(out); err == nil {
		t.Error("no error for a folder with the signature of another run")
	}
}

func TestAVersionThatHelmDoesNotAcceptIsAnError(t *testing.T) {
	for version, ok := range map[string]bool{"v0.1.0": true, "v1.2.3-rc.1": true, "0.1.0": false, "v1": false, "": false} {
		if semver.MatchString(version) != ok {
			t.Errorf("%q: want %v", version, ok)
		}
	}
}
