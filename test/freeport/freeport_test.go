package freeport

import "testing"

// A server often listens long after its port was found.
func TestEachPortIsFoundOnce(t *testing.T) {
	found := map[int]bool{}
	for range 500 {
		port, err := Find(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if found[port] {
			t.Fatalf("port %d was found twice", port)
		}
		found[port] = true
	}
}
