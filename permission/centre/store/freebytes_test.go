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

// On a full volume, SQLite cannot use the space of deleted rows: it writes into the write-ahead log first.
func TestTheSpaceOfDeletedRowsIsNotFreeOnAFullVolume(t *testing.T) {
	for _, tc := range []struct{ volume, file, want uint64 }{
		{0, 800 << 20, 0},
		{walReserve - 1, 800 << 20, walReserve - 1},
		{walReserve, 800 << 20, walReserve + 800<<20},
		{500 << 20, 0, 500 << 20},
	} {
		if got := writableBytes(tc.volume, tc.file); got != tc.want {
			t.Errorf("%d bytes of the volume and %d of the file: %d are free, want %d", tc.volume, tc.file, got, tc.want)
		}
	}
}
