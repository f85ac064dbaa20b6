package main

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/breakwater-dev/breakwater/tools/release/base"
)

const root = "../../.."

func newRegistry(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/breakwater"
}

// The programs of this test replace ko and kubectl, and record how ko is called.
func TestApplyBuildsOnABaseImageThatIsPinnedAndWritesSBOMs(t *testing.T) {
	for overlay, folder := range map[string]string{"": "config/monitoring", "strict": "config/core"} {
		bin := t.TempDir()
		calls := filepath.Join(bin, "calls")
		for program, script := range map[string]string{
			"ko":      `echo "$KO_DEFAULTBASEIMAGE $*" >>"` + calls + `"`,
			"kubectl": `case "$*" in "get crd "*) echo services brokers;; esac`,
		} {
			if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/apply.sh"), folder)
		command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KO_DOCKER_REPO="+newRegistry(t), "KO_DEFAULTBASEIMAGE=", "OVERLAY="+overlay)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("apply.sh %s: %v\n%s", folder, err, out)
		}
		raw, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		reference, arguments, _ := strings.Cut(string(raw), " ")
		digest, err := name.NewDigest(reference)
		if err != nil {
			t.Errorf("%s: the base image is not pinned: %v", folder, err)
		} else if _, err := remote.Index(digest); err != nil {
			t.Errorf("%s: base image: %v", folder, err)
		}
		if strings.Contains(arguments, "--sbom") {
			t.Errorf("%s: got ko %s", folder, arguments)
		}
	}
}

func TestApplyUsesTheOverlayOfEachPartThatHasOne(t *testing.T) {
	bin := t.TempDir()
	calls := filepath.Join(bin, "calls")
	for program, script := range map[string]string{"ko": `echo "ko $*" >>"` + calls + `"`, "kubectl": `echo "kubectl $*" >>"` + calls + `"; case "$*" in "get crd "*) echo services brokers;; esac`} {
		if err := os.WriteFile(filepath.Join(bin, program), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/apply.sh"), "config/core", "config/judge", "config/monitoring")
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KO_DOCKER_REPO=registry", "KO_DEFAULTBASEIMAGE=base", "OVERLAY=rabbitmq")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	raw, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "kubectl kustomize") || strings.HasPrefix(line, "ko apply") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{"kubectl kustomize config/overlays/rabbitmq", "kubectl kustomize config/overlays/rabbitmq/judge", "ko apply -Rf config/monitoring"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestApplyOfPartChangeChangesNothingWithoutKnative(t *testing.T) {
	bin := t.TempDir()
	calls := filepath.Join(bin, "calls")
	script := `echo "$*" >>"` + calls + `"; case "$*" in *" delete "*) exit 1;; esac` // as for a kind that does not exist
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), filepath.Join(root, "hack/apply.sh"), "config/protection", "config/core")
	command.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "KO_DOCKER_REPO=registry", "KO_DEFAULTBASEIMAGE=base")
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "needs Knative Serving and Eventing") || !strings.Contains(string(out), "PARTS='config/protection config/permission'") {
		t.Errorf("%v, %s", err, out)
	}
	if raw, err := os.ReadFile(calls); err != nil || strings.Contains(string(raw), "apply") {
		t.Errorf("kubectl was called: %s, %v", raw, err)
	}
}

// ko itself builds for linux/amd64 only.
func TestKoBuildsForThePlatformsOfARelease(t *testing.T) {
	if got := readKoConfig(t).DefaultPlatforms; !slices.Equal(got, base.Platforms) {
		t.Errorf("defaultPlatforms of ko.yaml are %q, want %q", got, base.Platforms)
	}
}

type koConfig struct {
	DefaultBaseImage   string            `json:"defaultBaseImage"`
	BaseImageOverrides map[string]string `json:"baseImageOverrides"`
	DefaultPlatforms   []string          `json:"defaultPlatforms"`
}

func readKoConfig(t *testing.T) (config koConfig) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "ko.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

func TestKoUsesNoBaseImageThatIsNotPinned(t *testing.T) {
	config := readKoConfig(t)
	if config.DefaultBaseImage == "" {
		t.Error("ko.yaml has no defaultBaseImage, so that ko uses its own, which is a tag")
	}
	images := []string{config.DefaultBaseImage}
	for _, image := range config.BaseImageOverrides {
		images = append(images, image)
	}
	for _, image := range images {
		// ko rejects what is no reference.
		if reference, err := name.ParseReference(image); err == nil {
			if _, pinned := reference.(name.Digest); !pinned {
				t.Errorf("base image %s is not pinned", image)
			}
		}
	}
}

func TestTheBaseImageIsTheSameInEveryRegistry(t *testing.T) {
	first, err := push(t.Context(), newRegistry(t))
	if err != nil {
		t.Fatal(err)
	}
	second, err := push(t.Context(), newRegistry(t))
	if err != nil {
		t.Fatal(err)
	}
	if first.DigestStr() != second.DigestStr() {
		t.Errorf("got %s and %s", first, second)
	}
}

func TestTheRegistryIsRequired(t *testing.T) {
	if _, err := push(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "KO_DOCKER_REPO") {
		t.Errorf("got %v", err)
	}
}

// Without the check, the push fails because no host has the name.
func TestWhatIsNoRegistryIsRejectedWithTheWayToUseKind(t *testing.T) {
	for _, repository := range []string{"kind.local", "ko.local", "kind.local/breakwater"} {
		if _, err := push(t.Context(), repository); err == nil || !strings.Contains(err.Error(), "is no registry") || !strings.Contains(err.Error(), "kind.sigs.k8s.io") {
			t.Errorf("%s: got %v", repository, err)
		}
	}
}
