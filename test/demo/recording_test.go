package main

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const committed = "../../docs/recordings/demo.cast"

var update = flag.Bool("update", false, "draw the picture of the committed recording again")

func committedRecording(t *testing.T) (castHeader, []castEvent) {
	t.Helper()
	raw, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	header, events, err := readCast(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	return header, events
}

// textOf returns what the terminal of a recording shows, with bold lines marked.
func textOf(events []castEvent) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString(e.text)
	}
	return b.String()
}

func TestTheCommittedRecordingCanBePlayed(t *testing.T) {
	header, events := committedRecording(t)
	if header.Version != 2 || header.Width < 80 || header.Height < 24 || header.IdleTimeLimit <= 0 || header.Title == "" {
		t.Errorf("the header is %+v", header)
	}
	if !slices.IsSortedFunc(events, func(a, b castEvent) int { return int(1000 * (a.at - b.at)) }) {
		t.Error("the times of the events do not increase")
	}
	_, frames := layout(header, events)
	if took := frames[len(frames)-1].at; took < 60 || took > 150 {
		t.Errorf("playing takes %.0f s", took)
	}
}

// The addresses, paths and names of the machine that made it, and what only a terminal understands.
var garbage = regexp.MustCompile(`[^\n -~…✓×→µ]|/(etc|home|opt|root|tmp|usr|var|work|Users)/|localhost|127\.0\.0\.1|sha256:|https?://`)

func TestTheCommittedRecordingHasNothingOfTheMachine(t *testing.T) {
	_, events := committedRecording(t)
	text := strings.NewReplacer("\r\n", "\n", boldOn, "", boldOff, "").Replace(textOf(events))
	for l := range strings.SplitSeq(text, "\n") {
		if found := garbage.FindString(l); found != "" {
			t.Errorf("%q is in %q", found, l)
		}
	}
}

// titlesIn returns the titles of the steps in a file, in order.
func titlesIn(t *testing.T, file string) (titles []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || method.Sel.Name != "title" {
			return true
		}
		title, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		titles = append(titles, title)
		return true
	})
	return titles
}

func TestTheCommittedRecordingIsOfThisDemo(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	chapters := regexp.MustCompile(`CHAPTER='(.*)' CAST=docs/recordings/demo\.cast`).FindSubmatch(makefile)
	if chapters == nil {
		t.Fatal("no target of the Makefile records the demo")
	}
	selected, err := selectChapters(string(chapters[1]))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range selected {
		want = append(want, titlesIn(t, c.name+".go")...)
	}
	want = append(want, "Next commands")

	_, events := committedRecording(t)
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\x1b\[1m\d+\. (.*)\x1b\[0m\r$`).FindAllStringSubmatch(textOf(events), -1) {
		got = append(got, m[1])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the recording has the steps\n%q\nthe demo\n%q\nRecord it again: make demo-record", got, want)
	}
}

func TestTheCommittedPictureIsThatOfTheRecording(t *testing.T) {
	file := t.TempDir() + "/demo.svg"
	if *update {
		file = pictureOf(committed)
	}
	if err := draw(committed, file); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(pictureOf(committed))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date: go test ./test/demo -update", pictureOf(committed))
	}
	if len(want) > 300_000 {
		t.Errorf("the picture has %d bytes", len(want))
	}
}
