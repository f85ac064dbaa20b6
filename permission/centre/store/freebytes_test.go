package store

import (
	"strings"
	"testing"
)

func TestTheSpaceOfDeletedRowsIsFree(t *testing.T) {
	s := open(t)
	free := func() int {
		n, err := s.View(t.Context()).freeBytes()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const size = 1 << 20
	if err := s.Write(t.Context(), func(tx Tx) error {
		return tx.Create(Object{Kind: KindProvider, Name: "p", Description: strings.Repeat("x", size)})
	}); err != nil {
		t.Fatal(err)
	}
	before := free()
	deleteRows(t, s)
	if after := free(); after-before < size {
		t.Errorf("%d bytes are free after the deletion, %d before", after, before)
	}
}
