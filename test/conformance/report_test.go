package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAJudgeThatDoesNotCheckSignaturesHasNotesOfItsOwn(t *testing.T) {
	r := try(t, fixture{script: `{}`, calls: signsAgain, callbackWait: 10 * time.Second})
	if failed := r.failed(required); failed != nil {
		t.Errorf("required statements are false: %v", failed)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "SKIP_OPEN_API_AUTH = false"); n != 3 {
		t.Errorf("%d notes name the setting of the server, want 3:\n%s", n, &out)
	}
}

func TestMessagesAreCut(t *testing.T) {
	var out strings.Builder
	r := report{results: []result{{"a statement", required, errors.New(strings.Repeat("long ", 1000))}}}
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	if len(line) > maxMessage+len("FAIL  a statement: ") {
		t.Errorf("the line has %d bytes", len(line))
	}
}
