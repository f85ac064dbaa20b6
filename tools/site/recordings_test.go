package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestThePlayerIsThatOfItsPackage(t *testing.T) {
	// After an update of hack/player.sh: the checksums that it prints.
	for name, want := range map[string]string{
		"asciinema-player.css":    "981fe7bc6042048b2a373b6da297f747e324e90a8b6264e833e3a92cec22dfb9",
		"asciinema-player.min.js": "752c9b528b664f5b16f27c68ba22fc7973d1d6063a1c3e4795a4c8015943acf6",
	} {
		data, err := assets.ReadFile("player/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not the file of the package: run hack/player.sh", name)
		}
	}
}

func TestABrowserPlaysTheRecordingOfThePage(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium; hack/packages.sh installs it")
	}
	site := t.TempDir()
	siteIn(t, site)
	// From a folder, as a reader opens it. Chromium has no sandbox as root.
	shown, err := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir="+t.TempDir(),
		"--virtual-time-budget=10000", "--dump-dom", "file://"+filepath.Join(site, "index.html")).Output()
	if err != nil {
		t.Fatal(err)
	}
	_, player, _ := strings.Cut(string(shown), `class="ap-term-text`)
	terminal, _, _ := strings.Cut(player, `class="ap-control-bar`)
	if !strings.Contains(terminal, "$ kubectl ") {
		t.Errorf("the browser does not show the recording: %.300q", terminal)
	}
}
