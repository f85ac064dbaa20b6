package store

import (
	"context"
	"strings"
	"testing"
	"time"
)

func TestAPanicInAWriteFailsOnlyThatWrite(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := s.Write(ctx, func(tx Tx) error {
		if err := tx.Create(Object{Kind: KindProvider, Name: "before"}); err != nil {
			return err
		}
		panic("a bug")
	})
	if err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Errorf("got %v", err)
	}
	later := make(chan error, 1)
	go func() {
		later <- s.Write(ctx, func(tx Tx) error { return tx.Create(Object{Kind: KindProvider, Name: "after"}) })
	}()
	select {
	case err := <-later:
		if err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatal("a later write waits")
	}
	if objects, err := s.View(ctx).Objects(KindProvider, Page{Limit: 10}); err != nil || len(objects) != 1 || objects[0].Name != "after" {
		t.Errorf("stored %+v, %v", objects, err)
	}
}

// The path of the database is not a URI: these characters are part of the path.
func TestAPathMayContainCharactersOfURIs(t *testing.T) {
	t.Run("#?%41", func(t *testing.T) {
		a, b := open(t), open(t)
		if err := a.Write(t.Context(), func(tx Tx) error { return tx.Create(Object{Kind: KindProvider, Name: "a"}) }); err != nil {
			t.Fatal(err)
		}
		if objects, err := b.View(t.Context()).Objects(KindProvider, Page{Limit: 10}); err != nil || len(objects) > 0 {
			t.Errorf("another database has %+v, %v", objects, err)
		}
	})
}
