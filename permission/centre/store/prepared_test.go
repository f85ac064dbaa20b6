package store

import (
	"fmt"
	"strings"
	"testing"

	"github.com/breakwater-dev/breakwater/permission/api"
)

// The prepared statements are kept until the centre ends, so their text is bounded, too.
func TestLongStatementsAreNotKept(t *testing.T) {
	s := open(t)
	for n := range 5 {
		if _, err := s.View(t.Context()).Applications(Filter{States: make([]api.State, 10000+n)}, Page{Limit: 1}); err != nil {
			t.Fatal(err)
		}
		values := strings.Repeat("1, ", 10000+n) + "1"
		if err := s.Write(t.Context(), func(tx Tx) error {
			_, err := tx.count("SELECT COUNT(*) FROM objects WHERE version IN (" + values + ")")
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []*prepared{&s.prepared, &s.preparedRead} {
		for text := range p.all {
			if len(text) > maxPreparedText {
				t.Errorf("a statement of %d bytes is kept", len(text))
			}
		}
	}
}

// An owner of an application may be in any number of groups.
func TestTheStatementOfAListDoesNotDependOnTheNumberOfOwners(t *testing.T) {
	s := open(t)
	var owners []string
	for n := range 20 {
		owners = append(owners, fmt.Sprint(n))
		if _, err := s.View(t.Context()).Applications(Filter{Owners: owners}, Page{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(s.preparedRead.all); n != 1 {
		t.Errorf("%d statements", n)
	}
}

func TestTheRowsOfAnImportedTableShareAStatement(t *testing.T) {
	s := open(t)
	text := `{"format":"permissioncentre/1"}` + "\n"
	for n := range 20 {
		text += fmt.Sprintf(`{"table":"objects","values":{"kind":"provider","name":"p%d","owner":"o","description":"","body":"{}","version":1,"created":0,"updated":0}}`+"\n", n)
	}
	if err := s.Import(t.Context(), strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for statement := range s.prepared.all {
		if strings.HasPrefix(statement, "INSERT INTO objects") {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d statements", n)
	}
}
