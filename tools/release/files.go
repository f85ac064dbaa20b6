package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// writeManifests writes each part as a file for kubectl apply, with the digests of the images.
func writeManifests(o options, parts []part, images map[string]string) error {
	for _, p := range parts {
		var out strings.Builder
		fmt.Fprintf(&out, "# Breakwater %s, config/%s of commit %s.\n", o.version, p.folder, o.revision)
		for _, m := range p.manifests {
			fmt.Fprintf(&out, "---\n%s\n", strings.TrimSpace(resolve(m.text, images)))
		}
		name := p.folder
		if name == "core" {
			name = "breakwater"
		}
		if err := os.WriteFile(filepath.Join(o.out, name+".yaml"), []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeNotes writes the section of the version in CHANGELOG.md, or the section Unreleased if the
// version has none.
func writeNotes(o options) error {
	raw, err := os.ReadFile(filepath.Join(o.root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	notes, err := section(string(raw), strings.TrimPrefix(o.version, "v"), "Unreleased")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "CHANGELOG.md"), []byte(notes), 0o644)
}

// section returns the text below the first heading that exists.
func section(changelog string, headings ...string) (string, error) {
	for _, heading := range headings {
		begin := regexp.MustCompile(`(?m)^## \[?` + regexp.QuoteMeta(heading) + `\b.*$`).FindStringIndex(changelog)
		if begin == nil {
			continue
		}
		text := changelog[begin[1]:]
		if end := regexp.MustCompile(`(?m)^## `).FindStringIndex(text); end != nil {
			text = text[:end[0]]
		}
		return strings.TrimSpace(text) + "\n", nil
	}
	return "", fmt.Errorf("CHANGELOG.md has no heading of %s", strings.Join(headings, " or "))
}

// writeChecksums writes SHA256SUMS, and its signature and the public key if there is a signer.
func writeChecksums(o options, sign *signer) error {
	var out strings.Builder
	err := filepath.WalkDir(o.out, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(o.out, path)
		if err != nil || entry.IsDir() || strings.HasPrefix(name, "SHA256SUMS") || name == "cosign.pub" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&out, "%x  %s\n", sha256.Sum256(raw), name)
		return nil
	})
	if err != nil {
		return err
	}
	files := map[string][]byte{"SHA256SUMS": []byte(out.String())}
	if sign != nil {
		signature, err := sign.sign([]byte(out.String()))
		if err != nil {
			return fmt.Errorf("sign SHA256SUMS: %w", err)
		}
		files["SHA256SUMS.sig"] = []byte(signature)
		if files["cosign.pub"], err = sign.publicKey(); err != nil {
			return err
		}
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(o.out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// file is an entry of an archive.
type file struct {
	name    string
	mode    int64
	content []byte
}

// archive returns a tar.gz whose bytes depend only on the files and the time.
func archive(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, raw, info.Mode().Perm())
}
