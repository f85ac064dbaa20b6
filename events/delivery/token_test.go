package delivery

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestABrokerThatRequiresATokenGetsIt(t *testing.T) {
	b := newBroker(t)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("of-the-controller\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, Options{}, func(context.Context) (Endpoint, error) {
		return Endpoint{URL: b.URL, TokenFile: file}, nil
	})
	f.run(t)
	if err := f.Deliver(t.Context(), podFinished(t, "a")); err != nil {
		t.Fatal(err)
	}
	d := <-b.answered
	if got := d.header.Get("Authorization"); got != "Bearer of-the-controller" {
		t.Errorf("the header Authorization is %q", got)
	}
}

func TestEventsStayQueuedWithoutTheTokenThatTheBrokerRequires(t *testing.T) {
	b := newBroker(t)
	f := newFixture(t, Options{}, func(context.Context) (Endpoint, error) {
		return Endpoint{URL: b.URL, TokenFile: filepath.Join(t.TempDir(), "token")}, nil
	})
	f.run(t)
	err := f.Deliver(t.Context(), podFinished(t, "a"))
	var noBroker *NoBrokerError
	if !errors.As(err, &noBroker) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "docs/overlays.md") {
		t.Errorf("got %v, want an error that says how to mount a token", err)
	}
	if len(b.requests) > 0 {
		t.Error("an event was sent without a token")
	}
}
