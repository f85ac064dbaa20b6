package main

import (
	"crypto/sha256"
	"encoding/hex"
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
